"""Redo written vector by vector, read back as the events, pieces and values of the walk."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from olr_pg.decoding.split import subscribe
from olr_pg.dictionary.decoding_plan import build_row_plan
from olr_pg.redo.walk import Objects, Tally
from tests.lobs.lob_redo import LobRedo, table
from tests.redo.chain import whole_log
from tests.redo.log_builder import all_records, open_log

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.dictionary.model import Table
    from olr_pg.redo.batch import ChangeBatch
    from olr_pg.redo.record_view import Record, Vector
    from olr_pg.redo.window import Log


def log_of(redo: LobRedo, folder: Path) -> Log:
    """The log of all that was written."""
    return open_log(np.fromfile(redo.write(folder), np.uint8))


def walked(redo: LobRedo, folder: Path, *tables: Table) -> tuple[ChangeBatch, Tally]:
    """What the walk finds of tables, by default of ``APP.DOCS``, without their LOBs."""
    plan = build_row_plan(tables or (table(),), redo.con_id)
    objects = Objects(
        key=plan.object_key,
        table=plan.object_table,
        cluster_columns=plan.cluster_columns,
        data_key=plan.data_key,
        data_table=plan.data_table,
    )
    return whole_log(log_of(redo, folder), objects)


def walked_with_lobs(redo: LobRedo, folder: Path, *tables: Table) -> tuple[ChangeBatch, Tally]:
    """The same with their LOBs."""
    wanted = subscribe(tables or (table(),), redo.con_id)
    return whole_log(log_of(redo, folder), wanted.objects)


def records(redo: LobRedo, folder: Path) -> list[Record]:
    """Every record, as the dump reads it."""
    return all_records(log_of(redo, folder))


def only_vector(redo: LobRedo, folder: Path) -> Vector:
    """The one vector that was written."""
    (record,) = records(redo, folder)
    (vector,) = record.vectors
    return vector


def values_of(batch: ChangeBatch) -> list[tuple[int, int, bytes | None]]:
    """(role, segment column, bytes) of every value, in order."""
    return [(int(entry.role), int(entry.segcol), _bytes(batch, entry)) for entry in batch.entries]


def _bytes(batch: ChangeBatch, entry: Any) -> bytes | None:
    if entry.length < 0:
        return None
    return batch.data[entry.offset : entry.offset + entry.length].tobytes()


def block(
    order: str,
    rows: list[bytes],
    nrow: int | None = None,
    flags: int = 0x02,
    *,
    obj: int = 72_726,
    kdbh: int = 0xAE,
    ntab: int = 1,
    fsbo: int | None = None,
) -> bytes:
    """A table's block (redo-format §6.2) with two ITL entries; its rows are the last bytes.

    Args:
        nrow, fsbo: where they are not those of the rows.
        flags: of the block.
        kdbh: flags of the data header, by default all but that of compressed tables.
    """
    begin = 18 + 2 * len(rows)
    places = [begin + len(b"".join(rows[:n])) for n in range(len(rows))]
    header = struct.pack(order + "B3xI8xHBBI", 1, obj, 0xEE02, flags, 0xEE, 0xEEEEEEEE)
    nrow = len(rows) if nrow is None else nrow
    fsbo = 18 + 2 * nrow if fsbo is None else fsbo
    data = struct.pack(order + "BBH2sH10s", kdbh, ntab, nrow, b"\xee" * 2, fsbo, b"\xee" * 10)
    directory = struct.pack(f"{order}{len(places)}H", *places)
    more = b"\xee" * 8 if flags & 0x20 else b""
    return header + b"\xee" * 48 + more + data + directory + b"".join(rows)
