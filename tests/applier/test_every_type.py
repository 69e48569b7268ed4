"""A row of every type from redo into PostgreSQL: decoder, port, applier."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import psycopg

from olr_pg.datatypes.binary_float import encode_binary_float
from olr_pg.datatypes.convert import DatabaseFacts
from olr_pg.datatypes.interval import DaySecond, YearMonth, encode_day_second, encode_year_month
from olr_pg.datatypes.number import encode_number
from olr_pg.datatypes.oson import Json
from olr_pg.datatypes.temporal import DateTime, Zone, ZonedDateTime, encode_date, encode_timestamp
from olr_pg.datatypes.vector import VectorFormat, VectorValue, encode_vector
from olr_pg.dictionary.loader import load_snapshot
from olr_pg.dictionary.model import Column, Database, KeyKind, Snapshot, Table
from olr_pg.dictionary.snapshot_file import write_snapshot
from olr_pg.simulator.fields.cells import BLOB, CLOB, secure_extents, secure_in_row
from tests.datatypes.oson_images import encode_oson
from tests.datatypes.urowids import encode_rowid, encode_urowid
from tests.datatypes.xml_documents import TOKENS, encode
from tests.datatypes.zoned_timestamps import encode_timestamp_tz
from tests.lobs.lob_decoding import decode
from tests.lobs.lob_redo import TABLE_OBJ, LobRedo

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.applier.conftest import Replication

NOON = DateTime(2026, 3, 7, 12, 0, 1, 123_456_789)
DOCUMENT: Json = {"name": "Zoë", "sizes": [Decimal("1.50"), None, True], "at": NOON}
ELEMENTS = np.arange(2_500, dtype="f4") / 4
TREE = ET.fromstring("<item a='1'><b>x &lt; y</b></item>")
UTF16 = "utf-16-be"


def column(number: int, name: str, type_code: int, length: int = 22, **facts: Any) -> Column:
    return Column(name, number, number, number, type_code, length, **facts)


COLUMNS = (
    column(1, "ID", 2, nullable=False),
    column(2, "V", 1, 40, charset_id=873, charset_form=1),
    column(3, "NV", 1, 40, charset_id=2000, charset_form=2),
    column(4, "C", 96, 20, charset_id=873, charset_form=1, char_length=5),
    column(5, "R", 23, 16),
    column(6, "D", 12, 7),
    column(7, "TS", 180, 11, scale=9),
    column(8, "TZ", 181, 13, scale=6),
    column(9, "LTZ", 231, 11, scale=6),
    column(10, "YM", 182, 5),
    column(11, "DS", 183, 11, scale=6),
    column(12, "BF", 100, 4),
    column(13, "BD", 101, 8),
    column(14, "YES", 252, 1),
    column(15, "RID", 69, 10),
    column(16, "URID", 208, 4000),
    column(17, "J", 119, 8200),
    column(18, "VEC", 127, 8200),
    column(19, "X", 112, 4000, charset_id=873, charset_form=1, xml=True),
    column(20, "BX", 113, 4000, xml=True),
    column(21, "BY_NAME", 114, 4000),
    column(22, "LONGER", 8, 0, charset_id=873, charset_form=1),
    column(23, "LR", 24, 0),
    column(24, "I2", 2, precision=4, scale=0),
    column(25, "I4", 2, precision=9, scale=0),
    column(26, "I8", 2, precision=18, scale=0),
    column(27, "M", 2, precision=12, scale=2),
    column(28, "NEG", 2, precision=5, scale=-2),
    column(29, "NC", 96, 10, charset_id=2000, charset_form=2, char_length=5),
    column(30, "CL", 112, 4000, charset_id=873, charset_form=1),
    column(31, "NCL", 112, 4000, charset_id=2000, charset_form=2),
    column(32, "BL", 113, 4000),
)
TABLE = Table("APP", "TYPES", TABLE_OBJ, TABLE_OBJ, COLUMNS, key_kind=KeyKind.PRIMARY, key=(1,))
DATABASE = Database("LOBS", activation=1, resetlogs=(1,), timezone="+02:00")


def row(redo: LobRedo, number: int) -> tuple[bytes | None, ...]:
    vector = encode_vector(VectorValue(VectorFormat.FLOAT32, len(ELEMENTS), ELEMENTS))
    pages = ((0x1000, 2),)
    redo.direct_pages(18, 100 + number, vector, *pages)
    return (
        encode_number(number),
        "żółć".encode(),
        "żółć".encode(UTF16),
        b"ab   ",
        b"\xca\xfe",
        encode_date(NOON._replace(nanosecond=0)),
        encode_timestamp(NOON),
        encode_timestamp_tz(ZonedDateTime(NOON, Zone(330))),
        encode_timestamp(NOON),
        encode_year_month(YearMonth(-43)),
        encode_day_second(DaySecond(-93_784_500_000_000)),
        encode_binary_float(1.5, 4),
        encode_binary_float(-0.1, 8),
        b"\1",
        encode_rowid("AAASnuAAMAAAAKtAAA"),
        encode_urowid("AAATLnAAFAAAAD9AAA"),
        secure_in_row(BLOB, 200 + number, encode_oson(DOCUMENT)),
        secure_extents(BLOB, 100 + number, len(vector), pages),
        secure_in_row(CLOB, 300 + number, "<a>ż</a>".encode(UTF16)),
        secure_in_row(BLOB, 400 + number, encode(TREE)),
        b"\0" * 20,
        "long text ż".encode(),
        bytes(range(200)),
        encode_number(-9_999),
        encode_number(123_456_789),
        encode_number(-(10**18 - 1)),
        encode_number(Decimal("-1234567890.12")),
        encode_number(9_999_900),
        "żó   ".encode(UTF16),
        secure_in_row(CLOB, 500 + number, "a long text ż".encode(UTF16)),
        secure_in_row(CLOB, 600 + number, "😀 ż".encode(UTF16)),
        secure_in_row(BLOB, 700 + number, b"\0\xff"),
    )


def redo_of_every_type() -> LobRedo:
    redo = LobRedo()
    redo.begin()
    redo.insert_row(*row(redo, 1))
    redo.insert_row(encode_number(2), *[None] * (len(COLUMNS) - 1))
    broken = list(row(redo, 3))
    broken[19] = secure_in_row(BLOB, 800, b"\xc8\x99\x99")
    redo.insert_row(*broken)
    redo.end()
    return redo


def test_a_row_of_every_type(
    tmp_path: Path, replication: Replication, capsys: pytest.CaptureFixture[str]
) -> None:
    written = Snapshot(1, DATABASE, (TABLE,), xml_tokens=TOKENS)
    write_snapshot(written, str(tmp_path / "dictionary.json"))
    snapshot = load_snapshot(str(tmp_path / "dictionary.json"))
    assert snapshot == written
    decoded = decode(redo_of_every_type(), tmp_path, snapshot)
    replication.script.transactions = decoded.runs
    facts = DatabaseFacts(DATABASE.charset, DATABASE.ncharset, DATABASE.timezone)
    replication.apply(snapshot.tables, create_tables=True, facts=facts)
    with psycopg.connect(replication.target, options="-c TimeZone=UTC") as connection:
        found = connection.execute("SELECT * FROM app.types ORDER BY id")
        assert found.description is not None
        names = [one.name for one in found.description]
        whole, empty, broken = (dict(zip(names, one, strict=True)) for one in found)
        xml = connection.execute("SELECT pg_typeof(bx)::text FROM app.types").fetchone()
        # PostgreSQL prints no declaration of version 1.0. A server without libxml has no xml.
        declaration = "" if xml == ("xml",) else '<?xml version="1.0"?>'
        assert connection.execute(
            "SELECT pg_typeof(j)::text, pg_typeof(vec)::text, pg_typeof(yes)::text FROM app.types"
        ).fetchone() == ("jsonb", "double precision[]", "boolean")
    microseconds = datetime(2026, 3, 7, 12, 0, 1, 123_456)  # noqa: DTZ001 - labels
    in_utc = microseconds.replace(tzinfo=UTC)
    expected = {
        "id": 1,
        "v": "żółć",
        "nv": "żółć",
        "c": "ab   ",
        "r": b"\xca\xfe",
        "d": microseconds.replace(microsecond=0),
        "ts": microseconds,
        "tz": in_utc,
        "ltz": in_utc - timedelta(hours=2),
        "ym": timedelta(days=-3 * 365 - 7 * 30),  # as psycopg shows −3 years −7 months
        "ds": -timedelta(days=1, hours=2, minutes=3, seconds=4, milliseconds=500),
        "bf": 1.5,
        "bd": -0.1,
        "yes": True,
        "rid": "AAASnuAAMAAAAKtAAA",
        "urid": "AAATLnAAFAAAAD9AAA",
        "j": {"name": "Zoë", "sizes": [1.5, None, True], "at": "2026-03-07T12:00:01.123456789"},
        "vec": ELEMENTS.tolist(),
        "x": "<a>ż</a>",
        "bx": f'{declaration}<item a="1"><b>x &lt; y</b></item>',
        "longer": "long text ż",
        "lr": bytes(range(200)),
        "i2": -9_999,
        "i4": 123_456_789,
        "i8": -(10**18 - 1),
        "m": Decimal("-1234567890.12"),
        "neg": 9_999_900,
        "nc": "żó   ",
        "cl": "a long text ż",
        "ncl": "😀 ż",
        "bl": b"\0\xff",
    }
    assert whole == expected
    assert set(empty.values()) == {2, None}
    # A document whose names are not in the token tables is unavailable, and said to be.
    assert broken == expected | {"id": 3, "bx": None}
    assert "OLR-02123" in capsys.readouterr().out
    assert [column.name for column in TABLE.left_out] == ["BY_NAME"]
    assert (decoded.account.lob_values, decoded.account.lob_unavailable) == (13, 1)
