"""Forks the worker processes of the tests from one process that has imported all tests.

Importing all tests takes four seconds of processor time, and each worker would do it again. So one
process, the server, imports (collects) all tests. xdist starts this file instead of Python. Run as
a program, this file passes its standard streams to the server, which forks a worker that uses them.
"""

from __future__ import annotations

import os
import shlex
import signal
import socket
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

_STREAMS: Final = (0, 1, 2)
_ARGUMENTS_BYTES_MAX: Final = 65_536


class ForkedWorkers:
    """Starts the server, which collects the tests at once.

    Attributes:
        spec: the value for the option ``--tx`` of xdist. A worker that xdist starts with it waits
            until the tests are collected.
    """

    def __init__(self) -> None:
        import subprocess

        self._folder = tempfile.TemporaryDirectory(prefix="olr-pg-workers-")
        path = str(Path(self._folder.name) / "socket")
        program = [sys.executable, "-S", "-E", str(Path(__file__).resolve()), path]
        self.spec = f"popen//python={shlex.join(program)}"
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            listener.listen()
            serve = f"from tests.forked_workers import serve; serve({listener.fileno()})"
            self._server = subprocess.Popen(
                [sys.executable, "-c", serve],
                cwd=Path(__file__).parent.parent,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                pass_fds=[listener.fileno()],
            )

    def end(self) -> None:
        """Stop forking workers. Return when the existing workers have ended."""
        self._server.communicate()
        self._folder.cleanup()


def serve(listening: int) -> None:
    """Collect the tests. Then fork a worker for each connection, until standard input ends.

    In each worker, it returns when the worker has done its work.
    """
    import gc
    import select

    import pytest

    # The workers report the tests that cannot be collected.
    pytest.main(["--collect-only", "--quiet", "--numprocesses=0"])
    gc.freeze()
    gc.disable()  # as tests/conftest.py does; the workers do not import it again
    # Ctrl-C ends the workers and the process that started this one, so standard input ends.
    interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)
    listener = socket.socket(fileno=listening)
    while listening in select.select([listening, 0], [], [])[0]:
        client, _ = listener.accept()
        sent, streams, _, _ = socket.recv_fds(client, _ARGUMENTS_BYTES_MAX, len(_STREAMS))
        if os.fork() == 0:
            listener.close()
            signal.signal(signal.SIGINT, interrupt)
            _work(sent.decode(), streams)
            return
        # The worker keeps its copy open until it ends.
        client.close()
        for stream in streams:
            os.close(stream)
    listener.close()
    with suppress(ChildProcessError):
        while True:
            os.wait()


def _work(code: str, streams: list[int]) -> None:
    """Run code as ``python -c`` does, with these files as its standard streams."""
    from types import ModuleType

    for stream, place in zip(streams, _STREAMS, strict=True):
        os.dup2(stream, place)
        os.close(stream)
    main = sys.modules["__main__"] = ModuleType("__main__")
    exec(code, vars(main))


def _pass_streams(path: str, code: str) -> None:
    """Have the server fork a worker that uses this process's streams. Return when it has ended."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        socket.send_fds(connection, [code.encode()], _STREAMS)
        for stream in _STREAMS:
            os.close(stream)
        connection.recv(1)


if __name__ == "__main__":
    _pass_streams(sys.argv[1], sys.argv[-1])
