"""Composite images in parts."""

from __future__ import annotations

from olr_pg.applier.target.catalogue import TargetColumn
from olr_pg.applier.target.connection import connect
from olr_pg.datatypes.columns import column_of
from olr_pg.datatypes.mapping import PgKind
from olr_pg.load.composite import ImageField, _read, fields_of, placeholder, shown
from olr_pg.load.row_images import composites
from tests.applier.target.test_database_kind import encoded


def column(kind: PgKind, name: str) -> TargetColumn:
    return TargetColumn("c", int(kind), int(kind), name, False, "")


def test_an_image_is_its_fields() -> None:
    columns = (column(PgKind.TEXT, "text"), column(PgKind.BYTEA, "bytea"))
    image = composites([column_of([b""]), column_of([None])], 1, (25, 17)).image(0)
    assert [field.value for field in fields_of(image, columns)] == [b"", None]


def test_what_is_compared_as_text_is_made_its_own_type_again() -> None:
    assert placeholder(column(PgKind.TEXT, "text")).as_string(None) == "%b::text"
    assert placeholder(column(PgKind.XML, "xml")).as_string(None) == "%b::text::xml"


def test_a_document_that_readers_may_not_take_is_a_string() -> None:
    assert _read('{"a": [1, "x"]}') == {"a": [1, "x"]}
    assert _read(None) is None
    for text in ("[" * 3_000 + "]" * 3_000, "123456789012345678901234567890"):
        assert _read(text) == text


def test_a_text_that_the_target_cannot_have_is_shown_all_the_same(postgres: str) -> None:
    """Its encoding lacks a character: the row of the source is missing for that reason."""
    text = column(PgKind.TEXT, "text")
    fields = [
        ImageField(text._replace(name=name), value.encode())
        for name, value in (("known", "\u00fc"), ("unknown", "\u0436"))
    ]
    fields.append(ImageField(text._replace(name="none"), None))
    with (
        encoded(postgres, "LATIN1") as database,
        connect(database) as connection,
    ):
        found = shown(connection, fields)
    assert found == {"known": "\u00fc", "unknown": "\u0436", "none": None}
