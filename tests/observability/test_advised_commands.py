"""Commands in a text can be copied."""

from __future__ import annotations

import pytest

from olr_pg.observability.advised_commands import complete_commands


@pytest.mark.parametrize(
    ("text", "completed"),
    [
        ("run `olr-pg doctor`", "run `olr-pg doctor --config 'a b'`"),
        ("`olr-pg run --config FILE --once`", "`olr-pg run --once --config 'a b'`"),
        ("`olr-pg errors show 7`, then", "`olr-pg errors show 7 --config 'a b'`, then"),
        ("`olr-pg bench` is the same", "`olr-pg bench` is the same"),
        ("`olr-pg run --config x`", "`olr-pg run --config x`"),
        ("nothing of `psql`", "nothing of `psql`"),
    ],
)
def test_a_command_names_the_configuration_once(text: str, completed: str) -> None:
    assert complete_commands(text, "a b") == completed
    assert complete_commands(completed, "a b") == completed


@pytest.mark.parametrize("nobody", [None, ""])
def test_without_a_configuration_the_place_for_it_goes(nobody: str | None) -> None:
    assert complete_commands("`olr-pg run --config FILE`", nobody) == "`olr-pg run`"
