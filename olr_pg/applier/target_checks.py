"""Runs the checks of the target in order; they change nothing.

`close_key_columns` detects keys whose values PostgreSQL could round to the same value. Then two
rows of the source would have the same key in the target.

`may_refuse` finds target columns that may refuse values of the source, so that an operator can
change the columns in advance. PostgreSQL refuses a value that is too long or too large, and NULL in
a NOT NULL column. The source's type allows such values, but it is not known whether they exist.

`check_grants` finds the privileges that the applier's role lacks in the target, with the GRANT
statements to run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import psycopg
from psycopg import sql

from olr_pg.applier.statements.target_plan import (
    check_names,
    new_table,
    planned_column,
    target_columns,
    target_name,
)
from olr_pg.applier.target.catalogue import find_tables, found_instead, missing_error, read_tables
from olr_pg.applier.target.column_encoder import column_encoder, no_flag_setting
from olr_pg.applier.target.connection import connect_with
from olr_pg.applier.target.crash_watch import lost_rows, lost_tables
from olr_pg.applier.target.database_kind import check_database
from olr_pg.applier.target.fixed_limits import check_fixed_limits, read_block_bytes
from olr_pg.applier.target.ledger import (
    VERSION,
    ledger_version,
    missing_parts,
    of_other_tables,
    other_subscriptions,
)
from olr_pg.applier.target.modifiers import (
    integer_digits,
    may_change,
    may_round,
    modifier_of,
    text_length,
)
from olr_pg.applier.target.set_aside import firing_on
from olr_pg.applier.target.table_identity import replaced_reasons, vanished_tables
from olr_pg.applier.target.table_kinds import KindRows, check_kind, remarkable
from olr_pg.applier.target_health import look
from olr_pg.config.table_patterns import OWN_SCHEMA
from olr_pg.datatypes.charsets import UNKNOWN_CHARSET
from olr_pg.datatypes.mapping import OracleType, PgKind, oracle_type_name
from olr_pg.dictionary.structure import NO_STRUCTURE, structure_by_table
from olr_pg.dictionary.sys_tables import check_conditions, non_flag_values
from olr_pg.errors import Code, OlrPgError, located
from olr_pg.observability.findings import Finding, coded, error, warning
from olr_pg.postgres.sqlstates import is_forbidden, is_transient, target_error

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from psycopg import Connection

    from olr_pg.applier.settings import ApplierSettings
    from olr_pg.applier.target.catalogue import Instead, TargetColumn, TargetTable
    from olr_pg.applier.target.ledger import OtherSubscription
    from olr_pg.applier.target.set_aside import Firing
    from olr_pg.datatypes.mapping import OracleColumn, PgType
    from olr_pg.dictionary.model import Column, Table
    from olr_pg.dictionary.structure import Structure

T = TypeVar("T")

_WRITING: Final = ("SELECT", "INSERT", "UPDATE", "DELETE")
_TABLE: Final = (*_WRITING, "TRUNCATE")
LEDGER_PRIVILEGES: Final = {
    "version": ("SELECT",),
    **dict.fromkeys(("error", "subscription", "incarnation", "way_back"), _WRITING[:3]),
    **dict.fromkeys(("held", "load", "load_part", "cutover", "set_aside", "paused"), _WRITING),
    **dict.fromkeys(("ledger", "crash_mark", "crash_watch", "unlogged"), _WRITING),
    **dict.fromkeys(("incomplete", "structure", "partition", "listed"), _WRITING),
}
"""The privileges on the ledger's tables that role.sql grants."""

_LACKING: Final = """
SELECT w.schema, w.name, array_agg(w.privilege ORDER BY w.place)
FROM unnest(%s::text[], %s::text[], %s::text[])
    WITH ORDINALITY AS w (schema, name, privilege, place)
JOIN pg_namespace n ON n.nspname = w.schema::name
JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = w.name::name
WHERE NOT has_table_privilege(c.oid, w.privilege) GROUP BY w.schema, w.name
"""
_CLOSED: Final = """
SELECT nspname::text FROM pg_namespace
WHERE nspname = ANY(%s) AND NOT has_schema_privilege(oid, 'USAGE')
"""
_SCHEMAS: Final = """
SELECT w.name, n.oid IS NOT NULL, CASE
    WHEN n.oid IS NULL THEN has_database_privilege(current_database(), 'CREATE')
    ELSE has_schema_privilege(n.oid, 'CREATE') END,
    current_database()::text
FROM unnest(%s::text[]) AS w (name) LEFT JOIN pg_namespace n ON n.nspname = w.name::name
"""


