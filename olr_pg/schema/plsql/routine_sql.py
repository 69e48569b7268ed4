"""Translates the expressions, queries and changes in a routine, in which the routine's variables
can be used.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from olr_pg.observability.wording import counted
from olr_pg.schema.oracle_parser import parse_oracle
from olr_pg.schema.parts import check_kept
from olr_pg.schema.plsql.changes import Merge, translate_change, translate_merge
from olr_pg.schema.plsql.types import own_name, subtype, variable
from olr_pg.schema.queries import translate_frame
from olr_pg.schema.relation_columns import RelationColumn
from olr_pg.schema.translating import Scope, Source, UntranslatableError, quoted
from olr_pg.schema.translation import assigned, guarded, refuse_unknown, translator_of
from olr_pg.schema.value_kinds import NUMBERS, TEXT, ValueKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from olr_pg.schema.plsql.types import Constant, Signature, Typed
    from olr_pg.schema.queries import Output
    from olr_pg.schema.relations import Relations
    from olr_pg.schema.translating import Translated, Translator
    from olr_pg.schema.value_kinds import Fact

_RECORD_ROW: Final = re.compile(
    r"(?P<head>INSERT\s+INTO\s+(?P<table>[\w.$#]+))\s+VALUES\s+(?P<record>[\w$#]+)\s*",
    re.IGNORECASE,
)
_METHOD: Final = re.compile(
    r"('(?:[^']|'')*'|\"[^\"]*\")|\b([\w$#]+)\s*\.\s*(COUNT|FIRST|LAST)\b(?!\s*\()", re.IGNORECASE
)
_RECORD_SET: Final = re.compile(
    r"(?P<head>UPDATE\s+(?P<table>[\w.$#]+)(\s+\w+)?)\s+SET\s+ROW\s*=\s*(?P<record>[\w$#]+)"
    r"(?P<rest>(\s+WHERE\s.*)?)",
    re.IGNORECASE | re.DOTALL,
)
_EVENT: Final = {"TG_OP": RelationColumn("tg_op", TEXT._replace(filled=True))}
"""The variable TG_OP of PL/pgSQL; conditions on it replace INSERTING, UPDATING and DELETING."""


def checked_count(name: str) -> str:
    """Return SQL for the number of elements of a collection. If the collection is NULL, the SQL
    raises an error with an SQLSTATE that only OTHERS catches.
    """
    count = variable(f"{name}%COUNT")
    error = f"CONCAT('ORA-06531: Reference to uninitialized collection', {count})"
    return f"COALESCE({count}, LENGTH(CAST(CAST({error} AS date) AS text)))"


class _Names(Scope):
    """The scope that resolves the routine's variables and records. A record's columns are qualified
    by the record's name.
    """

    def having(self, name: str) -> tuple[Source, RelationColumn] | None:
        variables = self.sources[0]
        return (variables, variables.columns[name]) if name in variables.columns else None


class RoutineSql:
    """Translates the SQL in a routine.

    Args:
        find: finds the called routine, given the caller's owner and package, and the names in the
            call.
        package: the package of the routine; empty if it is in none.

    Attributes:
        calls, called: the routines that the routine calls, and the number of calls that were
            translated.
        constants: the constants of its package that the routine uses.
        shared: the declarations of types, exceptions and cursors of its package that it uses.
        types: the types of the variables, by their names in Oracle.
        records: NEW, OLD, row variables and the rows of loops and cursors, by their names.
        labels: the variables of the labelled blocks and of the routine, by these names.
        rows: the names of records to which values may be assigned.
        filled: the names of records whose fields have types from the beginning.
        open: for each declared cursor, whether it is open before the next statement in the text.
        collections: the types of the elements of collections, by the names of their variables.
        uninitialised: the collections that are NULL at first. In Oracle, the COUNT of such a
            collection is an error.
        subscripts: for the index of each loop over a collection, the collections that have all
            elements over which the loop runs.
        conversions: for each expression and statement so far that converts a text to a number,
            ``PL/SQL`` or ``SQL``.
        remarks: texts that say what differs in the target.
        is_pure: whether the SQL so far reads no rows, time or sequence, and calls no routine.
        reads_only: whether the SQL so far changes no rows and no sequence, and calls no routine.
        needs_privileges: whether the SQL so far uses a table, sequence or routine.
    """

    def __init__(
        self,
        relations: Relations,
        owner: str,
        find: Callable[[str, str, list[str]], Signature | None] | None = None,
        package: str = "",
    ) -> None:
        self.relations = relations
        self.owner = owner
        self._find = find
        self.package = package
        self.calls = set[str]()
        self.called = 0
        self.constants: list[Constant] = []
        self.shared: list[str] = []
        self.types: dict[str, Typed] = {}
        self.records: dict[str, Source] = {}
        self.labels: dict[str, Mapping[str, Typed]] = {}
        self.rows = {"NEW"}
        self.filled = set[str]()
        self.open: dict[str, bool] = {}
        self.collections: dict[str, Typed] = {}
        self.uninitialised = set[str]()
        self.subscripts: dict[str, frozenset[str]] = {}
        self.remarks: list[str] = []
        self.conversions: list[str] = []
        self.is_pure = True
        self.reads_only = True
        self.needs_privileges = False

    def value(self, text: str, wanted: Fact | None = None) -> str:
        """Translate an expression, and convert its value to the kind `wanted`, if given.

        Raises:
            UntranslatableError: the SQL cannot be translated; the error has the reason.
        """

        def translate() -> str:
            tree = parse_oracle(f"SELECT {self._with_counts(text)}")
            if not isinstance(tree, exp.Select) or len(tree.selects) != 1:
                raise UntranslatableError("the SQL is not a single expression")
            if tree.args.get("from_") or isinstance(tree.selects[0], exp.Alias):
                raise UntranslatableError("the SQL is not a single expression")
            t = self._translator()
            t.is_procedural = True
            holder = exp.Paren(this=tree.selects[0])
            refuse_unknown(holder)
            t.translate(holder.this)
            check_kept(holder)
            if wanted is None:
                return t.sql(holder.this)
            return assigned(t, holder.this, wanted.kind)

        return self._seen(guarded(translate), "PL/SQL")

    def query(self, text: str) -> tuple[str, list[Output]]:
        """Translate a query; return (the query, its result columns).

        Raises:
            UntranslatableError: the SQL cannot be translated; the error has the reason.
        """

        def translate() -> tuple[str, list[Output]]:
            tree = parse_oracle(self._with_counts(text))
            if not isinstance(tree, exp.Query):
                raise UntranslatableError("the SQL is not a query")
            lock = _lock(tree)
            t, holder = self._translator(), exp.Paren(this=tree)
            refuse_unknown(tree)
            outputs = translate_frame(t, tree)
            check_kept(holder.this)
            self.is_pure = self.is_pure and not t.read
            self.needs_privileges = self.needs_privileges or bool(t.read)
            self.reads_only = self.reads_only and not lock
            return t.sql(holder.this) + lock, outputs

        sql, outputs = guarded(translate)
        return self._seen(sql), outputs

    def change(self, text: str, returning: Sequence[str] = ()) -> tuple[str, list[Fact]]:
        """Translate INSERT, UPDATE or DELETE. Return (the statement, the facts about the values
        that it returns).

        Args:
            returning: the expressions of its clause RETURNING.

        Raises:
            UntranslatableError: the SQL cannot be translated; the error has the reason.
        """

        def translate() -> tuple[str, list[Fact]]:
            tree = parse_oracle(self._with_counts(self._with_records(text)))
            refuse_unknown(tree)
            return translate_change(self._translator(), tree, returning)

        self.is_pure = self.reads_only = False
        sql, facts = guarded(translate)
        return self._seen(sql), facts

    def _with_counts(self, text: str) -> str:
        """Return SQL in which variables replace COUNT, FIRST and LAST of collections."""

        def replaced(found: re.Match[str]) -> str:
            name = (found[2] or "").upper()
            if name not in self.collections:
                return found[0]
            count = f'"{name}%COUNT"'
            return {
                "COUNT": count,
                "FIRST": f"NULLIF(LEAST({count}, 1), 0)",
                "LAST": f"NULLIF({count}, 0)",
            }[found[3].upper()]

        return _METHOD.sub(replaced, text) if self.collections else text

    def _element(self, t: Translator, name: str, arguments: Sequence[exp.Expr]) -> Translated:
        """Translate an element of a collection. In PostgreSQL, an element that does not exist is
        NULL, and in Oracle it is an error. So the index must be the index of a loop over the
        collection.
        """
        index = t.sql(arguments[0]) if len(arguments) == 1 else ""
        for one, names in self.subscripts.items():
            if index == variable(one) and name in names:
                return f"{variable(name)}[{index}]", self.collections[name].fact
        raise UntranslatableError(
            f"an element of the collection {name} by another index than that of a loop over"
            f" 1 .. {name}.COUNT: PostgreSQL returns NULL if there is no such element"
        )

    def _with_records(self, text: str) -> str:
        """Return a change with the fields of a record instead of ``VALUES record`` or ``SET ROW =
        record``.
        """
        found = _RECORD_ROW.fullmatch(text) or _RECORD_SET.fullmatch(text)
        record = self.records.get(found["record"].upper()) if found else None
        if found is None or record is None:
            return text
        names = found["table"].upper().split(".")
        relation = self.relations.find(*([self.owner, *names][-2:]))
        if relation is None or len(relation.columns) != len(record.columns):
            raise UntranslatableError(f"{found['record']} has other columns than {found['table']}")
        pairs = [
            (f'"{column}"', f'{found["record"]}."{field}"')
            for column, field in zip(relation.columns, record.columns, strict=True)
        ]
        if found.re is _RECORD_ROW:
            listed, values = (", ".join(part) for part in zip(*pairs, strict=True))
            return f"{found['head']} ({listed}) VALUES ({values})"
        items = ", ".join(f"{column} = {value}" for column, value in pairs)
        return f"{found['head']} SET {items}{found['rest']}"

    def merge(self, parts: Merge) -> str:
        """Translate MERGE.

        Raises:
            UntranslatableError: the SQL cannot be translated; the error has the reason.
        """
        self.is_pure = self.reads_only = False
        return self._seen(guarded(lambda: translate_merge(self._translator(), parts)))

    def into_row(self, name: str, outputs: list[Output]) -> list[str]:
        """Return the SQL names to which a row of a query is assigned: the fields of the record, or
        the record if its fields have no types. PL/pgSQL would give a record the names and types of
        the query, and the columns of a table can have another order in the target.

        Raises:
            UntranslatableError: the record's columns do not match the query's.
        """
        columns = [*self.records[name].columns.values()]
        kinds = [one.fact.kind for one in columns]
        given = [one.column.fact.kind for one in outputs]
        if name in self.filled:
            kinds, given = ([_as_number(one) for one in found] for found in (kinds, given))
        if kinds != given or any(one.pairs for one in columns):
            raise UntranslatableError(f"a row is assigned to {name}, which has other columns")
        if not self.records[name].owner and name not in self.filled:
            return [variable(name)]
        return [f"{variable(name)}.{quoted(one.name)}" for one in columns]

    def into(self, target: list[str], given: Fact) -> str:
        """Return the SQL name of the variable to which a value of a query is assigned.

        Raises:
            UntranslatableError: there is no such variable, or its kind differs.
        """
        name, fact = self.target(target)
        kinds = {fact.kind, given.kind}
        is_number = kinds <= NUMBERS and (len(kinds) == 1 or ValueKind.FLOAT not in kinds)
        is_same = len(kinds) == 1 or is_number or given.kind is ValueKind.NOTHING
        if not is_same and kinds != {ValueKind.TEXT, ValueKind.CHAR}:
            raise UntranslatableError(
                f"a {given.kind.value} is assigned to {'.'.join(target)}, which has another type"
            )
        if given.kind is ValueKind.CHAR and fact.kind is ValueKind.TEXT:
            raise UntranslatableError(
                f"a CHAR is assigned to {'.'.join(target)}, which has another type"
            )
        return name

    def target(self, names: list[str]) -> tuple[str, Fact]:
        """Return the SQL name of a variable, or of a column of NEW or another record, and the facts
        about its values.

        Raises:
            UntranslatableError: there is no such variable or column.
        """
        if len(names) == 1 and names[0] in self.types:
            return variable(names[0]), self.types[names[0]].fact
        if len(names) == 2 and names[1] in self.labels.get(names[0], {}):
            fact = self.labels[names[0]][names[1]].fact
            return f"{variable(names[0])}.{variable(names[1])}", fact
        if len(names) == 2 and names[0] in self.rows and names[0] in self.records:
            column = self.records[names[0]].columns.get(names[1])
            if column is not None and column.is_plain:
                return f"{quoted(self.records[names[0]].alias)}.{quoted(column.name)}", column.fact
        raise UntranslatableError(
            f"the code assigns a value to {'.'.join(names)}, which is not a supported variable"
        )

    def _translator(self) -> Translator:
        variables = {
            **_EVENT,
            **_columns_of(self.types),
        }
        labelled = [
            Source(name, own_name(name), _columns_of(types)) for name, types in self.labels.items()
        ]
        of_package = {one.name: one.typed for one in self.constants}
        sources = [Source("", "", variables), *self.records.values(), *labelled]
        if of_package and self.package not in self.labels:
            sources.append(Source(self.package, "", _columns_of(of_package)))
        made = translator_of(self.relations, self.owner, _Names(sources))
        made.call_own = lambda name, arguments: self._call(made, name, arguments)
        return made

    def signature(self, names: list[str]) -> Signature | None:
        """Return the routine that a call with these names calls; None if it is not found."""
        return self._find(self.owner, self.package, names) if self._find is not None else None

    def note_call(self, signature: Signature) -> None:
        """Record that the routine calls another routine, which may read and change rows."""
        self.needs_privileges = True
        self.calls.add(signature.full_name)
        self.called += 1
        self.is_pure = self.reads_only = False

    def _call(self, t: Translator, name: str, arguments: Sequence[exp.Expr]) -> Translated | None:
        if name.upper() in self.collections:
            return self._element(t, name.upper(), arguments)
        found = self.signature(name.upper().split("."))
        if found is None or found.returns is None:
            return None
        left, listed = {one.name: one for one in found.parameters}, list[str]()
        names = list(left)
        for place, value in enumerate(arguments):
            is_named = isinstance(value, exp.Kwarg)
            one = left.pop(
                value.name.upper() if is_named else "".join(names[place : place + 1]), None
            )
            if one is None:
                raise UntranslatableError(
                    f"the SQL calls {name} with {counted(len(arguments), 'argument')}"
                )
            given = assigned(t, value.expression if is_named else value, one.typed.fact.kind)
            way = f"{variable(one.name)} => " if is_named else ""
            listed.append(f"{way}CAST({given} AS {one.typed.sql})")
        if any(not one.default for one in left.values()):
            raise UntranslatableError(
                f"the SQL calls {name} with {counted(len(arguments), 'argument')}"
            )
        self.note_call(found)
        target = f"{quoted(found.schema)}.{quoted(found.name)}"
        return f"{target}({', '.join(listed)})", found.returns.fact._replace(filled=False)

    def _seen(self, sql: str, where: str = "SQL") -> str:
        """Record whether the translated SQL depends on the time, a sequence or the session, and
        whether it converts a text to a number. Return the SQL, in which the current time replaces
        the time of the statement.
        """
        for name, is_open in self.open.items():
            words = ("FOUND", "ROWCOUNT")
            if not is_open and any(variable(f"{name}%{one}") in sql for one in words):
                raise UntranslatableError(
                    f"an attribute of the cursor {name} where it may be closed: Oracle raises"
                    " INVALID_CURSOR; copy the attribute into a variable before CLOSE"
                )
        for name in self.uninitialised:
            sql = sql.replace(variable(f"{name}%COUNT"), checked_count(name))
        if "CAST(TRANSLATE(" in sql or "'ORA-01722: '" in sql:
            self.conversions.append(where)
        self.is_pure = self.is_pure and not any(
            word in sql
            for word in ("STATEMENT_TIMESTAMP", "NEXTVAL", "RANDOM", "CURRENT_", "SESSION_USER")
        )
        self.reads_only = self.reads_only and "NEXTVAL" not in sql
        self.needs_privileges = self.needs_privileges or "NEXTVAL" in sql or not self.reads_only
        return sql.replace("STATEMENT_TIMESTAMP()", "CLOCK_TIMESTAMP()")


def _as_number(kind: ValueKind) -> ValueKind:
    """Return the kind; NUMBER for integers, which PostgreSQL assigns to numbers as Oracle does."""
    return ValueKind.NUMBER if kind is ValueKind.INTEGER else kind


def _columns_of(types: Mapping[str, Typed]) -> dict[str, RelationColumn]:
    return {
        name: RelationColumn(own_name(name), typed.fact)
        for name, typed in types.items()
        if not name.endswith(subtype(""))
    }


def locked(text: str, listed: str = "") -> str:
    """Return a query with FOR UPDATE that locks and reads all rows before it returns the first row,
    as in Oracle. A cursor of PostgreSQL would leave out a row that the loop changes before it is
    read.

    Args:
        listed: the names of its columns, if they differ.
    """
    names = f" ({listed})" if listed else ""
    return (
        f'WITH "rows"{names} AS MATERIALIZED ({text})'  # noqa: S608 - translated
        ' SELECT * FROM "rows" WHERE (SELECT COUNT(*) FROM "rows") > 0'
    )


def _lock(tree: exp.Expr) -> str:
    """Remove FOR UPDATE from a query of one table, and return it for PostgreSQL; empty if there is
    none.

    Raises:
        UntranslatableError: PostgreSQL would lock other rows, or wait in another way.
    """
    locks = tree.args.get("locks") or []
    if not locks:
        return ""
    begin = tree.args.get("from_")
    others = ("joins", "group", "having", "distinct", "connect")
    is_plain = begin is not None and isinstance(begin.this, exp.Table)
    if not is_plain or any(tree.args.get(part) for part in others) or len(locks) > 1:
        raise UntranslatableError("FOR UPDATE of a query that does not read one table")
    wait = locks[0].args.get("wait")
    if isinstance(wait, exp.Expr):
        raise UntranslatableError("FOR UPDATE WAIT: set lock_timeout")
    tree.set("locks", None)
    return " FOR UPDATE" + {None: "", True: " NOWAIT", False: " SKIP LOCKED"}[wait]
