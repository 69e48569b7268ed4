"""A PDB that is set back to an earlier SCN while its CDB's redo goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from olr_pg.capture.lineage import Lineage
from olr_pg.config.source_section import OracleSource
from olr_pg.dictionary.model import Database, Snapshot
from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle import live_source
from olr_pg.oracle.live_source import LiveDatabase
from olr_pg.simulator.oracle_net.serve import StandIn
from olr_pg.simulator.oracle_net.state import OracleState
from tests.advice import followed
from tests.oracle.conftest import ORDERS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PDB, SCN = 3, 5_000
FIRST = {"CON_ID": PDB, "STATUS": "PARENT", "INCARNATION_SCN": 1, "BEGIN_RESETLOGS_SCN": 1}


def row(scn: int, begin: int, status: str = "CURRENT", con_id: int = PDB) -> dict[str, Any]:
    return {
        "CON_ID": con_id,
        "STATUS": status,
        "INCARNATION_SCN": scn,
        "BEGIN_RESETLOGS_SCN": begin,
        "END_RESETLOGS_SCN": begin + 10,
    }


# What V$PDB_INCARNATION shows, the SCN from which redo is read, and the SCN in the error.
CASES: dict[str, tuple[list[dict[str, Any]], int, int | None]] = {
    "never": ([FIRST], 100, None),
    "within the redo": ([FIRST, row(700, 900)], 100, 700),
    "begins behind the SCN": ([FIRST, row(700, 900)], 800, 700),
    "before the redo": ([FIRST, row(700, 900)], 900, None),
    "twice, the first before": ([row(400, 500, "PARENT"), row(700, 900)], 600, 700),
    "twice, further back": ([row(700, 900, "ORPHAN"), row(300, 1_000)], 950, 300),
    "orphaned by the CDB": ([row(700, 900, "ORPHAN")], 100, None),
    "before there is any log": ([FIRST, row(700, 900)], 0, None),
    "with the CDB": ([row(1, 2_000)], 100, None),
    "another PDB": ([row(700, 900, con_id=4)], 100, None),
}


@pytest.fixture
def state() -> OracleState:
    database = Database("LIVE", con_id=PDB, con_name="PDB1", activation=1, resetlogs=(1,))
    state = OracleState(Snapshot(SCN, database, (ORDERS,)), dbid=1)
    # The CDB itself was opened with RESETLOGS once.
    state.catalogue.update('UPDATE SYS."V$DATABASE_INCARNATION" SET "RESETLOGS_CHANGE#" = 2000')
    return state


def archive(state: OracleState, first: int, end: int) -> None:
    """One more archived log: the list of logs is new."""
    log = {"RESETLOGS_ID": 1, "THREAD#": 1, "SEQUENCE#": 7, "DEST_ID": 1, "STANDBY_DEST": "NO"}
    scns = {"FIRST_CHANGE#": first, "NEXT_CHANGE#": end}
    state.catalogue.insert("V$ARCHIVED_LOG", [{**log, **scns, "ARCHIVED": "YES"}])


@pytest.fixture
def live(state: OracleState, tmp_path: Path) -> Iterator[LiveDatabase]:
    with StandIn(state) as server:
        login = {"user": "olr", "password": "olr", "server": server.connect_string}
        database = LiveDatabase(OracleSource.model_validate(login), Lineage(tmp_path / "lineage"))
        yield database
        database.close()


@pytest.mark.parametrize("kind", ["number", "identity"])
def test_a_pdb_that_is_another_container_is_not_read_on(
    live: LiveDatabase, state: OracleState, kind: str
) -> None:
    live.resolve("SELECT owner, table_name FROM all_tables")
    live.scan(100, 0)
    # What it shows needs no further privilege.
    state.catalogue.denied.add("V$PDB_INCARNATION")
    live.scan(100, 0)
    if kind == "number":
        state.catalogue.context["CON_ID"] = "5"
    else:
        state.catalogue.update('UPDATE SYS."V$DATABASE" SET "CON_DBID" = 4711')
    archive(state, 100, 6_000)
    with pytest.raises(OlrPgError) as caught:
        live.scan(100, 0)
    assert caught.value.code == Code.PDB_REPLACED
    assert ("container 5 " if kind == "number" else "DBID 4711") in caught.value.detail


@pytest.mark.parametrize("case", CASES)
def test_redo_with_what_a_pdb_has_lost_is_not_read_on(
    live: LiveDatabase, state: OracleState, case: str
) -> None:
    rows, scn, refused = CASES[case]
    state.catalogue.insert("V$PDB_INCARNATION", rows)
    if refused is None:
        live.scan(scn, 0)
        return
    with pytest.raises(OlrPgError) as caught:
        live.scan(scn, 0)
    assert caught.value.code == Code.PDB_SET_BACK
    assert f"PDB1 was set back to SCN {refused} " in caught.value.detail


def test_it_is_noticed_if_the_oldest_log_is_older(live: LiveDatabase, state: OracleState) -> None:
    """A run without a position begins at the oldest log, which may not exist yet."""
    state.catalogue.insert("V$PDB_INCARNATION", [row(700, 900)])
    live.scan(0, 0)
    archive(state, 800, 1_000)
    with pytest.raises(OlrPgError, match="from SCN 800 on"):
        live.scan(0, 0)


def test_it_is_noticed_although_the_redo_behind_it_was_read(
    live: LiveDatabase, state: OracleState
) -> None:
    live.scan(100, 0)
    state.catalogue.insert("V$PDB_INCARNATION", [row(700, 900)])
    archive(state, 4_000, 6_000)
    with pytest.raises(OlrPgError, match="set back"):
        live.scan(5_000, 0)


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("NLS_CHARACTERSET", "WE8ISO8859P1", Code.CHARACTER_SET_CHANGED),
        ("DBTIMEZONE", "+01:00", Code.DBTIMEZONE_CHANGED),
    ],
)
def test_other_settings_are_noticed_before_the_redo_of_a_new_list_is_read(
    live: LiveDatabase, state: OracleState, tmp_path: Path, name: str, value: str, code: Code
) -> None:
    live.resolve("SELECT owner, table_name FROM all_tables")
    live.scan(100, 0)
    state.catalogue.update(
        'UPDATE SYS."DATABASE_PROPERTIES" SET "PROPERTY_VALUE" = ? WHERE "PROPERTY_NAME" = ?',
        *(value, name),
    )
    live.scan(100, 0)
    archive(state, 100, 6_000)
    with pytest.raises(OlrPgError) as caught:
        live.scan(100, 0)
    assert caught.value.code == code
    assert value in caught.value.detail
    if code == Code.DBTIMEZONE_CHANGED:
        followed(caught.value, Code.DBTIMEZONE_CHANGED, "start the appliance again: it continues")
        again = LiveDatabase(vars(live)["_source"], Lineage(tmp_path / "again"))
        again.resolve("SELECT owner, table_name FROM all_tables")
        again.scan(100, 0)
        again.close()


@pytest.mark.parametrize("seconds", [3_600.0, 0.0])
def test_with_the_same_list_of_logs_it_is_noticed_after_a_while(
    live: LiveDatabase, state: OracleState, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Online logs grow without a new list. Asking at each look would cost a round trip."""
    monkeypatch.setattr(live_source, "_PDB_SECONDS", seconds)
    live.scan(100, 0)
    state.catalogue.insert("V$PDB_INCARNATION", [row(700, 900)])
    if seconds:
        live.scan(100, 0)
        archive(state, 100, 6_000)
    with pytest.raises(OlrPgError, match="set back"):
        live.scan(100, 0)


