"""Both sides of a log-on, with the keys of python-oracledb's own cryptography.

BFILEs of the stand-in, as the driver's thin mode reads them.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

import oracledb
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from olr_pg.simulator.ora_error import OraError
from olr_pg.simulator.oracle_net.serve import StandIn
from olr_pg.simulator.oracle_net.session import (
    PASSWORD,
    SERVER_PROOF,
    USER,
    Fault,
    Faults,
    PasswordCheck,
)
from olr_pg.simulator.oracle_net.state import OracleState
from olr_pg.simulator.oracle_net.values import LOCATOR_BYTES, Bfile
from tests.oracle.conftest import DBID, make_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HALF: Final = bytes(range(32))


def cipher(key: bytes) -> Cipher[modes.CBC]:
    return Cipher(algorithms.AES(key), modes.CBC(bytes(16)))


class Client:
    """The driver's side of a log-on."""

    def __init__(self, password: str, check: PasswordCheck) -> None:
        told = {name: value for name, value, _ in check.challenge()}
        data = bytes.fromhex(told["AUTH_VFR_DATA"])
        derived = hashlib.pbkdf2_hmac(
            "sha512", password.encode(), data + b"AUTH_PBKDF2_SPEEDY_KEY",
            int(told["AUTH_PBKDF2_VGEN_COUNT"]), 64,
        )  # fmt: skip
        self._key = hashlib.sha512(derived + data).digest()[:32]
        theirs = cipher(self._key).decryptor().update(bytes.fromhex(told["AUTH_SESSKEY"]))
        self.session_key = hashlib.pbkdf2_hmac(
            "sha512", (HALF + theirs[:32]).hex().upper().encode(),
            bytes.fromhex(told["AUTH_PBKDF2_CSK_SALT"]), int(told["AUTH_PBKDF2_SDER_COUNT"]), 32,
        )  # fmt: skip
        self._password = password.encode()

    def answer(self) -> dict[str, str]:
        plain = bytes(16) + self._password
        padding = 16 - len(plain) % 16
        password = cipher(self.session_key).encryptor().update(plain + bytes([padding]) * padding)
        half = cipher(self._key).encryptor().update(HALF)
        return {"AUTH_SESSKEY": half.hex().upper(), "AUTH_PASSWORD": password.hex().upper()}


@pytest.mark.parametrize(("password", "right"), [("olr", True), ("orl", False), ("", False)])
def test_the_password_is_known_by_its_proof(password: str, *, right: bool) -> None:
    check = PasswordCheck("olr")
    client = Client(password, check)
    assert check.accepts(client.answer()) is right
    if right:
        proof = cipher(client.session_key).decryptor().update(bytes.fromhex(check.proof()))
        assert proof[16:] == SERVER_PROOF


def test_no_two_log_ons_look_alike() -> None:
    first, second = PasswordCheck("olr"), PasswordCheck("olr")
    assert {v for n, v, _ in first.challenge() if "COUNT" not in n}.isdisjoint(
        v for _, v, _ in second.challenge()
    )


def test_a_fault_strikes_where_its_text_is_and_as_often_as_it_says() -> None:
    faults = Faults()
    twice = faults.add(Fault("execute", "obj$", times=2))
    assert faults.take("fetch", "SELECT * FROM OBJ$") is None
    assert faults.take("execute", "SELECT * FROM TAB$") is None
    assert faults.take("execute", "SELECT * FROM OBJ$") is twice
    assert faults.take("execute", "SELECT * FROM OBJ$") is twice
    assert faults.take("execute", "SELECT * FROM OBJ$") is None
    assert twice.hits == 2


def test_a_fault_without_a_count_strikes_until_all_are_cleared() -> None:
    faults = Faults()
    always = faults.add(Fault("connect", times=0))
    assert [faults.take("connect") for _ in range(5)] == [always] * 5
    faults.clear()
    assert faults.take("connect") is None


def test_an_error_has_its_number_in_its_words() -> None:
    assert str(OraError(942, "table or view does not exist")).startswith("ORA-00942: ")


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
