"""Translates regular expressions (Oracle SQL Language Reference, “Oracle Regular Expression
Support”).

Since version 15, PostgreSQL has functions of the same names, with the same arguments in the same
order. But the patterns differ. In Oracle, a dot does not match a line break, a backslash before a
letter without a special meaning stands for that letter, and a backslash within brackets stands for
itself.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from olr_pg.schema.translating import Function, UntranslatableError, string_literal
from olr_pg.schema.value_kinds import BOOLEAN, INTEGER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot import exp

    from olr_pg.schema.translating import CallRule, Translated, Translator

_TOKEN: Final = re.compile(r"\\.|\[\^?\]?(?:\[[:.=].*?[:.=]\]|[^\]])*\]|.", re.DOTALL)
_CLASS: Final = re.compile(r"\[:\w+:\]")
_SAME_ESCAPES: Final = frozenset("dDwWsSA123456789")
_FLAGS: Final = {"i": "i", "c": "c", "n": "", "m": "w", "x": "x"}
_GREEDY: Final = re.compile(r"(?:[*+?]|\{\d+(?:,\d*)?\})(?!\?)")
_LAZY: Final = re.compile(r"(?:[*+?]|\{\d+(?:,\d*)?\})\?")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def pattern_text(pattern: str, flags: str = "") -> str:
    """Return the PostgreSQL pattern with the same meaning as a pattern of Oracle.

    Raises:
        UntranslatableError: PostgreSQL has no such pattern.
    """
    if "(?" in pattern or pattern.startswith("***") or "[." in pattern or "[=" in pattern:
        raise UntranslatableError(f"the regular expression {pattern!r}")
    pieces = list(_TOKEN.findall(pattern))
    bare = "".join("a" if len(piece) > 1 else piece for piece in pieces)
    if _LAZY.search(bare) and _GREEDY.search(_LAZY.sub("", bare)):
        raise UntranslatableError(
            f"the regular expression {pattern!r}: greedy and lazy repetitions together"
        )
    return "".join(_piece(piece, pattern, flags) for piece in pieces)


def _piece(piece: str, pattern: str, flags: str) -> str:
    if piece == ".":
        return "." if "n" in flags else r"[^\n]"
    if piece.startswith("["):
        return piece.replace("\\", "\\\\")
    if not piece.startswith("\\"):
        return piece
    letter = piece[1:]
    if letter == "z":
        return r"\Z"
    if letter == "Z":
        raise UntranslatableError(f"the regular expression {pattern!r}: \\Z")
    if letter in _SAME_ESCAPES or not letter.isalnum():
        return piece
    return letter


def _pattern(t: Translator, node: exp.Expr, flags: str) -> str:
    pattern = t.literal(node)
    if pattern is None:
        return t.text(node) if "n" in flags else f"('(?p)' || {t.text(node)})"
    return _quoted(pattern_text(pattern, flags))


def _flags(t: Translator, arguments: Sequence[exp.Expr], place: int) -> str:
    """Return the flags in the match parameter of the call; empty if it has none. Raise an error if
    PostgreSQL does not have one of the flags.
    """
    if len(arguments) <= place or t.is_null(arguments[place]):
        return ""
    flags = string_literal(t, arguments[place], "a match parameter").lower()
    if set(flags) - set(_FLAGS):
        raise UntranslatableError(f"a regular expression with the flags {flags}")
    return flags


def _may_be_empty(t: Translator, node: exp.Expr) -> bool:
    """Return whether a pattern can match an empty text. The two databases count such matches
    differently.
    """
    pattern = t.literal(node)
    if pattern is None:
        return False
    try:
        found = re.fullmatch(_CLASS.sub("a", pattern), "")
    except re.error:
        return True
    return found is not None and not set(pattern) <= set("^$")


def _call(name: str, kind: str, flags_at: int) -> CallRule:
    """Return the rule for a function whose arguments have the same order in both databases.

    Args:
        kind: the kind of the result, ``text`` or ``number``.
        flags_at: the index of the argument with the flags.
    """

    def translate(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
        flags = _flags(t, arguments, flags_at)
        if name == "REGEXP_COUNT" and _may_be_empty(t, arguments[1]):
            raise UntranslatableError("REGEXP_COUNT of a pattern that also matches the empty text")
        parts = [t.text(arguments[0]), _pattern(t, arguments[1], flags)]
        for at, argument in enumerate(arguments[2:], 2):
            parts.append(_target_flags(flags) if at == flags_at else t.integer(argument))
        found = f"{name}({', '.join(parts)})"
        return t.nonempty(found) if kind == "text" else (found, INTEGER)

    return translate


def _target_flags(flags: str) -> str:
    return _quoted("".join(_FLAGS[flag] for flag in flags))


def _like(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    flags = _flags(t, arguments, 2)
    text, pattern = t.text(arguments[0]), _pattern(t, arguments[1], flags)
    others = "".join(flag for flag in flags if flag in "mx")
    if others:
        return f"REGEXP_LIKE({text}, {pattern}, {_target_flags(flags)})", BOOLEAN
    operator = "~*" if flags.replace("n", "").endswith("i") else "~"
    return f"({text} {operator} {pattern})", BOOLEAN


def _replace(t: Translator, arguments: Sequence[exp.Expr]) -> Translated:
    flags = _flags(t, arguments, 5)
    by = "''"
    if len(arguments) > 2 and not t.is_null(arguments[2]):
        by = _replacement(t, arguments[2])
    if (by != "''" or len(arguments) > 3) and _may_be_empty(t, arguments[1]):
        raise UntranslatableError("REGEXP_REPLACE of a pattern that also matches the empty text")
    parts = [t.text(arguments[0]), _pattern(t, arguments[1], flags), by]
    if len(arguments) <= 3:
        more = ["'g'"]
        return t.nonempty(f"REGEXP_REPLACE({', '.join([*parts, *more])})")
    place = t.integer(arguments[3])
    nth = t.integer(arguments[4]) if len(arguments) > 4 else "0"
    more = [place, nth, *([_target_flags(flags)] if flags else [])]
    return t.nonempty(f"REGEXP_REPLACE({', '.join([*parts, *more])})")


def _replacement(t: Translator, node: exp.Expr) -> str:
    text = t.literal(node)
    if text is None:
        return t.text(node) if t.fact(node).filled else f"COALESCE({t.text(node)}, '')"
    if "\\" in re.sub(r"\\[1-9\\]", "", text):
        raise UntranslatableError(f"REGEXP_REPLACE by {text!r}")
    return _quoted(text)


FUNCTIONS: Final[dict[str, Function]] = {
    "REGEXP_COUNT": Function(_call("REGEXP_COUNT", "number", 3), 2, 4),
    "REGEXP_INSTR": Function(_call("REGEXP_INSTR", "number", 5), 2, 7),
    "REGEXP_LIKE": Function(_like, 2, 3),
    "REGEXP_REPLACE": Function(_replace, 2, 6),
    "REGEXP_SUBSTR": Function(_call("REGEXP_SUBSTR", "text", 4), 2, 6),
}
