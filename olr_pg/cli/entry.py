"""The entry point of a process of ``olr-pg``; it imports no module that takes time to load."""

from __future__ import annotations

import signal


def run() -> None:
    """Run the command line of this process; never returns.

    Until a command begins, Ctrl-C ends the process without a message, because there is nothing to
    clean up. After that, `group` handles Ctrl-C. If the parent process ignores Ctrl-C, this process
    does too.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from olr_pg.appliance.process_setup import tune_process

    tune_process()
    from olr_pg.cli.main import run as run_command_line

    run_command_line()
