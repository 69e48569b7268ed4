"""Checks the kind of a target table for properties that silently change how PostgreSQL stores,
changes or shows rows.

Each function queries the catalogue about one table with its partitions and inheriting tables, and
changes nothing. Kinds that would lose or hide rows are refused. `olr-pg doctor` only reports the
other kinds. Facts: PostgreSQL's pages CREATE TABLE (UNLOGGED), Row Security Policies, Rules on
INSERT, UPDATE and DELETE, Inheritance, and Publication (replica identity).

The module also contains the properties that make a target unfit for replication (`Unfit`), and the
error with which a load or a run refuses such a target.
"""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final, LiteralString, NamedTuple

from psycopg import sql

from olr_pg.applier.settings import UnloggedPolicy
from olr_pg.errors import Code, OlrPgError, located
from olr_pg.observability.findings import Finding, error, warning
from olr_pg.observability.wording import counted, one_line

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from psycopg import Connection

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.applier.target.catalogue import TargetTable


class Unfit(NamedTuple):
    """An unfit property of the target.

    Attributes:
        finding: the result that `olr-pg doctor` prints.
        code: the code of the error with which a load or a run refuses the target. None if loads and
            runs do not refuse the target, because replication works with this property, or because
            PostgreSQL itself reports the error.
    """

    finding: Finding
    code: Code | None = None


def refused_for(code: Code, check: str, what: str, *mend: str) -> Unfit:
    """Return an unfit property because of which a load or a run refuses the target."""
    return Unfit(error(check, what, *mend), code)


def warned_of(check: str, what: str, *mend: str) -> Unfit:
    """Return an unfit property with which a load or a run accepts the target."""
    return Unfit(warning(check, what, *mend))


def first_refusal(found: Iterable[Unfit]) -> OlrPgError | None:
    """Return the error for the first property because of which the target is refused, or None."""
    for one in found:
        if one.code is not None:
            return OlrPgError(one.code, one.finding.what, action=" ".join(one.finding.mend) or None)
    return None


STORAGE: Final = "postgres.storage"
KIND: Final = "postgres.kind"
HIDDEN: Final = "postgres.row-security"
FIRING: Final = "postgres.firing"
PUBLISHED: Final = "postgres.publications"

_PARTS: Final = """
WITH RECURSIVE part AS (
    SELECT whole, whole AS oid FROM unnest(%(tables)s::oid[]) AS whole
  UNION
    SELECT part.whole, i.inhrelid FROM pg_inherits i JOIN part ON i.inhparent = part.oid
)
"""
# A partitioned table itself may be UNLOGGED, because only its partitions store rows.
_ODD_PARTS: Final = (
    _PARTS
    + """
SELECT part.whole::int8, n.nspname::text, c.relname::text, c.relkind::text,
    c.relpersistence = 'u' AS unlogged, c.relispartition OR c.oid = part.whole AS expected
FROM part JOIN pg_class c ON c.oid = part.oid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'f' OR (c.relpersistence = 'u' AND c.relkind <> 'p')
    OR NOT (c.relispartition OR c.oid = part.whole)
ORDER BY 1, 2, 3
"""
)
_PARENTS: Final = """
SELECT i.inhrelid::int8, n.nspname::text, p.relname::text, c.relispartition
FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
JOIN pg_class p ON p.oid = i.inhparent JOIN pg_namespace n ON n.oid = p.relnamespace
WHERE i.inhrelid = ANY(%(tables)s::oid[]) ORDER BY 1, 2, 3
"""
_BOUNDS: Final = (
    _PARTS
    + """
SELECT part.whole::int8, n.nspname::text, c.relname::text, k.partstrat::text, k.partnatts = 1,
    k.partdefid <> 0,
    coalesce(array_agg(pg_get_expr(p.relpartbound, p.oid)) FILTER (WHERE NOT i.inhdetachpending),
        '{}'),
    coalesce(array_agg(p.oid::regclass::text) FILTER (WHERE i.inhdetachpending), '{}')
FROM part JOIN pg_partitioned_table k ON k.partrelid = part.oid
JOIN pg_class c ON c.oid = part.oid JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_inherits i ON i.inhparent = part.oid LEFT JOIN pg_class p ON p.oid = i.inhrelid
GROUP BY part.whole, n.nspname, c.relname, k.partrelid, k.partstrat, k.partnatts, k.partdefid
ORDER BY 1, 2, 3
"""
)
_RANGE: Final = re.compile(r"FOR VALUES FROM \((.*)\) TO \((.*)\)", re.DOTALL)
_HASH: Final = re.compile(r"FOR VALUES WITH \(modulus (\d+), remainder \d+\)", re.IGNORECASE)

