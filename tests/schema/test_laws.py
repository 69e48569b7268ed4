"""Laws of the translation, for all queries of the samples and for the views of a drawn schema.

A query and its copy in capitals are translated alike, two processes translate alike, and a copy
with other aliases and another order of its tables gives the same rows.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg
import pytest
import sqlglot
from sqlglot import exp
from sqlglot.dialects.oracle import Oracle
from sqlglot.tokenizer_core import TokenType

from olr_pg.schema.relations import Relations
from olr_pg.schema.translating import UntranslatableError
from olr_pg.schema.translation import translate_query
from tests.schema.hr_relations import MAKE, hr_relations
from tests.schema.large_schema import OWNER, LargeSchema
from tests.schema.shop_relations import SETTINGS, relations
from tests.schema.test_queries import CASES, RELATIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parent / "cases"


class Sample(NamedTuple):
    """A query, and what its names stand for."""

    text: str
    relations: Relations
    owner: str


def samples() -> Iterator[Sample]:
    """Yield the queries of the cases, those of the documentation, and drawn views."""
    for case in json.loads((FOLDER / "queries.json").read_text("utf-8")):
        yield Sample(case["oracle"], relations(), "SHOP")
    for case in json.loads((FOLDER / "documented_queries.json").read_text("utf-8")):
        yield Sample(case["oracle"], hr_relations(), "HR")
    for text in CASES:
        yield Sample(text, RELATIONS, "LAW")
    inventory = LargeSchema(20, 60, seed=11, long_views=0).inventory()
    drawn = Relations(inventory, SETTINGS)
    for view in inventory.views:
        yield Sample(view.text, drawn, OWNER)


def translated(sample: Sample, text: str = "") -> str:
    """Return a translation, or the reason why there is none."""
    try:
        return translate_query(text or sample.text, sample.relations, sample.owner)[0]
    except UntranslatableError as error:
        return f"refused: {error}"


def _in_capitals(text: str) -> str:
    """Write all in capitals but texts, quoted names, and comments."""
    pieces, before = list[str](), 0
    for token in Oracle().tokenize(text):
        pieces.append(text[before : token.start])
        word = text[token.start : token.end + 1]
        kept = token.token_type in (TokenType.STRING, TokenType.IDENTIFIER) or "'" in word
        pieces.append(word if kept else word.upper())
        before = token.end + 1
    return "".join(pieces) + text[before:]


def test_a_copy_in_capitals_is_translated_alike() -> None:
    others = list[tuple[str, str, str]]()
    for sample in samples():
        one, other = translated(sample), translated(sample, _in_capitals(sample.text))
        if one != other and not one.startswith("refused"):
            others.append((sample.text, one, other))
    assert others == []


def test_two_processes_translate_alike() -> None:
    """Sets have another order in each."""
    program = (
        "from tests.schema.test_laws import samples, translated\n"
        "print('\\n'.join(map(translated, samples())))"
    )
    seed = "1" if os.environ.get("PYTHONHASHSEED") == "0" else "0"
    other = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True,
        env={**os.environ, "PYTHONHASHSEED": seed},
    ).stdout  # fmt: skip
    assert other == "\n".join(map(translated, samples())) + "\n"


def _copy(text: str) -> str | None:
    """Return a query with other aliases, its tables in another order; None where it has neither."""
    tree = sqlglot.parse_one(text, read="oracle")
    names = dict[str, str]()
    for node in tree.find_all(exp.Table, exp.Subquery):
        alias = node.args.get("alias")
        if isinstance(alias, exp.TableAlias) and alias.this and not alias.this.args.get("quoted"):
            names[alias.name.upper()] = f"z{len(names)}_{alias.name}"
            alias.set("this", exp.to_identifier(names[alias.name.upper()]))
        elif isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier) and not alias:
            names[node.name.upper()] = f"z{len(names)}_{node.name}"
            name = exp.to_identifier(names[node.name.upper()])
            node.set("alias", exp.TableAlias(this=name))
    for column in tree.find_all(exp.Column):
        table = column.args.get("table")
        if table is not None and table.name.upper() in names:
            column.set("table", exp.to_identifier(names[table.name.upper()]))
    turned = False
    for select in tree.find_all(exp.Select):
        joins, begin = select.args.get("joins") or [], select.args.get("from_")
        is_list = len(joins) == 1 and not (set(joins[0].args) - {"this"}) and not select.is_star
        # What a function gives as rows may name what stands before it.
        is_table = is_list and isinstance(joins[0].this.this, exp.Identifier)
        if is_table and begin is not None and isinstance(joins[0].this, exp.Table):
            first, second = begin.this.copy(), joins[0].this.copy()
            begin.set("this", second)
            joins[0].set("this", first)
            turned = True
    return tree.sql(dialect="oracle") if names or turned else None


@pytest.fixture(scope="module")
def target(postgres: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres) as connection:
        connection.execute(MAKE.encode())
        yield connection
        connection.rollback()


def test_a_copy_with_other_aliases_gives_the_same_rows(target: psycopg.Connection[Any]) -> None:
    compared, others = 0, list[tuple[str, str]]()

    def rows(text: str) -> list[str]:
        with target.transaction(force_rollback=True):
            return sorted(map(str, target.execute(text.encode()).fetchall()))

    for sample in samples():
        is_run = sample.owner == "HR" and "XML" not in sample.text
        if not is_run or translated(sample).startswith("refused"):
            continue
        copy = _copy(sample.text)
        if copy is None:
            continue
        # The library writes some functions otherwise: what it changes is no matter of aliases.
        plain = sqlglot.parse_one(sample.text, read="oracle").sql(dialect="oracle")
        if translated(sample, plain) != translated(sample):
            continue
        compared += 1
        found = translated(sample, copy)
        if found.startswith("refused") or rows(found) != rows(translated(sample)):
            others.append((copy, found))
    assert others == []
    assert compared >= 20
