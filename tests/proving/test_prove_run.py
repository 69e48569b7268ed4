"""`olr-pg prove` on the stand-in: right and wrong scenarios, what it leaves, resuming."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle.oracle_connection import OracleDatabase
from olr_pg.proving import prove_run
from olr_pg.proving.logminer import decoded_events
from olr_pg.proving.prove_run import (
    SCHEMA,
    SUBSCRIPTION,
    ProveOptions,
    WholeWay,
    chosen_scenarios,
    prove,
)
from olr_pg.proving.report_page import Judge, Proof, Word
from olr_pg.proving.scenario import parse_scenario
from olr_pg.proving.scratch_schema import ScratchSchema
from olr_pg.simulator.database_shape import demo_shape
from tests.proving.served import Served, served_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession


SCENARIOS = (
    "types/dates", "transactions/waiting_for_a_row", "statements/names_in_quotes",
    "lobs/in_the_row", "ddl/add_column", "place/reader_restarts_before_a_rollback",
    "types/local_time_zones", "types/binary_float_literals", "statements/names_of_tools",
    "ddl/defaults_of_every_type",
)  # fmt: skip


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served_source(tmp_path_factory.mktemp("source")) as made:
        yield made


@pytest.fixture
def tried(
    served: Served,
    tmp_path: Path,
    postgres_database: str,
    shared_session: Callable[[], SparkSession],
) -> Callable[..., Proof]:
    def run(*patterns: str, **options: Any) -> Proof:
        config = served.config(postgres_database)
        return prove(config, ProveOptions(patterns, tmp_path / "out", **options), shared_session)

    return run


def scratch_objects(served: Served) -> set[str]:
    database = OracleDatabase(served.source)
    try:
        source = served.source.model_copy(update={"user": served.prove.user})
        return {one.name for one in ScratchSchema(source, database).objects()}
    finally:
        database.close()


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("one_session")
def test_scenarios_are_right_and_nothing_is_left(
    served: Served, tried: Callable[..., Proof], tmp_path: Path, postgres_database: str
) -> None:
    proof = tried(*SCENARIOS, "logging/minimal")
    named = [one for one in proof.results if one.name == "logging/minimal"]
    refused = named[0].verdicts[Judge.WHOLE_WAY]
    assert (refused.word, refused.code) == (Word.REFUSED, "OLR-05009")
    found = {one.name: one.verdicts for one in proof.results if one not in named}
    assert {name: one[Judge.REPLAY].word for name, one in found.items()} == dict.fromkeys(
        sorted(SCENARIOS), Word.RIGHT
    )
    whole = {name: one[Judge.WHOLE_WAY] for name, one in found.items()}
    assert {one.word for one in whole.values()} == {Word.RIGHT}
    restarted = whole["place/reader_restarts_before_a_rollback"]
    assert "restarted 2 times" in restarted.reason
    assert found["types/dates"][Judge.LOGMINER].word is Word.UNTRIED
    assert not proof.differs
    # Nothing is left in the source and in the target, and the results are whole.
    assert scratch_objects(served) == set()
    with psycopg.connect(postgres_database) as connection:
        schemas = connection.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'olr%'")
        assert schemas.fetchall() == []
    out = tmp_path / "out"
    document = json.loads((out / "proof.json").read_text("utf-8"))
    assert [one["scenario"] for one in document["scenarios"]] == sorted(
        [*SCENARIOS, "logging/minimal"]
    )
    assert document["database"]["character sets"] == "AL32UTF8, national AL16UTF16"
    assert not (out / "work").exists()
    page = (out / "proof.html").read_text("utf-8")
    assert "types/dates" in page
    assert "http" not in page.replace("http-equiv", "")


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("one_session")
def test_a_wrong_value_is_found_with_its_masked_redo(
    served: Served, tried: Callable[..., Proof], monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(*arguments: Any) -> Any:
        events = decoded_events(*arguments)
        inserted = next(one for one in events if one["op"] == "insert")
        inserted["after"]["ID"] += 1
        return events

    monkeypatch.setattr(prove_run, "decoded_events", wrong)
    proof = tried("types/dates")
    verdict = proof.results[0].verdicts[Judge.REPLAY]
    assert proof.differs
    assert verdict.word is Word.DIFFERS
    assert "ID is 2, not 1" in verdict.differences[0]
    incident = json.loads(Path(verdict.incident).read_text("utf-8"))
    assert incident["masked"] is True
    assert incident["records"]
    assert incident["error"]["code"] == Code.SCENARIO_DIFFERS


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("one_session")
def test_a_run_that_was_broken_off_goes_on_and_a_whole_one_begins_anew(
    served: Served, tried: Callable[..., Proof], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []
    judged = prove_run._Trial.judged

    def breaks(trial: Any, scenario: Any) -> Any:
        begun.append(scenario.name)
        if len(begun) == 2:
            raise KeyboardInterrupt
        return judged(trial, scenario)

    monkeypatch.setattr(prove_run._Trial, "judged", breaks)
    two = ("transactions/named", "types/raw")
    with pytest.raises(KeyboardInterrupt):
        tried(*two)
    assert scratch_objects(served) == set()
    assert not tried(*two).differs
    assert begun == ["transactions/named", "types/raw", "types/raw"]
    tried(*two)
    assert begun[3:] == list(two)


ANOTHER_SET = """-- purpose: text of another character set than the declared one
-- covers: character-sets
CREATE TABLE t (id NUMBER(4) PRIMARY KEY, v VARCHAR2(20), c CHAR(4), note CLOB,
    tail VARCHAR2(2500));
