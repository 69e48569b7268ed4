"""The processes that compile ahead while the tests' own collect them.

Nothing of the product is imported here: they start before the first process of the tests.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.forked_workers import ForkedWorkers

_SHARES: Final = ("decoding", "applying")
"""What a process each compiles: one on each of two cores."""


class CompilingAhead:
    """Both shares of `tests.compiling`, each in a process of its own.

    Attributes:
        workers: imports the tests meanwhile.
    """

    def __init__(self) -> None:
        root = Path(__file__).parent.parent
        command = [sys.executable, "-m", "tests.compiling"]
        self._compilers = [subprocess.Popen([*command, share], cwd=root) for share in _SHARES]
        self.workers = ForkedWorkers()

    def wait(self) -> None:
        """Return once all is compiled.

        Raises:
            CalledProcessError: one of them failed; its traceback is on stderr.
        """
        for compiler in self._compilers:
            if compiler.wait() != 0:
                raise subprocess.CalledProcessError(compiler.returncode, compiler.args)

    def end(self) -> None:
        """End what is still at work."""
        for compiler in self._compilers:
            compiler.kill()
            compiler.wait()
        self.workers.end()
