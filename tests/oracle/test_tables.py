"""The scripts in sql/oracle grant exactly what is read."""

from __future__ import annotations

import re
from pathlib import Path

from olr_pg.oracle.tables import (
    BESIDE_TABLES,
    ENCRYPTED_TABLESPACES,
    LOAD_VIEWS,
    LOGGING_VIEWS,
    ONLINE_VIEWS,
    PDB_INCARNATION,
    SEGMENT_TABLES,
    STRUCTURE_TABLES,
    SUPPLEMENTAL,
    SYS_TABLES,
    VIEWS,
)

FOLDER = Path(__file__).resolve().parents[2] / "sql" / "oracle"


def test_every_table_and_view_that_is_read_is_granted_and_no_other() -> None:
    text = (FOLDER / "grants.sql").read_text("utf-8")
    first, second = re.findall(r"ODCIVARCHAR2LIST\((.*?)\)", text, re.DOTALL)
    read = (*SYS_TABLES, *BESIDE_TABLES, *SEGMENT_TABLES, *STRUCTURE_TABLES)
    assert set(re.findall(r"'([^']+)'", first)) == {table.name for table in read}
    others = (SUPPLEMENTAL, ENCRYPTED_TABLESPACES, PDB_INCARNATION)
    granted = (*VIEWS, *ONLINE_VIEWS, *LOGGING_VIEWS, *others)
    views = {table.name.replace("V$", "V_$") for table in granted}
    assert set(re.findall(r"'([^']+)'", second)) == views


def test_what_a_load_reads_beside_the_tables_is_granted_and_no_more() -> None:
    text = (FOLDER / "load_grants.sql").read_text("utf-8")
    views = {table.name.replace("V$", "V_$") for table in LOAD_VIEWS}
    assert set(re.findall(r"GRANT SELECT ON SYS\.(\S+) TO", text)) == views
