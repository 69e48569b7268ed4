"""Security policies that hide rows or replace values: whatever reads rows refuses such a table."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from olr_pg.config.source_section import OracleSource
from olr_pg.errors import Code, OlrPgError
from olr_pg.oracle.access_policies import ACCESS, REDACTION, check_access_policies, hiding_policies
from olr_pg.oracle.lob_fetch import LobFetcher
from olr_pg.oracle.oracle_connection import OracleDatabase, open_connection
from olr_pg.oracle.table_query import read_rows
from olr_pg.simulator.oracle_net.serve import StandIn
from olr_pg.simulator.oracle_net.state import OracleState
from tests.lobs.lob_redo import snapshot as lob_snapshot
from tests.lobs.lob_redo import table as lob_table

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCS = lob_table()
TABLE = {"OBJECT_OWNER": DOCS.owner, "OBJECT_NAME": DOCS.name}
OTHER = {**TABLE, "OBJECT_NAME": "OTHER"}
SELECTS = {**TABLE, "POLICY_NAME": "OWN_ROWS", "SEL": "YES", "ENABLE": "YES"}
WRITES = {**TABLE, "POLICY_NAME": "OWN_WRITES", "SEL": "NO", "ENABLE": "YES"}
REDACTS = {**TABLE, "POLICY_NAME": "NO_NAMES", "ENABLE": "YES    "}

# What the views contain, the security bit of TAB$, and what is then in the error.
KINDS: dict[str, tuple[dict[str, list[dict[str, str]]], bool, str | None]] = {
    "none": ({}, False, None),
    "rows": ({"ALL_POLICIES": [WRITES, SELECTS]}, True, "OWN_ROWS (ALL_POLICIES)"),
    "rows, disabled": ({"ALL_POLICIES": [{**SELECTS, "ENABLE": "NO"}]}, True, None),
    "writes only": ({"ALL_POLICIES": [WRITES]}, True, None),
    "rows of another table": ({"ALL_POLICIES": [{**SELECTS, **OTHER}]}, False, None),
    "not in the view": ({}, True, "Label Security"),
    "values": ({"REDACTION_POLICIES": [REDACTS]}, False, "NO_NAMES (REDACTION_POLICIES)"),
    "values, disabled": ({"REDACTION_POLICIES": [{**REDACTS, "ENABLE": "NO"}]}, False, None),
    "values of another table": ({"REDACTION_POLICIES": [{**REDACTS, **OTHER}]}, False, None),
}


@pytest.fixture
def stand_in() -> Iterator[StandIn]:
    with StandIn(OracleState(lob_snapshot(), dbid=1)) as server:
        server.state.catalogue.create_table(DOCS)
        yield server


@pytest.fixture
def source(stand_in: StandIn) -> OracleSource:
    login = {"user": "olr", "password": "olr", "server": stand_in.connect_string}
    return OracleSource.model_validate(login)


def tell(stand_in: StandIn, kind: str) -> str | None:
    """Let the stand-in have the policies of a kind; return what the error then contains."""
    views, has_bit, refused = KINDS[kind]
    for view, rows in views.items():
        stand_in.state.catalogue.insert(view, rows)
    if has_bit:
        change = 'UPDATE SYS."TAB$" SET "FLAGS" = "FLAGS" | 2048 WHERE "OBJ#" = ?'
        stand_in.state.catalogue.update(change, DOCS.obj)
    return refused


def exempt(stand_in: StandIn, *privileges: str) -> None:
    rows = [{"PRIVILEGE": privilege} for privilege in ("CREATE SESSION", *privileges)]
    stand_in.state.catalogue.insert("SESSION_PRIVS", rows)


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_is_read_only_if_no_policy_applies(
    stand_in: StandIn, source: OracleSource, kind: str
) -> None:
    refused = tell(stand_in, kind)
    exempt(stand_in)
    with closing(open_connection(source)) as connection:
        if refused is None:
            check_access_policies(connection, DOCS)
            return
        # What loads, comparisons and repairs read with.
        with pytest.raises(OlrPgError) as caught:
            list(read_rows(connection, DOCS, 900, None, 1))
        assert caught.value.code == Code.POLICY_HIDES_DATA
        assert refused in caught.value.detail
        wanted = REDACTION if kind == "values" else ACCESS
        assert wanted in str(caught.value.action)
        other = ACCESS if wanted == REDACTION else REDACTION
        exempt(stand_in, other)
        with pytest.raises(OlrPgError):
            check_access_policies(connection, DOCS)
        exempt(stand_in, wanted)
        check_access_policies(connection, DOCS)


@pytest.mark.parametrize("statement", ["INS", "UPD", "DEL"])
def test_an_account_that_changes_rows_is_also_refused_for_policies_of_changes(
    stand_in: StandIn, source: OracleSource, statement: str
) -> None:
    """The account of the way back may not read TAB$."""
    stand_in.state.catalogue.insert("ALL_POLICIES", [{**WRITES, statement: "YES"}])
    stand_in.state.catalogue.denied.add("TAB$")
    with closing(open_connection(source)) as connection:
        check_access_policies(connection, DOCS)
        (found,) = hiding_policies(connection, [DOCS], writes=True)
        assert "OWN_WRITES" in found.detail
        assert "GRANT EXEMPT ACCESS POLICY TO OLR. " in str(found.action)
        exempt(stand_in, ACCESS)
        assert not [*hiding_policies(connection, [DOCS], writes=True)]


def test_redaction_is_not_noticed_if_its_view_cannot_be_read(
    stand_in: StandIn, source: OracleSource
) -> None:
    tell(stand_in, "values")
    stand_in.state.catalogue.denied.add("REDACTION_POLICIES")
    with closing(open_connection(source)) as connection:
        check_access_policies(connection, DOCS)


def test_no_lob_is_fetched_through_a_policy(stand_in: StandIn, source: OracleSource) -> None:
    tell(stand_in, "values")
    with closing(OracleDatabase(source)) as oracle, capture_logs() as logs:
        fetcher = LobFetcher(lambda _table: oracle)
        allocate: Any = None
        row_id = "AAARwWAAYAAAAAOAAA"
        assert fetcher.fetch(DOCS, DOCS.columns[1], row_id, 900, allocate) is None
    assert "NO_NAMES" in logs[-1]["reason"]
    assert not any("DOCS" in sql for sql, _ in stand_in.heard)
