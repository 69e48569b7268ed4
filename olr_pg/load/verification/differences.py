"""Reads and writes the file of differences: JSON Lines, for people and for `olr-pg repair`.

The first line identifies the format. A line with ``"columns"`` begins a table. Every other line is
one row: its kind, its key, the columns that differ, both rows as JSON, and both images in base 64,
which `repair` uses.
"""

from __future__ import annotations

import base64
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from olr_pg.errors import Code, OlrPgError, plain_reason, system_reason
from olr_pg.files import owned
from olr_pg.files.sealed import stored_rows
from olr_pg.load.canonical import fields_of, shown
from olr_pg.load.verification.target_state import TargetState
from olr_pg.load.verification.verification import RowDifference

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from psycopg import Connection

    from olr_pg.load.verification.verification import VerifiedTable

FORMAT: Final = "olr-pg-differences/3"
STATE: Final = ("applied_scn", "applied_xids", "conflicts", "files")
"""Keys of a table's line that contain `TargetState`."""


class TableDifferences(NamedTuple):
    """The differences of one table in the file.

    Attributes:
        table: ``OWNER.NAME``.
        columns: names of the compared columns, in the order of the images.
        types: for each column, the OID of the type of its canonical form.
        key: names of the key's columns; empty without a key.
        state: the state of the target's table during the comparison.
    """

    table: str
    schema: str
    name: str
    columns: tuple[str, ...]
    types: tuple[int, ...]
    key: tuple[str, ...]
    rows: list[RowDifference]
    state: TargetState


def difference_lines(
    connection: Connection[Any], subscription: str, results: Iterable[VerifiedTable]
) -> Iterator[dict[str, Any]]:
    """Yield the lines of the file."""
    yield {"format": FORMAT, "subscription": subscription}
    for result in results:
        if not result.differences:
            continue
        target, compared = result.table.target, result.compared
        yield {
            "table": result.table.source.full_name,
            "target": [target.schema, target.name],
            "columns": [column.name for column in compared.columns],
            "types": [column.base_oid for column in compared.columns],
            "key": [column.name for column in compared.key_columns] if compared.keyed else [],
            "scn": result.scn,
            "applied_scn": result.applied_scn,
            "applied_xids": list(result.state.position[1]),
            "conflicts": result.state.conflicts,
            "files": [list(one) for one in result.state.files],
        }
        for difference in result.differences:
            yield _line(connection, result, difference)


def _line(
    connection: Connection[Any], result: VerifiedTable, difference: RowDifference
) -> dict[str, Any]:
    compared = result.compared
    line: dict[str, Any] = {"kind": difference.kind}
    if compared.keyed:
        line["key"] = shown(connection, fields_of(difference.key, compared.key_columns))
    sides = [
        None if image is None else fields_of(image, compared.columns)
        for image in (difference.source, difference.target)
    ]
    if sides[0] is not None and sides[1] is not None:
        line["differing"] = [
            ours.column.name
            for ours, theirs in zip(*sides, strict=True)
            if ours.value != theirs.value
        ]
    images = (difference.source, difference.target)
    for name, fields, image in zip(("source", "target"), sides, images, strict=True):
        line[name] = None if fields is None else shown(connection, fields)
        line[f"{name}_image"] = None if image is None else base64.b64encode(image).decode()
    if difference.copies is not None:
        line["target_copies"] = difference.copies
    if difference.version is not None:
        line["target_version"] = difference.version
    line["key_image"] = base64.b64encode(difference.key).decode()
    return line


_NAME_ANOTHER: Final = (
    "name a file in a directory in which this user can write, with enough free space"
)


def check_writable(path: Path) -> None:
    """Check that a file of differences can be written, before the comparison begins.

    Raises:
        OlrPgError: 5112, the file cannot be written.
    """
    with _writing(path):
        owned.check_writable(path)


def write_differences(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    """Write the file.

    Raises:
        OlrPgError: 5112, the file cannot be written.
    """
    # The file will contain values of rows.
    with _writing(path), owned.written_whole(path, 0o600) as file:
        for line in lines:
            file.write(orjson.dumps(line, default=str) + b"\n")


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OlrPgError(
            Code.DIFFERENCES_FILE_UNUSABLE,
            system_reason(error),
            action=_NAME_ANOTHER,
            file=str(path),
        ) from error


def read_differences(path: Path, subscription: str) -> list[TableDifferences]:
    """Read the file.

    Raises:
        OlrPgError: 5112, the file cannot be read, has another format, or belongs to another
            subscription.
    """
    try:
        lines = stored_rows(path).splitlines()
        return _tables([_parsed(*line) for line in enumerate(lines, 1)], subscription)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise OlrPgError(
            Code.DIFFERENCES_FILE_UNUSABLE, plain_reason(error), file=str(path)
        ) from error


def _parsed(number: int, line: bytes) -> dict[str, Any]:
    try:
        parsed = orjson.loads(line)
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        raise ValueError(f"line {number} is not a JSON object")
    return parsed


def _tables(lines: Sequence[dict[str, Any]], subscription: str) -> list[TableDifferences]:
    if not lines or lines[0].get("format") != FORMAT:
        raise ValueError(f"expected format {FORMAT!r}")
    if lines[0]["subscription"] != subscription:
        raise ValueError(f"the file belongs to the subscription {lines[0]['subscription']!r}")
    tables = list[TableDifferences]()
    for line in lines[1:]:
        if not tables and "columns" not in line:
            raise ValueError("a row precedes the line of its table")
        if "columns" in line:
            schema, name = line["target"]
            names = (tuple(line["columns"]), tuple(line["types"]), tuple(line["key"]))
            tables.append(TableDifferences(line["table"], schema, name, *names, [], _state(line)))
        else:
            tables[-1].rows.append(_difference(line))
    return tables


def _state(line: dict[str, Any]) -> TargetState:
    position = line["applied_scn"], tuple(line["applied_xids"])
    files = tuple((int(oid), int(file), int(columns)) for oid, file, columns in line["files"])
    return TargetState(line["conflicts"], position, files)


def _difference(line: dict[str, Any]) -> RowDifference:
    source, target = (
        None if line[name] is None else base64.b64decode(line[name], validate=True)
        for name in ("source_image", "target_image")
    )
    key = base64.b64decode(line["key_image"], validate=True)
    copies, version = line.get("target_copies"), line.get("target_version")
    return RowDifference(line["kind"], key, source, target, copies, version)
