"""``olr-pg tables``: shows which tables are replicated, and changes them while replication runs.

The state of each table of a subscription is read from the ledger.
"""

from __future__ import annotations

import shlex
import time
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from olr_pg.cli.config import ConfigOption, TargetOption
from olr_pg.cli.errors import go_on
from olr_pg.cli.group import advised
from olr_pg.cli.printing import print_json, print_line
from olr_pg.cli.shared_options import (
    BeginCopyOption,
    CopyScnOption,
    CopySinceOption,
    EndCopyOption,
    JsonOption,
    open_settings,
    open_target_of,
    read_config,
    table_names,
)
from olr_pg.errors import Code, OlrPgError
from olr_pg.observability.wording import counted, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from psycopg import Connection

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.config.changed_tables import TableChanges
    from olr_pg.config.model import Apply, Config
    from olr_pg.config.table_patterns import TableName

_READ = """
SELECT source_table, coalesce(l.target_table, load.target_table) AS target_table,
    coalesce(load.scn, l.commit_scn) AS commit_scn,
    coalesce(l.stopped, false) AS stopped, coalesce(l.paused, false) AS paused,
    coalesce(h.transactions, 0) AS held_transactions, coalesce(h.bytes, 0) AS held_bytes,
    load.scn IS NOT NULL AS loading, coalesce(load.source = %(copied)s, false) AS copying
FROM (SELECT * FROM olr_pg.ledger WHERE subscription = %(subscription)s) AS l
FULL JOIN (
    SELECT * FROM olr_pg.load WHERE subscription = %(subscription)s AND finished_at IS NULL
) AS load USING (source_table)
LEFT JOIN LATERAL (
    SELECT count(DISTINCT (commit_scn, xid)) AS transactions,
        sum(octet_length(data))::bigint AS bytes
    FROM olr_pg.held AS h
    WHERE h.subscription = l.subscription AND h.source_table = l.source_table
) AS h ON l.stopped
ORDER BY source_table
"""

# A table whose first load was interrupted has no row in the ledger yet.
_RECORDED = """
SELECT source_table FROM olr_pg.ledger WHERE subscription = %(subscription)s
UNION SELECT source_table FROM olr_pg.load WHERE subscription = %(subscription)s
"""


class TableState(NamedTuple):
    """The state of a table in the ledger.

    Attributes:
        commit_scn: the commit SCN up to which its changes are applied or held; the SCN of the rows
            while `loading`.
        stopped: whether the changes of the table are held. `paused`: whether they are held because
            an operator has paused the table.
        loading: whether the table's initial load is not complete yet. `copying`: whether another
            tool copies the rows.
    """

    source_table: str
    target_table: str
    commit_scn: int
    stopped: bool
    paused: bool
    held_transactions: int
    held_bytes: int
    loading: bool
    copying: bool

    @property
    def word(self) -> str:
        """The state in one word: "paused", "stopped", "copying", "loading" or "replicated"."""
        words = ("paused", "stopped", "copying", "loading")
        return next((word for word in words if getattr(self, word)), "replicated")


def read_table_states(connection: Connection[Any], subscription: str) -> list[TableState]:
    """Read the state of each table in the ledger."""
    from psycopg.rows import class_row

    from olr_pg.applier.target.table_identity import COPIED

    with connection.cursor(row_factory=class_row(TableState)) as cursor:
        values = {"subscription": subscription, "copied": COPIED}
        return cursor.execute(_READ, values).fetchall()


_TAKING_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.2

app = typer.Typer(
    help="List, pause, resume, add and remove tables during replication.",
    no_args_is_help=True,
)

NamesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="OWNER.NAME", help="Names of replicated tables.", autocompletion=table_names
    ),
]
AllOption = Annotated[
    bool,
    typer.Option(
        "--all",
        help="Pause the whole subscription: nothing more is received, and you must keep the"
        " archived logs.",
    ),
]
AllPausedOption = Annotated[
    bool, typer.Option("--all", help="Resume the whole subscription after `tables pause --all`.")
]
ByOption = Annotated[
    str | None, typer.Option("--by", hidden=True, help="The name of the requester, for the log.")
]


