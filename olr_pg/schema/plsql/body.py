"""Translates a PL/SQL block into PL/pgSQL, statement by statement.

Statements are refused if PL/pgSQL would execute them differently. For example, an exception in
PL/pgSQL rolls back the whole block. So if a block makes several changes, each of its exception
handlers must end with an exception. COMMIT and concatenated dynamic SQL are refused with the
reason. SQL%ROWCOUNT and cursor attributes become variables.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from olr_pg.schema.plsql.arrays import SQL_COUNT, Arrays
from olr_pg.schema.plsql.changes import Merge
from olr_pg.schema.plsql.cursor import Cursor
from olr_pg.schema.plsql.exceptions import (
    CONDITIONS,
    SQLCODE,
    SQLERRM,
    Tried,
    check_codes,
    check_handler,
    own_state,
)
from olr_pg.schema.plsql.routine_sql import locked
from olr_pg.schema.plsql.types import Parameter, Typed, own_name, unsized, variable
from olr_pg.schema.queries import Output
from olr_pg.schema.relation_columns import RelationColumn
from olr_pg.schema.translating import Source, UntranslatableError, quoted
from olr_pg.schema.value_kinds import INTEGER, PLS_INTEGER, TEXT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from olr_pg.schema.plsql.routine_sql import RoutineSql
    from olr_pg.schema.value_kinds import Fact

_LITERAL: Final = re.compile(r"'((?:[^']|'')*)'")
_BIND: Final = re.compile(r"('(?:[^']|'')*')|:(\w+)")
_NAMED: Final = re.compile(r"([\w$#]+)\s*=>\s*(.+)", re.DOTALL)
_UNHANDLED: Final = "'ORA-06510: PL/SQL: unhandled user-defined exception'"
_RETURNED: Final = "SQL%RETURNED"
_BULK: Final = "BULK COLLECT INTO"
"""sqlglot reads these words as one token, unless other space is between them."""
_TOTAL: Final = "SQL%TOTAL"
_LOOPS: Final = ("LOOP", "WHILE", "FOR")
_CHANGES: Final = ("INSERT", "UPDATE", "DELETE", "MERGE")
_LEAVING: Final = ("RETURN", "EXIT", "CONTINUE")
_REFUSED: Final = {
    "COMMIT": "COMMIT: allowed only in procedures that are called outside a transaction",
    "ROLLBACK": "ROLLBACK: allowed only in procedures that are called outside a transaction",
    "SAVEPOINT": "SAVEPOINT: use a block with EXCEPTION",
    "GOTO": "GOTO: use loops and conditions",
    "LOCK": "LOCK TABLE: PostgreSQL has other lock modes",
    "PIPE": "PIPE ROW: use RETURN NEXT",
}


class Body(Arrays):
    """Translates the PL/SQL block that begins at the cursor's position.

    Args:
        returns: the type of the value that RETURN returns; None for a procedure or trigger.
        leaving: the statement that replaces RETURN without a value.
    """

    def __init__(
        self, cursor: Cursor, sql: RoutineSql, returns: Typed | None, leaving: str = "RETURN;"
    ) -> None:
        super().__init__(cursor, sql)
        self._returns = returns
        self._leaving = leaving
        self._opened_in: list[str] = []
        self._unread: dict[str, int] = {}
        self._lost: frozenset[str] = frozenset()
        self._changes = 0
        self._labels: list[str] = []
        self._is_outermost = True
        self._is_returning = False
        self._is_totalling = False
        self._is_used_label = False
        self._loop_label = ""

    def block(self, first: tuple[str, ...] = (), label: str = "") -> list[str]:
        """Translate the declarations, statements and handlers of a block.

        Args:
            first: statements to add before the statements of the block.
            label: the label of the block, or the name of the routine, with which a name can be
                qualified.

        Raises:
            UntranslatableError: the SQL cannot be translated; the error has the reason.
        """
        cursor, sql = self._cursor, self._sql
        cursor.take("DECLARE")
        outside = (sql.types, sql.records, sql.labels, self._exceptions, self._record_types)
        arrays = (sql.collections, self._array_types, self._kinds)
        is_outermost, self._is_outermost = self._is_outermost, False
        declared, self._initial = list[str](), []
        if is_outermost:
            if self._counts:
                declared.append(self._own_variable(SQL_COUNT, Typed("integer", INTEGER)))
            declared += map(self._package_constant, sql.constants)
            declared += self.repeat(sql.shared)
        hidden = sql.types
        declared += self._declarations()
        initial = tuple(self._initial)
        self._check_order(declared, initial)
        subscripts = sql.subscripts
        sql.subscripts = {
            name: over
            for name, over in subscripts.items()
            if sql.types.get(name) is hidden.get(name)
        }
        if label:
            own = {name: one for name, one in sql.types.items() if hidden.get(name) is not one}
            sql.labels = {**sql.labels, label: {**sql.labels.get(label, {}), **own}}
        cursor.expect("BEGIN")
        body, handlers = self._tried()
        cursor.expect("END")
        if cursor.word() != ";" and not cursor.is_done:
            cursor.name()
        cursor.take(";")
        sql.types, sql.records, sql.labels, self._exceptions, self._record_types = outside
        sql.collections, self._array_types, self._kinds = arrays
        sql.subscripts = subscripts
        if initial and handlers:  # the handlers do not catch the errors of declarations
            body, handlers = ["BEGIN", *map(_in, body), *map(_in, handlers), "END;"], []
        if is_outermost and self._is_returning:
            declared.append(f"{variable(_RETURNED)} record;")
        if is_outermost and self._is_totalling:
            declared.append(f"{variable(_TOTAL)} integer;")
        # The values of the declarations may depend on what the first statements do.
        is_filled_first = bool(first) and any(" := " in line for line in declared)
        begin = initial if is_filled_first else (*first, *initial)
        lines = [f"<<{variable(label)}>>"] if declared and label else []
        lines += ["DECLARE", *map(_in, declared)] if declared else []
        lines += ["BEGIN", *map(_in, (*begin, *body)), *handlers, "END;"]
        return ["BEGIN", *map(_in, (*first, *lines)), "END;"] if is_filled_first else lines

    @staticmethod
    def _check_order(declared: Sequence[str], initial: Sequence[str]) -> None:
        """Refuse a declaration that reads a record of its block, whose fields are filled later."""
        records = [one.rsplit(" ", 1)[1][:-1] for one in initial if one.startswith("SELECT ")]
        values = [line for line in declared if " CURSOR " not in line]
        if any(f"{record}." in line for record in records for line in values):
            raise UntranslatableError("a declaration that reads a record: assign the value later")

    def _tried(self) -> tuple[list[str], list[str]]:
        """Translate the statements of a block and its handlers. Return the lines of both."""
        cursor, sql = self._cursor, self._sql
        before, called = self._changes, sql.called
        place, noted, opened = cursor.place, len(sql.conversions), len(self._opened_in)
        body, ends_with_change = self._statements()
        calls, changes = sql.called - called, self._changes - before
        if calls and self._counts:
            raise UntranslatableError("SQL%ROWCOUNT in a block with calls, which may change it")
        text = cursor.text_since(place) if cursor.place > place else ""
        if not cursor.take("EXCEPTION"):
            return body, []
        self._lost |= frozenset(self._opened_in[opened:])
        handlers = self._handlers(Tried(text, changes, calls, sql.conversions[noted:]))
        may_lose = changes + calls > 1 or (changes + calls == 1 and (calls or not ends_with_change))
        if may_lose and not all(raises for _, raises in handlers):
            raise UntranslatableError(
                "an exception handler of a block that changes or locks rows, or calls routines:"
                " PostgreSQL rolls back the block's changes and row locks. Put the"
                " statements that can fail into a block of their own"
            )
        return body, ["EXCEPTION", *(_in(line) for handler, _ in handlers for line in handler)]

    def _statements(self) -> tuple[list[str], bool]:
        """Translate statements up to the word that ends them. Return (the statements, whether the
        last one is a single statement that changes rows). Those that only read from a cursor that
        locks rows, and RETURN, belong to its OPEN.
        """
        found, change = list[str](), ""
        while self._cursor.word() not in ("END", "EXCEPTION", "ELSE", "ELSIF", "WHEN", ""):
            before, word = self._changes, self._cursor.word()
            found += self._statement()
            if change == "OPEN" and word in ("FETCH", "CLOSE", "RETURN"):
                continue
            is_plain = word in (*_CHANGES, "EXECUTE", "SELECT", "OPEN")
            change = word if is_plain and self._changes == before + 1 else ""
        return found, bool(change)

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
            "FORALL": self._for_all,
            "BEGIN": self.block,
            "DECLARE": self.block,
            "SELECT": self._select,
            "WITH": self._select,
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
        if word in self._sql.collections:
            return self._changed_collection()
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
            return self._raise_named(self._exception_name())
        return self._assignment()

    def _raise(self) -> str:
        cursor = self._cursor
        texts = cursor.list_until(")")
        named = {one[1].upper(): one[2] for one in map(_NAMED.fullmatch, texts) if one}
        code, text, *_ = [*texts, ""]
        code, text = named.get("NUM", code), named.get("MSG", text)
        cursor.expect(";")
        number = code.replace(" ", "").removeprefix("-")
        if not number.isdigit():
            raise UntranslatableError("RAISE_APPLICATION_ERROR with a number that is not a literal")
        message = f"'ORA-{number}: ' || COALESCE({self._sql.value(text, TEXT)}, '')"
        return self._raised(message, own_state(int(number)))

    @staticmethod
    def _raised(message: str, state: str) -> str:
        return f"RAISE EXCEPTION USING MESSAGE = {message}, ERRCODE = '{state}';"

    def _raise_named(self, name: str) -> str:
        self._cursor.expect(";")
        own = self._exceptions.get(name)
        if own is not None and own.is_own:
            text = f"'ORA-{own.number}: '" if own.number else _UNHANDLED
            return self._raised(text, own.condition.split("'")[1])
        condition = own.condition if own else CONDITIONS.get(name, "OTHERS").split(" ")[0]
        if condition == "OTHERS":
            raise UntranslatableError(f"RAISE of {name}, which the routine does not declare")
        return f"RAISE {condition};"

    def _assignment(self) -> str:
        cursor = self._cursor
        names = cursor.path()
        if names == ["DBMS_OUTPUT", "PUT_LINE"] and cursor.take("("):
            (text,) = cursor.list_until(")")
            cursor.expect(";")
            return f"RAISE NOTICE '%', COALESCE({self._sql.value(text, TEXT)}, '');"
        if not cursor.take(":="):
            return self._call(names)
        if names[0] in self._sql.collections:
            raise UntranslatableError(f"the code assigns a value to the collection {names[0]}")
        if len(names) == 1 and names[0] in self._sql.rows:
            return self._assign_record(names[0], cursor.until(";"))
        target, fact = self._sql.target(names)
        value = self._sql.value(cursor.until(";"), fact)
        cursor.expect(";")
        return f"{target} := {value};"

    def _assign_record(self, name: str, text: str) -> str:
        self._cursor.expect(";")
        records = self._sql.records
        target, given = records[name].columns, records.get(text.upper())
        if given is None or [(one.name, one.fact.kind) for one in given.columns.values()] != [
            (one.name, one.fact.kind) for one in target.values()
        ]:
            raise UntranslatableError(
                f"the code assigns {text} to the record {name}: assign each field"
            )
        if (given.owner, given.columns) == (records[name].owner, target):
            return f"{variable(name)} := {quoted(given.alias)};"
        return " ".join(
            f"{variable(name)}.{quoted(one.name)} := {quoted(given.alias)}.{quoted(one.name)};"
            for one in target.values()
        )

    def _call(self, names: list[str]) -> str:
        cursor, called = self._cursor, self._sql.signature(names)
        if called is None or called.returns is not None:
            raise UntranslatableError(
                f"the code calls {'.'.join(names)}, which is not a known procedure"
            )
        given = cursor.list_until(")") if cursor.take("(") else []
        given = [] if given == [""] else given
        cursor.expect(";")
        values, by_name = list[str](), {one.name: one for one in called.parameters}
        moved = list[tuple[str, str, str]]()
        for place, text in enumerate(given):
            named = _NAMED.fullmatch(text)
            place_known = place < len(called.parameters)
            one = by_name.get(named[1].upper()) if named else None
            one = called.parameters[place] if one is None and place_known else one
            if one is None:
                raise UntranslatableError(
                    f"the code calls {called.full_name} with arguments that do not match"
                )
            value = self._argument(one, named[2] if named else text)
            if one.mode and not self._is_of_type(value, one.typed):
                # PostgreSQL accepts only a variable of the same type.
                own = quoted(f"out{len(moved) + 1}")
                moved.append((own, one.typed.sql, value))
                value = own
            values.append(f"{variable(one.name)} => {value}" if named else value)
            by_name.pop(one.name, None)
        if any(not one.default for one in by_name.values()):
            raise UntranslatableError(
                f"the code calls {called.full_name} with arguments that do not match"
            )
        self._sql.note_call(called)
        call = f"CALL {quoted(called.schema)}.{quoted(called.name)}({', '.join(values)});"
        if not moved:
            return call
        declared = " ".join(f"{own} {typed} := {value};" for own, typed, value in moved)
        taken = " ".join(f"{value} := {own};" for own, _, value in moved)
        return f"DECLARE {declared} BEGIN {call} {taken} END;"

    def _is_of_type(self, value: str, typed: Typed) -> bool:
        """Return whether a value is a variable of a type."""
        types = self._sql.types
        return any(variable(name) == value and one.sql == typed.sql for name, one in types.items())

    def _argument(self, one: Parameter, text: str) -> str:
        if one.mode:
            value, fact = self._sql.target(Cursor(text).path())
            if fact.kind is not one.typed.fact.kind:
                raise UntranslatableError(
                    f"a {fact.kind.value} as argument for the parameter {one.name} of another type"
                )
        else:
            value = f"CAST({self._sql.value(text, one.typed.fact)} AS {one.typed.sql})"
        return value

    def _if(self) -> list[str]:
        cursor, lines, ends = self._cursor, list[str](), dict[str, bool]()
        word = "IF"
        while cursor.take(word):
            condition = self._sql.value(cursor.until("THEN"))
            cursor.expect("THEN")
            lines += [f"{word} {condition} THEN", *map(_in, self._branch(ends))]
            word = "ELSIF"
        if cursor.take("ELSE"):
            lines += ["ELSE", *map(_in, self._branch(ends))]
        self._sql.open.update(ends)
        cursor.expect("END", "IF", ";")
        return [*lines, "END IF;"]

    def _branch(self, ends: dict[str, bool]) -> list[str]:
        """Translate the statements of a branch.

        Args:
            ends: receives which cursors are open after the branch, and which are closed; unchanged
                if the branch ends with a jump or an exception.
        """
        is_open, before = self._sql.open, dict(self._sql.open)
        lines, _ = self._statements()
        if not (lines and lines[-1].startswith((*_LEAVING, "RAISE")) and " WHEN " not in lines[-1]):
            changed = {name: now for name, now in is_open.items() if now is not before.get(name)}
            ends.update({name: now and ends.get(name, True) for name, now in changed.items()})
        is_open.update(before)
        return lines

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
        query = text if is_query else self._query_of(text.upper())
        if query is None:
            return self._count(name, text, backwards)
        return self._rows(name, query)

    def _query_of(self, name: str) -> str | None:
        """Return the query of a declared cursor; None if there is none.

        Raises:
            UntranslatableError: a name in the query means another variable here than in the
                declaration of the cursor.
        """
        query, then = self._queries.get(name, (None, {}))
        if query is not None:
            now = {**self._sql.types, **self._sql.records}
            words = {word.upper() for word in re.findall(r"[\w$#]+", query)}
            if any(word in then and then[word] is not now.get(word) for word in words):
                raise UntranslatableError(f"the cursor {name} reads a variable that is hidden here")
        return query

    def _count(self, name: str, text: str, backwards: str) -> list[str]:
        sql, ends = self._sql, text.split("..")
        if len(ends) != 2:
            raise UntranslatableError(f"a loop over {text} is not supported")
        low, high = (f"CAST(ROUND({sql.value(end, INTEGER)}) AS INT)" for end in ends)
        known, labels, subscripts = sql.types, sql.labels, sql.subscripts
        typed = Typed("integer", PLS_INTEGER)
        sql.types = {**known, name: typed}
        sql.subscripts = {**subscripts, name: self._over(text)}
        label, self._loop_label = self._loop_label, ""
        if label:
            sql.labels = {**labels, label: {name: typed}}
        first, second = (high, low) if backwards else (low, high)
        lines = self._looped(f"FOR {variable(name)} IN{backwards} {first} .. {second} ")
        sql.types, sql.labels, sql.subscripts = known, labels, subscripts
        return lines

    def _for_all(self) -> list[str]:
        """Translate FORALL as a loop. SQL%ROWCOUNT is the number of rows of all its statements."""
        cursor, sql = self._cursor, self._sql
        cursor.expect("FORALL")
        name = cursor.name()
        cursor.expect("IN")
        bounds = cursor.until(*_CHANGES, "SAVE", "EXECUTE", ";")
        if cursor.word() not in _CHANGES:
            raise UntranslatableError(
                "FORALL with SAVE EXCEPTIONS or EXECUTE IMMEDIATE: use a loop"
            )
        words = bounds.upper().split()
        if words[:2] == ["INDICES", "OF"] and len(words) == 3:
            bounds = f"1 .. {words[2]}.COUNT"
        over = self._over(bounds)
        if not over:
            raise UntranslatableError(f"FORALL over {bounds}: use a loop over 1 .. COUNT")
        low, high = (f"CAST({sql.value(end, INTEGER)} AS INT)" for end in bounds.split(".."))
        known, subscripts, before = sql.types, sql.subscripts, self._changes
        sql.types = {**known, name: Typed("integer", PLS_INTEGER)}
        sql.subscripts = {**subscripts, name: over}
        lines = self._change(is_repeated=True)
        self._changes += self._changes - before
        sql.types, sql.subscripts = known, subscripts
        if not self._counts:
            return [f"FOR {variable(name)} IN {low} .. {high} LOOP", *map(_in, lines), "END LOOP;"]
        self._is_totalling = True
        total, count = variable(_TOTAL), variable(SQL_COUNT)
        lines.append(f"{total} := {total} + {count};")
        head = f"FOR {variable(name)} IN {low} .. {high} LOOP"
        return [f"{total} := 0;", head, *map(_in, lines), "END LOOP;", f"{count} := {total};"]

    def _rows(self, name: str, query: str) -> list[str]:
        sql = self._sql
        text, outputs = sql.query(query)
        if " FOR UPDATE" in text:
            text = locked(text)
            self._changes += 2  # PostgreSQL rolls back the locks, too
        columns = {
            one.name: RelationColumn(one.column.name, one.column.fact)
            for one in outputs
            if one.name
        }
        known = sql.records
        sql.records = {**known, name: Source(name, own_name(name), columns)}
        record = f"{variable(name)} record;"
        lines = self._looped(f"FOR {variable(name)} IN {text} ")
        sql.records = known
        return ["DECLARE", _in(record), "BEGIN", *map(_in, lines), "END;"]

    def _rows_of_cursor(self, name: str, called: str, text: str) -> list[str]:
        sql, known = self._sql, self._sql.records
        row = known[f"{called}%ROW"]
        opened = self._opened(called, text[len(called) :].strip())
        sql.records = {**known, name: Source(name, own_name(name), row.columns)}
        self._changes += 2 * (called in self._locking)
        place, sql.open[called] = self._cursor.place, True
        lines = self._looped(f"FOR {variable(name)} IN {opened} ")
        sql.records, sql.open[called] = known, False
        attributes = rf"\b{called}\s*%\s*(?!ROWCOUNT\b)\w+"
        if re.search(attributes, self._cursor.text_since(place), re.IGNORECASE):
            raise UntranslatableError(f"an attribute of the cursor {called} in a FOR loop over it")
        count = variable(f"{called}%ROWCOUNT")
        at = next(n for n, line in enumerate(lines) if line.endswith(" LOOP")) + 1
        return [f"{count} := 0;", *lines[:at], _in(f"{count} := {count} + 1;"), *lines[at:]]

    def _opened(self, name: str, arguments: str) -> str:
        if name not in self._cursors:
            raise UntranslatableError(f"the cursor {name}: declare it with its query")
        given = Cursor(arguments[1:]).list_until(")") if arguments else []
        expected, values = self._parameters[name], list[str]()
        for place, (own, typed, default) in enumerate(expected):
            text = given[place] if place < len(given) else ""
            if not (text or default) or _NAMED.fullmatch(text):
                raise UntranslatableError(
                    f"the cursor {name} with named or missing arguments: {own}"
                )
            values.append(self._sql.value(text, typed.fact) if text else default)
        if len(given) > len(expected):
            raise UntranslatableError(f"the cursor {name} with too many arguments")
        return f"{variable(name)}({', '.join(values)})" if values else variable(name)

    def _open(self) -> list[str]:
        cursor = self._cursor
        cursor.expect("OPEN")
        name = cursor.name()
        if cursor.word() == "FOR":
            raise UntranslatableError("OPEN FOR: use a function that returns the rows")
        opened = self._opened(name, cursor.until(";"))
        cursor.expect(";")
        self._opened_in.append(name)
        self._sql.open[name] = True
        found, count, is_open = (
            variable(f"{name}%{what}") for what in ("FOUND", "ROWCOUNT", "ISOPEN")
        )
        lock = list[str]()
        if name in self._locking:
            # Oracle locks the rows at OPEN, PostgreSQL when it reads the first one.
            own = variable(name)
            lock = [f"OPEN {opened};", f"MOVE NEXT FROM {own};", f"CLOSE {own};"]
            self._changes += 1  # PostgreSQL rolls back the locks, too
            self._unread[name] = self._changes
        return [
            *lock,
            f"OPEN {opened};",
            f"{found} := NULL;",
            f"{count} := 0;",
            f"{is_open} := true;",
        ]

    def _close(self) -> list[str]:
        cursor = self._cursor
        cursor.expect("CLOSE")
        name = cursor.name()
        cursor.expect(";")
        is_open = variable(f"{name}%ISOPEN")
        if name not in self._cursors:
            raise UntranslatableError(f"the cursor {name}: declare it with its query")
        if name in self._lost:
            # PostgreSQL has closed it, when it rolled back the block that opened it.
            close = f"IF NOT {is_open} THEN RAISE invalid_cursor_name; END IF;"
        else:
            close = f"CLOSE {variable(name)};"
        self._sql.open[name] = False
        return [*self._check_open(name), close, f"{is_open} := false;"]

    def _check_open(self, name: str) -> list[str]:
        """Return a check that a cursor is open, if a handler depends on this check. PL/pgSQL has
        the same error for a cursor that was never opened as for a value that is NULL.
        """
        handlers = r"\b(VALUE_ERROR|INVALID_CURSOR|SQLCODE|SQLERRM)\b"
        if name in self._lost or not re.search(handlers, self._cursor.text, re.IGNORECASE):
            return []
        is_open = variable(f"{name}%ISOPEN")
        return [f"IF NOT {is_open} THEN RAISE invalid_cursor_name; END IF;"]

    def _fetch(self) -> list[str]:
        """Translate FETCH. If there is no further row, variables keep their values in Oracle, but
        PL/pgSQL would set them to NULL. So the row is fetched into a record first.
        """
        cursor, sql = self._cursor, self._sql
        cursor.expect("FETCH")
        name = cursor.name()
        is_bulk = self._into()
        targets = self._targets()
        most = cursor.until(";") if cursor.take("LIMIT") else ""
        cursor.expect(";")
        if name not in self._cursors:
            raise UntranslatableError(f"the cursor {name}: declare it with its query")
        if name in self._lost:
            raise UntranslatableError(
                f"FETCH of {name} after an exception: PostgreSQL has closed the cursor"
            )
        if self._unread.pop(name, self._changes) != self._changes:
            raise UntranslatableError(f"the code changes rows between OPEN and FETCH of {name}")
        opened, row = variable(name), sql.records[f"{name}%ROW"]
        columns, taken = [*row.columns.values()], variable(f"{name}%ROW")
        if is_bulk:
            return self._fetch_all(name, targets, columns, most)
        if len(targets) == 1 and len(targets[0]) == 1 and targets[0][0] in sql.rows:
            outputs = [Output(one.name, one) for one in columns]
            names = sql.into_row(targets[0][0], outputs)
            fields = [f"{taken}.{quoted(one.name)}" for one in columns]
            pairs = zip(names, fields if len(names) == len(fields) else [taken], strict=True)
            moved = [f"{own} := {given};" for own, given in pairs]
        elif len(targets) != len(columns):
            raise UntranslatableError("FETCH into a different number of variables")
        else:
            moved = [
                f"{sql.into(target, one.fact)} := {taken}.{quoted(one.name)};"
                for target, one in zip(targets, columns, strict=True)
            ]
        count = variable(f"{name}%ROWCOUNT")
        return [
            *self._check_open(name),
            f"FETCH {opened} INTO {taken};",
            f"{variable(f'{name}%FOUND')} := FOUND;",
            "IF FOUND THEN",
            *map(_in, moved),
            _in(f"{count} := {count} + 1;"),
            "END IF;",
        ]

    def _fetch_all(
        self, name: str, targets: list[list[str]], columns: Sequence[RelationColumn], most: str
    ) -> list[str]:
        """Translate FETCH … BULK COLLECT. %FOUND is false if it finds fewer rows than its LIMIT."""
        own = self._collected(targets, [one.fact for one in columns])
        found, count = variable(f"{name}%FOUND"), variable(f"{name}%ROWCOUNT")
        row, lines = variable(f"{name}%ROW"), list[str]()
        for target, column in zip(own, columns, strict=True):
            element = unsized(self._sql.collections[target])
            value = f"CAST({row}.{quoted(column.name)} AS {element})"
            lines.append(f"{variable(target)} := ARRAY_APPEND({variable(target)}, {value});")
        limit = f"CAST({self._sql.value(most, INTEGER)} AS INT)" if most else ""
        return [
            *self._check_open(name),
            *(f"{variable(target)} := '{{}}';" for target in own),
            f'FOR "fetch%place" IN 1 .. {limit} LOOP' if limit else "LOOP",
            _in(f"FETCH {variable(name)} INTO {row};"),
            _in(f"{found} := FOUND;"),
            _in(f"EXIT WHEN NOT {found};"),
            *map(_in, lines),
            _in(f"{count} := {count} + 1;"),
            "END LOOP;",
            *self._filled(own),
        ]

    def _case(self) -> list[str]:
        cursor, lines, word = self._cursor, list[str](), "IF"
        ends = dict[str, bool]()
        cursor.expect("CASE")
        asked = "" if cursor.word() == "WHEN" else cursor.until("WHEN")
        calls = self._sql.called
        if asked and ("NEXTVAL" in self._sql.value(asked) or self._sql.called > calls):
            raise UntranslatableError("CASE of a call: assign its value to a variable first")
        while cursor.take("WHEN"):
            text = cursor.until("THEN")
            cursor.expect("THEN")
            condition = self._sql.value(f"({asked}) = ({text})" if asked else text)
            lines += [f"{word} {condition} THEN", *map(_in, self._branch(ends))]
            word = "ELSIF"
        rest = self._branch(ends) if cursor.take("ELSE") else ["RAISE case_not_found;"]
        self._sql.open.update(ends)
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
        cursor, label = self._cursor, ""
        while cursor.word().startswith("<"):
            while cursor.word().startswith("<"):
                cursor.step()
            other, name = label, cursor.name()
            is_used = re.search(
                rf"\b{name}\s*\.|\b(EXIT|CONTINUE)\s+{name}\b", cursor.text, re.IGNORECASE
            )
            if is_used and other and self._is_used_label:
                raise UntranslatableError("a statement with several labels")
            if is_used or not label:
                label, self._is_used_label = name, bool(is_used)
            while cursor.word().startswith(">"):
                cursor.step()
        if cursor.word() in ("BEGIN", "DECLARE"):
            return self.block(label=label)
        if cursor.word() not in _LOOPS:
            return self._statement()  # only GOTO uses the label of another statement
        self._labels.append(label)
        self._loop_label = label
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
        begin = cursor.until("SELECT")
        cursor.expect("SELECT")
        items = cursor.until("INTO", "BULK", _BULK, ";")
        is_bulk = self._into()
        targets = self._targets()
        rest = cursor.until(";")
        cursor.expect(";")
        text, outputs = self._sql.query(f"{begin} SELECT {items} {rest}")
        if is_bulk:
            names = [f"c{number}" for number in range(1, len(outputs) + 1)]
            self._changes += 2 * (" FOR UPDATE" in text)
            facts = [one.column.fact for one in outputs]
            return self._gathered("", text, names, targets, facts)
        self._changes += " FOR UPDATE" in text  # PostgreSQL rolls back the lock, too
        first = [f"{variable(SQL_COUNT)} := 0;"] if self._counts else []
        last = [f"{variable(SQL_COUNT)} := 1;"] if self._counts else []
        if len(targets) == 1 and len(targets[0]) == 1 and targets[0][0] in self._sql.rows:
            row = self._sql.into_row(targets[0][0], outputs)
            return [*first, f"{text} INTO STRICT {', '.join(row)};", *last]
        if len(outputs) != len(targets):
            raise UntranslatableError("SELECT INTO a different number of variables")
        names = [
            self._sql.into(target, one.column.fact)
            for target, one in zip(targets, outputs, strict=True)
        ]
        return [*first, f"{text} INTO STRICT {', '.join(names)};", *last]

    def _change(self, *, is_repeated: bool = False) -> list[str]:
        cursor, sql = self._cursor, self._sql
        is_insert = cursor.word() == "INSERT"
        given, targets = list[str](), list[list[str]]()
        facts: Sequence[Fact] = ()
        if cursor.word() == "MERGE":
            text = sql.merge(self._merge())
        else:
            change = cursor.until("RETURNING", "RETURN", "LOG", ";")
            is_bulk = False
            if cursor.take("RETURNING") or cursor.take("RETURN"):
                if is_repeated:
                    raise UntranslatableError("FORALL with RETURNING: use a loop")
                given, targets, is_bulk = self._returning()
            text, facts = sql.change(change, given)
            if is_bulk:
                cursor.expect(";")
                self._changes += 1
                names = [f"c{number}" for number in range(1, len(facts) + 1)]
                return self._gathered(f'WITH "rows" AS ({text})', "", names, targets, facts)
        cursor.expect(";")
        self._changes += 1
        count = variable(SQL_COUNT)
        lines = [f"{text};"]
        if targets:
            names = self._received(targets, facts)
            if is_insert and " VALUES (" in text:
                lines = [f"{text} INTO {', '.join(names)};"]
            else:
                # If no row is changed, the variables keep their values in Oracle.
                lines = self._kept(text, names)
        if self._counts:
            counted = f"GET DIAGNOSTICS {count} = ROW_COUNT;"
            lines = [f"{count} := 0;", lines[0], counted, *lines[1:]]
        return lines

    def _returning(self) -> tuple[list[str], list[list[str]], bool]:
        """Return (the expressions of RETURNING, the variables of its INTO, whether it has BULK
        COLLECT).
        """
        cursor = self._cursor
        given = [cursor.until(",", "INTO", "BULK", _BULK, ";")]
        while cursor.take(","):
            given.append(cursor.until(",", "INTO", "BULK", _BULK, ";"))
        is_bulk = self._into()
        return given, self._targets(), is_bulk

    def _into(self) -> bool:
        """Read INTO; return whether BULK COLLECT is before it."""
        cursor = self._cursor
        if cursor.take(_BULK):
            return True
        is_bulk = cursor.take("BULK", "COLLECT")
        cursor.expect("INTO")
        return is_bulk

    def _targets(self) -> list[list[str]]:
        """Return the variables of INTO."""
        found = [self._cursor.path()]
        while self._cursor.take(","):
            found.append(self._cursor.path())
        return found

    def _received(self, targets: list[list[str]], facts: Sequence[Fact]) -> list[str]:
        """Return the SQL names of the variables that receive values."""
        sql = self._sql
        if len(targets) == 1 and len(targets[0]) == 1 and targets[0][0] in sql.rows:
            columns = sql.records[targets[0][0]].columns
            targets = [[targets[0][0], name] for name in columns]
        if len(targets) != len(facts):
            raise UntranslatableError("INTO with a different number of variables")
        return [sql.into(*pair) for pair in zip(targets, facts, strict=True)]

    def _kept(self, text: str, names: list[str]) -> list[str]:
        """Return a change whose values are assigned only if there is a row."""
        self._is_returning = True
        row = variable(_RETURNED)
        moved = [f"{name} := {row}.{quoted(f'c{at}')};" for at, name in enumerate(names, 1)]
        return [f"{text} INTO {row};", "IF FOUND THEN", *map(_in, moved), "END IF;"]

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

    def _handlers(self, tried: Tried) -> list[tuple[list[str], bool]]:
        """Translate the exception handlers. Return (lines of the handler, whether it always ends
        with an exception) for each.
        """
        cursor, found = self._cursor, list[tuple[list[str], bool]]()
        while cursor.take("WHEN"):
            names = [self._exception_name()]
            while cursor.take("OR"):
                names.append(self._exception_name())
            cursor.expect("THEN")
            own = self._exceptions
            handled = {**CONDITIONS, **{name: one.condition for name, one in own.items()}}
            unknown = [name for name in names if name not in handled]
            if unknown:
                raise UntranslatableError(f"a handler for the exception {unknown[0]}")
            check_handler(names, own, tried)
            conditions = " OR ".join(handled[name] for name in names)
            body, raises = self._handler()
            found.append(([f"WHEN {conditions} THEN", *map(_in, body)], raises))
        return found

    def _exception_name(self) -> str:
        names = self._cursor.path()
        return names[-1] if names[:-1] in ([], [self._sql.package]) else ".".join(names)

    def _handler(self) -> tuple[list[str], bool]:
        cursor, known, place = self._cursor, self._sql.types, self._cursor.place
        typed = {"SQLERRM": Typed("text", TEXT), "SQLCODE": Typed("integer", INTEGER)}
        self._sql.types = {**known, **typed}
        body, _ = self._statements()
        self._sql.types = known
        raises = bool(body) and body[-1].startswith(("RAISE EX", "RAISE;"))
        raises = raises and not any(line.strip().startswith(_LEAVING) for line in body)
        declared = list[str]()
        if any('"sqlerrm"' in line for line in body):
            self._sql.remarks.append(
                "SQLERRM contains the message of PostgreSQL unless Oracle's message is the same for"
                " all errors with this SQLSTATE"
            )
            declared.append(f'"sqlerrm" CONSTANT text := {SQLERRM};')
        text = cursor.text_since(place) if cursor.place > place else ""
        if self._counts:
            # In Oracle, a SELECT INTO that finds several rows counts one.
            counted = f"IF SQLSTATE = 'P0003' THEN {variable(SQL_COUNT)} := 1; END IF;"
            body = [counted, *body]
        if check_codes(text):
            self._sql.remarks.append(
                "SQLCODE is -28500 unless PostgreSQL's error corresponds to exactly one error of"
                " Oracle"
            )
            declared.append(f'"sqlcode" CONSTANT integer := {SQLCODE};')
        if not declared:
            return body, raises
        return ["DECLARE", *map(_in, declared), "BEGIN", *map(_in, body), "END;"], raises


def _given(value: str) -> str:
    """Return a value of USING without its parameter mode, such as IN."""
    mode = value.split(" ")[0].upper()
    if mode == "OUT":
        raise UntranslatableError("EXECUTE IMMEDIATE with an OUT value")
    return value[3:] if mode == "IN" else value


def _in(line: str) -> str:
    return f"    {line}"