_HIDING: Final = """
SELECT c.oid::int8, row_security_active(c.oid),
    pg_has_role(c.relowner, 'USAGE') AND c.relforcerowsecurity,
    current_user::text,
    ARRAY(SELECT polname::text FROM pg_policy WHERE polrelid = c.oid ORDER BY 1)
FROM pg_class c WHERE c.oid = ANY(%(tables)s::oid[]) AND c.relrowsecurity
"""
_SUSPICIOUS: Final = """
WITH RECURSIVE part AS (
    SELECT c.oid AS whole, c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN unnest(%(schemas)s::text[], %(names)s::text[]) AS wanted (schema, name)
        ON wanted.schema = n.nspname AND wanted.name = c.relname
    WHERE c.relkind IN ('r', 'p')
  UNION
    SELECT part.whole, i.inhrelid FROM pg_inherits i JOIN part ON i.inhparent = part.oid
)
SELECT DISTINCT n.nspname::text, w.relname::text
FROM part JOIN pg_class c ON c.oid = part.oid
JOIN pg_class w ON w.oid = part.whole JOIN pg_namespace n ON n.oid = w.relnamespace
WHERE c.relpersistence <> 'p' OR c.relkind = 'f' OR c.relrowsecurity OR c.relhasrules
    OR NOT (c.relispartition OR c.oid = part.whole)
    OR EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid AND t.tgenabled IN ('A', 'R'))
"""
# Conditions of the other findings of `check_kind`. Only plain tables with PostgreSQL's own access
# method that are published nowhere have none.
_REMARKABLE: Final = (
    _SUSPICIOUS  # noqa: S608 - constants alone
    + """
    OR c.relkind <> 'r' OR EXISTS (SELECT FROM pg_inherits i WHERE i.inhrelid = c.oid)
    OR NOT EXISTS (SELECT FROM pg_am a WHERE a.oid = c.relam AND a.amname = 'heap')
    OR EXISTS (SELECT FROM pg_publication_rel r WHERE r.prrelid = c.oid)
    OR EXISTS (SELECT FROM pg_publication_namespace s WHERE s.pnnspid = c.relnamespace)
    OR EXISTS (SELECT FROM pg_publication p WHERE p.puballtables)
"""
)
# The applier writes through the whole table, so only its rules apply, and not the rules of its
# partitions.
_RULES: Final = """
SELECT r.ev_class::int8, r.rulename::text, r.is_instead FROM pg_rewrite r
WHERE r.ev_class = ANY(%(tables)s::oid[]) AND r.ev_type <> '1' AND r.ev_enabled = ANY(%(states)s)
ORDER BY 1, 2
"""
_TRIGGERS: Final = (
    _PARTS
    + """
SELECT DISTINCT part.whole::int8, n.nspname::text, c.relname::text,
    CASE WHEN t.tgisinternal THEN '' ELSE t.tgname END,
    k.conname::text, t.tgtype & 3 = 3 AND NOT t.tgisinternal, t.tgenabled::text
FROM part JOIN pg_trigger t ON t.tgrelid = part.oid
JOIN pg_class c ON c.oid = part.oid JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_constraint k ON k.oid = t.tgconstraint
WHERE t.tgenabled = ANY(%(states)s) AND NOT EXISTS (
    SELECT FROM pg_trigger parent JOIN part AS above ON above.oid = parent.tgrelid
    WHERE above.whole = part.whole AND parent.oid = t.tgparentid
        AND parent.tgenabled = t.tgenabled)
ORDER BY 1, 2, 3, 4, 5
"""
)
_STATES: Final = {"A": "always", "R": "on replicated changes"}
# PostgreSQL checks the replica identity of the partition that contains the row, and the
# publications of the partition and of all tables above it.
_UNIDENTIFIED: Final = (
    _PARTS  # noqa: S608 - constants alone
    + """
, lacking AS (
    SELECT part.whole, c.oid, c.relnamespace, c.relname
    FROM part JOIN pg_class c ON c.oid = part.oid
    WHERE c.relkind = 'r' AND c.relpersistence = 'p' AND c.relreplident <> 'f' AND NOT EXISTS (
        SELECT FROM pg_index x WHERE x.indrelid = c.oid AND x.indisvalid AND x.indimmediate
            AND CASE c.relreplident WHEN 'i' THEN x.indisreplident WHEN 'd' THEN x.indisprimary
                ELSE false END)
)
SELECT l.whole::int8, n.nspname::text, l.relname::text, min(p.pubname)
FROM lacking l JOIN pg_namespace n ON n.oid = l.relnamespace
CROSS JOIN LATERAL (
    SELECT l.oid AS oid UNION SELECT relid::oid FROM pg_partition_ancestors(l.oid::regclass)
) above
JOIN pg_class a ON a.oid = above.oid
JOIN pg_publication p ON (p.pubupdate OR p.pubdelete) AND (p.puballtables
    OR EXISTS (SELECT FROM pg_publication_rel r WHERE r.prpubid = p.oid AND r.prrelid = a.oid)
    OR EXISTS (SELECT FROM pg_publication_namespace s
        WHERE s.pnpubid = p.oid AND s.pnnspid = a.relnamespace))
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""
)
# PostgreSQL refuses updates and deletes in three cases: a publication's row filter uses columns
# outside the replica identity; its column list lacks a column of the replica identity; or there is
# a column list, and the replica identity is the whole row (FULL).
_NARROWED: Final = (
    _PARTS  # noqa: S608 - constants alone
    + """
SELECT part.whole::int8, n.nspname::text, c.relname::text, p.pubname::text,
    c.relreplident <> 'f' AND key.columns <> '{}' AND EXISTS (
        SELECT FROM regexp_matches(r.prqual::text, ':varattno ([0-9]+)', 'g') used
        WHERE used[1]::int2 <> ALL(key.columns)) AS filter,
    r.prattrs IS NOT NULL AND (c.relreplident = 'f' OR NOT key.columns <@ r.prattrs::int2[]) AS list
FROM part JOIN pg_class c ON c.oid = part.oid JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_publication_rel r ON r.prrelid = c.oid
JOIN pg_publication p ON p.oid = r.prpubid AND (p.pubupdate OR p.pubdelete)
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(k), '{}') AS columns
    FROM pg_index x CROSS JOIN unnest(x.indkey::int2[]) k
    WHERE x.indrelid = c.oid AND x.indisvalid AND CASE c.relreplident
        WHEN 'i' THEN x.indisreplident WHEN 'd' THEN x.indisprimary ELSE false END
) key
ORDER BY 1, 2, 3, 4
"""
)
_METHODS: Final = (
    _PARTS
    + """
