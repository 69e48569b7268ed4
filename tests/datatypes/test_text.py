"""Text of every character set ↔ UTF-8 that PostgreSQL takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.datatypes import text
from olr_pg.datatypes.charsets import Charset, charset, supported_charsets
from olr_pg.datatypes.columns import column_of
from olr_pg.datatypes.policies import Policies
from olr_pg.datatypes.text import (
    ascii_kernel,
    ascii_run,
    encode_text,
    strip_blanks,
    text_to_utf8,
    utf8_kernel,
    utf8_step,
)
from olr_pg.errors import OlrPgError
from olr_pg.kernels.compile import interpreted
from tests.datatypes.strict_text import decode_text

if TYPE_CHECKING:
    from collections.abc import Callable

AL32UTF8, AL16UTF16, UTF8 = charset("AL32UTF8"), charset("AL16UTF16"), charset("UTF8")
# values-and-lobs §2
EXAMPLES = [
    ("AL32UTF8", "68656c6c6f20776f726c64", "hello world"),
    ("AL32UTF8", "c5bcc3b3c582c487", "żółć"),
    ("AL32UTF8", "e282ac", "€"),
    ("WE8MSWIN1252", "80", "€"),
    ("AL16UTF16", "20ac", "€"),
    ("AL32UTF8", "f09f9880", "😀"),
    ("UTF8", "eda0bdedb880", "😀"),
    ("AL16UTF16", "d83dde00", "😀"),
    ("AL32UTF8", "41422020202020202020", "AB        "),
    ("AL16UTF16", "00410042", "AB"),
]


def utf8_of(raw: bytes, source: Charset, policies: Policies) -> str | None:
    value = text_to_utf8(column_of([raw]), source, policies)[0].value(0)
    return None if value is None else value.decode("utf-8")


@pytest.mark.parametrize(("name", "raw", "expected"), EXAMPLES)
def test_examples(name: str, raw: str, expected: str) -> None:
    source = charset(name)
    assert decode_text(bytes.fromhex(raw), source) == expected
    assert encode_text(expected, source).hex() == raw
    assert utf8_of(bytes.fromhex(raw), source, Policies()) == expected


@pytest.mark.parametrize(
    "source",
    [one for one in supported_charsets() if one.structure == "single-byte"],
    ids=lambda one: one.name,
)
def test_every_character_of_single_byte_sets_comes_back(source: Charset) -> None:
    raws = [bytes([byte]) for byte in range(1, 256) if source.table[byte] != "\ufffe"]
    values, counters = text_to_utf8(column_of(raws), source)
    texts = [(value or b"").decode("utf-8") for value in values.values()]
    assert texts == [source.table[raw[0]] for raw in raws]
    assert counters.undecodable == 0
    for raw, char in zip(raws, texts, strict=True):
        assert decode_text(encode_text(char, source), source) == char
        assert decode_text(raw, source) == char


@pytest.mark.parametrize(
    ("name", "raw", "expected"),
    [
        ("JA16EUC", "7e8fa2b7a1c15c", "~～〜\\"),
        ("JA16EUCTILDE", "a1c1a1f1", "～￠"),
        ("JA16EUCYEN", "5ca4a2", "¥あ"),
        ("JA16SJIS", "8160815f5cb1", "〜＼\\ｱ"),
        ("JA16SJISYEN", "8160815f5c", "〜＼¥"),
        ("JA16SJISTILDE", "8160", "～"),
        ("ZHS16GBK", "8041c4e3", "€A你"),
        ("ZHS16CGB231280", "a1abb0a1", "〜啊"),
        ("ZHT16BIG5", "a1fea241a240a242ddfc", "﹧／﹨＼嗀"),
        ("ZHS32GB18030", "8130813081308130", "\x80\x80"),
        ("KO16MSWIN949", "b0a1", "가"),
        ("D7DEC", "5b5c5d", "ÄÖÜ"),
        ("WE8DEC", "a8d7", "¤Œ"),
        ("CL8MSWIN1251", "98cf", "\x98П"),
    ],
)
def test_where_oracle_and_python_differ(name: str, raw: str, expected: str) -> None:
    source = charset(name)
    assert decode_text(bytes.fromhex(raw), source) == expected
    assert encode_text(expected, source).hex() == raw
    assert utf8_of(bytes.fromhex(raw), source, Policies()) == expected


clean_texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


@pytest.mark.parametrize("source", [AL32UTF8, UTF8, AL16UTF16, charset("ZHS32GB18030")])
@given(texts=st.lists(clean_texts))
def test_round_trip(source: Charset, texts: list[str]) -> None:
    raws = [encode_text(one, source) for one in texts]
    assert [decode_text(raw, source) for raw in raws] == texts
    values, counters = text_to_utf8(column_of([*raws, None]), source)
    assert values.values() == [one.encode("utf-8") or None for one in texts] + [None]
    assert not any((counters.undecodable, counters.nul))


@given(st.lists(st.binary()), st.sampled_from(supported_charsets()))
def test_any_bytes_become_text_that_postgresql_takes(raws: list[bytes], source: Charset) -> None:
    for undecodable in ("replace", "hex"):
        policies = Policies(undecodable=undecodable)
        values, _ = text_to_utf8(column_of(raws), source, policies)
        for raw, value in zip(raws, values.values(), strict=True):
            assert (value is None) == (not raw)
            assert "\0" not in (value or b"").decode("utf-8")


@given(st.lists(st.binary(max_size=12)))
def test_the_kernel_knows_utf8_as_python_does(raws: list[bytes]) -> None:
    values = column_of(raws)
    for kernel in (text.utf8_kernel, text.utf8_kernel.py_func):  # type: ignore[attr-defined]
        dirty = np.zeros(len(raws), np.bool_)
        kernel(*values, dirty)
        for raw, flag in zip(raws, dirty.tolist(), strict=True):
            valid = b"\0" not in raw and raw.decode("utf-8", "ignore").encode("utf-8") == raw
            assert flag == (not valid)


@given(st.lists(st.binary(max_size=10)))
def test_the_utf16_kernel_agrees_with_its_interpreted_form(raws: list[bytes]) -> None:
    values = column_of(raws)
    results = []
    for kernel in (text.utf16_kernel, text.utf16_kernel.py_func):  # type: ignore[attr-defined]
        out = np.zeros(20 * len(raws), np.uint8)
        offset, length = np.zeros(len(raws), np.int64), np.zeros(len(raws), np.int64)
        dirty = np.zeros(len(raws), np.bool_)
        used = kernel(*values, out, offset, length, dirty)
        results.append(
            (used, out[:used].tobytes(), offset.tolist(), length.tolist(), dirty.tolist())
        )
    assert results[0] == results[1]


@pytest.mark.parametrize("bad", [0x00, 0x80, 0xFF])
def test_ascii_ends_before_the_first_other_byte(bad: int) -> None:
    run = interpreted(ascii_run)
    for at in range(27):
        data = np.frombuffer(b"\x01\x7f~" * 9, np.uint8).copy()
        data[at] = bad
        for start in (0, 1, 7, 8):
            for end in (at, at + 1, 27):
                assert run(data, start, end) == (at if start <= at else max(start, end))
                if start > at:
                    break


@pytest.mark.parametrize(
    ("raw", "size"),
    [
        ("01", 1), ("7f", 1), ("00", 0), ("80", 0), ("c080", 0), ("c1bf", 0), ("c280", 2),
        ("dfbf", 2), ("c27f", 0), ("c2c0", 0), ("e09f80", 0), ("e0a080", 3), ("e0bfbf", 3),
        ("e18080", 3), ("ed9fbf", 3), ("eda080", 0), ("ee8080", 3), ("efbfbf", 3), ("e18020", 0),
        ("e180c0", 0), ("f08fbfbf", 0), ("f0908080", 4), ("f3bfbfbf", 4), ("f48fbfbf", 4),
        ("f4908080", 0), ("f5808080", 0), ("f1808020", 0), ("f1802080", 0), ("c2", 0), ("e0a0", 0),
        ("f09080", 0), ("ff", 0),
    ],
)  # fmt: skip
def test_the_first_and_last_characters_of_each_size(raw: str, size: int) -> None:
    """Unicode's table of well-formed byte sequences; U+0000 is none that PostgreSQL takes."""
    data = np.frombuffer(b"\x80" + bytes.fromhex(raw) + b"\x80\x80\x80", np.uint8)
    assert interpreted(utf8_step)(data, 1, 1 + len(raw) // 2) == size
    dirty = np.zeros(1, np.bool_)
    utf8_kernel(data, np.array([1]), np.array([len(raw) // 2]), dirty)
    assert dirty[0] == (size == 0)


@pytest.mark.parametrize(
    "char",
    [
        "\x01", "\x7f", "\x80", "\u017f", "\u07ff", "\u0800", "\ud7ff", "\ue000", "\uffff",
        "\U00010000", "\U0010ffff",
    ],
)  # fmt: skip
def test_characters_of_utf_16_at_the_ends_of_each_size(char: str) -> None:
    for value in (char, "a" + char + "b", char * 3):
        raw = value.encode("utf-16-be")
        given, _ = text_to_utf8(column_of([None, raw, b"\x00x", raw]), AL16UTF16)
        assert given.values() == [None, value.encode(), b"x", value.encode()]


@pytest.mark.parametrize(
    "raw", ["d800", "d8000041", "dbffdbff", "dc00", "dfff0041", "41", "004100"]
)
def test_what_is_no_utf_16_disturbs_no_neighbour(raw: str) -> None:
    given, counters = text_to_utf8(column_of([b"\0a", bytes.fromhex(raw), b"\0b"]), AL16UTF16)
    assert (given.value(0), given.value(2)) == (b"a", b"b")
    assert counters.undecodable == 1
    assert b"\xef\xbf\xbd" in (given.value(1) or b"")


def test_of_null_no_byte_is_read() -> None:
    """What stands at its offset is another value, or behind the end of the buffer."""
    data = np.frombuffer(b"abcdefgh\xff", np.uint8)
    offset, length = np.array([0, 9, 0, 9]), np.array([-1, -1, 0, 0])
    dirty = np.zeros(4, np.bool_)
    interpreted(utf8_kernel)(data, offset, length, dirty)
    interpreted(ascii_kernel)(data, offset, length, True, dirty)
    assert not dirty.any()


def test_clean_utf8_is_not_copied() -> None:
    values = column_of(["żółć".encode(), None, b"plain"])
    result, _ = text_to_utf8(values, AL32UTF8)
    assert result.data is values.data


def test_dirty_values_do_not_disturb_their_neighbours() -> None:
    raws = [b"one", b"t\xffo", None, "drei€".encode(), b"fo\0ur", b"t\xffo"]
    values, counters = text_to_utf8(column_of(raws), AL32UTF8)
    assert values.values() == [
        b"one",
        "t\ufffdo".encode(),
        None,
        "drei€".encode(),
        b"four",
        "t\ufffdo".encode(),
    ]
    assert (counters.undecodable, counters.nul) == (2, 1)


def test_the_policies_of_undecodable_bytes() -> None:
    raw = b"a\xff\xe2\x82b"
    assert utf8_of(raw, AL32UTF8, Policies()) == "a\ufffd\ufffdb"
    assert utf8_of(raw, AL32UTF8, Policies(undecodable="hex")) == "a\\xff\\xe2\\x82b"
    assert utf8_of(b"a\xe4", charset("US7ASCII"), Policies(undecodable="hex")) == "a\\xe4"
    assert utf8_of(b"\xd8\x3d\0a", AL16UTF16, Policies(undecodable="hex")) == "\\xd8\\x3da"
    with pytest.raises(OlrPgError, match="OLR-02051") as caught:
        text_to_utf8(column_of([b"fine", None, raw]), AL32UTF8, Policies(undecodable="error"))
    assert caught.value.where["row"] == 2
    with pytest.raises(OlrPgError, match="OLR-02051"):
        decode_text(raw, AL32UTF8)


def test_the_policies_of_nul() -> None:
    assert utf8_of(b"a\0b", AL32UTF8, Policies()) == "ab"
    assert utf8_of(b"a\0b", AL32UTF8, Policies(nul="replace")) == "a\ufffdb"
    assert utf8_of(b"\0a\0\0", AL16UTF16, Policies()) == "a"
    assert utf8_of(b"a\0b", charset("WE8MSWIN1252"), Policies()) == "ab"
    with pytest.raises(OlrPgError, match="OLR-02052") as caught:
        text_to_utf8(column_of([b"fine", b"a\0"]), AL32UTF8, Policies(nul="error"))
    assert caught.value.where["row"] == 1


def test_al32utf8_tolerates_cesu_pairs() -> None:
    assert utf8_of(b"x\xed\xa0\xbd\xed\xb8\x80", AL32UTF8, Policies()) == "x😀"
    assert utf8_of("é😀".encode(), UTF8, Policies()) == "é😀"


def test_what_a_set_cannot_hold() -> None:
    for name, char in (("US7ASCII", "é"), ("JA16EUC", "¢"), ("WE8MSWIN1252", "ż")):
        with pytest.raises(OlrPgError, match="OLR-02058"):
            encode_text(char, charset(name))


def test_blanks_are_stripped_without_copying() -> None:
    values = column_of([b"AB   ", b"   ", None, b" x"])
    result = strip_blanks(values)
    assert result.values() == [b"AB", b"", None, b" x"]
    assert values.value(0) == b"AB   "


def test_postgresql_takes_what_comes_out(judge: Callable[..., list[str | None]]) -> None:
    random = np.random.default_rng(3)
    raws = [random.bytes(int(random.integers(1, 9))) for _ in range(2000)]
    for name in ("AL32UTF8", "AL16UTF16", "WE8MSWIN1252", "JA16SJIS"):
        values, _ = text_to_utf8(column_of(raws), charset(name))
        assert judge("text", values) == [(v or b"").decode("utf-8") for v in values.values()]
