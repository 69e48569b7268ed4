"""Numbers and names in words."""

from __future__ import annotations

import pytest

from olr_pg.observability.wording import counted, one_line, some, span, visible


@pytest.mark.parametrize(
    ("number", "words"),
    [(0, "0 logs"), (1, "1 log"), (2, "2 logs"), (1_200, "1,200 logs")],
)
def test_one_thing_is_no_plural(number: int, words: str) -> None:
    assert counted(number, "log") == words


def test_some_plurals_are_words_of_their_own() -> None:
    assert [counted(number, "entry", "entries") for number in (1, 2)] == ["1 entry", "2 entries"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "never"),
        (3.21, "3.2 s"),
        (61, "1 min 1 s"),
        (3_725, "1 h 2 min"),
        (2 * 86_400 + 7_300, "2 d 2 h"),
    ],
)
def test_spans(seconds: float | None, text: str) -> None:
    assert span(seconds) == text


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (1, "T0"),
        (3, "T0, T1, T2"),
        (4, "T0, T1, T2 and 1 more"),
        (1_500, "T0, T1, T2 and 1,497 more"),
    ],
)
def test_some_of_many_are_named(count: int, words: str) -> None:
    assert some([f"T{number}" for number in range(count)]) == words


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("A\x1b[2J\x1b]0;title\x07", "A\\x1b[2J\\x1b]0;title\\x07"),
        ("\x9b31m\x7f\r", "\\x9b31m\\x7f\\r"),
        ("user\u202etxt.exe\u2069", "user\\u202etxt.exe\\u2069"),
        ("Größe\t日本 $#", "Größe\t日本 $#"),
    ],
)
def test_a_terminal_executes_nothing_of_a_name(name: str, shown: str) -> None:
    assert visible(name) == one_line(name) == shown


def test_a_name_makes_no_lines_of_its_own() -> None:
    assert visible("A\nB") == "A\nB"
    assert one_line("A\nB\u2028C") == "A\\nB\\u2028C"
