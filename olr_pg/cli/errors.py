"""``olr-pg errors``: lists the errors that stopped tables, and resumes the tables."""

from __future__ import annotations

import itertools
import re
import shlex
from datetime import UTC
from typing import TYPE_CHECKING, Annotated, Any

import typer

from olr_pg.cli.config import ConfigOption, TargetOption
from olr_pg.cli.group import advised
from olr_pg.cli.printing import print_json, print_line
from olr_pg.cli.shared_options import JsonOption, error_codes, open_settings, table_names
from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.advised_commands import commands_of_error
from olr_pg.observability.wording import counted, one_line

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from psycopg import Connection

    from olr_pg.applier.batches.replay import Replayed
    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.applier.stopped.error_table import ErrorLine, IncompleteLine, StoppedTable

EXIT_STOPPED = 1
_LOOK = "look at the offending change with `olr-pg errors show`; "
_PLACE = re.compile(r"%[bst]")
_DETAIL = ": Failing row contains "
_INCOMPLETE_MAX = 100
"""Maximum number of incomplete rows that are listed without `--all`."""

app = typer.Typer(
    help="List, show, retry and skip errors of the applier.",
    no_args_is_help=True,
)

NumberArgument = Annotated[
    int,
    typer.Argument(metavar="ID", help="The number of the error, as `olr-pg errors list` shows it."),
]


@app.callback()
def errors() -> None:
    """List the errors that stopped tables, and resume the tables.

    The changes of a stopped table are held in the target, in order. The other tables continue.
    The `errors` commands work with and without a running `olr-pg run`.
    """


@app.command("explain")
def explain(
    code: Annotated[
        str,
        typer.Argument(
            metavar="CODE",
            help="The code as it is printed, such as OLR-05010.",
            autocompletion=error_codes,
        ),
    ],
    *,
    as_json: JsonOption = False,
) -> None:
    """Print what an error code means and what to do. Needs no configuration."""
    digits = code.upper().removeprefix("OLR-")
    try:
        number = Code(int(digits))
    except ValueError:
        raise typer.BadParameter(
            f"{code} is not an error code; docs/errors.md lists all codes"
        ) from None
    if as_json:
        print_json(
            {
                "code": f"OLR-{number:05d}",
                "title": number.title,
                "action": number.action,
                "exit_code": number.exit_code,
            }
        )
        return
    print_line(f"OLR-{number:05d}: {number.title}")
    print_line(f"  to do: {number.action}")
    print_line(f"  exit code: {number.exit_code}")


@app.command("list")
def list_errors(
    config: ConfigOption,
    *,
    every: Annotated[
        bool, typer.Option("--all", help="Also list errors and conflicts that do not stop a table.")
    ] = False,
    target_name: TargetOption = None,
    as_json: JsonOption = False,
) -> None:
    """List stopped tables, their errors, and rows that lack LOB values.

    Exit code 1 if an error has stopped a table, also if the table is paused.
    """
    from olr_pg.applier.stopped.error_table import (
        count_incomplete,
        read_errors,
        read_incomplete,
        read_stopped,
    )
    from olr_pg.applier.stopped.pausing import paused_tables, read_pause

    with open_settings(config, target_name) as (connection, settings):
        lines = read_errors(connection, settings.subscription, resolved=every)
        stopped = read_stopped(connection, settings.subscription)
        counts = count_incomplete(connection, settings.subscription)
        shown = None if every else _INCOMPLETE_MAX
        incomplete = read_incomplete(connection, settings.subscription, shown) if counts else []
        paused = paused_tables(connection, settings.subscription)
        whole = read_pause(connection, settings.subscription)
    if as_json:
        print_json(
            {
                "stopped": [one._asdict() for one in stopped],
                "paused": paused,
                "paused_whole_by": None if whole is None else whole.by,
                "errors": [_line_json(line) for line in lines],
                "incomplete": {
                    "tables": counts,
                    "lines": [_incomplete_json(line) for line in incomplete],
                },
            }
        )
    else:
        if whole is not None:
            print_line(
                f"The subscription was paused by {whole.by}: nothing more is received"
                " until `olr-pg tables resume --all`"
            )
        _print_lists(stopped, paused, lines)
        _print_incomplete(counts, incomplete)
    if stopped or _with_error(paused, lines):
        raise typer.Exit(EXIT_STOPPED)


