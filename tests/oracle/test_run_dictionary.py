"""The dictionaries that a run can begin with: all small histories of a checkpoint, load and DDL."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, NamedTuple

import pytest

from olr_pg.oracle.run_dictionary import RunBegin

if TYPE_CHECKING:
    from collections.abc import Iterator

_SCNS = range(1, 7)


class _Run(NamedTuple):
    """A run that begins, with what a target needs.

    Attributes:
        oldest: where the oldest log begins.
        saved: the SCN of the checkpoint; 0 without one.
        load: start SCN and SCN of the rows of a load that was not handed over; None without one.
    """

    oldest: int
    saved: int
    load: tuple[int, int] | None

    @property
    def begin(self) -> RunBegin:
        start, rows = self.load or (0, 0)
        begins = [scn for scn in (self.saved, start) if scn]
        wanted = min(begins, default=self.oldest)
        return RunBegin(self.saved, wanted, rows)

    @property
    def needs_nothing(self) -> bool:
        """Whether it is unknown from where on the target needs changes: a first start."""
        return not self.saved and self.load is None

    def loses(self, scn: int, *, is_recorded: bool = False) -> bool:
        """Return whether a change would be decoded with another definition of its table than it was
        made with, in any history of one DDL and one transaction.

        A transaction prevents DDL of a table from its first change of the table until its commit.

        Args:
            scn: the SCN of the dictionary.
            is_recorded: whether the DDL before the checkpoint is applied to the dictionary.
        """
        wanted = self.begin.wanted
        for change, commit, ddl in product(_SCNS, _SCNS, _SCNS):
            if change > commit or change < wanted or change <= ddl <= commit:
                continue
            if not any(commit > bound for bound in self._bounds()):
                continue  # every table has it
            if change < ddl <= scn:  # the dictionary is later
                return True
            is_read = ddl >= wanted or (is_recorded and ddl <= self.saved)
            if scn < ddl < change and not is_read:  # the dictionary is older
                return True
        return False

    def _bounds(self) -> Iterator[int]:
        """The commit SCNs up to which the replicated and the loaded tables have all changes."""
        if self.load is None or self.saved:
            yield self.saved
        if self.load is not None:
            yield self.load[1]


_LOADS = [None, *((start, rows) for start, rows in product(_SCNS, _SCNS) if start <= rows)]
_RUNS = [
    _Run(*one)
    for one in product((1, 3), (0, *_SCNS), _LOADS)
    if all(one[0] <= scn for scn in (one[1], one[2] and one[2][0]) if scn)
]


@pytest.mark.parametrize("has_checkpoint", [False, True])
def test_a_dictionary_of_earlier_runs_is_kept_only_if_no_change_is_lost(
    has_checkpoint: bool,
) -> None:
    """Of each of two containers: a run can be killed while it stores their dictionaries."""
    kept = 0
    for run, *scns in product(_RUNS, _SCNS, _SCNS):
        if bool(run.saved) != has_checkpoint:
            continue
        begin = run.begin
        if not begin.can_keep(scns):
            continue
        kept += 1
        if not run.needs_nothing:
            assert not any(run.loses(scn, is_recorded=True) for scn in scns), (run, scns)
    assert kept > 20


def test_a_dictionary_that_a_load_has_stored_is_used_only_if_no_change_is_lost() -> None:
    """As of the load's start SCN, or as of its rows."""
    used = 0
    for run, begun, scn in product(_RUNS, _SCNS, _SCNS):
        begin = run.begin
        if scn < begun or not begin.can_use_stored(begun, scn):
            continue
        used += 1
        if not run.needs_nothing:
            assert not run.loses(scn), (run, begun, scn)
    assert used > 50


def test_the_dictionary_as_of_the_begin_is_right_wherever_it_comes_from() -> None:
    for run in _RUNS:
        begin = run.begin
        scn = begin.wanted
        assert not run.loses(scn, is_recorded=True)
        assert begin.can_keep([scn])
        assert begin.can_use_stored(scn, scn)