class _Schema(NamedTuple):
    """A schema of the target; `may_create` says whether the role may create tables in it, or may
    create the schema if it does not exist.
    """

    exists: bool
    may_create: bool
    database: str


def _read_schemas(connection: Connection[Any], names: Sequence[str]) -> dict[str, _Schema]:
    rows = connection.execute(_SCHEMAS, (names,)).fetchall()
    return {name: _Schema(*row) for name, *row in rows}


def check_ledger(connection: Connection[Any], user: str) -> Iterator[Finding]:
    """Yield the missing privileges on those tables of the ledger that exist."""
    wanted = {(OWN_SCHEMA, name): own for name, own in LEDGER_PRIVILEGES.items()}
    for found in check_grants(connection, user, wanted).values():
        yield from found


def check_grants(
    connection: Connection[Any], user: str, wanted: Mapping[tuple[str, str], Sequence[str]]
) -> dict[tuple[str, str], list[Finding]]:
    """Return the missing privileges to use the schema of each table, and to write the table if it
    exists.

    Args:
        wanted: the privileges by schema and name.

    Returns:
        The findings by schema and name, in the order of `wanted`.
    """
    schemas = sorted({schema for schema, _ in wanted})
    closed = {schema for (schema,) in connection.execute(_CLOSED, (schemas,))}
    rows = [(*name, privilege) for name, own in wanted.items() for privilege in own]
    asked = [[row[part] for row in rows] for part in range(3)]
    lacking = {(schema, name): own for schema, name, own in connection.execute(_LACKING, asked)}
    found: dict[tuple[str, str], list[Finding]] = {}
    for schema, name in wanted:
        own = found[schema, name] = []
        if schema in closed:
            own.append(
                error(
                    "postgres.privileges",
                    f"{user} is not allowed to use the schema {schema}",
                    _grant(connection, "USAGE", "SCHEMA {}", sql.Identifier(schema), user),
                )
            )
        if (schema, name) in lacking:
            privileges = ", ".join(lacking[schema, name])
            table = sql.Identifier(schema, name)
            own.append(
                error(
                    "postgres.privileges",
                    f"{user} lacks {privileges} on {schema}.{name}",
                    _grant(connection, privileges, "TABLE {}", table, user),
                )
            )
    return found


def _check_creation(
    connection: Connection[Any], user: str, name: str, schema: _Schema, what: str
) -> Iterator[Finding]:
    """Yield the missing privileges to create tables in a schema, or to create the schema."""
    if schema.may_create:
        return
    kind, name = ("SCHEMA {}", name) if schema.exists else ("DATABASE {}", schema.database)
    yield error(
        "postgres.privileges",
        what,
        _grant(connection, "CREATE", kind, sql.Identifier(name), user),
        "or run sql/postgres/ledger.sql and role.sql, and create the tables yourself",
    )


def _grant(
    connection: Connection[Any], privileges: str, kind: str, name: sql.Identifier, user: str
) -> str:
    """Return the GRANT statement, which a superuser or the owner must run."""
    query = sql.SQL("GRANT " + privileges + " ON " + kind + " TO {};")
    return query.format(name, sql.Identifier(user)).as_string(connection)


# A domain can add a default and NOT NULL to a column.
_NOT_NULL: Final = """
SELECT a.attrelid::int8, a.attname, a.atthasdef OR a.attidentity <> '' OR t.typdefault IS NOT NULL
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = ANY(%s::oid[]) AND a.attnum > 0 AND NOT a.attisdropped
    AND (a.attnotnull OR t.typnotnull)
ORDER BY a.attrelid, a.attnum
"""
_TEXTS: Final = (PgKind.VARCHAR, PgKind.BPCHAR)
_FORMATS: Final[dict[int, str]] = {
    PgKind.JSON: "JSON",
    PgKind.JSONB: "JSON",
    PgKind.UUID: "a UUID",
    PgKind.XML: "XML",
}
"""Types that accept only text of a certain format."""

_INTEGERS: Final[dict[int, int]] = {PgKind.INT2: 4, PgKind.INT4: 9, PgKind.INT8: 18}
"""The number of decimal digits that a value of each type can always have."""


def read_not_null(connection: Connection[Any], oids: Sequence[int]) -> dict[int, dict[str, bool]]:
    """Return the NOT NULL columns of tables, by OID. The value of a column is true if an INSERT
    that does not set the column gives it a value.
    """
    found: dict[int, dict[str, bool]] = {}
    for oid, name, is_filled in connection.execute(_NOT_NULL, (oids,)):
        found.setdefault(oid, {})[name] = is_filled
    return found