SELECT part.whole::int8, n.nspname::text, c.relname::text, a.amname::text
FROM part JOIN pg_class c ON c.oid = part.oid JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_am a ON a.oid = c.relam AND a.amname <> 'heap' WHERE c.relkind = 'r'
ORDER BY 1, 2, 3
"""
)


class KindRows:
    """The rows that the queries of this module return about some tables. Each query runs once, when
    the first of its rows is needed.

    Args:
        targets: the tables.
    """

    def __init__(
        self,
        connection: Connection[Any],
        settings: ApplierSettings,
        targets: Iterable[TargetTable],
    ) -> None:
        self._connection = connection
        self.settings = settings
        oids = [target.oid for target in targets]
        self._values = {"tables": oids, "states": firing_states(settings)}
        self._found: dict[LiteralString, dict[int, list[Any]]] = {}

    def of(self, query: LiteralString, target: TargetTable) -> list[Any]:
        """Return the rows of a query that belong to a table, without its OID."""
        if query not in self._found:
            found = self._found[query] = {}
            for oid, *row in self._connection.execute(query, self._values):
                found.setdefault(oid, []).append(row)
        return self._found[query].get(target.oid, [])


def suspicious(
    connection: Connection[Any], targets: Collection[tuple[str, str]]
) -> set[tuple[str, str]]:
    """Return the tables that need a detailed check, because it may find a reason to refuse them, or
    triggers or rules that fire.

    Args:
        targets: schema and name of each target table.
    """
    return _found(connection, _SUSPICIOUS, targets)


def remarkable(
    connection: Connection[Any], targets: Collection[tuple[str, str]]
) -> set[tuple[str, str]]:
    """Return the tables for which `check_kind` may have a finding.

    Args:
        targets: schema and name of each target table.
    """
    return _found(connection, _REMARKABLE, targets)


def _found(
    connection: Connection[Any], query: LiteralString, targets: Collection[tuple[str, str]]
) -> set[tuple[str, str]]:
    schemas, names = [schema for schema, _ in targets], [name for _, name in targets]
    found = connection.execute(query, {"schemas": schemas, "names": names})
    return {(schema, name) for schema, name in found}


def check_kind(rows: KindRows, target: TargetTable) -> Iterator[Unfit]:
    """Yield the unfit properties of the kind of a target table. The properties because of which a
    load or a run refuses the table come first.
    """
    yield from _refusable(rows, target)
    yield from _parents(rows, target)
    yield from _partitions(rows, target)
    yield from _triggers(rows, target)
    yield from _publications(rows, target)
    yield from _narrowed(rows, target)
    yield from _methods(rows, target)


def check_firing(
    connection: Connection[Any], settings: ApplierSettings, target: TargetTable
) -> Iterator[Unfit]:
    """Yield the triggers and rules that fire on the applier's writes."""
    rows = KindRows(connection, settings, [target])
    yield from _rules(rows, target)
    yield from _triggers(rows, target)


