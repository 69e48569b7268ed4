"""Describes validation errors: the key as the file contains it, the value that was found, and the
value that was expected.
"""

from __future__ import annotations

import difflib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, get_args, get_origin

from pydantic import BaseModel, SecretStr

from olr_pg.config.fields import PROBLEM, SECRET_PROBLEM
from olr_pg.config.model import ONE_TARGET, SEVERAL_TARGETS, Config, NamedTarget, Target
from olr_pg.config.source_section import SOURCE_KIND, OfflineSource, OracleSource

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails

_SOURCES: Final[dict[str, type[BaseModel]]] = {"oracle": OracleSource, "offline": OfflineSource}

_SECRET_KEYS: Final = re.compile(r"password|passwd|secret|token|connect|^conf$", re.IGNORECASE)
_SECRET_TEXTS: Final = re.compile(r"password|passwd|secret|://|@|\n", re.IGNORECASE)
_SHOWN_LENGTH_MAX: Final = 80

_KINDS: Final[dict[type, str]] = {
    bool: "a boolean",
    int: "a number",
    float: "a number",
    str: "a string",
    list: "a list",
    tuple: "a list",
    dict: "an object",
    SecretStr: "a string (not shown)",
}

_EXPECTED: Final[dict[str, str]] = {
    "int_type": "an integer",
    "int_from_float": "an integer",
    "string_type": "a string",
    "string_too_short": "a string that is not empty",
    "bool_type": "true or false",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "tuple_type": "a list",
    "too_short": "a list that is not empty",
    "list_type": "a list",
    "greater_than_equal": "at least {ge}",
    "less_than_equal": "at most {le}",
    "literal_error": "{expected}",
    "string_pattern_mismatch": "a string that fits {pattern}",
    PROBLEM: "{expected}",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem in the configuration file.

    Attributes:
        key: the path of the key, such as ``source.logs[1]``; empty for the whole file.
        found: the value that was found; None if it does not help or must not be printed.
        expected: a description of the expected value.
        secret: whether the problem is a secret reference that could not be resolved.
    """

    key: str
    found: str | None
    expected: str
    secret: bool = False

    def __str__(self) -> str:
        text = f"found {self.found}, expected {self.expected}" if self.found else self.expected
        return f"{self.key}: {text}" if self.key else text


def describe_problems(errors: Iterable[ErrorDetails], data: object) -> tuple[Problem, ...]:
    """Return descriptions of the errors that the validation of `data` has found, in the same
    order.
    """
    found = list(errors)
    return tuple(_describe(error, data) for error in found if not _follows(error, found))


def _follows(error: ErrorDetails, others: Sequence[ErrorDetails]) -> bool:
    """Return whether an error says only that a list is too short, because one of its items is
    invalid; another error reports that item.
    """
    depth = len(error["loc"])
    return error["type"] == "too_short" and any(
        len(other["loc"]) > depth and other["loc"][:depth] == error["loc"] for other in others
    )


def _describe(error: ErrorDetails, data: object) -> Problem:
    location = _file_location(error["loc"], data)
    key = format_key(location)
    context = error.get("ctx", {})
    match error["type"]:
        case "extra_forbidden":
            return Problem(key, None, _unknown_key(location, data))
        case "missing":
            return Problem(key, None, f"missing, expected {_description(location, data)}")
        case kind if kind == SECRET_PROBLEM:
            return Problem(key, None, context["reason"], secret=True)
        case kind if kind == SOURCE_KIND:
            found = error["input"].get("kind") if isinstance(error["input"], dict) else None
            expected = '"oracle" or "offline"' + _nearest(found, _SOURCES)
            return Problem("source.kind", _show(found, location), expected)
    expected = _EXPECTED.get(error["type"], error["msg"]).format_map(context)
    if error["type"] == "literal_error":
        expected = expected.replace("'", '"') + _nearest(
            error["input"], re.findall(r"'([^']*)'", context["expected"])
        )
    if context.get("show") == "nothing":
        return Problem(key, None, f"expected {expected}")
    if context.get("show") == "kind":
        return Problem(key, _kind(error["input"]), expected)
    wants_scalar = error["type"] not in {"dict_type", "model_type", "tuple_type", "list_type"}
    found = _show(error["input"], location) if wants_scalar else _kind(error["input"])
    return Problem(key, found, expected)


def format_key(location: Sequence[int | str]) -> str:
    """Return the key for a location of pydantic: ``source.logs[1]`` for ("source", "logs", 1)."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in location]
    return "".join(parts).removeprefix(".")


def _file_location(location: tuple[int | str, ...], data: object) -> tuple[int | str, ...]:
    """Return `location` without the parts that pydantic adds and the file does not contain: tags of
    union types, and marks of mapping keys.
    """
    kept = list[int | str]()
    for number, part in enumerate(location):
        if part in (ONE_TARGET, SEVERAL_TARGETS):
            continue
        last = number == len(location) - 1
        if isinstance(data, dict) and (part in data or last) and part != "[key]":
            data = data.get(part)
        elif isinstance(data, list | tuple) and isinstance(part, int):
            data = data[part] if part < len(data) else None
        else:
            continue
        kept.append(part)
    return tuple(kept)


def _kind(value: object) -> str:
    return "null" if value is None else _KINDS.get(type(value), type(value).__name__)


def _show(value: object, location: Sequence[int | str]) -> str:
    if value is None or isinstance(value, list | tuple | dict):
        return _kind(value)
    if any(_SECRET_KEYS.search(str(part)) for part in location):
        return _kind(value)
    if isinstance(value, str):
        if may_hide_secret(value):
            return "a string (not shown)"
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(value) if isinstance(value, bool | int | float) else _kind(value)


def may_hide_secret(text: str) -> bool:
    """Return whether a text may contain a secret, so that it must not be printed. Every long text
    may.
    """
    return bool(_SECRET_TEXTS.search(text)) or len(text) > _SHOWN_LENGTH_MAX


def _nearest(word: object, known: Iterable[str]) -> str:
    matches = difflib.get_close_matches(str(word), list(known), n=1, cutoff=0.6)
    return f' (did you mean "{matches[0]}"?)' if matches else ""


def _fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    fields = {field.alias or name: field for name, field in model.model_fields.items()}
    return {field.serialization_alias or name: field for name, field in fields.items()}


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models(part)]


