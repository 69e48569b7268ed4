"""Rows are found by keys of every type, and values at the edges of a key's type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from olr_pg.fallback.fallback_run import run

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fallback.both_sides import Both

KEYS: Final = (
    ("CHAR(5)", "char(5)", "'a'", "'b  '"),
    ("CHAR(5)", "varchar(5)", "'a'", "' b'"),
    ("NCHAR(5)", "char(5)", "'é'", "'漢'"),
    ("VARCHAR2(9)", "text", "'a '", "'a'"),
    ("NVARCHAR2(5)", "text", "'é'", "'😀'"),
    ("VARCHAR2(36)", "uuid", "'00112233-4455-6677-8899-aabbccddeeff'", f"'{'0' * 32}'"),
    ("RAW(4)", "bytea", r"'\x01'", r"'\x0100'"),
    ("RAW(16)", "uuid", f"'{'0' * 32}'", f"'{'f' * 32}'"),
    ("DATE", "timestamp", "'2020-01-01'", "'0044-03-15 BC'"),
    ("DATE", "date", "'9999-12-31'", "'4712-01-01 BC'"),
    ("TIMESTAMP(6)", "timestamp", "'2020-01-01 00:00:00.000001'", "'0001-01-01'"),
    ("NUMBER", "numeric", "1.10", "1e30"),
    ("NUMBER", "numeric", "3333333333333333333333333333333333333333", "0"),
    ("NUMBER", "float8", "0.1", "1e22"),
    ("NUMBER(9)", "text", "'1'", "'-1'"),
    ("BINARY_DOUBLE", "float8", "0.1", "1e300"),
)
"""The type in Oracle and in PostgreSQL, and two keys."""


def test_rows_are_found_by_keys_of_every_type(both: Callable[..., Both]) -> None:
    """One row is updated, one moves to another key and back, and one is deleted."""
    made = both(
        *(
            (
                f"k{number}",
                f"id {oracle} PRIMARY KEY, v NUMBER(5)",
                f"(id {own} PRIMARY KEY, v int)",
            )
            for number, (oracle, own, *_) in enumerate(KEYS)
        )
    )
    for number, (_, _, one, other) in enumerate(KEYS):
        made.sql(f"INSERT INTO k{number} VALUES ({one}, 1), ({other}, 1)")
    run(made.way, once=True)
    for number, (_, _, one, other) in enumerate(KEYS):
        made.sql(
            f"UPDATE k{number} SET v = 2 WHERE id = {one}",
            f"DELETE FROM k{number} WHERE id = {other}",
            f"UPDATE k{number} SET id = {other} WHERE id = {one}",
            f"UPDATE k{number} SET id = {one}, v = v + 1 WHERE id = {other}",
        )
    run(made.way, once=True)
    for number in range(len(KEYS)):
        there, here = made.rows(f"k{number}", "v")
        assert there == here == [(3,)], KEYS[number]
