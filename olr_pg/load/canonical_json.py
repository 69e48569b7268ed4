"""Prints JSON as jsonb does: keys in PostgreSQL's order, without duplicates, numbers as numeric.

The functions work without recursion, because PostgreSQL accepts documents that are nested more
deeply than Python's stack allows.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Final, TypeAlias

from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Iterator

_Container: TypeAlias = "list[_Document] | dict[str, _Document]"
_Document: TypeAlias = "str | _Container"
"""A container (a list or dict), or a string, which is a scalar in its printed form."""

_JSONB_VERSION: Final = b"\x01"

_BLANK: Final = r"[ \t\n\r]*"
_STRING: Final = r'"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*"'
_NUMBER: Final = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_TOKEN: Final = re.compile(
    rf"{_STRING}(?:{_BLANK}:)?|\[{_BLANK}\]|\{{{_BLANK}\}}|[\[\]{{}},]|{_NUMBER}|true|false|null"
    r"|[^ \t\n\r]"
)
"""Matches one token: a string, or a key with its colon; an empty container; punctuation; a number;
a word. Any other character is also matched, and is refused later.
"""


_ENDS: Final[dict[str, type]] = {"]": list, "}": dict}

_NUMERIC_WHOLE_MAX: Final = 131_072
_NUMERIC_SCALE_MAX: Final = 16_383
"""Limits of PostgreSQL's numeric: digits before the decimal point, and after it."""

_SHOWN_MAX: Final = 40


def canonical_json(raw: bytes) -> bytes:
    """Convert a jsonb value as the applier sends it (version, text) to the form that PostgreSQL
    returns.

    Raises:
        OlrPgError: 5017, the value is not valid JSON, or PostgreSQL would refuse it.
    """
    return _JSONB_VERSION + "".join(_printed(_document(raw[1:].decode()))).encode()


def _document(text: str) -> _Document:
    root: list[_Document] = []
    here: _Container = root
    above = list[_Container]()
    key: str | None = None
    waits = True  # True while a value, or the key of a value, must come next
    for part in _TOKEN.findall(text):
        if part == "," or part in _ENDS:
            if waits or here is root or not isinstance(here, _ENDS.get(part, object)):
                raise _no_json()
            waits = part == ","
            here = here if waits else above.pop()
            continue
        if not waits:
            raise _no_json()
        if isinstance(here, dict) and key is None:
            key = _key(part)
            continue
        value = _begun(part)
        if isinstance(here, list):
            here.append(value)
        else:
            here[key or ""] = value  # if keys are equal, the last one counts
            key = None
        if isinstance(value, str):
            waits = False
        else:
            above.append(here)
            here = value
    if waits or here is not root:
        raise _no_json()
    return root[0]


def _key(part: str) -> str:
    if len(part) < 2 or part[-1] != ":":
        raise _no_json()
    return _decoded(part[:-1].rstrip())


def _begun(part: str) -> _Document:
    """Return a scalar or an empty container in printed form; for another container, return a new
    container without elements.
    """
    match part[0]:
        case '"' if part[-1] == '"' != part:
            return _quoted(_decoded(part)) if "\\" in part else part
        case "[":
            return "[]" if len(part) > 1 else []
        case "{":
            return "{}" if len(part) > 1 else {}
        case "t" | "f" | "n" if len(part) > 1:
            return part
    if part[-1] not in "0123456789":
        raise _no_json()
    if part.isdigit() and len(part) <= _NUMERIC_WHOLE_MAX:
        return part
    return _numeric(part)


def _numeric(part: str) -> str:
    """Print a number as PostgreSQL's numeric does. Numbers outside of numeric's limits are refused,
    so the text cannot become very long.
    """
    try:
        number = Decimal(part)
    except InvalidOperation as error:
        raise _no_numeric(part) from error
    exponent = number.as_tuple().exponent
    is_large = number != 0 and number.adjusted() >= _NUMERIC_WHOLE_MAX
    if is_large or -int(exponent) > _NUMERIC_SCALE_MAX:
        raise _no_numeric(part)
    return f"{abs(number) if number == 0 else number:f}"


def _no_numeric(part: str) -> OlrPgError:
    return OlrPgError(
        Code.VALUE_NOT_EXPRESSIBLE_IN_POSTGRES,
        f"jsonb cannot store a number as large or as precise as {part[:_SHOWN_MAX]}",
    )


def _no_json() -> OlrPgError:
    return OlrPgError(
        Code.VALUE_NOT_EXPRESSIBLE_IN_POSTGRES, "the text for a jsonb column is not JSON"
    )


def _printed(document: _Document) -> Iterator[str]:
    """Yield the text of the document in pieces."""
    waiting = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            yield "["
            waiting.append("]")
            for child in reversed(value):
                waiting += [child, ", "]
            waiting.pop()
        else:
            yield "{"
            waiting.append("}")
            for key in sorted(value, key=_rank, reverse=True):
                waiting += [value[key], f"{_quoted(key)}: ", ", "]
            waiting.pop()


def _rank(key: str) -> tuple[int, bytes]:
    """Return the sort key of an object's key: its length in bytes, then its bytes."""
    raw = key.encode()
    return len(raw), raw


def _decoded(string: str) -> str:
    if "\\" not in string:
        return string[1:-1]
    text: str = json.loads(string)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(text[error.start]):04x}"
        raise OlrPgError(
            Code.VALUE_NOT_EXPRESSIBLE_IN_POSTGRES,
            f"jsonb cannot store half of a surrogate pair: {half}",
        ) from error
    return text


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
