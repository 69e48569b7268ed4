"""Transactions of several strands that commit at one SCN leave in the order of their commits."""

from __future__ import annotations

import itertools
import struct
from decimal import Decimal

import pytest

from olr_pg.decoding.split import subscribe
from olr_pg.decoding.split_results import read_result
from olr_pg.ordering.merger import Merger
from olr_pg.simulator.fields import cells
from tests.lobs.lob_decoding import Decoded
from tests.lobs.lob_redo import LobRedo, snapshot
from tests.redo.log_builder import LogBuilder, open_log
from tests.split_results import packed_split

SCN = 1500


def record(scn: int, subscn: int, body: bytes) -> bytes:
    """A record of redo-format §2.2."""
    head = struct.pack("<IBBHIH10x", 24 + len(body), 1, 0, scn >> 32, scn & 0xFFFFFFFF, subscn)
    return head + body


def updates(count: int) -> tuple[list[bytes], list[list[bytes]]]:
    """The records of a row with ID 1, and of transactions that make it one more each."""
    redo = LobRedo()
    redo.begin()
    slot = redo.insert(Decimal(1), None, None)
    redo.end()
    ends = [len(redo.records)]
    for number in range(1, 1 + count):
        key, new = (cells.number(Decimal(at)).raw for at in (number, number + 1))
        redo.begin()
        redo.update(slot, Decimal(number), {1: key}, {1: new})
        redo.end()
        ends.append(len(redo.records))
    bodies = [one.body for one in redo.records]
    subscn = itertools.count(1)
    transactions = [
        [record(SCN, next(subscn), body) for body in bodies[low:high]]
        for low, high in itertools.pairwise(ends)
    ]
    return [record(SCN - 100, 1 + at, body) for at, body in enumerate(bodies[: ends[0]])], (
        transactions
    )


@pytest.mark.parametrize("strands", [[(0, 1, 2)], *itertools.permutations([(0,), (1,), (2,)])])
def test_ties_leave_in_the_order_of_scn_and_subscn(strands: list[tuple[int, ...]]) -> None:
    row, transactions = updates(3)
    log = LogBuilder(compat=0x13000000, first_scn=1000)
    log.add_group([row], SCN - 100)
    log.add_group([[one for at in numbers for one in transactions[at]] for numbers in strands], SCN)
    built = open_log(log.build())
    dictionary = snapshot()
    subscription = subscribe(dictionary.tables, 0)
    merger = Merger(subscription, 0, {1: 0})
    runs = merger.feed(1, read_result(packed_split(subscription, built, 2, built.header.nab or 0)))
    found = Decoded(runs, merger.account, dictionary)
    assert [row["ID"] for row in found.after] == [1, 2, 3, 4]
