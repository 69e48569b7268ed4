"""Oracle's triggers and foreign keys during the way back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import oracledb
import psycopg
import pytest

from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.config.reading import load_config
from olr_pg.errors import Code, OlrPgError
from olr_pg.fallback.fallback_run import end, prepare, run, status
from olr_pg.fallback.oracle_set_aside import Identity, OracleSetAside, read_identities
from olr_pg.load.cutover.cut_back import advance_oracle_sequences, put_back
from olr_pg.load.cutover_steps import DONE, note_step
from olr_pg.oracle.oracle_connection import open_connection
from tests.advice import followed
from tests.fallback.made_way import MadeWay

if TYPE_CHECKING:
    from pathlib import Path

    from tests.proving.served import Served


_TRIGGER = "CREATE TRIGGER {t}_{n} BEFORE UPDATE ON {t} FOR EACH ROW BEGIN :NEW.w := 99; END;"


def states(made: MadeWay) -> dict[str, str]:
    with made.oracle_cursor() as cursor:
        cursor.execute(
            "SELECT trigger_name, status FROM sys.dba_triggers UNION ALL SELECT constraint_name,"
            " status FROM sys.dba_constraints WHERE constraint_type = 'R'"
        )
        return {name: state for name, state in cursor if made.name.upper() in name}


def test_what_fires_is_set_aside_and_put_back_by_name(
    served: Served, logical_database: str
) -> None:
    made = MadeWay(served, logical_database, "aside")
    for number in ("a", "b"):
        made.oracle(_TRIGGER.replace("{n}", number))
    made.oracle("ALTER TRIGGER aside_b DISABLE")  # by somebody, long ago
    made.oracle("ALTER TABLE {t} ADD CONSTRAINT aside_up FOREIGN KEY (w) REFERENCES {t}")
    before = states(made)
    assert before == {"ASIDE_A": "ENABLED", "ASIDE_B": "DISABLED", "ASIDE_UP": "ENABLED"}
    prepare(made.way)
    made.sql("INSERT INTO {t} VALUES (2, 'b', NULL, NULL), (1, 'a', 2, NULL)")
    made.sql("UPDATE {t} SET v = 'c' WHERE id = 2")
    made.sql("UPDATE {t} SET w = 7 WHERE id = 2")
    run(made.way, once=True)
    assert made.same()
    assert set(states(made).values()) == {"DISABLED"}
    assert len(status(made.way).set_aside) == 2
    run(made.way, once=True)  # again changes nothing
    assert len(status(made.way).set_aside) == 2

    with pytest.raises(OlrPgError, match="2298") as refused:
        end(made.way)  # there is no row 7
    followed(
        refused.value, Code.FALLBACK_NOT_PUT_BACK, "correct the rows", "the same command again"
    )
    assert states(made) == before | {"ASIDE_UP": "DISABLED"}
    assert status(made.way).ledger is not None
    made.sql("INSERT INTO {t} VALUES (7, 'g', NULL, NULL)")
    run(made.way, once=True)
    end(made.way)
    assert states(made) == before
    assert status(made.way).set_aside == []


def test_a_call_for_a_whole_table_may_take_longer_than_others(
    served: Served, logical_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a limit, a table that is too large would be tried again for ever."""
    made = MadeWay(served, logical_database, "whole")
    made.oracle("ALTER TABLE {t} ADD CONSTRAINT whole_up FOREIGN KEY (w) REFERENCES {t}")
    prepare(made.way)
    made.sql("INSERT INTO {t} VALUES (1, 'a', NULL, NULL)", "TRUNCATE {t}")
    made.sql("INSERT INTO {t} VALUES (2, 'b', NULL, NULL)")
    limits = dict[str, int]()
    execute = oracledb.Cursor.execute

    def noted(cursor: oracledb.Cursor, statement: str, *more: Any, **named: Any) -> Any:
        limits[statement] = cursor.connection.call_timeout
        return execute(cursor, statement, *more, **named)

    monkeypatch.setattr(oracledb.Cursor, "execute", noted)
    run(made.way, once=True)
    end(made.way)
    usual = made.way.source.query_timeout * 1000
    longer = {one for one, limit in limits.items() if limit > usual}
    assert {one.partition(' "')[0] for one in longer} == {"DELETE FROM", "ALTER TABLE"}
    assert any("ENABLE VALIDATE CONSTRAINT" in one for one in longer)
    assert len(limits) > len(longer)
    assert set(limits.values()) == {usual, 86_400_000}


