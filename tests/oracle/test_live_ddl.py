"""DDL of a live database: the dictionary is read once, and followed through redo from then on."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from structlog.testing import capture_logs

from olr_pg.appliance.open_source import DICTIONARY
from olr_pg.capture.lineage import Lineage
from olr_pg.capture.logs import open_log
from olr_pg.config.source_section import OracleSource
from olr_pg.dictionary.sys_rows import SYS_COLUMNS
from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle.live_source import LiveDatabase
from olr_pg.simulator.oracle_net.serve import StandIn
from olr_pg.simulator.oracle_net.state import ARCHIVE, OracleState
from tests.advice import followed
from tests.oracle.live_source import with_new_identity
from tests.oracle.test_live_run import failure_of, run_beside, run_once, wait_until
from tests.replicator.ddl_source import NUMBER, OWNER, TEXT, DdlSource
from tests.replicator.test_ddl_pipeline import rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


KEPT = {
    "sys_obj": "OBJ$",
    "sys_tab": "TAB$",
    "sys_col": "COL$",
    "sys_cdef": "CDEF$",
    "sys_ccol": "CCOL$",
}


class LiveDdl:
    """A source of DDL behind the stand-in, whose logs are archived when a test says so."""

    def __init__(self, folder: Path) -> None:
        self.source = DdlSource(folder / "source")
        for name in ("A", "B"):
            self.source.create(name, {"ID": NUMBER, "NAME": TEXT})
        snapshot = self.source.take_snapshot()
        self.state = OracleState(snapshot, dbid=77)
        self._replace_sys_rows()
        self.server = StandIn(self.state)
        self._archived: set[str] = set()

    def _replace_sys_rows(self) -> None:
        """The rows of the SYS tables with the ROWIDs that the redo has."""
        snapshot, catalogue = self.source.snapshot, self.state.catalogue
        assert snapshot is not None
        assert snapshot.sys_rows is not None
        own = [table.obj for table in snapshot.tables if table.owner == OWNER]
        numbers = ", ".join(map(str, own))
        for section, name in KEPT.items():
            catalogue.update(f'DELETE FROM SYS."{name}" WHERE "OBJ#" IN ({numbers})')
            columns = SYS_COLUMNS[section]
            for row in getattr(snapshot.sys_rows, section):
                values = {
                    column: getattr(row, field)
                    for field, column in columns.items()
                    if getattr(row, field) != -1
                }
                catalogue.insert(name, [{**values, "ROWID": row.row_id}])
        user = {"USER#": 106, "NAME": OWNER, "TYPE#": 1, "SPARE1": 0}
        catalogue.update('DELETE FROM SYS."USER$" WHERE NAME = ?', OWNER)
        catalogue.insert("USER$", [user])

    def archive(self) -> None:
        """What has been written so far is archived."""
        self.source.threads[0].switch()
        for path in sorted((self.source.directory / "logs").iterdir()):
            if path.name not in self._archived:
                self._archived.add(path.name)
                self.state.archived(path.name, open_log(str(path)).header)

    def config(self, folder: Path, database: str) -> Path:
        document = {
            "context": {"data": str(folder / "data")},
            "source": {
                "user": "olr",
                "password": "olr",
                "server": self.server.connect_string,
                "path-mapping": [ARCHIVE, str(self.source.directory / "logs")],
                "poll-ms": 20,
            },
            "target": {"address": "127.0.0.1:0"},
            "apply": {
                "connect-string": database,
                "tables": ["SHOP.A", "SHOP.B"],
                "create-tables": True,
            },
            "spark": {"master": "local[2,2]"},
        }
        path = folder / "config.json"
        path.write_text(json.dumps(document), "utf-8")
        return path


@pytest.fixture
def ddl(tmp_path: Path) -> Iterator[LiveDdl]:
    found = LiveDdl(tmp_path)
    yield found
    found.server.close()
    assert found.server.malformed == []


def rows(database: str, name: str) -> list[dict[str, Any]]:
    with psycopg.connect(database) as connection:
        try:
            return rows_of(connection, name)
        except psycopg.errors.UndefinedTable:
            return []


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("one_session")
def test_columns_and_truncation_follow_while_it_runs_and_after_a_restart(
    ddl: LiveDdl, tmp_path: Path, postgres_database: str
) -> None:
    config = ddl.config(tmp_path, postgres_database)
    source = ddl.source

    def replicated() -> bool:
        return all(rows(postgres_database, name) == source.rows(name) for name in ("A", "B"))

    def alter_while_it_runs() -> None:
        source.insert("A", 1, "first")
        source.insert("B", 1, "first")
        ddl.archive()
        wait_until(replicated)
        source.add_column("A", "EXTRA", NUMBER)
        source.insert("A", 2, "wide", 22)
        source.truncate("B")
        source.insert("B", 2, "after")
        ddl.archive()
        wait_until(replicated)

    def alter_after_a_restart() -> None:
        wait_until(replicated)
        source.add_column("B", "MORE", TEXT)
        source.insert("B", 3, "wider", "x")
        source.insert("A", 3, "wide", 33)
        ddl.archive()
        wait_until(replicated)

    run_beside(config, alter_while_it_runs)
    # The dictionary of the start is kept; what became of it is recorded.
    assert (tmp_path / "data" / DICTIONARY).exists()
    run_beside(config, alter_after_a_restart)
    assert [sorted(row) for row in rows(postgres_database, "B")] == [["ID", "MORE", "NAME"]] * 2


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("one_session")
def test_ddl_that_waited_for_a_redo_thread_is_followed_when_that_closes(
    ddl: LiveDdl, tmp_path: Path, postgres_database: str
) -> None:
    source, catalogue = ddl.source, ddl.state.catalogue
    catalogue.insert("V$THREAD", [{"THREAD#": 2, "STATUS": "OPEN", "ENABLED": "PUBLIC"}])
    source.insert("A", 1, "narrow")
    source.add_column("A", "EXTRA", NUMBER)
    source.insert("A", 2, "wide", 22)
    ddl.archive()

    def close_the_other_thread() -> None:
        wait_until(lambda: any(line["event"] == "log decoded" for line in logged))
        assert rows(postgres_database, "A") == []
        catalogue.update('UPDATE SYS."V$THREAD" SET "STATUS" = \'CLOSED\' WHERE "THREAD#" = 2')
        wait_until(lambda: rows(postgres_database, "A") == source.rows("A"))

    with capture_logs() as logged:
        run_beside(ddl.config(tmp_path, postgres_database), close_the_other_thread)


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("one_session")
def test_tables_of_a_user_that_is_dropped_and_created_again_stay_replicated(
    ddl: LiveDdl, tmp_path: Path, postgres_database: str
) -> None:
    config = ddl.config(tmp_path, postgres_database)
    document = json.loads(config.read_text("utf-8"))
    document["apply"]["ddl"] = {"drop-table": "follow"}
    config.write_text(json.dumps(document), "utf-8")
    source = ddl.source

    def replicated() -> bool:
        return all(rows(postgres_database, name) == source.rows(name) for name in ("A", "B"))

    def drop_and_create() -> None:
        for name in ("A", "B"):
            source.insert(name, 1, "of the first user")
        ddl.archive()
        wait_until(replicated)
        for name in ("A", "B"):
            source.drop(name)
        source.dictionary.create_owner_again(source.session.rows, 140)
        source.session.commit()
        for name in ("A", "B"):
            source.make(name, {"ID": NUMBER, "NAME": TEXT})
            source.insert(name, 2, "of the second user")
        ddl.archive()
        wait_until(replicated)

    def insert_after_a_restart() -> None:
        source.insert("A", 3, "after a restart")
        ddl.archive()
        wait_until(replicated)

    run_beside(config, drop_and_create)
    run_beside(config, insert_after_a_restart)


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("one_session")
@pytest.mark.parametrize("new", ["name", "DBID"])
def test_the_steps_for_a_new_name_or_dbid_continue_the_tables(
    ddl: LiveDdl, tmp_path: Path, postgres_database: str, new: str
) -> None:
    """DBNEWID, and what docs/operations.md says to do (“The database gets a new name or DBID”)."""
    config = ddl.config(tmp_path, postgres_database)
    source, catalogue, logs = ddl.source, ddl.state.catalogue, ddl.source.directory / "logs"
    source.insert("A", 1, "before")
    ddl.archive()
    run_once(config)
    source.threads[0].switch()
    before = set(logs.iterdir())
    source.insert("A", 2, "after")
    source.threads[0].switch()
    (last,) = set(logs.iterdir()) - before
    header = open_log(str(last)).header
    scn = header.first_scn
    if new == "name":
        catalogue.update('UPDATE SYS."V$DATABASE" SET "NAME" = \'NEWNAME\'')
        made = with_new_identity(last, logs, name="NEWNAME", dbid=header.dbid)
    else:
        ddl.state.open_resetlogs(scn, 1_300_000_000, 99)
        catalogue.update('DELETE FROM SYS."V$DATABASE_INCARNATION" WHERE "STATUS" <> \'CURRENT\'')
        catalogue.update('UPDATE SYS."V$DATABASE" SET "DBID" = 4711, "CON_DBID" = 4711')
        made = with_new_identity(last, logs, name=header.db_name, dbid=4711, scn=scn)
    ddl.state.archived(made.name, open_log(str(made)).header)
    page = "“The database gets a new name or DBID”"
    followed(failure_of(config), Code.CHECKPOINT_OF_ANOTHER_SOURCE, page)
    if new == "DBID":
        with psycopg.connect(postgres_database, autocommit=True) as connection:
            connection.execute(
                "UPDATE olr_pg.ledger SET dbid = NULL, resetlogs_id = NULL"
                " WHERE subscription = 'olr_pg'"
            )
    document = json.loads(config.read_text("utf-8"))
    document["apply"]["start-scn"] = scn
    config.write_text(json.dumps(document), "utf-8")
    shutil.rmtree(tmp_path / "data")
    run_once(config)
    assert rows(postgres_database, "A") == source.rows("A")


@pytest.mark.parametrize("changed", ["OBJ#", "DATAOBJ#"])
def test_sys_tables_that_were_built_anew_are_noticed(
    ddl: LiveDdl, tmp_path: Path, changed: str
) -> None:
    """Changes of the dictionary would be missed, because redo names the new table."""
    login = {"user": "olr", "password": "olr", "server": ddl.server.connect_string}
    source = OracleSource.model_validate(login)
    both = "SELECT owner, table_name FROM all_tables WHERE owner = 'SHOP'"

    def resolve(start_scn: int) -> None:
        lineage, file = Lineage(tmp_path / "lineage.json"), tmp_path / "dictionary.json"
        with closing(
            LiveDatabase(source, lineage, start_scn=lambda: start_scn, dictionary=file)
        ) as database:
            database.resolve(both)

    resolve(0)
    resolve(ddl.state.scn)
    ddl.state.catalogue.update(
        f'UPDATE SYS."OBJ$" SET "{changed}" = 99999 WHERE "NAME" = \'CCOL$\''
    )
    with pytest.raises(OlrPgError, match=r": CCOL\$; the dictionary is of SCN") as caught:
        resolve(ddl.state.scn)
    assert caught.value.code == Code.SYS_TABLES_REBUILT
