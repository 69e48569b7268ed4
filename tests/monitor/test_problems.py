"""What needs somebody, and the commands beside it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from olr_pg.errors import Code, OlrPgError
from olr_pg.monitor.problems import TROUBLED, with_problems
from olr_pg.monitor.status_values import (
    STATE_WORDS,
    Identity,
    SourceStatus,
    StageState,
    Status,
    TableStatus,
)


@pytest.fixture
def quiet(status: Status) -> Status:
    return replace(
        status,
        state=StageState("CAUGHT_UP", 0.0),
        tables=(),
        problems=(),
        commands=(),
        source=SourceStatus(),
        identity=Identity(config="/etc/my olr/x.json"),
    )


def found(status: Status) -> dict[str, tuple[str, ...]]:
    told = with_problems(status, None, ())
    return dict(zip(told.problems, told.commands, strict=True))


def test_nothing_is_the_matter(quiet: Status) -> None:
    assert found(quiet) == {}


def test_a_stopped_table_comes_with_its_commands_complete(quiet: Status) -> None:
    stopped = TableStatus('SHOP."Or ders"', stopped="OLR-05008: x; y", held_scn=7, error_id=17)
    ((text, commands),) = found(replace(quiet, tables=(stopped,), target="eu")).items()
    assert text == (
        'table SHOP."Or ders" has stopped and lacks the transactions committed from SCN 7 on:'
        " OLR-05008: x; y"
    )
    end = "--config '/etc/my olr/x.json' --target eu"
    assert commands == (
        f"olr-pg errors show 17 {end}",
        f"olr-pg errors retry 'SHOP.\"Or ders\"' {end}",
        f"olr-pg errors skip 17 {end}",
    )


def test_tables_that_somebody_holds_up_are_named_with_who_does(quiet: Status) -> None:
    tables = (
        TableStatus("A.T", blocked="OLR-05098: x: blocked by pid 7; end it"),
        TableStatus("A.U", blocked="OLR-05098: x: blocked by pid 7; end it"),
        TableStatus("A.V", blocked="OLR-05098: x: blocked by pid 8; end it"),
        TableStatus("A.W"),
    )
    told = with_problems(replace(quiet, tables=tables), None, ())
    assert told.health == "degraded"
    assert told.problems == (
        "A.T, A.U: OLR-05098: x: blocked by pid 7; end it",
        "A.V: OLR-05098: x: blocked by pid 8; end it",
    )


def test_one_cause_is_one_problem(quiet: Status) -> None:
    tables = tuple(TableStatus(f"A.T{n}", stopped="OLR-05008: x", error_id=n) for n in range(9))
    ((text, commands),) = found(replace(quiet, tables=tables)).items()
    assert text.startswith("9 tables have stopped: A.T0, A.T1, A.T2 and 6 more; the first one: ")
    assert commands[0].startswith("olr-pg errors list --config ")


@pytest.mark.parametrize("name", STATE_WORDS)
def test_states_that_are_a_problem(quiet: Status, name: str) -> None:
    problems = found(replace(quiet, state=StageState(name, 0.0, "OLR-0: why")))
    if name not in TROUBLED:
        assert problems == {}
        return
    ((text, commands),) = problems.items()
    assert text == f"{STATE_WORDS[name]} ({name}): OLR-0: why"
    assert "olr-pg doctor --config '/etc/my olr/x.json'" in commands


def test_a_client_that_holds_back_its_confirmations_comes_with_what_to_do(quiet: Status) -> None:
    port = replace(quiet.port, held_back=True, client="10.0.0.1:7", transmitted=12)
    ((text, commands),) = found(replace(quiet, port=port)).items()
    assert text.startswith("OLR-04016: ")
    assert "it has not confirmed 12 transactions that it received" in text
    assert "10.0.0.1:7" in text
    assert "confirms more often" in text
    assert commands == ()


def test_rows_that_differ_are_a_problem_with_the_command_that_names_them(quiet: Status) -> None:
    table = TableStatus("A.B", verified_scn=7, verified_at=1.0, differences=2)
    told = with_problems(replace(quiet, tables=(table,)), None, ())
    assert told.problems == ("table A.B differs from its source table in 2 rows, as of SCN 7",)
    assert told.commands[0][0].startswith("olr-pg verify --table A.B --differences FILE --config")


def test_each_problem_has_its_place_among_the_commands(quiet: Status) -> None:
    told = with_problems(
        replace(
            quiet,
            state=StageState("WAITING_FOR_REDO", 0.0, "why"),
            tables=(TableStatus("A.B", incomplete=3),),
            source=SourceStatus(losses=1),
        ),
        OlrPgError(Code.POSTGRES_UNREACHABLE, "gone"),
        (None, OlrPgError(Code.CLIENT_SILENT, "silent")),
    )
    assert len(told.problems) == len(told.commands) == 5
    assert told.commands[1][0] == "olr-pg logs --config '/etc/my olr/x.json'"
    assert told.commands[2][1] == "olr-pg fetch-lobs --table A.B --config '/etc/my olr/x.json'"
    assert told.commands[4] == ()


def test_commands_in_the_texts_can_be_copied(quiet: Status) -> None:
    why = "OLR-05008: x; mend it, then `olr-pg errors retry`"
    stopped = TableStatus("A.B", stopped=why, error_id=3)
    waiting = StageState("WAITING_FOR_DISK", 0.0, "OLR-0: x; see `olr-pg doctor`")
    named = replace(quiet, tables=(stopped,), target="eu", state=waiting)
    told = with_problems(named, None, (OlrPgError(Code.CLIENT_SILENT, "silent"),))
    end = "--config '/etc/my olr/x.json' --target eu`"
    assert told.state.reason == f"OLR-0: x; see `olr-pg doctor {end}"
    assert told.tables[0].stopped == f"OLR-05008: x; mend it, then `olr-pg errors retry A.B {end}"
    assert told.state.reason in told.problems[0]  # so the page does not show it twice
    assert told.tables[0].stopped in told.problems[1]


def test_many_tables_with_the_same_problem_are_one_problem(quiet: Status) -> None:
    many = range(20_000)
    lacking = tuple(TableStatus(f"A.T{number}", incomplete=2) for number in many)
    ((text, commands),) = found(replace(quiet, tables=lacking)).items()
    assert text.startswith(
        "20,000 tables lack 40,000 LOB values that the redo did not contain: A.T0,"
    )
    assert commands[1].startswith("olr-pg fetch-lobs --config ")
    differing = tuple(TableStatus(f"A.T{number}", differences=1) for number in many)
    ((text, commands),) = found(replace(quiet, tables=differing)).items()
    assert text.startswith(
        "20,000 tables differ from their source tables in 20,000 rows: A.T0, A.T1"
    )
    assert commands[0].startswith("olr-pg verify --table A.T0 --table A.T1 ")
    assert len(commands[0]) < 1000
