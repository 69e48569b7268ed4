"""Triggers, functions and procedures work in PostgreSQL as in Oracle, or are named with the reason.

What each does follows from Oracle's documentation (PL/SQL Language Reference).
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from olr_pg.dictionary.inventory import Constraint, Inventory, InventoryTable, Trigger, UnitSource
from olr_pg.dictionary.structure import Sequence
from olr_pg.schema.conversion import convert
from olr_pg.schema.trial import CREATED, run_statements, tried
from tests.schema.shop_relations import SETTINGS, column

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.schema.statement import Statement


Target = psycopg.Connection[Any]


def _text(name: str, length: int = 40) -> Any:
    return column(name, "VARCHAR2", length=length, char_length=length)


def _number(name: str, **others: Any) -> Any:
    return column(name, "NUMBER", **others)


TABLES = (
    InventoryTable(owner="BANK", name="ACCOUNTS", columns=(
        _number("ID", precision=9, scale=0), _text("NAME"), _number("BALANCE"),
        column("CODE", "CHAR", length=3, char_length=3), _text("CHANGED_BY"),
        column("CHANGED", "DATE"),
    )),
    InventoryTable(owner="BANK", name="HISTORY", columns=(
        _number("ID"), _text("WHAT", 10), _text("OLD_NAME"), _text("NEW_NAME"),
    )),
)  # fmt: skip
KEY = Constraint(owner="BANK", name="A_PK", table="ACCOUNTS", kind="primary key", columns=("ID",))


def _trigger(
    body: str, kind: str = "BEFORE EACH ROW", event: str = "INSERT", **more: Any
) -> Trigger:
    return Trigger(
        owner="BANK", name="TRG", kind=kind, event=event, table_owner="BANK", table="ACCOUNTS",
        body=body, head=more.pop("head", f"TRIGGER trg {kind} {event} ON accounts"), **more,
    )  # fmt: skip


def _unit(text: str) -> UnitSource:
    kind, name = text.split()[:2]
    return UnitSource(owner="BANK", name=name.split("(")[0].upper(), kind=kind.upper(), text=text)


def _inventory(**parts: Any) -> Inventory:
    return Inventory(
        owners=("BANK",), tables=TABLES, constraints=(KEY,),
        sequences=(Sequence(owner="BANK", name="IDS", next=100),), **parts,
    )  # fmt: skip


@pytest.fixture
def target(postgres: str) -> Iterator[Target]:
    """A database in which everything is rolled back at the end."""
    with (
        psycopg.connect(postgres, autocommit=True) as connection,
        connection.transaction(force_rollback=True),
    ):
        yield connection


def _made(target: Target, kind: str, **parts: Any) -> Statement:
    """Make all; return the one of the kind."""
    statements = convert(_inventory(**parts), SETTINGS)
    outcomes = run_statements(target, statements)
    (found,) = (one for one in outcomes if one.statement.kind in (kind, "by hand"))
    assert found.state == CREATED, found
    return found.statement


def _rows(target: Target, query: str) -> list[Any]:
    return target.execute(query.encode()).fetchall()


FILLING = """
BEGIN
  -- the key, if nobody gives one
  IF :NEW.id IS NULL THEN
    SELECT ids.NEXTVAL INTO :NEW.id FROM dual;
  END IF;
  :new.name := INITCAP(TRIM(:NEW.name));
  :NEW.changed_by := NVL(:NEW.changed_by, USER);
  :NEW.changed := SYSDATE;
END;
"""
COPYING = """
DECLARE
  v_what VARCHAR2(10);
BEGIN
  IF INSERTING THEN v_what := 'insert';
  ELSIF UPDATING THEN v_what := 'update';
  ELSE v_what := 'delete';
  END IF;
  INSERT INTO history (id, what, old_name, new_name)
  VALUES (NVL(:OLD.id, :NEW.id), v_what, :OLD.name, :NEW.name);
