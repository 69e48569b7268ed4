"""A scenario's statements are carried out by their sessions, or it is told why they cannot be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from olr_pg.errors import Code, OlrPgError
from olr_pg.proving.scenario import ScenarioStep, parse_scenario
from olr_pg.proving.script import ScenarioFailedError, may_commit, run_steps, switch_logs
from tests.proving.served import Served, served_source

if TYPE_CHECKING:
    from collections.abc import Iterator

WAITING = """CREATE TABLE w (id NUMBER(4) PRIMARY KEY, v NUMBER(6));
INSERT INTO w VALUES (1, 0);
COMMIT;
UPDATE w SET v = v + 1;
-- session: B
UPDATE w SET v = v + 10;
-- session: A
COMMIT;
-- session: B
COMMIT;
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served_source(tmp_path_factory.mktemp("source")) as made:
        yield made


def test_a_statement_that_waits_lets_the_script_go_on(served: Served) -> None:
    noted: list[int] = []
    steps = parse_scenario(WAITING, "group/name").steps
    run_steps(served.owner, steps, lambda step: noted.append(step.line))
    assert noted == [1, 3, 8, 10]
    rows = [values for _, values in served.server.database.table("W").scan(None)]
    assert [tuple(map(int, row)) for row in rows] == [(1, 11)]


@pytest.mark.parametrize(
    ("text", "errors", "told"),
    [
        ("SELECT * FROM nowhere", (), "line 7: .*ORA-00942"),
        (
            "SELECT * FROM dual",
            (942, 1),
            "line 7: it succeeded, but should fail with ORA-00942 or ORA-00001",
        ),
    ],
)
def test_what_does_not_go_as_the_scenario_says(
    served: Served, text: str, errors: tuple[int, ...], told: str
) -> None:
    with pytest.raises(ScenarioFailedError, match=told):
        run_steps(served.owner, [ScenarioStep("A", text, errors, 7)])


def test_an_error_that_is_expected(served: Served) -> None:
    run_steps(served.owner, [ScenarioStep("A", "SELECT * FROM nowhere", (942,), 1)])


def test_who_may_not_log_on(served: Served) -> None:
    with pytest.raises(OlrPgError) as caught:
        run_steps(served.owner.model_copy(update={"user": "nobody"}), [ScenarioStep("A", "COMMIT")])
    assert caught.value.code is Code.ORACLE_LOGIN_REFUSED


def test_logs_are_switched_by_who_may(served: Served) -> None:
    assert switch_logs([served.source, served.owner])
    assert not switch_logs([])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("COMMIT", True), ("truncate table t", True), ("BEGIN NULL; END;", True),
        ("INSERT INTO t VALUES (1)", False), ("ROLLBACK", False), ("SAVEPOINT a", False),
    ],
)  # fmt: skip
def test_where_rows_are_noted(text: str, *, expected: bool) -> None:
    assert may_commit(ScenarioStep("A", text)) is expected
