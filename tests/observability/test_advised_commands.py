"""Commands in texts, made complete."""

from __future__ import annotations

from olr_pg.errors import Code
from olr_pg.observability.advised_commands import commands_of_error, complete_commands


def test_commands_of_an_error_name_the_table_and_the_number() -> None:
    text = Code.CHANGE_REFUSED.action
    told = complete_commands(commands_of_error(text, "S.T", 17), "x.json")
    assert "`olr-pg errors show 17 --config x.json`" in told
    assert "`olr-pg errors retry S.T --config x.json`" in told
    assert "`olr-pg errors skip 17 --config x.json`" in told
    assert commands_of_error("`olr-pg errors show`", "S.T", 0) == "`olr-pg errors show`"


def test_what_takes_no_configuration_and_no_target_gets_none() -> None:
    text = "`olr-pg dump` `olr-pg run` `olr-pg logs --config FILE` `psql`"
    assert complete_commands(text, None) == text
    assert complete_commands(text, "a b", "eu") == (
        "`olr-pg dump` `olr-pg run --config 'a b'` `olr-pg logs --config 'a b'` `psql`"
    )


def test_what_is_complete_stays_as_it_is() -> None:
    done = complete_commands("`olr-pg errors list`", "a b", "eu")
    assert complete_commands(done, "a b", "eu") == done


def test_a_name_with_spaces_and_quotes_is_one_word() -> None:
    told = commands_of_error("`olr-pg initial-load --table OWNER.NAME`", 'S."it\'s x"', 1)
    assert told == """`olr-pg initial-load --table 'S."it'"'"'s x"'`"""
