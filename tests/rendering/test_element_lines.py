"""Values of elements as JSON values."""

from __future__ import annotations

import orjson
import pytest

from olr_pg.datatypes.number import encode_number
from olr_pg.dictionary.model import Database
from olr_pg.errors import OlrPgError
from olr_pg.wire.elements import ColumnValue
from tests.rendering.element_lines import value_renderer

NUMBER, VARCHAR2 = 2, 1


def column(type_code: int, value: bytes | None, charset: int | None = None) -> ColumnValue:
    return ColumnValue("C", type_code, charset_id=charset, charset_form=1, value=value)


def test_the_database_says_which_character_set_it_is() -> None:
    render = value_renderer(Database("DB", charset="WE8ISO8859P1"))
    assert render(column(VARCHAR2, b"\xe4")) == "ä"
    national = ColumnValue("N", VARCHAR2, charset_form=2, value="ä".encode("utf-16-be"))
    assert render(national) == "ä"
    assert orjson.dumps(render(column(NUMBER, encode_number(5)))) == b"5"


def test_bytes_that_are_no_value_are_refused() -> None:
    render = value_renderer(Database("DB"))
    with pytest.raises(OlrPgError) as caught:
        render(column(NUMBER, b"\xc1\xff\xff\xff"))
    assert caught.value.code == 2050
