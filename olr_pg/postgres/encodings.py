"""Encodes texts of the appliance for a database whose encoding is not UTF8 and may lack some of
their characters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from typing import Any

    from psycopg import Connection

T = TypeVar("T")


def storable(connection: Connection[Any], value: T) -> T:
    r"""Return texts in a form that the server can store: non-ASCII characters as ``\uxxxx``.

    If the server's encoding is UTF8, they are unchanged. Use this for messages and statements,
    never for values of rows.

    Args:
        value: a text, or dicts and lists of texts as in JSON; other values are unchanged.
    """
    if connection.info.parameter_status("server_encoding") == "UTF8":
        return value
    escaped: T = _escaped(value)
    return escaped


def _escaped(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("ascii", "backslashreplace").decode("ascii")
    if isinstance(value, dict):
        return {key: _escaped(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_escaped(part) for part in value]
    return value
