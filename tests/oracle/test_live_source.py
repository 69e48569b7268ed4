"""The live database as decoding sees it: which dictionary a run gets."""

from __future__ import annotations

from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from olr_pg.capture.lineage import Lineage
from olr_pg.capture.source_database import NeededChanges
from olr_pg.config.table_patterns import LEDGER, parse_pattern, table_list_query
from olr_pg.dictionary.committed_changes import DictionaryTransaction, SysRowChange, SysRowOperation
from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle.live_source import LiveDatabase
from olr_pg.oracle.oracle_connection import OracleDatabase
from olr_pg.oracle.source_containers import begun_file
from tests.oracle.conftest import NOTES, ORDERS, SCN

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from pathlib import Path

    from olr_pg.config.source_section import OracleSource
    from olr_pg.simulator.oracle_net.state import OracleState

ORDERS_ONLY = "SELECT owner, table_name FROM all_tables WHERE table_name = 'ORDERS'"
BOTH = "SELECT owner, table_name FROM all_tables WHERE table_name <> 'LOOSE'"


@contextmanager
def live(
    source: OracleSource,
    folder: Path,
    start_scn: int = 0,
    loaded: dict[str, int] | None = None,
    ledger: tuple[str, str] | None = None,
    needed: Callable[[int], int | None] = lambda scn: scn,
    rows_scn: int = 0,
    recorded_scn: int | None = None,
    recorded: Sequence[DictionaryTransaction] = (),
) -> Iterator[LiveDatabase]:
    folder.mkdir(exist_ok=True)
    database = LiveDatabase(
        source,
        Lineage(folder / "lineage.json"),
        start_scn=lambda: start_scn,
        changes=lambda names, _: NeededChanges(
            min((loaded or {}).get(name, start_scn) for name in names) or start_scn,
            start_scn,
            rows_scn,
            start_scn if recorded_scn is None else recorded_scn,
        ),
        dictionary=folder / "dictionary.json",
        ledger=ledger,
        needed=needed,
        recorded=lambda _: recorded,
    )
    try:
        yield database
    finally:
        database.close()


def test_a_run_begins_with_the_dictionary_as_it_is(source: OracleSource, tmp_path: Path) -> None:
    with live(source, tmp_path) as database:
        snapshot, tables = database.resolve(ORDERS_ONLY)
    assert (snapshot.scn, tables) == (SCN, (ORDERS,))


def test_a_restart_goes_on_with_the_dictionary_it_began_with(
    source: OracleSource, state: OracleState, tmp_path: Path
) -> None:
    with live(source, tmp_path) as database:
        first, _ = database.resolve(BOTH)
    state.scn += 100
    state.catalogue.update('UPDATE SYS."COL$" SET "NAME" = \'RENAMED\' WHERE "NAME" = \'LINE\'')
    with live(source, tmp_path, SCN + 50) as database:
        again, tables = database.resolve(ORDERS_ONLY)
        assert again == first
        assert tables == (ORDERS,)


@pytest.mark.parametrize(
    ("name", "value"),
    [("NLS_CHARACTERSET", "WE8ISO8859P1"), ("NLS_NCHAR_CHARACTERSET", "UTF8")],
)
def test_a_restart_notices_that_the_source_has_another_character_set(
    source: OracleSource, state: OracleState, tmp_path: Path, name: str, value: str
) -> None:
    with live(source, tmp_path) as database:
        database.resolve(BOTH)
    set_property = 'UPDATE SYS."DATABASE_PROPERTIES" SET "PROPERTY_VALUE" = ?'
    state.catalogue.update(f'{set_property} WHERE "PROPERTY_NAME" = ?', value, name)
    with live(source, tmp_path, SCN + 50) as database:
        with pytest.raises(OlrPgError, match=value) as caught:
            database.resolve(BOTH)
        assert caught.value.code == Code.CHARACTER_SET_CHANGED
    (tmp_path / "dictionary.json").unlink()  # a start with an empty context.data
    with live(source, tmp_path) as database:
        assert value in {database.database.charset, database.database.ncharset}
        database.resolve(BOTH)