@app.callback()
def tables() -> None:
    """List, pause, resume, add and remove replicated tables.

    The `tables` commands work with and without a running `olr-pg run`. The commands write to the
    target and to `context.data`; a running appliance applies the change within seconds.
    """


@app.command("list")
def list_tables(
    config: ConfigOption, *, target_name: TargetOption = None, as_json: JsonOption = False
) -> None:
    """List the replicated tables and their states."""
    from olr_pg.applier.stopped.pausing import read_pause

    with open_settings(config, target_name) as (connection, settings):
        states = read_table_states(connection, settings.subscription)
        pause = read_pause(connection, settings.subscription)
    if as_json:
        lines = [{**one._asdict(), "state": one.word} for one in states]
        print_json({"paused": None if pause is None else pause._asdict(), "tables": lines})
        return
    if pause is not None:
        print_line(f"The subscription was PAUSED by {pause.by}")
    for one in states:
        count = counted(one.held_transactions, "transaction is held", "transactions are held")
        held = f"  {count}" if one.stopped else ""
        names = one_line(f"{one.source_table} → {one.target_table}")
        print_line(f"{one.word:10}  {names}  SCN {one.commit_scn}{held}")
    if not states:
        print_line("no table is replicated into the target yet")


@app.command("pause")
def pause(
    config: ConfigOption,
    *,
    table: NamesArgument = None,
    whole: AllOption = False,
    by: ByOption = None,
    target_name: TargetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Pause tables: their changes are held in the target, in order. Other tables continue.

    With --all the whole subscription is paused instead: received changes are applied, and nothing
    more is received. Keep the archived logs until you resume the subscription. A pause survives
    restarts.
    """
    from olr_pg.applier.settings import Consistency
    from olr_pg.applier.stopped.pausing import pause_all, pause_table

    _check_choice(table, whole=whole)
    loaded = read_config(config, target_name)
    with open_target_of(loaded, ledger="required") as (connection, settings):
        if whole:
            names = ["*"]
            changed = names if pause_all(connection, settings.subscription, _who(by)) else []
        else:
            if settings.consistency is Consistency.TRANSACTION:
                raise OlrPgError(Code.TABLE_NOT_PAUSABLE, '`apply.consistency` is "transaction"')
            names = _known(loaded, connection, settings, table or ())
            changed = [
                name
                for name in names
                if pause_table(connection, settings.subscription, name, _target(settings, name))
            ]
    if as_json:
        print_json({"paused": changed})
        return
    unchanged = [name for name in names if name not in changed]
    for done, these in (("paused", changed), ("already paused", unchanged)):
        if these:
            print_line(f"{done}: {', '.join(map(_named, these))}")


@app.command("resume")
def resume(
    config: ConfigOption,
    *,
    table: NamesArgument = None,
    whole: AllPausedOption = False,
    by: ByOption = None,
    target_name: TargetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Resume paused tables: their held changes are applied, in order.

    Exit code 1 if a table then stops with an error. If the command fails, you can repeat it.
    """
    from olr_pg.applier.batches.replay import stopped_tables
    from olr_pg.applier.stopped.pausing import paused_tables, resume_all, unpause_table

    del by  # `by`: the running appliance logs who resumed the table
    _check_choice(table, whole=whole)
    loaded = read_config(config, target_name)
    with open_target_of(loaded, ledger="required") as (connection, settings):
        paused = paused_tables(connection, settings.subscription)
        if whole:
            resumed = resume_all(connection, settings.subscription)
            _print_resumed(paused, resumed=resumed, as_json=as_json)
            return
        names = _known(loaded, connection, settings, table or ())
        # An earlier command may have lost its connection before it applied the held changes, or
        # after an error had stopped one of the tables.
        held = {*paused, *stopped_tables(connection, settings.subscription)}
        if held.isdisjoint(names):
            raise OlrPgError(
                Code.TABLE_NOT_PAUSED, "no change of the table is held", table=names[0]
            )
        for name in names:
            unpause_table(connection, settings.subscription, name)
        go_on(connection, settings, names, as_json=as_json)


@app.command("add")
def add(
    config: ConfigOption,
    table: Annotated[
        list[str],
        typer.Argument(
            metavar="OWNER.NAME", help="Names of tables of the source.", autocompletion=table_names
        ),
    ],
    *,
    load: Annotated[
        bool, typer.Option("--load/--no-load", help="Load the existing rows first.")
    ] = True,
    begin_copy: BeginCopyOption = False,
    end_copy: EndCopyOption = False,
    scn: CopyScnOption = None,
    since: CopySinceOption = None,
    by: ByOption = None,
    target_name: TargetOption = None,
) -> None:
    """Replicate more tables: load their rows, then replicate their changes. Other tables continue.

    The command loads the rows like `initial-load`, as of a new SCN. An interrupted load continues
    if you repeat the command. Then the applier restarts with the longer list, from the load's SCN
    for the new tables; this takes seconds. The list is stored in `context.data/tables.json`, in
    addition to `apply.tables`.

    Another tool can copy the rows instead, between a command with --begin-copy and a command with
    --end-copy. The second command begins the replication.
    """
    from olr_pg.cli.migration.load import copy_step, load_tables
    from olr_pg.load.initial import LoadOptions

    del by
    copy = copy_step(begin=begin_copy, end=end_copy, scn=scn, since=since)
    if copy is not None and not load:
        raise typer.BadParameter("--no-load cannot be used with --begin-copy and --end-copy")
    loaded = read_config(config, target_name)
    apply = _apply(loaded)
    names = parse_names(table)
    _check_new(apply, names)
    wider = loaded.model_copy(update={"apply": apply.with_changes(apply.changes.plus(names))})
    if load:
        with open_target_of(wider, ledger="required"):
            pass  # the load would create the ledger, perhaps in a wrong database
        options = LoadOptions(resume=True, copy=copy)
        load_tables(wider, [str(name) for name in names], options, is_added=True)
        if begin_copy:
            return
    else:
        known = _tables_at_work(loaded)
        absent = [] if known is None else [str(one) for one in names if str(one) not in known]
        _check_targets(wider, [str(name) for name in names], absent)
    _take(loaded, lambda changes: changes.plus(names), added=[str(name) for name in names])


def _check_targets(config: Config, names: Sequence[str], absent: Collection[str]) -> None:
    """Prepare tables that are added without a load. Raise an error if a table is missing in the
    source, or its target table is unfit, as a load does.

    Only changes that commit after this command are wanted. So earlier changes do not count as
    missing, and with a live source they are not applied. (The present SCN of an offline source is
    unknown.)

    Args:
        absent: the tables that a running appliance does not replicate.

    Raises:
        OlrPgError: 3012 and 3013, the source has no such table, or it cannot be replicated;
            5040–5043, 5046, 5148; 70xx, errors of a live source; 8015, Oracle has no undo
            for the dictionary that the tables need.
    """
    from olr_pg.applier.session.handover import begin_added
    from olr_pg.applier.stopped.left_out import forget_left_out, unfit_reason
    from olr_pg.load import sources
    from olr_pg.load.stored_dictionaries import dictionaries_of

    with open_target_of(config, ledger="required") as (connection, settings):
        scn = sources.current_scn(config)
        with sources.open_tables(config) as source:
            source.choose(names)  # no start would accept a list with a table that does not exist
            if scn is not None:
                dictionaries_of(config, source, settings).add(names)
        with connection.transaction():
            for name in names:
                if scn is not None:
                    target = _target(settings, name)
                    key = settings.subscription, name, target
                    begin_added(connection, *key, scn, is_absent=name in absent)
                forget_left_out(connection, settings.subscription, name)
                reason = unfit_reason(connection, settings, name)
                if reason is not None:
                    raise reason


@app.command("remove")
def remove(
    config: ConfigOption,
    table: Annotated[
        list[str],
        typer.Argument(
            metavar="OWNER.NAME", help="Names of replicated tables.", autocompletion=table_names
        ),
    ],
    *,
    by: ByOption = None,
    target_name: TargetOption = None,
) -> None:
    """Stop replicating tables. The target keeps the rows of removed tables. Other tables continue.

    The command deletes the positions of these tables from the target. To replicate a table again,
    empty it and load it again (`olr-pg tables add`). If the command fails, you can repeat it.
    """
    from olr_pg.load.load_progress import TableLoadProgress

    del by
    loaded = read_config(config, target_name)
    apply = _apply(loaded)
    names = parse_names(table)
    removed = [str(name) for name in names]
    with open_target_of(loaded, ledger="required") as (connection, settings):
        if apply.table_names is None:
            _check_there(loaded, connection, settings, removed)
        else:
            _check_listed(apply, connection, settings, names)
        _take(loaded, lambda changes: _without(apply, changes, names), removed=removed)
        for left in removed:
            TableLoadProgress(settings.subscription, left, _target(settings, left)).leave(
                connection
            )


def parse_names(texts: Sequence[str]) -> list[TableName]:
    """Parse names, each OWNER.NAME; return each once.

    Raises:
        OlrPgError: 3018, a text is not such a name.
    """
    from olr_pg.config.table_patterns import TableName
    from olr_pg.dictionary.selection import parse_table_name

    return [*dict.fromkeys(TableName(*parse_table_name(text)) for text in texts)]


def _apply(config: Config) -> Apply:
    if config.apply is None:
        raise OlrPgError(Code.NO_TARGET, "the configuration has no `apply` section")
    return config.apply


def _check_new(apply: Apply, names: Sequence[TableName]) -> None:
    for name in names:
        if name in (apply.table_names or ()):
            raise OlrPgError(
                Code.TABLES_NOT_CHANGEABLE, "the list already contains the table", table=str(name)
            )


def _check_listed(
    apply: Apply,
    connection: Connection[Any],
    settings: ApplierSettings,
    names: Sequence[TableName],
) -> None:
    """Check that the list contains each table. A table may also be missing because an earlier
    command removed it from the list, but lost its connection before it had deleted all records of
    the table.

    Raises:
        OlrPgError: 8015, a table is not replicated.
    """
    listed = set(apply.table_names or ())
    found = connection.execute(_RECORDED, {"subscription": settings.subscription}).fetchall()
    recorded = {name for (name,) in found}
    done = [name for name in names if name not in listed and str(name) not in recorded]
    for name in done:
        if name not in apply.changes.removed or len(done) == len(names):
            raise OlrPgError(
                Code.TABLES_NOT_CHANGEABLE, "the table is not replicated", table=str(name)
            )


def _without(apply: Apply, changes: TableChanges, names: Sequence[TableName]) -> TableChanges:
    """Return the changes after these tables are removed.

    Raises:
        OlrPgError: 8015, no other table stays in the list.
    """
    fewer = changes.minus(names)
    if apply.with_changes(fewer).table_names == ():
        raise OlrPgError(Code.TABLES_NOT_CHANGEABLE, "at least one table must stay in the list")
    return fewer


def _check_there(
    config: Config, connection: Connection[Any], settings: ApplierSettings, names: Sequence[str]
) -> None:
    """Check that the target's ledger or the list contains each table; used if patterns or a query
    select the tables.

    Raises:
        OlrPgError: 8015, neither contains a table.
    """
    from olr_pg.load import sources

    states = read_table_states(connection, settings.subscription)
    left = set(names) - {one.source_table for one in states}
    if left:
        with sources.open_tables(config) as source:
            left -= {table.full_name for table in source.choose(())}
    for name in names:
        if name in left:
            raise OlrPgError(Code.TABLES_NOT_CHANGEABLE, "the table is not replicated", table=name)


def _take(
    config: Config,
    change: Callable[[TableChanges], TableChanges],
    *,
    added: Sequence[str] = (),
    removed: Sequence[str] = (),
) -> None:
    """Change the list, and wait until a running appliance has adopted it.

    Raises:
        OlrPgError: 8015 the list cannot be changed, 8016 the appliance does not adopt them.
    """
    from olr_pg.config.changed_tables import change_tables

    change_tables(config.changes_file(), change)
    deadline = time.monotonic() + _TAKING_SECONDS
    while True:
        known = _tables_at_work(config)
        if known is None:
            print_line("the change is stored; the next start of the appliance applies it")
            return
        if known.issuperset(added) and known.isdisjoint(removed):
            break
        if time.monotonic() > deadline:
            names = ", ".join((*added, *removed))
            raise OlrPgError(Code.CHANGE_NOT_TAKEN, f"after {_TAKING_SECONDS:.0f} s: {names}")
        time.sleep(_LOOK_SECONDS)
    if added:
        print_line(f"now replicated: {', '.join(added)}")
    if removed:
        print_line(f"no longer replicated: {', '.join(removed)}")


def _tables_at_work(config: Config) -> set[str] | None:
    """Return the tables of the running appliance; None if no appliance is running, or if it does
    not answer.
    """
    from olr_pg.monitor.status_client import ask_status

    page = f"status.json?target={config.name}" if config.name else "status.json"
    try:
        record = ask_status(config, page=page)
    except OlrPgError as error:
        if error.code in (Code.NO_APPLIANCE, Code.APPLIANCE_SILENT):
            return None
        raise
    if record["state"]["name"] == "LOADING":
        return None  # this is the status page of an initial load
    return {table["name"] for table in record["tables"]}


def _check_choice(names: Sequence[str] | None, *, whole: bool) -> None:
    if names and whole:
        raise typer.BadParameter("name tables or use --all, not both")
    if not names and not whole:
        raise typer.BadParameter("name at least one table, or use --all")


def _known(
    config: Config,
    connection: Connection[Any],
    settings: ApplierSettings,
    names: Sequence[str],
) -> list[str]:
    """Return the names in the exact form of the ledger or the configuration.

    Raises:
        OlrPgError: 5157, a table is not replicated.
    """
    from olr_pg.dictionary.selection import as_known

    states = read_table_states(connection, settings.subscription)
    known = {one.source_table for one in states}
    if config.apply is not None:
        known |= {str(name) for name in config.apply.table_names or ()}
    found = as_known(names, known)
    for name in found:
        if name not in known:
            raise OlrPgError(Code.NO_SUCH_REPLICATED_TABLE, name)
    return found


def _target(settings: ApplierSettings, name: str) -> str:
    from olr_pg.applier.statements.target_plan import named_target

    return ".".join(named_target(settings, name))


def _who(by: str | None) -> str:
    """Return `by`, or the name of the user who runs this command."""
    import getpass
    import socket

    if by is not None:
        return by
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # inside a container, the user may have no name
        user = "somebody"
    return f"{user}@{socket.gethostname()}"


def _named(name: str) -> str:
    return "the whole subscription" if name == "*" else name


def _print_resumed(paused: Sequence[str], *, resumed: bool, as_json: bool) -> None:
    """Print the result of `resume --all`.

    Args:
        paused: the tables that are paused individually; `resume --all` does not resume them.
    """
    if as_json:
        print_json({"resumed": ["*"] if resumed else []})
        return
    print_line(f"{'resumed' if resumed else 'not paused'}: {_named('*')}")
    for name in paused:
        command = f"olr-pg tables resume {shlex.quote(name)}"
        print_line(advised(f"still paused: {name} (`{command}` resumes it)"))
