"""The supported Oracle character sets: id, name, Python codec, and the characters that Oracle and
the codec map differently.

Facts: values-and-lobs §2.1. A single-byte set is a table of 256 characters. The table is built from
a codec and overrides written as ``byte=code point``, or it is generated (`charset_tables`). A byte
without a character is *undefined*. A multi-byte set is a codec with overrides by byte sequence:
Oracle can map two sequences to different characters although Python maps both to the same
character. `exact` is True if a comparison with Oracle's own tables left no known difference.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

from olr_pg.datatypes.charset_tables import TABLES
from olr_pg.errors import Code, OlrPgError

Structure = Literal["single-byte", "utf-8", "cesu-8", "utf-16-be", "multi-byte"]

AL32UTF8: Final = 873
UTF8: Final = 871
AL16UTF16: Final = 2000
DATABASE_FORM: Final = 1
NATIONAL_FORM: Final = 2
EXPLICIT_FORM: Final = 3
"""CHARSETFORM of a column: `DATABASE_FORM` if the column has the database's character set,
`NATIONAL_FORM` if it has the national one, `EXPLICIT_FORM` if its CHARSETID names the set. Oracle's
tables have no columns with `EXPLICIT_FORM`; `dictionary.true_charsets` sets it.
"""
UNKNOWN_CHARSET: Final = Code.CHARACTER_SET_UNSUPPORTED
"""The error for a character set without a decoder. No choice of target type avoids it."""

_WIDEST: Final = {AL32UTF8: 4, UTF8: 3, AL16UTF16: 2}
UNDEFINED: Final = "\ufffe"
"""The character that `codecs.charmap_decode` reads as "no character"."""


@dataclass(frozen=True, slots=True)
class Charset:
    """An Oracle character set.

    Attributes:
        number: NLS_CHARSET_ID.
        name: NLS_CHARSET_NAME.
        structure: how bytes encode characters.
        codec: the Python codec that the set is based on; for a generated table, the name of the
            standard that defines it.
        table: for single-byte sets, the 256 characters; `UNDEFINED` for a byte without a character.
        overrides: for multi-byte sets, the byte sequences that Oracle and the codec map
            differently, with Oracle's character.
        exact: whether no difference from Oracle is known.
    """

    number: int
    name: str
    structure: Structure
    codec: str
    table: str = ""
    overrides: tuple[tuple[bytes, str], ...] = ()
    exact: bool = True

    @property
    def ascii_superset(self) -> bool:
        """Return whether a value that has only bytes below 0x80 is ASCII text."""
        if self.structure == "single-byte":
            return all(self.table[byte] == chr(byte) for byte in range(128))
        wide = self.codec.startswith("utf-16")
        return not wide and not any(key < b"\x80" for key, _ in self.overrides)


_TH8TISASCII: Final = (
    "80=20AC 85=2026 91=2018 92=2019 93=201C 94=201D 95=2022 96=2013 97=2014 DB-DE=F8C1 FC-FF=F8C5"
)

# id, name, codec, overrides "byte=code", undefined bytes, bytes that are C1 controls
_SINGLE_BYTE: Final[tuple[tuple[int, str, str, str, str, str], ...]] = (
    (1, "US7ASCII", "ascii", "", "", ""),
    (10, "WE8PC850", "cp850", "", "", ""),
    (28, "WE8PC858", "cp858", "", "", ""),
    (31, "WE8ISO8859P1", "latin_1", "", "", ""),
    (32, "EE8ISO8859P2", "iso8859_2", "", "", ""),
    (33, "SE8ISO8859P3", "iso8859_3", "", "", ""),
    (35, "CL8ISO8859P5", "iso8859_5", "", "", ""),
    (36, "AR8ISO8859P6", "iso8859_6", "", "", ""),
    (38, "IW8ISO8859P8", "iso8859_8", "", "", ""),
    (39, "WE8ISO8859P9", "iso8859_9", "", "", ""),
    (46, "WE8ISO8859P15", "iso8859_15", "", "", ""),
    (47, "BLT8ISO8859P13", "iso8859_13", "", "", ""),
    (48, "CEL8ISO8859P14", "iso8859_14", "", "", ""),
    (51, "CL8KOI8U", "koi8_u", "", "", ""),
    (150, "EE8PC852", "cp852", "", "", ""),
    (152, "RU8PC866", "cp866", "", "", ""),
    (156, "TR8PC857", "cp857", "", "", ""),
    (352, "WE8MACROMAN8S", "mac_roman", "", "", ""),
    (560, "AR8MSWIN1256", "cp1256", "", "", ""),
    (1002, "TIMESTEN8", "latin_1", "", "", ""),
    (
        2,
        "WE8DEC",
        "latin_1",
        "A8=00A4 D7=0152 DD=0178 F7=0153 FD=00FF",
        "80-9F A0 A4 A6 AC-AF B4 B8 BE D0 DE F0 FE FF",
        "",
    ),
    (
        251,
        "WE8NCR4970",
        "latin_1",
        "A8=00A4 D7=0152 DD=0178 F7=0153 FD=00FF",
        "80-9F A0 A4 A6 AC-AF B4 B8 BE D0 DE F0 FE FF",
        "",
    ),
    (
        82,
        "TR8DEC",
        "latin_1",
        "A8=00A4 AE=0130 BE=0131 D0=011E D7=0152 DD=0178 DE=015E F0=011F F7=0153 FD=00FF FE=015F",
        "80-9F A0 A4 A6 AC AD AF B4 B8 FF",
        "",
    ),
    (
        3,
        "WE8HP",
        "hp_roman8",
        "5E=2038 60=2018 7E=223C A9=0060 AA=005E AC=007E E3=0110 E4=0111 F6=2015 FC=220E",
        "80-9F A0 B1 B2 F2-F5",
        "",
    ),
    (261, "WE8ROMAN8", "hp_roman8", "A9=2018 AA=2038 AC=223C F6=2015 FC=220E", "80-9F A0 F5", ""),
    (4, "US8PC437", "cp437", "E1=03B2 E6=03BC FE=220E", "", ""),
    (34, "NEE8ISO8859P4", "iso8859_4", "AF=02C9", "", ""),
    (37, "EL8ISO8859P7", "iso8859_7", "", "A5 AA", ""),
    (40, "NE8ISO8859P10", "iso8859_10", "", "BD", ""),
    (
        41,
        "TH8TISASCII",
        "iso8859_11",
        _TH8TISASCII,
        "",
        "",
    ),
    (45, "VN8MSWIN1258", "cp1258", "", "", "81 8A 8D 8E 8F 90 9A 9D 9E"),
    (52, "AZ8ISO8859P9E", "iso8859_9", "C6=018F E6=0259", "", ""),
    (154, "IW8PC1507", "cp862", "E6=03BC FE=220E", "", ""),
    (155, "RU8PC855", "cp855", "FE=220E", "box-drawing", ""),
    (160, "WE8PC860", "cp860", "F9=02D9 FE=220E", "B0-DF EC EF F0 F4 F5 F7 FB FC", ""),
    (161, "IS8PC861", "cp861", "E6=03BC F9=02D9 FE=220E", "A9 B0-DF EC EF F0 F4 F5 F7 FB FC", ""),
    (
        190,
        "N8PC865",
        "cp865",
        "E1=03B2 E6=03BC F9=00B7 FE=220E",
        "A9 B0-DF EC EF F0 F4 F5 F7 FA-FC FF",
        "",
    ),
    (380, "EL8PC437S", "cp737", "FE=220E", "B0-DF F4 F5 F7 F9 FB FC FF", ""),
    (
        390,
        "CDN8PC863",
        "cp863",
        "8D=0333 A7=02C9 E1=03B2 E6=03BC F9=00B7 FE=220E",
        "A9 B0-DF EC EF F0 F4 F5 F7 FA-FC FF",
        "",
    ),
    (170, "EE8MSWIN1250", "cp1250", "", "", "81 83 88 90 98"),
    (171, "CL8MSWIN1251", "cp1251", "", "", "98"),
    (172, "ET8MSWIN923", "cp1252", "8D=017D 97=2015 9D=017E", "80 8C 8E 9C 9E A0", ""),
    (
        173,
        "BG8MSWIN",
        "cp1251",
        "A2=00A2 A3=00A3 A5=00A5 A6=2015 AB=2190 B2=2264 B3=2265 B4=00B4 B7=02DD BB=2192 BF=02C7",
        "80-90 95-97 99-9F A1 B5 BA BC BD BE",
        "",
    ),
    (
        174,
        "EL8MSWIN1253",
        "cp1253",
        "AA=F8F9 D2=F8FA FF=F8FB",
        "",
        "81 88 8A 8C-8F 90 98 9A 9C-9F",
    ),
    (
        175,
        "IW8MSWIN1255",
        "cp1255",
        "CA=05BA D9-DF=F88D FB=F894 FC=F895 FF=F896",
        "",
        "81 8A 8C-90 9A 9C-9F",
    ),
    (
        176,
        "LT8MSWIN921",
        "cp1257",
        "A1=201D A5=201E B4=201C FF=2019",
        "80 82 84-87 89 8B 8D-8F 91-97 99 9B 9D 9E",
        "",
    ),
    (
        191,
        "BLT8CP921",
        "cp1257",
        "A1=201D A5=201E B4=201C FF=2019",
        "80 82 84-87 89 8B 8D-8F 91-97 99 9B 9D 9E",
        "",
    ),
    (177, "TR8MSWIN1254", "cp1254", "", "", "81 8D 8E 8F 90 9D 9E"),
    (178, "WE8MSWIN1252", "cp1252", "", "", "81 8D 8F 90 9D"),
    (179, "BLT8MSWIN1257", "cp1257", "A1=F8FC A5=F8FD", "", "81 83 88 8A 8C 90 98 9A 9C 9F"),
    (196, "CL8KOI8R", "koi8_r", "94=220E 95=2022", "", ""),
    (197, "BLT8PC775", "cp775", "F9=2022 FE=220E", "", ""),
    (382, "EL8PC737", "cp737", "F9=2022 FE=220E", "", ""),
    (385, "EL8PC869", "cp869", "EF=00B4 FE=220E", "", ""),
    (558, "AR8ADOS720", "cp720", "", "80 81 84 86 8D-90", ""),
    (11, "D7DEC", "ascii", "40=A7 5B=C4 5C=D6 5D=DC 7B=E4 7C=F6 7D=FC 7E=DF", "", ""),
    (207, "D7SIEMENS9780X", "ascii", "40=A7 5B=C4 5C=D6 5D=DC 7B=E4 7C=F6 7D=FC 7E=DF", "", ""),
    (
        13,
        "S7DEC",
        "ascii",
        "40=C9 5B=C4 5C=D6 5D=C5 5E=DC 60=E9 7B=E4 7C=F6 7D=E5 7E=FC",
        "",
        "",
    ),
    (
        203,
        "S7SIEMENS9780X",
        "ascii",
        "24=A4 40=C9 5B=C4 5C=D6 5D=C5 5E=DC 60=E9 7B=E4 7C=F6 7D=E5 7E=FC",
        "",
        "",
    ),
    (14, "E7DEC", "ascii", "23=A3 40=A7 5B=A1 5C=D1 5D=BF 7B=B0 7C=F1 7D=E7", "", ""),
    (202, "E7SIEMENS9780X", "ascii", "5B=A1 5C=D1 5D=BF 7B=B4 7C=F1 7D=E7 7E=A8", "", ""),
    (15, "SF7ASCII", "ascii", "5B=C4 5C=D6 5D=C5 7B=E4 7C=F6 7D=E5", "", ""),
    (21, "SF7DEC", "ascii", "5B=C4 5C=D6 5D=C5 5E=DC 60=E9 7B=E4 7C=F6 7D=E5 7E=FC", "", ""),
    (
        16,
        "NDK7DEC",
        "ascii",
        "40=C4 5B=C6 5C=D8 5D=C5 5E=DC 60=E4 7B=E6 7C=F8 7D=E5 7E=FC",
        "",
        "",
    ),
    (204, "DK7SIEMENS9780X", "ascii", "5B=C6 5C=D8 5D=C5 5E=DC 7B=E6 7C=F8 7D=E5 7E=FC", "", ""),
    (205, "N7SIEMENS9780X", "ascii", "5B=C6 5C=D8 5D=C5 5E=DC 7B=E6 7C=F8 7D=E5 7E=FC", "", ""),
    (17, "I7DEC", "ascii", "23=A3 40=A7 5B=B0 5C=E7 5D=E9 60=F9 7B=E0 7C=F2 7D=E8 7E=EC", "", ""),
    (
        206,
        "I7SIEMENS9780X",
        "ascii",
        "23=A3 40=A7 5B=B0 5C=E7 5D=E9 60=F9 7B=E0 7C=F2 7D=E8 7E=EC",
        "",
        "",
    ),
)

# id, name, codec, overrides "bytes=code", exact
_ZHT16BIG5: Final = (
    "A15A=FF3F A1C3=203E A1C5=FF3F A1FC=2016 A1FD=FF5C A1FE=FE67 A240=FE68 A244=FFE5"
    " A246=FFE0 A247=FFE1 DDFC=55C0"
)
_JA16EUC: Final = "A1F1=FFE0 A1F2=FFE1 A2CC=FFE2 8FA2B7=FF5E"
_MULTI_BYTE: Final[tuple[tuple[int, str, str, str, bool], ...]] = (
    (829, "JA16VMS", "euc_jp", "", False),
    (830, "JA16EUC", "euc_jp", f"{_JA16EUC} A1C1=301C", True),
    (831, "JA16EUCYEN", "euc_jp", f"{_JA16EUC} A1C1=301C 5C=00A5", True),
    (837, "JA16EUCTILDE", "euc_jp", f"{_JA16EUC} A1C1=FF5E", True),
    (832, "JA16SJIS", "cp932", "8160=301C", True),
    (834, "JA16SJISYEN", "cp932", "8160=301C 5C=00A5", True),
    (838, "JA16SJISTILDE", "cp932", "", True),
    (840, "KO16KSC5601", "euc_kr", "", True),
    (845, "KO16KSCCS", "johab", "", False),
    (846, "KO16MSWIN949", "cp949", "C9A1-C9FE=E000 FEA1-FEFE=E05E", True),
    (850, "ZHS16CGB231280", "gb2312", "A1AB=301C", True),
    # GB18030 has GBK's characters. It maps most codes that GBK does not use to Unicode's private
    # use area.
    (852, "ZHS16GBK", "gb18030", "80=20AC", False),
    (854, "ZHS32GB18030", "gb18030", "", True),
    (
        865,
        "ZHT16BIG5",
        "big5",
        _ZHT16BIG5,
        True,
    ),
    (867, "ZHT16MSWIN950", "cp950", "", False),
    (992, "ZHT16HKSCS31", "big5hkscs", "", False),
)

_UNICODE: Final[tuple[tuple[int, str, Structure, str, bool], ...]] = (
    (870, "AL24UTFFSS", "utf-8", "utf-8", False),
    (UTF8, "UTF8", "cesu-8", "utf-8", True),
    (AL32UTF8, "AL32UTF8", "utf-8", "utf-8", True),
    (AL16UTF16, "AL16UTF16", "utf-16-be", "utf-16-be", True),
    (2002, "AL16UTF16LE", "multi-byte", "utf-16-le", True),
)


def _byte_range(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first, 16), int(last or first, 16) + 1)


def _bytes_of(text: str) -> list[int]:
    return [byte for part in text.split() for byte in _byte_range(part)]


def _single_byte(
    number: int, name: str, codec: str, overrides: str, undefined: str, controls: str
) -> Charset:
    table = list(codecs.decode(bytes(range(256)), codec, "replace").replace("\ufffd", UNDEFINED))
    for override in overrides.split():
        key, _, code = override.partition("=")
        for i, byte in enumerate(_byte_range(key)):
            table[byte] = chr(int(code, 16) + i)
    if undefined == "box-drawing":
        table = [UNDEFINED if "\u2500" <= char <= "\u259f" else char for char in table]
    else:
        for byte in _bytes_of(undefined):
            table[byte] = UNDEFINED
    for byte in _bytes_of(controls):
        table[byte] = chr(byte)
    return Charset(number, name, "single-byte", codec, "".join(table))


def _multi_byte(number: int, name: str, codec: str, overrides: str, exact: bool) -> Charset:
    mapped = tuple(pair for override in overrides.split() for pair in _override_pairs(override))
    return Charset(number, name, "multi-byte", codec, overrides=mapped, exact=exact)


def _override_pairs(override: str) -> list[tuple[bytes, str]]:
    """Parse the pairs of ``bytes=code`` or ``first-last=code``."""
    key, _, code = override.partition("=")
    first, _, last = key.partition("-")
    start, size = int(first, 16), len(first) // 2
    return [
        ((start + i).to_bytes(size), chr(int(code, 16) + i))
        for i in range(int(last or first, 16) - start + 1)
    ]


def _generated() -> list[Charset]:
    """Build the sets of `charset_tables`. The tables of these sets were not compared with Oracle's
    own tables.
    """
    found = []
    for names, standard, digits in TABLES:
        table = bytes.fromhex(digits).decode("utf-16-be", "surrogatepass")
        found += [
            Charset(number, name, "single-byte", standard, table, exact=False)
            for number, name in names
        ]
    return found


@cache
def _by_number() -> dict[int, Charset]:
    known = [_single_byte(*row) for row in _SINGLE_BYTE]
    known += [_multi_byte(*row) for row in _MULTI_BYTE]
    known += _generated()
    known += [Charset(*row[:4], exact=row[4]) for row in _UNICODE]
    return {charset.number: charset for charset in known}


@cache
def _by_name() -> dict[str, Charset]:
    return {charset.name: charset for charset in _by_number().values()}


def charset(identity: int | str) -> Charset:
    """Return the character set with an Oracle id or name.

    Raises:
        OlrPgError: 2056, the character set is unknown or has no decoder.
    """
    found = (
        _by_number().get(identity)
        if isinstance(identity, int)
        else _by_name().get(identity.strip().upper())
    )
    if found is None:
        raise OlrPgError(UNKNOWN_CHARSET, f"no decoder for Oracle character set {identity}")
    return found


def supported_charsets() -> tuple[Charset, ...]:
    """Return every supported character set, ordered by id."""
    return tuple(sorted(_by_number().values(), key=lambda one: one.number))


def bytes_per_character(charset_id: int) -> int | None:
    """Return the maximum number of bytes per character, with which Oracle computes column lengths;
    None if it is unknown.
    """
    if charset_id in _WIDEST:
        return _WIDEST[charset_id]
    found = _by_number().get(charset_id)
    return 1 if found is not None and found.structure == "single-byte" else None


def lob_charset(charset_form: int | None, charset_id: int | None, database: str) -> Charset:
    """Return the character set of the delivered bytes of a CLOB or NCLOB. A given character set id
    takes precedence over the form.

    Args:
        charset_form: ColumnCSForm; 2 means AL16UTF16 if no id is given.
        charset_id: ColumnCSId; 2000 for every LOB that Oracle stores as UTF-16 (docs/lobs.md).
        database: NLS_CHARACTERSET.

    Raises:
        OlrPgError: 2056, the character set is unknown or has no decoder.
    """
    if charset_id:
        return charset(charset_id)
    return charset(AL16UTF16) if charset_form == NATIONAL_FORM else charset(database)


def column_charset(
    charset_form: int | None, charset_id: int | None, database: str, national: str
) -> Charset:
    """Return the character set of a column (values-and-lobs §2).

    Args:
        charset_form: COL$.CHARSETFORM.
        charset_id: COL$.CHARSETID; 0 means the database's character set.
        database, national: NLS_CHARACTERSET and NLS_NCHAR_CHARACTERSET.

    Raises:
        OlrPgError: 2056, the character set is unknown or has no decoder.
    """
    if charset_form == NATIONAL_FORM:
        return charset(national)
    if charset_form == DATABASE_FORM or not charset_id:
        return charset(database)
    return charset(charset_id)