def test_a_restart_continues_with_a_new_dbtimezone(
    source: OracleSource, state: OracleState, tmp_path: Path
) -> None:
    """ALTER DATABASE SET TIME_ZONE; no column depends on it then (ORA-30079)."""
    with live(source, tmp_path) as database:
        first, _ = database.resolve(BOTH)
    set_property = 'UPDATE SYS."DATABASE_PROPERTIES" SET "PROPERTY_VALUE" = ?'
    state.catalogue.update(f'{set_property} WHERE "PROPERTY_NAME" = ?', "+01:00", "DBTIMEZONE")
    for _ in range(2):
        with live(source, tmp_path, SCN + 50) as database:
            again, _ = database.resolve(BOTH)
        assert (first.database.timezone, again.database.timezone) == ("+00:00", "+01:00")
        assert again == replace(first, database=again.database)


def test_a_new_table_needs_a_new_dictionary_as_of_the_restart(
    source: OracleSource, state: OracleState, tmp_path: Path
) -> None:
    with live(source, tmp_path) as database:
        database.resolve(ORDERS_ONLY)
    state.scn += 100
    for _ in range(2):
        with live(source, tmp_path, SCN + 50) as database:
            snapshot, tables = database.resolve(BOTH)
        assert snapshot.scn == SCN + 50
        assert set(tables) == {ORDERS, NOTES}


@pytest.mark.parametrize("kept", ["the dictionary is kept", "the dictionary is read anew"])
def test_an_account_of_the_way_back_that_is_newer_than_the_dictionary_stays_known(
    source: OracleSource, state: OracleState, tmp_path: Path, kept: str
) -> None:
    if kept == "the dictionary is kept":
        with live(source, tmp_path) as database:
            database.resolve(BOTH)

    def users(way_back: bool) -> dict[str, int]:
        ledger = ("WAY_BACK", LEDGER) if way_back else None
        with live(source, tmp_path, SCN - 50, ledger=ledger) as database:
            rows = database.resolve(BOTH)[0].sys_rows
        assert rows is not None
        return {row.name: row.user for row in rows.sys_user}

    then = users(way_back=kept == "the dictionary is kept")  # there is no such account yet
    assert "WAY_BACK" not in then
    state.scn += 100
    state.catalogue.insert("USER$", [{"USER#": 300, "NAME": "WAY_BACK", "SPARE1": 0}])
    if kept != "the dictionary is kept":
        (tmp_path / "dictionary.json").unlink()
    assert users(way_back=True) == {**then, "WAY_BACK": 300}
    remove = "DELETE FROM SYS.\"USER$\" WHERE NAME = 'WAY_BACK'"
    state.catalogue.update(remove)  # behind its end
    assert users(way_back=True) == {**then, "WAY_BACK": 300}


def test_accounts_of_the_way_back_stay_known_when_they_are_made_anew(
    source: OracleSource, state: OracleState, tmp_path: Path
) -> None:
    """An account that is created again has another number; a new dictionary keeps both."""

    def numbers(tables: str) -> list[int]:
        with live(source, tmp_path, SCN - 50, ledger=("WAY_BACK", LEDGER)) as database:
            rows = database.resolve(tables)[0].sys_rows
        assert rows is not None
        return sorted(row.user for row in rows.sys_user if row.name == "WAY_BACK")

    for number in (300, 301):
        state.scn += 100
        state.catalogue.insert("USER$", [{"USER#": number, "NAME": "WAY_BACK", "SPARE1": 0}])
        assert numbers(ORDERS_ONLY) == list(range(300, number + 1))
        state.catalogue.update("DELETE FROM SYS.\"USER$\" WHERE NAME = 'WAY_BACK'")
    written = (tmp_path / "dictionary.json").stat().st_mtime_ns
    assert numbers(BOTH) == [300, 301]  # both accounts are dropped
    assert (tmp_path / "dictionary.json").stat().st_mtime_ns > written


