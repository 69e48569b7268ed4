"""``olr-pg decode``: logs to JSON Lines."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Annotated, Final

import typer

from olr_pg.cli.printing import byte_progress, log_to_stderr, print_json, write_bytes
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from olr_pg.dictionary.committed_changes import DictionaryTransaction
    from olr_pg.ordering.accounting import Accounting

SPILL_BYTES: Final = 32 << 20
"""Bytes of unfinished transactions past which the largest wait in the temporary directory."""


def parse_log(text: str) -> Path:
    """Parse a LOG argument; the empty one of a variable that is not set would be this directory."""
    if not text:
        raise typer.BadParameter("it is empty")
    return Path(text)


LogArguments = Annotated[
    list[Path],
    typer.Argument(
        metavar="LOG...",
        help="Archived logs, or copies of online ones: files, directories or globs.",
        parser=parse_log,
    ),
]


def decode(
    logs: LogArguments,
    *,
    dictionary: Annotated[
        Path,
        typer.Option("--dictionary", "-d", metavar="FILE", help="The dictionary snapshot."),
    ],
    table: Annotated[
        list[str] | None,
        typer.Option(
            "--table",
            "-t",
            metavar="OWNER.NAME",
            help="Only this table; may be repeated. Default: every table but Oracle's own.",
        ),
    ] = None,
    session: Annotated[
        bool,
        typer.Option(
            "--session",
            help="Print with each begin whose session it was: redo thread, the transaction's name,"
            " user, machine, program.",
        ),
    ] = False,
    ddl: Annotated[
        bool,
        typer.Option(
            "--ddl",
            help='Print DDL statements too, in commit order with the changes: lines with op "ddl".',
        ),
    ] = False,
    account: Annotated[
        bool,
        typer.Option(
            "--account",
            help="Print what became of every vector and every change instead of the changes, as one"
            " JSON object; it is an error if anything is unaccounted for.",
        ),
    ] = False,
    incident_dir: Annotated[
        Path | None,
        typer.Option(
            "--incident-dir",
            metavar="DIR",
            help="Where the incident file of a decoding error goes, for `olr-pg dump --incident`."
            " Default: the system's temporary directory.",
        ),
    ] = None,
) -> None:
    """Print committed changes as JSON Lines, one element per line, in delivery order.

    Each transaction is a "begin", its changes and a "commit".
    """
    log_to_stderr()
    from olr_pg.decoding.spill import SpillFiles
    from olr_pg.dictionary.loader import load_snapshot
    from olr_pg.redo.sessions import SessionDirectory
    from olr_pg.rendering.ddl_lines import render_ddl
    from olr_pg.rendering.json_lines import JsonLines
    from olr_pg.replicator.decode_once import decode_logs, is_wanted

    snapshot = load_snapshot(str(dictionary))
    paths = [str(path) for path in logs]
    incidents = incident_dir or Path(gettempdir())
    accounts: list[Accounting] = []
    wanted = partial(is_wanted, table or None)

    def print_ddl(transaction: DictionaryTransaction) -> None:
        for line in render_ddl(transaction, wanted):
            write_bytes(line)

    sessions = SessionDirectory() if session else None
    lines = JsonLines(snapshot.database, sessions=sessions)
    with byte_progress("decoding") as advance:
        for blob in decode_logs(
            snapshot,
            paths,
            tables=table or None,
            progress=advance,
            incidents=incidents,
            account=accounts.append,
            sessions=sessions,
            storage=SpillFiles(Path(gettempdir()), SPILL_BYTES),
            ddl=print_ddl if ddl and not account else None,
        ):
            if not account:
                for piece in lines.pieces(blob):
                    write_bytes(piece)
    if account:
        print_json(accounts[0].as_json())
        _check(accounts[0])


def _check(accounting: Accounting) -> None:
    if not accounting.closes:
        raise OlrPgError(
            Code.ACCOUNT_DOES_NOT_CLOSE,
            f"{accounting.vectors_missing} row vectors, {accounting.changes_missing} changes",
        )
