"""Conversion of binary XML (an XMLTYPE stored as BLOB) to XML text.

A document is a stream of tokens. The tokens contain ids instead of names; token tables in the
database map each id to its name. Facts: values-and-lobs §24; they come from published documents and
were not checked against real redo.

The codes of comments, processing instructions and typed values are unknown. An unknown code, an id
that is not in the token tables, and a result that is not well-formed XML are errors. After an
error, the value is unavailable; nothing is guessed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Final, NamedTuple

from olr_pg.datatypes.outcomes import printed
from olr_pg.errors import Code, OlrPgError

_NO_NAMESPACE: Final = frozenset({"07", "02"})
"""The ids of two namespaces: Oracle's URI for "no namespace", and xmlns. They are from the token
tables of a real database.
"""

_XML_NAMESPACE: Final = "01"

_NO_CHARACTER: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_PREFIX: Final = re.compile(r"[^\W\d][\w.-]*")


class QualifiedName(NamedTuple):
    """A row of X$QN: the namespace's id, the local name, and whether it is an attribute's name."""

    namespace: str
    local: str
    is_attribute: bool


@dataclass(frozen=True, slots=True)
class XmlTokens:
    """The token tables of a token set; ids are upper-case hex as in the tables.

    Attributes:
        namespaces: URI by id (X$NM).
        names: name by id (X$QN).
    """

    namespaces: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, QualifiedName] = field(default_factory=dict)


NO_TOKENS: Final = XmlTokens()


def token_id(number: int) -> str:
    """Return an id as in the token tables: upper-case hex, whole bytes, no leading zero bytes."""
    return number.to_bytes(max(1, (number.bit_length() + 7) // 8)).hex().upper()


class _Element(NamedTuple):
    """An element whose end was not read yet: its name in the token tables, and its name in the
    text.
    """

    name: QualifiedName
    written: str


class _Declared(NamedTuple):
    prefix: str
    namespace: str


def _sax() -> ModuleType:
    """Import Python's module for escaping XML text. This module is imported on first use because it
    also loads a web client.
    """
    from xml.sax import saxutils

    return saxutils


class _Document:
    """Builds the XML text of one document."""

    def __init__(self, raw: bytes, tokens: XmlTokens) -> None:
        self._raw = raw
        self._tokens = tokens
        self._at = 0
        self._out: list[str] = []
        self._open: list[_Element] = []
        self._declared: dict[int, _Declared] = {}
        self._pending: QualifiedName | None = None
        self._attributes: list[tuple[QualifiedName, list[str]]] = []
        self._namespaces: list[int] = []
        self._in_attribute = False
        self._last: QualifiedName | None = None
        self._has_root = False

    def fail(self, why: str) -> OlrPgError:
        return OlrPgError(
            Code.LOB_CONTENT_UNDECODABLE,
            f"binary XML: {why}: {printed(self._raw)}",
            offset=self._at,
        )

    def _take(self, size: int) -> bytes:
        if self._at + size > len(self._raw):
            raise self.fail("it is cut off")
        self._at += size
        return self._raw[self._at - size : self._at]

    def _number(self, size: int) -> int:
        return int.from_bytes(self._take(size))

    def text(self) -> str:
        """Return the whole document.

        Raises:
            OlrPgError: 2123, the document cannot be converted.
        """
        while self._at < len(self._raw):
            code = self._number(1)
            if code == 0xA0:
                break
            self._token(code)
        self._flush()
        if self._open or not self._has_root:
            raise self.fail("not every element is closed")
        return "".join(self._out)

    def _token(self, code: int) -> None:
        if code < 0x80:
            self._characters(code + 1)
        elif code in (0xC8, 0xC9):
            self._start(self._name(2 if code == 0xC8 else 4))
        elif 0xC0 <= code <= 0xC3:
            self._whole(code)
        elif code == 0xD9:
            self._end()
        elif code in (0xD4, 0xD5):
            if self._last is None:
                raise self.fail("a repeated element without one before it")
            self._start(self._last)
        elif code == 0x8B:
            self._characters(self._number(8))
        elif code in _HEADERS:
            _HEADERS[code](self)
        elif not 0xD6 <= code <= 0xD8:
            raise self.fail(f"code {code:02X} is not known")

    def _name(self, size: int) -> QualifiedName:
        number = self._number(size)
        found = self._tokens.names.get(token_id(number))
        if found is None:
            raise self.fail(f"name {token_id(number)} is not in the token tables")
        return found

    def _whole(self, code: int) -> None:
        """Write an element or attribute together with its text. If the length is one byte, the byte
        is the length minus 1, except that 8F means length 0.
        """
        if code in (0xC0, 0xC2):
            length = self._number(1)
            length = 0 if length == 0x8F else length + 1
        else:
            length = self._number(2)
        self._start(self._name(2 if code in (0xC0, 0xC1) else 4))
        if length:
            self._characters(length)
        self._end()

    def _start(self, name: QualifiedName) -> None:
        if self._in_attribute:
            raise self.fail("a name within an attribute")
        if name.is_attribute:
            if self._pending is None:
                raise self.fail("an attribute outside of a start tag")
            self._attributes.append((name, []))
            self._in_attribute = True
            return
        self._flush()
        if self._has_root and not self._open:
            raise self.fail("a second root element")
        self._has_root = True
        self._pending = name

    def _characters(self, size: int) -> None:
        try:
            text = self._take(size).decode("utf-8")
        except UnicodeDecodeError:
            raise self.fail("its text is not UTF-8") from None
        if _NO_CHARACTER.search(text):
            raise self.fail("a character that XML does not have")
        if self._in_attribute:
            self._attributes[-1][1].append(text)
            return
        self._flush()
        if not self._open:
            raise self.fail("text outside of the root element")
        self._out.append(_sax().escape(text))

    def _end(self) -> None:
        if self._in_attribute:
            self._in_attribute = False
            return
        if self._pending is not None:
            self._flush(empty=True)
            return
        if not self._open:
            raise self.fail("an end without a start")
        element = self._open.pop()
        self._last = element.name
        self._out.append(f"</{element.written}>")

    def _flush(self, *, empty: bool = False) -> None:
        """Write the pending start tag, if there is one."""
        if self._in_attribute:
            raise self.fail("an attribute is not closed")
        name = self._pending
        if name is None:
            return
        self._pending = None
        written = self._written(name)
        parts = [f"<{written}"]
        for number in dict.fromkeys(self._namespaces):
            declared = self._declared[number]
            uri = self._tokens.namespaces.get(declared.namespace)
            if uri is None:
                raise self.fail(f"namespace {declared.namespace} is not in the token tables")
            prefix = f":{declared.prefix}" if declared.prefix else ""
            parts.append(f" xmlns{prefix}={_sax().quoteattr(uri)}")
        for attribute, value in self._attributes:
            parts.append(f" {self._written(attribute)}={_sax().quoteattr(''.join(value), _BREAKS)}")
        if len({part.partition("=")[0] for part in parts}) < len(parts):
            raise self.fail("an attribute twice")
        self._attributes, self._namespaces = [], []
        if empty:
            self._last = name
            self._out.append("".join([*parts, "/>"]))
            return
        self._out.append("".join([*parts, ">"]))
        self._open.append(_Element(name, written))

    def _written(self, name: QualifiedName) -> str:
        """Return the name with the prefix that was last declared for its namespace."""
        if name.namespace == _XML_NAMESPACE:
            return f"xml:{name.local}"
        if name.namespace not in _NO_NAMESPACE:
            for declared in reversed(self._declared.values()):
                if declared.namespace == name.namespace and declared.prefix:
                    return f"{declared.prefix}:{name.local}"
        return name.local

    def _header(self) -> None:
        flags = self._take(3)[2]
        if not flags & 0x02:
            return
        if self._out or self._has_root:
            raise self.fail("a declaration after the beginning")
        version = "1.1" if flags & 0x80 else "1.0"
        standalone = ""
        if flags & 0x01:
            standalone = f' standalone="{"yes" if flags & 0x10 else "no"}"'
        # The text is UTF-8 now, so the encoding in the declaration is omitted.
        self._out.append(f'<?xml version="{version}"{standalone}?>')

    def _prolog(self) -> None:
        if self._number(1) != 1:
            raise self.fail("another version")
        flags = self._number(1)
        if flags & 0x08:
            self._take(self._number(1))
        if flags & 0x10:
            self._take(self._number(1))
            self._take(self._number(1))

    def _declare(self) -> None:
        size = self._number(1)
        self._take(2)
        namespace, number = token_id(self._number(2)), self._number(2)
        try:
            prefix = self._take(size).decode("utf-8")
        except UnicodeDecodeError:
            raise self.fail("a prefix is not UTF-8") from None
        if prefix and not _PREFIX.fullmatch(prefix):
            raise self.fail("a prefix is no name")
        self._declared.pop(number, None)
        self._declared[number] = _Declared(prefix, namespace)

    def _use(self) -> None:
        number = self._number(2)
        if number not in self._declared:
            raise self.fail(f"namespace declaration {number} is missing")
        self._namespaces.append(number)


_BREAKS: Final = {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}
_HEADERS: Final = {
    0x9E: _Document._header,
    0x9F: _Document._prolog,
    0xB2: _Document._declare,
    0xDD: _Document._use,
}


def binary_xml_text(raw: bytes, tokens: XmlTokens) -> str:
    """Convert the bytes of a binary XML document to XML text.

    Raises:
        OlrPgError: 2123, a code or name is unknown, or the bytes are not a valid document.
    """
    return _Document(raw, tokens).text()
