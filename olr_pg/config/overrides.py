"""Overrides keys of the configuration by environment variables:
``OLR_PG_CONTEXT__MEMORY__MAX_MB=1024``.

The name of a variable is ``OLR_PG_``, followed by the parts of the key in capitals, with ``_`` for
``-``, joined by ``__``. A part that is a number is an index in a list. Variables without ``__``
have other purposes. If the key accepts text, the value is plain text; otherwise it is JSON. Objects
and lists are always JSON.
"""

from __future__ import annotations

import copy
import json
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

PREFIX: Final = "OLR_PG_"
_JOIN: Final = "__"
_NAME: Final = re.compile(rf"{PREFIX}[A-Z0-9]+(?:_[A-Z0-9]+)*(?:__[A-Z0-9]+(?:_[A-Z0-9]+)*)+")
_UNKNOWN: Final = "expected the name of a configuration key; `olr-pg config schema` prints all keys"

_Schema = dict[str, Any]


class OverrideError(ValueError):
    """Raised for a variable that cannot override a key. It does not contain the variable's value,
    which may be a secret.
    """

    def __init__(self, name: str, expected: str) -> None:
        super().__init__(f"{name}: {expected}")
        self.name, self.expected = name, expected


def variable_of(key: str) -> str:
    """Return the name of the variable that overrides a key such as ``context.memory.max-mb``."""
    return PREFIX + key.replace(".", _JOIN).replace("-", "_").upper()


def overriding(environ: Iterable[str]) -> list[str]:
    """Return the names of the environment variables that override keys. A variable for a whole
    object comes before the variables for the object's keys.
    """
    return sorted(name for name in environ if name.startswith(PREFIX) and _JOIN in name)


def override(data: Any, environ: Mapping[str, str], schema: _Schema) -> Any:
    """Return the configuration with the values of the environment variables; empty variables are
    ignored.

    Args:
        data: the value of the configuration file; it is not modified.
        schema: the JSON Schema of the configuration.

    Raises:
        OverrideError: a variable names no key, or a list item that the file does not have.
    """
    result = copy.deepcopy(data)
    for name in overriding(environ):
        # Read each variable by its name: `environ` records which variables are read, so that they
        # can be hidden from child processes.
        text = environ[name]
        if text:
            _set(result, name, text, schema)
    return result


def _set(data: Any, name: str, text: str, schema: _Schema) -> None:
    if not _NAME.fullmatch(name):
        raise OverrideError(name, _UNKNOWN)
    path = [part.lower().replace("_", "-") for part in name.removeprefix(PREFIX).split(_JOIN)]
    found = [schema]
    for part in path:
        found = list(_below(found, part, schema))
    if not found:
        raise OverrideError(name, _UNKNOWN)
    place = data
    for part in path[:-1]:
        at = _place(place, part, name)
        if isinstance(place, dict) and place.get(part) is None:
            place[part] = {}
        place = place[at]
    place[_place(place, path[-1], name)] = _value(text, found)


def _place(container: Any, part: str, name: str) -> Any:
    """Return the key or the index that a part of a name stands for. Raise an error if the container
    is not an object or list that can have it.
    """
    if isinstance(container, dict) and not part.isdigit():
        return part
    if isinstance(container, list) and part.isdigit() and int(part) < len(container):
        return int(part)
    raise OverrideError(name, f"the file has no entry to which `{part}` can be added")


def _value(text: str, schemas: list[_Schema]) -> Any:
    types = {one for schema in schemas for one in _types(schema)}
    is_json = "string" not in types or (text[0] in "[{" and types & {"array", "object"})
    if is_json:
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            pass  # the validation reports the error
    return text


def _types(schema: _Schema) -> list[str]:
    """Return the JSON types that a schema allows."""
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", [schema.get("const")])
        return ["string" if isinstance(value, str) else "number" for value in values]
    found = schema.get("type", "string")
    return found if isinstance(found, list) else [found]


def _below(schemas: list[_Schema], part: str, whole: _Schema) -> Iterator[_Schema]:
    """Yield the schemas of the value with the key `part`; if `part` is a number, yield the schemas
    of a list's items.
    """
    for schema in schemas:
        for one in _alternatives(schema, whole):
            if part.isdigit() and "items" in one:
                yield from _alternatives(one["items"], whole)
            elif part in one.get("properties", {}):
                yield from _alternatives(one["properties"][part], whole)


def _alternatives(schema: _Schema, whole: _Schema) -> Iterator[_Schema]:
    """Yield the alternatives that a schema allows; resolve references."""
    if "$ref" in schema:
        yield from _alternatives(whole["$defs"][schema["$ref"].rpartition("/")[2]], whole)
        return
    inner = [one for word in ("anyOf", "oneOf", "allOf") for one in schema.get(word, ())]
    if not inner:
        yield schema
    for one in inner:
        yield from _alternatives(one, whole)
