"""A physical standby that is mounted and not open: what Oracle refuses is said by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import oracledb
import pytest

from olr_pg.capture.lineage import Lineage
from olr_pg.errors import Code
from olr_pg.oracle.driver.bounded_calls import oracle_error
from olr_pg.oracle.live_source import LiveDatabase
from olr_pg.oracle.oracle_connection import OracleDatabase, open_connection
from olr_pg.oracle.source_checks import check_oracle

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.config.source_section import OracleSource
    from olr_pg.simulator.oracle_net.state import OracleState


def test_nobody_can_log_in(source: OracleSource, state: OracleState) -> None:
    state.mount()
    oracle = OracleDatabase(source)
    try:
        (found,) = check_oracle(source, oracle, None, None).findings
    finally:
        oracle.close()
    assert "OLR-07043" in found.what
    assert "ORA-01033" in found.what
    assert "mounted-standby" in found.mend[0]


def test_a_session_reads_fixed_views_only(source: OracleSource, state: OracleState) -> None:
    """A standby that was closed, and who was connected stayed so."""
    fixed = ("V$ARCHIVED_LOG", "V$LOG", "V$LOGFILE", "V$STANDBY_LOG", "V$DATABASE_INCARNATION")
    with open_connection(source) as connection, connection.cursor() as cursor:
        state.mount()
        cursor.execute('SELECT "OPEN_MODE" FROM "V$DATABASE"')
        assert cursor.fetchall() == [("MOUNTED",)]
        for view in fixed:
            cursor.execute(f'SELECT COUNT(*) FROM "{view}"')
        for view in ("DATABASE_PROPERTIES", "ALL_DIRECTORIES", "DBA_TABLES"):
            with pytest.raises(oracledb.Error, match="ORA-01219") as caught:
                cursor.execute(f'SELECT COUNT(*) FROM "{view}"')
            assert oracle_error(caught.value, "reading").code == Code.ORACLE_NOT_OPEN


def test_a_run_waits_until_it_is_open_again(
    source: OracleSource, state: OracleState, tmp_path: Path
) -> None:
    database = LiveDatabase(source, Lineage(tmp_path / "lineage"))
    try:
        assert database.scan(0, 0).source_answers
        state.mount()
        database._oracle.close()  # Oracle ends the sessions of who it closes for
        scan = database.scan(0, 0)
        assert not scan.source_answers
        assert [one.code for one in scan.unusable] == [Code.ORACLE_NOT_OPEN]
        state.catalogue.is_mounted = False
        assert database.scan(0, 0).source_answers
    finally:
        database.close()