def may_refuse(source: OracleColumn, made: PgType, target: TargetColumn) -> str | None:
    """Return a description of values of the source's type that the target may refuse, or None.

    Args:
        made: the type that a new target column would get. If the target has this type, nothing is
            reported.
    """
    found = None
    if target.base_oid in _TEXTS and target.modifier >= 0:
        found = _too_long(made, text_length(target.modifier))
    elif source.type_code == OracleType.NUMBER and not _is_made_so(made, target):
        found = _too_large(source, target)
    elif made.kind in (*_TEXTS, PgKind.TEXT) and target.base_oid in _FORMATS:
        found = f"may have text that is not {_FORMATS[target.base_oid]}"
    return None if found is None else f"{oracle_type_name(source)} {found}"


def _is_made_so(made: PgType, target: TargetColumn) -> bool:
    if target.base_oid != made.kind:
        return False
    return made.kind != PgKind.NUMERIC or target.modifier == modifier_of(made)


def _too_long(made: PgType, kept: int) -> str | None:
    if made.kind == PgKind.TEXT:
        return f"may be longer than {kept} characters"
    wanted = modifier_of(made)
    if made.kind not in _TEXTS or wanted < 0 or text_length(wanted) <= kept:
        return None
    return f"may have {text_length(wanted)} characters, but the target accepts only {kept}"


def _too_large(source: OracleColumn, target: TargetColumn) -> str | None:
    kept: int | None
    if target.base_oid == PgKind.NUMERIC:
        kept = None if target.modifier < 0 else integer_digits(target.modifier)
    else:
        kept = _INTEGERS.get(target.base_oid)
        if kept is not None and (source.scale is None or source.scale > 0):
            return "may have a fraction, which an integer column cannot store"
    if kept is None or source.precision is None or source.scale is None:
        return None
    wanted = source.precision - source.scale
    return (
        None
        if wanted <= kept
        else (
            f"may have {wanted} digits before the decimal point, but the target accepts only {kept}"
        )
    )


_DIGITS: Final = 6
"""The number of fractional digits of seconds that PostgreSQL stores."""

_OF_TIME: Final = frozenset({PgKind.TIMESTAMP, PgKind.TIMESTAMPTZ, PgKind.INTERVAL})


def close_key_columns(
    settings: ApplierSettings, table: Table, structure: Structure = NO_STRUCTURE
) -> list[Column]:
    """Return the key columns that have more fractional digits of seconds than PostgreSQL stores.

    Args:
        structure: the unique keys and indexes of this table, if known.
    """
    keyed = {column.name for column in table.columns if column.intcol in table.key}
    for one in structure.unique_keys:
        keyed.update(one.columns)
    for index in structure.indexes:
        if index.unique:
            keyed.update(index.columns)
    return [
        column
        for column in table.delivered
        if column.name in keyed
        and (column.scale or 0) > _DIGITS
        and settings.choices.pg_type(table.full_name, column).kind in _OF_TIME
    ]


def close_key_words(column: Column) -> str:
    """Describe what happens to keys that differ only in digits that PostgreSQL does not store."""
    return (
        f"the key's column {column.name} ({oracle_type_name(column)}) has {column.scale}"
        f" digits of fractional seconds, but PostgreSQL keeps only {_DIGITS}: rows whose"
        " keys differ only in later digits get the same key in PostgreSQL"
    )


def as_text_setting(table: str, column: Column) -> str:
    """Return the setting in `apply` that keeps all digits of a column of ``OWNER.NAME``."""
    return f'"columns": {{"{table}.{column.name}": {{"type": "text"}}}}'


_MISSING_LEDGER = """
SELECT name FROM unnest(%s::text[]) AS name WHERE NOT EXISTS (
    SELECT FROM pg_class
    WHERE relname = name::name AND relnamespace = to_regnamespace('olr_pg'))
"""
_OWNER = """
SELECT name, pg_get_userbyid(relowner)::text FROM unnest(%s::text[]) AS name
JOIN pg_class ON oid = to_regclass(name) WHERE NOT pg_has_role(relowner, 'USAGE')
"""
_DEFERRABLE = """
SELECT conrelid::int8, conname, pg_get_constraintdef(oid), ARRAY(
    SELECT attname::text FROM unnest(conkey) WITH ORDINALITY AS of (number, place)
    JOIN pg_attribute ON attrelid = conrelid AND attnum = number ORDER BY place)
FROM pg_constraint
WHERE conrelid = ANY(%s::oid[]) AND contype IN ('p', 'u') AND condeferrable
ORDER BY contype, conname
"""
_BATCH: Final = 500
"""Tables about which one query asks."""

