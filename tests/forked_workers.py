"""The tests' own processes, forked from one that has imported the tests.

Importing all tests takes four seconds of processor time, and each of the tests' processes would do
it again. So one process collects them all, and is then the "Python" that xdist starts: this file,
run as a program, passes its standard streams to that process, which forks a worker onto them.
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
    """The process from which workers are forked; it begins to collect the tests at once.

    Attributes:
        spec: what xdist calls ``--tx``: a worker that is started by it waits for the collection.
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
        """Fork no more workers; return when those that there are have ended."""
        self._server.communicate()
        self._folder.cleanup()


def serve(listening: int) -> None:
    """Collect the tests; fork a worker for each connection until standard input ends.

    Returns in the workers as well, when they have ended.
    """
    import gc
    import select

    import pytest

    # What cannot be collected is reported by the workers.
    pytest.main(["--collect-only", "--quiet", "--numprocesses=0"])
    gc.freeze()
    gc.disable()  # as tests/conftest.py does, which the workers do not import again
    # Ctrl-C ends the workers and the first process, and so standard input.
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
        # The worker keeps it open until it ends.
        client.close()
        for stream in streams:
            os.close(stream)
    listener.close()
    with suppress(ChildProcessError):
        while True:
            os.wait()


def _work(code: str, streams: list[int]) -> None:
    """Run the code as ``python -c`` would, with these streams."""
    from types import ModuleType

    for stream, place in zip(streams, _STREAMS, strict=True):
        os.dup2(stream, place)
        os.close(stream)
    main = sys.modules["__main__"] = ModuleType("__main__")
    exec(code, vars(main))


def _pass_streams(path: str, code: str) -> None:
    """Let a worker be forked onto this process's streams; return when it has ended."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        socket.send_fds(connection, [code.encode()], _STREAMS)
        for stream in _STREAMS:
            os.close(stream)
        connection.recv(1)


if __name__ == "__main__":
    _pass_streams(sys.argv[1], sys.argv[-1])
