"""A condition as a tree: every form of the language, and the columns that it names."""

from __future__ import annotations

from olr_pg.conditions.parse import parse_condition
from olr_pg.conditions.tree import (
    Any,
    Compared,
    Comparison,
    Every,
    IsNull,
    Literal,
    LiteralKind,
    Matched,
    Negated,
)


def test_the_tree_of_a_condition_has_every_form() -> None:
    parsed = parse_condition("NOT (A IS NULL) AND (B LIKE 'x%' OR C >= 7) AND A <> 'y'")
    assert parsed.columns == ("A", "B", "C")
    nodes, forms = [parsed.tree], set()
    while nodes:
        node = nodes.pop()
        forms.add(type(node))
        match node:
            case Every(parts) | Any(parts):
                nodes += parts
            case Negated(part):
                nodes.append(part)
    assert forms == {Every, Any, Negated, IsNull, Matched, Compared}


def test_trees_of_equal_conditions_are_equal() -> None:
    one = parse_condition("A = 1").tree
    assert one == Compared("A", Comparison.EQUAL, Literal(LiteralKind.NUMBER, "1"))
    assert one == parse_condition("a=1").tree
    assert hash(one) == hash(parse_condition("a=1").tree)
