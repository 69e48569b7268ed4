"""Redaction: known secrets, keys, URLs and parameters."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from olr_pg.observability.redaction import MASK, Redactor, mask, register_secrets


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nothing here", "nothing here"),
        ("postgresql://u:hunter2@h:5432/d", "postgresql://u:***@h:5432/d"),
        ("oracle+oracledb://u:a%40b@h", "oracle+oracledb://u:***@h"),
        ("postgresql://u:p@ss@wo@h/d", "postgresql://u:***@h/d"),
        ("host=h password=hunter2 dbname=d", "host=h password=*** dbname=d"),
        ("password = 'a b\\' c' x", "password = *** x"),
        ("?user=u&password=hunter2&x=1", "?user=u&password=***&x=1"),
        ('{"password": "hunter2", "x": 1}', '{"password": ***, "x": 1}'),
        ("source.password: is missing", "source.password: is missing"),
        ("http://host:8080/path@x", "http://host:8080/path@x"),
    ],
)
def test_passwords_in_texts(text: str, expected: str) -> None:
    assert expected == Redactor().text(text)


@pytest.mark.parametrize("key", ["password", "ora_password", "connect-string", "conninfo", "dsn"])
def test_values_under_secret_keys(key: str) -> None:
    assert Redactor().entry(key, "x") == MASK
    assert Redactor().entry(key, {"a": "x"}) == MASK
    assert Redactor().entry(key, None) is None


def test_containers_are_redacted_inside() -> None:
    value = {"a": ["x hunter2", {"password": "x"}], "n": 1, "p": Path("/hunter2"), "b": b"hunter2"}
    expected = {"a": ["x ***", {"password": MASK}], "n": 1, "p": "/***", "b": MASK}
    assert expected == Redactor(["hunter2"]).value(value)
    assert Redactor().value(SecretStr("x")) == MASK


def test_percent_encoded_forms_are_known_too() -> None:
    assert Redactor(["p@ss word"]).text("x p%40ss%20word y") == "x *** y"


def test_a_secret_that_is_part_of_another_leaves_nothing_of_it() -> None:
    assert Redactor(["abcd", "abcdefgh"]).text("abcdefgh") == "***"


def test_what_drivers_say_is_masked_with_the_secrets_of_the_process() -> None:
    register_secrets(["hunter2"])
    try:
        assert mask("no host hunter2") == "no host ***"
    finally:
        register_secrets([])
    assert mask("no host hunter2") == "no host hunter2"


def test_short_secrets_do_not_shred_ordinary_text() -> None:
    assert Redactor(["a"]).text("a cat") == "a cat"


@given(
    st.text(st.characters(codec="utf-8"), min_size=4, max_size=20).filter(lambda s: "*" not in s),
    st.text(max_size=20),
    st.text(max_size=20),
)
def test_a_known_secret_never_comes_through(secret: str, before: str, after: str) -> None:
    assert secret not in str(Redactor([SecretStr(secret)]).text(before + secret + after))