END trg;
"""


def test_a_trigger_fills_key_text_user_and_time(target: Target) -> None:
    _made(target, "trigger", triggers=(_trigger(FILLING),))
    target.execute("INSERT INTO bank.accounts (name) VALUES ('  ann ')")
    target.execute("INSERT INTO bank.accounts (id, name, changed_by) VALUES (7, 'bob', 'ME')")
    rows = _rows(target, "SELECT id, name, changed_by = upper(current_user) FROM bank.accounts")
    assert sorted(rows) == [(7, "Bob", False), (100, "Ann", True)]
    assert _rows(target, "SELECT count(*) FROM bank.accounts WHERE changed IS NULL") == [(0,)]


def test_a_trigger_copies_into_a_history(target: Target) -> None:
    event = "INSERT OR UPDATE OR DELETE"
    _made(target, "trigger", triggers=(_trigger(COPYING, "AFTER EACH ROW", event),))
    target.execute("INSERT INTO bank.accounts (id, name) VALUES (1, 'a')")
    target.execute("UPDATE bank.accounts SET name = 'b'")
    target.execute("DELETE FROM bank.accounts")
    assert _rows(target, "SELECT id, what, old_name, new_name FROM bank.history") == [
        (1, "insert", None, "a"), (1, "update", "a", "b"), (1, "delete", "b", None),
    ]  # fmt: skip


def test_a_trigger_fires_for_its_columns_and_when_its_condition_holds(target: Target) -> None:
    body = "BEGIN :NEW.changed_by := 'X'; END;"
    head = "TRIGGER trg\n BEFORE UPDATE OF name, balance ON accounts FOR EACH ROW"
    trigger = _trigger(body, event="UPDATE", head=head, when="NEW.balance > 10")
    _made(target, "trigger", triggers=(trigger,))
    target.execute("INSERT INTO bank.accounts (id, balance) VALUES (1, 20), (2, 5), (3, NULL)")
    target.execute("UPDATE bank.accounts SET code = 'a'")
    assert _rows(target, "SELECT count(changed_by) FROM bank.accounts") == [(0,)]
    target.execute("UPDATE bank.accounts SET name = 'a'")
    assert _rows(target, "SELECT id FROM bank.accounts WHERE changed_by = 'X'") == [(1,)]


def test_a_deleting_trigger_keeps_nothing_back(target: Target) -> None:
    body = "BEGIN IF :OLD.balance <> 0 THEN RAISE_APPLICATION_ERROR(-20001, 'not ' || :OLD.name);"
    _made(target, "trigger", triggers=(_trigger(f"{body} END IF; END;", event="DELETE"),))
    target.execute("INSERT INTO bank.accounts (id, name, balance) VALUES (1, 'a', 0), (2, 'b', 1)")
    target.execute("DELETE FROM bank.accounts WHERE id = 1")
    refused = pytest.raises(psycopg.Error, match="ORA-20001: not b")
    with refused, target.transaction():
        target.execute("DELETE FROM bank.accounts")
    assert _rows(target, "SELECT id FROM bank.accounts") == [(2,)]


ENDING = "$olr_pg$;CREATE TABLE executed();--"
"""A text that would end a body in dollar quotes."""


def test_a_text_of_a_trigger_does_not_end_its_body(target: Target) -> None:
    _made(target, "trigger", triggers=(_trigger(f"BEGIN :NEW.name := '{ENDING}'; END;"),))
    target.execute("INSERT INTO bank.accounts (id) VALUES (1)")
    assert _rows(target, "SELECT name FROM bank.accounts") == [(ENDING,)]
    assert _rows(target, "SELECT to_regclass('executed')") == [(None,)]


def test_a_text_of_a_function_does_not_end_its_body(target: Target) -> None:
    text = f"FUNCTION said RETURN VARCHAR2 IS BEGIN RETURN '{ENDING}'; END;"
    _made(target, "function", sources=(_unit(text),))
    assert _rows(target, "SELECT bank.said()") == [(ENDING,)]
    assert _rows(target, "SELECT to_regclass('executed')") == [(None,)]


FUNCTIONS = [
    (("FUNCTION gross(p_net NUMBER) RETURN NUMBER DETERMINISTIC AS BEGIN"
     " RETURN ROUND(p_net * 1.19, 2); END;"), "gross(10)", Decimal("11.9")),
    (("FUNCTION named(p VARCHAR2, q IN VARCHAR2 DEFAULT 'x') RETURN VARCHAR2 IS BEGIN"
     " RETURN p || '-' || q; END named;"), "named('')", "-x"),
    (("FUNCTION name_of(p_id accounts.id%TYPE) RETURN accounts.name%TYPE IS v accounts.name%TYPE;"
     " BEGIN SELECT name INTO v FROM accounts WHERE id = p_id; RETURN v;"
     " EXCEPTION WHEN NO_DATA_FOUND THEN RETURN 'none'; WHEN TOO_MANY_ROWS THEN RETURN '2'; END;"),
     "name_of(2) || name_of(9)", "bnone"),
    (("FUNCTION total RETURN NUMBER IS t NUMBER := 0; BEGIN"
     " FOR r IN (SELECT balance b FROM accounts WHERE balance IS NOT NULL) LOOP t := t + r.b;"
     " END LOOP; RETURN t; END;"), "total()", 30),
    (("FUNCTION listed RETURN VARCHAR2 IS CURSOR c IS SELECT name FROM accounts ORDER BY id DESC;"
     " t VARCHAR2(99); BEGIN FOR r IN c LOOP t := t || r.name || ','; END LOOP;"
     " RETURN RTRIM(t, ','); END;"), "listed()", "b,a"),
    (("FUNCTION fact(n PLS_INTEGER) RETURN NUMBER IS f NUMBER := 1; BEGIN"
     " FOR i IN REVERSE 1..n LOOP f := f * i; EXIT WHEN i = 1; END LOOP; RETURN f; END;"),
     "fact(5)", 120),
    (("FUNCTION steps(n NUMBER) RETURN NUMBER IS i NUMBER := 0; BEGIN WHILE i < n LOOP"
     " i := i + 1; CONTINUE WHEN i < 2; END LOOP; RETURN i; END;"), "steps(3)", 3),
    (("FUNCTION grade(n NUMBER) RETURN VARCHAR2 IS BEGIN IF n >= 90 THEN RETURN 'A';"
     " ELSIF n >= 80 THEN RETURN 'B'; ELSE RETURN CASE WHEN n IS NULL THEN '?' ELSE 'C' END;"
     " END IF; END;"), "grade(85) || grade(1) || grade(NULL)", "BC?"),
    (("FUNCTION is_big(n NUMBER) RETURN BOOLEAN IS b BOOLEAN; BEGIN b := n > 10; RETURN b AND TRUE;"
     " END;"), "is_big(11)", True),
    (("FUNCTION own(name VARCHAR2) RETURN NUMBER IS n NUMBER; BEGIN"
     " SELECT COUNT(*) INTO n FROM accounts WHERE name = own.name; RETURN n; END;"), "own('b')", 1),
    (("FUNCTION same(name VARCHAR2) RETURN NUMBER IS n NUMBER; BEGIN"
     " SELECT COUNT(*) INTO n FROM accounts WHERE name = name; RETURN n; END;"), "same('q')", 2),
    (("FUNCTION code(p NUMBER) RETURN VARCHAR2 IS c accounts.code%TYPE; BEGIN"
     " SELECT code INTO c FROM accounts WHERE id = p; RETURN c || '|'; END;"), "code(1)", "ab |"),
    (("FUNCTION half(p NUMBER) RETURN NUMBER IS BEGIN RETURN 1 / p; EXCEPTION WHEN ZERO_DIVIDE"
     " THEN RETURN NULL; END;"), "half(0)", None),
    (("FUNCTION opened RETURN VARCHAR2 IS CURSOR c(p_from NUMBER) IS SELECT id, UPPER(name) FROM"
     " accounts WHERE id >= p_from ORDER BY id; n NUMBER; s accounts.name%TYPE; t VARCHAR2(99);"
     " BEGIN OPEN c(1); LOOP FETCH c INTO n, s; EXIT WHEN c%NOTFOUND; t := t || n || s || ','; END"
     " LOOP; t := t || c%ROWCOUNT || n; CLOSE c; RETURN t; END;"), "opened()", "1A,2B,22"),
    (("FUNCTION fetched RETURN VARCHAR2 IS CURSOR c IS SELECT name, balance FROM accounts WHERE"
     " id = 2; r c%ROWTYPE; BEGIN OPEN c; FETCH c INTO r; IF c%FOUND THEN r.name := r.name || '!';"
     " END IF; CLOSE c; RETURN r.name || r.balance; END;"), "fetched()", "b!20"),
    (("FUNCTION looped RETURN NUMBER IS CURSOR c(p NUMBER) IS SELECT balance FROM accounts WHERE"
     " id <> p; n NUMBER := 0; BEGIN FOR r IN c(1) LOOP n := n + r.balance; END LOOP; RETURN n;"
     " END;"), "looped()", 20),
    (("FUNCTION whole RETURN VARCHAR2 IS r accounts%ROWTYPE; BEGIN SELECT * INTO r FROM accounts"
     " WHERE id = 1; r.name := r.name || r.id; RETURN r.name || r.code; END;"), "whole()", "a1ab "),
    (("FUNCTION own_error(n NUMBER) RETURN VARCHAR2 IS too_big EXCEPTION; BEGIN IF n > 9 THEN RAISE"
     " too_big; END IF; RETURN 'fits'; EXCEPTION WHEN too_big THEN RETURN 'big'; END;"),
     "own_error(1) || own_error(10)", "fitsbig"),
    (("FUNCTION fails(p NUMBER) RETURN VARCHAR2 IS n NUMBER; BEGIN IF p = 1 THEN RAISE"
     " NO_DATA_FOUND; END IF; n := 1 / p; RETURN n; EXCEPTION WHEN NO_DATA_FOUND THEN RETURN"
     " 'none'; WHEN OTHERS THEN RETURN SUBSTR(SQLERRM, 1, 8); END;"), "fails(1) || fails(0)",
     "noneORA-0147"),
    (("FUNCTION cased(n NUMBER) RETURN VARCHAR2 IS v VARCHAR2(9); BEGIN CASE n WHEN 1 THEN v :="
     " 'one'; WHEN 2 THEN v := 'two'; ELSE v := 'many'; END CASE; CASE WHEN n > 1 THEN RETURN v ||"
     " CASE WHEN n > 2 THEN '!' END; WHEN n = 1 THEN NULL; END CASE; RETURN v; EXCEPTION WHEN"
     " CASE_NOT_FOUND THEN RETURN 'none'; END;"),
     "cased(1) || cased(2) || cased(3) || cased(0)", "onetwomany!none"),
    (("FUNCTION dynamic(p NUMBER) RETURN NUMBER IS n NUMBER; BEGIN EXECUTE IMMEDIATE 'SELECT"
     " COUNT(*) FROM accounts WHERE id = :1 OR name = ''b'' AND :x = 1' INTO n USING p, IN p;"
     " RETURN n; END;"), "dynamic(1)", 2),
    (("FUNCTION left_at RETURN NUMBER IS i NUMBER := 1; BEGIN <<outer>> LOOP i := i + 1; FOR r IN"
     " (SELECT id FROM accounts) LOOP EXIT outer WHEN i > 3; CONTINUE outer; END LOOP; END LOOP"
     " outer; <<rows_>> FOR r IN (SELECT id FROM accounts) LOOP i := i + 10; FOR j IN 1 .. 2 LOOP"
     " EXIT rows_; END LOOP; END LOOP; RETURN -i; END;"), "left_at()", -14),
    (("FUNCTION single RETURN NUMBER IS n BINARY_FLOAT := 16777215; BEGIN n := n + 1; RETURN n;"
     " END;"), "single()", 16777216),
    ("FUNCTION note RETURN VARCHAR2 IS BEGIN RETURN 'it''s; -- no comment'; /* END; */ END;",
     "note()", "it's; -- no comment"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "call", "value"), FUNCTIONS, ids=lambda one: str(one)[:24])
def test_a_function(target: Target, text: str, call: str, value: Any) -> None:
    _made(target, "function", sources=(_unit(text),))
    target.execute(
        "INSERT INTO bank.accounts (id, name, balance, code)"
        " VALUES (1, 'a', 10, 'ab'), (2, 'b', 20, NULL)"
    )
    target.execute("SET LOCAL search_path = bank")
    assert _rows(target, f"SELECT {call}") == [(value,)]


def test_a_procedure_changes_rows_and_gives_values_out(target: Target) -> None:
    text = (
        "PROCEDURE pay(p_id IN NUMBER, p_amount NUMBER, p_left OUT NUMBER) AUTHID CURRENT_USER AS"
        " BEGIN UPDATE accounts a SET a.balance = NVL(a.balance, 0) + p_amount WHERE a.id = p_id;"
        " SELECT balance INTO p_left FROM accounts WHERE id = p_id;"
        " IF p_left > 100 THEN DELETE FROM accounts WHERE id = p_id; END IF; END pay;"
    )
    made = _made(target, "procedure", sources=(_unit(text),))
    assert made.remark == ""
    target.execute("INSERT INTO bank.accounts (id, balance) VALUES (1, NULL), (2, 99)")
    assert _rows(target, "CALL bank.pay(1, 5, NULL)") == [(5,)]
    assert _rows(target, "CALL bank.pay(2, 5, NULL)") == [(104,)]
    assert _rows(target, "SELECT id FROM bank.accounts") == [(1,)]


def test_a_handler_of_the_only_change_goes_on(target: Target) -> None:
    text = (
        "PROCEDURE put(p_id NUMBER, p_name VARCHAR2) IS BEGIN"
        " INSERT INTO accounts (id, name) VALUES (p_id, p_name);"
        " EXCEPTION WHEN DUP_VAL_ON_INDEX THEN UPDATE accounts SET name = p_name WHERE id = p_id;"
        " END;"
    )
    assert "its owner's privileges" in _made(target, "procedure", sources=(_unit(text),)).remark
    target.execute("CALL bank.put(1, 'a')")
    target.execute("CALL bank.put(1, 'b')")
    assert _rows(target, "SELECT id, name FROM bank.accounts") == [(1, "b")]


def test_changed_rows_are_counted(target: Target) -> None:
    text = (
        "PROCEDURE put(p_id NUMBER, p_name VARCHAR2, p_many OUT NUMBER) IS BEGIN"
        " UPDATE accounts SET name = p_name WHERE id = p_id;"
        " IF SQL%NOTFOUND THEN INSERT INTO accounts (id, name) VALUES (p_id, p_name); END IF;"
        " DELETE FROM accounts WHERE name = 'gone'; p_many := SQL%ROWCOUNT; END;"
    )
    _made(target, "procedure", sources=(_unit(text),))
    assert _rows(target, "CALL bank.put(1, 'a', NULL)") == [(0,)]
    assert _rows(target, "CALL bank.put(2, 'gone', NULL)") == [(1,)]
    assert _rows(target, "CALL bank.put(1, 'b', NULL)") == [(0,)]
    assert _rows(target, "SELECT id, name FROM bank.accounts") == [(1, "b")]


def test_a_merge_changes_and_inserts(target: Target) -> None:
    text = (
        "PROCEDURE merged(p_from NUMBER) IS BEGIN MERGE INTO accounts a USING (SELECT id,"
        " new_name n FROM history WHERE id >= p_from) h ON (a.id = h.id) WHEN MATCHED THEN"
        " UPDATE SET a.name = h.n || a.name, a.balance = 0 WHERE a.balance > 1 WHEN NOT"
        " MATCHED THEN INSERT (a.id, name) VALUES (h.id, UPPER(h.n)) WHERE h.n IS NOT NULL; END;"
    )
    _made(target, "procedure", sources=(_unit(text),))
    target.execute("INSERT INTO bank.accounts (id, name, balance) VALUES (1, 'a', 1), (2, 'b', 2)")
    target.execute(
        "INSERT INTO bank.history (id, new_name) VALUES (0, 'z'), (1, 'x'), (2, 'y'), (3, 'w'),"
        " (4, NULL)"
    )
    target.execute("CALL bank.merged(1)")
    assert _rows(target, "SELECT id, name, balance FROM bank.accounts ORDER BY id") == [
        (1, "a", 1), (2, "yb", 0), (3, "W", None),
    ]  # fmt: skip


def test_a_merge_of_values_puts_one_row(target: Target) -> None:
    text = (
        "PROCEDURE put(p_id NUMBER, p_name VARCHAR2) IS BEGIN MERGE INTO accounts USING dual ON"
        " (id = p_id) WHEN NOT MATCHED THEN INSERT (id, name) VALUES (p_id, p_name)"
        " WHEN MATCHED THEN UPDATE SET name = p_name; END;"
    )
    _made(target, "procedure", sources=(_unit(text),))
    target.execute("CALL bank.put(1, 'a')")
    target.execute("CALL bank.put(1, 'b')")
    assert _rows(target, "SELECT id, name FROM bank.accounts") == [(1, "b")]


def test_a_handler_of_an_error_with_a_number(target: Target) -> None:
    text = (
        "PROCEDURE p IS missing EXCEPTION; PRAGMA EXCEPTION_INIT(missing, -1400); BEGIN"
        " EXECUTE IMMEDIATE 'INSERT INTO accounts (id) VALUES (NULL)';"
        " EXCEPTION WHEN missing OR DUP_VAL_ON_INDEX THEN INSERT INTO history (what) VALUES"
        " (SUBSTR(SQLERRM, 1, 10)); END;"
    )
    made = _made(target, "procedure", sources=(_unit(text),))
    assert "SQLERRM contains the message of PostgreSQL" in made.remark
    target.execute("CALL bank.p()")
    assert _rows(target, "SELECT what FROM bank.history") == [("null value",)]


REFUSED = {
    "PROCEDURE p IS BEGIN COMMIT; END;": "COMMIT",
    "PROCEDURE p IS PRAGMA AUTONOMOUS_TRANSACTION; BEGIN NULL; END;": "PRAGMA",
    "PROCEDURE p IS BEGIN EXECUTE IMMEDIATE 'TRUNCATE TABLE history'; END;": "OF TRUNCATE",
    "PROCEDURE p(t VARCHAR2) IS BEGIN EXECUTE IMMEDIATE 'DELETE FROM ' || t; END;": "of a computed"
    " text",
    "PROCEDURE p IS BEGIN EXECUTE IMMEDIATE 'DELETE FROM history WHERE id = :1'; END;": "fewer",
    "FUNCTION f RETURN NUMBER IS CURSOR c IS SELECT id FROM accounts; n NUMBER; BEGIN OPEN c;"
    " FETCH c BULK COLLECT INTO n; RETURN n; END;": "BULK COLLECT",
    "FUNCTION f RETURN NUMBER IS CURSOR c IS SELECT id FROM accounts; n NUMBER; BEGIN OPEN c;"
    " FETCH c INTO n, n; RETURN n; END;": "a different number",
    "PROCEDURE p IS e EXCEPTION; PRAGMA EXCEPTION_INIT(e, -2449); BEGIN NULL; END;": "ORA-2449",
    "FUNCTION f RETURN NUMBER IS BEGIN RAISE nobody; END;": "RAISE of NOBODY",
    "FUNCTION f RETURN NUMBER IS r nothing%ROWTYPE; BEGIN RETURN 1; END;": "NOTHING%ROWTYPE",
    "PROCEDURE p IS BEGIN other(1); END;": "the code calls OTHER",
    "PROCEDURE p IS BEGIN UPDATE accounts SET name = 'a'; UPDATE accounts SET name = 'b';"
    " EXCEPTION WHEN OTHERS THEN NULL; END;": "an exception handler of a block that changes",
    "PROCEDURE p IS BEGIN FOR r IN (SELECT id FROM accounts) LOOP DELETE FROM history; END LOOP;"
    " EXCEPTION WHEN OTHERS THEN NULL; END;": "an exception handler of a block that changes",
    "FUNCTION f RETURN accounts%ROWTYPE IS BEGIN RETURN NULL; END;": "TYPE",
    "FUNCTION f RETURN NUMBER IS TYPE t IS REF CURSOR; BEGIN RETURN 1; END;": "the type T",
    "FUNCTION f RETURN NUMBER IS BEGIN RETURN SQLCODE; END;": "SQLCODE",
    "FUNCTION f RETURN NUMBER IS n NUMBER; BEGIN SELECT id BULK COLLECT INTO n FROM accounts;"
    " RETURN n; END;": "BULK COLLECT",
    "FUNCTION f RETURN NUMBER IS BEGIN RETURN nobody; END;": "NOBODY",
    "FUNCTION f RETURN NUMBER IS BEGIN RETURN 1;": "where END is expected",
    "FUNCTION f RETURN NUMBER PIPELINED IS BEGIN RETURN; END;": "PIPELINED",
    "PROCEDURE p IS BEGIN MERGE INTO accounts a USING dual ON (1 = 1) WHEN MATCHED THEN"
    " UPDATE SET name = 'a' DELETE WHERE id = 1; END;": "MERGE with DELETE",
    "FUNCTION f(c CHAR) RETURN NUMBER IS BEGIN RETURN 1; END;": "CHAR, whose length is unknown",
    "PROCEDURE p IS BEGIN DELETE FROM history WHERE ROWNUM < 9; END;": "ROWNUM",
    "PACKAGE p IS n NUMBER; END;": "units of the kind PACKAGE are not translated",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_otherwise_is_named(text: str) -> None:
    found = [one for one in convert(_inventory(sources=(_unit(text),)), SETTINGS)
             if one.source == text]  # fmt: skip
    (one,) = found
    assert not one.runs
    assert REFUSED[text].upper() in one.reason.upper(), one.reason


REFUSED_TRIGGERS = {
    "write one trigger for each timing point": _trigger("BEGIN NULL; END;", "COMPOUND"),
    "use an event trigger": _trigger("BEGIN NULL; END;", "AFTER EVENT"),
    "disabled": _trigger("BEGIN NULL; END;", enabled=False),
    "export the dictionary again": _trigger("BEGIN NULL; END;", event="UPDATE", head=""),
    "FOLLOWS": _trigger("BEGIN NULL; END;", head="TRIGGER t BEFORE INSERT FOLLOWS u"),
    "assigns a value to NEW.ID": _trigger("BEGIN :NEW.id := 1; END;", "BEFORE STATEMENT"),
    "assigns a value to OLD.ID": _trigger("BEGIN :OLD.id := 1; END;"),
}


@pytest.mark.parametrize("reason", REFUSED_TRIGGERS)
def test_triggers_that_are_otherwise_are_named(reason: str) -> None:
    trigger = REFUSED_TRIGGERS[reason]
    (one,) = (one for one in convert(_inventory(triggers=(trigger,)), SETTINGS)
              if one.name == "BANK.TRG")  # fmt: skip
    assert reason in one.reason
    assert one.source.endswith(trigger.body)


def test_a_function_is_executed_in_the_trial(postgres_database: str) -> None:
    """One whose form is right, but which calls what PostgreSQL has not, is refused."""
    units = (
        _unit("FUNCTION good(p NUMBER) RETURN NUMBER IS BEGIN RETURN p / 0; END;"),
        _unit("FUNCTION bad RETURN NUMBER IS BEGIN RETURN 1; END;"),
    )
    with psycopg.connect(postgres_database, autocommit=True) as target:
        statements = convert(_inventory(sources=units), SETTINGS)
        broken = [
            one._replace(sql=one.sql.replace("RETURN 1", "RETURN nothing(1)")) for one in statements
        ]
        reasons = {one.name: one.reason for one in tried(target, broken)}
    assert reasons["BANK.GOOD"] == ""
    assert "nothing(integer) does not exist" in reasons["BANK.BAD"]


def test_unique_keys_are_checked_when_they_are_in_oracle(target: Target) -> None:
    """At the end of a statement, where a handler catches the error, unless they are deferred."""
    key = Constraint(owner="BANK", name="H_UK", table="HISTORY", kind="unique", columns=("ID",))
    put = (
        "PROCEDURE put(p NUMBER) IS BEGIN INSERT INTO history (id, what) VALUES (p, 'new');"
        " EXCEPTION WHEN DUP_VAL_ON_INDEX THEN UPDATE history SET what = 'old' WHERE id = p; END;"
    )
    plain = "PROCEDURE plain(p NUMBER) IS BEGIN INSERT INTO history (id) VALUES (p); END;"
    calls = (
        "PROCEDURE calls(p NUMBER) IS BEGIN plain(p); EXCEPTION WHEN OTHERS THEN"
        " RAISE_APPLICATION_ERROR(-20001, 'twice'); END;"
    )
    inventory = _inventory(sources=(_unit(put), _unit(plain), _unit(calls)))
    inventory = inventory.model_copy(update={"constraints": (KEY, key)})
    run_statements(target, convert(inventory, SETTINGS))
    target.execute("CALL bank.put(1)")
    target.execute("CALL bank.put(1)")
    assert _rows(target, "SELECT id, what FROM bank.history") == [(1, "old")]
    with pytest.raises(psycopg.Error, match="twice"), target.transaction():
        target.execute("CALL bank.calls(1)")
    target.execute("INSERT INTO bank.history (id) VALUES (2)")
    target.execute("UPDATE bank.history SET id = 3 - id")
    for deferred in (False, True):
        own = replace(key, deferrable=deferred, deferred=deferred)
        made = inventory.model_copy(update={"constraints": (KEY, own)})
        (found,) = (one for one in convert(made, SETTINGS) if one.name == "BANK.HISTORY.H_UK")
        when = " DEFERRABLE INITIALLY DEFERRED" if deferred else " DEFERRABLE"
        assert found.sql.endswith(f'("id"){when}')


def test_a_trigger_has_its_owners_privileges(target: Target) -> None:
    """Who may insert rows needs no privilege on the sequence and the history."""
    filling = "BEGIN :NEW.id := ids.NEXTVAL; INSERT INTO history (id, what) VALUES (1, USER); END;"
    made = _made(target, "trigger", triggers=(_trigger(filling),))
    assert made.sql.count("REVOKE ALL ON FUNCTION") == 1
    target.execute("CREATE ROLE clerk; GRANT USAGE ON SCHEMA bank TO clerk")
    target.execute("GRANT INSERT ON bank.accounts TO clerk; SET LOCAL ROLE clerk")
    target.execute("INSERT INTO bank.accounts (name) VALUES ('a')")
    target.execute("RESET ROLE")
    assert _rows(target, "SELECT id FROM bank.accounts") == [(100,)]
    assert _rows(target, "SELECT what = upper(session_user) FROM bank.history") == [(True,)]
    plain = _trigger("BEGIN :NEW.name := UPPER(:NEW.name); END;")
    (one,) = (s for s in convert(_inventory(triggers=(plain,)), SETTINGS) if s.kind == "trigger")
    assert "SECURITY DEFINER" not in one.sql


def test_a_trigger_that_asks_for_the_columns_of_an_update_is_refused() -> None:
    body = "BEGIN IF UPDATING('NAME') THEN :NEW.name := 'x'; END IF; END;"
    found = convert(_inventory(triggers=(_trigger(body, event="UPDATE"),)), SETTINGS)
    (one,) = (s for s in found if s.name == "BANK.TRG")
    assert "UPDATING of a column" in one.reason


REFUSED_ROUTINES = {
    "LOOP EXIT none_; END LOOP;": "EXIT NONE_, which is not the label of a loop",
    "RETURN SQLCODE;": "SQLCODE: PostgreSQL has no numbers of Oracle's errors",
    "FOR r IN (SELECT id FROM accounts FOR UPDATE WAIT 5) LOOP RETURN 1; END LOOP;": (
        "FOR UPDATE WAIT: set lock_timeout"
    ),
    "FOR r IN (SELECT h.id FROM accounts a, history h FOR UPDATE) LOOP RETURN 1; END LOOP;": (
        "FOR UPDATE of a query that does not read one table"
    ),
    "FOR r IN (SELECT id FROM (SELECT id FROM accounts FOR UPDATE)) LOOP RETURN 1; END LOOP;": (
        "FOR UPDATE in a view or a subquery"
    ),
    "INSERT INTO history (what) SELECT code FROM accounts; RETURN 1;": "a different type into what",
}


@pytest.mark.parametrize("body", REFUSED_ROUTINES)
def test_what_a_routine_cannot_do_is_named(body: str) -> None:
    text = f"FUNCTION f RETURN NUMBER IS BEGIN {body} END;"
    (found,) = (one for one in convert(_inventory(sources=(_unit(text),)), SETTINGS)
                if one.source == text)  # fmt: skip
    assert REFUSED_ROUTINES[body] in found.reason


def test_rows_are_locked(target: Target) -> None:
    text = (
        "PROCEDURE lock_them IS v accounts.name%TYPE; BEGIN FOR r IN (SELECT id FROM accounts WHERE"
        " id > 1 ORDER BY id FOR UPDATE OF name NOWAIT) LOOP UPDATE accounts SET balance = r.id"
        " WHERE id = r.id; END LOOP; SELECT name INTO v FROM accounts WHERE id = 1 FOR UPDATE; END;"
    )
    made = _made(target, "procedure", sources=(_unit(text),))
    assert made.sql.count("FOR UPDATE") == 2
    target.execute("INSERT INTO bank.accounts (id, name) VALUES (1, 'a'), (2, 'b')")
    target.execute("CALL bank.lock_them()")
    assert _rows(target, "SELECT id, balance FROM bank.accounts ORDER BY id") == [(1, None), (2, 2)]
    locks = "SELECT mode FROM pg_locks WHERE relation = 'bank.accounts'::regclass"
    assert ("RowShareLock",) in _rows(target, locks)


def test_rows_of_a_query_are_inserted_with_literals(target: Target) -> None:
    text = (
        "PROCEDURE copied IS BEGIN INSERT INTO history (id, what, old_name, new_name)"
        " SELECT id + 1, 'copied', NULL, code || '!' FROM accounts; END;"
    )
    _made(target, "procedure", sources=(_unit(text),))
    target.execute("INSERT INTO bank.accounts (id, code) VALUES (1, 'ab')")
    target.execute("CALL bank.copied()")
    assert _rows(target, "SELECT * FROM bank.history") == [(2, "copied", None, "ab !")]
