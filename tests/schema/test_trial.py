"""A trial in pieces judges as one in a single transaction does, and holds few locks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from olr_pg.schema.statement import Statement
from olr_pg.schema.trial import Needs, tried
from tests.postgres.own_cluster import own_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

TABLES = 500
COLUMNS = "id int PRIMARY KEY, other int UNIQUE, note text UNIQUE"


def _statements(tables: int) -> list[Statement]:
    """Tables in a chain of foreign keys, with a view of each, of which every tenth is refused."""
    found = [Statement("schema", "M", 'CREATE SCHEMA "many"')]
    numbers = range(tables)
    found += [
        Statement("table", f"M.T{n}", f'CREATE TABLE "many"."t{n}" ({COLUMNS})') for n in numbers
    ]
    found += [
        Statement(
            "generated column", f"M.T{n}.G",
            f'ALTER TABLE "many"."t{n}" ADD COLUMN g int GENERATED ALWAYS AS (other + 1) STORED',
        )
        for n in numbers
    ]  # fmt: skip
    found += [
        Statement(
            "foreign key", f"M.T{n}.FK",
            f'ALTER TABLE "many"."t{n}" ADD FOREIGN KEY (other) REFERENCES "many"."t{n - 1}" (id)',
        )
        for n in numbers[1:]
    ]  # fmt: skip
    found += [
        Statement(
            "view", f"M.V{n}",
            f'CREATE VIEW "many"."v{n}" AS SELECT {"g" if n % 10 else "nothing"}'
            f' FROM "many"."t{n}"',
        )
        for n in numbers
    ]  # fmt: skip
    found += [
        Statement(
            "view", f"M.W{n}",
            f'CREATE VIEW "many"."w{n}" AS SELECT v.g FROM "many"."v{n}" v, "many"."t{n - 1}"',
        )
        for n in numbers[1:]
    ]  # fmt: skip
    return found


def test_each_statement_is_tried_in_one_piece_behind_what_it_needs() -> None:
    statements = _statements(40)
    found = list(Needs(statements).pieces(most=30))
    assert sorted(at for piece in found for at in piece.tried) == list(range(len(statements)))
    assert max(len(piece.needed) + len(piece.tried) for piece in found) <= 40
    by_name = {one.name: at for at, one in enumerate(statements)}
    (of_view,) = (piece for piece in found if by_name["M.W7"] in piece.tried)
    made = {*of_view.needed, *of_view.tried}
    assert {by_name[name] for name in ("M", "M.T7", "M.T7.G", "M.V7", "M.T6")} <= made


def test_a_piece_is_cut_in_two_with_what_each_part_needs() -> None:
    statements = _statements(4)
    needs = Needs(statements)
    (whole,) = needs.pieces()
    one, other = needs.halves(whole)
    assert sorted((*one.tried, *other.tried)) == sorted(whole.tried)
    assert not needs.halves(one._replace(tried=one.tried[:1]))


@pytest.fixture
def target() -> Iterator[psycopg.Connection[Any]]:
    """A server of its own with room for few locks: there 350 tables are as 1,400 elsewhere."""
    with (
        own_cluster("max_locks_per_transaction = 16", "fsync = off") as server,
        psycopg.connect(server.connect_string, autocommit=True) as connection,
    ):
        yield connection


def _make_all_at_once(target: psycopg.Connection[Any], statements: list[Statement]) -> None:
    with target.transaction():
        for one in statements:
            target.execute(one.sql.encode())


def test_more_objects_than_the_server_has_locks_are_judged(
    target: psycopg.Connection[Any],
) -> None:
    statements = _statements(TABLES)
    tables = [one for one in statements if one.kind not in ("foreign key", "view")]
    with pytest.raises(psycopg.errors.OutOfMemory):
        _make_all_at_once(target, tables)
    found = tried(target, statements)
    refused = [one.name for one in found if one.reason]
    assert refused == [
        *(f"M.V{n}" for n in range(0, TABLES, 10)),
        *(f"M.W{n}" for n in range(10, TABLES, 10)),
    ]
    (first,) = (one for one in found if one.name == "M.V0")
    assert 'column "nothing" does not exist' in first.reason
    (behind,) = (one for one in found if one.name == "M.W10")
    assert behind.reason == "the object needs M.V10, which is not created"
    assert target.execute("SELECT to_regnamespace('many')").fetchone() == (None,)
