"""Errors of the way back whose advice an operator follows: the next start goes on, and both
databases have the same rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from olr_pg.cli.main import make_app
from olr_pg.errors import Code, OlrPgError
from olr_pg.fallback.fallback_run import end, prepare, run, status
from olr_pg.simulator.oracle_net.session import Fault
from tests.advice import followed
from tests.appliance.operated_site import Site, operated_site
from tests.fallback.made_way import MadeWay, way_document, write_document
from tests.fallback.test_oracle_set_aside import states

if TYPE_CHECKING:
    from pathlib import Path

    from tests.proving.served import Served

_TRIGGER = "CREATE TRIGGER {t}_{n} BEFORE UPDATE ON {t} FOR EACH ROW BEGIN :NEW.w := 99; END;"


class Operator:
    """Gives the commands of a way back from some tables."""

    def __init__(self, folder: Path, document: dict[str, Any]) -> None:
        self.document = document
        self._path = folder / "olr-pg.json"

    def command(self, *words: str) -> tuple[int, str]:
        config = write_document(self.document, self._path)
        app = make_app(("fallback",))
        result = CliRunner().invoke(app, ["fallback", *words, "--config", str(config)])
        return result.exit_code, result.output

    def succeeds(self, *words: str) -> None:
        code, output = self.command(*words)
        assert code == 0, output

    def fails(self, *words: str) -> str:
        code, output = self.command(*words)
        assert code != 0, output
        return output


# --- the replication from Oracle ---


@pytest.fixture
def site(
    served: Served, tmp_path: Path, logical_database: str, monkeypatch: pytest.MonkeyPatch
) -> Site:
    """A table that is replicated in both directions."""
    found = operated_site(served, tmp_path, logical_database, monkeypatch)
    found.leave_out(found.b)
    found.document["fallback"] = {"user": "app", "password": "olr"}
    found.run()
    found.command("fallback", "begin")
    found.sql(f"INSERT INTO app.{found.a} VALUES (4711, 1)")
    found.command("fallback", "run", "--once")
    return found


def test_a_way_back_is_recognised_with_its_section(site: Site) -> None:
    section = site.document.pop("fallback")
    words = "add the section `fallback` with this account to the configuration again"
    followed(site.failure(), Code.WAY_BACK_NOT_RECOGNISED, words)
    site.document["fallback"] = section
    site.run_with_changes()
    site.command("fallback", "end")


def test_a_way_back_that_has_ended_is_forgotten_after_a_load(site: Site) -> None:
    site.command("fallback", "end")
    del site.document["fallback"]
    site.change()
    words = "after the end of the way back, load each table again"
    followed(site.failure(), Code.WAY_BACK_NOT_RECOGNISED, words, "Then start again")
    site.load_anew(site.a)
    site.run()
    assert site.differing() == []
    site.run_with_changes()


# --- the way back ---


def test_a_conflict_in_oracle_is_overwritten_or_skipped(
    served: Served, logical_database: str, tmp_path: Path
) -> None:
    made = MadeWay(served, logical_database, "conflict")
    document = way_document(served, tmp_path / "data", logical_database, "conflict")
    operator = Operator(tmp_path, document)
    operator.succeeds("begin")
    made.sql("INSERT INTO {t} VALUES (1, 'a', 1, NULL)")
    operator.succeeds("run", "--once")
    for policy, command in (("overwrite", "resume"), ("error", "skip")):
        made.oracle("DELETE FROM {t}")
        made.sql("UPDATE {t} SET w = w + 1")
        document["fallback"]["on-conflict"] = "error"
        assert "OLR-07306" in operator.fails("run", "--once")
        document["fallback"]["on-conflict"] = policy
        operator.succeeds(command, "--table", "APP.CONFLICT")
        operator.succeeds("run", "--once")
        assert made.same() == (policy == "overwrite")
    followed(
        OlrPgError(Code.FALLBACK_CONFLICT, ""), Code.FALLBACK_CONFLICT,
        "set `fallback.on-conflict` to overwrite or skip and restart `olr-pg fallback run`",
        "`olr-pg fallback resume --table", "`olr-pg fallback skip --table OWNER.NAME`",
    )  # fmt: skip
    operator.succeeds("end")


def test_a_table_whose_rows_cannot_be_read_is_removed(
    served: Served, logical_database: str, tmp_path: Path
) -> None:
    """PostgreSQL sends a type without a binary format as text, also of an omitted column."""
    names = ("unreadable", "readable")
    made = [MadeWay(served, logical_database, name) for name in names]
    made[0].sql("ALTER TABLE {t} ADD rights aclitem")
    document = way_document(served, tmp_path / "data", logical_database, *names)
    document["fallback"]["omit-columns"] = ["APP.UNREADABLE.RIGHTS"]
    operator = Operator(tmp_path, document)
    operator.succeeds("begin")
    made[0].sql("INSERT INTO {t} (id, rights) VALUES (1, (acldefault('r', 10))[1])")
    made[1].sql("INSERT INTO {t} VALUES (1, 'a', 1, NULL)")
    assert "OLR-07312" in operator.fails("run", "--once")
    followed(
        OlrPgError(Code.FALLBACK_ROW_UNREADABLE, ""), Code.FALLBACK_ROW_UNREADABLE,
        "remove it from `apply.tables`", "restart `olr-pg fallback run`", "`olr-pg fallback resume",
    )  # fmt: skip
    document["apply"]["tables"] = ["APP.READABLE"]
    operator.fails("run", "--once")
    operator.succeeds("resume", "--table", "APP.UNREADABLE")
    operator.succeeds("run", "--once")
    made[1].sql("INSERT INTO {t} VALUES (2, 'b', 1, NULL)")
    operator.succeeds("run", "--once")
    assert made[1].same()
    operator.succeeds("end")


def test_triggers_that_the_account_may_not_disable_are_disabled_by_their_owner(
    served: Served, logical_database: str
) -> None:
    made = MadeWay(served, logical_database, "owned")
    for number in ("a", "b"):
        made.oracle(_TRIGGER.replace("{n}", number))
    made.oracle("ALTER TRIGGER owned_b DISABLE")
    before = states(made)
    prepare(made.way)
    made.sql("INSERT INTO {t} VALUES (1, 'a', 1, NULL)")
    faults = served.server.server.faults
    faults.add(Fault("execute", "DISABLE ALL TRIGGERS", error=(1031, "insufficient privileges")))
    with pytest.raises(OlrPgError) as caught:
        run(made.way, once=True)
    error = followed(
        caught.value, Code.FALLBACK_TRIGGERS_FIRE, "ask the owner of the tables to run the"
        " statements above", "the statements that `olr-pg fallback status` lists",
    )  # fmt: skip
    statement = 'ALTER TABLE "APP"."OWNED" DISABLE ALL TRIGGERS'
    assert statement in error.detail
    made.oracle(statement)
    made.sql("UPDATE {t} SET v = 'b'")
    run(made.way, once=True)
    assert made.same()
    for statement in status(made.way).set_aside:
        made.oracle(statement)
    assert states(made) == before
    end(made.way)
    assert states(made) == before
