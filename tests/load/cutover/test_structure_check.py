"""The target may be used only if it has the structure of the source, or somebody accepts less."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import psycopg

from olr_pg.config.reading import load_config
from olr_pg.dictionary.snapshot_file import inventory_path
from olr_pg.errors import Code, OlrPgError
from olr_pg.load.cutover.structure_check import Lacking, accepted, lacking_structure
from olr_pg.schema.source_inventory import all_statements, read_schemas
from olr_pg.schema.trial import run_statements
from tests.advice import followed
from tests.load.cutover.test_cut_over import cut, project, ready, states
from tests.load.verification.test_verification import execute

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.load.conftest import Project

__all__ = ["cut", "project", "ready"]


def _lacking(one: Project, *dictionary: Path) -> list[Lacking]:
    config = load_config(one.write())
    with psycopg.connect(one.database, autocommit=True) as connection:
        return lacking_structure(connection, config, one.database, dictionary)


def _apply(one: Project) -> None:
    """As `olr-pg schema apply` does, and `by hand` what is PL/SQL."""
    config = load_config(one.write())
    with psycopg.connect(one.database, autocommit=True) as connection:
        run_statements(connection, all_statements(config, read_schemas(config), one.database))


def test_a_load_makes_keys_and_indexes_but_no_checks(ready: Project) -> None:
    before = {one.name for one in _lacking(ready)}
    assert {name.split()[0] for name in before} <= {"check", "index", "trigger"}
    assert any(name.startswith("check SHOP.") for name in before)
    _apply(ready)
    after = _lacking(ready)
    assert all(one.reason for one in after), "what can be made is there"


def test_what_somebody_drops_is_missing(ready: Project) -> None:
    _apply(ready)
    before = {one.name for one in _lacking(ready)}
    execute(ready, "ALTER TABLE shop.payments DROP CONSTRAINT payments_customers_fk")
    execute(ready, "DROP SEQUENCE shop.orders_seq")
    execute(ready, "ALTER TABLE shop.settings DROP CONSTRAINT settings_pkey")
    found = {one.name for one in _lacking(ready)} - before
    assert {name.rpartition(".")[0] for name in found} == {
        "foreign key SHOP.PAYMENTS",
        "sequence SHOP",
        "primary key SHOP.SETTINGS",
    }


def test_what_is_disabled_or_not_replicated_is_not_required(ready: Project, tmp_path: Path) -> None:
    made = {one.name.split()[0] for one in _lacking(ready)}
    assert made >= {"check", "index"}
    path = tmp_path / "dictionary.json"
    shutil.copy(ready.source_folder / path.name, path)
    found = json.loads(inventory_path(ready.source_folder / path.name).read_text("utf-8"))
    for one in (*found["constraints"], *found["triggers"]):
        one["enabled"] = False
    for one in found["indexes"]:
        one["usable"] = False
    inventory_path(path).write_text(json.dumps(found), "utf-8")
    assert _lacking(ready, path) == []
    ready.names = ["SHOP.SETTINGS"]
    assert {one.name.split()[1].rpartition(".")[0] for one in _lacking(ready)} <= {"SHOP.SETTINGS"}


def test_a_key_of_another_name_is_there(ready: Project) -> None:
    _apply(ready)
    before = _lacking(ready)
    execute(
        ready,
        "ALTER TABLE shop.payments RENAME CONSTRAINT payments_customers_fk TO another_name",
    )
    assert _lacking(ready) == before


def test_a_cut_over_stops_until_it_is_made_or_accepted(
    ready: Project, cut: Callable[..., Any]
) -> None:
    _apply(ready)
    execute(ready, "ALTER TABLE shop.payments DROP CONSTRAINT payments_customers_fk")
    stopped, code = cut()
    error = OlrPgError(Code(code), "")
    followed(error, Code.STRUCTURE_LACKING, "run `olr-pg schema apply`")
    assert states(stopped)["constraints"] == "failed"
    assert (
        "foreign key SHOP.PAYMENTS.PAYMENTS_CUSTOMERS_FK"
        in stopped["steps"][-1]["detail"]["reason"]
    )
    _apply(ready)
    done = cut()
    assert done["finished"]


def test_what_is_accepted_is_named(ready: Project, cut: Callable[..., Any]) -> None:
    execute(ready, "ALTER TABLE shop.payments DROP CONSTRAINT payments_customers_fk")
    done = cut(accept=["check *", "trigger *", "index *", "foreign key SHOP.PAYMENTS.*"])
    assert done["finished"]
    named = done["steps"][5]["detail"]["accepted"]
    assert "foreign key SHOP.PAYMENTS.PAYMENTS_CUSTOMERS_FK" in named


def test_names_are_accepted_by_patterns() -> None:
    lacking = [Lacking("check S.T.A"), Lacking("trigger S.B", "its body is PL/SQL")]
    assert accepted(lacking, []) == []
    assert accepted(lacking, ["check *"]) == lacking[:1]
    assert lacking[1].words == "trigger S.B (its body is PL/SQL)"
