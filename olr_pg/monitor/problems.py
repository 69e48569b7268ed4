"""Lists the problems that an operator must solve, as text, with complete commands to copy."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.advised_commands import commands_of_error, complete_commands
from olr_pg.observability.wording import counted, some

if TYPE_CHECKING:
    from collections.abc import Sequence

    from olr_pg.monitor.status_values import Status, TableStatus

TROUBLED: Final = (
    "STOPPED",
    "WAITING_FOR_REDO",
    "WAITING_FOR_SOURCE",
    "WAITING_FOR_TARGET",
    "WAITING_FOR_DISK",
)
"""States that count as a problem."""


_TABLES_NAMED: Final = 20
"""Maximum number of tables in a command."""


class Problem(NamedTuple):
    """A problem, with the commands to investigate or solve it."""

    text: str
    commands: tuple[str, ...] = ()


def with_problems(
    status: Status, failure: BaseException | None, warnings: Sequence[OlrPgError | None]
) -> Status:
    """Return the status with its problems.

    Args:
        failure: the error that ended the bundled applier.
        warnings: the warnings of the port; None for no warning.
    """
    status = _with_complete_commands(status)
    found = _problems(status, failure, warnings)
    return replace(
        status,
        problems=tuple(problem.text for problem in found),
        commands=tuple(problem.commands for problem in found),
    )


def _with_complete_commands(status: Status) -> Status:
    """Return the status with all commands in its texts completed."""
    config, target = status.identity.config, status.target
    reason = status.state.reason
    if reason is not None:
        complete = complete_commands(reason, config, target)
        status = replace(status, state=replace(status.state, reason=complete))
    if not any(table.stopped for table in status.tables):
        return status
    tables = tuple(
        table
        if table.stopped is None
        else replace(
            table,
            stopped=complete_commands(
                commands_of_error(table.stopped, table.name, table.error_id), config, target
            ),
        )
        for table in status.tables
    )
    return replace(status, tables=tables)


def _problems(
    status: Status, failure: BaseException | None, warnings: Sequence[OlrPgError | None]
) -> list[Problem]:
    command = _Commands(status)
    found: list[Problem] = []
    if failure is not None:
        text = f"the bundled applier has ended, and olr_pg restarts it: {failure}"
        found.append(Problem(text, (command("doctor"),)))
    if status.state.name in TROUBLED:
        reason = status.state.reason or "the reason is unknown"
        first = (f"olr-pg logs --config {command.config}",)
        commands = (*(first if status.state.name == "WAITING_FOR_REDO" else ()), command("doctor"))
        text = f"{status.state.words} ({status.state.name}): {reason}"
        found.append(Problem(text, commands))
    found += _stopped([table for table in status.tables if table.stopped], command)
    found += _blocked(status.tables)
    found += _incomplete([table for table in status.tables if table.incomplete], command)
    found += _different([table for table in status.tables if table.differences], command)
    if status.source.losses:
        text = f"decoding has lost row changes or change vectors: {status.source.losses:,}"
        found.append(Problem(text, (command("verify"),)))
    if status.port.held_back:
        count = counted(status.port.transmitted, "transaction")
        detail = f"it has not confirmed {count} that it received"
        held = OlrPgError(Code.CONFIRMATIONS_HELD_BACK, detail, client=status.port.client)
        found.append(Problem(f"{held}; {held.action}"))
    found += [
        Problem(
            complete_commands(f"{warning}; {warning.action}", status.identity.config, status.target)
        )
        for warning in warnings
        if warning
    ]
    return found


class _Commands:
    """Makes commands that include the configuration and the target of a status."""

    def __init__(self, status: Status) -> None:
        self.config = shlex.quote(status.identity.config or "FILE")
        self._target = status.target

    def __call__(self, command: str, *arguments: str) -> str:
        target = ["--target", self._target] if self._target else []
        words = [command, *map(shlex.quote, arguments), "--config", self.config, *target]
        return " ".join(["olr-pg", *words])


def _stopped(tables: Sequence[TableStatus], command: _Commands) -> list[Problem]:
    """Return a problem for each cause that has stopped tables."""
    by_code: dict[str, list[TableStatus]] = {}
    for table in tables:
        by_code.setdefault((table.stopped or "").partition(":")[0], []).append(table)
    return [_stopped_together(group, command) for group in by_code.values()]


def _incomplete(tables: Sequence[TableStatus], command: _Commands) -> list[Problem]:
    """Return a problem for all tables that lack LOB values."""
    if not tables:
        return []
    number = sum(table.incomplete for table in tables)
    values = f"{counted(number, 'LOB value')} that the redo did not contain"
    if len(tables) == 1:
        text, named = f"table {tables[0].name} lacks {values}", ["--table", tables[0].name]
    else:
        names = some([table.name for table in tables])
        text, named = f"{len(tables):,} tables lack {values}: {names}", []
    return [Problem(text, (command("errors list"), command("fetch-lobs", *named)))]


def _different(tables: Sequence[TableStatus], command: _Commands) -> list[Problem]:
    """Return a problem for all tables that differ from the source."""
    if not tables:
        return []
    rows = counted(sum(table.differences for table in tables), "row")
    named = [word for table in tables[:_TABLES_NAMED] for word in ("--table", table.name)]
    verify = command("verify", *named, "--differences", "FILE")
    if len(tables) == 1:
        of = f"table {tables[0].name} differs from its source table in {rows}"
        return [Problem(f"{of}, as of SCN {tables[0].verified_scn}", (verify,))]
    names = some([table.name for table in tables])
    text = f"{len(tables):,} tables differ from their source tables in {rows}: {names}"
    return [Problem(text, (verify,))]


def _blocked(tables: Sequence[TableStatus]) -> list[Problem]:
    """Return a problem for each cause that blocks tables."""
    by_reason: dict[str, list[str]] = {}
    for table in tables:
        if table.blocked is not None:
            by_reason.setdefault(table.blocked, []).append(table.name)
    return [Problem(f"{some(names)}: {reason}") for reason, names in by_reason.items()]


def _stopped_together(tables: Sequence[TableStatus], command: _Commands) -> Problem:
    first = tables[0]
    number = str(first.error_id)  # if an error is recorded for it
    show = command("errors show", number) if first.error_id else command("errors list")
    if len(tables) > 1:
        names = some([table.name for table in tables])
        text = f"{len(tables):,} tables have stopped: {names}; the first one: {first.stopped}"
        return Problem(text, (command("errors list"), show, command("errors retry")))
    text = f"table {first.name} has stopped{_behind(first)}: {first.stopped}"
    commands = (show, command("errors retry", first.name))
    return Problem(
        text, (*commands, command("errors skip", number)) if first.error_id else commands
    )


def _behind(table: TableStatus) -> str:
    return (
        f" and lacks the transactions committed from SCN {table.held_scn} on"
        if table.held_scn
        else ""
    )
