"""``olr-pg init``: writes a first configuration file, with comments, from a few answers.

All other keys have their defaults, which `configs/oracle-to-postgres.json5` shows.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Final, NamedTuple
from urllib.parse import urlsplit

import typer

from olr_pg.cli.printing import print_line
from olr_pg.cli.shared_options import USUAL_FILES
from olr_pg.errors import Code, OlrPgError, plain_reason

SECRETS: Final = ("ORACLE_PASSWORD", "PG_PASSWORD")
"""The environment variables to which such a file can refer for passwords."""

_HEAD: Final = """\
// Written by olr-pg init. Comments and trailing commas are allowed. Relative paths are relative to
// the folder of this file. docs/configuration.md explains all keys.
//
// Set these environment variables, which ${{NAME}} refers to: {secrets}.
{{
  "context": {{ "data": "olr_data" }}, // checkpoint, spilled transactions, copies of the dictionary
"""
_LIVE: Final = """
  "source": {{
    "user": {user},
    "password": "${{ORACLE_PASSWORD}}",
    "server": {server}, // host:port/service of {whose}
{containers}{mapping}{transport}\
    // "redo": "online", // also read the online logs: commits arrive within a second
  }},
"""
_MAPPING: Final = """\
    // Pairs of paths: a directory of archived logs in Oracle, and where it is mounted here.
    "path-mapping": {places},
"""
_TRANSPORT_EXAMPLE: Final = """\
    // If the logs are not mounted, read them over this connection or SFTP (docs/transport.md):
    // "vault": { "directory": "vault" }, "transport": { "kind": "bfile" },
"""
_TRANSPORT: Final = """\
    "vault": {{ "directory": "vault" }}, // directory for copies of the logs
    "transport": {transport}, // docs/transport.md lists its requirements
"""
_CONTAINERS: Final = """\
    "containers": {names}, // docs/containers.md lists the requirements
"""
_OFFLINE: Final = """
  "source": {{
    "kind": "offline",
    "dictionary": {dictionary}, // from `olr-pg dictionary export`, before the first change
    "logs": {logs}, // files, directories and globs
  }},
"""
_APPLY: Final = """
  "apply": {{
    "connect-string": {target},
    "tables": {tables}, // a list of OWNER.NAME, or patterns such as SHOP.*
    "create-tables": true, // create missing target tables
  }},
}}
"""


class LiveSource(NamedTuple):
    """A live source database.

    Attributes:
        mapping: a flat list: a path in Oracle, then its path on this host, then the next pair.
        containers: the PDBs that contain the tables; empty for the container of the service in
            `server`.
        transport: the section `source.transport` for logs that are not mounted; empty if all are
            mounted.
    """

    server: str
    user: str
    mapping: Sequence[str]
    containers: Sequence[str] = ()
    transport: Mapping[str, object] = MappingProxyType({})


class CopiedSource(NamedTuple):
    """A source that consists of copied archived logs and a dictionary snapshot."""

    dictionary: str
    logs: Sequence[str]


def starter_text(source: LiveSource | CopiedSource, target: str, tables: Sequence[str]) -> str:
    """Return the text of the configuration file.

    Args:
        target: the value of `apply.connect-string`; for the password, ``${PG_PASSWORD}`` is
            recommended.
        tables: the tables, each as ``OWNER.NAME``, or patterns of tables.
    """
    if isinstance(source, LiveSource):
        part = _LIVE.format(
            user=_json(source.user),
            server=_json(source.server),
            whose="the database" if source.containers else "the container that holds the tables",
            containers=_CONTAINERS.format(names=_json(source.containers))
            if source.containers
            else "",
            mapping=_MAPPING.format(places=_json(source.mapping)) if source.mapping else "",
            transport=_TRANSPORT.format(transport=_json(source.transport))
            if source.transport
            else _TRANSPORT_EXAMPLE,
        )
    else:
        part = _OFFLINE.format(dictionary=_json(source.dictionary), logs=_json(source.logs))
    text = part + _APPLY.format(target=_json(target), tables=_json(tables))
    secrets = [name for name in SECRETS if f"${{{name}}}" in text]
    return _HEAD.format(secrets=" and ".join(secrets) or "none") + text


def _json(value: str | Sequence[str] | Mapping[str, object]) -> str:
    plain = dict(value) if isinstance(value, Mapping) else value
    return json.dumps(list(plain) if isinstance(plain, tuple) else plain, ensure_ascii=False)


_MOUNTED: Final = "mount"
_WAYS: Final = (
    "How olr_pg gets the archived logs (mount: they are mounted here; bfile: over the"
    " connection to Oracle; sftp://user@host; or a command with {name})"
)


def init(
    out: Annotated[
        Path, typer.Argument(metavar="FILE", help="The configuration file to write.")
    ] = USUAL_FILES[0],
    *,
    server: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT/SERVICE", help="The address and service of a live Oracle."),
    ] = None,
    user: Annotated[
        str | None, typer.Option(help="The Oracle account that sql/oracle/user.sql creates.")
    ] = None,
    container: Annotated[
        list[str] | None,
        typer.Option(
            "--container",
            metavar="PDB",
            help="A PDB with tables to replicate, if the account is a common user (C##OLR)."
            " Repeatable; all named PDBs are replicated together.",
        ),
    ] = None,
    path_mapping: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            metavar="THERE=HERE",
            help="A directory of archived logs on the Oracle host (THERE), and the directory"
            " where it is mounted on this machine (HERE). Repeatable.",
        ),
    ] = None,
    transport: Annotated[
        str | None,
        typer.Option(
            metavar="WAY",
            help="How olr_pg fetches logs that are not mounted here: bfile (over the"
            " connection to Oracle), sftp://USER@HOST[:PORT], or a command that prints"
            " the log {name}.",
        ),
    ] = None,
    logs: Annotated[
        list[str] | None,
        typer.Option(
            "--logs",
            metavar="PATH",
            help="Use these copied archived logs instead of a live Oracle.",
        ),
    ] = None,
    dictionary: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The dictionary snapshot for the logs of --logs."),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(
            metavar="CONNECT-STRING",
            help='The PostgreSQL target, or "embedded" for an embedded PostgreSQL to try olr_pg'
            " with.",
        ),
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option(
            "--table",
            metavar="OWNER.NAME",
            help="A table to replicate, or a pattern such as SHOP.*. Repeatable.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write a first configuration file. On a terminal, it asks for what the options do not set."""
    from olr_pg.cli.init import SECRETS, LiveSource, starter_text
    from olr_pg.config.reading import parse_text
    from olr_pg.files.owned import written_whole

    if out.exists() and not force:
        raise OlrPgError(Code.CONFIG_FILE_EXISTS, "nothing was written", file=str(out))
    if logs and container:
        raise typer.BadParameter(
            "--container requires a live Oracle; with --logs, name the PDB's dictionary with"
            " --dictionary"
        )
    if logs and transport:
        raise typer.BadParameter(
            "--transport requires a live Oracle; it cannot be used with --logs"
        )
    source = _seen_from(out, _source(server, user, path_mapping, transport, logs, dictionary))
    if container and isinstance(source, LiveSource):
        source = source._replace(containers=container)
    connect_string = _answer(
        target, "--target", "PostgreSQL target (embedded: an embedded PostgreSQL)", "embedded"
    )
    tables = (
        table
        or _answer(None, "--table", "Tables, as OWNER.NAME or SHOP.*, separated by spaces").split()
    )
    text = starter_text(source, connect_string, tables)
    # Check the text before it is written. A dummy value stands for each secret, because secrets may
    # not be set yet.
    parse_text(text, out.absolute().parent, dict.fromkeys(SECRETS, "secret"), file=str(out))
    try:
        with written_whole(out, 0o600 if _has_password(connect_string) else None) as file:
            file.write(text.encode())
    except OSError as error:
        raise OlrPgError(Code.CONFIG_UNWRITABLE, plain_reason(error), file=str(out)) from error
    print_line(f"{out} was written. Next steps:")
    for secret in SECRETS:
        if f"${{{secret}}}" in text:
            print_line(f"  export {secret}=…   # in the environment of each command below")
    for command, what in _next_steps(is_live=not logs):
        print_line(f"  olr-pg {command:<14} --config {out}   # {what}")


