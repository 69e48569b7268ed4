"""``olr-pg demo``: see it work."""

from __future__ import annotations

import typer

from olr_pg.cli.printing import log_to_stderr


def demo() -> None:
    """Let a simulated Oracle take orders, replicate it into an embedded PostgreSQL, compare.

    PostgreSQL goes on afterwards, for a look; how to end it is said.
    """
    from olr_pg.appliance.demo_run import run_demo

    log_to_stderr()
    raise typer.Exit(run_demo())
