"""Stores the progress of continuous verification in each table, and the rows that differ.

Two files in `context.data` contain them, so that verification continues there after a restart. The
files contain values of rows. So other users of the host cannot read the files, and the files are
encrypted if a key is configured.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson
import structlog

from olr_pg.files.durable import replace_file
from olr_pg.files.sealed import sealed_bytes, stored_rows
from olr_pg.load.verification.differences import FORMAT, STATE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FILE_NAME: Final = "walks.json"
DIFFERENCES: Final = "differences.jsonl"
"""The file with the rows that differ, for `olr-pg repair`."""

ROWS_KEPT_MAX: Final = 1_000
"""Maximum number of differing rows of one table in the file."""

_log = structlog.get_logger(__name__)


class Walk(NamedTuple):
    """An unfinished walk through a table.

    Attributes:
        shape: names and types of the key's columns; if they change, the walk starts again.
        after: the last compared key, as an image; None at the beginning.
        scn, at: the lowest SCN as of which a range was compared, and the time of the first
            comparison; 0 if no range was compared.
        rows, differences, lacking, mended: the counts of this walk so far; see `Proof`.
    """

    shape: tuple[str, ...]
    after: bytes | None = None
    scn: int = 0
    at: float = 0.0
    rows: int = 0
    differences: int = 0
    lacking: int = 0
    mended: int = 0


class WalkFile:
    """The walks of all tables; used by one thread.

    Args:
        directory: the directory of the target.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / FILE_NAME
        self._walks = self._read()

    def _read(self) -> dict[str, Walk]:
        try:
            found = orjson.loads(stored_rows(self._path))
            return {name: _walk(one) for name, one in found.items()}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            _log.warning(
                "could not read the progress of the comparison: starting over", file=str(self._path)
            )
            return {}

    def of(self, table: str, shape: Sequence[str]) -> Walk:
        """Return the walk of a table; return a new walk if there is none, or if `shape` has
        changed.
        """
        known = self._walks.get(table)
        return known if known is not None and known.shape == tuple(shape) else Walk(tuple(shape))

    def is_unfinished(self, table: str) -> bool:
        """Return whether a walk has begun."""
        return table in self._walks

    def put(self, table: str, walk: Walk | None) -> None:
        """Store the progress of a walk durably. If `walk` is None, the walk has ended, and its
        record is deleted.

        Raises:
            OSError: the file cannot be written.
        """
        if walk is not None:
            self._walks[table] = walk
        elif self._walks.pop(table, None) is None:
            return
        walks = {
            name: {**one._asdict(), "after": one.after and base64.b64encode(one.after).decode()}
            for name, one in self._walks.items()
        }
        replace_file(self._path, sealed_bytes(orjson.dumps(walks)))


def _walk(known: dict[str, Any]) -> Walk:
    after = known["after"] and base64.b64decode(known["after"], validate=True)
    return Walk(**{**known, "shape": tuple(known["shape"]), "after": after})


class DifferenceFile:
    """The rows that differ, by table, in the form that `olr-pg repair` reads.

    Args:
        directory: the directory of the target.
    """

    def __init__(self, directory: Path, subscription: str) -> None:
        self._path = directory / DIFFERENCES
        self._head = {"format": FORMAT, "subscription": subscription}

    def put(self, table: str, lines: Sequence[dict[str, Any]], *, is_new: bool) -> None:
        """Store the differing rows of a table.

        Args:
            lines: the line of the table, then a line for each row; empty if no row differs. The
                file can contain several such groups for a table.
            is_new: True to replace the rows that an earlier walk found; False to add to them.

        Raises:
            OSError: the file cannot be written.
        """
        if not lines and not is_new:
            return  # Most ranges have no differences: do not read the file for them.
        known = self._read()
        if not lines and table not in known:
            return
        before = known.pop(table, [])
        if is_new or (lines and before and lines[0]["columns"] != before[0]["columns"]):
            before = []
        # Rows keep the state that the target had during their own comparison: a repair needs it.
        if lines and before:
            head = next(line for line in reversed(before) if "columns" in line)
            lines = lines[all(head[key] == lines[0][key] for key in STATE) :]
        known[table] = _bounded([*before, *lines])
        written = [self._head, *(line for one in known.values() for line in one)]
        data = b"".join(orjson.dumps(line, default=str) + b"\n" for line in written)
        replace_file(self._path, sealed_bytes(data))

    def _read(self) -> dict[str, list[Any]]:
        known: dict[str, list[Any]] = {}
        try:
            lines = [orjson.loads(line) for line in stored_rows(self._path).splitlines()]
        except (OSError, ValueError):
            return {}
        if lines[:1] != [self._head]:
            return {}
        for line in lines[1:]:
            if "columns" in line:
                own = known.setdefault(line["table"], [])
            own.append(line)
        return known


def _bounded(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the lines of a table up to the row with the number `ROWS_KEPT_MAX`."""
    rows, kept = 0, list[dict[str, Any]]()
    for line in lines:
        if rows == ROWS_KEPT_MAX:
            break
        rows += "columns" not in line
        kept.append(line)
    return kept
