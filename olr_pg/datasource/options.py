"""Parses the options of the data source, which Spark passes as texts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.datasource.redo_split import Bounds
from olr_pg.decoding.split import SPLIT_BYTES
from olr_pg.errors import Code, OlrPgError
from olr_pg.scalars import MAX_SCN

if TYPE_CHECKING:
    from collections.abc import Mapping

KNOWN: Final = frozenset(
    {
        "path",
        "paths",
        "dictionary",
        "table",
        "startscn",
        "endscn",
        "splitbytes",
        "maxfilespertrigger",
        "maxbytespertrigger",
    }
)
"""The names of all options, in lower case because Spark's options are not case-sensitive."""


class SourceOptions(NamedTuple):
    """The options of a query.

    Attributes:
        logs: files, directories or globs of archived logs.
        dictionary: the file with the dictionary snapshot; for several containers, one file for
            each.
        table: the table to read, ``OWNER.NAME``; None for all tables except Oracle's own.
        bounds: the commits that are wanted.
        split_bytes: approximate bytes of a log that a task reads.
        max_files: for a stream, the maximum number of logs per batch; None for no limit.
        max_bytes: for a stream, the approximate maximum bytes of redo per batch; None for no limit.
    """

    logs: tuple[str, ...]
    dictionary: tuple[str, ...]
    table: str | None = None
    bounds: Bounds = Bounds()
    split_bytes: int = SPLIT_BYTES
    max_files: int | None = None
    max_bytes: int | None = None


def parse_options(texts: Mapping[str, str]) -> SourceOptions:
    """Parse the options of a query.

    Raises:
        OlrPgError: 6040, an option is missing, unknown or not a number.
    """
    given = {name.lower(): value for name, value in texts.items()}
    unknown = sorted(given.keys() - KNOWN)
    if unknown:
        raise _refused(f"there is no option {', '.join(unknown)}")
    logs = tuple(json.loads(given["paths"])) if "paths" in given else (given.get("path", ""),)
    if not all(logs):
        raise _refused("load() names no logs")
    if not given.get("dictionary"):
        raise _refused("the option dictionary names no file")
    limits = given.keys() & {"maxfilespertrigger", "maxbytespertrigger"}
    if len(limits) > 1:
        raise _refused("only one of maxFilesPerTrigger and maxBytesPerTrigger can be set")
    first, last = _number(given, "startscn", 0), _number(given, "endscn", MAX_SCN)
    return SourceOptions(
        logs=logs,
        dictionary=_files(given["dictionary"]),
        table=given.get("table") or None,
        bounds=Bounds(first_scn=first, last_scn=last),
        split_bytes=max(1, _number(given, "splitbytes", SPLIT_BYTES)),
        max_files=_limit(given, "maxfilespertrigger"),
        max_bytes=_limit(given, "maxbytespertrigger"),
    )


def _files(text: str) -> tuple[str, ...]:
    """Return the files that the option `dictionary` names: one path, or a JSON list of paths."""
    if not text.startswith("["):
        return (text,)
    try:
        named = json.loads(text)
    except ValueError as error:
        raise _refused(f"the option dictionary is not a JSON list: {error}") from error
    if not named or not all(isinstance(one, str) for one in named):
        raise _refused("the option dictionary is not a list of files")
    return tuple(named)


def _number(given: Mapping[str, str], name: str, default: int) -> int:
    text = given.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit()):
        raise _refused(f"the option {name} is not a number: {text}")
    return min(int(text), MAX_SCN)


def _limit(given: Mapping[str, str], name: str) -> int | None:
    number = _number(given, name, MAX_SCN)
    if number == 0:
        raise _refused(f"the option {name} is 0")
    return number if name in given else None


def _refused(why: str) -> OlrPgError:
    return OlrPgError(Code.DATA_SOURCE_OPTION, why)
