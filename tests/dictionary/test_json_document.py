"""Dictionary files as JSON: what cannot be read, parsed or checked is told with its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pydantic import BaseModel

from olr_pg.dictionary.json_document import json_path, parse_object, read_bytes, validate
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from pathlib import Path


class Inner(BaseModel, extra="forbid"):
    name: str


class Outer(BaseModel):
    tables: list[Inner]


def test_a_document_is_read_with_or_without_a_byte_order_mark() -> None:
    assert parse_object(b"\xef\xbb\xbf" + b'{"a": 1}', "d.json") == {"a": 1}
    assert parse_object(b'{"a": 1}', "d.json") == {"a": 1}


@pytest.mark.parametrize(
    ("data", "code"), [(b'{"a":\n1,}', Code.DICTIONARY_NOT_JSON), (b"[1]", Code.NOT_A_DICTIONARY)]
)
def test_what_is_no_object_is_refused(data: bytes, code: Code) -> None:
    with pytest.raises(OlrPgError) as caught:
        parse_object(data, "d.json")
    assert caught.value.code == code


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    for path in (str(tmp_path / "none.json"), "a\0b"):
        with pytest.raises(OlrPgError) as caught:
            read_bytes(path)
        assert caught.value.code == Code.DICTIONARY_UNREADABLE


@pytest.mark.parametrize(
    ("inner", "said"),
    [
        ({}, "tables[0].name: the key is missing"),
        ({"name": "x", "nmae": 1}, "tables[0].nmae: there is no such key"),
        ({"name": 5}, "tables[0].name: should be a valid string, found 5"),
    ],
)
def test_what_is_wrong_is_named_by_its_path(inner: dict[str, object], said: str) -> None:
    with pytest.raises(OlrPgError) as caught:
        validate(Outer, {"tables": [inner]}, "d.json")
    assert caught.value.code == Code.DICTIONARY_INVALID
    assert said in str(caught.value)


def test_a_path_is_written_as_one_reads_it() -> None:
    assert json_path(("tables", 0, "columns", 2, "name")) == "tables[0].columns[2].name"
    assert json_path(()) == "(top level)"