INSERT INTO t VALUES (1, UTL_RAW.CAST_TO_VARCHAR2(HEXTORAW('47E472746E6572')),
    UTL_RAW.CAST_TO_VARCHAR2(HEXTORAW('80')), UTL_RAW.CAST_TO_VARCHAR2(HEXTORAW('93E994')), 'x');
COMMIT;
UPDATE t SET tail = UTL_RAW.CAST_TO_VARCHAR2(HEXTORAW('DF'));
COMMIT;
"""


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("one_session")
def test_the_judges_use_the_configured_character_sets(
    tmp_path: Path,
    postgres_database: str,
    shared_session: Callable[[], SparkSession],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scenario = parse_scenario(ANOTHER_SET, "types/another_set")
    monkeypatch.setattr(prove_run, "chosen_scenarios", lambda _patterns: [scenario])
    decoded: list[Any] = []

    def spoilt(*arguments: Any) -> Any:
        decoded.extend(decoded_events(*arguments))
        update = next(one for one in decoded if one["op"] == "update")
        wrong = {**update, "after": {**update["after"], "TAIL": "à"}}
        return [wrong if one is update else one for one in decoded]

    monkeypatch.setattr(prove_run, "decoded_events", spoilt)
    shape = replace(demo_shape(), charset="US7ASCII")
    with served_source(tmp_path / "source", shape=shape) as served:
        config = served.config(postgres_database)
        sets = {"character_sets": {"*": "WE8MSWIN1252"}}
        config = config.model_copy(update={"source": config.source.model_copy(update=sets)})
        proof = prove(config, ProveOptions((), tmp_path / "out"), shared_session)
    (inserted,) = (one["after"] for one in decoded if one["op"] == "insert")
    assert (inserted["V"], inserted["C"], inserted["NOTE"]) == ("Gärtner", "€   ", "“é”")
    verdicts = proof.results[0].verdicts
    assert verdicts[Judge.WHOLE_WAY].word is Word.RIGHT
    (found,) = verdicts[Judge.REPLAY].differences
    assert "TAIL is à, not ß" in found
    assert proof.facts["configured character sets"] == "*: WE8MSWIN1252"


def test_a_pattern_that_fits_nothing() -> None:
    with pytest.raises(OlrPgError, match="nothing/\\*") as caught:
        chosen_scenarios(["types/*", "nothing/*"])
    assert caught.value.code is Code.SCENARIO_UNKNOWN
    assert len(chosen_scenarios([])) > len(chosen_scenarios(["types/*"])) > 10


def way_of(served: Served, target: str, place: Path) -> WholeWay:
    config = served.config(target)
    return WholeWay(config, "APP", target, place, lambda: None)  # type: ignore[arg-type,return-value]


def schemas(connection: psycopg.Connection[tuple[str]]) -> list[str]:
    found = connection.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'olr%'")
    return sorted(name for (name,) in found)


def test_a_killed_run_s_ledger_is_removed_unless_somebody_uses_it(
    tmp_path: Path, postgres_database: str
) -> None:
    with (
        served_source(tmp_path / "source") as served,
        psycopg.connect(postgres_database, autocommit=True) as connection,
    ):
        way_of(served, postgres_database, tmp_path)  # and was killed behind this:
        ensure_ledger(connection)
        connection.execute(f"CREATE SCHEMA {SCHEMA}")
        note = "INSERT INTO olr_pg.subscription VALUES (%s, 7)"
        connection.execute(note, (SUBSCRIPTION,))
        connection.execute(note, ("of_somebody",))
        way_of(served, postgres_database, tmp_path).clear()
        assert schemas(connection) == ["olr_pg"]
        left = connection.execute("SELECT subscription FROM olr_pg.subscription").fetchall()
        assert left == [("of_somebody",)]
        connection.execute("DELETE FROM olr_pg.subscription")
        way_of(served, postgres_database, tmp_path).end()
        assert schemas(connection) == []


def test_a_ledger_that_was_there_before_stays(tmp_path: Path, postgres_database: str) -> None:
    with (
        served_source(tmp_path / "source") as served,
        psycopg.connect(postgres_database, autocommit=True) as connection,
    ):
        ensure_ledger(connection)
        way_of(served, postgres_database, tmp_path).end()
        assert schemas(connection) == ["olr_pg"]
