"""Commands of ``olr-pg`` in processes that are forked from one that has imported what they need.

Importing is most of what a command takes that only says what is wrong with its options. The server
is ``python -m tests.cli.fork_server``: it reads an order per line, and answers with its number and
the exit code. What a start by the shell is to show (signals, what is imported, closed pipes) is
tested with one: the fixture `start_cli`.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import typer.main

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

ROOT: Final = Path(__file__).resolve().parents[2]
IMPORTED: Final = (
    "olr_pg.appliance.appliance",
    "olr_pg.cli.main",
    "olr_pg.config.reading",
    "olr_pg.redo.dump.log_text",
    "olr_pg.replicator.decode_once",
    "olr_pg.simulator.simulation",
    "oracledb",
    "rich.markdown",
    "typer.rich_utils",
)


class ForkServer:
    """Runs commands one after the other."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self._process = process
        self._folder = folder
        self._numbers = count()

    def run(
        self, arguments: Sequence[str], folder: Path, environ: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end.

        Args:
            folder: where it runs.
        """
        number = next(self._numbers)
        files = [self._folder / f"{number}.{name}" for name in ("stdout", "stderr")]
        order = {
            "number": number,
            "arguments": list(arguments),
            "folder": str(folder),
            "environ": dict(environ),
            "files": list(map(str, files)),
        }
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        exit_code = self._answer(number)
        said = [file.read_text("utf-8") for file in files]
        for file in files:
            file.unlink()
        return subprocess.CompletedProcess(list(arguments), exit_code, *said)

    def _answer(self, number: int) -> int:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            answered, exit_code = map(int, line.split())
            if answered == number:  # else of a test that did not wait for it
                return exit_code
        raise AssertionError("the server has ended")


@contextmanager
def fork_server(*modules: str) -> Iterator[ForkServer]:
    """A server with a process of its own, which also imports these modules."""
    command = [sys.executable, "-m", "tests.cli.fork_server", *modules]
    with (
        tempfile.TemporaryDirectory(prefix="olr-pg-commands-") as folder,
        subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process,
    ):
        try:
            yield ForkServer(process, Path(folder))
        finally:
            process.kill()


def serve() -> None:
    """Serve until stdin ends; in a forked process, run its command."""
    for name in (*IMPORTED, *sys.argv[1:]):
        import_module(name)
    build_commands_once()
    # Else a process that ends would look at all of it, and so get it in memory of its own.
    gc.freeze()
    for line in sys.stdin:
        order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            become(order)
        _, status = os.waitpid(pid, 0)
        sys.stdout.write(f"{order['number']} {os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


def build_commands_once() -> None:
    """Build the tree of all commands in this process, not in each that is forked."""
    from olr_pg.cli.main import app

    typer.main.get_command = cache(typer.main.get_command)
    typer.main.get_command(app)


def become(order: dict[str, Any]) -> NoReturn:
    """Run a command in this process, as if it had been started for it; never returns."""
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environ"])
    sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115 - for good
    os.dup2(sys.stdin.fileno(), 0)
    for stream, file in enumerate(order["files"], 1):
        # A log may have lines of an earlier process.
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), stream)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["olr-pg", *order["arguments"]]
    from olr_pg.cli.entry import run

    try:
        run()
    except SystemExit as ended:
        end(ended.code)
    raise AssertionError("a command ends its process")


def end(code: object) -> NoReturn:
    """End this process as Python does, but let the kernel have the modules as they are.

    Python would take apart all that was imported, which copies the memory shared with the server.
    """
    if isinstance(code, str):
        sys.stderr.write(f"{code}\n")
    vars(threading)["_shutdown"]()
    vars(atexit)["_run_exitfuncs"]()
    for stream in (sys.stdout, sys.stderr):
        with suppress(ValueError):  # closed
            stream.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    serve()
