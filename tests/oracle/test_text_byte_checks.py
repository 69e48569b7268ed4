"""What `doctor` says about text whose bytes are of another character set than the one that is
declared, or configured.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from olr_pg.config.source_section import OracleSource
from olr_pg.datatypes.charsets import charset
from olr_pg.dictionary.model import Column, Database, KeyKind, Snapshot, Table
from olr_pg.oracle.oracle_connection import OracleDatabase
from olr_pg.oracle.text_byte_checks import CLOB_ROWS, check_text_bytes
from olr_pg.scalars import format_rowid
from olr_pg.simulator.oracle_net.row_versions import RowVersions
from olr_pg.simulator.oracle_net.serve import StandIn
from olr_pg.simulator.oracle_net.state import OracleState

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from olr_pg.observability.findings import Finding

SCN = 5_000
ISO, ASCII = "WE8ISO8859P1", "US7ASCII"
WINDOWS = {"*": "WE8MSWIN1252"}


@contextmanager
def stored(
    declared: str, values: Sequence[tuple[bytes | None, bytes | None]], length: int
) -> Iterator[tuple[OracleDatabase, Snapshot]]:
    number = charset(declared).number
    table = Table(
        *("APP", "T", 81_001, 81_001),
        (
            Column("ID", 1, 1, 1, 2, 22, precision=12, scale=0, nullable=False),
            Column("NAME", 2, 2, 2, 1, length, charset_id=number, charset_form=1),
            Column("NOTE", 3, 3, 3, 112, 4_000, charset_id=number, charset_form=1),
        ),
        key_kind=KeyKind.PRIMARY,
        key=(1,),
    )
    snapshot = Snapshot(SCN, Database("D", charset=declared), (table,))
    with StandIn(OracleState(snapshot, dbid=1)) as server:
        rows = RowVersions(server.state.catalogue, snapshot.tables)
        for at, (name, note) in enumerate(values):
            rowid = format_rowid(81_001, 4 << 22 | 128 + at // 100, at % 100)
            rows.put(table, SCN, rowid, (str(at), name, note))
        source = OracleSource.model_validate(
            {"user": "olr", "password": "olr", "server": server.connect_string}
        )
        oracle = OracleDatabase(source)
        yield oracle, snapshot
        oracle.close()
        assert server.malformed == []


def checked(
    declared: str,
    values: Sequence[tuple[bytes | None, bytes | None]],
    sets: dict[str, str] | None = None,
    length: int = 4_000,
) -> list[Finding]:
    with stored(declared, values, length) as (oracle, snapshot):
        return list(check_text_bytes(oracle, snapshot.tables, snapshot.database, sets or {}))


@pytest.mark.parametrize(
    ("declared", "sets", "value", "said", "likely"),
    [
        (ISO, {}, b"caf\xe9", "", ""),
        (ISO, {}, b"a" * 1_999 + b"\xe9" * 10, "", ""),
        (ISO, {}, b"sys.\x85Med", f"not text in {ISO}, which the database", "WE8MSWIN1252"),
        (ISO, {}, b"5 \x80", f"not text in {ISO}, which the database", "WE8MSWIN1252"),
        (ISO, {}, b"caf\xc3\xa9", f"like UTF-8 instead of {ISO}, which the", "AL32UTF8"),
        (ISO, {}, b"5 \xe2\x82\xac", "database declares; all of it looks like", "AL32UTF8"),
        (ASCII, {}, b"\xd7\xd6", f"not text in {ASCII}, which the database", "WE8MSWIN1252"),
        (ASCII, WINDOWS, b"caf\xe9 5 \x80", "", ""),
        (ASCII, WINDOWS, b"a\x81b", "not text in WE8MSWIN1252, which `source", "WE8MSWIN1252"),
        (ASCII, WINDOWS, b"caf\xc3\xa9", "like UTF-8 instead of WE8MSWIN1252", "AL32UTF8"),
        (ASCII, {"*": "ZHS16GBK"}, b"\xd7\xd6", "", ""),
        (ASCII, {"*": "ZHS16GBK"}, b"\xd7\xd6\xff", "not text in ZHS16GBK", "WE8MSWIN1252"),
        (ASCII, {"*": "AL32UTF8"}, b"a" * 1_999 + "é".encode() * 10, "", ""),
        (ASCII, {"*": "AL32UTF8"}, b"a" * 1_990 + b"\xe9" * 10, "not text in AL32UTF8", ""),
    ],
)
def test_bytes_that_are_no_text_of_their_set_are_reported(
    declared: str, sets: dict[str, str], value: bytes, said: str, likely: str
) -> None:
    plain = (b"ascii", None)
    for name, values in (("NAME", (value, None)), ("NOTE", (None, value))):
        found = checked(declared, [plain, values], sets)
        assert bool(found) == bool(said)
        for one in found:
            assert one.what.startswith(f"APP.T: {name} contains ")
            assert said in one.what
            assert likely in " ".join(one.mend)


def test_text_in_two_sets_does_not_look_like_utf8() -> None:
    assert checked(ISO, [("é".encode(), None), (b"caf\xe9", None)]) == []


def test_columns_with_the_same_doubt_are_named_together() -> None:
    (found,) = checked(ASCII, [(b"\x80", b"\x80")])
    assert found.what.startswith("APP.T: NAME, NOTE contain bytes that are not text in US7ASCII")


def test_only_few_clobs_are_read() -> None:
    plain = [(b"x", b"y")] * CLOB_ROWS
    assert checked(ASCII, [*plain, (b"x", b"\x80")]) == []
    (found,) = checked(ASCII, [*plain, (b"\x80", b"y")])
    assert found.what.startswith("APP.T: NAME contains")


def test_with_several_bytes_per_character_only_columns_with_a_possible_remedy_are_read() -> None:
    values = [(b"Caf\xe9 / ", None), ("é".encode(), b"\xe9")]
    assert checked("AL32UTF8", values) == []
    (found,) = checked("AL32UTF8", values, length=2_000)
    assert found.what.startswith("APP.T: NAME contains bytes that are not text in AL32UTF8, which")
    sets = {"*.NAME": "WE8MSWIN1252"}
    assert checked("AL32UTF8", values[:1], sets, length=2_000) == []
