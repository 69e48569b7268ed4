"""XML documents as a tree, written as binary XML by the codes of values-and-lobs §24."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st

from olr_pg.datatypes.binary_xml import QualifiedName, XmlTokens, token_id

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

URI: Final = "http://example.com/ns"
NAMESPACE: Final = 0x504C
NAMES: Final = ("NACE", "a", "b", "item", "Ünï")
TOKENS: Final = XmlTokens(
    {"01": "http://www.w3.org/XML/1998/namespace", token_id(NAMESPACE): URI},
    {
        **{token_id(0x4830 + i): QualifiedName("07", name, False) for i, name in enumerate(NAMES)},
        **{token_id(0x10_0000 + i): QualifiedName("07", n, True) for i, n in enumerate(NAMES)},
        token_id(0x70): QualifiedName(token_id(NAMESPACE), "outer", False),
        token_id(0x71): QualifiedName("01", "lang", True),
    },
)
TEXT: Final = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Cn"], exclude_characters="\ufffe\uffff"),
    max_size=150,
)


def elements() -> SearchStrategy[ET.Element]:
    """Trees of elements with attributes and text."""
    return st.recursive(
        st.builds(_element, st.sampled_from(NAMES), _attributes(), TEXT, st.just([])),
        lambda inner: st.builds(
            _element, st.sampled_from(NAMES), _attributes(), TEXT, st.lists(inner, max_size=4)
        ),
        max_leaves=12,
    )


def _attributes() -> SearchStrategy[dict[str, str]]:
    return st.dictionaries(st.sampled_from(NAMES), TEXT, max_size=3)


def _element(
    name: str, attributes: dict[str, str], text: str, children: list[ET.Element]
) -> ET.Element:
    element = ET.Element(name, attributes)
    element.text = text
    element.extend(children)
    return element


def encode(root: ET.Element) -> bytes:
    """A document; texts in the forms that fit, elements short where they can be."""
    return b"\x9e\x00\x00\x02\x9f\x01\x00" + _encode(root) + b"\xa0"


def _encode(element: ET.Element) -> bytes:
    number = 0x4830 + NAMES.index(element.tag)
    text = (element.text or "").encode()
    if not element.attrib and len(element) == 0 and len(text) < 0x8F:
        length = 0x8F if not text else len(text) - 1
        return bytes((0xC0, length)) + number.to_bytes(2) + text
    parts = [b"\xc8", number.to_bytes(2)]
    for name, value in element.attrib.items():
        raw, key = value.encode(), 0x10_0000 + NAMES.index(name)
        if len(raw) % 2:
            parts += [b"\xc3", len(raw).to_bytes(2), key.to_bytes(4), raw]
        else:
            parts += [b"\xc9", key.to_bytes(4), _text(raw), b"\xd9"]
    return b"".join([*parts, _text(text), *map(_encode, element), b"\xd9"])


def _text(raw: bytes) -> bytes:
    if not raw:
        return b""
    if len(raw) <= 0x80 and len(raw) % 3:
        return bytes((len(raw) - 1,)) + raw
    return b"\x8b" + len(raw).to_bytes(8) + raw