_TOLD_OTHERWISE = (Code.TARGET_TRIGGER_FIRES,)
"""Errors of `target_health.look` that are left out, because `check_kind` also reports them."""


def check_planned_target(
    settings: ApplierSettings, tables: Sequence[Table], structure: Structure = NO_STRUCTURE
) -> list[Finding]:
    """Check what needs no connection to the target: the names, and PostgreSQL's fixed limits.

    Args:
        structure: as for `check_target`.
    """
    structures = structure_by_table(structure)
    found = _check_names(settings, tables)
    for table in tables:
        own = structures.get(table.full_name, NO_STRUCTURE)
        found += check_fixed_limits(settings, table, own)
    return found


def _check_names(settings: ApplierSettings, tables: Sequence[Table]) -> list[Finding]:
    """Check that no two tables have the same target table."""
    try:
        check_names(settings, tables)
    except OlrPgError as problem:
        return [coded("postgres.names", problem)]
    return []


def check_target(
    settings: ApplierSettings, tables: Sequence[Table], structure: Structure = NO_STRUCTURE
) -> list[Finding]:
    """Check that the target has everything that the replicated tables need.

    Args:
        structure: the structure of these tables, if known. The check constraints in the structure
            show which values are possible.
    """
    clashes = _check_names(settings, tables)
    if clashes:
        return clashes
    try:
        with connect_with(settings) as connection:
            current = _user(connection)
            found = list(_check_ledger(connection, current))
            names = [target_name(settings, table.owner, table.name) for table in tables]
            oids = [oid for oid, _ in find_tables(connection, names).values()]
            lost, special = _emptied(connection, settings), remarkable(connection, names)
            block_bytes = read_block_bytes(connection)
            structures = structure_by_table(structure)
            found += [one.finding for one in check_database(connection, settings, oids)]
            for batch in (tables[at : at + _BATCH] for at in range(0, len(tables), _BATCH)):
                facts = _read_facts(connection, settings, batch, current)
                for table in batch:
                    own = structures.get(table.full_name, NO_STRUCTURE)
                    found += _check_table(connection, settings, table, facts, own, special)
                    if table.full_name in lost:
                        found.append(coded("postgres.storage", lost_rows(table.full_name)))
                    found += check_flags(settings, table, own)
                    found += check_fixed_limits(settings, table, own, block_bytes)
                    found += _check_close_keys(settings, table, own)
            for one in look(connection, settings, tables):
                if one.error.code not in _TOLD_OTHERWISE:
                    found.append(coded("postgres.health", one.error, severe=False))
            return list(dict.fromkeys(found))
    except psycopg.Error as problem:
        return [coded("postgres.connection", target_error(problem))]
    except OlrPgError as problem:
        if problem.code in (Code.POOLER_SHARES_SESSIONS, Code.POOLER_KEEPS_SETTINGS):
            return [coded("postgres.pooler", problem)]
        if problem.code != Code.TARGET_PRIVILEGE:
            return [coded("postgres.version", problem)]
        user = psycopg.conninfo.conninfo_to_dict(settings.connect_string).get("user", "the role")
        return [
            error(
                "postgres.privileges",
                f"{user} is not allowed to set session_replication_role: {problem.detail}",
                f'GRANT SET ON PARAMETER session_replication_role TO "{user}";',
                'or, if nobody can grant this, set `"triggers": "disable"` in `apply`',
            )
        ]


def _emptied(connection: Connection[Any], settings: ApplierSettings) -> list[str]:
    """Return the source tables whose target rows were lost in a crash."""
    try:
        return lost_tables(connection, settings.subscription)
    except psycopg.Error as problem:
        if not is_forbidden(problem):
            raise
        return []  # another check reports this error


def _check_ledger(connection: Connection[Any], user: str) -> Iterator[Finding]:
    rows = connection.execute(_MISSING_LEDGER, (list(LEDGER_PRIVILEGES),)).fetchall()
    missing = {name for (name,) in rows}
    if missing < LEDGER_PRIVILEGES.keys():
        lacking = list(check_ledger(connection, user))
        yield from lacking
        # A start creates what an earlier release lacked.
        is_current = not lacking and ledger_version(connection) in (0, VERSION)
        if is_current and (lost := missing_parts(connection)) is not None:
            yield coded("postgres.ledger", lost)
    else:
        own = _read_schemas(connection, [OWN_SCHEMA])[OWN_SCHEMA]
        what = f"{user} is not allowed to create the ledger"
        yield from _check_creation(connection, user, OWN_SCHEMA, own, what)


