"""Groups of several strands: records of all chunks are processed by SCN (redo-format §2.5)."""

from __future__ import annotations

import random
from operator import itemgetter

import pytest

from olr_pg.errors import OlrPgError
from olr_pg.redo.batch import EVENT, ChangeBatch
from olr_pg.redo.window import Log, read_windows
from tests.redo.chain import Subscription, assemble, changes_between, events_of, subscribe
from tests.redo.log_builder import LogBuilder, all_records, open_log, without_lwn

COLUMNS = EVENT.names or ()
PLACE = tuple(COLUMNS.index(name) for name in ("block", "offset"))
"""Where block and offset stand among an event's columns."""

OWN_ORDER = itemgetter(*(COLUMNS.index(name) for name in ("con_id", "xid", "scn")))


@pytest.fixture(scope="module")
def wanted() -> Subscription:
    return subscribe((4, 14, 19, 22, 81, 72726), 3)


@pytest.fixture(scope="module")
def records(real_logs: tuple[Log, Log]) -> list[bytes]:
    """The valid records of L23a in their order, LWN headers cut out."""
    return [
        without_lwn(record.data, big=False)
        for record in all_records(real_logs[0])
        if record.vectors
    ]


def without_place(batch: ChangeBatch) -> list[tuple[object, ...]]:
    return [
        tuple(value for k, value in enumerate(event) if k not in PLACE)
        for event in events_of(batch)
    ]


def laid_out(groups: list[list[list[bytes]]], block_size: int = 512) -> Log:
    builder = LogBuilder(block_size=block_size, first_scn=2266630)
    for group in groups:
        builder.add_group(group, 2266630)
    return open_log(builder.build())


@pytest.mark.parametrize("block_size", [512, 1024, 4096])
@pytest.mark.parametrize("strands", [1, 2, 3, 7])
def test_strands_are_merged_by_scn(
    records: list[bytes], wanted: Subscription, strands: int, block_size: int
) -> None:
    rng = random.Random(strands)
    one = changes_between(laid_out([[records]], block_size), wanted)
    strand_of: dict[bytes, int] = {}
    chunks: list[list[bytes]] = [[] for _ in range(strands)]
    for record in records:
        # In real logs records may share SCN and SUBSCN; of those one strand keeps the order.
        chunks[strand_of.setdefault(record[6:14], rng.randrange(strands))].append(record)
    many = changes_between(laid_out([chunks], block_size), wanted)
    by_xid = sorted(without_place(one), key=OWN_ORDER)
    again = sorted(without_place(many), key=OWN_ORDER)
    assert by_xid == again
    first, second = (assemble([[batch]], wanted)[0] for batch in (one, many))
    assert [t.facts[:7] for t in first] == [t.facts[:7] for t in second]
    assert [[d.images for d in t.dml] for t in first] == [[d.images for d in t.dml] for t in second]


def test_splits_take_groups_whole(records: list[bytes], wanted: Subscription) -> None:
    size = len(records) // 20
    parts = [records[k * size : (k + 1) * size] for k in range(20)]
    log = laid_out([[part[::2], part[1::2]] for part in parts])
    whole = events_of(changes_between(log, wanted))
    assert whole
    for block in range(2, (log.header.nab or 0) + 1):
        low = events_of(changes_between(log, wanted, 2, block))
        high = events_of(changes_between(log, wanted, block))
        assert low + high == whole


def test_the_order_of_groups_is_that_of_the_file(records: list[bytes]) -> None:
    late, early = records[-1], records[0]
    log = laid_out([[[late]], [[early]]])
    (window,) = read_windows(log)
    assert window.records.scn[window.order].tolist() == sorted(
        window.records.scn.tolist(), reverse=True
    )


@pytest.mark.parametrize("kept", [1, 2])
def test_a_missing_chunk_is_an_error(records: list[bytes], kept: int) -> None:
    builder = LogBuilder(first_scn=2266630)
    builder.add_group([[records[0]], [records[1]], [records[2]]], 2266630)
    del builder.payloads[kept:], builder.starts[kept:]
    builder.blocks = 2 + sum(len(part) for part in builder.payloads)
    with pytest.raises(OlrPgError) as caught:
        list(read_windows(open_log(builder.build())))
    assert caught.value.code == 2006
