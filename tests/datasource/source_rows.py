"""The rows that the data source's tasks make, without Spark, as lines of the truth."""

from __future__ import annotations

import json
import random
import shutil
from datetime import datetime
from decimal import Decimal
from math import isinf, isnan
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa
from numpy import float32
from pyspark.sql.datasource import InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxBytes, ReadMaxFiles

from olr_pg.datasource.redo_stream import SourceOptions
from olr_pg.datasource.source import (
    RedoStreamReader,
    arrow_schema,
    changes_of_any_table,
    changes_schema,
)
from olr_pg.datasource.split_reading import SplitReader
from olr_pg.datasource.survey import Bounds, survey

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql.streaming.datasource import ReadLimit

    from tests.replicator.decoded_seeds import Source

_Placed = tuple[tuple[Any, ...], bytes]


def parsed(text: str | bytes) -> Any:
    """JSON with exact numbers."""
    return json.loads(text, parse_float=Decimal)


def true_changes(source: Source) -> list[dict[str, Any]]:
    """The rows of the truth, each with its place in its transaction."""
    found, position = [], 0
    for element in map(parsed, source.truth.splitlines()):
        if element["op"] == "begin":
            position = 0
        elif element["op"] != "commit":
            found.append(element | {"position": position})
            position += 1
    return found


