"""Values of protocol elements as JSON values, by the character sets and zone of their database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from olr_pg.datatypes.json_values import json_converter

if TYPE_CHECKING:
    from olr_pg.cli.render import ValueRenderer
    from olr_pg.datatypes.json_values import JsonConverter
    from olr_pg.dictionary.model import Database
    from olr_pg.wire.elements import ColumnValue


def value_renderer(database: Database) -> ValueRenderer:
    """Make what renders values of `database`; conversions are made once per type.

    The renderer raises OlrPgError 2050, 2051 or 2056 for bytes that are no value of the type and
    for character sets without a decoder.
    """
    converters: dict[tuple[int, int | None, int | None], JsonConverter] = {}

    def render(column: ColumnValue) -> Any:
        key = (column.type_code, column.charset_id, column.charset_form)
        converter = converters.get(key)
        if converter is None:
            converter = converters[key] = json_converter(
                column.described(),
                charset=database.charset,
                ncharset=database.ncharset,
                timezone=database.timezone,
            )
        return converter(column.value)

    return render
