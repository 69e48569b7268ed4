"""The views of the data dictionary that SQL can query; the fallback needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from olr_pg.simulator.model.tables import IDENTITY_SEQUENCE
from olr_pg.simulator.sql.plans import Plan

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from olr_pg.simulator.sql.row_store import SqlTable
    from olr_pg.simulator.sql.sequences import SqlSequence
    from olr_pg.simulator.sql.typed_values import Value

    Rows = Iterator[tuple[Value, ...]]

_ON, _OFF = "ENABLED", "DISABLED"
_BY_DEFAULT_ON_NULL: Final = "BY DEFAULT ON NULL"


class Definitions(NamedTuple):
    """The objects that the views show."""

    owner: str
    tables: Collection[SqlTable]
    sequences: Collection[SqlSequence]


def dictionary_view(name: str, found: Definitions) -> Plan | None:
    """Return a view as a plan; None if there is no view of this name."""
    if name not in _VIEWS:
        return None
    columns, rows = _VIEWS[name]
    shown = list(rows(found))
    return Plan(columns, (None,) * len(columns), lambda _: shown)


def _triggers(found: Definitions) -> Rows:
    for table in found.tables:
        owner = table.sim.owner
        for status, triggers in ((_ON, table.triggers), (_OFF, table.disabled_triggers)):
            for one in triggers:
                yield owner, one.name, "TABLE", owner, table.name, status


def _keys(found: Definitions) -> Rows:
    for table in found.tables:
        for status, keys in ((_ON, table.foreign_keys), (_OFF, table.disabled_keys)):
            for one in keys:
                valid = "VALIDATED" if status == _ON else "NOT VALIDATED"
                yield table.sim.owner, one.name, "R", table.name, status, valid


def _identities(found: Definitions) -> Rows:
    for table in found.tables:
        for one in table.columns:
            if one.identity:
                sequence = f"{IDENTITY_SEQUENCE}{table.sim.obj}"
                how = one.identity.removesuffix(" ON NULL")
                yield table.sim.owner, table.name, one.name, how, sequence


def _columns(found: Definitions) -> Rows:
    for table in found.tables:
        for one in table.columns:
            on_null = "YES" if one.identity == _BY_DEFAULT_ON_NULL else "NO"
            yield table.sim.owner, table.name, one.name, on_null


def _sequences(found: Definitions) -> Rows:
    for one in found.sequences:
        yield found.owner, one.name, one.increment, one.following


def _privileges(_: Definitions) -> Rows:
    return iter((("CREATE SESSION",), ("CREATE TABLE",)))


def _policies(_: Definitions) -> Rows:
    return iter(())  # DBMS_RLS is not supported


_VIEWS: Final[dict[str, tuple[tuple[str, ...], Callable[[Definitions], Rows]]]] = {
    "DBA_TRIGGERS": (
        ("OWNER", "TRIGGER_NAME", "BASE_OBJECT_TYPE", "TABLE_OWNER", "TABLE_NAME", "STATUS"),
        _triggers,
    ),
    "DBA_CONSTRAINTS": (
        ("OWNER", "CONSTRAINT_NAME", "CONSTRAINT_TYPE", "TABLE_NAME", "STATUS", "VALIDATED"),
        _keys,
    ),
    "DBA_TAB_IDENTITY_COLS": (
        ("OWNER", "TABLE_NAME", "COLUMN_NAME", "GENERATION_TYPE", "SEQUENCE_NAME"),
        _identities,
    ),
    "DBA_TAB_COLS": (("OWNER", "TABLE_NAME", "COLUMN_NAME", "DEFAULT_ON_NULL"), _columns),
    "DBA_SEQUENCES": (
        ("SEQUENCE_OWNER", "SEQUENCE_NAME", "INCREMENT_BY", "LAST_NUMBER"),
        _sequences,
    ),
    "SESSION_PRIVS": (("PRIVILEGE",), _privileges),
    "ALL_POLICIES": (
        ("OBJECT_OWNER", "OBJECT_NAME", "POLICY_NAME", "ENABLE", "SEL", "INS", "UPD", "DEL"),
        _policies,
    ),
}
