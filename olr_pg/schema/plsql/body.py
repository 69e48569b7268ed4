"""Translates a PL/SQL block into PL/pgSQL, statement by statement.

Statements are refused if PL/pgSQL would execute them differently. For example, an exception in
PL/pgSQL rolls back the whole block. So if a block makes several changes, its exception handlers
must raise the exception again. COMMIT, collections and concatenated dynamic SQL are refused with
the reason. SQL%ROWCOUNT and cursor attributes become variables.
"""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING, Final

from olr_pg.schema.plsql.changes import Merge
from olr_pg.schema.plsql.cursor import Cursor
from olr_pg.schema.plsql.types import Constant, Parameter, Typed, read_type, variable
from olr_pg.schema.queries import Output
from olr_pg.schema.relation_columns import RelationColumn
from olr_pg.schema.translating import Source, UntranslatableError, quoted
from olr_pg.schema.value_kinds import BOOLEAN, INTEGER, TEXT

if TYPE_CHECKING:
    from collections.abc import Callable

    from olr_pg.schema.plsql.routine_sql import RoutineSql

CONDITIONS: Final = {
    "NO_DATA_FOUND": "no_data_found",
    "TOO_MANY_ROWS": "too_many_rows",
    "DUP_VAL_ON_INDEX": "unique_violation",
    "ZERO_DIVIDE": "division_by_zero",
    "INVALID_NUMBER": "invalid_text_representation",
    "VALUE_ERROR": "string_data_right_truncation OR numeric_value_out_of_range"
    " OR invalid_text_representation",
    "CASE_NOT_FOUND": "case_not_found",
    "CURSOR_ALREADY_OPEN": "duplicate_cursor",
    "INVALID_CURSOR": "invalid_cursor_name",
    "OTHERS": "OTHERS",
}
_NUMBERED: Final = {
    1: "unique_violation",
    54: "lock_not_available",
    60: "deadlock_detected",
    1400: "not_null_violation",
    1403: "no_data_found",
    1407: "not_null_violation",
    1422: "too_many_rows",
    1476: "division_by_zero",
    2290: "check_violation",
}
"""For each Oracle error number that corresponds to exactly one error condition of PostgreSQL, the
name of that condition.
"""

_DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LITERAL: Final = re.compile(r"'((?:[^']|'')*)'")
_BIND: Final = re.compile(r"('(?:[^']|'')*')|:(\w+)")
_NAMED: Final = re.compile(r"([\w$#]+)\s*=>\s*(.+)", re.DOTALL)
_COUNTED: Final = re.compile(r"\bSQL\s*%", re.IGNORECASE)
_UNHANDLED: Final = "'ORA-06510: PL/SQL: unhandled user-defined exception'"
_SQL_COUNT: Final = "SQL%ROWCOUNT"
_LOOPS: Final = ("LOOP", "WHILE", "FOR")
_CHANGES: Final = ("INSERT", "UPDATE", "DELETE", "MERGE")
_REFUSED: Final = {
    "COMMIT": "COMMIT: allowed only in procedures that are called outside a transaction",
    "ROLLBACK": "ROLLBACK: allowed only in procedures that are called outside a transaction",
    "SAVEPOINT": "SAVEPOINT: use a block with EXCEPTION",
    "FORALL": "FORALL: use one statement with unnest()",
    "GOTO": "GOTO: use loops and conditions",
    "LOCK": "LOCK TABLE: PostgreSQL has other lock modes",
    "PIPE": "PIPE ROW: use RETURN NEXT",
    "WITH": "WITH … SELECT INTO: use a subquery",
    "PRAGMA": "a PRAGMA other than EXCEPTION_INIT",
    "TYPE": "it declares a type",
    "SUBTYPE": "it declares a type",
    "PROCEDURE": "it declares a nested procedure",
    "FUNCTION": "it declares a nested function",
}