def test_an_account_that_may_not_see_it_is_told_so_once(
    live: LiveDatabase, state: OracleState
) -> None:
    state.catalogue.denied.add("V$PDB_INCARNATION")
    with capture_logs() as logs:
        live.scan(100, 0)
        archive(state, 100, 6_000)
        live.scan(100, 0)
    codes = [entry["code"] for entry in logs if entry.get("code") == "OLR-07022"]
    assert codes == ["OLR-07022"]


def test_a_snapshot_standby_is_not_read_until_it_is_a_physical_standby_again(
    live: LiveDatabase, state: OracleState
) -> None:
    """The conversion opens the standby with RESETLOGS; the way back discards this incarnation."""

    def convert(role: str, status: str, resetlogs: str) -> None:
        state.catalogue.update('UPDATE SYS."V$DATABASE" SET "DATABASE_ROLE" = ?', role)
        state.catalogue.update(
            'UPDATE SYS."V$DATABASE_INCARNATION" SET "STATUS" = ?'
            f' WHERE "INCARNATION#" {resetlogs} (SELECT max("INCARNATION#")'
            ' FROM SYS."V$DATABASE_INCARNATION")',
            status,
        )

    state.catalogue.update('UPDATE SYS."V$DATABASE" SET "DATABASE_ROLE" = ?', "PHYSICAL STANDBY")
    assert live.scan(100, 0).source_answers
    own = live.database.resetlogs
    state.open_resetlogs(5_000, 1_300_000_000, 99)
    convert("SNAPSHOT STANDBY", "PARENT", "<")
    archive(state, 5_000, 6_000)
    for _ in range(2):
        scan = live.scan(100, 0)
        assert [one.code for one in scan.unusable] == [Code.SOURCE_IS_SNAPSHOT_STANDBY]
        assert "began at SCN 5000" in scan.unusable[0].detail
        assert not scan.source_answers
        assert live.current_scn() is None
    convert("PHYSICAL STANDBY", "ORPHAN", "=")
    convert("PHYSICAL STANDBY", "CURRENT", "<")
    assert live.scan(100, 0).source_answers
    assert live.database.resetlogs == own


def test_a_snapshot_standby_with_which_replication_begins_is_read(
    live: LiveDatabase, state: OracleState
) -> None:
    state.open_resetlogs(5_000, 1_300_000_000, 99)
    state.catalogue.update('UPDATE SYS."V$DATABASE" SET "DATABASE_ROLE" = ?', "SNAPSHOT STANDBY")
    assert live.scan(100, 0).source_answers
    assert live.database.resetlogs[0] == 1_300_000_000
