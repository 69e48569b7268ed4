"""The tree of a parsed condition: comparisons under AND, OR and NOT."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias


class LiteralKind(Enum):
    """The kinds of literals that Oracle's SQL has."""

    NUMBER = "a number"
    TEXT = "a text"
    DATE = "a DATE"
    TIMESTAMP = "a TIMESTAMP"


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal. `text` contains the digits of a number, the characters of a text, or the text
    between the quotes of a date or timestamp.
    """

    kind: LiteralKind
    text: str


class Comparison(Enum):
    """The comparisons of a column with a literal; the value is the SQL operator."""

    EQUAL = "="
    NOT_EQUAL = "<>"
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="


@dataclass(frozen=True, slots=True)
class Compared:
    """``column operator literal``."""

    column: str
    operator: Comparison
    literal: Literal


@dataclass(frozen=True, slots=True)
class Matched:
    """``column LIKE pattern``; `escape` is empty if there is no ESCAPE clause."""

    column: str
    pattern: str
    escape: str = ""


@dataclass(frozen=True, slots=True)
class IsNull:
    """``column IS NULL``."""

    column: str


@dataclass(frozen=True, slots=True)
class Every:
    """AND of all `parts`."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Any:
    """OR of all `parts`."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Negated:
    """NOT `part`."""

    part: Node


Node: TypeAlias = Compared | Matched | IsNull | Every | Any | Negated


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition.

    Attributes:
        text: the condition as the user wrote it.
        tree: the parsed condition.
        columns: the names of its columns, in the order of their first use.
    """

    text: str
    tree: Node
    columns: tuple[str, ...]