def _user(connection: Connection[Any]) -> str:
    row = connection.execute("SELECT current_user").fetchone()
    assert row is not None
    return str(row[0])


class _Facts(NamedTuple):
    """What the catalogue and the ledger contain about a batch of tables. Errors of the ledger are
    by ``OWNER.NAME`` of the source's table; facts about the target are by schema and name, or by
    OID.

    Attributes:
        elsewhere: errors of tables that the ledger records for other target tables.
        vanished: errors of missing target tables that had rows.
        schemas: the schemas of missing target tables.
        owners: by quoted name, the owners of tables that do not belong to the role.
    """

    user: str
    kinds: KindRows
    elsewhere: dict[str, OlrPgError]
    targets: dict[tuple[str, str], TargetTable]
    replaced: dict[str, OlrPgError]
    others: dict[str, OtherSubscription]
    not_null: dict[int, dict[str, bool]]
    deferrable: dict[int, list[tuple[str, str, list[str]]]]
    grants: dict[tuple[str, str], list[Finding]]
    firing: dict[tuple[str, str], list[Firing]]
    owners: dict[str, str]
    instead: dict[tuple[str, str], Instead]
    vanished: dict[str, OlrPgError]
    schemas: dict[str, _Schema]


def _read_facts(
    connection: Connection[Any], settings: ApplierSettings, tables: Sequence[Table], user: str
) -> _Facts:
    """Read the facts about at most `_BATCH` tables."""
    names = {
        table.full_name: target_name(settings, table.owner, table.name)
        for table in tables
        if table.refusal is None
    }
    subscription = settings.subscription
    full = {source: ".".join(name) for source, name in names.items()}
    targets = read_tables(connection, names.values())
    oids = {source: targets[name].oid for source, name in names.items() if name in targets}
    there = {source: full[source] for source in oids}
    missing = {source: name for source, name in names.items() if name not in targets}
    others = _recorded(
        lambda: other_subscriptions(
            connection, subscription, there, dbid=settings.dbid, start_scn=settings.start_scn
        )
    )
    firing = {} if settings.is_replica else firing_on(connection, targets)
    deferrable: dict[int, list[tuple[str, str, list[str]]]] = {}
    for oid, *one in connection.execute(_DEFERRABLE, (list(oids.values()),)):
        deferrable.setdefault(oid, []).append((one[0], one[1], one[2]))
    return _Facts(
        user=user,
        kinds=KindRows(connection, settings, targets.values()),
        elsewhere=_recorded(lambda: of_other_tables(connection, subscription, full)) or {},
        targets=targets,
        replaced=_replaced(connection, subscription, oids),
        others={str(one.problem.where["table"]): one for one in others or ()},
        not_null=read_not_null(connection, list(oids.values())),
        deferrable=deferrable,
        grants=check_grants(connection, user, dict.fromkeys(targets, _TABLE)),
        firing=firing,
        owners=_owners(connection, [one for found in firing.values() for one in found]),
        instead=found_instead(connection, missing.values()),
        vanished=_recorded(lambda: vanished_tables(connection, subscription, missing)) or {},
        schemas=_read_schemas(connection, sorted({schema for schema, _ in missing.values()})),
    )


def _replaced(
    connection: Connection[Any], subscription: str, oids: Mapping[str, int]
) -> dict[str, OlrPgError]:
    """Return the errors of tables whose rows and ledger do not belong together. If the role cannot
    read a table, the other tables are still checked.
    """
    found = _recorded(lambda: replaced_reasons(connection, subscription, oids))
    if found is None and len(oids) > 1:
        each = (_replaced(connection, subscription, {name: oid}) for name, oid in oids.items())
        found = {name: problem for one in each for name, problem in one.items()}
    return found or {}


