"""``olr-pg schema``: converts the source's schema to SQL for PostgreSQL; writes, applies or
compares it.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from olr_pg.cli.config import ConfigOption, TargetOption
from olr_pg.cli.printing import print_json, print_line
from olr_pg.cli.shared_options import JsonOption, read_config
from olr_pg.observability.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from psycopg import Connection

    from olr_pg.config.model import Config
    from olr_pg.schema.source_inventory import SourceSchemas
    from olr_pg.schema.statement import Statement
    from olr_pg.schema.trial import TrialOutcome

EXIT_DIFFERENT: Final = 1

app = typer.Typer(
    help="Export, apply and compare the source's schema in PostgreSQL.", no_args_is_help=True
)


@app.callback()
def schema() -> None:
    """Write, apply or compare the source's schema, including objects that are not replicated."""


class _Converted(NamedTuple):
    config: Config
    target: str
    schemas: list[SourceSchemas]
    connection: Connection[Any]
    statements: list[Statement]


OwnerOption = Annotated[
    list[str] | None,
    typer.Option(
        "--owner",
        metavar="OWNER",
        help="Only this schema, instead of the schemas of `apply.tables`; repeatable.",
    ),
]


@app.command("export")
def export(
    config: ConfigOption,
    *,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="The directory for the SQL files.")
    ],
    owner: OwnerOption = None,
    target_name: TargetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write SQL files by kind; all.sql runs them in order with psql.

    The command tries each statement in the target, in a transaction that is rolled back. Statements
    without a translation, or that PostgreSQL refuses, are comments in the files with the reason.
    """
    from olr_pg.errors import Code, OlrPgError, system_reason
    from olr_pg.schema.statement import write_files

    with _converted(config, target_name, owner) as found:
        try:
            paths = write_files(found.statements, out)
        except OSError as error:
            raise OlrPgError(
                Code.OUTPUT_UNWRITABLE, f"{error.filename or out}: {system_reason(error)}"
            ) from error
    if as_json:
        counts = Counter((one.kind, one.runs) for one in found.statements)
        kinds = [
            {"kind": kind, "statements": counts[kind, True], "comments": counts[kind, False]}
            for kind in dict.fromkeys(one.kind for one in found.statements)
        ]
        print_json({"files": [str(path) for path in paths], "kinds": kinds})
        return
    for path in paths:
        print_line(str(path))
    left = sum(not one.runs for one in found.statements)
    statements = counted(len(found.statements) - left, "statement")
    print_line(f"{statements}; {counted(left, 'object')} as comments")


@app.command("apply")
def apply(
    config: ConfigOption,
    *,
    only: Annotated[
        str | None,
        typer.Option(
            "--only",
            metavar="PART",
            help="before-data: only schemas, sequences, tables, primary keys, defaults, checks and"
            " comments; after-data: only the other objects.",
        ),
    ] = None,
    owner: OwnerOption = None,
    target_name: TargetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create what is missing in the target; existing objects are not changed.

    You can run it again at any time. Exit code 1: PostgreSQL refused some statements, which are
    listed.
    """
    if only not in (None, "before-data", "after-data"):
        raise typer.BadParameter("--only must be before-data or after-data")
    from olr_pg.schema.statement import BEFORE_DATA
    from olr_pg.schema.trial import FAILED, run_statements

    with _converted(config, target_name, owner, tried_first=False) as found:
        wanted = [
            one
            for one in found.statements
            if only is None or (one.kind in BEFORE_DATA) == (only == "before-data")
        ]
        outcomes = run_statements(found.connection, wanted)
    _print_outcomes(outcomes, as_json=as_json)
    if any(one.state == FAILED for one in outcomes):
        raise typer.Exit(EXIT_DIFFERENT)


