"""What the applier does with each error of PostgreSQL: stop the table, or try again."""

from __future__ import annotations

from typing import Any, Final

import pytest

from olr_pg.errors import Code, OlrPgError
from olr_pg.postgres.sqlstates import Meaning, meant_by
from tests.postgres.errors_brought_about import postgresql_codes

Replication = Any  # tests/applier/conftest.py

_TRIES: Final = 3
_ALWAYS: Final = """
CREATE FUNCTION s.raise_{0}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {1} RETURN NEW; END $$;
CREATE TABLE s.t_{0} (id bigint PRIMARY KEY, n numeric, v varchar(20));
CREATE TRIGGER raises BEFORE INSERT ON s.t_{0} FOR EACH ROW EXECUTE FUNCTION s.raise_{0}();
ALTER TABLE s.t_{0} ENABLE ALWAYS TRIGGER raises;
CREATE SEQUENCE s.tries_{0};
"""
_PASSING: Final = {Meaning.AWAY, Meaning.PASSES}


def _prepare(r: Replication, states: list[str], condition: str) -> None:
    """Make a table for each code whose inserts raise it, and a change of each."""
    for state in states:
        name = state.lower()
        raising = f"RAISE EXCEPTION 'raised' USING ERRCODE = '{state}';"
        r.execute(_ALWAYS.format(name, f"IF {condition.format(name)} THEN {raising} END IF;"))
        r.transaction(r.insert({"ID": 1, "N": 1}, table=f"T_{state}"))
    r.transaction(r.insert({"ID": 1, "N": 1}))


def _names(states: list[str]) -> str:
    return " + ".join(f"(SELECT count(*) FROM s.t_{state.lower()})" for state in states)


def test_what_is_a_statements_own_stops_its_table_and_no_other(replication: Replication) -> None:
    """Also 08P01, which a server says of a value, and a pooler of a connection that it ends."""
    r = replication
    states = sorted(
        state
        for state in postgresql_codes()
        if meant_by(state).meaning not in _PASSING or state == "08P01"
    )
    _prepare(r, states, "true")
    with pytest.raises(OlrPgError) as caught:
        r.apply(retry_seconds=5.0)
    assert caught.value.code == Code.TABLES_STOPPED
    assert r.rows("SELECT id FROM s.t") == [(1,)]
    found = r.rows("SELECT source_table, sqlstate, code FROM olr_pg.error ORDER BY 2")
    assert [(f"S.T_{state}", state) for state in states] == [one[:2] for one in found]
    for _, state, code in found:
        match meant_by(state).meaning:
            case Meaning.OPERATOR:
                assert code == meant_by(state).code
            case _ if state in {"23505", "23P01"}:
                assert code == Code.CHANGE_CONFLICTS
            case _:
                assert code == Code.CHANGE_REFUSED
    assert r.rows("SELECT count(*), count(DISTINCT source_table) FROM olr_pg.held") == [
        (len(states), len(states))
    ]


def test_what_passes_is_tried_again_and_stops_nothing(replication: Replication) -> None:
    r = replication
    states = sorted(
        state
        for state in postgresql_codes()
        if meant_by(state).meaning in _PASSING and state != "08P01"
    )
    _prepare(r, states, f"nextval('s.tries_{{}}') < {_TRIES}")
    r.apply(retry_seconds=60.0)
    assert r.rows(f"SELECT {_names(states)}") == [(len(states),)]
    assert r.rows("SELECT count(*) FROM olr_pg.error") == [(0,)]
    for state in states:
        assert r.rows(f"SELECT last_value FROM s.tries_{state.lower()}") == [(_TRIES,)]


@pytest.mark.parametrize("state", ["XX000", "53200"])
def test_what_should_pass_and_does_not_stops_its_table_in_the_end(
    replication: Replication, state: str
) -> None:
    """One row that PostgreSQL has no memory for: those before it are in, the others go on."""
    r = replication
    name = state.lower()
    raising = f"RAISE EXCEPTION 'raised' USING ERRCODE = '{state}';"
    r.execute(_ALWAYS.format(name, f"IF NEW.n = 3 THEN {raising} END IF;"))
    for number in range(1, 6):
        r.transaction(r.insert({"ID": number, "N": number}, table=f"T_{state}"))
        r.transaction(r.insert({"ID": number, "N": number}))
    with pytest.raises(OlrPgError) as caught:
        r.apply(retry_seconds=0.3)
    assert caught.value.code == Code.TABLES_STOPPED
    assert r.rows(f"SELECT id FROM s.t_{name} ORDER BY id") == [(1,), (2,)]
    assert r.rows("SELECT count(*) FROM s.t") == [(5,)]
    code = meant_by(state).code
    assert r.rows("SELECT sqlstate, code, count(*) FROM olr_pg.error GROUP BY 1, 2") == [
        (state, code, 1)
    ]
    r.execute(f"ALTER TABLE s.t_{name} DISABLE TRIGGER raises")
    r.apply()
    assert r.rows(f"SELECT count(*) FROM s.t_{name}") == [(5,)]