def test_where_undo_does_not_reach_back_the_dictionary_is_as_of_now(
    source: OracleSource, state: OracleState, tmp_path: Path
) -> None:
    state.catalogue.undo_scn = SCN
    with live(source, tmp_path, SCN - 50) as database, capture_logs() as logged:
        snapshot, _ = database.resolve(ORDERS_ONLY)
    assert snapshot.scn == SCN
    assert [(line["log_level"], line["start_scn"]) for line in logged] == [("warning", SCN - 50)]


def archived(thread: int, sequence: int, first_scn: int) -> dict[str, object]:
    """A row of V$ARCHIVED_LOG, of a log with 1,000 SCNs."""
    return {
        "THREAD#": thread,
        "SEQUENCE#": sequence,
        "RESETLOGS_ID": 2_000,
        "NAME": "/log",
        "FIRST_CHANGE#": first_scn,
        "NEXT_CHANGE#": first_scn + 1_000,
        "ARCHIVED": "YES",
        "DELETED": "NO",
        "STATUS": "A",
        "STANDBY_DEST": "NO",
    }


@pytest.mark.parametrize(("sequence", "expected"), [(7, 3_400), (1, 3_000)])
def test_the_oldest_log_is_the_one_from_which_on_all_threads_are_there(
    source: OracleSource, state: OracleState, tmp_path: Path, sequence: int, expected: int
) -> None:
    """Sequence 1 behind the begin of the incarnation: the thread was enabled later."""
    rows = [archived(1, 3, 3_000), archived(1, 4, 4_000), archived(2, sequence, 3_400)]
    state.catalogue.insert("V$ARCHIVED_LOG", rows)
    with live(source, tmp_path) as database:
        assert database.resolve(ORDERS_ONLY)[0].scn == expected


def test_a_dictionary_whose_oldest_log_was_deleted_before_anything_was_confirmed(
    source: OracleSource, state: OracleState, tmp_path: Path
) -> None:
    """DDL of the deleted log would be missed, so the dictionary is read anew."""
    rows = [archived(1, number, number * 1_000) for number in (3, 4)]
    state.catalogue.insert("V$ARCHIVED_LOG", rows)
    with live(source, tmp_path) as database:
        assert database.resolve(ORDERS_ONLY)[0].scn == 3_000
    state.catalogue.update('UPDATE "V$ARCHIVED_LOG" SET DELETED = \'YES\' WHERE "SEQUENCE#" = 3')
    with live(source, tmp_path, 3_500) as database:  # confirmed: its DDL is recorded
        assert database.resolve(ORDERS_ONLY)[0].scn == 3_000
    with live(source, tmp_path) as database:
        assert database.resolve(ORDERS_ONLY)[0].scn == 4_000


@pytest.mark.parametrize("has_undo", [True, False])
@pytest.mark.parametrize("delivered", [0, 3_799, 3_800])
def test_a_start_scn_without_a_checkpoint_proves_no_recorded_ddl(
    source: OracleSource, state: OracleState, tmp_path: Path, delivered: int, has_undo: bool
) -> None:
    """Somebody has removed only `checkpoint.json`, and has set a later `apply.start-scn`."""
    with live(source, tmp_path, 3_700) as database:
        assert database.resolve(ORDERS_ONLY)[0].scn == 3_700
        for scn in (0, delivered):  # the first scan learns the incarnation
            database.scan(3_700, scn)
    if not has_undo:
        state.catalogue.undo_scn = 3_900
    with live(source, tmp_path, 3_800, recorded_scn=0) as database, capture_logs() as logged:
        found = database.resolve(ORDERS_ONLY)[0].scn
    with_warning = any("a later dictionary" in line["event"] for line in logged)
    if has_undo:
        assert (found, with_warning) == (3_800, False)
    elif delivered == 3_800:
        assert (found, with_warning) == (3_700, False)
    else:
        assert (found, with_warning) == (SCN, True)