def _check_table(
    connection: Connection[Any],
    settings: ApplierSettings,
    table: Table,
    facts: _Facts,
    structure: Structure,
    special: Collection[tuple[str, str]],
) -> Iterator[Finding]:
    """Check the target of one table.

    Args:
        special: schemas and names of the target tables that `check_kind` must check.
    """
    if table.refusal is not None:
        return
    schema, name = target_name(settings, table.owner, table.name)
    elsewhere = facts.elsewhere.get(table.full_name)
    if elsewhere is not None:
        yield coded("postgres.tables", elsewhere)
        return
    target = facts.targets.get((schema, name))
    if target is not None:
        if replaced := facts.replaced.get(table.full_name):
            yield coded("postgres.storage", replaced)
        yield from _check_subscription(facts, table)
        yield from _check_columns(connection, settings, table, target)
        yield from _check_not_null(connection, settings, table, target, facts)
        yield from _check_keys(connection, settings, table, target, structure, facts)
        if (schema, name) in special:
            yield from (one.finding for one in check_kind(facts.kinds, target))
        yield from facts.grants[schema, name]
        yield from _check_firing(connection, facts, target)
        return
    found = facts.instead.get((schema, name))
    if found is not None and found.is_in_place:
        yield error(
            "postgres.tables",
            f"{table.full_name}: {found.what}",
            "rename the existing object, or name another target table in `apply.table-mapping`",
        )
    elif (lost := facts.vanished.get(table.full_name)) is not None:
        yield error("postgres.tables", f"{table.full_name}: {lost.detail}", lost.action)
    elif settings.create_tables:
        if found is not None:
            yield warning(
                "postgres.tables",
                f"{table.full_name}: {found.what}; olr_pg would create another table in addition",
                'if this table is the intended target, rename it, or set `apply.names` to "kept"',
            )
        what = f"{facts.user} is not allowed to create tables in the schema {schema}"
        own = facts.schemas[schema]
        yield from _check_creation(connection, facts.user, schema, own, what)
        yield from _check_choices(settings, table)
    else:
        missing = missing_error(schema, name, table.full_name, found)
        yield error(
            "postgres.tables",
            f"{table.full_name}: {missing.detail}",
            *([] if facts.schemas[schema].exists else [_create_schema(connection, schema)]),
            _create_statement(connection, settings, table, schema, name),
        )


def _check_subscription(facts: _Facts, table: Table) -> Iterator[Finding]:
    """Report if a run would apply changes to the table that another subscription has applied: a new
    name begins at the oldest log. Rows of a table without a key would be inserted twice.
    """
    other = facts.others.get(table.full_name)
    if other is not None:
        problem, is_certain = other
        report = error if is_certain else warning
        yield report("postgres.tables", f"{table.full_name}: {problem.detail}", problem.action)


def _recorded(query: Callable[[], T | None]) -> T | None:
    """Return the result of a query of the ledger; None if there is no ledger, or the role cannot
    read it.
    """
    try:
        return query()
    except psycopg.Error as problem:
        if is_transient(problem):
            raise
        return None  # another check reports this error


def _check_choices(settings: ApplierSettings, table: Table) -> Iterator[Finding]:
    """Check that the columns of a table to create would have unique names, and types that can store
    the values.
    """
    try:
        target_columns(settings, table)
    except OlrPgError as problem:
        yield coded("postgres.names", problem)
    for column in table.delivered:
        try:
            made = settings.choices.pg_type(table.full_name, column)
            column_encoder(settings, table.full_name, column, planned_column(column.name, made))
        except OlrPgError as problem:
            yield coded("postgres.types", located(problem, table=table.full_name))


def check_flags(
    settings: ApplierSettings, table: Table, structure: Structure = NO_STRUCTURE
) -> Iterator[Finding]:
    """Report columns that `types.boolean` would convert to boolean, unless check constraints show
    that they contain only flags.

    Args:
        structure: the structure of this table, if known.
    """
    conditions, choices = check_conditions(structure.left_out), settings.choices
    for column in table.delivered:
        if not choices.is_flag_by_type(table.full_name, column):
            continue
        policies = choices.policies(table.full_name, column.name, settings.policies)
        strays = non_flag_values(
            conditions,
            column.name,
            policies.boolean_pairs,
            is_number=column.type_code == OracleType.NUMBER,
        )
        if strays == ():
            continue
        allowed = f", and its check constraint allows {', '.join(strays)}" if strays else ""
        note = choices.pg_type(table.full_name, column).note
        yield warning(
            "postgres.flags",
            f"{table.full_name}.{column.name} becomes boolean by"
            f" `types.boolean`{allowed}; it accepts {note}, and any other value stops the"
            " table",
            "if the column is not a boolean flag, set"
            f" {no_flag_setting(table.full_name, column)} in `apply`",
        )


def _check_close_keys(
    settings: ApplierSettings, table: Table, structure: Structure
) -> Iterator[Finding]:
    """Report keys that have more fractional digits of seconds than PostgreSQL stores."""
    for column in close_key_columns(settings, table, structure):
        yield warning(
            "postgres.keys",
            f"{table.full_name}: {close_key_words(column)}",
            f"if the source has such rows, set {as_text_setting(table.full_name, column)}"
            " in `apply`",
        )


def _owners(connection: Connection[Any], firing: Sequence[Firing]) -> dict[str, str]:
    """Return, by quoted name, the owners of those tables with `firing` objects that do not belong
    to the role.
    """
    names = {one.identifier.as_string(connection) for one in firing}
    return dict(connection.execute(_OWNER, (sorted(names),)).fetchall()) if names else {}


