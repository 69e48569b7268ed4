"""Options that several commands share, and access to the configuration that --config names.

Shell completion proposes the names of tables and targets, and the error codes. The names come from
the configuration that the command would read, and from the dictionaries that this configuration
names. Names also come from dictionaries that an earlier run has stored in `context.data`.
Completion opens no connection and resolves no secret. If a file cannot be read, no names are
proposed.

`usual_file` finds the default configuration file for commands without --config.

`open_settings` opens a connection to the target and returns it with the applier's settings, for
commands that need only these.
"""

from __future__ import annotations

import json
import os
from collections.abc import (
    Iterable,  # Typer needs it at run time
    Iterator,  # Typer needs it at run time
)
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from psycopg import Connection

    from olr_pg.appliance.opened_target import LedgerUse
    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.config.model import Config

USUAL_FILES: Final = (Path("olr-pg.json"), Path("configs", "Replicator.json"))
"""The default configuration files, relative to the working directory; the second is the default of
OLR.
"""


def usual_file() -> Path:
    """Return the configuration file to read if neither the command line nor the environment names
    one.

    Raises:
        OlrPgError: 1120, no default configuration file exists.
    """
    for file in USUAL_FILES:
        if file.is_file():
            return file
    places = " or ".join(str(file.absolute()) for file in USUAL_FILES)
    raise OlrPgError(
        Code.NO_CONFIG_FILE, "neither --config nor OLR_PG_CONFIG names a file", file=places
    )


def error_codes(incomplete: str) -> Iterator[tuple[str, str]]:
    """Propose the codes of the catalogue with their titles."""
    for code in Code:
        label = f"OLR-{code:05d}"
        if label.startswith(incomplete):
            yield label, code.title


def target_names(ctx: typer.Context, incomplete: str) -> Iterator[str]:
    """Propose the names of the configuration's targets."""
    targets = _configuration(ctx).get("target")
    for target in targets if isinstance(targets, list) else ():
        if str(target.get("name", "")).startswith(incomplete):
            yield str(target["name"])


def table_names(ctx: typer.Context, incomplete: str) -> Iterator[str]:
    """Propose the source's tables."""
    names = {name for path in _dictionaries(ctx) for name in _tables_of(path)}
    yield from sorted(name for name in names if name.startswith(incomplete))


def _configuration(ctx: typer.Context) -> dict[str, Any]:
    """Return the contents of the configuration file without resolving secrets; empty if it cannot
    be read.

    Relative paths in it start at the folder of the file.
    """
    from olr_pg.config.reading import read_values

    path = _file(ctx)
    try:
        values = {} if path is None else read_values(path)
    except OlrPgError:
        return {}
    return values if isinstance(values, dict) else {}


def _file(ctx: typer.Context) -> Path | None:
    named = ctx.params.get("config") or os.environ.get("OLR_PG_CONFIG")
    try:
        return Path(named) if named else usual_file()
    except OlrPgError:
        return None


def _dictionaries(ctx: typer.Context) -> Iterable[Path]:
    """Return the files that may contain the source's dictionary."""
    from olr_pg.config.model import DATA

    if ctx.params.get("dictionary"):  # an option of `decode`
        return map(Path, ctx.params["dictionary"])
    values, folder = _configuration(ctx), (_file(ctx) or Path()).parent
    named = _section(values, "source").get("dictionary", [])
    data = str(_section(values, "context").get("data", DATA))
    found = [named] if isinstance(named, str) else named
    return [folder / str(one) for one in (*found, f"{data}/dictionary.json")]


def _section(values: dict[str, Any], name: str) -> dict[str, Any]:
    found = values.get(name)
    return found if isinstance(found, dict) else {}


def _tables_of(path: Path) -> list[str]:
    from olr_pg.dictionary.loader import load_snapshot

    try:
        return [table.full_name for table in load_snapshot(str(path)).tables]
    except (OlrPgError, OSError, json.JSONDecodeError):
        return []


