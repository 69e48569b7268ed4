"""The views of the data dictionary that SQL can ask: triggers and foreign keys of the tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.simulator.sql.plans import Plan

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from olr_pg.simulator.sql.row_store import SqlTable

_TRIGGERS: Final = (
    *("OWNER", "TRIGGER_NAME", "BASE_OBJECT_TYPE", "TABLE_OWNER", "TABLE_NAME", "STATUS"),
)
_CONSTRAINTS: Final = (
    *("OWNER", "CONSTRAINT_NAME", "CONSTRAINT_TYPE", "TABLE_NAME", "STATUS", "VALIDATED"),
)
_ON, _OFF = "ENABLED", "DISABLED"


def dictionary_view(name: str, tables: Iterable[SqlTable]) -> Plan | None:
    """Return a view, None where there is none of this name."""
    known = {
        "DBA_TRIGGERS": (_TRIGGERS, _triggers),
        "DBA_CONSTRAINTS": (_CONSTRAINTS, _keys),
        "SESSION_PRIVS": (("PRIVILEGE",), _privileges),
    }
    if name not in known:
        return None
    columns, rows = known[name]
    found = list(rows(tables))
    return Plan(columns, (None,) * len(columns), lambda _: found)


def _triggers(tables: Iterable[SqlTable]) -> Iterator[tuple[str, ...]]:
    for table in tables:
        owner = table.sim.owner
        for status, triggers in ((_ON, table.triggers), (_OFF, table.disabled_triggers)):
            for one in triggers:
                yield owner, one.name, "TABLE", owner, table.name, status


def _privileges(_: Iterable[SqlTable]) -> Iterator[tuple[str, ...]]:
    return iter((("CREATE SESSION",), ("CREATE TABLE",)))


def _keys(tables: Iterable[SqlTable]) -> Iterator[tuple[str, ...]]:
    for table in tables:
        for status, keys in ((_ON, table.foreign_keys), (_OFF, table.disabled_keys)):
            for one in keys:
                valid = "VALIDATED" if status == _ON else "NOT VALIDATED"
                yield table.sim.owner, one.name, "R", table.name, status, valid