def refuse_kind(
    connection: Connection[Any], settings: ApplierSettings, target: TargetTable, source: str
) -> None:
    """Refuse a target table whose kind would lose or hide rows.

    Args:
        source: ``OWNER.NAME`` of the source's table.

    Raises:
        OlrPgError: 5040, the table is UNLOGGED; 5042, a policy may hide its rows; 5043, its rows
            may be written elsewhere.
    """
    refusal = first_refusal(_refusable(KindRows(connection, settings, [target]), target))
    if refusal is None:
        return
    action = refusal.own_action
    if action is not None:
        action = f"{action.rstrip(';')}; then, if the table has stopped, run `olr-pg errors retry`"
    raise OlrPgError(refusal.code, refusal.detail, action=action, table=source)


def refuse_hidden(
    connection: Connection[Any], settings: ApplierSettings, target: TargetTable, source: str
) -> None:
    """Refuse a target table if the role cannot see all its rows.

    Args:
        source: ``OWNER.NAME`` of the source's table.

    Raises:
        OlrPgError: 5042, a policy may hide rows from the role.
    """
    refusal = first_refusal(_row_security(KindRows(connection, settings, [target]), target))
    if refusal is not None:
        raise located(refusal, table=source)


def _refusable(rows: KindRows, target: TargetTable) -> Iterator[Unfit]:
    yield from _odd_parts(rows, target)
    yield from _row_security(rows, target)
    yield from _rules(rows, target)


def _odd_parts(rows: KindRows, target: TargetTable) -> Iterator[Unfit]:
    for schema, name, kind, is_unlogged, is_expected in rows.of(_ODD_PARTS, target):
        quoted, full_name = _quoted(schema, name), f"{schema}.{name}"
        of = "" if (schema, name) == (target.schema, target.name) else f", of {target.full_name},"
        if kind == "f":
            yield refused_for(
                Code.TARGET_TABLE_UNFIT,
                KIND,
                f"{full_name}{of} is a foreign table, whose rows another server commits"
                " in its own transaction",
                f"ALTER TABLE {_quoted(target.schema, target.name)} DETACH PARTITION {quoted};"
                if is_expected
                else f"ALTER TABLE {quoted} NO INHERIT {_quoted(target.schema, target.name)};",
            )
        elif not is_expected:
            yield refused_for(
                Code.TARGET_TABLE_UNFIT,
                KIND,
                f"{full_name} inherits from {target.full_name}; updates and deletes of"
                f" {target.full_name} also change its rows",
                f"ALTER TABLE {quoted} NO INHERIT {_quoted(target.schema, target.name)};",
            )
        if is_unlogged and is_expected:
            what = f"{full_name}{of} is UNLOGGED: a crash of PostgreSQL empties it"
            yield _unlogged(rows.settings, what, f"ALTER TABLE {quoted} SET LOGGED;")


def _unlogged(settings: ApplierSettings, what: str, mend: str) -> Unfit:
    if settings.unlogged is UnloggedPolicy.ACCEPT:
        return warned_of(STORAGE, f"{what}, and the table must then be loaded again", mend)
    return refused_for(
        Code.TARGET_TABLE_UNLOGGED,
        STORAGE,
        f"{what}, although the ledger would still record its rows as applied",
        mend,
        "or, if you accept to load the table again after each crash, set"
        ' `"unlogged-tables": "accept"` in `apply`',
    )


