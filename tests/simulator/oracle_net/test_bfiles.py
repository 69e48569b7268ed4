"""BFILEs of the stand-in, as the driver's thin mode reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import oracledb
import pytest

from olr_pg.simulator.oracle_net.server import StandIn
from olr_pg.simulator.oracle_net.session import PASSWORD, USER
from olr_pg.simulator.oracle_net.state import OracleState
from olr_pg.simulator.oracle_net.values import LOCATOR_BYTES, Bfile
from tests.oracle.conftest import DBID, make_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONTENT = bytes(range(256)) * 300


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[oracledb.Connection]:
    (tmp_path / "1.arc").write_bytes(CONTENT)
    state = OracleState(make_snapshot(), dbid=DBID)
    state.offer_directory("LOGS", "/arch", tmp_path)
    with StandIn(state) as server:
        with oracledb.connect(user=USER, password=PASSWORD, dsn=server.connect_string) as made:
            yield made
        assert server.malformed == []


def file(connection: oracledb.Connection, directory: str, name: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute("SELECT BFILENAME(:1, :2) FROM DUAL", [directory, name])
        ((lob,),) = cursor.fetchall()
    return lob


def test_a_file_is_opened_and_read_in_pieces(connection: oracledb.Connection) -> None:
    lob = file(connection, "LOGS", "1.arc")
    assert lob.type is oracledb.DB_TYPE_BFILE
    assert lob.getfilename() == ("LOGS", "1.arc")
    assert not lob.isopen()
    lob.open()
    assert (lob.isopen(), lob.size()) == (True, len(CONTENT))
    assert lob.read(257, 70_000) == CONTENT[256:70_256]
    assert lob.read(len(CONTENT), 10) == CONTENT[-1:]
    lob.close()
    assert not lob.isopen()
    assert lob.read() == CONTENT


@pytest.mark.parametrize(
    ("directory", "name", "number"), [("LOGS", "2.arc", 22288), ("OTHER", "1.arc", 22285)]
)
def test_what_is_not_there(
    connection: oracledb.Connection, directory: str, name: str, number: int
) -> None:
    lob = file(connection, directory, name)
    with pytest.raises(oracledb.DatabaseError) as caught:
        lob.open()
    assert caught.value.args[0].code == number
    with pytest.raises(oracledb.DatabaseError) as caught:
        lob.size()
    assert caught.value.args[0].code == 22289


def test_a_locator_names_its_file() -> None:
    made = Bfile("ARCHIVELOG_DIR", "o1_mf_1_42_.arc")
    assert Bfile.of(made.locator) == made
    assert len(made.locator) == int.from_bytes(made.locator[:2], "big") + 2
    assert Bfile.of(bytes(LOCATOR_BYTES)) is None