def order(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["commit_scn"], row["xid"], row["position"], row["scn"], row["rowid"]


def true_lines(source: Source) -> bytes:
    """The lines of row changes, in the order of `lines_of`."""
    found: list[_Placed] = []
    position = 0
    for line in source.truth.splitlines():
        element = orjson.loads(line)
        if element["op"] == "begin":
            position = 0
        elif element["op"] != "commit":
            found.append((order(element | {"position": position}), line))
            position += 1
    return _joined(found)


def lines_of(batches: Iterable[pa.RecordBatch]) -> bytes:
    """Rows of all tables as ``olr-pg decode`` prints them; the images' bytes as they are."""
    return _joined((order(row), _line(row)) for batch in batches for row in batch.to_pylist())


def _joined(placed: Iterable[_Placed]) -> bytes:
    return b"".join(line + b"\n" for _, line in sorted(placed))


def _line(row: dict[str, Any]) -> bytes:
    head = {name: row[name] for name in ("op", "scn", "commit_scn", "xid")}
    head |= {"table": f"{row['owner']}.{row['table']}", "rowid": row["rowid"]}
    images = "".join(f',"{name}":{row[name]}' for name in ("before", "after") if row[name])
    return orjson.dumps(head)[:-1] + images.encode() + b"}"


def in_spark(schema: pa.Schema | None = None) -> pa.Schema:
    """Columns as Spark has them; by default those of all tables."""
    return arrow_schema(changes_of_any_table() if schema is None else schema)


def as_in_truth(row: Any) -> dict[str, Any]:
    """A row of a data frame of all tables as a line of the truth."""
    found = {name: row[name] for name in ("op", "scn", "commit_scn", "xid", "rowid", "position")}
    found["table"] = f"{row['owner']}.{row['table']}"
    images = {name: row[name] for name in ("before", "after") if row[name] is not None}
    return found | {name: parsed(image) for name, image in images.items()}


def read_rows(
    source: Source, split_bytes: int, table: str | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield what a query gives, task by task."""
    found = survey(
        source.snapshot, [str(source.folder / "logs")],
        tables=None if table is None else [table], split_bytes=split_bytes,
    )  # fmt: skip
    schema = in_spark(changes_schema(found.decoding, table))
    reader = SplitReader(found.decoding, schema, Bounds())
    for split in found.splits:
        yield from reader.read(split)


def stream_rows(source: Source, split_bytes: int, seed: int) -> Iterator[pa.RecordBatch]:
    """Yield what a stream gives, while logs come one by one and the query starts again at times.

    A batch that a restart comes across is made again: as Spark does, of the offsets that it noted.
    """
    chance = random.Random(seed)
    folder = source.folder / f"arriving-{split_bytes}"
    folder.mkdir()
    options = SourceOptions(
        (str(folder),), (str(source.folder / "dictionary.json"),), split_bytes=split_bytes
    )
    schema = from_arrow_schema(changes_of_any_table())
    reader = RedoStreamReader(options, schema)
    offset = reader.initialOffset()
    for log in source.logs:
        shutil.copy(log.path, folder)
        if chance.random() < 0.3:
            continue
        end = reader.latestOffset(offset, _limit(chance, split_bytes))
        while end != offset:
            if chance.random() < 0.3:
                reader = RedoStreamReader(
                    options._replace(split_bytes=chance.choice([split_bytes, 30_000])), schema
                )
            yield from _batch(reader, offset, end)
            offset = end
            end = reader.latestOffset(offset, _limit(chance, split_bytes))
    yield from rest_of_stream(RedoStreamReader(options, schema), offset)


def rest_of_stream(reader: RedoStreamReader, offset: dict[str, Any]) -> Iterator[pa.RecordBatch]:
    """Yield what is there, as ``Trigger.AvailableNow`` does."""
    reader.prepareForTriggerAvailableNow()
    limit = reader.getDefaultReadLimit()
    while (end := reader.latestOffset(offset, limit)) != offset:
        yield from _batch(reader, offset, end)
        offset = end


def _limit(chance: random.Random, split_bytes: int) -> ReadLimit:
    choices = [ReadAllAvailable(), ReadMaxFiles(1), ReadMaxFiles(3), ReadMaxBytes(2 * split_bytes)]
    return chance.choice(choices)


def _batch(
    reader: RedoStreamReader, start: dict[str, Any], end: dict[str, Any]
) -> Iterator[pa.RecordBatch]:
    for partition in reader.partitions(start, end):
        scn = 0
        for batch in reader.read(InputPartition(partition.value)):
            scns: list[Any] = batch.column("commit_scn").to_pylist()
            assert scns == sorted(scns)
            assert scns[0] >= scn
            scn = scns[-1]
            yield batch


def as_json(value: Any, like: Any) -> Any:
    """A typed value as ``olr-pg decode`` prints it."""
    match value:
        case bytes() | bytearray():
            return value.hex()
        case datetime():
            # Of a time with its zone only the moment stays, which Spark shows as local time.
            shown = datetime.fromisoformat(like)
            return like if shown == (value.astimezone() if shown.tzinfo else value) else value
        case Decimal():
            return like if like == value else value
        case float() if isinstance(like, str):
            return like if isnan(value) or isinf(value) else value
        case float():
            return like if float32(like) == float32(value) else value
        case str() if not isinstance(like, str):
            return parsed(value)
    return value


def typed_difference(rows: Iterable[dict[str, Any]], wanted: list[dict[str, Any]]) -> str | None:
    """The first typed value of a table that is not the truth's, in words; None: all are."""
    found = sorted(rows, key=order)
    if len(found) != len(wanted):
        return f"{len(found)} rows, not {len(wanted)}"
    for row, change in zip(found, sorted(wanted, key=order), strict=True):
        for image in ("before", "after"):
            values, known = row[image] or {}, change.get(image, {})
            for name, value in values.items():
                shown = None if value is None else as_json(value, known.get(name))
                if shown != known.get(name):
                    return f"{order(row)} {image} {name}: {value!r} is not {known.get(name)!r}"
            if known.keys() - values.keys():
                return f"{order(row)} {image}: {known.keys() - values.keys()} are missing"
    return None


def stream_difference(query: list[dict[str, Any]], stream: list[dict[str, Any]]) -> str | None:
    """What of a stream is not as of a query, in words; None: nothing is.

    Of a redo thread that is ahead of another one, the last split may be waiting.
    """
    waiting = set[int]()
    threads = {row["thread"] for row in query}
    for thread in sorted(threads):
        wanted = sorted((row for row in query if row["thread"] == thread), key=order)
        found = sorted((row for row in stream if row["thread"] == thread), key=order)
        if found != wanted[: len(found)]:
            return f"the stream of thread {thread} has other rows"
        if len(found) < len(wanted):
            waiting.add(thread)
    return f"threads {waiting} of {threads} wait" if waiting == threads and threads else None


def source_difference(source: Source, split_bytes: int, seed: int) -> str | None:
    """What rows differ from the truth, of queries and of a stream, in words; None: none do."""
    batches = list(read_rows(source, split_bytes))
    lines, truth = lines_of(batches), true_lines(source)
    if lines != truth:
        pairs = zip(lines.splitlines(), truth.splitlines(), strict=False)
        first = next((pair for pair in pairs if pair[0] != pair[1]), "one is longer")
        return f"the query, splits of {split_bytes}: {first}"
    query = [row for batch in batches for row in batch.to_pylist()]
    stream = [row for one in stream_rows(source, split_bytes, seed) for row in one.to_pylist()]
    found = stream_difference(query, stream)
    if found is not None:
        return f"splits of {split_bytes}: {found}"
    changes = true_changes(source)
    for table in sorted({change["table"] for change in changes}):
        rows = (row for one in read_rows(source, split_bytes, table) for row in one.to_pylist())
        wanted = [change for change in changes if change["table"] == table]
        found = typed_difference(rows, wanted)
        if found is not None:
            return f"{table}, splits of {split_bytes}: {found}"
    return None
