from __future__ import annotations

from olr_pg.simulator.fields.cells import BLOB
from olr_pg.simulator.model.column_types import lob_type, number_type, varchar
from olr_pg.simulator.model.lobs import LobStorage
from olr_pg.simulator.model.tables import Logging, SimColumn
from olr_pg.simulator.sessions.placement import TableSpec, added_lob, place_table
from olr_pg.simulator.writer.instance import Container

COLUMNS = (
    SimColumn("ID", number_type(12, 0), nullable=False),
    SimColumn("NAME", varchar(30)),
    SimColumn("DOC", lob_type(LobStorage(BLOB), 9_000)),
)


def spec(name: str, partitions: int = 1) -> TableSpec:
    return TableSpec(
        "SIM",
        name,
        COLUMNS,
        (0,),
        Logging.ALL,
        (((0,), True), ((1,), False)),
        partitions=partitions,
    )


def test_no_two_objects_of_a_database_have_a_number_or_a_block_in_common() -> None:
    tables = [place_table(at, spec(f"T{at}", 1 + 2 * (at % 2)), 1_000) for at in range(6)]
    objects = list[int]()
    blocks = list[int]()
    for table in tables:
        objects += table.objects
        objects += [index.obj for index in table.indexes]
        blocks += [index.segment_dba for index in table.indexes]
        blocks += [block.dba for index in table.indexes for block in index.blocks]
        blocks += [segment.dba for segment in table.segments]
        for lob in table.lobs.values():
            objects += [one.obj for one in lob.segments] + [one.index_obj for one in lob.segments]
            blocks += [one.next_dba for one in lob.segments]
    assert len(objects) == len(set(objects))
    assert len(blocks) == len(set(blocks))


def test_a_lob_has_a_segment_in_each_partition() -> None:
    (single,) = place_table(0, spec("T"), 1_000).lobs.values()
    (parted,) = place_table(0, spec("T", 3), 1_000).lobs.values()
    assert (len(single.segments), single.is_partitioned) == (1, False)
    assert (len(parted.segments), parted.is_partitioned) == (3, True)


def test_a_column_that_is_added_takes_numbers_of_its_own() -> None:
    table, container = place_table(0, spec("T", 3), 1_000), Container(0, None, 7)
    first = added_lob(LobStorage(BLOB), table, container, 2_000)
    second = added_lob(LobStorage(BLOB), table, container, 2_000)
    numbers = [one.obj for lob in (first, second) for one in lob.segments]
    assert len(set(numbers) | {first.obj, second.obj}) == 8
