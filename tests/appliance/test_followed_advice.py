"""Errors of a live source, whose advice an operator follows to the letter: the next start goes on,
and the target has every row of the source once.
"""

from __future__ import annotations

import json
import re
import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from olr_pg.appliance import appliance
from olr_pg.applier.session import applier_session
from olr_pg.applier.session.server_side import check_not_ahead
from olr_pg.dictionary.followed_dictionary import FollowedDictionary
from olr_pg.errors import Code, OlrPgError
from olr_pg.files.sealed import is_sealed
from olr_pg.oracle.live_source import LiveDatabase
from tests.advice import followed
from tests.oracle.test_pdb_incarnations import row
from tests.simulation.entry import recovery_at_each_log

if TYPE_CHECKING:
    from olr_pg.capture.logs import LogScan
    from tests.appliance.operated_site import Site

pytestmark = pytest.mark.timeout(900)

_KEY: Final = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="


# --- positions ---


def test_a_restored_target_starts_where_its_error_says(site: Site, postgres: str) -> None:
    name = str(conninfo_to_dict(site.apply["connect-string"])["dbname"])
    admin = partial(_executed, make_conninfo(postgres, dbname="postgres"))
    admin(f'CREATE DATABASE "{name}_saved" TEMPLATE "{name}"')
    site.change(f"ALTER TABLE {site.a} ADD (w NUMBER(9))")
    site.run_with_changes()
    admin(f'DROP DATABASE "{name}" WITH (FORCE)')
    admin(f'ALTER DATABASE "{name}_saved" RENAME TO "{name}"')
    error = followed(
        site.failure(), Code.TARGET_PUT_BACK, "delete `checkpoint.json`",
        "Set `apply.start-scn` to the SCN named above",
    )  # fmt: skip
    (site.data / "checkpoint.json").unlink()
    site.apply["start-scn"] = error.where["start_scn"]
    site.run()
    assert site.differing() == []
    site.run_with_changes()


def _executed(postgres: str, statement: str) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(statement.encode())


def test_a_table_that_was_restored_alone_with_its_position_is_loaded_again(site: Site) -> None:
    """A start at the position of the others would skip what this table lacks."""
    (position,) = site.sql(f"SELECT commit_scn FROM olr_pg.ledger WHERE source_table ~ '{site.b}'")
    rows = site.sql(f"SELECT max(id) FROM app.{site.b}")
    site.run_with_changes()
    site.run_with_changes()
    site.sql(f"DELETE FROM app.{site.b} WHERE id > {rows[0][0]}")
    site.sql(
        f"UPDATE olr_pg.ledger SET commit_scn = {position[0]}, xids = '{{}}'"
        f" WHERE source_table = 'APP.{site.b}'"
    )
    site.change()
    error = followed(site.failure(), Code.TARGET_PUT_BACK, "load the tables again")
    assert "The SCN to start from is unknown" in error.detail
    site.load_anew(site.b)
    site.run()
    assert site.differing() == []