BeginCopyOption = Annotated[
    bool,
    typer.Option(
        "--begin-copy",
        help="Load nothing, because another tool copies the rows. Choose the SCN as of which it"
        " reads them, and print this SCN. The tables of the target must be empty. If the copy has"
        " already begun, print its SCN again.",
    ),
]
EndCopyOption = Annotated[
    bool,
    typer.Option(
        "--end-copy",
        help="Another tool has copied the rows: replicate the changes after the SCN of"
        " --begin-copy.",
    ),
]
CopyScnOption = Annotated[
    int | None,
    typer.Option(
        "--scn",
        min=1,
        metavar="SCN",
        help="With --end-copy, if there was no --begin-copy: the SCN as of which the other tool has"
        " read the rows.",
    ),
]
CopySinceOption = Annotated[
    int | None,
    typer.Option(
        "--since",
        min=1,
        metavar="SCN",
        help="With --scn: an SCN before the begin of every transaction that was open at --scn. The"
        " archived logs from this SCN on must exist.",
    ),
]
TableOption = Annotated[
    list[str] | None,
    typer.Option(
        "--table",
        metavar="OWNER.NAME",
        help="Only this table of `apply.tables`; repeatable.",
        autocompletion=table_names,
    ),
]
AcceptOption = Annotated[
    list[str] | None,
    typer.Option(
        "--accept",
        metavar="NAME",
        help="Accept that the target lacks these objects of the source, such as 'trigger"
        " SHOP.*'; repeatable.",
    ),
]
FallbackOption = Annotated[
    bool,
    typer.Option(
        "--fallback",
        help="Start the replication back to Oracle before applications write to the target"
        " (section `fallback` of the configuration).",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def read_config(path: Path, target: str | None) -> Config:
    """Read the configuration of one target, for a command that prints its own result.

    Raises:
        OlrPgError: 10xx errors of the file, 1105 or 1106 errors of the target.
    """
    from olr_pg.config.model import secret_texts
    from olr_pg.config.outside import load_for_work
    from olr_pg.config.reading import one_target
    from olr_pg.observability.logging_setup import WARNINGS, configure_logging

    config = load_for_work(path)
    level = min(config.log.level, WARNINGS)
    configure_logging(level, config.log.format, secrets=secret_texts(config))
    return one_target(config, target)


def spark_session_of(config: Config) -> Any:
    """Open the configured Spark session, for a command that reads whole tables."""
    from olr_pg.load.initial import PRELOAD
    from olr_pg.spark.session import get_session, spark_settings

    return get_session(spark_settings(config, PRELOAD))


@contextmanager
def open_settings(
    path: Path, name: str | None
) -> Iterator[tuple[Connection[Any], ApplierSettings]]:
    """Open a connection to the target of a configuration file, which must have a ledger; see
    `open_target_of`.
    """
    with open_target_of(read_config(path, name), ledger="required") as opened:
        yield opened


@contextmanager
def open_target_of(
    config: Config, *, ledger: LedgerUse = "created"
) -> Iterator[tuple[Connection[Any], ApplierSettings]]:
    """Open a connection to the target; return it with the applier's settings.

    Args:
        config: the configuration; it has only one target.
        ledger: as for `opened_target`.

    Raises:
        OlrPgError: 1091 there is no target, 5003 the target cannot be reached, 5015 and 5031 errors
            of the ledger.
    """
    from olr_pg.appliance.appliance import applier_settings
    from olr_pg.appliance.container_names import containers_of
    from olr_pg.appliance.opened_target import opened_target
    from olr_pg.applier.settings import TriggerHandling
    from olr_pg.datatypes.convert import DEFAULT_FACTS
    from olr_pg.wire.frames import ByteOrder

    section = config.apply
    replica = section is not None and section.triggers == TriggerHandling.REPLICA.value
    with opened_target(config, replica=replica, ledger=ledger) as (connection, target):
        assert section is not None  # `opened_target` has checked this
        order = ByteOrder(config.port.byte_order)
        # Default facts about the source are sufficient, because the real ones are stored with the
        # held changes.
        settings = applier_settings(section, target, ("", 0), order, DEFAULT_FACTS)
        yield connection, replace(settings, containers=containers_of(config))
