"""The token tables of binary XML, through the driver."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from olr_pg.datatypes.binary_xml import NO_TOKENS, QualifiedName, XmlTokens
from olr_pg.oracle.xml_tokens import read_xml_tokens
from olr_pg.simulator.oracle_net.state import OracleState
from tests.oracle.conftest import DBID, SCN, make_snapshot

if TYPE_CHECKING:
    from olr_pg.oracle.oracle_connection import OracleDatabase

TOKENS = XmlTokens(
    {"07": "http://www.w3.org/XML/1998/namespace", "1A2B": "urn:shop"},
    {"2C0D": QualifiedName("1A2B", "order", False), "3E": QualifiedName("07", "lang", True)},
)


@pytest.fixture
def state() -> OracleState:
    return OracleState(replace(make_snapshot(), xml_tokens=TOKENS), dbid=DBID)


def test_names_and_spaces_are_read(oracle: OracleDatabase) -> None:
    assert oracle.read("testing", lambda one: read_xml_tokens(one, SCN)) == TOKENS


def test_only_the_default_set_counts(oracle: OracleDatabase, state: OracleState) -> None:
    state.catalogue.update('UPDATE XDB."XDB$TTSET" SET "FLAGS" = 1')
    assert oracle.read("testing", lambda one: read_xml_tokens(one, SCN)) == NO_TOKENS
