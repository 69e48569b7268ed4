"""A named workload of any size: redo that the model wrote once, and its copies."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Final

from olr_pg.dictionary.snapshot_file import write_snapshot
from olr_pg.simulator.model.shop_inventory import write_dictionary
from olr_pg.simulator.sessions.keys import COPIES_MAX, IDENTITY
from olr_pg.simulator.simulated_files import Summary
from olr_pg.simulator.stamping.redo_copies import write_logs
from olr_pg.simulator.stamping.table_copies import TableCopies
from olr_pg.simulator.stamping.template import TEMPLATE_BYTES, make_template
from olr_pg.simulator.stamping.text_copies import TextCopies
from olr_pg.simulator.table_files import row_arrays, write_batches

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.dictionary.model import Snapshot
    from olr_pg.simulator.database_shape import DatabaseShape
    from olr_pg.simulator.stamping.template import Template

COPIED_FROM: Final = 2 * TEMPLATE_BYTES
"""Bytes of redo from which on copies are made; the model writes smaller amounts row by row."""


def template_for(
    seed: int, workload: str, shape: DatabaseShape, size: int, *, prefilled: bool
) -> Template:
    """Let the model write a template for `size` bytes of redo."""
    own = max(TEMPLATE_BYTES, size // COPIES_MAX)
    return make_template(seed, workload, shape, prefilled=prefilled, size=own)


def copy_template(
    template: Template, size: int, directory: Path, *, truth: bool, logs: Path
) -> Summary:
    """Write copies of a template: about `size` bytes of redo.

    Args:
        directory: output: ``dictionary.json``, ``truth.jsonl``, ``tables/`` and ``final/``.
        logs: the folder of the logs.
    """
    blocks = sum(len(one.first_offsets) for parts in template.copied.parts for one in parts)
    copies = max(1, round(size / (blocks * template.shape.redo.block_size)))
    copies = min(copies, COPIES_MAX)
    written = write_logs(template, copies, logs)
    if truth:
        _write_truth(template, copies, directory / "truth.jsonl")
    start, once, copied = template.start, template.once, template.copied
    _write_tables(template, copies, directory / "tables", start.scn, first=True)
    end = _end(template, copies)
    rows = _write_tables(template, copies, directory / "final", end.scn, first=False)
    write_dictionary(start, directory)
    write_snapshot(end, str(directory / "final" / "dictionary.json"))
    return Summary(
        *(template.seed, template.shape, start),
        once.transactions + copies * copied.transactions,
        {kind: once.changes[kind] + copies * count for kind, count in copied.changes.items()},
        *(rows, template.tables),
    ).with_logs(written)


def _write_truth(template: Template, copies: int, path: Path) -> None:
    keys = {
        table.name: {
            table.columns[at].name: form for at, form in template.steps.keys[table.dataobj].items()
        }
        for table in template.tables
    }
    objects = {table.name: table.dataobj for table in template.tables}
    text = TextCopies(template.copied.truth, template.steps, keys, objects)
    with path.open("wb") as file:
        file.write(template.once.truth)
        for copy in range(copies):
            file.write(text.text(copy).data)


def _write_tables(
    template: Template, copies: int, folder: Path, scn: int, *, first: bool
) -> dict[str, int]:
    """Write the rows at the start (`first`) or at the end; return their number for each table."""
    rows = dict[str, int]()
    for table in template.tables:
        once, copied = (
            (one.first if first else one.last).get(table.name, [])
            for one in (template.once, template.copied)
        )
        blocks, keys = template.steps.blocks[table.dataobj], template.steps.keys[table.dataobj]
        made = TableCopies(table, copied, blocks, keys) if copied else None
        batches = [row_arrays(table, once)] if once else []
        more = (made.arrays(copy) for copy in range(copies)) if made else ()
        rows[table.full_name] = write_batches(folder, table, chain(batches, more), scn)
    return rows


def _end(template: Template, copies: int) -> Snapshot:
    """Return the dictionary after the last copy."""
    end, more = template.end, copies - 1
    structure = end.structure
    assert structure is not None
    sequences = tuple(
        one.model_copy(update={"next": one.next + more * IDENTITY.stride})
        for one in structure.sequences
    )
    scn = end.scn + more * template.steps.scn
    return replace(end, scn=scn, structure=structure.model_copy(update={"sequences": sequences}))
