"""Blocks of PL/SQL, statement by statement, as PL/pgSQL.

What PL/pgSQL does otherwise is refused: an exception takes back the whole block there, so a handler
after several changes must raise again; COMMIT, calls of other routines, collections and dynamic SQL
are named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.schema.plsql.types import Typed, read_type, variable
from olr_pg.schema.relation_columns import RelationColumn
from olr_pg.schema.scopes import Source
from olr_pg.schema.translating import UntranslatableError
from olr_pg.schema.value_kinds import INTEGER, TEXT

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.schema.plsql.cursor import Cursor
    from olr_pg.schema.plsql.routine_sql import RoutineSql

CONDITIONS: Final = {
    "NO_DATA_FOUND": "no_data_found",
    "TOO_MANY_ROWS": "too_many_rows",
    "DUP_VAL_ON_INDEX": "unique_violation",
    "ZERO_DIVIDE": "division_by_zero",
    "INVALID_NUMBER": "invalid_text_representation",
    "VALUE_ERROR": "string_data_right_truncation OR numeric_value_out_of_range"
    " OR invalid_text_representation",
    "OTHERS": "OTHERS",
}
_CHANGES: Final = ("INSERT", "UPDATE", "DELETE")
_REFUSED: Final = {
    "COMMIT": "COMMIT: only in procedures that are called outside a transaction",
    "ROLLBACK": "ROLLBACK: only in procedures that are called outside a transaction",
    "SAVEPOINT": "SAVEPOINT: a block with EXCEPTION",
    "EXECUTE": "EXECUTE IMMEDIATE: EXECUTE … USING",
    "OPEN": "OPEN of a cursor: a FOR loop over the query",
    "FETCH": "FETCH of a cursor: a FOR loop over the query",
    "FORALL": "FORALL: one statement over unnest()",
    "GOTO": "GOTO: rewrite the flow",
    "MERGE": "MERGE: INSERT … ON CONFLICT, or PostgreSQL's MERGE",
    "LOCK": "LOCK TABLE: other lock modes",
    "PIPE": "PIPE ROW: RETURN NEXT",
    "CASE": "the statement CASE: IF … ELSIF",
    "WITH": "WITH … SELECT INTO: a subquery",
    "PRAGMA": "a PRAGMA",
    "TYPE": "a type of its own",
    "SUBTYPE": "a type of its own",
    "PROCEDURE": "a procedure within it",
    "FUNCTION": "a function within it",
}


class Body:
    """Writes a block that a cursor stands before.

    Args:
        returns: the type that RETURN gives; None of a procedure or trigger.
        leaving: what RETURN without a value becomes.
    """

    def __init__(
        self, cursor: Cursor, sql: RoutineSql, returns: Typed | None, leaving: str = "RETURN;"
    ) -> None:
        self._cursor = cursor
        self._sql = sql
        self._returns = returns
        self._leaving = leaving
        self._queries: dict[str, str] = {}
        self._changes = 0

    def block(self, first: tuple[str, ...] = (), last: tuple[str, ...] = ()) -> list[str]:
        """Write declarations, statements and handlers.

        Args:
            first, last: statements before and behind those of the block.

        Raises:
            UntranslatableError: with the reason.
        """
        cursor, before = self._cursor, self._changes
        cursor.take("DECLARE")
        known = dict(self._sql.types)
        declared = self._declarations()
        cursor.expect("BEGIN")
        body, ends_with_change = self._statements()
        changes = self._changes - before
        handlers = self._handlers() if cursor.take("EXCEPTION") else []
        may_lose = changes > 1 or (changes == 1 and not ends_with_change)
        if may_lose and not all(
            ends.startswith("RAISE EX") or ends == "RAISE;" for _, ends in handlers
        ):
            raise UntranslatableError(
                "an exception after changes of rows: PostgreSQL takes the changes of the block back"
            )
        cursor.expect("END")
        if cursor.word() != ";" and not cursor.is_done:
            cursor.name()
        cursor.take(";")
        self._sql.types = known
        lines = ["DECLARE", *map(_in, declared)] if declared else []
        lines += ["BEGIN", *map(_in, (*first, *body, *last))]
        if handlers:
            lines += ["EXCEPTION", *(_in(line) for handler, _ in handlers for line in handler)]
        return [*lines, "END;"]

    def _declarations(self) -> list[str]:
        cursor, found = self._cursor, list[str]()
        while cursor.word() != "BEGIN":
            if cursor.word() in _REFUSED:
                raise UntranslatableError(_REFUSED[cursor.word()])
            if cursor.take("CURSOR"):
                name = cursor.name()
                cursor.expect("IS")
                self._queries[name] = cursor.until(";")
                cursor.expect(";")
                continue
            name = cursor.name()
            constant = " CONSTANT" if cursor.take("CONSTANT") else ""
            sql = self._sql
            typed = read_type(cursor, sql.relations, sql.owner, sql.types, sized=True)
            filled = " NOT NULL" if cursor.take("NOT", "NULL") else ""
            value = ""
            if cursor.take(":=") or cursor.take("DEFAULT"):
                value = f" := {sql.value(cursor.until(';'), typed.fact)}"
            cursor.expect(";")
            sql.types = {**sql.types, name: typed}
            found.append(f"{variable(name)}{constant} {typed.sql}{filled}{value};")
        return found

    def _statements(self) -> tuple[list[str], bool]:
        """Write statements up to the word that ends them; tell whether the last is a change."""
        found, is_change = list[str](), False
        while self._cursor.word() not in ("END", "EXCEPTION", "ELSE", "ELSIF", "WHEN", ""):
            before = self._changes
            is_plain = self._cursor.word() in _CHANGES
            found += self._statement()
            is_change = is_plain and self._changes == before + 1
        return found, is_change

    def _statement(self) -> list[str]:
        cursor = self._cursor
        word = cursor.word()
        if word in _REFUSED:
            raise UntranslatableError(_REFUSED[word])
        writers: dict[str, Callable[[], list[str]]] = {
            "IF": self._if,
            "LOOP": self._loop,
            "WHILE": self._loop,
            "FOR": self._for,
            "BEGIN": self.block,
            "DECLARE": self.block,
            "SELECT": self._select,
            **dict.fromkeys(_CHANGES, self._change),
        }
        if word in writers:
            return writers[word]()
        if word in ("EXIT", "CONTINUE"):
            return self._leave_loop(word)
        return [self._simple(word)]

    def _simple(self, word: str) -> str:
        cursor, sql = self._cursor, self._sql
        if cursor.take("NULL", ";"):
            return "NULL;"
        if cursor.take("RETURN", ";"):
            return self._leaving
        if cursor.take("RETURN"):
            if self._returns is None:
                raise UntranslatableError("RETURN of a value")
            value = sql.value(cursor.until(";"), self._returns.fact)
            cursor.expect(";")
            return f"RETURN {value};"
        if cursor.take("RAISE", ";"):
            return "RAISE;"
        if cursor.take("RAISE_APPLICATION_ERROR", "("):
            return self._raise()
        if word == "RAISE":
            raise UntranslatableError("RAISE of an exception of its own: RAISE EXCEPTION")
        return self._assignment()

    def _raise(self) -> str:
        cursor = self._cursor
        code, text, *_ = [*cursor.list_until(")"), ""]
        cursor.expect(";")
        number = code.replace(" ", "").removeprefix("-")
        if not number.isdigit():
            raise UntranslatableError("RAISE_APPLICATION_ERROR with a number that is no literal")
        message = f"'ORA-{number}: ' || COALESCE({self._sql.value(text, TEXT)}, '')"
        return f"RAISE EXCEPTION USING MESSAGE = {message}, ERRCODE = 'P0001';"

    def _assignment(self) -> str:
        cursor = self._cursor
        names = cursor.path()
        if names == ["DBMS_OUTPUT", "PUT_LINE"] and cursor.take("("):
            (text,) = cursor.list_until(")")
            cursor.expect(";")
            return f"RAISE NOTICE '%', {self._sql.value(text, TEXT)};"
        if not cursor.take(":="):
            raise UntranslatableError(f"it calls {'.'.join(names)}")
        target, fact = self._sql.target(names)
        value = self._sql.value(cursor.until(";"), fact)
        cursor.expect(";")
        return f"{target} := {value};"

    def _if(self) -> list[str]:
        cursor, lines = self._cursor, list[str]()
        word = "IF"
        while cursor.take(word):
            condition = self._sql.value(cursor.until("THEN"))
            cursor.expect("THEN")
            lines += [f"{word} {condition} THEN", *map(_in, self._statements()[0])]
            word = "ELSIF"
        if cursor.take("ELSE"):
            lines += ["ELSE", *map(_in, self._statements()[0])]
        cursor.expect("END", "IF", ";")
        return [*lines, "END IF;"]

    def _loop(self) -> list[str]:
        cursor, head = self._cursor, ""
        if cursor.take("WHILE"):
            head = f"WHILE {self._sql.value(cursor.until('LOOP'))} "
        return self._looped(head)

    def _looped(self, head: str) -> list[str]:
        cursor = self._cursor
        cursor.expect("LOOP")
        before = self._changes
        body, _ = self._statements()
        self._changes += self._changes - before  # there may be many
        cursor.expect("END", "LOOP")
        if cursor.word() != ";":
            raise UntranslatableError("a loop with a label")
        cursor.expect(";")
        return [f"{head}LOOP", *map(_in, body), "END LOOP;"]

    def _for(self) -> list[str]:
        cursor = self._cursor
        cursor.expect("FOR")
        name = cursor.name()
        cursor.expect("IN")
        backwards = " REVERSE" if cursor.take("REVERSE") else ""
        is_query = cursor.take("(")
        text = cursor.until(")") if is_query else cursor.until("LOOP")
        if is_query:
            cursor.expect(")")
        query = text if is_query else self._queries.get(text.upper())
        if query is None:
            return self._count(name, text, backwards)
        return self._rows(name, query)

    def _count(self, name: str, text: str, backwards: str) -> list[str]:
        sql, ends = self._sql, text.split("..")
        if len(ends) != 2:
            raise UntranslatableError(f"a loop over {text}")
        low, high = (f"CAST(ROUND({sql.value(end, INTEGER)}) AS INT)" for end in ends)
        known = sql.types
        sql.types = {**known, name: Typed("integer", INTEGER)}
        first, second = (high, low) if backwards else (low, high)
        lines = self._looped(f"FOR {variable(name)} IN{backwards} {first} .. {second} ")
        sql.types = known
        return lines

    def _rows(self, name: str, query: str) -> list[str]:
        sql = self._sql
        text, outputs = sql.query(query)
        columns = {
            one.name: RelationColumn(one.column.name, one.column.fact)
            for one in outputs
            if one.name
        }
        known = sql.records
        sql.records = {**known, name: Source(name, name.lower(), columns)}
        record = f"{variable(name)} record;"
        lines = self._looped(f"FOR {variable(name)} IN {text} ")
        sql.records = known
        return ["DECLARE", _in(record), "BEGIN", *map(_in, lines), "END;"]

    def _leave_loop(self, word: str) -> list[str]:
        cursor = self._cursor
        cursor.expect(word)
        condition = ""
        if cursor.take("WHEN"):
            condition = f" WHEN {self._sql.value(cursor.until(';'))}"
        cursor.expect(";")
        return [f"{word}{condition};"]

    def _select(self) -> list[str]:
        cursor = self._cursor
        cursor.expect("SELECT")
        items = cursor.until("INTO", "BULK", ";")
        if not cursor.take("INTO"):
            raise UntranslatableError("BULK COLLECT: array_agg, or a loop")
        targets = [cursor.path()]
        while cursor.take(","):
            targets.append(cursor.path())
        rest = cursor.until(";")
        cursor.expect(";")
        text, outputs = self._sql.query(f"SELECT {items} {rest}")
        if len(outputs) != len(targets):
            raise UntranslatableError("SELECT INTO a record")
        names = [
            self._sql.into(target, one.column.fact)
            for target, one in zip(targets, outputs, strict=True)
        ]
        return [f"{text} INTO STRICT {', '.join(names)};"]

    def _change(self) -> list[str]:
        text = self._cursor.until(";")
        self._cursor.expect(";")
        self._changes += 1
        return [f"{self._sql.change(text)};"]

    def _handlers(self) -> list[tuple[list[str], str]]:
        """Write the handlers; return each with its last statement."""
        cursor, found = self._cursor, list[tuple[list[str], str]]()
        while cursor.take("WHEN"):
            names = [cursor.name()]
            while cursor.take("OR"):
                names.append(cursor.name())
            cursor.expect("THEN")
            unknown = [name for name in names if name not in CONDITIONS]
            if unknown:
                raise UntranslatableError(f"the exception {unknown[0]}")
            body, _ = self._statements()
            conditions = " OR ".join(CONDITIONS[name] for name in names)
            found.append(([f"WHEN {conditions} THEN", *map(_in, body)], body[-1] if body else ""))
        return found


def _in(line: str) -> str:
    return f"    {line}"