class Body:
    """Translates the PL/SQL block that begins at the cursor's position.

    Args:
        returns: the type of the value that RETURN returns; None for a procedure or trigger.
        leaving: the statement that replaces RETURN without a value.
    """

    def __init__(
        self, cursor: Cursor, sql: RoutineSql, returns: Typed | None, leaving: str = "RETURN;"
    ) -> None:
        self._cursor = cursor
        self._sql = sql
        self._returns = returns
        self._leaving = leaving
        self._queries: dict[str, str] = {}
        self._cursors: dict[str, list[str]] = {}
        self._exceptions: dict[str, str] = {}
        self._changes = 0
        self._labels: list[str] = []
        self._counts = bool(_COUNTED.search(cursor.text))
        self._is_outermost = True

    def block(self, first: tuple[str, ...] = (), last: tuple[str, ...] = ()) -> list[str]:
        """Translate the declarations, statements and handlers of a block.

        Args:
            first, last: statements to add before and after the statements of the block.

        Raises:
            UntranslatableError: the SQL cannot be translated; the error has the reason.
        """
        cursor, before, called = self._cursor, self._changes, self._sql.called
        cursor.take("DECLARE")
        known, records = dict(self._sql.types), dict(self._sql.records)
        declared = []
        if self._counts and self._is_outermost:
            declared.append(self._own_variable(_SQL_COUNT, Typed("integer", INTEGER)))
        is_outermost, self._is_outermost = self._is_outermost, False
        if is_outermost:
            declared += map(self._package_constant, self._sql.constants)
        declared += self._declarations()
        cursor.expect("BEGIN")
        body, ends_with_change = self._statements()
        calls = self._sql.called - called
        changes, ends_with_change = self._changes - before + calls, ends_with_change and not calls
        if calls and self._counts:
            raise UntranslatableError("SQL%ROWCOUNT in a block with calls, which may change it")
        handlers = self._handlers() if cursor.take("EXCEPTION") else []
        may_lose = changes > 1 or (changes == 1 and not ends_with_change)
        if may_lose and not all(
            ends.startswith("RAISE EX") or ends == "RAISE;" for _, ends in handlers
        ):
            raise UntranslatableError(
                "an exception handler of a block that changes rows or calls routines: PostgreSQL"
                " rolls back the block's changes"
            )
        cursor.expect("END")
        if cursor.word() != ";" and not cursor.is_done:
            cursor.name()
        cursor.take(";")
        self._sql.types, self._sql.records = known, records
        lines = ["DECLARE", *map(_in, declared)] if declared else []
        lines += ["BEGIN", *map(_in, (*first, *body, *last))]
        if handlers:
            lines += ["EXCEPTION", *(_in(line) for handler, _ in handlers for line in handler)]
        return [*lines, "END;"]

    def _declarations(self) -> list[str]:
        cursor, found = self._cursor, list[str]()
        while cursor.word() != "BEGIN":
            if cursor.take("PRAGMA", "EXCEPTION_INIT", "("):
                self._numbered(*cursor.list_until(")"))
                continue
            if cursor.word() in _REFUSED:
                raise UntranslatableError(_REFUSED[cursor.word()])
            if cursor.take("CURSOR"):
                found += self._cursor_declaration()
                continue
            name = cursor.name()
            if cursor.take("EXCEPTION", ";"):
                self._exceptions[name] = f"SQLSTATE '{self._state(name)}'"
                continue
            row = self._row_declaration(name)
            if row:
                found.append(row)
                continue
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

    def _own_variable(self, name: str, typed: Typed) -> str:
        self._sql.types = {**self._sql.types, name: typed}
        return f"{variable(name)} {typed.sql};"

    def _package_constant(self, one: Constant) -> str:
        self._sql.types = {**self._sql.types, one.name: one.typed}
        return f"{variable(one.name)} CONSTANT {one.typed.sql} := {one.value};"

    def _state(self, name: str) -> str:
        """Return a SQLSTATE for an exception that the routine declares; it is derived from the
        routine's text and the exception's name.
        """
        number = zlib.crc32(f"{self._cursor.text}.{name}".encode()) % 36**3
        return "OR" + "".join(_DIGITS[number // 36**place % 36] for place in (2, 1, 0))

    def _numbered(self, name: str, number: str) -> None:
        self._cursor.expect(";")
        digits = number.replace(" ", "").removeprefix("-")
        condition = _NUMBERED.get(int(digits)) if digits.isdigit() else None
        if condition is None or name.upper() not in self._exceptions:
            raise UntranslatableError(f"the exception {name} for ORA-{digits}: use its SQLSTATE")
        self._exceptions[name.upper()] = condition

    def _cursor_declaration(self) -> list[str]:
        """Translate a cursor declaration. In PL/pgSQL, all columns of a cursor that OPEN opens need
        names.
        """
        cursor, sql = self._cursor, self._sql
        name, known = cursor.name(), sql.types
        parameters = list[str]()
        while cursor.take("(") if not parameters else cursor.take(","):
            parameter = cursor.name()
            cursor.take("IN")
            typed = read_type(cursor, sql.relations, sql.owner, sql.types, sized=False)
            sql.types = {**sql.types, parameter: typed}
            parameters.append(f"{variable(parameter)} {typed.sql}")
        if parameters:
            cursor.expect(")")
        cursor.expect("IS")
        query = cursor.until(";")
        cursor.expect(";")
        is_opened = re.search(rf"\bOPEN\s+{name}\b", cursor.text, re.IGNORECASE)
        if not (is_opened or parameters):
            self._queries[name] = query
            return []
        text, outputs = sql.query(query)
        sql.types = known
        names = [one.column.name or f"c{number}" for number, one in enumerate(outputs, 1)]
        self._cursors[name] = names
        facts = [one.column.fact for one in outputs]
        columns = {
            one.name or f"C{number}": RelationColumn(own, fact)
            for number, (one, own, fact) in enumerate(zip(outputs, names, facts, strict=True), 1)
        }
        row = f"{name}%ROW"
        sql.records = {**sql.records, row: Source(row, row.lower(), columns)}
        listed, given = ", ".join(map(quoted, names)), f"({', '.join(parameters)}) "
        rows = f'SELECT * FROM ({text}) AS "rows" ({listed})'  # noqa: S608 - translated
        return [
            f"{variable(name)} CURSOR {given if parameters else ''}FOR {rows};",
            f"{variable(row)} record;",
            self._own_variable(f"{name}%FOUND", Typed("boolean", BOOLEAN)),
            self._own_variable(f"{name}%ROWCOUNT", Typed("integer", INTEGER)),
        ]

    def _row_declaration(self, name: str) -> str:
        """Translate the declaration of a %ROWTYPE variable. Return an empty text if the declaration
        is another one.
        """
        cursor, sql = self._cursor, self._sql
        is_here = next((at for at in (1, 3) if cursor.word(at) == "%"), 0)
        if not is_here or cursor.word(is_here + 1) != "ROWTYPE":
            return ""
        names = cursor.path()
        cursor.expect("%", "ROWTYPE", ";")
        row = sql.records.get(f"{names[0]}%ROW") if len(names) == 1 else None
        relation = sql.relations.find(*([sql.owner, *names][-2:]))
        if row is None and relation is None:
            raise UntranslatableError(f"the type {'.'.join(names)}%ROWTYPE is not supported")
        columns = row.columns if row is not None else relation.columns  # type: ignore[union-attr]
        sql.records = {**sql.records, name: Source(name, name.lower(), columns)}
        sql.rows = sql.rows | {name}
        if row is not None or relation is None:
            return f"{variable(name)} record;"
        return f"{variable(name)} {quoted(relation.schema)}.{quoted(relation.name)}%ROWTYPE;"

    def _statements(self) -> tuple[list[str], bool]:
        """Translate statements up to the word that ends them. Return (the statements, whether the
        last one is a single statement that changes rows).
        """
        found, is_change = list[str](), False
        while self._cursor.word() not in ("END", "EXCEPTION", "ELSE", "ELSIF", "WHEN", ""):
            before = self._changes
            is_plain = self._cursor.word() in (*_CHANGES, "EXECUTE")
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
            "CASE": self._case,
            "OPEN": self._open,
            "FETCH": self._fetch,
            "CLOSE": self._close,
            "EXECUTE": self._dynamic,
            **dict.fromkeys(_CHANGES, self._change),
        }
        if word in writers:
            return writers[word]()
        if word.startswith("<"):
            return self._labelled()
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
        if cursor.take("RAISE"):
            return self._raise_named(cursor.name())
        return self._assignment()

    def _raise(self) -> str:
        cursor = self._cursor
        code, text, *_ = [*cursor.list_until(")"), ""]
        cursor.expect(";")
        number = code.replace(" ", "").removeprefix("-")
        if not number.isdigit():
            raise UntranslatableError("RAISE_APPLICATION_ERROR with a number that is not a literal")
        message = f"'ORA-{number}: ' || COALESCE({self._sql.value(text, TEXT)}, '')"
        return f"RAISE EXCEPTION USING MESSAGE = {message}, ERRCODE = 'P0001';"

    def _raise_named(self, name: str) -> str:
        self._cursor.expect(";")
        own = self._exceptions.get(name)
        if own is not None and own.startswith("SQLSTATE"):
            return f"RAISE EXCEPTION USING ERRCODE = {own.split()[1]}, MESSAGE = {_UNHANDLED};"
        condition = own or CONDITIONS.get(name, "OTHERS").split(" ")[0]
        if condition == "OTHERS":
            raise UntranslatableError(f"RAISE of {name}, which the routine does not declare")
        return f"RAISE {condition};"

    def _assignment(self) -> str:
        cursor = self._cursor
        names = cursor.path()
        if names == ["DBMS_OUTPUT", "PUT_LINE"] and cursor.take("("):
            (text,) = cursor.list_until(")")
            cursor.expect(";")
            return f"RAISE NOTICE '%', {self._sql.value(text, TEXT)};"
        if not cursor.take(":="):
            return self._call(names)
        target, fact = self._sql.target(names)
        value = self._sql.value(cursor.until(";"), fact)
        cursor.expect(";")
        return f"{target} := {value};"

    def _call(self, names: list[str]) -> str:
        cursor, called = self._cursor, self._sql.signature(names)
        if called is None or called.returns is not None:
            raise UntranslatableError(f"it calls {'.'.join(names)}, which is not a known procedure")
        given = cursor.list_until(")") if cursor.take("(") else []
        cursor.expect(";")
        values, by_name = list[str](), {one.name: one for one in called.parameters}
        for place, text in enumerate(given):
            named = _NAMED.fullmatch(text)
            place_known = place < len(called.parameters)
            one = by_name.get(named[1].upper()) if named else None
            one = called.parameters[place] if one is None and place_known else one
            if one is None:
                raise UntranslatableError(
                    f"it calls {called.full_name} with arguments that do not match"
                )
            values.append(self._argument(one, named[2] if named else text, is_named=bool(named)))
            by_name.pop(one.name, None)
        if any(not one.default for one in by_name.values()):
            raise UntranslatableError(
                f"it calls {called.full_name} with arguments that do not match"
            )
        self._sql.note_call(called)
        return f"CALL {quoted(called.schema)}.{quoted(called.name)}({', '.join(values)});"

    def _argument(self, one: Parameter, text: str, *, is_named: bool) -> str:
        if one.mode:
            value, fact = self._sql.target(Cursor(text).path())
            if fact.kind is not one.typed.fact.kind:
                raise UntranslatableError(
                    f"a {fact.kind.value} as argument for the parameter {one.name} of another type"
                )
        else:
            value = f"CAST({self._sql.value(text, one.typed.fact)} AS {one.typed.sql})"
        return f"{variable(one.name)} => {value}" if is_named else value

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
        self._changes += self._changes - before  # a loop can change many rows
        cursor.expect("END", "LOOP")
        if cursor.word() != ";":
            cursor.name()  # its label
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
        called = text.split("(")[0].strip().upper()
        if not is_query and called in self._cursors:
            return self._rows_of_cursor(name, called, text)
        query = text if is_query else self._queries.get(text.upper())
        if query is None:
            return self._count(name, text, backwards)
        return self._rows(name, query)

    def _count(self, name: str, text: str, backwards: str) -> list[str]:
        sql, ends = self._sql, text.split("..")
        if len(ends) != 2:
            raise UntranslatableError(f"a loop over {text} is not supported")
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

    def _rows_of_cursor(self, name: str, called: str, text: str) -> list[str]:
        sql, known = self._sql, self._sql.records
        row = known[f"{called}%ROW"]
        opened = self._opened(called, text[len(called) :].strip())
        sql.records = {**known, name: Source(name, name.lower(), row.columns)}
        lines = self._looped(f"FOR {variable(name)} IN {opened} ")
        sql.records = known
        return lines

    def _opened(self, name: str, arguments: str) -> str:
        if name not in self._cursors:
            raise UntranslatableError(f"the cursor {name}: declare it with its query")
        if not arguments:
            return variable(name)
        values = Cursor(arguments[1:]).list_until(")")
        return f"{variable(name)}({', '.join(map(self._sql.value, values))})"

    def _open(self) -> list[str]:
        cursor = self._cursor
        cursor.expect("OPEN")
        name = cursor.name()
        if cursor.word() == "FOR":
            raise UntranslatableError("OPEN FOR: use a function that returns the rows")
        opened = self._opened(name, cursor.until(";"))
        cursor.expect(";")
        found, count = (variable(f"{name}%{what}") for what in ("FOUND", "ROWCOUNT"))
        return [f"OPEN {opened};", f"{found} := NULL;", f"{count} := 0;"]

    def _close(self) -> list[str]:
        cursor = self._cursor
        cursor.expect("CLOSE")
        name = cursor.name()
        cursor.expect(";")
        return [f"CLOSE {self._opened(name, '')};"]

    def _fetch(self) -> list[str]:
        """Translate FETCH. If there is no further row, variables keep their values in Oracle, but
        PL/pgSQL would set them to NULL. So the row is fetched into a record first.
        """
        cursor, sql = self._cursor, self._sql
        cursor.expect("FETCH")
        name = cursor.name()
        if not cursor.take("INTO"):
            raise UntranslatableError("FETCH BULK COLLECT: use array_agg or a loop")
        targets = [cursor.path()]
        while cursor.take(","):
            targets.append(cursor.path())
        cursor.expect(";")
        opened, row = self._opened(name, ""), sql.records[f"{name}%ROW"]
        columns, taken = [*row.columns.values()], variable(f"{name}%ROW")
        if len(targets) == 1 and len(targets[0]) == 1 and targets[0][0] in sql.rows:
            outputs = [Output(one.name, one) for one in columns]
            moved = [f"{sql.into_row(targets[0][0], outputs)} := {taken};"]
        elif len(targets) != len(columns):
            raise UntranslatableError("FETCH into a different number of variables")
        else:
            moved = [
                f"{sql.into(target, one.fact)} := {taken}.{quoted(one.name)};"
                for target, one in zip(targets, columns, strict=True)
            ]
        count = variable(f"{name}%ROWCOUNT")
        return [
            f"FETCH {opened} INTO {taken};",
            f"{variable(f'{name}%FOUND')} := FOUND;",
            "IF FOUND THEN",
            *map(_in, moved),
            _in(f"{count} := {count} + 1;"),
            "END IF;",
        ]

    def _case(self) -> list[str]:
        cursor, lines, word = self._cursor, list[str](), "IF"
        cursor.expect("CASE")
        asked = "" if cursor.word() == "WHEN" else cursor.until("WHEN")
        while cursor.take("WHEN"):
            text = cursor.until("THEN")
            cursor.expect("THEN")
            condition = self._sql.value(f"({asked}) = ({text})" if asked else text)
            lines += [f"{word} {condition} THEN", *map(_in, self._statements()[0])]
            word = "ELSIF"
        rest = self._statements()[0] if cursor.take("ELSE") else ["RAISE case_not_found;"]
        cursor.expect("END", "CASE", ";")
        return [*lines, "ELSE", *map(_in, rest), "END IF;"]

    def _dynamic(self) -> list[str]:
        """Translate EXECUTE IMMEDIATE of a literal: the statement in the literal is translated."""
        outer = self._cursor
        outer.expect("EXECUTE", "IMMEDIATE")
        literal = _LITERAL.fullmatch(outer.until("INTO", "USING", ";"))
        if literal is None:
            raise UntranslatableError(
                "EXECUTE IMMEDIATE of a computed text: use EXECUTE format(…) USING …"
            )
        into = outer.until("USING", ";") if outer.word() == "INTO" else ""
        values = outer.list_until(";") if outer.take("USING") else []
        if not values:
            outer.expect(";")
        text = literal[1].replace("''", "'").strip().rstrip(";")
        places = iter(values)
        try:
            text = _BIND.sub(lambda one: one[1] or f"({_given(next(places))})", text)
        except StopIteration:
            raise UntranslatableError(
                "EXECUTE IMMEDIATE with fewer values than bind variables"
            ) from None
        if next(places, None) is not None:
            raise UntranslatableError("EXECUTE IMMEDIATE with more values than bind variables")
        word = text.split(" ")[0].upper()
        if word not in (*_CHANGES, "SELECT") or (word == "SELECT") != bool(into):
            raise UntranslatableError(f"EXECUTE IMMEDIATE of {word or 'nothing'}")
        if into:
            inner = Cursor(text + ";")
            text = f"{inner.until('FROM')} {into} {inner.until(';')}"
        self._cursor = Cursor(text + ";")
        try:
            return self._statement()
        finally:
            self._cursor = outer

    def _labelled(self) -> list[str]:
        """Translate a loop or block with a label, such as <<outer>>."""
        cursor = self._cursor
        while cursor.word().startswith("<"):
            cursor.step()
        label = cursor.name()
        while cursor.word().startswith(">"):
            cursor.step()
        if cursor.word() not in _LOOPS:
            raise UntranslatableError(f"the label {label} of a statement that is not a loop")
        self._labels.append(label)
        lines = self._statement()
        self._labels.pop()
        # A loop over rows is in a block that declares the row.
        at = next(n for n, line in enumerate(lines) if line.strip().startswith(_LOOPS))
        indent = " " * (len(lines[at]) - len(lines[at].lstrip()))
        return [*lines[:at], f"{indent}<<{variable(label)}>>", *lines[at:]]

    def _leave_loop(self, word: str) -> list[str]:
        cursor = self._cursor
        cursor.expect(word)
        condition = ""
        if cursor.word() not in ("WHEN", ";"):
            label = cursor.name()
            if label not in self._labels:
                raise UntranslatableError(f"{word} {label}, which is not the label of a loop")
            word = f"{word} {variable(label)}"
        if cursor.take("WHEN"):
            condition = f" WHEN {self._sql.value(cursor.until(';'))}"
        cursor.expect(";")
        return [f"{word}{condition};"]

    def _select(self) -> list[str]:
        cursor = self._cursor
        cursor.expect("SELECT")
        items = cursor.until("INTO", "BULK", ";")
        if not cursor.take("INTO"):
            raise UntranslatableError("BULK COLLECT: use array_agg or a loop")
        targets = [cursor.path()]
        while cursor.take(","):
            targets.append(cursor.path())
        rest = cursor.until(";")
        cursor.expect(";")
        text, outputs = self._sql.query(f"SELECT {items} {rest}")
        first = [f"{variable(_SQL_COUNT)} := 0;"] if self._counts else []
        last = [f"{variable(_SQL_COUNT)} := 1;"] if self._counts else []
        if len(targets) == 1 and len(targets[0]) == 1 and targets[0][0] in self._sql.rows:
            row = self._sql.into_row(targets[0][0], outputs)
            return [*first, f"{text} INTO STRICT {row};", *last]
        if len(outputs) != len(targets):
            raise UntranslatableError("SELECT INTO a different number of variables")
        names = [
            self._sql.into(target, one.column.fact)
            for target, one in zip(targets, outputs, strict=True)
        ]
        return [*first, f"{text} INTO STRICT {', '.join(names)};", *last]

    def _change(self) -> list[str]:
        is_merge = self._cursor.word() == "MERGE"
        text = "" if is_merge else self._cursor.until(";")
        sql = self._sql.merge(self._merge()) if is_merge else self._sql.change(text)
        self._cursor.expect(";")
        self._changes += 1
        counted = f"GET DIAGNOSTICS {variable(_SQL_COUNT)} = ROW_COUNT;"
        return [f"{sql};", *([counted] if self._counts else [])]

    def _merge(self) -> Merge:
        cursor = self._cursor
        cursor.expect("MERGE", "INTO")
        target = cursor.until("USING")
        cursor.expect("USING")
        source = cursor.until("ON")
        cursor.expect("ON")
        parts = Merge(target, source, cursor.until("WHEN"))
        ends = ("WHERE", "WHEN", "DELETE", ";")
        while cursor.take("WHEN"):
            if cursor.take("MATCHED", "THEN", "UPDATE", "SET"):
                parts = parts._replace(changes=cursor.until(*ends))
                if cursor.take("WHERE"):
                    parts = parts._replace(changes_if=cursor.until("WHEN", "DELETE", ";"))
            elif cursor.take("NOT", "MATCHED", "THEN", "INSERT"):
                parts = parts._replace(columns=cursor.until("VALUES"))
                cursor.expect("VALUES", "(")
                parts = parts._replace(values=cursor.until(")"))
                cursor.expect(")")
                if cursor.take("WHERE"):
                    parts = parts._replace(values_if=cursor.until("WHEN", ";"))
            if cursor.word() not in ("WHEN", ";"):
                raise UntranslatableError(f"MERGE with {cursor.word() or 'another part'}")
        return parts

    def _handlers(self) -> list[tuple[list[str], str]]:
        """Translate the exception handlers. Return (lines of the handler, its last statement) for
        each.
        """
        cursor, found = self._cursor, list[tuple[list[str], str]]()
        while cursor.take("WHEN"):
            names = [cursor.name()]
            while cursor.take("OR"):
                names.append(cursor.name())
            cursor.expect("THEN")
            handled = {**CONDITIONS, **self._exceptions}
            unknown = [name for name in names if name not in handled]
            if unknown:
                raise UntranslatableError(f"a handler for the exception {unknown[0]}")
            known = self._sql.types
            self._sql.types = {**known, "SQLERRM": Typed("text", TEXT)}
            body, _ = self._statements()
            self._sql.types = known
            if any('"sqlerrm"' in line for line in body):
                self._sql.remarks.append("SQLERRM contains the message of PostgreSQL")
            conditions = " OR ".join(handled[name] for name in names)
            found.append(([f"WHEN {conditions} THEN", *map(_in, body)], body[-1] if body else ""))
        return found


def _given(value: str) -> str:
    """Return a value of USING without its parameter mode, such as IN."""
    mode = value.split(" ")[0].upper()
    if mode == "OUT":
        raise UntranslatableError("EXECUTE IMMEDIATE with an OUT value")
    return value[3:] if mode == "IN" else value


def _in(line: str) -> str:
    return f"    {line}"
