"""``olr-pg demo``: shows replication with a simulated Oracle."""

from __future__ import annotations

from typing import Annotated

import typer

from olr_pg.cli.printing import log_to_stderr, print_line


def demo(
    *,
    clean: Annotated[
        bool,
        typer.Option(
            "--clean",
            help="Do not run a demo. Remove the files of earlier demos and stop their PostgreSQL.",
        ),
    ] = False,
) -> None:
    """Replicate a simulated Oracle into an embedded PostgreSQL, and compare both.

    PostgreSQL keeps running afterwards. The command prints how to connect to it and how to stop it.
    """
    log_to_stderr()
    if clean:
        _clean()
        return
    from olr_pg.appliance.demo_run import run_demo

    raise typer.Exit(run_demo())


def _clean() -> None:
    from rich.filesize import decimal

    from olr_pg.appliance.demo_removal import remove_demos

    kept = found = False
    for one in remove_demos():
        found = True
        if one.kept:
            kept = True
            print_line(f"kept: {one.folder}: {one.kept}")
        else:
            ended = ", its PostgreSQL was stopped" if one.stopped else ""
            print_line(f"removed: {one.folder}, {decimal(one.size)}{ended}", at_once=True)
    if not found:
        print_line("there are no files of earlier demos")
    if kept:
        raise typer.Exit(1)