@app.command("diff")
def diff(
    config: ConfigOption,
    *,
    owner: OwnerOption = None,
    target_name: TargetOption = None,
    as_json: JsonOption = False,
) -> None:
    """List what is missing or different in the target.

    Exit code 1: something is missing or different. Objects that you must convert by hand are
    listed, but do not count.
    """
    from olr_pg.schema.difference import differences
    from olr_pg.schema.relations import Relations

    with _converted(config, target_name, owner, tried_first=False) as found:
        listed = [
            one._replace(name=schemas.told(one.name))
            for schemas in found.schemas
            for one in differences(
                found.connection,
                schemas.inventory,
                Relations(schemas.inventory, schemas.settings(found.config, found.target)),
                schemas.statements(found.config, found.target),
            )
        ]
    if as_json:
        print_json([one._asdict() for one in listed])
    else:
        for one in listed:
            detail = f": {one.detail.splitlines()[0]}" if one.detail else ""
            print_line(f"{one.what}: {one.kind} {one.name}{detail}")
        real = sum(one.what != "by hand" for one in listed)
        by_hand = counted(len(listed) - real, "object")
        print_line(f"{counted(real, 'difference')}, {by_hand} to create by hand")
    if any(one.what != "by hand" for one in listed):
        raise typer.Exit(EXIT_DIFFERENT)


@app.command("put-back")
def put_back(
    config: ConfigOption, *, target_name: TargetOption = None, as_json: JsonOption = False
) -> None:
    """Restore the triggers, rules and foreign keys that `apply.triggers` "disable" has disabled.

    `olr-pg cutover` does this automatically; use this command if you end replication in another
    way. Stop the appliance first. Exit code 1: something could not be restored, or rows violate a
    foreign key; both are listed.
    """
    from olr_pg.appliance.opened_target import opened_target
    from olr_pg.applier.target.set_aside import put_back as put_all_back
    from olr_pg.applier.target.set_aside import validate_foreign_keys
    from olr_pg.load.sources import apply_section

    loaded = read_config(config, target_name)
    with opened_target(loaded, ledger="required") as (connection, _):
        back = put_all_back(connection, apply_section(loaded).subscription)
        problems = [*back.lost, *validate_foreign_keys(connection, back.done)]
    if as_json:
        print_json(
            {
                "put_back": [one.title for one in back.done],
                "not_needed": [one.title for one in back.gone],
                "problems": problems,
            }
        )
    else:
        for one in back.done:
            print_line(f"restored: {one.title}")
        for one in back.gone:
            print_line(f"no longer needed: {one.title}")
        for problem in problems:
            print_line(f"PROBLEM {problem}")
        if not (back.done or back.gone or problems):
            print_line("no trigger, rule or foreign key is disabled")
    if problems:
        raise typer.Exit(EXIT_DIFFERENT)


@contextmanager
def _converted(
    path: Path, target_name: str | None, owners: list[str] | None, *, tried_first: bool = True
) -> Iterator[_Converted]:
    """Read the source, connect to the target, and convert."""
    from olr_pg.appliance.opened_target import opened_target
    from olr_pg.schema.source_inventory import all_statements, read_schemas
    from olr_pg.schema.trial import tried

    config = read_config(path, target_name)
    schemas = read_schemas(config, owners or ())
    with opened_target(config, ledger="unused") as (connection, target):
        statements = all_statements(config, schemas, target)
        if tried_first:
            statements = tried(connection, statements)
        yield _Converted(config, target, schemas, connection, statements)


def _print_outcomes(outcomes: list[TrialOutcome], *, as_json: bool) -> None:
    if as_json:
        print_json(
            [
                {
                    "kind": one.statement.what or one.statement.kind,
                    "name": one.statement.name,
                    "state": one.state,
                    "reason": one.reason,
                }
                for one in outcomes
            ]
        )
        return
    for kind in dict.fromkeys(one.statement.kind for one in outcomes):
        states = Counter(one.state for one in outcomes if one.statement.kind == kind)
        print_line(f"{kind}: " + ", ".join(f"{n} {state}" for state, n in sorted(states.items())))
    for one in outcomes:
        if one.reason:
            what = one.statement.what or one.statement.kind
            print_line(f"{what} {one.statement.name} {one.state}: {one.reason}")
