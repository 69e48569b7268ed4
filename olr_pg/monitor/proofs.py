"""Proofs: as of which SCN each table was found equal to the source's, and what differed.

``olr-pg verify --continuous`` writes them into a file of `context.data`; the running appliance
reads them for its status, its page and its metrics.
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
    """What is known of one table.

    Attributes:
        scn: as of which both sides were compared last; 0 where they never were, or where nobody
            knows.
        at: when, in seconds since 1970; 0 where they never were.
        rows: of the source then.
        differences: rows that differed at two SCNs.
        lacking: rows that lacked nothing but LOB values, as the target knows.
        tried_at: when that was tried last.
        failure: why they could not be compared then; empty where they could.
        mended: rows that differed, and were mended then.
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
        """Tell whether both sides were compared, and were the same."""
        return bool(self.at) and not self.failure and not self.differences


def read_proofs(path: Path) -> dict[str, Proof]:
    """Read what is known of each table; nothing where there is no such file, or a damaged one."""
    try:
        lines = orjson.loads(path.read_bytes())
        return {one["table"]: Proof(**one) for one in lines}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError):
        _log.warning("what was verified before cannot be read: it begins anew", file=str(path))
        return {}


class ProofFile:
    """Reads the file where it has been written anew; used by several threads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: tuple[int, dict[str, Proof]] = (0, {})

    def read(self) -> dict[str, Proof]:
        """Return what is known of each table by now."""
        try:
            written = self._path.stat().st_mtime_ns
        except OSError:
            return {}
        if written != self._known[0]:
            self._known = written, read_proofs(self._path)
        return self._known[1]


def write_proofs(path: Path, proofs: Iterable[Proof]) -> None:
    """Write what is known of each table, durably.

    Raises:
        OSError: it cannot be written.
    """
    replace_file(path, orjson.dumps([one._asdict() for one in proofs]))
