"""The demo's source: the simulator, which runs in a separate process and archives logs like a
database.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from pathlib import Path

SEARCH_SECONDS: Final = 0.1
START_SECONDS: Final = 120
STOP_SECONDS: Final = 120


class DemoSource:
    """A simulated order-entry database that runs until `stop` is called.

    Args:
        folder: the folder to which it writes ``logs/``, ``dictionary.json``, ``truth.jsonl``,
            ``tables/`` and ``final/``.
        rate: bytes of redo to write per second.
    """

    def __init__(self, folder: Path, seed: int, rate: int) -> None:
        self.folder = folder
        self._process = subprocess.Popen(  # noqa: S603 - our own command
            [
                *(sys.executable, "-m", "olr_pg", "simulate", "--live", "--json"),
                *("--workload", "orders", "--switch-seconds", "1"),
                *("--seed", str(seed), "--rate", str(rate), "--out", str(folder)),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            # Use a new session, because Ctrl-C must reach only the demo, which then stops the
            # source.
            start_new_session=True,
        )

    def wait_until_archiving(self) -> None:
        """Wait for the dictionary and the first archived log.

        Raises:
            OlrPgError: 8051, the source has ended, or has archived no log within two minutes.
        """
        deadline = time.monotonic() + START_SECONDS
        while not any((self.folder / "logs").glob("*")):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise self._failure()
            time.sleep(SEARCH_SECONDS)

    def pause(self) -> None:
        """Pause the source until `resume` or `stop`."""
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume the paused source."""
        self._process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """Make the source commit its open transactions and archive its redo; then end it.

        Raises:
            OlrPgError: 8051, the source failed.
        """
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            self.resume()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            raise self._failure() from None
        if self._process.returncode:
            raise self._failure()

    def abandon(self) -> None:
        """Kill the source's process."""
        self._process.kill()
        self._process.wait()
        if self._process.stderr is not None:
            self._process.stderr.close()

    def last_commits(self) -> dict[str, int]:
        """Return the SCN of each table's last commit; the source must have stopped."""
        last = defaultdict[str, int](int)
        with (self.folder / "truth.jsonl").open(encoding="utf-8") as lines:
            for line in lines:
                change = json.loads(line)
                if "table" in change:
                    last[change["table"]] = change["commit_scn"]
        return dict(last)

    def _failure(self) -> OlrPgError:
        if self._process.poll() is None:
            self._process.kill()
        _, said = self._process.communicate()
        return OlrPgError(
            Code.DEMO_SOURCE_FAILED, (said or "").strip() or "it was killed", path=str(self.folder)
        )