def _model_at(location: Sequence[int | str], data: object) -> type[BaseModel] | None:
    """Return the model of the object at `location`; None if it can have any keys."""
    model: type[BaseModel] = Config
    is_name = False
    for part in location:
        if is_name:  # of an entry of an object whose keys are names
            data = data.get(part) if isinstance(data, dict) else None
            is_name = False
            continue
        if isinstance(part, int):
            data = data[part] if isinstance(data, list) and part < len(data) else None
            continue
        data = data.get(part) if isinstance(data, dict) else None
        field = _fields(model).get(str(part))
        models = _models(field.annotation) if field else []
        if not models:
            return None
        if Target in models:
            model = NamedTarget if isinstance(data, list) else Target
            continue
        kind = data.get("kind", "oracle") if isinstance(data, dict) else "oracle"
        model = models[0] if len(models) == 1 else _SOURCES.get(str(kind), OracleSource)
        is_name = field is not None and get_origin(field.annotation) is dict
    return model


def _unknown_key(location: Sequence[int | str], data: object) -> str:
    model = _model_at(location[:-1], data)
    known = sorted(_fields(model)) if model else []
    name = str(location[-1])
    if nearest := _nearest(name.replace("_", "-").lower(), known):
        return f"unknown key{nearest}"
    if model in _SOURCES.values():
        for kind, other in _SOURCES.items():
            if name in _fields(other):
                return f'unknown key here; it belongs to "kind": "{kind}"'
    return f"unknown key; known here: {', '.join(known)}" if known else "unknown key"


def _description(location: Sequence[int | str], data: object) -> str:
    model = _model_at(location[:-1], data)
    field = _fields(model).get(str(location[-1])) if model else None
    return (field.description if field else None) or "a value"