def _check_firing(
    connection: Connection[Any], facts: _Facts, target: TargetTable
) -> Iterator[Finding]:
    """Report triggers, rules and foreign keys that the role cannot disable, because it does not own
    their table.
    """
    for one in facts.firing.get((target.schema, target.name), ()):
        owner = facts.owners.get(one.identifier.as_string(connection))
        if owner is not None:
            yield error(
                "postgres.privileges",
                f"{facts.user} does not own {one.schema}.{one.table}, so it cannot disable the"
                f" {one.kind} {one.name} of this table",
                f'GRANT {sql.Identifier(owner).as_string(connection)} TO "{facts.user}";',
            )


def _check_columns(
    connection: Connection[Any], settings: ApplierSettings, table: Table, target: TargetTable
) -> Iterator[Finding]:
    names = target_columns(settings, table)
    statement = _alter(connection, target)
    for column in table.delivered:
        name = names[column.name]
        quoted = sql.Identifier(name).as_string(connection)
        made = settings.choices.pg_type(table.full_name, column)
        wanted = made.name
        number = target.column_number(name)
        if number is not None:
            yield from _check_identity(quoted, target, number, statement)
        if number is not None and target.columns[number].generated:
            report = error if column.intcol in table.key else warning
            yield report(
                "postgres.columns",
                f"{target.full_name}.{name} is a generated column: values of"
                f" {table.full_name}.{column.name} are not stored in it and not compared",
                f"if this is not intended: {statement}ALTER COLUMN {quoted} DROP EXPRESSION;",
            )
            continue
        if number is None:
            yield error(
                "postgres.columns",
                f"{target.full_name} has no column {name} for {table.full_name}.{column.name}",
                f"{statement}ADD COLUMN {quoted} {wanted};",
            )
        elif (problem := _misfit(settings, table, column, target, number)) is not None:
            yield error(
                "postgres.types",
                f"{target.full_name}.{name} is {target.columns[number].base_name}:"
                f" {problem.detail}",
                # The values of such a column cannot be decoded, so no type of the target can store
                # them.
                f"-- {problem.action}"
                if problem.code == UNKNOWN_CHARSET
                else f"{statement}ALTER COLUMN {quoted} TYPE {wanted} USING {quoted}::{wanted};",
            )
        elif (doubt := _doubt(column, made, target.columns[number])) is not None:
            yield warning(
                "postgres.types",
                f"{target.full_name}.{name} {doubt}",
                f"{statement}ALTER COLUMN {quoted} TYPE {wanted};",
            )


def _doubt(column: Column, made: PgType, target: TargetColumn) -> str | None:
    """Return what may happen to values that a target column of a suitable type gets, or None."""
    if (rounding := may_round(column, target)) is not None:
        return f"may round: {rounding}"
    if (refusing := may_refuse(column, made, target)) is not None:
        return f"may refuse values: {refusing}"
    changing = may_change(column, made, target)
    return None if changing is None else f"may change values: {changing}"


def _check_not_null(
    connection: Connection[Any],
    settings: ApplierSettings,
    table: Table,
    target: TargetTable,
    facts: _Facts,
) -> Iterator[Finding]:
    names = target_columns(settings, table)
    sources = {names[column.name]: column for column in table.delivered}
    generated = {column.name for column in target.columns if column.generated}
    for name, is_filled in facts.not_null.get(target.oid, {}).items():
        source = sources.get(name)
        if name in generated or (source is not None and not source.nullable):
            continue
        quoted = sql.Identifier(name).as_string(connection)
        statement = f"{_alter(connection, target)}ALTER COLUMN {quoted} DROP NOT NULL;"
        column = f"{target.full_name}.{name}"
        if source is not None:
            what = f"{column} is NOT NULL, but {table.full_name}.{source.name} allows NULL"
            yield warning("postgres.columns", what, statement)
        elif not is_filled:
            what = f"{column} is NOT NULL without a default, and {table.full_name} has no such"
            yield error("postgres.columns", f"{what} column, so no row can be inserted", statement)


def _check_identity(
    quoted: str, target: TargetTable, number: int, statement: str
) -> Iterator[Finding]:
    if target.columns[number].identity == "a":
        yield error(
            "postgres.identity",
            f"{target.full_name}.{target.columns[number].name} is GENERATED ALWAYS AS"
            " IDENTITY: PostgreSQL does not allow updates of it",
            f"{statement}ALTER COLUMN {quoted} SET GENERATED BY DEFAULT;",
        )


