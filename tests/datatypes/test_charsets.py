"""The table of Oracle's character sets."""

from __future__ import annotations

import codecs
import re
from pathlib import Path

import pytest

from olr_pg.datatypes.charsets import UNDEFINED, charset, column_charset, supported_charsets
from olr_pg.datatypes.text import decode_text_by_policy, encode_text
from olr_pg.errors import OlrPgError
from tests.datatypes.strict_text import decode_text


def test_ids_and_names_are_unique() -> None:
    known = supported_charsets()
    assert len({one.number for one in known}) == len(known)
    assert len({one.name for one in known}) == len(known)
    for one in known:
        if not one.table or one.exact:
            codecs.lookup(one.codec)
        assert charset(one.number) is charset(one.name) is one
        assert len(one.table) == (256 if one.structure == "single-byte" else 0)


def test_no_two_bytes_of_a_set_are_the_same_character() -> None:
    """A byte that Oracle leaves undefined has no character either, whatever the codec has."""
    for one in supported_charsets():
        defined = [char for char in one.table if char != UNDEFINED]
        assert len(set(defined)) == len(defined), one.name


def test_codecs_that_match_exactly_are_used_as_they_are() -> None:
    for name in ("WE8ISO8859P1", "EE8ISO8859P2", "WE8PC850", "CL8KOI8U"):
        found = charset(name)
        for byte, char in enumerate(found.table):
            if char != "\ufffe":
                assert bytes([byte]).decode(found.codec) == char


@pytest.mark.parametrize(
    ("name", "ascii_superset"),
    [
        ("AL32UTF8", True),
        ("UTF8", True),
        ("AL16UTF16", False),
        ("WE8MSWIN1252", True),
        ("D7DEC", False),
        ("WE8HP", False),
        ("JA16SJIS", True),
        ("JA16SJISYEN", False),
        ("AL16UTF16LE", False),
        ("WE8EBCDIC500", False),
        ("LT8PC774", True),
    ],
)
def test_which_sets_hold_ascii(name: str, ascii_superset: bool) -> None:
    assert charset(name).ascii_superset == ascii_superset


@pytest.mark.parametrize("identity", [866, 872, 25, 0, "ZHT16CCDC", "nonsense"])
def test_unknown_sets_are_refused(identity: int | str) -> None:
    with pytest.raises(OlrPgError, match="OLR-02056"):
        charset(identity)


def test_the_set_of_a_column() -> None:
    def name(form: int | None, number: int | None) -> str:
        return column_charset(form, number, "WE8MSWIN1252", "UTF8").name

    assert name(2, 2000) == "UTF8"
    assert name(1, 873) == "WE8MSWIN1252"
    assert name(None, 873) == "AL32UTF8"
    assert name(0, 0) == name(None, None) == "WE8MSWIN1252"


@pytest.mark.parametrize(
    ("name", "raw", "text"),
    [
        ("WE8EBCDIC37", "c885939396", "Hello"),
        ("WE8EBCDIC1047", "adbd", "[]"),
        ("D8EBCDIC273", "4a5ae0", "ÄÜÖ"),
        ("CL8ISOIR111", "f0d2c9d7c5d4", "Привет"),
        ("LT8PC774", "d0d1", "ąč"),
        ("YUG7ASCII", "605b", "žŠ"),
        ("EL8PC851", "d7d8", "βγ"),
        ("ZHS16GBK", "80", "€"),
        ("ZHS16GBK", "d6d0aaa1f8a1", "中\ue000\ue234"),
        ("KO16MSWIN949", "b0a1c9a1c9fefea1fefe", "가\ue000\ue05d\ue05e\ue0bb"),
    ],
)
def test_characters_of_generated_tables_and_user_defined_ones(
    name: str, raw: str, text: str
) -> None:
    assert decode_text(bytes.fromhex(raw), charset(name)) == text
    assert encode_text(text, charset(name)).hex() == raw


def test_generated_tables_agree_with_the_codecs_that_python_has() -> None:
    for name, codec in (
        ("WE8EBCDIC37", "cp037"),
        ("WE8EBCDIC500", "cp500"),
        ("WE8EBCDIC1140", "cp1140"),
    ):
        assert charset(name).table == bytes(range(256)).decode(codec)


def test_the_page_lists_what_is_supported() -> None:
    page = (Path(__file__).parents[2] / "docs" / "charsets.md").read_text("utf-8")
    rows = re.findall(r"^\| (\d+) \| (\w+) \| ([^|]+) \| (exact|near) \|$", page, re.MULTILINE)
    listed = {(int(number), name, codec, state) for number, name, codec, state in rows}
    assert listed == {
        (one.number, one.name, one.codec, "exact" if one.exact else "near")
        for one in supported_charsets()
    }


@pytest.mark.parametrize(
    ("name", "raw", "text"),
    [
        # Oracle 10g: DUMP(CONVERT(c1, 'AL32UTF8')) shows C2 85 (comp.databases.oracle.server,
        # 7 April 2009)
        ("WE8ISO8859P1", b"sys.\x85Med \x80", "sys.\x85Med \x80"),
        ("WE8MSWIN1252", b"sys.\x85Med \x80", "sys.…Med €"),
        ("WE8MSWIN1252", b"\x81\x8d\x8f\x90\x9d", "\x81\x8d\x8f\x90\x9d"),
        ("WE8ISO8859P1", b"caf\xc3\xa9", "cafÃ©"),
        ("AL32UTF8", b"caf\xc3\xa9", "café"),
        ("ZHS16GBK", b"\xc4\xe3\xba\xc3", "你好"),
        ("US7ASCII", b"\xc4\xe3\xba\xc3", "\ufffd" * 4),
    ],
)
def test_the_cases_of_the_page_on_character_sets(name: str, raw: bytes, text: str) -> None:
    assert decode_text_by_policy(raw, charset(name))[0] == text