def _parents(rows: KindRows, target: TargetTable) -> Iterator[Unfit]:
    own = _quoted(target.schema, target.name)
    for schema, name, is_partition in rows.of(_PARENTS, target):
        parent = _quoted(schema, name)
        if is_partition:
            yield warned_of(
                KIND,
                f"{target.full_name} is a partition of {schema}.{name} and accepts no"
                " rows that belong into another partition",
                f"ALTER TABLE {parent} DETACH PARTITION {own};",
            )
        else:
            yield warned_of(
                KIND,
                f"{target.full_name} inherits from {schema}.{name}; changes of"
                f" {schema}.{name} also change its rows",
                f"ALTER TABLE {own} NO INHERIT {parent};",
            )


def _partitions(rows: KindRows, target: TargetTable) -> Iterator[Unfit]:
    """Yield a finding if rows with certain values fit no partition, or if a partition is half
    detached.
    """
    for schema, name, strategy, is_single, has_default, bounds, detaching in rows.of(
        _BOUNDS, target
    ):
        quoted, full_name = _quoted(schema, name), f"{schema}.{name}"
        for one in detaching:
            yield warned_of(
                KIND,
                f"{one} is partly detached from {full_name}, so its rows are no longer"
                " visible in it",
                f"ALTER TABLE {quoted} DETACH PARTITION {one} FINALIZE;",
            )
        if has_default:
            continue
        if bounds in ([], [None]):
            yield Unfit(
                error(
                    KIND,
                    f"{full_name} has no partition, so no row can be inserted",
                    one_line(f"-- CREATE TABLE ... PARTITION OF {quoted} ...;"),
                )
            )
        elif strategy == "r" and is_single:
            for start in _gaps(bounds):
                yield warned_of(
                    KIND,
                    f"{full_name} has no partition that ends at {start}; a value in the"
                    f" gap between the previous partition and {start} stops the table",
                    one_line(
                        f"-- CREATE TABLE ... PARTITION OF {quoted} FOR VALUES FROM (...) TO"
                        f" ({start});"
                    ),
                )
        elif strategy == "h" and (missing := _missing_remainders(bounds)):
            yield warned_of(
                KIND,
                f"{full_name} lacks {counted(missing, 'hash partition')}; a row that"
                " belongs into a missing partition stops the table",
                one_line(
                    f"-- CREATE TABLE ... PARTITION OF {quoted} FOR VALUES WITH (MODULUS ...,"
                    " REMAINDER ...);"
                ),
            )


def _gaps(bounds: list[str]) -> list[str]:
    """Return the lower bounds of ranges, except the lowest bound and bounds at which another range
    ends. No range contains the values directly below a returned bound.
    """
    ranges = [found.groups() for one in bounds if (found := _RANGE.fullmatch(one))]
    ends = {end for _, end in ranges}
    starts = [start for start, _ in ranges if start not in ends]
    return sorted(starts, key=_in_order)[1:]


def _in_order(bound: str) -> tuple[int, Decimal, str]:
    """Return a sort key for a bound, which is a number, or a date as PostgreSQL prints it."""
    if bound == "MINVALUE":
        return 0, Decimal(0), ""
    try:
        return 1, Decimal(bound.strip("'")), ""
    except InvalidOperation:
        return 2, Decimal(0), bound