def test_a_start_at_the_oldest_log_takes_the_dictionary_of_that_time(
    source: OracleSource, state: OracleState, tmp_path: Path
) -> None:
    rows = [archived(1, number, number * 1_000) for number in (4, 3)]
    state.catalogue.insert("V$ARCHIVED_LOG", rows)
    with live(source, tmp_path / "then") as database:
        assert database.resolve(ORDERS_ONLY)[0].scn == 3_000
    # Behind a load nothing is read from before it, DDL included.
    loaded = {f"{ORDERS.owner}.ORDERS": 3_700}
    with live(source, tmp_path / "load", loaded=loaded) as database:
        assert database.resolve(ORDERS_ONLY)[0].scn == 3_700
    with live(source, tmp_path / "some", loaded=loaded) as database:
        assert database.resolve(BOTH)[0].scn == 3_000
    # What a run has kept that ended before the load is not of use any more.
    with live(source, tmp_path / "then", loaded=loaded) as database:
        assert database.resolve(ORDERS_ONLY)[0].scn == 3_700
    with live(source, tmp_path / "then", 3_800, loaded) as database:
        assert database.resolve(ORDERS_ONLY)[0].scn == 3_700
    state.catalogue.undo_scn = 3_500
    with live(source, tmp_path / "now") as database, capture_logs() as logged:
        assert database.resolve(ORDERS_ONLY)[0].scn == SCN
    assert [line["start_scn"] for line in logged] == [3_000]


def test_a_dictionary_without_undo_is_the_present_one_if_there_was_no_ddl(
    source: OracleSource, state: OracleState, tmp_path: Path
) -> None:
    """Of the listed tables, whatever happened to others."""
    state.catalogue.undo_scn = SCN
    notes = f"\"NAME\" = '{NOTES.name}'"
    for scn, where, expected in ((3_800, notes, 3_800), (3_801, "1 = 1", None)):
        state.catalogue.update(f'UPDATE SYS."OBJ$" SET "ORA_ROWSCN" = {scn} WHERE {where}')
        state.catalogue.update('UPDATE SYS."OBJ$" SET "ORA_ROWSCN" = 9 WHERE "ORA_ROWSCN" > 4000')
        loaded = {f"{ORDERS.owner}.ORDERS": 3_800}
        with live(source, tmp_path / str(scn), 3_900, loaded, rows_scn=3_850) as database:
            if expected is not None:
                assert database.resolve(BOTH)[0].scn == expected
                continue
            with pytest.raises(OlrPgError, match=r"DDL may have changed.*ORDERS") as caught:
                database.resolve(BOTH)
            assert caught.value.code == Code.DICTIONARY_LOST
    with live(source, tmp_path / "loaded later", 3_900) as database:
        assert database.resolve(BOTH)[0].scn == 3_900


def test_a_load_that_began_before_the_dictionary_has_an_older_one_read(
    source: OracleSource, state: OracleState, tmp_path: Path
) -> None:
    """Else the DDL between the two would be lost, because the dictionary has it already."""
    loaded = {f"{ORDERS.owner}.ORDERS": 3_700}
    for start, loads, rows, scn in (
        (3_800, {}, 0, 3_800),
        (3_900, {}, 0, 3_800),
        (3_900, loaded, 3_800, 3_800),  # no DDL of the table can be in between
        (3_900, loaded, 3_799, 3_700),
    ):
        with live(source, tmp_path / "one", start, loads, rows_scn=rows) as database:
            assert database.resolve(ORDERS_ONLY)[0].scn == scn
    with live(source, tmp_path / "added", 3_900) as database:
        assert database.resolve(ORDERS_ONLY)[0].scn == 3_900
    with live(source, tmp_path / "added", 4_100, loaded) as database:
        assert database.resolve(BOTH)[0].scn == 3_700  # a table that the stored one lacks
    # Without undo, only a dictionary that the load has stored can be used.
    state.catalogue.undo_scn = 3_850
    loaded_before = {f"{ORDERS.owner}.ORDERS": 3_600}
    for tables, loads in ((ORDERS_ONLY, loaded_before), (BOTH, loaded)):
        with live(source, tmp_path / "one", 4_100, loads, rows_scn=3_699) as database:
            with pytest.raises(OlrPgError) as caught:
                database.resolve(tables)
            assert caught.value.code == Code.DICTIONARY_LOST
            assert caught.value.where["scn"] == min(loads.values())


