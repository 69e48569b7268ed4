"""Decodes the redo of a scenario for a comparison, in the form that ``olr-pg decode --ddl``
prints.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from olr_pg.rendering.ddl_lines import render_ddl
from olr_pg.rendering.json_lines import PackedLines
from olr_pg.replicator.decode_once import DecodingOptions, LogDecoding
from olr_pg.scalars import format_xid

LOST: Final = "lost"

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from olr_pg.dictionary.committed_changes import DictionaryTransaction
    from olr_pg.dictionary.model import Snapshot, Table
    from olr_pg.transactions.row_fault import RowFault

    Event = dict[str, Any]


def decoded_events(
    snapshot: Snapshot, logs: Sequence[str], tables: Sequence[Table], incidents: Path
) -> list[Event]:
    """Decode logs; return the changes that committed after the dictionary's SCN, in delivery order.

    A LOB value that the redo contains only partly is an event with op `LOST`, before or after its
    change.

    Args:
        logs: paths of the logs.
        tables: the tables to decode, from the snapshot.
        incidents: directory for the incident file if decoding fails.

    Raises:
        OlrPgError: 2xxx errors of the logs, 3xxx errors of the tables, because decoding refuses a
            form of change.
    """
    events: list[Event] = []
    wanted = {(one.owner, one.name) for one in tables}

    def take(lines: bytes) -> None:
        for line in lines.splitlines():
            event = json.loads(line, parse_float=Decimal, parse_int=Decimal)
            if int(event["commit_scn"]) > snapshot.scn:
                events.append(event)

    def ddl(transaction: DictionaryTransaction) -> None:
        take(b"".join(render_ddl(transaction, lambda owner, name: (owner, name) in wanted)))

    names = [f'"{one.owner}"."{one.name}"' for one in tables]
    decoding = LogDecoding(snapshot, logs, tables=names, packed=True)
    render = PackedLines(decoding.database)

    def lost(fault: RowFault) -> None:
        for one in fault.lobs:
            if fault.commit_scn > snapshot.scn:
                place = {"table": fault.error.where["table"], "rowid": one.row_id}
                scn = Decimal(fault.commit_scn)
                value = {"column": one.column, "code": one.code, "commit_scn": scn}
                events.append({"op": LOST, "xid": format_xid(fault.xid), **place, **value})

    for run in decoding.runs(DecodingOptions(ddl=ddl, incidents=incidents, lost=lost)):
        for piece in render.pieces(run.blob, decoding.tables):
            take(bytes(piece))
    return events
