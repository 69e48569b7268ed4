"""Addresses: the three forms, and what is none of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.config.address import Address, parse_address


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("127.0.0.1:9700", Address("127.0.0.1", 9700)),
        ("db-1.example.com:1", Address("db-1.example.com", 1)),
        (":9700", Address("127.0.0.1", 9700)),
        (" 0.0.0.0:0 ", Address("0.0.0.0", 0)),
        ("[::1]:65535", Address("::1", 65535)),
        ("[fe80::1%eth0]:9", Address("fe80::1%eth0", 9)),
    ],
)
def test_the_three_forms_are_read(text: str, expected: Address) -> None:
    assert expected == parse_address(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "localhost",
        "9700",
        "localhost:",
        "localhost:-1",
        "localhost:65536",
        "localhost:٣",
        "localhost:1.5",
        "::1:9700",
        "[::1]",
        "[::1:9700",
        "[localhost]:9700",
        "http://localhost:9700",
        "user@localhost:9700",
        "a b:9700",
    ],
)
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"port|host|brackets"):
        parse_address(text)


@given(st.sampled_from(["h", "10.0.0.1", "::1", "fe80::2"]), st.integers(0, 65535))
def test_the_printed_form_is_read_back(host: str, port: int) -> None:
    assert Address(host, port) == parse_address(str(Address(host, port)))


@given(st.text(max_size=30))
def test_any_text_gives_an_address_or_a_value_error(text: str) -> None:
    try:
        address = parse_address(text)
    except ValueError:
        return
    assert address.host
    assert 0 <= address.port <= 65535
