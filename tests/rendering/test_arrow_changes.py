"""Changes as record batches: value by value what the truth of a simulated database says."""

from __future__ import annotations

import gc
import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from olr_pg.datatypes.mapping import OracleType
from olr_pg.dictionary.model import Column, Database, Table
from olr_pg.errors import OlrPgError
from olr_pg.redo.sessions import SessionDirectory
from olr_pg.rendering.arrow_changes import ChangeFacts
from olr_pg.replicator.decode_once import DecodingOptions, chosen_tables, decode_logs
from olr_pg.scalars import encode_redo_time, pack_xid
from olr_pg.wire.elements import Begin, ColumnValue, Commit, Delete, Element, Insert, Update
from tests.rendering.change_batches import ChangeBatches, changes_schema
from tests.rendering.messages import framed
from tests.replicator.decoded_seeds import simulated

if TYPE_CHECKING:
    from pathlib import Path

XID = pack_xid(1, 2, 3)
WHEN = datetime(2026, 2, 28, 23, 59, 58)  # noqa: DTZ001 - local time of the source


def number(name: str, value: bytes | None = None, precision: int | None = 5) -> ColumnValue:
    scale = None if precision is None else 0
    return ColumnValue(name, OracleType.NUMBER, precision, scale, value=value)


def table(*columns: Column) -> Table:
    return Table("SHOP", "A", 7, 8, columns)


def column(name: str, place: int, code: int = OracleType.NUMBER, **facts: Any) -> Column:
    return Column(name, place, place, place, code, 22, **facts)


ID, COUNT = column("ID", 1, precision=5, scale=0), column("COUNT", 2)
TABLE = table(ID, COUNT)


def row(kind: type[Insert | Update | Delete], **images: tuple[ColumnValue, ...]) -> Element:
    return kind(
        scn=8, commit_scn=9, xid=XID, timestamp=0, object_id=7, schema="SHOP", table="A",
        rowid="AAASJ7AAAAAAAFkAAA", **images,
    )  # fmt: skip


def transaction(*rows: Element) -> list[Element]:
    time = encode_redo_time(WHEN)
    return [Begin(7, 9, XID, 1, 5, 6), *rows, Commit(9, 9, XID, time)]


def batches(*elements: Element, of: Table = TABLE, **options: Any) -> list[dict[str, Any]]:
    made = ChangeBatches(of, Database("DB"), **options)
    assert made.schema == changes_schema(of)
    found = list(made.feed(framed(*elements)))
    for batch in found:
        batch.validate(full=True)
        assert batch.schema == made.schema
    return [one for batch in found for one in batch.to_pylist()]


ONE, TWO = b"\xc1\x02", b"\xc1\x03"
FACTS = {
    "commit_scn": 9,
    "commit_time": WHEN,
    "scn": 8,
    "xid": "1.2.3",
    "rowid": "AAASJ7AAAAAAAFkAAA",
    "thread": None,
    "login_user": None,
    "os_user": None,
    "machine": None,
    "program": None,
}


def test_each_kind_has_the_images_that_it_has() -> None:
    made = batches(
        *transaction(
            row(Insert, after=(number("ID", ONE), number("COUNT", TWO, None))),
            row(Update, before=(number("ID", ONE),), after=(number("COUNT", None, None),)),
            row(Delete, before=(number("ID", ONE), number("COUNT", TWO, None))),
        )
    )
    one = {"ID": Decimal(1), "COUNT": "2"}
    assert made == [
        {"op": "insert", "position": 0, **FACTS, "before": None, "after": one},
        {
            "op": "update",
            "position": 1,
            **FACTS,
            "before": {"ID": Decimal(1), "COUNT": None},
            "after": {"ID": None, "COUNT": None},
        },
        {"op": "delete", "position": 2, **FACTS, "before": one, "after": None},
    ]


def test_rows_of_other_tables_count_in_the_position_only() -> None:
    other = Insert(
        scn=8, commit_scn=9, xid=XID, timestamp=0, object_id=9, schema="SHOP", table="B",
        rowid="", after=(number("ID", ONE),),
    )  # fmt: skip
    made = batches(*transaction(other, row(Insert, after=(number("ID", TWO),)), other))
    assert [(one["position"], one["after"]["ID"]) for one in made] == [(1, Decimal(2))]
    assert batches(*transaction(other)) == []