def test_a_dictionary_that_is_later_than_the_rows_of_a_load_is_not_used(
    source: OracleSource, state: OracleState, tmp_path: Path
) -> None:
    """The target with the load has no checkpoint. A run of another target stored the dictionary
    while the load was not complete, so that its start was unknown.
    """
    state.catalogue.insert("V$ARCHIVED_LOG", [archived(1, 3, 3_000)])
    with live(source, tmp_path, 3_800) as database:
        database.resolve(ORDERS_ONLY)
    with live(source, tmp_path, rows_scn=3_800) as database:
        assert database.resolve(ORDERS_ONLY)[0].scn == 3_800
    with live(source, tmp_path, rows_scn=3_700) as database:
        assert database.resolve(ORDERS_ONLY)[0].scn == 3_000
    (tmp_path / "dictionary.json").unlink()
    state.catalogue.undo_scn = 3_900
    with live(source, tmp_path, rows_scn=3_700) as database, pytest.raises(OlrPgError) as caught:
        database.resolve(ORDERS_ONLY)
    assert caught.value.code == Code.DICTIONARY_LOST


@pytest.mark.parametrize("has_undo", [True, False])
@pytest.mark.parametrize("rows_scn", [0, 3_899, 3_900])
def test_a_dictionary_that_is_later_than_the_checkpoint_is_read_anew(
    source: OracleSource, state: OracleState, tmp_path: Path, rows_scn: int, *, has_undo: bool
) -> None:
    """Somebody has restored an older checkpoint. Without undo, the stored dictionary still knows
    more changes than the present one.
    """
    with live(source, tmp_path, 3_900) as database:
        assert database.resolve(BOTH)[0].scn == 3_900
    state.catalogue.undo_scn = 0 if has_undo else SCN
    with live(source, tmp_path, 3_800, rows_scn=rows_scn) as database, capture_logs() as logged:
        if rows_scn == 3_899 and not has_undo:
            with pytest.raises(OlrPgError) as caught:
                database.resolve(BOTH)
            assert caught.value.code == Code.DICTIONARY_LOST
            return
        assert database.resolve(BOTH)[0].scn == (3_800 if has_undo else 3_900)
    warned = [line["start_scn"] for line in logged if "a later dictionary" in line["event"]]
    assert warned == [] if has_undo else [3_800]


def test_a_load_of_a_target_that_did_not_answer_at_the_start_needs_an_earlier_dictionary(
    source: OracleSource, tmp_path: Path
) -> None:
    """Its list is the first one of this target, while the others replicate already."""
    for rows, is_early in ((3_799, True), (3_800, False)):
        changes = [NeededChanges(3_800, 3_800)]
        database = LiveDatabase(
            source,
            Lineage(tmp_path / "lineage.json"),
            start_scn=lambda: 3_800,
            changes=lambda *_, known=changes: known[-1],
        )
        with closing(database):
            assert database.resolve(ORDERS_ONLY)[0].scn == 3_800
            changes.append(NeededChanges(3_700, 3_800, rows))
            database.resolve(ORDERS_ONLY)
            if not is_early:
                assert database.resolve(BOTH)[0].scn == 3_700  # the first list lacks a table
                continue
            with pytest.raises(OlrPgError, match="a target that did not answer") as caught:
                database.resolve(BOTH)
            assert caught.value.code == Code.DICTIONARY_LOST
            assert "start the appliance again" in caught.value.action


def test_a_checkpoint_after_the_last_scn_of_an_idle_source_takes_a_longer_list(
    source: OracleSource, tmp_path: Path
) -> None:
    for tables in (ORDERS_ONLY, BOTH):
        with live(source, tmp_path, SCN + 1) as database:
            assert database.resolve(tables)[0].scn == SCN


