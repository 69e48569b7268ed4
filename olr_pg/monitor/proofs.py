"""Proofs: the results of continuous verification. A proof contains the SCN as of which a table was
last compared with the source, and the number of differences.

``olr-pg verify --continuous`` writes proofs to a file of `context.data`; the running appliance
reads this file for its status, its page and its metrics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import orjson
import structlog

from olr_pg.files.durable import replace_file

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

FILE_NAME: Final = "verified.json"

_log = structlog.get_logger(__name__)


class Proof(NamedTuple):
    """The result of comparing one table.

    Attributes:
        scn: the SCN of the last comparison; 0 if there was no comparison, or if its SCN is unknown.
        at: the time of the last comparison, in seconds since 1970; 0 if there was none.
        rows: number of compared rows of the source.
        differences: number of rows that differed in both comparisons, as of two SCNs.
        lacking: number of rows that differ only in LOB values that ``olr_pg.incomplete`` lists as
            missing.
        tried_at: time of the last attempt.
        failure: the reason why the last attempt failed; empty if it succeeded.
        mended: number of differing rows that were repaired.
    """

    table: str
    scn: int = 0
    at: float = 0.0
    rows: int = 0
    differences: int = 0
    lacking: int = 0
    tried_at: float = 0.0
    failure: str = ""
    mended: int = 0

    @property
    def is_equal(self) -> bool:
        """Return whether the table was compared and no row differed."""
        return bool(self.at) and not self.failure and not self.differences


def read_proofs(path: Path) -> dict[str, Proof]:
    """Read the results of all tables; empty if the file is missing or damaged."""
    try:
        lines = orjson.loads(path.read_bytes())
        return {one["table"]: Proof(**one) for one in lines}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError):
        _log.warning(
            "could not read the results of earlier verifications; verification starts over",
            file=str(path),
        )
        return {}


class ProofFile:
    """The results of verifications in a file; read again when it has changed; thread-safe."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: tuple[int, dict[str, Proof]] = (0, {})

    def read(self) -> dict[str, Proof]:
        """Return the current results of all tables."""
        try:
            written = self._path.stat().st_mtime_ns
        except OSError:
            return {}
        if written != self._known[0]:
            self._known = written, read_proofs(self._path)
        return self._known[1]


def write_proofs(path: Path, proofs: Iterable[Proof]) -> None:
    """Write the results of all tables, durably.

    Raises:
        OSError: the file cannot be written.
    """
    replace_file(path, orjson.dumps([one._asdict() for one in proofs]))