def _has_password(connect_string: str) -> bool:
    """Return whether a connect string contains a password, and not a variable in its place."""
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    try:
        password = conninfo_to_dict(connect_string).get("password")
    except ProgrammingError:  # "embedded"
        return False
    return password not in (None, *(f"${{{name}}}" for name in SECRETS))


def _source(
    server: str | None,
    user: str | None,
    path_mapping: Sequence[str] | None,
    transport: str | None,
    logs: Sequence[str] | None,
    dictionary: str | None,
) -> LiveSource | CopiedSource:
    from olr_pg.cli.init import CopiedSource, LiveSource

    if logs:
        if server is not None:
            raise typer.BadParameter("give --server or --logs, not both")
        return CopiedSource(
            _answer(dictionary, "--dictionary", "Dictionary snapshot", "dictionary.json"), logs
        )
    found = _answer(server, "--server", "Oracle, as host:port/service")
    account = _answer(user, "--user", "Oracle account", "olr")
    way = transport or ("" if path_mapping else _answer_where_asked(_WAYS, _MOUNTED))
    if way not in ("", _MOUNTED):
        pairs: Sequence[str] = path_mapping or ()
    else:
        usual = "/u01/app/oracle/archive=/mnt/oracle-archive"
        question = "Archived logs, as PATH_ON_ORACLE_HOST=PATH_HERE"
        pairs = path_mapping or _answer(None, "--map", question, usual).split()
    places = [place for pair in pairs for place in _pair(pair)]
    return LiveSource(found, account, places, transport=_transport(way))


