"""Statuses that were recorded from an appliance at work, as values again."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from olr_pg.monitor.lag import Lag
from olr_pg.monitor.status_values import Status

FOLDER = Path(__file__).parent / "states"

STATES = (
    "loading",
    "starting",
    "catching-up",
    "caught-up",
    "behind-a-gap",
    "waiting-for-target",
    "waiting-for-disk",
    "paused",
    "table-stopped",
    "source-down",
    "stopping",
)


def read_state(name: str, at: float | None = None) -> Status:
    """The status as it was recorded; with `at` as it were then, with all of its times."""
    record = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    if at is not None:
        shift(record, at - record["at"])
    return as_value(Status, record)  # type: ignore[no-any-return]


def shift(record: Any, seconds: float) -> None:
    items = record.items() if isinstance(record, dict) else enumerate(record)
    for key, value in items:
        if isinstance(value, dict | list):
            shift(value, seconds)
        elif isinstance(value, float) and value > 1e9:
            record[key] = value + seconds


def allows_none(kind: Any) -> bool:
    return type(None) in get_args(kind)


def as_value(kind: Any, found: Any) -> Any:
    """A value of a type out of what JSON has of it; keys that the type has not are left out."""
    if found is None or kind is Any:
        return found
    if kind is Lag:
        return Lag(**found)
    if dataclasses.is_dataclass(kind):
        kinds = get_type_hints(kind, localns={"Mapping": Mapping})
        # A lag that nobody knew was null: what the type has for it.
        names = [
            field.name
            for field in dataclasses.fields(kind)
            if field.name in found
            and (found[field.name] is not None or allows_none(kinds[field.name]))
        ]
        return kind(**{name: as_value(kinds[name], found[name]) for name in names})  # type: ignore[operator]
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        (inner,) = (one for one in get_args(kind) if one is not type(None))
        return as_value(inner, found)
    if origin is tuple:
        return tuple(as_value(get_args(kind)[0], one) for one in found)
    return found
