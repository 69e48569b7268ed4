"""Makes the assessment from an inventory and its converted statements, with one item for each
object.

Tables are assessed by their types, character sets, size, logging and key. The effort to rewrite
PL/SQL is estimated from the number of its lines and from the constructs that PostgreSQL lacks or
executes differently. The constructs are found by the tokens of the code. Comments and literals are
ignored: sqlglot's tokenizer for Oracle finds the words of the code (if it fails, all words of the
text are used).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from sqlglot.dialects.oracle import Oracle
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType

from olr_pg.applier.target.fixed_limits import check_fixed_limits
from olr_pg.assessment.report import (
    AssessedColumn,
    AssessedTable,
    Carrier,
    Effort,
    Item,
    MeasuredRates,
    Report,
    TextColumns,
)
from olr_pg.datatypes.charsets import DATABASE_FORM, charset
from olr_pg.dictionary.inventory import oracle_type_text
from olr_pg.dictionary.structure import Index, Structure, UniqueKey
from olr_pg.dictionary.sys_tables import non_flag_values
from olr_pg.dictionary.true_charsets import is_explicit
from olr_pg.errors import OlrPgError
from olr_pg.observability.wording import counted
from olr_pg.schema.table_definitions import key_of, made_columns
from olr_pg.schema.value_kinds import NUMBERS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from olr_pg.dictionary.inventory import Inventory, InventoryIndex, InventoryTable, SchemaObject
    from olr_pg.dictionary.model import Snapshot, Table
    from olr_pg.schema.relations import Relation, Relations
    from olr_pg.schema.statement import Statement


def assessed_table(
    replicated: frozenset[str],
    relations: Relations,
    table: InventoryTable,
    found: Table | None,
    indexes: Sequence[InventoryIndex] = (),
) -> AssessedTable:
    """Assess one table.

    Args:
        found: the table in the dictionary; None if the dictionary does not contain it.
        indexes: the indexes of the table.
    """
    name = f"{table.owner}.{table.name}"
    if name not in replicated:
        answer = "not in `apply.tables`"
    else:
        answer = (found.obstacle if found is not None else None) or "yes"
    return AssessedTable(
        name=name,
        kind=table.kind,
        rows=table.rows,
        bytes=table.bytes,
        lob_bytes=table.lob_bytes,
        replicated=answer,
        logging=", ".join(word.removesuffix(" LOGGING").lower() for word in table.logging),
        key=_key(relations, table),
        columns=tuple(_columns(table, relations, found)),
        limits=() if found is None else tuple(_limits(relations, found, indexes)),
    )


def text_columns(declared: str, tables: Iterable[Table]) -> TextColumns | None:
    """Count the text columns of replicated tables by the origin of their character set.

    Returns:
        None if the declared set is unsupported or can have several bytes per character: then no
        other set can be configured.
    """
    try:
        is_replaceable = charset(declared).structure == "single-byte"
    except OlrPgError:
        return None  # each text column has this obstacle in the report
    if not is_replaceable:
        return None
    columns = [column for table in tables for column in table.delivered]
    as_declared = sum(column.charset_form == DATABASE_FORM for column in columns)
    return TextColumns(declared, as_declared, sum(map(is_explicit, columns)))


def _key(relations: Relations, table: InventoryTable) -> str:
    key = key_of(relations, table)
    if key is not None:
        return "primary key: " + ", ".join(key.columns)
    nullable = {column.name for column in table.columns if column.nullable}
    for one in relations.constraints_of(table.owner, table.name):
        if one.kind == "unique" and one.enabled and not nullable & set(one.columns):
            return "unique key: " + ", ".join(one.columns)
    return ""


def _limits(relations: Relations, table: Table, indexes: Sequence[InventoryIndex]) -> Iterator[str]:
    """Yield what of a table can exceed the fixed limits of PostgreSQL."""
    owner, name = table.source_owner, table.name
    constraints = relations.constraints_of(owner, name)
    structure = Structure(
        unique_keys=tuple(
            UniqueKey(owner=owner, table=name, name=one.name, columns=one.columns)
            for one in constraints
            if one.kind == "unique" and one.enabled
        ),
        indexes=tuple(
            Index(
                owner=owner,
                table=name,
                name=one.name,
                columns=tuple(part.text for part in one.parts),
            )
            for one in indexes
            if one.usable and one.kind == "NORMAL" and not one.constraint
        ),
    )
    for finding in check_fixed_limits(relations.settings, table, structure):
        yield finding.what


def _columns(
    table: InventoryTable, relations: Relations, known: Table | None
) -> Iterator[AssessedColumn]:
    relation = relations.find(table.owner, table.name)
    assert relation is not None
    reasons = {c.name: c.unsupported or "" for c in known.columns} if known else {}
    for column in made_columns(table, relation):
        obstacle = column.reason or reasons.get(column.source.name, "")
        if column.source.virtual:
            obstacle = "" if column.type_name else obstacle
        yield AssessedColumn(
            name=column.source.name,
            oracle_type=oracle_type_text(column.source)
            + (" (virtual)" if column.source.virtual else ""),
            target_type=column.type_name
            + (" (generated)" if column.source.virtual and column.type_name else ""),
            lost=column.note + _doubt(relations, table, column.source.name, relation),
            obstacle=obstacle,
        )


def _doubt(relations: Relations, table: InventoryTable, name: str, relation: Relation) -> str:
    """Describe the risk of a column that is converted to boolean only because of its type."""
    column = relation.columns[name]
    if not column.no_flag_setting:
        return ""
    checks = (
        one.condition
        for one in relations.constraints_of(table.owner, table.name)
        if one.kind == "check" and one.enabled
    )
    is_number = column.fact.kind in NUMBERS
    strays = non_flag_values(checks, name, column.pairs, is_number=is_number)
    if strays == ():
        return ""
    known = f"its check allows {', '.join(strays)}" if strays else "no check restricts its values"
    return (
        f"; {known}: a value that means neither true nor false stops the table. If the column can"
        f" have such values, add: {column.no_flag_setting}"
    )


_COMMENT: Final = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'", re.DOTALL)
_WORD: Final = re.compile(r"[A-Za-z_][\w$#]*|%\w+|\S")

CONSTRUCTS: Final[dict[str, tuple[str, int]]] = {
    "AUTONOMOUS_TRANSACTION": ("an autonomous transaction: use dblink or another design", 60),
    "BULK COLLECT": ("BULK COLLECT: use array_agg or a loop", 10),
    "FORALL": ("FORALL: use one statement with unnest()", 10),
    "CONNECT BY": ("CONNECT BY: use WITH RECURSIVE", 30),
    "EXECUTE IMMEDIATE": ("EXECUTE IMMEDIATE: use EXECUTE … USING", 10),
    "REF CURSOR": ("REF CURSOR: use refcursor", 15),
    "SYS_REFCURSOR": ("SYS_REFCURSOR: use refcursor", 10),
    "PIPELINED": ("a pipelined function: use RETURNS SETOF with RETURN NEXT", 20),
    "PIPE ROW": ("PIPE ROW: use RETURN NEXT", 5),
    "INDEX BY": ("an associative array: use jsonb, hstore or a temporary table", 30),
    "TABLE OF": ("a collection type: use an array", 15),
    "VARRAY": ("VARRAY: use an array", 15),
    "GOTO": ("GOTO: use loops and conditions", 30),
    "RAISE_APPLICATION_ERROR": ("RAISE_APPLICATION_ERROR: use RAISE EXCEPTION … USING ERRCODE", 5),
    "PRAGMA EXCEPTION_INIT": ("PRAGMA EXCEPTION_INIT: use conditions with an SQLSTATE", 10),
    "SQLCODE": ("SQLCODE: use SQLSTATE", 5),
    "MERGE": ("MERGE: PostgreSQL's MERGE has other clauses", 10),
    "ROWNUM": ("ROWNUM: use LIMIT or row_number()", 5),
    "ROWID": ("ROWID: use the key, because the ctid of a row changes", 20),
    "DUAL": ("DUAL: omit FROM DUAL", 1),
    "SYSDATE": ("SYSDATE: use statement_timestamp()", 1),
    "NEXTVAL": ("NEXTVAL of a sequence: use nextval('…')", 1),
    "DECODE": ("DECODE: use CASE", 2),
    "NVL": ("NVL: use coalesce(); in PostgreSQL, an empty text is not NULL", 1),
    "COMMIT": ("COMMIT: allowed only in procedures that are called outside a transaction", 20),
    "ROLLBACK": ("ROLLBACK: allowed only in procedures that are called outside a transaction", 20),
    "SAVEPOINT": ("SAVEPOINT: use a block with EXCEPTION", 20),
    "LOCK TABLE": ("LOCK TABLE: PostgreSQL has other lock modes", 10),
    "DBMS_OUTPUT": ("DBMS_OUTPUT: use RAISE NOTICE", 2),
    "DBMS_SQL": ("DBMS_SQL: use EXECUTE", 60),
    "DBMS_LOB": ("DBMS_LOB: use the functions for text and bytea", 15),
    "DBMS_JOB": ("DBMS_JOB: use pg_cron or cron", 30),
    "DBMS_SCHEDULER": ("DBMS_SCHEDULER: use pg_cron or cron", 30),
    "DBMS_MVIEW": ("DBMS_MVIEW: use REFRESH MATERIALIZED VIEW", 5),
    "DBMS_LOCK": ("DBMS_LOCK: use advisory locks", 20),
    "DBMS_AQ": ("DBMS_AQ: use a queue table or a message broker", 240),
    "DBMS_RANDOM": ("DBMS_RANDOM: use random()", 5),
    "DBMS_CRYPTO": ("DBMS_CRYPTO: use pgcrypto", 30),
    "DBMS_XMLGEN": ("DBMS_XMLGEN: use query_to_xml()", 30),
    "UTL_FILE": ("UTL_FILE: move file access to the application", 60),
    "UTL_HTTP": ("UTL_HTTP: move HTTP requests to the application", 120),
    "UTL_SMTP": ("UTL_SMTP: move mail to the application", 120),
    "UTL_MAIL": ("UTL_MAIL: move mail to the application", 60),
    "UTL_RAW": ("UTL_RAW: use encode() and decode()", 15),
    "XMLTYPE": ("XMLTYPE: use the type xml", 30),
    "SYS_CONTEXT": ("SYS_CONTEXT: use current_setting()", 10),
    "OBJECT": ("an object type: use a composite type, which has no methods", 60),
    "MEMBER": ("a method of an object type: use a function", 30),
    "DETERMINISTIC": ("DETERMINISTIC: use IMMUTABLE", 1),
    "%TYPE": ("%TYPE: the same", 0),
    "%ROWTYPE": ("%ROWTYPE: the same", 0),
    "%ROWCOUNT": ("SQL%ROWCOUNT: use GET DIAGNOSTICS", 5),
    "%FOUND": ("SQL%FOUND: use FOUND", 2),
    "%NOTFOUND": ("SQL%NOTFOUND: use NOT FOUND", 2),
    "%ISOPEN": ("%ISOPEN: PostgreSQL has no equivalent", 10),
    "@": ("a database link: use a foreign table", 60),
}
"""For one or more words: the replacement in PostgreSQL, and the minutes of work for each
occurrence.
"""

_PACKAGE_STATE: Final = ("package variables: use settings (set_config)", 60)


class Construct(NamedTuple):
    """A construct, and the number of its occurrences."""

    word: str
    places: int
    advice: str
    minutes: int


def find_constructs(text: str) -> list[Construct]:
    """Return the constructs that PostgreSQL lacks or executes differently; those with the most
    effort come first.
    """
    words = _words(text)
    found = Counter[str]()
    for at, word in enumerate(words):
        pair = f"{word} {words[at + 1]}" if at + 1 < len(words) else word
        if pair in CONSTRUCTS:
            found[pair] += 1
        elif word in CONSTRUCTS:
            found[word] += 1
    listed = [
        Construct(word, count, CONSTRUCTS[word][0], CONSTRUCTS[word][1] * count)
        for word, count in found.items()
    ]
    return sorted(listed, key=lambda one: (-one.minutes, one.word))


def package_state(text: str) -> Construct | None:
    """Return a construct if a package body has variables before its first routine, because these
    keep state; otherwise None.
    """
    words = _words(text)
    if words[:2] != ["PACKAGE", "BODY"]:
        return None
    head = words[
        : min((words.index(w) for w in ("PROCEDURE", "FUNCTION") if w in words), default=0)
    ]
    count = head.count(";")
    return Construct("package variables", count, *_PACKAGE_STATE) if count else None


def code_lines(text: str) -> int:
    """Return the number of lines that are neither empty nor comments."""
    lines = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL).splitlines()
    return sum(bool(line.strip()) and not line.strip().startswith("--") for line in lines)


def _words(text: str) -> list[str]:
    """Return the words of the code in upper case; an attribute such as ``%TYPE`` is one word."""
    try:
        tokens = Oracle().tokenize(text)
    except TokenError:
        plain = _COMMENT.sub(" ", text)
        return [word.upper() for word in _WORD.findall(plain)]
    words = list[str]()
    for token in tokens:
        if token.token_type in (TokenType.STRING, TokenType.NATIONAL_STRING, TokenType.RAW_STRING):
            continue
        word = token.text.upper()
        if words and words[-1] == "%":
            words[-1] = f"%{word}"
        else:
            words += word.replace("@", " @ ").split() or [word]
    return words


_MINUTES_EACH_LINE: Final = 1
_SHORT, _LONG = 30, 120


def code_item(kind: str, name: str, text: str, remark: str = "") -> Item:
    """Assess a unit of PL/SQL."""
    constructs = find_constructs(text)
    state = package_state(text)
    if state is not None:
        constructs = [state, *constructs]
    lines = code_lines(text)
    minutes = max(lines * _MINUTES_EACH_LINE, 5) + sum(one.minutes for one in constructs)
    effort = Effort.LOW if minutes <= _SHORT else Effort.MEDIUM
    if minutes > _LONG:
        effort = Effort.HIGH
    reasons = [*([remark] if remark else []), f"rewrite {counted(lines, 'line')} of PL/SQL"]
    reasons += [f"{one.places} × {one.advice}" for one in constructs if one.minutes]
    if kind == "PACKAGE":
        reasons.append(
            "replace the package by a schema, and its routines by functions in this schema"
        )
    return Item(kind, name, Carrier.BY_HAND, effort, minutes, tuple(reasons), lines)


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
        "the schedule is used by jobs, which PostgreSQL does not have: use pg_cron or cron",
    ),
    "PROGRAM": (
        Effort.LOW,
        "the program is used by jobs, which PostgreSQL does not have: use pg_cron or cron",
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
    indexes: dict[tuple[str, str], list[InventoryIndex]] = defaultdict(list)
    for one in inventory.indexes:
        indexes[one.table_owner, one.table].append(one)
    return Report(
        database=inventory.database,
        version=inventory.version,
        scn=inventory.scn,
        owners=inventory.owners,
        items=list(_Assessor(inventory, stored, replicated, statements).items()),
        tables=[
            assessed_table(
                replicated,
                relations,
                table,
                stored.get((table.owner, table.name)),
                indexes[table.owner, table.name],
            )
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
                else "the object needs no statement of its own"
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
        """Return the item for a table. The item needs manual work if the table or a part of the
        table is not created.
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
            reasons.append("the rows are not replicated: the table is not in `apply.tables`")
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
        remark = "the source text of this object cannot be read" if text is None else ""
        parts = [part for part in self._of_table[one.full_name] if part.what != "package"]
        done = sum(part.runs for part in parts)
        if one.kind.startswith("PACKAGE") and done:
            if done == len(parts) or one.kind == "PACKAGE":
                return _plain(
                    one,
                    Carrier.CONVERTED,
                    f"{counted(done, 'routine is created', 'routines are created')} in a schema"
                    " of the package's name",
                )
            remark = f"translated: {done} of its {counted(len(parts), 'part')}"
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
    reason = found[0].reason if found else "the table of this object is not created"
    reasons = (reason,)
    low = Effort.LOW
    return Item(kind, name, Carrier.BY_HAND, low, low.value // 3, reasons, is_object=False)