def _transport(way: str) -> Mapping[str, object]:
    """Return the `source.transport` section for an answer; empty if the logs are mounted."""
    if way in ("", _MOUNTED):
        return {}
    if way == "bfile":
        return {"kind": "bfile"}
    try:
        if way.startswith("sftp://"):
            place = urlsplit(way)
            if place.username and place.hostname and place.path in ("", "/"):
                port = {} if place.port is None else {"port": place.port}
                return {"kind": "sftp", "host": place.hostname, **port, "user": place.username}
        elif "{name}" in way:
            return {"kind": "command", "command": shlex.split(way)}
    except ValueError as error:
        raise typer.BadParameter(f"{way!r}: {error}", param_hint="--transport") from error
    raise typer.BadParameter(
        f"{way!r} is neither bfile, nor sftp://USER@HOST[:PORT], nor a command with {{name}}",
        param_hint="--transport",
    )


def _seen_from(out: Path, source: LiveSource | CopiedSource) -> LiveSource | CopiedSource:
    """Return the source with its relative paths converted, so that they are relative to the folder
    of the file `out`.

    On the command line, paths are relative to the working directory.
    """
    from olr_pg.cli.init import CopiedSource

    def seen(path: str) -> str:
        place = out.absolute().parent
        is_there = place == Path.cwd() or Path(path).is_absolute() or "://" in path
        return path if is_there else os.path.relpath(path, place)

    if isinstance(source, CopiedSource):
        return CopiedSource(seen(source.dictionary), [seen(path) for path in source.logs])
    places = source.mapping
    return source._replace(
        mapping=[seen(path) if number % 2 else path for number, path in enumerate(places)]
    )


def _pair(text: str) -> tuple[str, str]:
    there, equals, here = text.partition("=")
    if not (there and equals and here):
        raise typer.BadParameter(f"{text!r} does not have the form THERE=HERE", param_hint="--map")
    return there, here


def _answer(given: str | None, option: str, question: str, usual: str | None = None) -> str:
    """Return the value of an option; if it is not set, ask the user.

    Raises:
        typer.BadParameter: the option is not set and there is no terminal.
    """
    if given is not None:
        return given
    if not sys.stdin.isatty():
        raise typer.BadParameter("is required without a terminal", param_hint=option)
    answer: str = typer.prompt(question, default=usual, err=True)
    return answer


def _answer_where_asked(question: str, usual: str) -> str:
    """Ask the user; without a terminal, return the default."""
    return _answer(None if sys.stdin.isatty() else usual, "", question, usual)


def _next_steps(*, is_live: bool) -> list[tuple[str, str]]:
    steps = [
        ("config check", "check the file"),
        ("doctor", "check the source and the target"),
        ("run", "replicate"),
        ("status", "show the progress"),
    ]
    if is_live:
        steps.insert(2, ("initial-load", "load the existing rows"))
    return steps