@app.command("show")
def show(
    config: ConfigOption,
    number: NumberArgument,
    *,
    target_name: TargetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one error: the change, its place, the statement and PostgreSQL's answer."""
    from olr_pg.applier.stopped.error_table import read_error

    with open_settings(config, target_name) as (connection, settings):
        line = read_error(connection, settings.subscription, number)
        change = _change(connection, settings.subscription, line)
    shown = {**_line_json(line), "change": change, "action": line.action}
    if as_json:
        print_json(shown)
        return
    for name, value in {**shown, **_for_people(line, change)}.items():
        if value is not None:
            for number, text in enumerate(_text(value).split("\n")):
                print_line(f"    {text}" if number else f"{name.replace('_', ' ')}: {text}")


@app.command("retry")
def retry(
    config: ConfigOption,
    *,
    table: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="OWNER.NAME",
            help="Names of stopped tables. Default: all stopped tables.",
            autocompletion=table_names,
        ),
    ] = None,
    target_name: TargetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Apply the held changes of stopped tables; exit code 1 if one stops again."""
    from olr_pg.applier.batches.replay import stopped_tables
    from olr_pg.applier.stopped.pausing import paused_tables
    from olr_pg.dictionary.selection import as_known

    with open_settings(config, target_name) as (connection, settings):
        stopped = stopped_tables(connection, settings.subscription)
        paused = paused_tables(connection, settings.subscription)
        names = as_known(table or (), [*stopped, *paused])
        for name in names:
            if name in paused:
                raise OlrPgError(
                    Code.TABLE_PAUSED,
                    "a retry does not apply the held changes of a paused table",
                    action=f"resume the table with `olr-pg tables resume {shlex.quote(name)}`",
                    table=name,
                )
            if name not in stopped:
                raise OlrPgError(
                    Code.NO_SUCH_STOPPED_TABLE,
                    "no error has stopped the table",
                    table=name,
                    subscription=settings.subscription,
                )
        go_on(connection, settings, names or stopped, as_json=as_json)
        if not names and not as_json:
            _print_paused(paused)


@app.command("skip")
def skip(
    config: ConfigOption,
    number: Annotated[
        list[int],
        typer.Argument(
            metavar="ID", help="The numbers of the errors, as `olr-pg errors list` shows them."
        ),
    ],
    *,
    whole: Annotated[
        bool,
        typer.Option(
            "--whole-transaction",
            help="Skip all changes that the transaction of the error made to the table, not"
            " only the change of the error.",
        ),
    ] = False,
    target_name: TargetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Skip the change of an error permanently, and apply the changes held after it.

    For a DDL: first change the target table as the DDL changed the source table, unless it does not
    need the change. Exit code 1 if the table stops again.
    """
    from olr_pg.applier.stopped.error_table import skip_error, skip_transaction

    with open_settings(config, target_name) as (connection, settings):
        with connection.transaction():
            leave_out = skip_transaction if whole else skip_error
            lines = [
                leave_out(connection, settings.subscription, one) for one in dict.fromkeys(number)
            ]
        tables = dict.fromkeys(line.source_table for line in lines)
        go_on(connection, settings, list(tables), as_json=as_json)


def go_on(
    connection: Connection[Any],
    settings: ApplierSettings,
    tables: Sequence[str],
    *,
    as_json: bool,
) -> None:
    """Replay the held changes of tables and print the result for each table. End with exit code 1
    if a table stops again.
    """
    from olr_pg.applier.batches.replay import replay
    from olr_pg.applier.settings import Consistency

    done = [replay(connection, settings, table) for table in tables]
    if as_json:
        print_json({"tables": [_replayed_json(one) for one in done]})
    else:
        for one in done:
            _print_replayed(one)
        if not done:
            print_line("no table was retried, because none has stopped")
        if not done and settings.consistency is Consistency.TRANSACTION:
            print_line("The next start of the appliance retries a transaction that failed.")
    if any(one.error is not None for one in done):
        raise typer.Exit(EXIT_STOPPED)


def _change(connection: Connection[Any], subscription: str, line: ErrorLine) -> Any:
    """Read the change that caused an error, with readable values, if the change is held. Return a
    text if a value is not valid for its type.
    """
    import orjson

    from olr_pg.applier.stopped.hold import held_messages
    from olr_pg.dictionary.model import Database
    from olr_pg.rendering.json_lines import JsonLines

    key = subscription, line.source_table
    held = held_messages(connection, key, line.commit_scn, line.xid)
    if held is None:
        return None
    framed, order, facts = held
    database = Database(
        "source", charset=facts.charset, ncharset=facts.ncharset, timezone=facts.timezone
    )
    try:
        text = JsonLines(database, order).line(framed, line.position)
    except OlrPgError as error:
        # The table can have stopped because of this value: show the rest of the error.
        return f"cannot be shown: {error}"
    # Insert the JSON text unparsed, so that its numbers stay exact.
    return None if text is None else orjson.Fragment(text.rstrip())


