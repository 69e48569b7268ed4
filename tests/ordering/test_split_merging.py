"""Splits that a merger asks for again come before the rest, in the order that it says."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from olr_pg.capture.archived_log import FoundLog, LogPosition
from olr_pg.decoding.joined_logs import JoinedLog
from olr_pg.decoding.split import Split
from olr_pg.errors import Code, OlrPgError
from olr_pg.ordering.merger import ThreadSplit
from olr_pg.ordering.split_merging import merge_splits, move_on

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def split(number: int) -> ThreadSplit:
    return ThreadSplit(1, Split("log", number, number + 1, 512))


class ScriptedMerger:
    """Takes splits, and asks for some again, once, at a given one."""

    def __init__(self, asks: dict[int, list[ThreadSplit]], fails_at: int | None = None) -> None:
        self.subscription = SimpleNamespace()
        self.again: list[ThreadSplit] = []
        self.left_out: list[Any] = []
        self.failure: OlrPgError | None = None
        self.fed: list[int] = []
        self._asks = asks
        self._fails_at = fails_at

    def feed(self, thread: int, result: Any, source: ThreadSplit) -> list[Any]:
        block = result.block
        assert block == source.split.first_block
        self.fed.append(block)
        self.again = self._asks.pop(block, [])
        if block == self._fails_at:
            self.failure = OlrPgError(Code.LOG_MISSING, "test")
        return []


def decode(_: Any, splits: Sequence[Split]) -> Iterator[Any]:
    """Decode splits; those of joined logs fail."""
    for one in splits:
        failure = OlrPgError(Code.BLOCK_CORRUPT, "test") if one.joined else None
        yield SimpleNamespace(block=one.first_block, failure=failure)


def merged(merger: Any, splits: list[ThreadSplit]) -> list[int]:
    found = merge_splits(merger, splits, decode)  # type: ignore[arg-type]
    return [one.source.split.first_block for one in found if one.source is not None]


def found_log(sequence: int) -> FoundLog:
    return FoundLog(LogPosition(1, 1, sequence, 1), 1, None)


def test_splits_are_decoded_again_in_front_of_the_rest() -> None:
    splits = [split(number) for number in range(5)]
    merger = ScriptedMerger({2: splits[1:3]})
    assert merged(merger, splits) == [0, 1, 1, 2, 3, 4]
    assert merger.fed == [0, 1, 2, 1, 2, 3, 4]


def test_nothing_is_merged_behind_a_failure() -> None:
    merger = ScriptedMerger({}, fails_at=1)
    assert merged(merger, [split(number) for number in range(4)]) == [0, 1]


def test_joined_logs_that_fail_are_decoded_one_by_one() -> None:
    logs = (JoinedLog("log a", found_log(1), 5, 10), JoinedLog("log b", found_log(2), 9, 20))
    joined = ThreadSplit(1, Split("log a", 2, 12, 5_120, joined=logs))
    merger = ScriptedMerger({})
    assert merged(merger, [split(0), joined, split(4)]) == [0, 2, 2, 4]
    apart = [(one.path, one.end_block, one.size) for one in joined.split.apart()]
    assert apart == [("log a", 5, 3 * 512), ("log b", 9, 7 * 512)]


def test_a_step_is_taken_again_once_its_splits_are_merged() -> None:
    merger: Any = ScriptedMerger({})
    asked = [[split(7)], []]

    def step() -> list[Any]:
        merger.again = asked.pop(0)
        return []

    found = list(move_on(merger, step, decode))  # type: ignore[arg-type]
    assert [one.source is None for one in found] == [False, True]
    assert (merger.fed, asked) == ([7], [])