def test_columns_of_other_definitions_are_converted_or_left_out() -> None:
    made = batches(
        *transaction(
            row(Insert, after=(number("ID", ONE, 2), number("GONE", ONE))),
            row(Insert, after=(number("ID", TWO),)),
        )
    )
    assert [one["after"]["ID"] for one in made] == [Decimal(1), Decimal(2)]
    large = b"\xc4\x02\x01\x01\x02"  # 1,000,001
    with pytest.raises(OlrPgError) as caught:
        batches(*transaction(row(Insert, after=(number("ID", large, 9),))))
    assert (caught.value.code, caught.value.where["column"]) == (2053, "ID")


@pytest.mark.parametrize(
    ("value", "code"), [(b"\xc1\xff\xff", 2050), (b"\xc0\x02", 2057), (b"\xc4\x02", 2053)]
)
def test_a_value_that_does_not_fit_is_named_with_its_place(value: bytes, code: int) -> None:
    with pytest.raises(OlrPgError) as caught:
        batches(
            *transaction(
                row(Insert, after=(number("ID", ONE),)), row(Insert, after=(number("ID", value),))
            )
        )
    assert caught.value.code == code
    where = caught.value.where
    assert (where["table"], where["column"], where["xid"], where["scn"]) == (
        "SHOP.A",
        "ID",
        "1.2.3",
        8,
    )


def test_a_table_of_every_type_has_a_schema() -> None:
    every = [column(code.name, place + 1, code) for place, code in enumerate(OracleType)]
    image = changes_schema(table(*every)).field("after").type
    kinds = {field.name: field.type for field in image}
    assert kinds["BOOLEAN"] == pa.bool_()
    assert kinds["RAW"] == kinds["BLOB"] == pa.binary()
    assert kinds["TIMESTAMP_TZ"] == pa.timestamp("us", "UTC")


def plain(value: Any, truth: Any) -> Any:
    """A value of a batch as the truth has it."""
    if value is None or isinstance(truth, str) == isinstance(value, str):
        return float(value) if isinstance(value, float) else value
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime):
        when = datetime.fromisoformat(truth)
        return truth if value == (when.astimezone(UTC) if value.tzinfo else when) else value
    return Decimal(str(value)) if isinstance(value, str) else value


@pytest.mark.parametrize(
    ("seed", "workload"),
    [
        (1, "random"),
        # Without an added column: the tables are those of the first dictionary here.
        (10, "random"),
        (3, "random"),
        (4, "orders"),
        (5, "lobs"),
        (6, "wide"),
        (7, "bulk"),
    ],
)
def test_the_rows_of_every_table_are_the_truth(tmp_path: Path, seed: int, workload: str) -> None:
    source = simulated(tmp_path, seed, workload, 300_000)
    logs = [str(tmp_path / "logs")]
    truth = [json.loads(line, parse_float=Decimal) for line in source.truth.splitlines()]
    rows = [line for line in truth if "table" in line]
    sessions = SessionDirectory()
    blobs = [
        bytes(blob)
        for blob in decode_logs(source.snapshot, logs, options=DecodingOptions(sessions=sessions))
    ]
    seen = 0
    for one in chosen_tables(source.snapshot, None):
        made = ChangeBatches(one, source.snapshot.database)
        found = [row for blob in blobs for batch in made.feed(blob) for row in batch.to_pylist()]
        wanted = [row for row in rows if row["table"] == one.full_name]
        assert len(found) == len(wanted)
        for change, expected in zip(found, wanted, strict=True):
            for name in ("op", "scn", "commit_scn", "xid", "rowid"):
                assert change[name] == expected[name]
            for image in ("before", "after"):
                assert (change[image] is None) == (image not in expected)
                names = set(change[image] or ()) | set(expected.get(image, ()))
                for name in names:
                    value = (change[image] or {}).get(name)
                    told = expected.get(image, {}).get(name)
                    if isinstance(told, Decimal | int) and isinstance(value, float):
                        told, value = float(told), float(value)
                    if isinstance(told, Decimal | int) and isinstance(value, str):
                        value = Decimal(value)
                    assert plain(value, told) == told, (one.full_name, image, name)
        seen += len(found)
    assert seen == len(rows)


def test_changes_are_freed_with_their_batches() -> None:
    gc.collect()
    gc.disable()
    try:
        batches(*transaction(row(Insert, after=(number("ID", ONE),))))
        assert not [one for one in gc.get_objects() if type(one) is ChangeFacts]
    finally:
        gc.enable()
