"""Identity columns of Oracle take PostgreSQL's values, and go on behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import oracledb
import psycopg
import pytest

from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.config.reading import load_config
from olr_pg.fallback.fallback_run import end, prepare, run, status
from olr_pg.fallback.oracle_identities import Identity, read_identities
from olr_pg.load.cutover.cut_back import advance_oracle_sequences, put_back
from olr_pg.load.steps_done import DONE, note_step
from olr_pg.oracle.oracle_connection import open_connection
from tests.fallback.made_way import MadeWay

if TYPE_CHECKING:
    from pathlib import Path

    from tests.proving.served import Served

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
