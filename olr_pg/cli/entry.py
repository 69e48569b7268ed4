"""The first module of a process of ``olr-pg``, before anything that takes time to import."""

from __future__ import annotations

import signal


def run() -> None:
    """Run the command line of this process; never returns.

    Until a command begins, Ctrl-C ends the process as it ends any other: there is nothing to clean
    up, and nothing to tell (`group` takes it over then). Where the parent ignores it, so does this.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from olr_pg.appliance.process_setup import tune_process

    tune_process()
    from olr_pg.cli.main import run as run_command_line

    run_command_line()