def test_a_stored_dictionary_is_removed_if_its_redo_is_confirmed_and_deleted(
    source: OracleSource, state: OracleState, tmp_path: Path
) -> None:
    def stored(needed: int | None, confirmed: int = 6_000) -> list[str]:
        for name in ("dictionary-3500.json", "dictionary-4500.json", "dictionary-changes.jsonl"):
            (tmp_path / name).touch()
        with live(source, tmp_path, confirmed, needed=lambda scn: needed and min(scn, needed)) as (
            database
        ):
            database.resolve(ORDERS_ONLY)
            database.scan(0, 0)
        return sorted(path.name[11:] for path in tmp_path.glob("dictionary-*"))

    both, kept = ["3500.json", "4500.json", "changes.jsonl"], ["4500.json", "changes.jsonl"]
    state.scn = 7_000
    state.catalogue.insert("V$ARCHIVED_LOG", [archived(1, one, one * 1_000) for one in (3, 4, 5)])
    assert stored(6_000) == both  # the redo exists: a target can be restored
    state.catalogue.update('UPDATE "V$ARCHIVED_LOG" SET DELETED = \'YES\' WHERE "SEQUENCE#" = 3')
    assert stored(3_500) == both
    assert stored(None) == both  # a target cannot be queried
    assert stored(6_000) == kept
    assert stored(6_000, confirmed=0) == both
    state.catalogue.update('UPDATE "V$ARCHIVED_LOG" SET DELETED = \'YES\' WHERE "SEQUENCE#" < 5')
    assert stored(6_000, 3_600) == kept
    assert stored(6_000) == ["changes.jsonl"]


def test_a_table_that_was_dropped_meanwhile(
    source: OracleSource, state: OracleState, tmp_path: Path
) -> None:
    state.catalogue.update('DELETE FROM SYS."TAB$" WHERE "OBJ#" = ?', ORDERS.obj)
    state.catalogue.update('DELETE FROM SYS."OBJ$" WHERE "OBJ#" = ?', ORDERS.obj)
    with live(source, tmp_path) as database, pytest.raises(OlrPgError) as caught:
        database.resolve(BOTH)
    assert caught.value.code == 3012
    assert "SHOP.ORDERS" in caught.value.detail


def test_a_table_that_cannot_be_replicated(
    source: OracleSource, state: OracleState, tmp_path: Path
) -> None:
    change = 'UPDATE SYS."TAB$" SET "PROPERTY" = "PROPERTY" | 1 WHERE "OBJ#" = ?'
    state.catalogue.update(change, ORDERS.obj)
    with live(source, tmp_path) as database, pytest.raises(OlrPgError) as caught:
        database.resolve(BOTH)
    assert caught.value.code == 3013


def test_thick_mode_without_client_libraries(source: OracleSource) -> None:
    with pytest.raises(OlrPgError) as caught:
        OracleDatabase(source.model_copy(update={"thick_mode": True}))
    assert caught.value.code == 7008
    assert "thick-mode" in caught.value.action


def test_the_pause_between_looks_stays_bounded_for_ever(
    source: OracleSource, tmp_path: Path
) -> None:
    with live(source, tmp_path) as database:
        pauses = [database.pause(idle) for idle in (0, 1, 100, 10**9)]
    assert pauses == [1.0, 1.5, 10.0, 10.0]


