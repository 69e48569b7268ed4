"""Generates olr_pg/datatypes/charset_tables.py: single-byte sets that Python has no codec for.

    python tools/charset_tables.py > olr_pg/datatypes/charset_tables.py

The characters come from the C library's iconv (a GNU libc with its character sets installed), which
has the sets by the names of their standards; ids and names are Oracle's (NLS_CHARSET_ID). Run it
again only to add a set: the tables themselves do not change.
"""

from __future__ import annotations

import subprocess
import sys

# Oracle's ids and names of one table: "id NAME", then iconv's name
SETS: tuple[tuple[str, ...], ...] = (
    ("5 WE8EBCDIC37", "90 WE8EBCDIC37C", "IBM037"),
    ("6 WE8EBCDIC500", "91 WE8EBCDIC500C", "IBM500"),
    ("7 WE8EBCDIC1140", "97 WE8EBCDIC1140C", "IBM1140"),
    ("8 WE8EBCDIC285", "IBM285"),
    ("9 WE8EBCDIC1146", "IBM1146"),
    ("27 WE8EBCDIC1148", "99 WE8EBCDIC1148C", "IBM1148"),
    ("92 IW8EBCDIC424", "315 IW8EBCDIC424S", "IBM424"),
    ("93 TR8EBCDIC1026", "312 TR8EBCDIC1026S", "IBM1026"),
    ("94 WE8EBCDIC871", "IBM871"),
    ("95 WE8EBCDIC284", "IBM284"),
    ("96 WE8EBCDIC1047", "100 WE8EBCDIC1047E", "IBM1047"),
    ("98 WE8EBCDIC1145", "IBM1145"),
    ("180 D8EBCDIC273", "IBM273"),
    ("181 I8EBCDIC280", "IBM280"),
    ("182 DK8EBCDIC277", "IBM277"),
    ("183 S8EBCDIC278", "IBM278"),
    ("184 EE8EBCDIC870", "301 EE8EBCDIC870C", "316 EE8EBCDIC870S", "IBM870"),
    ("185 CL8EBCDIC1025", "317 CL8EBCDIC1025S", "322 CL8EBCDIC1025C", "IBM1025"),
    ("186 F8EBCDIC297", "IBM297"),
    ("189 D8EBCDIC1141", "IBM1141"),
    ("194 BLT8EBCDIC1112", "314 BLT8EBCDIC1112S", "IBM1112"),
    ("198 DK8EBCDIC1142", "IBM1142"),
    ("199 S8EBCDIC1143", "IBM1143"),
    ("200 I8EBCDIC1144", "IBM1144"),
    ("208 F8EBCDIC1147", "IBM1147"),
    ("311 EL8EBCDIC875S", "381 EL8EBCDIC875", "IBM875"),
    ("320 AR8EBCDIC420S", "IBM420"),
    ("325 CL8EBCDIC1158", "IBM1158"),
    ("327 EL8EBCDIC423R", "IBM423"),
    ("12 F7DEC", "NF_Z_62-010_1973"),
    ("20 YUG7ASCII", "JUS_I.B1.002"),
    ("49 CL8ISOIR111", "ECMA-CYRILLIC"),
    ("368 HU8CWI2", "CWI"),
    ("383 LT8PC772", "CP772"),
    ("384 LT8PC774", "CP774"),
    ("386 EL8PC851", "CP851"),
)

HEAD = '''"""Tables of the single-byte character sets for which Python has no codec.

tools/charset_tables.py generates this file. Do not edit it. Each table has 256 characters in the
order of the bytes from 00 on, four hex digits per character. FFFE: the byte has no character.
"""

from __future__ import annotations

from typing import Final

TABLES: Final[tuple[tuple[tuple[tuple[int, str], ...], str, str], ...]] = (
'''
"""The last of each entry: Oracle's (id, name)s, the name of the standard, the characters."""


def characters(name: str) -> str:
    """Write the 256 characters of a set as hex."""
    digits = []
    for byte in range(256):
        done = subprocess.run(  # noqa: S603 - a fixed command
            ["/usr/bin/iconv", "-f", name, "-t", "UTF-16BE"],
            input=bytes([byte]),
            capture_output=True,
            check=False,
        )
        is_one = done.returncode == 0 and len(done.stdout) == 2
        digits.append(done.stdout.hex() if is_one else "fffe")
    return "".join(digits)


def main() -> None:
    """Print the module."""
    sys.stdout.write(HEAD)
    for *ids, name in SETS:
        pairs = (one.split() for one in ids)
        names = ", ".join(f'({number}, "{oracle}")' for number, oracle in pairs)
        digits = characters(name)
        sys.stdout.write(f'    (\n        ({names},),\n        "{name}",\n        (\n')
        for start in range(0, len(digits), 64):
            sys.stdout.write(f'            "{digits[start : start + 64]}"\n')
        sys.stdout.write("        ),\n    ),\n")
    sys.stdout.write(")\n")


if __name__ == "__main__":
    main()
