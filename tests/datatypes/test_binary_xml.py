"""Binary XML: the documented example, trees there and back, PostgreSQL's xml, hostile bytes."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from functools import partial
from xml.parsers import expat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.datatypes.binary_xml import NO_TOKENS, binary_xml_text
from olr_pg.errors import OlrPgError
from tests.datatypes.json_documents import refused_with
from tests.datatypes.xml_documents import TOKENS, URI, elements, encode

read = partial(binary_xml_text, tokens=TOKENS)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("9e000000 c002 4830 616263 a0", "<NACE>abc</NACE>"),  # values-and-lobs §24
        ("9e000093 c08f4830 a0",
         '<?xml version="1.1" standalone="yes"?><NACE/>'),
        ("9e000003 c08f4830", '<?xml version="1.0" standalone="no"?><NACE/>'),
        ("c8 4831 c1 0001 4832 3c d4 00 26 d9 d7 d9", "<a><b>&lt;</b><b>&amp;</b></a>"),
        ("c8 4831 c9 00100000 01 2239 d9 d9", """<a NACE='"9'/>"""),
        ("c84831 c004 0071 656e2d4742 d9", '<a xml:lang="en-GB"/>'),
        ("b2 01 0000 504c 0001 70 c80070 dd0001 c08f4831 d9",
         f'<p:outer xmlns:p="{URI}"><a/></p:outer>'),
        ("b2 00 0000 504c 0001 c80070 dd0001 d9", f'<outer xmlns="{URI}"/>'),
        ("9f011c 02aabb 01cc 00 c08f4830", "<NACE/>"),
    ],
)  # fmt: skip
def test_examples(raw: str, text: str) -> None:
    assert read(bytes.fromhex(raw)) == text


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        ("c8 4830", "not every element is closed"),
        ("", "not every element is closed"),
        ("d9", "an end without a start"),
        ("c0 8f 9999", "name 9999 is not in the token tables"),
        ("c8 4830 e7", "code E7 is not known"),
        ("c8 4830 05 61", "cut off"),
        ("c8 4830 00 ff d9", "not UTF-8"),
        ("00 61", "text outside"),
        ("c08f4830 c08f4830", "a second root"),
        ("c9 00100000 d9", "an attribute outside"),
        ("c8 4830 c9 00100000 c8 4830", "a name within"),
        ("c84830 c900100000 a0", "not closed"),
        ("d4", "repeated element"),
        ("dd0001", "declaration 1"),
        ("9f02", "another version"),
        ("c84830 0078 9e000002 d9", "a declaration after the beginning"),
        ("c84830 9e000002 d9", "a declaration after the beginning"),
        ("9e000002 9e000002 c08f4830", "a declaration after the beginning"),
        ("c84830 00 00 d9", "a character that XML does not have"),
        ("c84830 c900100000 00 1b d9 d9", "a character that XML does not have"),
        ("c84830 02 ef bf bf d9", "a character that XML does not have"),
        ("c84830 c900100000 d9 c900100000 d9 d9", "an attribute twice"),
        ("b2 00 0000 504c 0001 b2 00 0000 504c 0002 c80070 dd0001 dd0002 d9", "an attribute twice"),
        ("b2 00 0000 0404 0001 c84830 dd0001 d9", "namespace 0404"),
        ("b2 01 0000 504c 0001 3e c80070 dd0001 d9", "a prefix is no name"),
        ("b2 01 0000 504c 0001 ff c80070 dd0001 d9", "a prefix is not UTF-8"),
    ],
)
def test_what_is_no_document(raw: str, why: str) -> None:
    with pytest.raises(OlrPgError, match=why) as caught:
        read(bytes.fromhex(raw))
    assert caught.value.code == 2123


PUBLISHED = frozenset(
    [*range(0x80), 0x8B, 0x9E, 0x9F, 0xA0, 0xB2, *range(0xC0, 0xC4), 0xC8, 0xC9, *range(0xD4, 0xDA)]
) | {0xDD}


@pytest.mark.parametrize("code", sorted(set(range(256)) - PUBLISHED))
@pytest.mark.parametrize("place", ["before", "in the start tag", "in an attribute", "inside"])
def test_every_code_that_is_not_published_is_an_error_wherever_it_stands(
    code: int, place: str
) -> None:
    """Comments, processing instructions and typed values have codes that nobody has published."""
    before = {
        "before": b"",
        "in the start tag": b"\xc8\x48\x30",
        "in an attribute": b"\xc8\x48\x30\xc9\x00\x10\x00\x00\x00x",
        "inside": b"\xc8\x48\x30\x00x",
    }[place]
    # Whatever stands behind it may be its operands: nothing of it is taken for text.
    with pytest.raises(OlrPgError, match=f"code {code:02X} is not known") as caught:
        read(before + bytes((code,)) + b"\x02abc\xd9\xa0")
    assert caught.value.code == 2123


def test_without_token_tables_nothing_is_guessed() -> None:
    with pytest.raises(OlrPgError, match="OLR-02123"):
        binary_xml_text(bytes.fromhex("9e000000c0024830616263a0"), NO_TOKENS)


def canonical(text: str) -> str:
    return ET.canonicalize(text)


@given(elements())
def test_trees_come_back(root: ET.Element) -> None:
    expected = ET.tostring(root, encoding="unicode")
    assert canonical(read(encode(root))) == canonical(expected)


@given(elements(), st.data())
def test_damaged_documents_are_refused_or_read(root: ET.Element, data: st.DataObject) -> None:
    raw = bytearray(encode(root))
    raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    for damaged in (raw, raw[: data.draw(st.integers(0, len(raw)))]):
        assert refused_with(read, bytes(damaged)) in (None, 2123)


PIECES: st.SearchStrategy[bytes] = st.sampled_from(
    [bytes.fromhex(piece) for piece in (
        "c84830", "c84831", "d9", "d9", "c900100000", "c900100001", "0078", "01 2226", "000a",
        "c0004832 78", "c08f4830", "d4", "d7", "9e000002", "9e000000", "9f0100", "c80070", "dd0001",
        "b2010000504c000170", "b2000000504c0002", "dd0002", "8b000000000000000178", "0000", "a0",
        "c004007165 6e2d4742",
    )]
) | st.binary(max_size=3)  # fmt: skip


@given(st.lists(PIECES, max_size=30).map(b"".join))
def test_what_is_read_is_well_formed(raw: bytes) -> None:
    """Whatever the bytes are: PostgreSQL would refuse the whole row otherwise."""
    for document in (raw, b"\xc8\x48\x30" + raw + b"\xd9"):
        if (code := refused_with(read, document)) is not None:
            assert code == 2123
            continue
        # This parser knows no version 1.1, which forbids less.
        text = read(document).replace('<?xml version="1.1"', '<?xml version="1.0"', 1)
        expat.ParserCreate().Parse(text.encode(), True)


@given(st.binary(max_size=100))
def test_any_bytes_give_a_coded_error_or_a_document(raw: bytes) -> None:
    assert refused_with(read, raw) in (None, 2123)
    assert refused_with(read, b"\xc8\x48\x30" + raw + b"\xd9") in (None, 2123)
