"""Makes the assessment from an inventory and its converted statements, with one item for each
object.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from olr_pg.assessment.assessed_tables import assessed_table
from olr_pg.assessment.plsql import code_item
from olr_pg.assessment.report import Carrier, Effort, Item, MeasuredRates, Report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from olr_pg.dictionary.inventory import Inventory, SchemaObject
    from olr_pg.dictionary.model import Snapshot, Table
    from olr_pg.schema.relations import Relations
    from olr_pg.schema.statement import Statement

_WITH_TABLE: Final = frozenset(
    {
        *("TABLE PARTITION", "TABLE SUBPARTITION", "INDEX PARTITION", "INDEX SUBPARTITION"),
        *("LOB", "LOB PARTITION", "LOB SUBPARTITION"),
    }
)
_CODE: Final = frozenset({"PROCEDURE", "FUNCTION", "PACKAGE", "PACKAGE BODY", "TYPE", "TYPE BODY"})
_BY_STATEMENT: Final = {
    "INDEX": "index",
    "VIEW": "view",
    "SEQUENCE": "sequence",
    "MATERIALIZED VIEW": "materialized view",
}
_OTHERS: Final = {
    "SYNONYM": (Effort.LOW, "PostgreSQL has no synonyms: set search_path, or create a view"),
    "JOB": (Effort.MEDIUM, "PostgreSQL has no jobs: use pg_cron or cron"),
    "SCHEDULE": (
        Effort.LOW,
        "it is used by jobs, which PostgreSQL does not have: use pg_cron or cron",
    ),
    "PROGRAM": (
        Effort.LOW,
        "it is used by jobs, which PostgreSQL does not have: use pg_cron or cron",
    ),
    "DATABASE LINK": (Effort.MEDIUM, "use a foreign server (postgres_fdw or oracle_fdw)"),
    "QUEUE": (Effort.HIGH, "Advanced Queuing: use a queue table or a message broker"),
    "CLUSTER": (Effort.LOW, "PostgreSQL has no clusters: its tables become normal tables"),
    "JAVA CLASS": (Effort.HIGH, "Java in the database: move it to the application"),
    "JAVA SOURCE": (Effort.HIGH, "Java in the database: move it to the application"),
    "DIRECTORY": (Effort.LOW, "PostgreSQL has no directory objects"),
}
_NAMED: Final = {
    "COLUMN PRIVILEGE": (Effort.LOW, "a privilege on a column: use GRANT … (column) ON the table"),
    "VPD POLICY": (Effort.MEDIUM, "Virtual Private Database: use row security (CREATE POLICY)"),
    "REDACTION POLICY": (Effort.MEDIUM, "redaction: use a view that hides the values with CASE"),
    "APPLICATION CONTEXT": (
        Effort.LOW,
        "an application context: map it to a setting in `apply.contexts`",
    ),
    "AUDIT POLICY": (Effort.LOW, "fine-grained auditing: use the extension pgaudit"),
}
_UNKNOWN: Final = (Effort.MEDIUM, "olr_pg does not know this kind of object: check it yourself")


def assess(
    inventory: Inventory,
    snapshot: Snapshot,
    replicated: frozenset[str],
    relations: Relations,
    statements: Sequence[Statement],
    rates: MeasuredRates | None = None,
) -> Report:
    """Return the assessment of everything in the inventory.

    Args:
        replicated: ``OWNER.NAME`` of the tables in `apply.tables`.
        statements: the statements from `schema.conversion.convert`, which may have been tried in a
            target.
        rates: the measured rates of the target; None if they were not measured.
    """
    stored = {(table.owner, table.name): table for table in snapshot.tables}
    return Report(
        database=inventory.database,
        version=inventory.version,
        scn=inventory.scn,
        owners=inventory.owners,
        items=list(_Assessor(inventory, stored, replicated, statements).items()),
        tables=[
            assessed_table(replicated, relations, table, stored.get((table.owner, table.name)))
            for table in inventory.tables
        ],
        others=inventory.others,
        looked_at=inventory.looked_at,
        unread=inventory.unread,
        redo=inventory.redo,
        rates=rates,
    )


class _Assessor:
    def __init__(
        self,
        inventory: Inventory,
        stored: Mapping[tuple[str, str], Table],
        replicated: frozenset[str],
        statements: Sequence[Statement],
    ) -> None:
        self._inventory = inventory
        self._stored = stored
        self._replicated = replicated
        self._by_name: dict[tuple[str, str], list[Statement]] = defaultdict(list)
        self._of_table: dict[str, list[Statement]] = defaultdict(list)
        for one in statements:
            self._by_name[one.kind, one.name].append(one)
            owner, _, rest = one.name.partition(".")
            self._of_table[f"{owner}.{rest.split('.')[0]}"].append(one)
        self._keys = {one.full_name for one in inventory.indexes if one.constraint}
        self._containers = {one.full_name for one in inventory.materialized_views}
        self._statements = statements
        self._triggers = {one.full_name: one for one in inventory.triggers}
        self._sources = {(one.kind, one.full_name): one.text for one in inventory.sources}

    def items(self) -> Iterator[Item]:
        for one in self._inventory.objects:
            item = self._object(one)
            yield item._replace(status=one.status)
        yield from self._constraints()
        yield from self._others()

    def _object(self, one: SchemaObject) -> Item:
        makers: dict[str, Callable[[SchemaObject], Item]] = {
            "TABLE": self._table,
            "TRIGGER": self._trigger,
        }
        if one.kind in makers:
            return makers[one.kind](one)
        if one.kind in _CODE:
            return self._code(one)
        if one.kind in _WITH_TABLE:
            return _plain(one, Carrier.WITH_TABLE)
        if one.kind == "INDEX" and one.full_name in self._keys:
            return _plain(one, Carrier.WITH_TABLE, "the index of a key")
        if one.kind in _BY_STATEMENT:
            return self._converted(one)
        effort, reason = _OTHERS.get(one.kind, _UNKNOWN)
        return Item(one.kind, one.full_name, Carrier.BY_HAND, effort, effort.value, (reason,))

    def _converted(self, one: SchemaObject) -> Item:
        """Return the item for an object for which `olr-pg schema` has a statement."""
        found = self._by_name[_BY_STATEMENT[one.kind], one.full_name]
        if one.kind == "INDEX":
            found = found or self._by_name["materialized view", one.full_name]
        if not found:
            reason = (
                "created with its identity column"
                if one.kind == "SEQUENCE"
                else "it needs no statement of its own"
            )
            return _plain(one, Carrier.WITH_TABLE, reason)
        statement = found[0]
        if statement.runs:
            remarks = tuple(text for text in (statement.what, statement.remark) if text)
            return Item(one.kind, one.full_name, Carrier.CONVERTED, Effort.NONE, 0, remarks)
        effort = Effort.LOW if one.kind == "INDEX" else Effort.MEDIUM
        reasons = (statement.reason,)
        return Item(one.kind, one.full_name, Carrier.BY_HAND, effort, effort.value, reasons)

    def _table(self, one: SchemaObject) -> Item:
        """Return the item for a table. It needs manual work if the table or a part of it is not
        created.
        """
        name = one.full_name
        if name in self._containers:
            return _plain(one, Carrier.WITH_TABLE, "the table of a materialized view")
        failed = [
            part
            for part in self._of_table[name]
            if not part.runs and part.kind not in ("grant", "index", "check", "foreign key")
        ]
        reasons = [_reason(part, name) for part in failed]
        obstacle = self._obstacle(name)
        if obstacle:
            reasons.append(obstacle)
        carrier = Carrier.REPLICATED if name in self._replicated else Carrier.CONVERTED
        made = any(part.kind == "table" and part.runs for part in self._of_table[name])
        if not made or (obstacle and name in self._replicated):
            carrier = Carrier.BY_HAND
        effort = Effort.MEDIUM if carrier is Carrier.BY_HAND else Effort.LOW
        effort = effort if failed or obstacle or not made else Effort.NONE
        if not reasons and not made:
            reasons = ["the dictionary contains no reason"]
        minutes = effort.value * max(len(failed), 1)
        if carrier is Carrier.CONVERTED:
            reasons.append("its rows are not replicated: it is not in `apply.tables`")
        return Item("TABLE", name, carrier, effort, minutes, tuple(reasons))

    def _obstacle(self, name: str) -> str:
        owner, _, table = name.partition(".")
        found = self._stored.get((owner, table))
        return (found.obstacle or "") if found is not None else ""

    def _trigger(self, one: SchemaObject) -> Item:
        made = self._made("trigger", one)
        if made is not None:
            return made
        found = self._triggers.get(one.full_name)
        body = found.body if found else ""
        what = f"{found.kind} {found.event} on {found.table or found.base}" if found else ""
        return code_item("TRIGGER", one.full_name, body, what.lower())

    def _code(self, one: SchemaObject) -> Item:
        made = self._made(one.kind.lower(), one)
        if made is not None:
            return made
        text = self._sources.get((one.kind, one.full_name))
        remark = "its source cannot be read" if text is None else ""
        parts = [part for part in self._of_table[one.full_name] if part.what != "package"]
        done = sum(part.runs for part in parts)
        if one.kind.startswith("PACKAGE") and done:
            if done == len(parts) or one.kind == "PACKAGE":
                return _plain(
                    one,
                    Carrier.CONVERTED,
                    f"{done} routines are created in a schema of the package's name",
                )
            remark = f"{done} of its {len(parts)} parts are translated"
            text = "\n".join(part.source for part in parts if not part.runs)
        return code_item(one.kind, one.full_name, text or "", remark)

    def _made(self, kind: str, one: SchemaObject) -> Item | None:
        """Return the item for translated code; None if it was not translated."""
        found = next((part for part in self._by_name[kind, one.full_name] if part.runs), None)
        if found is None:
            return None
        remarks = (found.remark,) if found.remark else ()
        return _plain(one, Carrier.CONVERTED, *remarks)

    def _constraints(self) -> Iterator[Item]:
        for one in self._inventory.constraints:
            name = f"{one.owner}.{one.table}.{one.name}"
            kind = f"CONSTRAINT ({one.kind})"
            if one.not_null:
                yield _part("CONSTRAINT (not null)", name, Carrier.WITH_TABLE)
                continue
            if one.kind == "primary key" and one.enabled:
                yield _part(kind, name, Carrier.WITH_TABLE)
                continue
            made = {"unique": "unique key"}.get(one.kind, one.kind)
            found = [*self._by_name[made, name], *self._by_name["by hand", name]]
            yield _by_statement(kind, name, found)

    def _others(self) -> Iterator[Item]:
        named = set[str]()
        for one in self._statements:
            if one.kind == "grant" and not one.what:  # not those of USAGE, which Oracle lacks
                item = _by_statement("GRANT", one.name, [one])
                # A role must be created only once, so the minutes count only for its first grant.
                yield item._replace(minutes=0) if one.role in named else item
                named |= {one.role} if one.role and not one.runs else set()
        objects = {(one.kind, one.full_name) for one in self._inventory.objects}
        for other in self._inventory.named:
            effort, reason = _NAMED.get(other.kind, _UNKNOWN)
            whole = f"{other.full_name}: {other.detail}" if other.detail else other.full_name
            yield Item(
                *(other.kind, whole, Carrier.BY_HAND, effort, effort.value, (reason,)),
                is_object=False,
            )
        for kind, parts in (
            ("SYNONYM", self._inventory.synonyms),
            ("JOB", self._inventory.jobs),
            ("DATABASE LINK", self._inventory.links),
        ):
            for part in parts:
                if (kind, part.full_name) not in objects:
                    effort, reason = _OTHERS[kind]
                    yield Item(
                        *(kind, part.full_name, Carrier.BY_HAND, effort, effort.value, (reason,)),
                        is_object=False,
                    )


def _reason(part: Statement, table: str) -> str:
    what = part.what or part.kind
    own = part.name.removeprefix(table).lstrip(".")
    if own:
        return f"{what} {own}: {part.reason}"
    return part.reason if what in part.reason else f"{what}: {part.reason}"


def _plain(one: SchemaObject, carrier: Carrier, *reasons: str) -> Item:
    return Item(one.kind, one.full_name, carrier, Effort.NONE, 0, reasons)


def _part(kind: str, name: str, carrier: Carrier) -> Item:
    return Item(kind, name, carrier, Effort.NONE, 0, is_object=False)


def _by_statement(kind: str, name: str, found: Sequence[Statement]) -> Item:
    if found and found[0].runs:
        reasons = (found[0].remark,) if found[0].remark else ()
        return _part(kind, name, Carrier.CONVERTED)._replace(reasons=reasons)
    reason = found[0].reason if found else "its table is not created"
    reasons = (reason,)
    low = Effort.LOW
    return Item(kind, name, Carrier.BY_HAND, low, low.value // 3, reasons, is_object=False)
