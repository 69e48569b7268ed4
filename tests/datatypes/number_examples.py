"""NUMBER values as bytes and as text, for the tests of all that reads them."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import strategies as st

from olr_pg.datatypes.columns import ValueColumn, column_of

NINES = "9" * 38
# values-and-lobs §3.5
EXAMPLES = [
    ("80", "0"),
    ("c102", "1"),
    ("c10b", "10"),
    ("c202", "100"),
    ("c20202", "101"),
    ("c210", "1500"),
    ("c30b", "100000"),
    ("c002", "0.01"),
    ("c00b", "0.1"),
    ("c033", "0.5"),
    ("c10533", "4.5"),
    ("c2021744", "122.67"),
    ("c1024a153351", "1.7320508"),
    ("c302182e4451", "12345.678"),
    ("c3030d1455", "21219.84"),
    ("c51630312530", "2147483647"),
    ("ca0a1722490445374e3b08", "9223372036854775807"),
    ("d3" + "64" * 19, NINES),
    ("2c" + "02" * 19 + "66", "-" + NINES),
    (
        "2b59432d170b59432d170b59432d170b59432d170b",
        "-1234567890123456789012345678901234567890",
    ),
    ("ff" + "64" * 20, "9" * 40 + "0" * 86),
    ("00" + "02" * 20, "-" + "9" * 40 + "0" * 86),
    ("3e6466", "-1"),
    ("3e6266", "-3"),
    ("3d6366", "-200"),
    ("3c5c020266", "-99999"),
    ("3f5a4d66", "-0.1124"),
    ("3f3366", "-0.5"),
    ("3c644e38221566", "-12345.678"),
    ("3a503635413566", "-2147483648"),
    ("355c4f441d62212f182b5d66", "-9223372036854775808"),
    ("7f6466", "-0." + "0" * 129 + "1"),
    ("ff65", "Infinity"),
    ("00", "-Infinity"),
    ("8002", "0." + "0" * 129 + "1"),
    ("bb5b2007", "0.0000000000903106"),
    ("c60a646462585011", "99999978779.16"),
    ("ff0b", "1" + "0" * 125),
]
# Forms that some clients wrote: no terminator, zero digits at either end.
NON_CANONICAL = [
    ("3e64", "-1"),
    ("c10201", "1"),
    ("c20102", "1"),
    ("3d656466", "-1"),
    ("3e646566", "-1"),
    ("c101", "0"),
    ("3e6566", "0"),
    ("2b" + "02" * 20 + "66", "-" + "9" * 40),
]

MALFORMED = ["c1", "3e66", "c166", "c100", "3e0166", "c102ff", "ff66", "7f", "c1" + "02" * 22]

oracle_numbers = st.builds(
    lambda coefficient, exponent: Decimal(coefficient).scaleb(exponent),
    st.integers(-(10**38) + 1, 10**38 - 1),
    st.integers(-90, 80),
)

digit_bytes = st.lists(st.integers(1, 100) | st.sampled_from([1, 101]), min_size=1, max_size=20)
loose_numbers = st.builds(
    lambda head, digits: bytes([head, *digits]), st.integers(0, 255), digit_bytes
)


def column(*hexes: str | None) -> ValueColumn:
    return column_of([None if text is None else bytes.fromhex(text) for text in hexes])
