"""The entry point of a process of ``olr-pg``; it imports no module that takes time to load."""

from __future__ import annotations

import io
import os
import signal
import sys


def run() -> None:
    """Run the command line of this process; never returns.

    Until a command begins, Ctrl-C ends the process without a message, because there is nothing to
    clean up. When a command has begun, `group` handles Ctrl-C. If the parent process ignores
    Ctrl-C, this process does too.
    """
    _open_closed_streams()
    _buffer_stdout()
    _escape_foreign_characters()
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from olr_pg.appliance.process_setup import tune_process

    tune_process()
    from olr_pg.cli.main import run as run_command_line

    run_command_line()


def _buffer_stdout() -> None:
    """Let stdout write all bytes that it is given, also with PYTHONUNBUFFERED.

    Python's unbuffered stream makes one system call for each text, and ignores that a full disk
    took only a part of it. Each line is still written at once.
    """
    buffer: object = getattr(sys.stdout, "buffer", None)
    if isinstance(sys.stdout, io.TextIOWrapper) and isinstance(buffer, io.RawIOBase):
        encoding, errors = sys.stdout.encoding, sys.stdout.errors
        sys.stdout.detach()
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(buffer), encoding, errors, line_buffering=True
        )


def _escape_foreign_characters() -> None:
    r"""Make the standard streams write a character that their encoding lacks as an escape such as
    ``\u2026``, instead of raising an error. The locale can be C, or one of a single-byte set.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not stream.encoding.lower().startswith("utf"):
            stream.reconfigure(errors="backslashreplace")


def _open_closed_streams() -> None:
    """Open /dev/null in place of each standard stream that the parent process has closed.

    Otherwise the next opened file would get the number of the stream. A library or a child process
    that writes to this number would then write into that file.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # The system assigns the lowest free number: the number of the stream.
            stream = open(os.devnull, mode, encoding="utf-8")  # noqa: PTH123, SIM115 - for good
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)
