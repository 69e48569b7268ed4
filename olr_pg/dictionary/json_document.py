"""Reads a JSON file and validates it against a pydantic model, with coded errors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import orjson
from pydantic import BaseModel, ValidationError

from olr_pg.errors import Code, OlrPgError, system_reason

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_Model = TypeVar("_Model", bound=BaseModel)
_ERRORS_SHOWN: Final = 3
_VALUE_CHARS: Final = 60
_UTF8_BOM: Final = b"\xef\xbb\xbf"


def read_bytes(path: str) -> bytes:
    """Read the bytes of a dictionary file.

    Raises:
        OlrPgError: 3001, the file cannot be read.
    """
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        # A ValueError means that the path contains a NUL character.
        raise OlrPgError(Code.DICTIONARY_UNREADABLE, system_reason(error), file=path) from error


def parse_object(data: bytes, path: str) -> dict[str, Any]:
    """Parse the JSON object in `data`.

    Raises:
        OlrPgError: 3002 it is not JSON; 3003 it is JSON, but not an object.
    """
    try:
        document = orjson.loads(data.removeprefix(_UTF8_BOM))
    except orjson.JSONDecodeError as error:
        raise OlrPgError(
            Code.DICTIONARY_NOT_JSON, error.msg, file=path, line=error.lineno, column=error.colno
        ) from error
    if not isinstance(document, dict):
        raise OlrPgError(
            Code.NOT_A_DICTIONARY, f"expected a JSON object, found {_describe(document)}", file=path
        )
    return document


def validate(model: type[_Model], document: dict[str, Any], path: str) -> _Model:
    """Validate `document`, and return it as a `model`.

    Raises:
        OlrPgError: 3004, with the JSON path of the problem and the expected value.
    """
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise invalid(error, path) from error


def invalid(error: ValidationError, path: str) -> OlrPgError:
    """Return error 3004, with the JSON path of the problem and the expected value."""
    problems = error.errors(include_url=False)
    shown = "; ".join(_explain(problem) for problem in problems[:_ERRORS_SHOWN])
    rest = len(problems) - _ERRORS_SHOWN
    return OlrPgError(
        Code.DICTIONARY_INVALID,
        shown + (f"; and {rest} more" if rest > 0 else ""),
        file=path,
        key=json_path(problems[0]["loc"]),
    )


def json_path(parts: tuple[int | str, ...]) -> str:
    """Return a JSON path such as ``tables[0].columns[2].name`` for a location given as keys and
    indexes.
    """
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".") or "(top level)"


def _explain(problem: ErrorDetails) -> str:
    place = json_path(problem["loc"])
    if problem["type"] == "missing":
        return f"{place}: the key is missing"
    if problem["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return f"{place}: there is no such key"
    message = problem["msg"].removeprefix("Value error, ").removeprefix("Input ")
    return f"{place}: {message}, found {_describe(problem['input'])}"


def _describe(value: object) -> str:
    if isinstance(value, dict):
        return f"an object with the keys {', '.join(map(str, list(value)[:6])) or '(none)'}"
    if isinstance(value, list):
        return f"a list of {len(value)} elements"
    text = orjson.dumps(value).decode()
    return text if len(text) <= _VALUE_CHARS else text[:_VALUE_CHARS] + "…"
