"""Describes the steps of a cut-over as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from olr_pg.load.cutover_steps import RUNNING
from olr_pg.observability.wording import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from olr_pg.load.cutover.cut_over import CutOverStep
    from olr_pg.load.cutover_steps import StepState

_FAILED: Final = "failed"
_WIDTH: Final = 11
"""Width of the names of steps."""
_COUNTS: Final = ("inserted", "updated", "deleted", "conflicts")


def begin_line(step: str, title: str) -> str:
    """Return the line that is printed when a step begins, in the columns of `step_lines`."""
    return f"{RUNNING:8} {step:{_WIDTH}}  {title}"


def step_lines(states: Sequence[StepState], steps: Sequence[CutOverStep]) -> Iterator[str]:
    """Yield the recorded steps; after each one yield its findings."""
    titles = {step.name: step.title for step in steps}
    for state in states:
        yield f"{state.state:8} {state.step:{_WIDTH}}  {titles[state.step]}"
        words = _failure if state.state == _FAILED else _WORDS.get(state.step, _other)
        # A step that is running or was interrupted has no findings yet.
        for line in words(state.detail) if state.detail else ():
            yield f"         {'':{_WIDTH}}  {line}"


def grant_lines(states: Sequence[StepState]) -> list[str]:
    """Return the GRANT statements for the applications; empty before the last step."""
    return [line for state in states for line in state.detail.get("grants", ())]


def _quiet(detail: Mapping[str, Any]) -> Iterator[str]:
    yield f"it ends at SCN {detail['scn']}"
    yield from _remarks(detail)


def _archived(detail: Mapping[str, Any]) -> Iterator[str]:
    for thread, scn in detail["threads"].items():
        yield f"thread {thread} up to SCN {scn}"


def _applied(detail: Mapping[str, Any]) -> Iterator[str]:
    for one in detail["tables"]:
        counts = ", ".join(f"{one[name]:,} {name}" for name in _COUNTS if one.get(name))
        yield f"{one['table']}: {counts or 'no changes'}, up to SCN {one['commit_scn']}"


def _verified(detail: Mapping[str, Any]) -> Iterator[str]:
    yield from _remarks(detail)
    if "tables" in detail:
        tables, rows = detail["tables"], detail["rows"]
        yield f"{counted(tables, 'table')}, {counted(rows, 'row')}"


def _sequences(detail: Mapping[str, Any]) -> Iterator[str]:
    for one in detail["advanced"]:
        moved = f"from {one['before']} to {one['after']}"
        if one["before"] == one["after"]:
            moved = f"is already at {one['after']}"
        yield f"{one['sequence']} {moved}"
    for one in detail.get("past_rows", ()):
        yield f"{one['column']} from {one['before']} to {one['after']}, past its rows"
    for name in detail["not_in_the_target"]:
        yield f"{name} is not in the target"


def _constraints(detail: Mapping[str, Any]) -> Iterator[str]:
    kinds = {"put_back": "put back", "validated": "validated", "checked": "checked and valid"}
    for key, words in kinds.items():
        for name in detail.get(key, ()):
            yield f"{name}: {words}"
    yield from detail.get("remarks", ())
    for name in detail.get("accepted", ()):
        yield f"{name}: is missing, and accepted"


def _way_back(detail: Mapping[str, Any]) -> Iterator[str]:
    for name, one in detail.get("containers", {"": detail}).items():
        where = f"{name}: " if name else ""
        yield f"{where}from LSN {one['lsn']}, with the replication slot {one['slot']}"


def _report(detail: Mapping[str, Any]) -> Iterator[str]:
    tables = detail["tables"]
    yield f"{counted(len(tables), 'table')} with all changes up to SCN {detail['scn']}"
    stuck = [one["table"] for one in tables if one.get("conflicts")]
    if stuck:
        yield f"tables with skipped or overwritten conflicts: {', '.join(stuck)}"


def _failure(detail: Mapping[str, Any]) -> Iterator[str]:
    yield f"{detail['error']}: {detail['reason']}" if "error" in detail else "no reason is known"


def _remarks(detail: Mapping[str, Any]) -> Iterator[str]:
    if detail.get("remark"):
        yield detail["remark"]


def _other(detail: Mapping[str, Any]) -> Iterator[str]:
    for key, value in detail.items():
        yield f"{key.replace('_', ' ')}: {value}"


_WORDS: Final[Mapping[str, Callable[[Mapping[str, Any]], Iterator[str]]]] = {
    "quiet": _quiet,
    "archived": _archived,
    "applied": _applied,
    "verified": _verified,
    "sequences": _sequences,
    "constraints": _constraints,
    "fallback": _way_back,
    "report": _report,
}