def _check_keys(
    connection: Connection[Any],
    settings: ApplierSettings,
    table: Table,
    target: TargetTable,
    structure: Structure,
    facts: _Facts,
) -> Iterator[Finding]:
    names = target_columns(settings, table)
    unique = [[names.get(column) for column in one.columns] for one in structure.unique_keys]
    statement = _alter(connection, target)
    key = [names[c.name] for number in table.key for c in table.columns if c.intcol == number]
    if key and not target.key:
        quoted_key = ", ".join(sql.Identifier(part).as_string(connection) for part in key)
        yield warning(
            "postgres.keys",
            f"{target.full_name} has no key: updates and deletes read every row of the table. If"
            " rows are missing or duplicated, updates and deletes may change too few or too"
            " many rows without an error",
            f"{statement}ADD PRIMARY KEY ({quoted_key});",
        )
    elif target.key and not set(target.key) >= set(key):
        yield _other_key(connection, table, target, key)
    elif target.key and not key:
        yield _own_key(settings, table, target)
    for name, definition, columns in facts.deferrable.get(target.oid, ()):
        if columns in unique:
            # `schema export` makes these unique keys deferrable, because Oracle checks them at the
            # end of a statement.
            continue
        quoted = sql.Identifier(name).as_string(connection)
        at_once = definition.partition(" DEFERRABLE")[0]
        yield warning(
            "postgres.keys",
            f"{target.full_name} has a deferrable key, {name}, which PostgreSQL does not"
            " check while changes are applied, so duplicates are not noticed",
            f"{statement}DROP CONSTRAINT {quoted}, ADD CONSTRAINT {quoted} {at_once};",
        )


def _other_key(
    connection: Connection[Any], table: Table, target: TargetTable, key: Sequence[str]
) -> Finding:
    """Report a target table whose primary key differs from the source's primary key. With different
    primary keys, rows must be unique in both keys.
    """
    wanted = ", ".join(sql.Identifier(part).as_string(connection) for part in key)
    return warning(
        "postgres.keys",
        f"{target.full_name} has the primary key ({', '.join(target.key)}), but"
        f" {table.full_name} has ({', '.join(key)}). Rows are found by the source's key;"
        " two rows of the source with the same values in the target's key stop the table",
        "if the different key is not intended, drop the primary key, then:"
        f" {_alter(connection, target)}ADD PRIMARY KEY ({wanted});",
    )


def _own_key(settings: ApplierSettings, table: Table, target: TargetTable) -> Finding:
    """Report a target table that has a primary key although the source's table has none. The redo
    may lack the columns of this key.
    """
    names = {name: column for column, name in target_columns(settings, table).items()}
    columns = ", ".join(f'"{names.get(part, part)}"' for part in target.key)
    return warning(
        "postgres.keys",
        f"{table.full_name} has no key, but {target.full_name} has the primary key"
        f" ({', '.join(target.key)}). Rows are found by this key, so each change in the"
        " redo must contain its columns",
        f'ALTER TABLE "{table.owner}"."{table.name}" ADD SUPPLEMENTAL LOG GROUP'
        f' "OLR_PG_KEY_{table.obj}" ({columns})'  # a name may be used once in a schema
        " ALWAYS; in the source, unless it logs all columns",
    )


def _alter(connection: Connection[Any], target: TargetTable) -> str:
    return sql.SQL("ALTER TABLE {} ").format(target.identifier).as_string(connection)


def _misfit(
    settings: ApplierSettings, table: Table, column: Column, target: TargetTable, number: int
) -> OlrPgError | None:
    try:
        column_encoder(settings, table.full_name, column, target.columns[number])
    except OlrPgError as problem:
        return problem
    return None


def _create_schema(connection: Connection[Any], schema: str) -> str:
    """Return the statement that creates a schema. Several tables of the schema may have it."""
    statement = sql.SQL("CREATE SCHEMA IF NOT EXISTS {};").format(sql.Identifier(schema))
    return statement.as_string(connection)


def _create_statement(
    connection: Connection[Any], settings: ApplierSettings, table: Table, schema: str, name: str
) -> str:
    columns, key = new_table(settings, table, table)
    parts = [
        f"{sql.Identifier(column.name).as_string(connection)} {column.type_name}"
        + (" NOT NULL" if column.not_null else "")
        for column in columns
    ]
    if key:
        quoted = ", ".join(sql.Identifier(part).as_string(connection) for part in key)
        parts.append(f"PRIMARY KEY ({quoted})")
    target = sql.Identifier(schema, name).as_string(connection)
    return f"CREATE TABLE {target} ({', '.join(parts)});"
