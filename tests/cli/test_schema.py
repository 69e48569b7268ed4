"""``olr-pg schema put-back``: what replication has set aside comes back without a cut-over."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from olr_pg.applier.settings import ApplierSettings, TriggerHandling
from olr_pg.applier.target.connection import connect
from olr_pg.applier.target.ledger import ensure_ledger
from olr_pg.applier.target.set_aside import firing_on, noted, set_aside
from olr_pg.cli.main import app

if TYPE_CHECKING:
    from typer.testing import Result

TABLES = """
CREATE SCHEMA s;
CREATE TABLE s.parent (id int PRIMARY KEY);
CREATE TABLE s.child (id int, parent_id int CONSTRAINT of_parent REFERENCES s.parent);
CREATE FUNCTION s.stamp() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END';
CREATE TRIGGER stamp BEFORE INSERT ON s.child FOR EACH ROW EXECUTE FUNCTION s.stamp();
"""


@pytest.fixture
def config(tmp_path: Path, postgres_database: str) -> Path:
    path = tmp_path / "olr-pg.json"
    source = {"kind": "offline", "dictionary": "none.json", "logs": ["none"]}
    apply = {"connect-string": postgres_database, "tables": ["S.CHILD"], "triggers": "disable"}
    path.write_text(json.dumps({"source": source, "apply": apply}))
    settings = ApplierSettings(postgres_database, "", 0, "", triggers=TriggerHandling.DISABLE)
    with connect(postgres_database, replica=False) as connection:
        ensure_ledger(connection)
        connection.execute(TABLES)
        set_aside(connection, settings, [("s", "child"), ("s", "parent")])
        assert len(noted(connection, "olr_pg")) == 2
    return path


def put_back(config: Path, *options: str) -> Result:
    return CliRunner().invoke(app, ["schema", "put-back", "--config", str(config), *options])


def test_everything_comes_back_and_is_named(config: Path, postgres_database: str) -> None:
    done = put_back(config)
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines() == [
        "restored: foreign key of_parent of s.child",
        "restored: trigger stamp of s.child",
    ]
    with connect(postgres_database, replica=False) as connection:
        assert [one.name for one in firing_on(connection, [("s", "child")])["s", "child"]] == [
            "of_parent",
            "stamp",
        ]
        assert all(one.valid for one in firing_on(connection, [("s", "child")])["s", "child"])
    again = put_back(config)
    assert (again.exit_code, again.stdout) == (0, "no trigger, rule or foreign key is disabled\n")


def test_rows_that_break_a_foreign_key_are_a_problem(config: Path, postgres_database: str) -> None:
    with connect(postgres_database, replica=False) as connection:
        connection.execute("INSERT INTO s.child VALUES (1, 7)")
        connection.execute("DROP TRIGGER stamp ON s.child")
    done = put_back(config, "--json")
    assert done.exit_code == 1
    record = json.loads(done.stdout)
    assert record["put_back"] == ["foreign key of_parent of s.child"]
    assert record["not_needed"] == ["trigger stamp of s.child"]
    (problem,) = record["problems"]
    assert problem.startswith("foreign key of_parent of s.child: ")
    # It is there, for what is written from now on.
    with connect(postgres_database, replica=False) as connection:
        (key,) = firing_on(connection, [("s", "child")])["s", "child"]
        assert (key.name, key.valid) == ("of_parent", False)
