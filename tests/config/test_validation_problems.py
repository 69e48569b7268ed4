"""Errors of a configuration in words."""

from __future__ import annotations

from olr_pg.config.validation_problems import Problem, format_key, may_hide_secret


def test_keys_are_written_as_in_the_file() -> None:
    assert format_key(("source", "logs", 1)) == "source.logs[1]"
    assert format_key((0, "name")) == "[0].name"
    assert format_key(()) == ""


def test_a_problem_says_what_is_there_where_that_may_be_shown() -> None:
    assert str(Problem("port", '"x"', "a number")) == 'port: found "x", expected a number'
    assert str(Problem("port", None, "missing")) == "port: missing"
    assert str(Problem("", None, "no JSON")) == "no JSON"


def test_what_may_be_a_secret_is_not_shown() -> None:
    assert may_hide_secret("postgresql://u:p@h/d")
    assert may_hide_secret("the PassWord")
    assert may_hide_secret("a" * 81)
    assert not may_hide_secret("a" * 80)
