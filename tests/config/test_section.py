"""What holds for every object of the configuration file."""

from __future__ import annotations

import pytest
from pydantic import Field, ValidationError

from olr_pg.config.section import Section


class _Example(Section):
    poll_ms: int = Field(default=1)


def test_keys_have_dashes_and_no_others_are_known() -> None:
    assert _Example.model_validate({"poll-ms": 5}).poll_ms == 5
    for wrong in ({"poll_ms": 5}, {"poll-ms": 5, "other": 1}):
        with pytest.raises(ValidationError):
            _Example.model_validate(wrong)


def test_types_are_not_guessed_and_values_stay() -> None:
    with pytest.raises(ValidationError):
        _Example.model_validate({"poll-ms": "5"})
    with pytest.raises(ValidationError):
        setattr(_Example(), "poll_ms", 2)  # noqa: B010 - mypy would refuse the plain form


def test_errors_do_not_show_what_is_in_the_file() -> None:
    with pytest.raises(ValidationError) as caught:
        _Example.model_validate({"poll-ms": "s3cret"})
    assert "s3cret" not in str(caught.value)