def test_changes_that_a_late_start_left_out_are_repaired(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    """The changes after the start are applied, so an earlier start would skip all before them."""
    for way in ("repair", "load"):
        (site.data / "checkpoint.json").unlink()
        site.change()
        site.apply["start-scn"] = site.current_scn()
        site.change()
        capsys.readouterr()
        site.run()
        assert "OLR-05151" in "".join(capsys.readouterr())
        assert site.differing() == [site.a, site.b]
        error = OlrPgError(Code.START_AFTER_TARGET, "logged")
        followed(
            error, Code.START_AFTER_TARGET, "verify --differences", "repair", "initial-load --anew"
        )
        if way == "repair":
            site.verify_and_repair()
        else:
            site.load_anew(site.a, site.b)
            site.run()
        assert site.differing() == []
        site.run_with_changes()


def test_a_damaged_checkpoint_is_removed(site: Site) -> None:
    site.change(f"ALTER TABLE {site.a} ADD (w NUMBER(9))")
    site.run()
    path = site.data / "checkpoint.json"
    path.write_text("{", "utf-8")
    site.change()
    site.apply["start-scn"] = site.sql("SELECT start_scn FROM olr_pg.subscription")[0][0]
    followed(site.failure(), Code.CHECKPOINT_UNUSABLE, "remove the file")
    path.unlink()
    site.run()
    assert site.differing() == []


@pytest.mark.parametrize("then", ["another key", "no key"])
def test_a_lost_key_costs_no_position_and_no_rows(
    site: Site, monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    """The vault and a recovery image are encrypted with it, and a transaction is open."""
    monkeypatch.setattr(appliance, "BoundedRecovery", recovery_at_each_log)
    vault = site.data.parent / "vault"
    site.document["source"]["vault"] = {"directory": str(vault), "keep-hours": 100}
    site.document["context"]["encryption-key"] = _KEY
    with site.connected() as oracle:
        oracle.cursor().execute(f"INSERT INTO {site.b} (id, x) VALUES (7777, 1)")
        site.run_with_changes()
        site.run_with_changes()
        images = [*(site.data / "recovery").glob("*.redo")]
        copies = [*vault.glob("*.arc")]
        assert images
        assert copies
        assert all(map(is_sealed, images + copies))
        oracle.commit()
    site.change(f"ALTER TABLE {site.a} ADD (w NUMBER(9))")
    site.document["context"]["encryption-key"] = _KEY[:-2] + "A="
    error = followed(
        site.failure(), Code.ENCRYPTION_KEY_WRONG, "remove `encryption.json` and the directories"
        " `recovery` and `incidents`", "start with another key, or without a key",
    )  # fmt: skip
    if then == "no key":
        del site.document["context"]["encryption-key"]
        followed(site.failure(), Code.ENCRYPTION_KEY_MISSING, error.label)
    (site.data / "encryption.json").unlink()
    shutil.rmtree(site.data / "recovery")
    site.run()
    assert site.differing() == []
    site.run_with_changes()


def test_damaged_changes_of_the_dictionary_are_removed_with_the_dictionary(site: Site) -> None:
    site.change(f"ALTER TABLE {site.a} ADD (w NUMBER(9))")
    site.run()
    path = site.data / "dictionary-changes.jsonl"
    path.write_text(path.read_text("utf-8")[:-40] + "\n", "utf-8")
    site.change(f"ALTER TABLE {site.a} ADD (v NUMBER(9))", f"UPDATE {site.a} SET w = 5, v = 6")
    site.change(f"ALTER TABLE {site.a} RENAME COLUMN w TO u", f"TRUNCATE TABLE {site.b}")
    followed(
        site.failure(), Code.DICTIONARY_HISTORY_UNUSABLE, "remove the file",
        "also remove `dictionary.json`",
    )  # fmt: skip
    path.unlink()
    (site.data / "dictionary.json").unlink()
    site.run()
    assert site.differing() == []
    site.run_with_changes()


def test_files_of_the_data_directory_are_restored_or_deleted(site: Site) -> None:
    backup = site.data.parent / "backup"
    shutil.copytree(site.data, backup)
    site.run_with_changes()
    threads, incarnation = site.data / "threads.json", site.data / "incarnation.json"
    threads.write_text("{", "utf-8")
    followed(site.failure(), Code.STATE_FILE_DAMAGED, "restore the file from a backup")
    shutil.copy(backup / "threads.json", threads)
    incarnation.write_text("{", "utf-8")
    followed(site.failure(), Code.STATE_FILE_DAMAGED, "Or delete the file")
    incarnation.unlink()
    site.run_with_changes()
    path = site.data / "checkpoint.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {"version": 99}), "utf-8")
    site.change()
    words = "restore a backup of the data directory from before the upgrade"
    followed(site.failure(), Code.FILE_OF_NEWER_VERSION, words)
    shutil.rmtree(site.data)
    shutil.copytree(backup, site.data)
    site.run_with_changes()


# --- the list of tables ---


@pytest.mark.parametrize("way", ["tables add", "initial-load"])
def test_a_table_that_is_newer_than_the_position_waits_for_the_others(site: Site, way: str) -> None:
    """A start with it in the list would need a dictionary of before its creation."""
    new = f"C{site.a[1:]}"
    site.create(new, "PRIMARY KEY")
    refusal = site.refused("tables", "add", f"APP.{new}")
    assert "OLR-08015" in refusal
    assert "wait until `olr-pg run" in refusal
    site.apply["tables"].append(f"APP.{new}")
    if way == "initial-load":
        site.command("initial-load")
    error = followed(
        site.failure(), Code.TABLE_UNKNOWN, "follow docs/control.md, “A table is missing in the"
        " dictionary”",
    )  # fmt: skip
    assert error.where["table"] == f"APP.{new}"
    site.apply["tables"].remove(f"APP.{new}")
    site.run()
    site.change()
    site.run()
    if way == "initial-load":
        site.apply["tables"].append(f"APP.{new}")
    else:
        site.command("tables", "add", f"APP.{new}")
    site.run()
    assert site.differing() == []
    site.run_with_changes()


def test_a_target_table_with_right_rows_is_added_without_a_load(site: Site) -> None:
    new = f"D{site.a[1:]}"
    site.create(new, "PRIMARY KEY")
    site.run()
    site.sql(f"CREATE TABLE app.{new} (id int PRIMARY KEY, x int)")
    site.sql(f"INSERT INTO app.{new} SELECT max(id), 2 FROM (VALUES ({site._row})) AS v (id)")
    site.apply["tables"].append(f"APP.{new}")
    output = site.refused("initial-load")
    assert "OLR-05104" in output
    error = OlrPgError(Code.TARGET_TABLE_NOT_EMPTY, new)
    followed(
        error, Code.TARGET_TABLE_NOT_EMPTY, "remove the table from `apply.tables`", "--no-load"
    )
    site.apply["tables"].remove(f"APP.{new}")
    site.command("initial-load")
    site.command("tables", "add", f"APP.{new}", "--no-load")
    site.run_with_changes()


def test_a_new_table_that_is_reported_is_added(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    new = f"N{site.a[1:]}"
    site.apply["tables"].append(f"APP.{new}*")
    site.apply |= {"create-tables": False, "ddl": {"new-table": "ignore"}}
    site.create(new, "PRIMARY KEY")
    capsys.readouterr()
    site.run()
    assert "OLR-03080" in "".join(capsys.readouterr())
    words = "with a live source, `olr-pg tables add` loads and replicates the table"
    error = OlrPgError(Code.TABLE_NEWER_THAN_SNAPSHOT, "")
    followed(error, Code.TABLE_NEWER_THAN_SNAPSHOT, words)
    assert "OLR-05005" in site.refused("tables", "add", f"APP.{new}")
    error = OlrPgError(Code.TARGET_TABLE_MISSING, "")
    again = "Then start the same command again"
    followed(error, Code.TARGET_TABLE_MISSING, "create the table in PostgreSQL", again)
    site.sql(f"CREATE TABLE app.{new} (id int PRIMARY KEY, x int)")
    site.command("tables", "add", f"APP.{new}")
    site.run()
    assert site.differing() == []
    site.run_with_changes()


def test_a_load_that_the_target_refuses_is_resumed(site: Site) -> None:
    new = f"E{site.a[1:]}"
    site.create(new, "PRIMARY KEY")
    site.run()
    site.sql(f"CREATE TABLE app.{new} (id int PRIMARY KEY, x int CONSTRAINT small CHECK (x < 2))")
    site.apply["tables"].append(f"APP.{new}")
    assert "OLR-05109" in site.refused("initial-load")
    error = OlrPgError(Code.TABLE_DATA_REFUSED, "")
    followed(error, Code.TABLE_DATA_REFUSED, "correct the target table", "continue with --resume")
    assert "OLR-05106" in site.refused("initial-load")
    error = OlrPgError(Code.LOAD_INTERRUPTED, "")
    followed(error, Code.LOAD_INTERRUPTED, "continue the load with --resume")
    followed(site.failure(), Code.TABLE_LOADED_IN_PART, "`olr-pg initial-load --resume --table")
    site.sql(f"ALTER TABLE app.{new} DROP CONSTRAINT small")
    site.command("initial-load", "--resume")
    site.run()
    assert site.differing() == []
    site.run_with_changes()


# --- the ledger ---


@pytest.mark.parametrize("way", ["the old name", "load", "start-scn"])
def test_a_new_name_of_a_subscription_applies_nothing_twice(site: Site, way: str) -> None:
    site.apply["subscription"] = "new"
    site.change()
    words = {
        "the old name": 'set `apply.subscription` to "olr_pg" again',
        "load": "initial-load --anew",
        "start-scn": "set `apply.start-scn` to an SCN after these changes",
    }
    followed(site.failure(), Code.APPLIED_BY_ANOTHER, words[way])
    if way == "the old name":
        del site.apply["subscription"]
    elif way == "load":
        site.load_anew(site.a)
        followed(site.failure(), Code.APPLIED_BY_ANOTHER, f"--table APP.{site.b}")
        site.load_anew(site.b)
    else:
        del site.apply["subscription"]
        site.run()
        site.apply |= {"subscription": "new", "start-scn": site.current_scn()}
        site.change()
    site.run()
    assert site.differing() == []
    site.run_with_changes()


def test_a_mapping_that_was_changed_is_changed_back_or_made_true(site: Site) -> None:
    site.apply["table-mapping"] = {f"APP.{site.a}": f"app.{site.a.lower()}_2"}
    site.change()
    followed(
        site.failure(), Code.LEDGER_OF_ANOTHER_TABLE, "undo the change",
        "rename the table in PostgreSQL, too",
    )  # fmt: skip
    site.sql(f"ALTER TABLE app.{site.a} RENAME TO {site.a}_2")
    site.run()
    site.sql(f"ALTER TABLE app.{site.a}_2 RENAME TO {site.a}")
    del site.apply["table-mapping"]
    site.run_with_changes()


@pytest.mark.parametrize("way", ["load", "the same SCNs"])
def test_the_ledger_of_another_source_is_replaced_or_adopted(site: Site, way: str) -> None:
    site.sql("UPDATE olr_pg.ledger SET dbid = 4711")
    site.change()
    update = "UPDATE olr_pg.ledger SET dbid = NULL WHERE subscription = 'NAME'"
    words = {"load": "load the tables again", "the same SCNs": update}
    error = followed(site.failure(), Code.LEDGER_OF_ANOTHER_SOURCE, words[way])
    if way == "load":
        site.load_anew(site.a, site.b)
    else:
        site.sql(update.replace("NAME", str(error.where["subscription"])))
    site.run()
    assert site.differing() == []
    site.run_with_changes()


# --- stopped tables ---


@pytest.mark.parametrize("way", ["keep", "empty"])
def test_a_truncation_that_stops_its_table_is_decided(site: Site, way: str) -> None:
    site.apply["ddl"] = {"truncate": "stop"}
    kept = site.sql(f"SELECT * FROM app.{site.b} ORDER BY id")
    site.change(f"TRUNCATE TABLE {site.b}")
    assert site.failure().code == Code.TABLES_STOPPED
    ((number,),) = site.sql("SELECT id FROM olr_pg.error WHERE resolution = 'stopped'")
    error = OlrPgError(Code(site.sql("SELECT code FROM olr_pg.error")[0][0]), "")
    followed(error, Code.TABLE_TRUNCATED, "run `olr-pg errors skip`", "to follow, and restart")
    if way == "keep":
        site.command("errors", "skip", str(number))
        site.run()
        assert site.sql(f"SELECT * FROM app.{site.b} ORDER BY id")[: len(kept)] == kept
        assert site.differing() == [site.b]
    else:
        site.apply["ddl"] = {"truncate": "follow"}
        site.run()
        site.run_with_changes()


@pytest.mark.parametrize("way", ["correct", "overwrite", "skip"])
def test_a_conflict_is_corrected_or_overwritten_or_skipped(site: Site, way: str) -> None:
    site.sql(f"INSERT INTO app.{site.a} VALUES (4711, 9)")
    site.change(f"INSERT INTO {site.a} VALUES (4711, 1)")
    number = site.stopped_by()
    words = {
        "correct": "Correct the row in the target, then run `olr-pg errors retry`",
        "overwrite": "set `apply.on-conflict` to skip or overwrite",
        "skip": "Then correct the skipped rows with `olr-pg verify --differences FILE`",
    }
    followed(site.error_line(number), Code.CHANGE_CONFLICTS, words[way])
    if way == "skip":
        site.command("errors", "skip", str(number))
        site.verify_and_repair()
    else:
        if way == "correct":
            site.sql(f"DELETE FROM app.{site.a} WHERE id = 4711")
        else:
            site.apply["on-conflict"] = "overwrite"
        site.command("errors", "retry", f"APP.{site.a}")
    assert site.differing() == []
    site.run_with_changes()


def test_a_transaction_that_failed_is_retried_by_the_next_start(site: Site) -> None:
    site.apply["consistency"] = "transaction"
    site.sql(f"INSERT INTO app.{site.a} VALUES (4711, 9)")
    site.change(f"INSERT INTO {site.a} VALUES (4711, 1)")
    words = "Correct the target", "Then start the command again"
    followed(site.failure(), Code.TRANSACTION_NOT_WHOLE, *words)
    site.sql(f"DELETE FROM app.{site.a} WHERE id = 4711")
    start = "start the appliance, which retries the transaction"
    error = OlrPgError(Code.NO_SUCH_STOPPED_TABLE, "")
    assert start in site.refused("errors", "retry", f"APP.{site.a}")
    followed(error, Code.NO_SUCH_STOPPED_TABLE, start)
    assert "The next start of the appliance" in site.command("errors", "retry")
    site.run()
    assert site.differing() == []
    assert site.sql("SELECT resolution FROM olr_pg.error") == [("applied",)]


def test_a_target_column_that_was_dropped_is_added_and_filled(site: Site) -> None:
    site.sql(f"ALTER TABLE app.{site.a} DROP COLUMN x")
    site.change()
    error = site.error_line(site.stopped_by())
    followed(error, Code.TARGET_COLUMN_MISSING, "add the column", "verify --differences", "repair")
    site.sql(f"ALTER TABLE app.{site.a} ADD x int")
    site.run()
    site.verify_and_repair()
    assert site.differing() == []
    site.run_with_changes()


def test_a_table_that_was_dropped_is_removed(site: Site) -> None:
    site.apply["ddl"] = {"drop-table": "stop"}
    site.gone(site.b)
    error = site.error_line(site.stopped_by())
    site.change()
    assert str(Code.TABLE_GONE) in site.next_reason()  # the same advice at each start
    followed(error, Code.TABLE_GONE, "`olr-pg tables remove OWNER.NAME`")
    site.command("tables", "remove", f"APP.{site.b}")
    site.run()
    site.run_with_changes()
    assert "no table has stopped" in site.command("errors", "list")


def test_an_added_table_that_was_renamed_leaves_the_list_by_its_old_name(site: Site) -> None:
    """Until then, no other table can be loaded. A pattern selects the new name."""
    site.apply["tables"] = [f"APP.{site.a}*", f"APP.{site.b}"]
    old, new = f"X{site.b}", f"{site.a}_NEW"
    site.create(old)
    site.command("tables", "add", f"APP.{old}")
    site.run_with_changes()
    site.renamed(old, new)
    site.run_with_changes()
    refusal = site.refused("initial-load", "--anew", "--table", f"APP.{site.a}")
    assert f"there is no APP.{old} as of SCN" in refusal
    assert "run `olr-pg tables remove OWNER.NAME` if `olr-pg tables add` has added it" in refusal
    site.command("tables", "remove", f"APP.{old}")
    site.load_anew(site.a)
    site.run_with_changes()
    site.run_with_changes()


@pytest.mark.parametrize("way", ["stopped", "paused"])
def test_a_table_that_is_renamed_while_it_is_held_resumes_under_its_new_name(
    site: Site, way: str
) -> None:
    site.apply["tables"] = [f"APP.{site.a}*", f"APP.{site.b}"]
    if way == "paused":
        site.command("tables", "pause", f"APP.{site.a}")
    else:
        site.sql(f"ALTER TABLE app.{site.a} ADD CONSTRAINT no CHECK (x < 0) NOT VALID")
        site.change()
        site.stopped_by()
    site.renamed(site.a, f"{site.a}_R")
    reasons = [site.next_reason() for _ in range(3)]
    assert not any("OLR-05030" in reason for reason in reasons)
    if way == "paused":
        site.command("tables", "resume", f"APP.{site.a}")
    else:
        site.sql(f"ALTER TABLE app.{site.a} DROP CONSTRAINT no")
        site.command("errors", "retry")
    site.run_with_changes()
    assert "no table has stopped" in site.command("errors", "list")


def test_a_table_that_was_left_out_stays_stopped_after_a_rename(site: Site) -> None:
    """Its held changes follow a gap, although the last one is the rename."""
    site.apply["tables"] = [f"APP.{site.b}"]
    site.change()
    site.run()
    site.apply["tables"] = [f"APP.{site.a}*", f"APP.{site.b}"]
    site.change()
    site.stopped_by()
    site.renamed(site.a, f"{site.a}_R")
    reasons = [site.next_reason() for _ in range(3)]
    assert all("OLR-05030" in reason for reason in reasons)


def test_a_paused_subscription_is_resumed(site: Site) -> None:
    site.command("tables", "pause", "--all")
    site.change()
    error = followed(site.failure(), Code.SUBSCRIPTION_PAUSED, "`olr-pg tables resume --all`")
    assert re.fullmatch(r".*`olr-pg (tables resume --all)`", error.action)
    site.command("tables", "resume", "--all")
    site.run()
    assert site.differing() == []


@pytest.mark.parametrize("way", ["skip", "load"])
def test_a_column_that_was_added_is_added_by_hand(site: Site, way: str) -> None:
    site.apply["ddl"] = {"add-column": "stop"}
    site.change(f"ALTER TABLE {site.a} ADD (w NUMBER(9))", f"UPDATE {site.a} SET w = 8")
    number = site.stopped_by()
    words = {"skip": "resume the table: `olr-pg errors skip`", "load": "load the table again"}
    followed(site.error_line(number), Code.COLUMNS_CHANGED, "make the same change", words[way])
    site.sql(f"ALTER TABLE app.{site.a} ADD w int")
    if way == "skip":
        site.command("errors", "skip", str(number))
    else:
        site.load_anew(site.a)
    site.run_with_changes()


@pytest.mark.parametrize("way", ["skip", "load"])
def test_a_table_that_was_left_out_is_repaired_or_loaded(site: Site, way: str) -> None:
    site.apply["tables"].remove(f"APP.{site.b}")
    site.change()
    site.run()
    site.apply["tables"].append(f"APP.{site.b}")
    site.change()
    number = site.stopped_by()
    words = {"skip": "run `olr-pg errors skip`", "load": "load the table again"}
    followed(site.error_line(number), Code.TABLE_WAS_LEFT_OUT, words[way])
    if way == "skip":
        site.command("errors", "skip", str(number))
        site.verify_and_repair()
    else:
        site.load_anew(site.b)
    site.run_with_changes()


# --- the target ---


def test_a_target_table_that_is_refused_is_altered_as_its_error_says(site: Site) -> None:
    role = f"role_{site.b.lower()}"
    on = f"app, olr_pg TO {role}"
    site.sql(
        f"CREATE ROLE {role} LOGIN PASSWORD 'x'; GRANT ALL ON SCHEMA {on};"
        f" GRANT ALL ON ALL TABLES IN SCHEMA {on}; GRANT ALL ON ALL SEQUENCES IN SCHEMA {on};"
        f" GRANT SET ON PARAMETER session_replication_role TO {role}"
    )
    site.apply["connect-string"] = make_conninfo(
        site.apply["connect-string"], user=role, password="x"
    )
    table = f"app.{site.b}"
    for code, statement in {
        Code.TARGET_TABLE_UNLOGGED: f"ALTER TABLE {table} SET UNLOGGED",
        Code.TARGET_ROW_SECURITY: f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
        Code.TARGET_TABLE_UNFIT: f"CREATE TABLE app.child () INHERITS ({table})",
    }.items():
        site.sql(statement)
        site.change()
        shown = site.command("errors", "show", str(site.stopped_by()))
        assert OlrPgError(code, "").label in shown
        found = re.search(r" action: (ALTER [^;]*);.*`olr-pg (errors retry [^`]*)`", shown)
        assert found is not None, shown
        site.sql(found[1])
        site.command(*found[2].split())
        assert site.differing() == []
    retry = "`olr-pg errors retry OWNER.NAME`"
    followed(OlrPgError(Code.TARGET_TABLE_UNLOGGED, ""), Code.TARGET_TABLE_UNLOGGED, retry)
    followed(OlrPgError(Code.TARGET_ROW_SECURITY, ""), Code.TARGET_ROW_SECURITY, retry)
    followed(OlrPgError(Code.TARGET_TABLE_UNFIT, ""), Code.TARGET_TABLE_UNFIT, retry)
    site.run_with_changes()


def test_changes_that_the_target_refuses_are_retried_or_skipped(site: Site) -> None:
    table = f"app.{site.b}"
    raising = (
        "CREATE OR REPLACE FUNCTION app.raises() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN RAISE EXCEPTION USING ERRCODE = ''{}''; END';"
        f" CREATE TRIGGER raises BEFORE INSERT ON {table} FOR EACH ROW"
        f" EXECUTE FUNCTION app.raises(); ALTER TABLE {table} ENABLE ALWAYS TRIGGER raises"
    )
    undo = f"DROP TRIGGER raises ON {table}"
    altered = f"ALTER TABLE {table} ALTER x TYPE "
    causes = [
        (Code.TARGET_LIMIT, raising.format("54001"), undo),
        (Code.CHANGE_REFUSED, raising.format("P0001"), undo),
        (Code.TARGET_TYPE_UNFIT, altered + "int[] USING ARRAY[x]", altered + "int USING x[1]"),
    ]
    for code, cause, cure in causes:
        site.sql(cause)
        site.change()
        assert site.error_line(site.stopped_by()).code == code
        site.sql(cure)
        site.command("errors", "retry")
        assert site.differing() == []
    retry = "run `olr-pg errors retry`"
    followed(OlrPgError(Code.TARGET_LIMIT, ""), Code.TARGET_LIMIT, retry)
    followed(OlrPgError(Code.TARGET_TYPE_UNFIT, ""), Code.TARGET_TYPE_UNFIT, retry)
    site.sql(causes[1][1])
    site.change_one(site.b)
    number = str(site.stopped_by())
    skip = "skip the change with `olr-pg errors skip`"
    followed(OlrPgError(Code.CHANGE_REFUSED, ""), Code.CHANGE_REFUSED, retry, skip)
    site.sql(undo)
    site.command("errors", "skip", number)
    site.verify_and_repair()
    site.run_with_changes()


def test_a_table_that_a_crash_has_emptied_is_loaded_again(site: Site) -> None:
    site.apply["unlogged-tables"] = "accept"
    site.sql(f"ALTER TABLE app.{site.b} SET UNLOGGED")
    site.run_with_changes()
    # A crash of PostgreSQL empties every UNLOGGED table.
    site.sql(f"TRUNCATE app.{site.b}, olr_pg.crash_mark")
    site.change()
    error = site.error_line(site.stopped_by())
    followed(error, Code.TARGET_ROWS_LOST, "SET LOGGED", "load the table again")
    site.sql(f"ALTER TABLE app.{site.b} SET LOGGED")
    site.load_anew(site.b)
    site.run_with_changes()


def test_a_table_that_was_replaced_by_a_whole_copy_continues(site: Site) -> None:
    site.sql(f"CREATE TABLE app.copy (LIKE app.{site.a} INCLUDING ALL)")
    site.sql(f"INSERT INTO app.copy SELECT * FROM app.{site.a}")
    site.sql(f"DROP TABLE app.{site.a}")
    site.sql(f"ALTER TABLE app.copy RENAME TO {site.a}")
    site.change()
    assert site.failure().code == Code.TABLES_STOPPED
    ((code,),) = site.sql("SELECT code FROM olr_pg.error WHERE resolution = 'stopped'")
    update = (
        "UPDATE olr_pg.ledger SET target_oid = NULL WHERE subscription = 'NAME' AND source_table ="
        " 'OWNER.NAME'"
    )
    error = OlrPgError(Code(code), "")
    followed(
        error, Code.TARGET_TABLE_REPLACED, update, "with the value of `apply.subscription`",
        "then `olr-pg errors retry OWNER.NAME`",
    )  # fmt: skip
    update = update.replace("OWNER.NAME", f"APP.{site.a}")
    ((number,),) = site.sql("SELECT id FROM olr_pg.error WHERE resolution = 'stopped'")
    assert update in site.command("errors", "show", str(number))
    site.sql(update.replace("'NAME'", "'olr_pg'"))
    site.command("errors", "retry", f"APP.{site.a}")
    assert site.differing() == []
    site.run_with_changes()


def test_a_target_table_that_was_dropped_is_loaded_again(site: Site) -> None:
    site.sql(f"DROP TABLE app.{site.b}")
    site.change()
    assert site.failure().code == Code.TABLES_STOPPED
    ((number,),) = site.sql("SELECT id FROM olr_pg.error WHERE resolution = 'stopped'")
    shown = site.command("errors", "show", str(number))
    assert "OLR-05005" in shown
    site.load_anew(site.b)
    site.run()
    assert site.differing() == []


def test_a_ledger_without_tables_is_made_again_with_a_load(site: Site) -> None:
    site.sql("DROP TABLE olr_pg.held CASCADE")
    site.change()
    error = followed(
        site.failure(), Code.LEDGER_UNUSABLE, "create the missing objects with"
        " sql/postgres/ledger.sql, and load the tables again",
    )  # fmt: skip
    assert "olr_pg.held" in error.detail
    path = Path(__file__).parents[2] / "sql" / "postgres" / "ledger.sql"
    site.sql(path.read_text("utf-8"))
    site.load_anew(site.a, site.b)
    site.run()
    assert site.differing() == []
    site.run_with_changes()


# --- the source ---


def test_another_character_set_needs_a_load_behind_the_change(site: Site) -> None:
    catalogue = site.catalogue
    update = (
        'UPDATE SYS."DATABASE_PROPERTIES" SET "PROPERTY_VALUE" = ?'
        " WHERE \"PROPERTY_NAME\" = 'NLS_CHARACTERSET'"
    )
    catalogue.update(update, "WE8MSWIN1252")
    try:
        site.change()
        followed(
            site.failure(), Code.CHARACTER_SET_CHANGED, "Empty `context.data`",
            "set `apply.start-scn` to an SCN after the change", "initial-load --anew --table",
        )  # fmt: skip
        site.begin_anew()
    finally:
        catalogue.update(update, "AL32UTF8")


def test_sys_tables_that_were_built_anew_are_read_behind_the_upgrade(site: Site) -> None:
    update = 'UPDATE SYS."OBJ$" SET "DATAOBJ#" = ? WHERE "NAME" = \'TAB$\''
    ((number,),) = site.catalogue.rows('SELECT "DATAOBJ#" FROM SYS."OBJ$" WHERE "NAME" = \'TAB$\'')
    site.catalogue.update(update, 4711)
    try:
        site.change()
        followed(
            site.failure(), Code.SYS_TABLES_REBUILT, "empty `context.data`",
            "set `apply.start-scn` to an SCN after the upgrade", "then load each table again",
        )  # fmt: skip
        site.begin_anew()
    finally:
        site.catalogue.update(update, number)


def test_a_pdb_that_was_replaced_while_it_was_read_is_loaded_again(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    update = 'UPDATE SYS."V$DATABASE" SET "CON_DBID" = ?'
    ((number,),) = site.catalogue.rows('SELECT "CON_DBID" FROM SYS."V$DATABASE"')
    site.change()
    scan = LiveDatabase.scan

    def replaced(live: LiveDatabase, scn: int, delivered_scn: int) -> LogScan:
        site.catalogue.update(update, 4711)
        return scan(live, scn, delivered_scn)

    try:
        with monkeypatch.context() as patch:
            patch.setattr(LiveDatabase, "scan", replaced)
            followed(
                site.failure(), Code.PDB_REPLACED, "empty `context.data`", "set `apply.start-scn`",
                "If another PDB has its name now, then load each table of the PDB again",
            )  # fmt: skip
        site.begin_anew()
    finally:
        site.catalogue.update(update, number)


def test_a_dictionary_row_that_cannot_be_read_is_passed_by_a_load(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = FollowedDictionary._value

    def unreadable(self: FollowedDictionary, field: str, raw: bytes | None) -> Any:
        if field == "name" and raw == b"UNREADABLE":
            raise OlrPgError(Code.DICTIONARY_ROW_UNREADABLE, field)
        return value(self, field, raw)

    monkeypatch.setattr(FollowedDictionary, "_value", unreadable)
    site.change(f"ALTER TABLE {site.a} ADD (unreadable NUMBER(9))")
    followed(
        site.failure(), Code.DICTIONARY_ROW_UNREADABLE, "So empty `context.data`",
        "load each table again (`olr-pg initial-load --anew --table OWNER.NAME`), and start",
    )  # fmt: skip
    shutil.rmtree(site.data)
    lacking = site.refused("initial-load", "--anew", "--table", f"APP.{site.a}")
    assert OlrPgError(Code.TARGET_COLUMN_MISSING, "").label in lacking, lacking
    site.sql(f"ALTER TABLE app.{site.a} ADD unreadable int")
    site.load_anew(site.a, site.b)
    site.run()
    assert site.differing() == []
    site.run_with_changes()


def test_a_pdb_that_was_set_back_is_loaded_again(site: Site) -> None:
    scn = site.current_scn()
    site.change()
    begin = site.current_scn()
    site.change()
    name = "V$PDB_INCARNATION"
    site.catalogue.insert(name, [row(scn, begin)])
    try:
        followed(
            site.failure(), Code.PDB_SET_BACK, "first empty `context.data`",
            "Then load each table again",
        )  # fmt: skip
        shutil.rmtree(site.data)
        site.load_anew(site.a, site.b)
        site.run()
        assert site.differing() == []
        site.run_with_changes()
    finally:
        site.catalogue.update(f'DELETE FROM SYS."{name}" WHERE "INCARNATION_SCN" = ?', scn)


def test_a_target_of_another_copy_of_the_source_is_loaded_again(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(applier_session, "check_not_ahead", partial(check_not_ahead, patience=0.1))
    site.sql("UPDATE olr_pg.ledger SET commit_scn = commit_scn + 100000000")
    site.change()
    followed(
        site.failure(), Code.TARGET_AHEAD_OF_SOURCE, "empty `context.data`", "load all tables again"
    )
    shutil.rmtree(site.data)
    site.load_anew(site.a, site.b)
    site.run()
    assert site.differing() == []
    site.run_with_changes()


# --- the cut-over ---


def test_a_stopped_table_is_compared_after_it_resumes(site: Site) -> None:
    site.apply["ddl"] = {"truncate": "stop"}
    site.change(f"TRUNCATE TABLE {site.b}")
    number = site.stopped_by()
    assert "OLR-05111" in site.refused("verify")
    error = OlrPgError(Code.NOT_COMPARABLE_AT_SCN, "")
    followed(error, Code.NOT_COMPARABLE_AT_SCN, "resume it first: see `olr-pg errors list`")
    site.command("errors", "skip", str(number))
    site.verify_and_repair()
    assert site.differing() == []


def test_a_cut_over_begins_again_after_the_source_has_changed(site: Site) -> None:
    site.command("cutover", "--until", "applied")
    site.change()
    output = site.refused("cutover", "--accept", "*")
    assert "OLR-05123" in output
    error = OlrPgError(Code.SOURCE_CHANGED_AFTER_CUTOVER, "")
    followed(error, Code.SOURCE_CHANGED_AFTER_CUTOVER, "start `olr-pg cutover --restart`")
    site.command("cutover", "--restart", "--accept", "*")
    assert site.differing() == []
    assert "OLR-05171" in site.refused("initial-load", "--anew", "--table", f"APP.{site.a}")
    error = OlrPgError(Code.TARGET_IN_USE, "")
    followed(error, Code.TARGET_IN_USE, "`olr-pg cutover --restart --status`, and repeat")
    site.command("cutover", "--restart", "--status")
    site.load_anew(site.a)
    site.run_with_changes()