def test_what_a_pattern_finds_and_the_dictionary_has_not_yet_is_left_to_its_redo(
    source: OracleSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pattern = "SELECT OWNER, TABLE_NAME FROM DBA_TABLES WHERE TABLE_NAME = 'ORDERS'"
    with live(source, tmp_path) as database:
        first, tables = database.resolve(pattern)
        listed = [(table.owner, table.name) for table in tables] + [("SHOP", "MADE")]
        monkeypatch.setattr(database._containers, "run_table_list", lambda *_: listed)
        again, same = database.resolve(pattern)
        assert again is first
        assert same == tables
        with pytest.raises(OlrPgError, match=r"SHOP\.MADE"):
            database.resolve(BOTH)  # a name that somebody wrote has to be there


def test_the_load_of_a_table_that_is_newer_than_the_redo_it_needs_is_kept(
    source: OracleSource, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transaction was open when the table was created and loaded, so its load needs redo from
    before its creation.
    """
    pattern = "SELECT OWNER, TABLE_NAME FROM DBA_TABLES WHERE TABLE_NAME = 'ORDERS'"
    table = f"{ORDERS.owner}.ORDERS"
    asked = list[set[str]]()

    def needed(names: Collection[str], _: object) -> NeededChanges:
        asked.append(set(names))
        assert len(asked) < 20
        return NeededChanges(3_700 if table in names else 3_900, 3_900, 3_800, 3_900)

    database = LiveDatabase(
        source, Lineage(tmp_path / "lineage.json"), start_scn=lambda: 3_900, changes=needed
    )
    with closing(database):
        new = {(ORDERS.owner, "ORDERS")}
        monkeypatch.setattr(
            database._containers,
            "table_names",
            lambda scn=SCN: set() if scn < 3_750 else new,
        )
        assert database.resolve(pattern)[0].scn == 3_700
    assert all(table in names for names in asked)


@pytest.mark.parametrize("has_undo", [True, False])
@pytest.mark.parametrize("restarts", [True, False])
def test_a_table_that_got_another_name_is_listed_until_its_redo_is_read(
    source: OracleSource,
    state: OracleState,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    restarts: bool,
    has_undo: bool,
) -> None:
    """While a run is behind the rename, or between two runs."""
    pattern = "SELECT OWNER, TABLE_NAME FROM DBA_TABLES WHERE TABLE_NAME IN ('ORDERS', 'MADE')"
    with live(source, tmp_path, SCN) as database:
        _, tables = database.resolve(pattern)
        if not restarts:
            monkeypatch.setattr(
                database._containers, "run_table_list", lambda *_: [("SHOP", "MADE")]
            )
            monkeypatch.setattr(database._containers, "absent", lambda names: names)
            assert database.resolve(pattern)[1] == tables
            return
    state.scn += 100
    if not has_undo:
        state.catalogue.undo_scn = SCN + 90
    with live(source, tmp_path, SCN + 50) as database:
        containers = database._containers
        monkeypatch.setattr(containers, "run_table_list", lambda *_: [("SHOP", "MADE")])
        monkeypatch.setattr(containers, "absent", lambda names: names)
        if has_undo:
            gone = [(table.owner, table.name) for table in tables] + [("SHOP", "OTHER")]
            monkeypatch.setattr(
                containers, "table_names", lambda scn=None: set(gone if scn else ())
            )
        assert database.resolve(pattern)[1] == tables


@pytest.mark.parametrize("origin", ["Oracle", "an earlier run", "a load", "the present one"])
@pytest.mark.parametrize(("pattern", "known"), [("*.ORDERS", True), ("SHOP.*", False)])
def test_a_pattern_for_any_owner_needs_every_user(
    source: OracleSource,
    state: OracleState,
    tmp_path: Path,
    pattern: str,
    origin: str,
    *,
    known: bool,
) -> None:
    """TENANT has no table yet. If it creates one, its OBJ$ row has only the number of TENANT."""
    parsed = parse_pattern(pattern)
    assert parsed is not None
    wanted, loaded = table_list_query([parsed]), {f"{ORDERS.owner}.ORDERS": 3_800}
    if origin in ("an earlier run", "a load"):
        with live(source, tmp_path, 3_800) as database:
            database.resolve(BOTH)
    if origin == "a load":
        (tmp_path / "dictionary.json").rename(begun_file(tmp_path / "dictionary.json", 3_800))
    state.catalogue.update('UPDATE SYS."OBJ$" SET "ORA_ROWSCN" = 3800')
    if origin in ("a load", "the present one"):
        state.catalogue.undo_scn = SCN
    if origin == "a load":
        state.catalogue.update('UPDATE SYS."OBJ$" SET "ORA_ROWSCN" = 3801')
    users = [("TENANT", 5_000), *((f"U{n}", 6_000 + n) for n in range(1_200))]
    users += [("CTXSYS", 5_001), ("_NEXT_USER", 7_200)]
    for name, number in users:
        state.catalogue.insert("USER$", [{"USER#": number, "NAME": name, "SPARE1": 0}])
    for _ in range(2):
        with live(source, tmp_path, 3_900, loaded, rows_scn=3_850) as database:
            snapshot, tables = database.resolve(wanted)
        assert snapshot.scn == 3_800
        assert ORDERS in tables
        assert snapshot.sys_rows is not None
        found = {one.name: one.user for one in snapshot.sys_rows.sys_user}
        assert (found.get("TENANT") == 5_000) is known
        assert ("U1199" in found) is known
        assert not {"CTXSYS", "_NEXT_USER"} & found.keys()
        assert len(found) == len(snapshot.sys_rows.sys_user)


def test_a_created_table_needs_no_undo_after_a_restart(
    source: OracleSource, state: OracleState, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The dictionary of the earlier run, and the recorded CREATE TABLE, have all that is needed."""
    pattern = "SELECT OWNER, TABLE_NAME FROM DBA_TABLES WHERE TABLE_NAME = 'ORDERS'"
    with live(source, tmp_path) as database:
        _, tables = database.resolve(pattern)
    state.scn += 100
    state.catalogue.undo_scn = SCN + 90
    listed = [(table.owner, table.name) for table in tables] + [("SHOP", "MADE")]
    for loaded in ({}, {"SHOP.MADE": SCN + 20}):
        with live(source, tmp_path, SCN + 50, loaded) as database:
            monkeypatch.setattr(database._containers, "run_table_list", lambda *_: listed)
            snapshot, found = database.resolve(pattern)
        assert (snapshot.scn, found) == (SCN, tables)


def test_a_table_that_exists_and_was_not_selected_is_no_earlier_table(
    source: OracleSource, state: OracleState, tmp_path: Path
) -> None:
    """ALL_TABLES contains only tables that the account can read; their names do not show it."""
    state.catalogue.readable.discard(NOTES.name)
    state.scn += 100
    with live(source, tmp_path, SCN) as database:
        for _ in range(2):
            assert database.resolve(BOTH)[1] == (ORDERS,)


@pytest.mark.parametrize(
    ("operation", "values"),
    [(SysRowOperation.DELETE, {}), (SysRowOperation.UPDATE, {"NAME": b"BIN$w=="})],
)
def test_without_undo_a_table_that_was_dropped_before_the_restart_is_no_earlier_table(
    source: OracleSource,
    state: OracleState,
    tmp_path: Path,
    operation: SysRowOperation,
    values: dict[str, bytes | None],
) -> None:
    """The dictionary of the first run has it, but all its changes are confirmed. The target has
    noted that it has left the list, so it would stop as one that is back.
    """
    with live(source, tmp_path) as database:
        snapshot, _ = database.resolve(BOTH)
    assert snapshot.sys_rows is not None
    (row_id,) = (one.row_id for one in snapshot.sys_rows.sys_obj if one.obj == ORDERS.obj)
    for table in ("TAB$", "OBJ$"):
        state.catalogue.update(f'DELETE FROM SYS."{table}" WHERE "OBJ#" = ?', ORDERS.obj)
    state.catalogue.update("DELETE FROM SYS.DBA_TABLES WHERE TABLE_NAME = 'ORDERS'")
    state.scn += 100
    state.catalogue.undo_scn = state.scn
    for dropped, expected in ((SCN + 20, {NOTES}), (SCN + 60, {ORDERS, NOTES})):
        change = SysRowChange("OBJ$", operation, row_id, values)
        transaction = DictionaryTransaction(0, 1, SCN + 10, dropped, (1, 1, 1, 1), (change,))
        with live(source, tmp_path, SCN + 50, recorded=[transaction]) as database:
            assert set(database.resolve(BOTH)[1]) == expected


def test_a_client_gets_no_tables_of_others_that_it_does_not_see(
    source: OracleSource, state: OracleState, tmp_path: Path
) -> None:
    state.catalogue.readable.discard(NOTES.name)
    every = BOTH.replace("all_tables", "DBA_TABLES")
    with live(source, tmp_path, SCN) as database:
        assert set(database.resolve(every)[1]) == {ORDERS, NOTES}
        assert database.resolve(BOTH)[1] == (ORDERS,)
    state.scn += 100
    state.catalogue.undo_scn = SCN + 90
    with live(source, tmp_path, SCN + 50) as database:
        assert database.resolve(BOTH)[1] == (ORDERS,)
