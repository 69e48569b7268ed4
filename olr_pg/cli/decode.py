"""``olr-pg decode``: archived logs to JSON Lines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from olr_pg.cli.output import byte_progress, log_to_stderr, write_bytes

LogArguments = Annotated[
    list[Path],
    typer.Argument(metavar="LOG...", help="Archived logs: files, directories or globs."),
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
) -> None:
    """Print committed changes as JSON Lines, one element per line, in delivery order.

    Each transaction is a "begin", its changes and a "commit".
    """
    log_to_stderr()
    from olr_pg.cli.render import render_blob
    from olr_pg.cli.values import value_renderer
    from olr_pg.dictionary.loader import load_snapshot
    from olr_pg.replicator.decode import decode_logs
    from olr_pg.wire.frames import ByteOrder

    snapshot = load_snapshot(str(dictionary))
    render_value = value_renderer(snapshot.database)
    paths = [str(path) for path in logs]
    with byte_progress("decoding") as advance:
        for blob in decode_logs(snapshot, paths, tables=table or None, progress=advance):
            write_bytes(render_blob(blob, ByteOrder.LITTLE, render_value))
