"""What happens between two runs of a live source: tables get other names, and the configuration
changes. In the end the target is equal to the source, or something tells that it is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from olr_pg.errors import Code
from olr_pg.load import copy_task
from tests.appliance.changed_configurations import Changed, judge
from tests.proving.served import served_source

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def changed(tmp_path: Path, postgres_database: str, one_session: object) -> Iterator[Changed]:
    del one_session
    with served_source(tmp_path / "source") as served:
        yield Changed(served, postgres_database)


@pytest.mark.parametrize("seed", [1, 2])
def test_nothing_is_lost_silently(changed: Changed, seed: int) -> None:
    silent, done = judge(changed, seed)
    assert not silent, done


_CREATE: Final = "CREATE TABLE n (id NUMBER(9) PRIMARY KEY, x NUMBER(9))"


_INTO: Final = "INSERT INTO {} (id) VALUES (8)"


@pytest.mark.parametrize(
    ("before", "meanwhile", "tables"),
    [
        ([], [_INTO.format("a"), "ALTER TABLE a RENAME TO m"], "M"),
        (["INSERT INTO a (id) VALUES (1)"], ["ALTER TABLE a RENAME TO m"], "M"),
        ([_CREATE, "INSERT INTO n (id) VALUES (1)"], ["ALTER TABLE n RENAME TO m"], "AM"),
        ([_CREATE], ["ALTER TABLE a RENAME TO m", "ALTER TABLE n RENAME TO a"], "AM"),
        (
            ["INSERT INTO a (id) VALUES (1)", "ALTER TABLE a RENAME TO m"],
            [_INTO.format("m"), "ALTER TABLE m RENAME TO a"],
            "A",
        ),
    ],
)
def test_a_table_that_was_renamed_between_two_runs_keeps_all_its_changes(
    changed: Changed, before: list[str], meanwhile: list[str], tables: str
) -> None:
    """Oracle lists it by its new name only, but the redo that is read begins with the old one."""
    later = [f"INSERT INTO {name} (id) VALUES (9)" for name in tables]
    assert [changed.run(one) for one in (before, meanwhile, later)] == [None] * 3
    assert [name for name in tables if not changed.is_same(name)] == []
    assert "without a load" not in str(changed.told)


def test_a_table_that_was_dropped_between_two_runs_is_told(changed: Changed) -> None:
    changed.run(["INSERT INTO a (id) VALUES (1)"])
    error = changed.run(["INSERT INTO a (id) VALUES (2)", "DROP TABLE a"])
    assert error is not None
    assert error.code == Code.TABLES_STOPPED
    assert "OLR-03071" in str(error)


@pytest.mark.parametrize(
    ("meanwhile", "tables"),
    [
        ([_INTO.format("a"), "ALTER TABLE a RENAME TO m", "INSERT INTO m (id) VALUES (9)"], "MB"),
        ([_CREATE, _INTO.format("n")], "ABN"),
    ],
)
def test_tables_that_change_between_the_load_and_the_first_run(
    changed: Changed, monkeypatch: pytest.MonkeyPatch, meanwhile: list[str], tables: str
) -> None:
    """A load takes hours. What is newer than the load needs no older redo."""
    monkeypatch.setattr(copy_task, "HERE_BYTES", 1 << 40)
    monkeypatch.setattr("olr_pg.observability.logging_setup.configure_logging", lambda *_, **__: 0)
    changed.load()
    for statements in (meanwhile, ["INSERT INTO b (id) VALUES (1)"]):
        assert changed.run(statements) is None
    assert [name for name in tables if not changed.is_same(name)] == []


@pytest.mark.parametrize(
    ("left", "tables"), [("DROP TABLE n", "AB"), ("ALTER TABLE n RENAME TO m", "ABM")]
)
def test_a_target_that_begins_with_its_load_begins_there_although_a_table_left_before(
    changed: Changed, monkeypatch: pytest.MonkeyPatch, left: str, tables: str
) -> None:
    """An open transaction needs redo from before the load, when the table had this name."""
    monkeypatch.setattr(copy_task, "HERE_BYTES", 1 << 40)
    monkeypatch.setattr("olr_pg.observability.logging_setup.configure_logging", lambda *_, **__: 0)
    changed.execute([_CREATE, "INSERT INTO n (id) VALUES (1)"])
    with changed.session() as other:
        other.cursor().execute("INSERT INTO a (id) VALUES (5)")
        changed.execute(["UPDATE n SET x = 1", left])
        changed.load()
        other.commit()
    later = [f"INSERT INTO {name} (id) VALUES (9)" for name in tables]
    assert changed.run(later) is None
    assert changed.silent(tables) == []
    if "M" in tables:
        changed.load("APP.M")  # as the warning advises
    assert changed.run(["INSERT INTO a (id) VALUES (10)"]) is None
    assert [name for name in tables if not changed.is_same(name)] == []