def _missing_remainders(bounds: list[str]) -> int:
    moduli = [int(found[1]) for one in bounds if (found := _HASH.fullmatch(one))]
    largest = max(moduli, default=1)
    return largest - sum(largest // one for one in moduli)


def _row_security(rows: KindRows, target: TargetTable) -> Iterator[Unfit]:
    found = rows.of(_HIDING, target)
    if not found or not found[0][0]:
        return
    _, is_forced, user, policies = found[0]
    quoted = _quoted(target.schema, target.name)
    named = (
        f"the policies {', '.join(policies)} hide"
        if policies
        else ("it has no policy and hides all")
    )
    yield refused_for(
        Code.TARGET_ROW_SECURITY,
        HIDDEN,
        f"{target.full_name} has row level security, which applies to {user}: {named} rows",
        f"ALTER TABLE {quoted} NO FORCE ROW LEVEL SECURITY;"
        if is_forced
        else f"ALTER ROLE {sql.Identifier(user).as_string()} BYPASSRLS;",
        f"or ALTER TABLE {quoted} DISABLE ROW LEVEL SECURITY;",
    )


def firing_states(settings: ApplierSettings) -> list[str]:
    """Return the states (`tgenabled`) of triggers and rules that fire on the applier's writes.

    Triggers and rules that fire only on ordinary writes are not among them, because the applier
    prevents them from firing (`set_aside`).
    """
    return ["A", "R"] if settings.is_replica else ["A"]


def _rules(rows: KindRows, target: TargetTable) -> Iterator[Unfit]:
    quoted = _quoted(target.schema, target.name)
    for name, is_instead in rows.of(_RULES, target):
        rule = sql.Identifier(name).as_string()
        mend = f"ALTER TABLE {quoted} ENABLE RULE {rule};"
        what = f"the rule {name} of {target.full_name} fires on replicated changes"
        if is_instead:
            yield refused_for(
                Code.TARGET_TABLE_UNFIT,
                FIRING,
                f"{what} and does something else INSTEAD, so rows are not written to the table",
                mend,
            )
        else:
            yield warned_of(
                FIRING,
                f"{what}; if Oracle has such a trigger too, its effect is applied twice",
                mend,
            )


def _triggers(rows: KindRows, target: TargetTable) -> Iterator[Unfit]:
    for schema, table, name, constraint, may_change, state in rows.of(_TRIGGERS, target):
        quoted, when = _quoted(schema, table), _STATES[state]
        if not name:
            yield warned_of(
                FIRING,
                f"the foreign key {constraint} is checked on {schema}.{table} {when};"
                " olr_pg applies tables independently of each other, so the key can be"
                " violated for a short time",
                f"ALTER TABLE {quoted} ENABLE TRIGGER ALL; -- as a superuser",
            )
            continue
        what = f"the trigger {name} of {schema}.{table} fires {when}"
        may = "; it can change rows or discard them" if may_change else ", after Oracle's own"
        trigger = sql.Identifier(name).as_string()
        yield warned_of(FIRING, f"{what}{may}", f"ALTER TABLE {quoted} ENABLE TRIGGER {trigger};")


def _publications(rows: KindRows, target: TargetTable) -> Iterator[Unfit]:
    for schema, name, publication in rows.of(_UNIDENTIFIED, target):
        yield Unfit(
            error(
                PUBLISHED,
                f"{schema}.{name} is published by {publication} and has no replica"
                " identity, so PostgreSQL rejects updates and deletes",
                f"ALTER TABLE {_quoted(schema, name)} REPLICA IDENTITY FULL;",
            )
        )


def _narrowed(rows: KindRows, target: TargetTable) -> Iterator[Unfit]:
    """Yield a finding for each publication whose row filter or column list makes PostgreSQL refuse
    updates and deletes.
    """
    for schema, name, publication, filters, lists in rows.of(_NARROWED, target):
        quoted = _quoted(schema, name)
        by = sql.Identifier(publication).as_string()
        if lists:
            yield Unfit(
                error(
                    PUBLISHED,
                    f"{publication} publishes a list of columns of {schema}.{name} that"
                    " does not contain its replica identity, so PostgreSQL rejects"
                    " updates and deletes",
                    f"ALTER PUBLICATION {by} DROP TABLE {quoted};"
                    f" ALTER PUBLICATION {by} ADD TABLE {quoted};",
                )
            )
        elif filters:
            yield Unfit(
                error(
                    PUBLISHED,
                    f"the row filter of {publication} for {schema}.{name} uses columns"
                    " that are not in its replica identity, so PostgreSQL rejects"
                    " updates and deletes",
                    f"ALTER TABLE {quoted} REPLICA IDENTITY FULL;",
                )
            )


def _methods(rows: KindRows, target: TargetTable) -> Iterator[Unfit]:
    """Yield a finding for each table or partition whose access method is not PostgreSQL's heap."""
    for schema, name, method in rows.of(_METHODS, target):
        yield warned_of(
            KIND,
            f"{schema}.{name} has the access method {method}, which may reject updates,"
            " deletes or INSERT ... ON CONFLICT; this would stop the table",
            f"ALTER TABLE {_quoted(schema, name)} SET ACCESS METHOD heap;",
        )


def _quoted(schema: str, name: str) -> str:
    return sql.Identifier(schema, name).as_string()
