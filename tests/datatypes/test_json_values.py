"""Column values as ``olr-pg decode`` prints them."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.datatypes.json_values import json_converter
from olr_pg.datatypes.number import encode_number
from olr_pg.datatypes.policies import Policies
from olr_pg.dictionary.model import Column
from olr_pg.errors import OlrPgError

if TYPE_CHECKING:
    from collections.abc import Callable


def column(type_code: int, **facts: int | None) -> Column:
    return Column("C", 1, 1, 1, type_code, 22, **facts)  # type: ignore[arg-type]


def printed(source: Column, raw: bytes | None) -> str:
    return orjson.dumps(json_converter(source)(raw)).decode("utf-8")


EXAMPLES = [
    (2, "c2021744", "122.67"),
    (2, "c033", "0.5"),
    (2, "3f3366", "-0.5"),
    (2, "80", "0"),
    (2, "c30b", "100000"),
    (2, "d3" + "64" * 19, "9" * 38),
    (2, "ff65", '"Infinity"'),
    (2, "00", '"-Infinity"'),
    (1, "c5bcc3b3c582c487", '"żółć"'),
    (96, "41422020", '"AB  "'),
    (23, "CAFEBABE", '"cafebabe"'),
    (24, "0001ff", '"0001ff"'),
    (12, "787e0307022d28", '"2026-03-07T01:44:39"'),
    (12, "64630101010101", '"-0001-01-01T00:00:00"'),
    (180, "787e010814142f38acc618", '"2026-01-08T19:19:46.950847"'),
    (180, "787d081b010101", '"2025-08-27T00:00:00"'),
    (231, "787e010814142f", '"2026-01-08T19:19:46+00:00"'),
    (181, "787e010814142f38acc618195a", '"2026-01-09T00:49:46.950847+05:30"'),
    (181, "787e010814142f38acc6188638", '"2026-01-08T19:19:46.950847Z"'),
    (182, "7ffffffd35", '"P-3Y-7M"'),
    (183, "800000044148468d3b7380", '"P4DT5H12M10.222S"'),
    (100, "bfddb3d7", "1.7320508"),
    (101, "bffbb67ae8584caa", "1.7320508075688772"),
    (101, "fff8000000000000", '"NaN"'),
    (101, "000fffffffffffff", '"-Infinity"'),
    (69, "000129ee030002ad0000", '"AAASnuAAMAAAAKtAAA"'),
    (208, "01000129ee000c000002ad0000", '"AAASnuAAMAAAAKtAAA"'),
    (252, "01", "true"),
    (252, "00", "false"),
    (113, "0070", '"0070"'),
]


@pytest.mark.parametrize(("code", "raw", "text"), EXAMPLES)
def test_examples(code: int, raw: str, text: str) -> None:
    assert printed(column(code), bytes.fromhex(raw)) == text
    assert printed(column(code), None) == "null"
    # Oracle has no empty value but an empty LOB.
    assert printed(column(code), b"") == ('""' if code in (112, 113) else "null")


@given(st.decimals(-(10**25), 10**25, places=9))
def test_numbers_are_exact_json(value: Decimal) -> None:
    text = printed(column(2), encode_number(value))
    assert json.loads(text, parse_float=Decimal, parse_int=Decimal) == value
    assert "e" not in text.lower()
    assert not ("." in text and text.endswith("0"))


def test_the_sets_and_the_zone_of_the_database() -> None:
    convert = json_converter(column(1, charset_form=1), charset="EE8MSWIN1250")
    assert convert("żółć".encode("cp1250")) == "żółć"
    national = json_converter(column(1, charset_form=2), ncharset="AL16UTF16")
    assert national(b"\0A\0B") == "AB"
    stamp = bytes.fromhex("787e070814142f")
    assert json_converter(column(231), timezone="-05:30")(stamp) == "2026-07-08T19:19:46-05:30"
    assert json_converter(column(231), timezone="Europe/Warsaw")(stamp) == "2026-07-08T17:19:46Z"


def test_undecodable_text_follows_the_policy() -> None:
    assert json_converter(column(1))(b"a\xff") == "a\ufffd"
    assert json_converter(column(1), policies=Policies(undecodable="hex"))(b"a\xff") == "a\\xff"
    with pytest.raises(OlrPgError, match="OLR-02051"):
        json_converter(column(1), policies=Policies(undecodable="error"))(b"a\xff")
    assert printed(column(1), b"a\0b") == '"a\\u0000b"'


@pytest.mark.parametrize("code", [12, 100, 101, 69, 180, 181, 182, 183, 231, 252])
def test_malformed_bytes_are_refused(code: int) -> None:
    convert: Callable[[bytes], object] = json_converter(column(code))
    with pytest.raises(OlrPgError, match="OLR-02050"):
        convert(b"\x07" * 3)
