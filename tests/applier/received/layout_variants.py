"""Row changes of one layout, and some of others (protocol, “Elements”)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from olr_pg.wire.elements import ColumnValue, Delete, Element, Insert, Update

HEAD: Any = {
    "scn": 1,
    "commit_scn": 2,
    "xid": 3,
    "timestamp": 4,
    "object_id": 5,
    "schema": "SCHEMA",
    "rowid": "",
}
FIRST = ColumnValue("ID", 2, 10, 2, value=b"\xc1\x02")
TEXT = ColumnValue("NAME", 1, 5, None, 873, 1, value=b"x" * 300)


def update(before: list[ColumnValue], after: list[ColumnValue], **other: Any) -> Update:
    return Update(**{**HEAD, "table": "TABLE", **other}, before=tuple(before), after=tuple(after))


def alike() -> list[Element]:
    """They differ in values, and in where and when the change was."""
    return [
        update([FIRST], [FIRST, TEXT]),
        update([FIRST], [FIRST, TEXT], scn=9, commit_scn=8, xid=7, timestamp=6, object_id=99),
        update([FIRST], [FIRST, TEXT], rowid="AAARwWAAYAAAAAOAAA"),
        update([replace(FIRST, value=None)], [replace(FIRST, value=b"\x80"), TEXT]),
        update([FIRST], [FIRST, replace(TEXT, value=None)]),
    ]


def others() -> list[Element]:
    """Each differs in one thing from those, and from the others."""
    found: list[Element] = [
        Insert(**HEAD, table="TABLE", after=(FIRST, TEXT)),
        Delete(**HEAD, table="TABLE", before=(FIRST, TEXT)),
        update([FIRST], [FIRST, TEXT], table="TABLF"),
        update([FIRST], [FIRST, TEXT], table="TABLEE"),
        update([FIRST], [FIRST, TEXT], schema="XCHEMA"),
        update([FIRST], [FIRST, TEXT], schema="SCHEMAT", table="ABLE"),
        update([FIRST, FIRST], [TEXT]),
        update([FIRST, TEXT], [FIRST]),
        update([], [FIRST, TEXT]),
        update([FIRST], [TEXT, FIRST]),
        update([FIRST], [FIRST]),
    ]
    for change in (
        {"name": "IE"}, {"name": "XD"}, {"name": "I"}, {"name": "IDD"}, {"type_code": 258},
        {"type_code": 3}, {"precision": 11}, {"precision": None}, {"precision": 10 + (1 << 56)},
        {"scale": 3}, {"scale": 2 + (1 << 56)}, {"charset_id": 1}, {"charset_id": 1 << 40},
        {"charset_form": 2}, {"chunked": True, "value": None},
    ):  # fmt: skip
        changed: Any = change
        found.append(update([replace(FIRST, **changed)], [FIRST, TEXT]))
        found.append(update([FIRST], [replace(FIRST, **changed), TEXT]))
        found.append(update([FIRST], [FIRST, replace(TEXT, **changed)]))
    return found
