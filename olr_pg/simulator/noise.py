"""Redo that no table's rows are in: a decoder must step over it.

Shapes as in real 23ai logs: 4.1 block cleanouts, 13.59 space records, 23.1 void records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.simulator.storage import CLASS_DATA, BlockState
from olr_pg.simulator.vectors import NO_OBJECT, TYP_DELAYED, VectorBlock, block_cleanout

if TYPE_CHECKING:
    from random import Random

    from olr_pg.simulator.instance import Container, Instance, RedoThread
    from olr_pg.simulator.tables import SimTable

VOID: Final = 2
SPACE_CLASS: Final = 11
SPACE_DBA: Final = 0x4C80


def write_noise(
    instance: Instance,
    thread: RedoThread,
    container: Container,
    tables: list[SimTable],
    rng: Random,
) -> None:
    """One record of noise."""
    draw = rng.random()
    if draw < 0.4:
        _clean_out(instance, thread, container, rng.choice(tables))
    elif draw < 0.7:
        _space(instance, thread, container, rng)
    else:
        _blocks_written(instance, thread, container, rng)


def _clean_out(
    instance: Instance, thread: RedoThread, container: Container, table: SimTable
) -> None:
    for block in table.blocks[-4:]:
        cleaned = block.clean_out()
        if cleaned:
            record = instance.record(thread, container)
            where = block.change(record.scn, cls=CLASS_DATA, obj=block.dataobj, typ=TYP_DELAYED)
            record.vector((4, 1), [block_cleanout(instance.redo, record.scn, cleaned)], where)
            record.emit()
            return


def _space(instance: Instance, thread: RedoThread, container: Container, rng: Random) -> None:
    record = instance.record(thread, container)
    block = BlockState(22, SPACE_DBA + rng.randrange(64), record.scn)
    where: VectorBlock = block.change(record.scn, cls=SPACE_CLASS, obj=NO_OBJECT)
    fields = [b"\xff" * 4 + bytes(8) + instance.redo.pack("II", 64224, 8) + bytes(120), bytes(4)]
    record.vector((13, 59), fields, where)
    record.emit()


def _blocks_written(
    instance: Instance, thread: RedoThread, container: Container, rng: Random
) -> None:
    record = instance.record(thread, container)
    entries = [
        instance.redo.pack(
            "IIIHBBI", 22, SPACE_DBA + rng.randrange(64), record.scn & 0xFFFFFFFF, 0, 1, 4, 0
        )
        for _ in range(rng.randint(1, 30))
    ]
    record.vector((23, 1), [b"".join(entries)])
    record.emit(VOID)