def test_a_trigger_that_only_its_owner_may_enable_is_found_and_may_be_enabled_by_hand(
    served: Served, logical_database: str
) -> None:
    """The account of the way back has ALTER on the table alone."""
    made = MadeWay(served, logical_database, "mixed")
    for number in ("a", "b"):
        made.oracle(_TRIGGER.replace("{n}", number))
    with open_connection(made.way.source) as connection:
        aside = OracleSetAside(connection, made.name, made.way.tables)
        assert aside.unrestorable("OLR_PG_FALLBACK") == {}  # all at once
        made.oracle("ALTER TRIGGER mixed_b DISABLE")
        by_hand = 'ALTER TRIGGER "APP"."MIXED_A" ENABLE'
        assert aside.unrestorable("OLR_PG_FALLBACK") == {"APP.MIXED": [by_hand]}
        assert aside.unrestorable("APP") == {}
        (switch,) = aside.set_aside()
        assert switch.disabling == 'ALTER TABLE "APP"."MIXED" DISABLE ALL TRIGGERS'
        assert set(states(made).values()) == {"DISABLED"}
        made.oracle(by_hand)
        made.oracle("ALTER TABLE {t} ADD CONSTRAINT mixed_up FOREIGN KEY (w) REFERENCES {t}")
        done = list[str]()
        execute = aside._execute

        def recorded(statement: str, values: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
            done.append(statement)
            return execute(statement, values)

        aside._execute = recorded  # type: ignore[method-assign]
        assert [one.enabling for one in aside.put_back()] == [by_hand]
        assert not [one for one in done if one.startswith("ALTER")]
        assert states(made) == {"MIXED_A": "ENABLED", "MIXED_B": "DISABLED", "MIXED_UP": "ENABLED"}


def test_a_kill_between_note_and_ddl_loses_nothing(served: Served, logical_database: str) -> None:
    made = MadeWay(served, logical_database, "halfway")
    made.oracle(_TRIGGER.replace("{n}", "a"))
    with open_connection(made.way.source) as connection:
        aside = OracleSetAside(connection, made.name, made.way.tables)
        (switch,) = aside.firing()
        aside.set_aside()
    for statement in (switch.enabling, switch.disabling):  # not disabled yet; disabled already
        made.oracle(statement)
        with open_connection(made.way.source) as connection:
            aside = OracleSetAside(connection, made.name, made.way.tables)
            aside.set_aside()
            assert [one[:2] for one in aside.noted()] == [switch[:2]]
            assert states(made) == {"HALFWAY_A": "DISABLED"}
    with open_connection(made.way.source) as connection:
        aside = OracleSetAside(connection, made.name, made.way.tables)
        assert [one.enabling for one in aside.put_back()] == [switch.enabling]
        assert aside.put_back() == []
        assert states(made) == {"HALFWAY_A": "ENABLED"}


FORMS = ("ALWAYS", "BY DEFAULT", "BY DEFAULT ON NULL")


def identity(made: MadeWay) -> Identity:
    with open_connection(made.way.source) as connection:
        (found,) = read_identities(connection, made.way.tables)
    return found


@pytest.mark.parametrize("form", FORMS)
def test_an_identity_takes_values_and_is_as_before_in_the_end(
    served: Served, logical_database: str, form: str, tmp_path: Path
) -> None:
    key = f"NUMBER(10) GENERATED {form} AS IDENTITY"
    made = MadeWay(served, logical_database, f"identity_{FORMS.index(form)}", key)
    config = load_config(made.config_file(tmp_path))
    made.way = made.way._replace(subscription="olr_pg")  # as the configuration has it
    made.oracle("INSERT INTO {t} (v) VALUES ('one')")
    made.sql("INSERT INTO {t} (id, v) VALUES (1, 'one')")
    before = identity(made)
    assert before.generation == form
    prepare(made.way)
    made.sql("INSERT INTO {t} (id, v) VALUES (7, 'seven'), (8, 'eight'), (900, 'gone')")
    made.sql("UPDATE {t} SET id = 50, v = 'moved' WHERE id = 8", "DELETE FROM {t} WHERE id = 900")
    run(made.way, once=True)
    run(made.way, once=True)
    assert made.same()
    assert not identity(made).is_always
    aside = f'ALTER TABLE "APP"."{made.name.upper()}" MODIFY ("ID" GENERATED ALWAYS AS IDENTITY)'
    assert status(made.way).set_aside == ([aside] if form == "ALWAYS" else [])

    with psycopg.connect(made.database, autocommit=True) as connection:
        ensure_ledger(connection)
        connection.execute("CREATE SEQUENCE app.numbers START WITH 901")
        pair = {"sequence": f"APP.{before.sequence}", "target": ["app", "numbers"]}
        for pairs, following in (([], 51), ([pair], 901), ([pair], 901)):
            note_step(connection, "olr_pg", "sequences", DONE, {"advanced": pairs})
            (move,) = advance_oracle_sequences(config)
            assert move.sequence == f"APP.{made.name.upper()}.ID"
            assert move.after == identity(made).following == following
    assert put_back(config) == ([aside] if form == "ALWAYS" else [])
    assert identity(made).generation == form
    if form == "ALWAYS":
        with pytest.raises(oracledb.DatabaseError, match="32795"):
            made.oracle("INSERT INTO {t} (id, v) VALUES (3, 'by hand')")
        with pytest.raises(oracledb.DatabaseError, match="32796"):
            made.oracle("UPDATE {t} SET id = 3 WHERE id = 7")
    made.oracle("INSERT INTO {t} (v) VALUES ('home')")
    assert made.rows()[1][-1][:2] == (901, "home")
    end(made.way)
    assert identity(made).generation == form
