"""Parses the text of a configuration file: JSON with JSON5's additions, or TOML.

Each error of a text names the line, so that the reader finds the place in an editor.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any, Final

import json5

from olr_pg.errors import Code, OlrPgError, system_reason

BYTES_MAX: Final = 16 << 20
"""Maximum size of a configuration file. A larger file was passed by mistake."""

_UTF_16: Final = b"\xff\xfe", b"\xfe\xff"
"""The byte order marks that begin a file in UTF-16."""

_YAML: Final = frozenset({".yaml", ".yml"})

_TOKEN: Final = re.compile(
    r"""//[^\n]*|/\*.*?\*/|(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
    r"""|(?P<sign>[{}\[\]])|(?P<name>[\w$]+)""",
    re.DOTALL,
)
_COLON: Final = re.compile(r"\s*:")
_ESCAPE: Final = re.compile(
    r"""\\(?:(?P<known>["'\\/bfnrtv\n\r\u2028\u2029]|0(?![0-9])|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4})|.)""",
    re.DOTALL,
)
"""Matches a backslash and what follows it. The group `known` matches the escapes that JSON5 defines
(its section 5.1). Before any other character, JSON5 only drops the backslash.
"""

_JSON5_PLACE: Final = re.compile(r"<string>:(\d+) (.*) at column (\d+)", re.DOTALL)
"""The form of the JSON5 parser's messages."""


class SyntaxProblem(Exception):  # noqa: N818 - it is a problem of the file, not of the program
    """Raised for a text that is neither JSON nor TOML; its text says where and what is wrong."""


def read_text(path: Path) -> str:
    """Read a configuration file.

    Raises:
        OlrPgError: 1001, it cannot be read, is too large or is not UTF-8.
    """
    try:
        with path.open("rb") as file:
            content = file.read(BYTES_MAX + 1)
    except OSError as error:
        raise OlrPgError(Code.CONFIG_UNREADABLE, system_reason(error), file=str(path)) from error
    if len(content) > BYTES_MAX:
        raise OlrPgError(
            Code.CONFIG_UNREADABLE,
            f"it is larger than {BYTES_MAX >> 20} MiB, so it is not a configuration file",
            file=str(path),
            action="check the path given with --config or --file",
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        what = "it is UTF-16 text" if content.startswith(_UTF_16) else "it is not UTF-8 text"
        raise OlrPgError(
            Code.CONFIG_UNREADABLE,
            what,
            file=str(path),
            line=content.count(b"\n", 0, error.start) + 1,
            offset=error.start,
            action="save the file as UTF-8",
        ) from error


def parse(text: str, file: str) -> Any:
    """Parse the text of a configuration file.

    Args:
        file: its name; the suffix ``.toml`` means TOML.

    Raises: SyntaxProblem: it cannot be parsed.
    """
    if file.endswith(".toml"):
        return _parse_toml(text)
    # Try plain JSON first: the JSON5 parser is written in Python and a hundred times slower.
    try:
        return json.loads(text, object_pairs_hook=_object)
    except (ValueError, RecursionError):
        try:
            return _parse_json5(text)
        except SyntaxProblem as problem:
            if Path(file).suffix.lower() not in _YAML:
                raise
            hint = "; YAML is not supported, write JSON or TOML"
            raise SyntaxProblem(f"{problem}{hint}") from None


def _parse_toml(text: str) -> Any:
    try:
        return tomllib.loads(text)
    except RecursionError:
        reason = "the tables are nested too deeply"
    except tomllib.TOMLDecodeError as error:
        end = f"at line {text.rstrip().count(chr(10)) + 1}, the end of the file"
        reason = str(error).replace("at end of document", end)
    raise SyntaxProblem(f"expected TOML: {reason}")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object from its members. Raise an error for a duplicate key; the text is then parsed
    as JSON5, where `_check_keys` reports the key.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError
    return found


def _parse_json5(text: str) -> Any:
    if not text.strip():
        raise SyntaxProblem("the file is empty")
    _check_escapes(text)
    _check_keys(text)
    try:
        return json5.loads(text, allow_duplicate_keys=False)
    except ValueError as error:
        reason = str(error)
        place = _JSON5_PLACE.fullmatch(reason)
        if place is not None:
            line, words, column = place.groups()
            reason = f"line {line}, column {column}: {words[:1].lower()}{words[1:]}"
    except RecursionError:
        reason = "the objects are nested too deeply"
    raise SyntaxProblem(f"expected JSON (comments and trailing commas allowed): {reason}")


def _check_escapes(text: str) -> None:
    """Reject a backslash that begins no escape. JSON5 ignores it, so a password or a path would
    silently lose it.
    """
    for token in _TOKEN.finditer(text):
        for escape in _ESCAPE.finditer(token["string"] or ""):
            if escape["known"] is None:
                raise SyntaxProblem(
                    f"expected JSON: {_place(text, token.start('string') + escape.start())}: a"
                    " backslash in a text that begins no escape; write it twice if the text"
                    " contains a backslash"
                )


def _check_keys(text: str) -> None:
    """Reject an object with two equal keys, because the parsers would not report their line."""
    objects: list[dict[str, int] | None] = []
    for token in _TOKEN.finditer(text):
        sign, name = token["sign"], token["name"] or (token["string"] or "")[1:-1]
        if sign in ("{", "["):
            objects.append({} if sign == "{" else None)
        elif sign:
            del objects[-1:]
        elif name and objects and objects[-1] is not None and _COLON.match(text, token.end()):
            first = objects[-1].setdefault(name, token.start())
            if first != token.start():
                raise SyntaxProblem(
                    f"expected JSON: {_place(text, token.start())}: the key {json.dumps(name)}"
                    f" is already in line {text.count(chr(10), 0, first) + 1}"
                )


def _place(text: str, at: int) -> str:
    line = text.count("\n", 0, at) + 1
    return f"line {line}, column {at - text.rfind(chr(10), 0, at)}"
