"""``olr-pg decode``: archived logs to JSON Lines."""

from __future__ import annotations

from pathlib import Path
from tempfile import gettempdir
from typing import TYPE_CHECKING, Annotated, Final

import typer

from olr_pg.cli.output import byte_progress, log_to_stderr, print_json, write_bytes
from olr_pg.errors import OlrPgError

if TYPE_CHECKING:
    from olr_pg.replicator.accounting import Accounting

SPILL_BYTES: Final = 32 << 20
"""Bytes of unfinished transactions past which the largest wait in the temporary directory."""


def parse_log(text: str) -> Path:
    """A LOG argument; the empty one of a variable that is not set would be this directory."""
    if not text:
        raise typer.BadParameter("it is empty")
    return Path(text)


LogArguments = Annotated[
    list[Path],
    typer.Argument(
        metavar="LOG...", help="Archived logs: files, directories or globs.", parser=parse_log
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
            help="Print with each begin whose session it was: user, machine, program.",
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
    from olr_pg.cli.render import render_pieces
    from olr_pg.cli.values import value_renderer
    from olr_pg.dictionary.loader import load_snapshot
    from olr_pg.redo.sessions import SessionDirectory
    from olr_pg.replicator.decode import decode_logs
    from olr_pg.replicator.spill import SpillFiles
    from olr_pg.wire.frames import ByteOrder

    snapshot = load_snapshot(str(dictionary))
    render_value = value_renderer(snapshot.database)
    paths = [str(path) for path in logs]
    incidents = incident_dir or Path(gettempdir())
    accounts: list[Accounting] = []
    sessions = SessionDirectory() if session else None
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
        ):
            if not account:
                for piece in render_pieces(blob, ByteOrder.LITTLE, render_value, sessions):
                    write_bytes(piece)
    if account:
        print_json(accounts[0].as_json())
        _check(accounts[0])


def _check(accounting: Accounting) -> None:
    if not accounting.closes:
        raise OlrPgError(
            2070,
            f"{accounting.vectors_missing} row vectors, {accounting.changes_missing} changes",
        )
