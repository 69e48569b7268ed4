"""The dictionaries that a run can begin with: all small histories of the targets and of DDL."""

from __future__ import annotations

from functools import cache, cached_property
from itertools import combinations_with_replacement, product
from typing import NamedTuple

import pytest

from olr_pg.applier.session.handover import Handover
from olr_pg.capture.source_database import NeededChanges
from olr_pg.oracle.run_dictionary import RunBegin

_SCNS = range(1, 6)


class _Target(NamedTuple):
    """What a target needs.

    Attributes:
        saved: the SCN of the checkpoint, or `apply.start-scn`; 0 without both.
        has_checkpoint: whether it is that of a checkpoint.
        load: start SCN and SCN of the rows of a load that was not handed over; None without one.
        covers_all: whether it is a load of all tables of the target.
    """

    saved: int
    load: tuple[int, int] | None
    covers_all: bool
    has_checkpoint: bool = False

    @property
    def needed(self) -> NeededChanges:
        start, rows = self.load or (0, 0)
        handover = Handover(rows, start, self.covers_all, lowest_scn=rows)
        start = handover.start(self.saved or None, 0)
        return NeededChanges(start, self.saved, rows, self.recorded)

    @property
    def recorded(self) -> int:
        return self.saved if self.has_checkpoint else 0

    def bounds(self) -> list[int]:
        """The commit SCNs up to which its replicated and its loaded tables have all changes. A
        first start without loads of all tables is left out: its first changes are unknown.
        """
        found = [] if not self.saved else [self.saved]
        return found if self.load is None else [*found, self.load[1]]


@cache
def _loses(scn: int, wanted: int, bound: int, recorded: int) -> bool:
    """Return whether a change would be decoded with another definition of its table than it was
    made with, in any history of one DDL and one transaction.

    A transaction prevents DDL of a table from its first change of the table until its commit.

    Args:
        scn: the SCN of the dictionary.
        wanted: the SCN from which redo is read.
        bound: the table has all changes of earlier commits, and of this one.
        recorded: the DDL up to this SCN is applied to the dictionary.
    """
    for change, commit, ddl in product(_SCNS, _SCNS, _SCNS):
        if change > commit or change < wanted or change <= ddl <= commit or commit <= bound:
            continue
        if change < ddl <= scn:  # the dictionary is later
            return True
        is_read = ddl >= wanted or ddl <= recorded
        if scn < ddl < change and not is_read:  # the dictionary is older
            return True
    return False


class _Run:
    """A run of several targets that begins; `oldest` is where the oldest log begins."""

    def __init__(self, oldest: int, targets: tuple[_Target, ...]) -> None:
        self.oldest, self.targets = oldest, targets

    def __repr__(self) -> str:
        return f"oldest log {self.oldest}, {self.targets}"

    @cached_property
    def bounds(self) -> frozenset[int]:
        return frozenset(bound for target in self.targets for bound in target.bounds())

    @cached_property
    def begin(self) -> RunBegin:
        needed = NeededChanges.of_all([one.needed for one in self.targets])
        wanted = needed.start_scn or self.oldest
        return RunBegin(needed.confirmed_scn, wanted, needed.rows_scn, needed.recorded_scn)

    def loses(self, scn: int, *, is_recorded: bool = False) -> bool:
        """Return whether changes of a target are lost.

        Args:
            scn: the SCN of the dictionary.
            is_recorded: whether the DDL before the last checkpoint is applied to the dictionary.
        """
        recorded = max(one.recorded for one in self.targets) if is_recorded else 0
        return any(_loses(scn, self.begin.wanted, bound, recorded) for bound in self.bounds)


_LOADS = [(start, rows) for start, rows in product(_SCNS, _SCNS) if start <= rows]
_TARGETS = [
    _Target(saved, load, covers_all, has_checkpoint)
    for saved, load, covers_all, has_checkpoint in product(
        (0, *_SCNS), (None, *_LOADS), (False, True), (False, True)
    )
    if (load or not covers_all) and (saved or not has_checkpoint)
]
_ALL_RUNS = [
    _Run(oldest, targets)
    for oldest in (1, 3)
    for targets in (
        *((one,) for one in _TARGETS),
        *combinations_with_replacement(_TARGETS, 2),
    )
    if all(
        oldest <= scn
        for one in targets
        for scn in (one.saved, one.load[0] if one.load else 0)
        if scn
    )
]
_RUNS = list({(run.begin, run.bounds): run for run in _ALL_RUNS}.values())
"""Runs that begin in the same way, and have the same bounds, are judged once."""


@pytest.mark.parametrize("has_checkpoint", [False, True])
def test_a_dictionary_of_earlier_runs_is_kept_only_if_no_change_is_lost(
    has_checkpoint: bool,
) -> None:
    """Of each of two containers: a run can be killed while it stores their dictionaries."""
    kept = 0
    for run, *scns in product(_RUNS, _SCNS, _SCNS):
        if bool(run.begin.recorded) != has_checkpoint or not run.begin.can_keep(scns):
            continue
        kept += 1
        assert not any(run.loses(scn, is_recorded=True) for scn in scns), (run, scns)
    assert kept > 20


def test_a_dictionary_that_a_load_has_stored_is_used_only_if_no_change_is_lost() -> None:
    """As of the load's start SCN, or as of its rows."""
    used = 0
    for run, begun, scn in product(_RUNS, _SCNS, _SCNS):
        if scn < begun or not run.begin.can_use_stored(begun, scn):
            continue
        used += 1
        assert not run.loses(scn), (run, begun, scn)
    assert used > 50


def test_the_dictionary_as_of_the_begin_is_right_wherever_it_comes_from() -> None:
    for run in _RUNS:
        scn = run.begin.wanted
        assert not run.loses(scn, is_recorded=True)
        assert run.begin.can_keep([scn])
        assert run.begin.can_use_stored(scn, scn)