def _line_json(line: ErrorLine) -> dict[str, Any]:
    values = line._asdict()
    del values["own_action"]  # `show` adds the action itself
    return {**values, "code": f"OLR-{line.code:05d}"}


def _text(value: Any) -> str:
    import orjson

    if isinstance(value, dict | orjson.Fragment):
        return orjson.dumps(value).decode()
    return str(value)


def _for_people(line: ErrorLine, change: Any) -> dict[str, Any]:
    """Return the error as a record in the form that people read; scripts get another form."""
    action = advised(commands_of_error(line.action.replace(_LOOK, ""), line.source_table, line.id))
    numbers = itertools.count(1)
    statement = line.statement and _PLACE.sub(lambda _: f"${next(numbers)}", line.statement)
    # Leave out the stored images, which are Oracle's bytes, because the change already shows the
    # values.
    images = {} if change is None or isinstance(change, str) else {"before": None, "after": None}
    times = {
        name: f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
        for name, at in (("first_seen", line.first_seen), ("last_seen", line.last_seen))
    }
    return {"statement": statement, **times, "action": action, **images}


def _print_lists(
    stopped: Sequence[StoppedTable], paused: Sequence[str], lines: Sequence[ErrorLine]
) -> None:
    for one in stopped:
        print_line(
            f"STOPPED {one_line(one.source_table)}: {counted(one.transactions, 'transaction')} with"
            f" {counted(one.changes, 'change')} held ({one.bytes:,} bytes), commit SCN"
            f" {one.first_scn or one.received_scn} to {one.received_scn}"
        )
    _print_paused(paused, _with_error(paused, lines))
    if not stopped and not _with_error(paused, lines):
        print_line("no table has stopped by an error" if paused else "no table has stopped")
    for line in lines:
        table, message = one_line(line.source_table), one_line(_without_values(line))
        print_line(
            f"{line.id}  {line.resolution}  {table} {line.operation}"
            f" {line.row_id or ''} XID {line.xid} commit SCN {line.commit_scn}"
            f"  OLR-{line.code:05d} {message} ({counted(line.attempts, 'time')})"
        )


def _with_error(paused: Sequence[str], lines: Sequence[ErrorLine]) -> set[str]:
    """Return the paused tables that an error has also stopped."""
    return {one.source_table for one in lines if one.resolution == "stopped"} & set(paused)


def _print_paused(paused: Sequence[str], with_error: Collection[str] = ()) -> None:
    for table in paused:
        resume = f"`olr-pg tables resume {shlex.quote(table)}`"
        too = "; an error has stopped it, too" if table in with_error else ""
        print_line(advised(one_line(f"PAUSED {table}: its changes are held until {resume}{too}")))


def _without_values(line: ErrorLine) -> str:
    """Return PostgreSQL's message without its detail, which contains values of the row."""
    return line.message.partition(_DETAIL)[0]


def _incomplete_json(line: IncompleteLine) -> dict[str, Any]:
    return {**line._asdict(), "reason": f"OLR-{line.reason:05d}"}


def _print_incomplete(counts: dict[str, int], lines: Sequence[IncompleteLine]) -> None:
    import orjson

    for table, count in counts.items():
        missing = f"INCOMPLETE {table}: {counted(count, 'LOB value')} missing"
        print_line(advised(f"{missing} (`olr-pg fetch-lobs --table {shlex.quote(table)}`)"))
    for line in lines:
        key = f"ROWID {line.row_id}" if line.key is None else orjson.dumps(line.key).decode()
        failure = f": {line.failure}" if line.failure else ""
        print_line(
            f"    {line.source_table} {key} {line.column_name} since the {line.operation} of commit"
            f" SCN {line.commit_scn}, XID {line.xid}  OLR-{line.reason:05d}{failure}"
        )
    if sum(counts.values()) > len(lines):
        print_line(f"    and {sum(counts.values()) - len(lines)} more (--all)")


def _replayed_json(one: Replayed) -> dict[str, Any]:
    error = None if one.error is None else {"code": one.error.label, "what": one.error.detail}
    return {"table": one.table, **one.counters._asdict(), "events": one.events, "error": error}


def _print_replayed(one: Replayed) -> None:
    counts = one.counters
    print_line(
        f"{one.table}: {counted(counts.transactions, 'transaction')} applied"
        f" ({counts.inserted} inserted, {counts.updated} updated, {counts.deleted}"
        f" deleted, {counted(counts.conflicts, 'conflict')} skipped or overwritten)"
    )
    print_line("    continues" if one.error is None else f"    STOPPED again: {one.error}")
