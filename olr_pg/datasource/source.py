"""Implements ``spark.read.format("olr_pg")`` and ``spark.readStream.format("olr_pg")``: the changes
in archived redo as a DataFrame.

Spark calls this code in three kinds of processes. The first process returns the columns
(`RedoSource.schema`); for this it makes the survey. Spark then passes the source, with the survey,
to a second process, which returns the tasks (`RedoReader.partitions`). Workers return the rows
(`RedoReader.read`). The reader contains the data that all tasks share; it is sent to the workers
once.

The source does not accept the conditions of a query. Spark 4 would store the tasks that such a
condition leaves in the data frame: all other queries of this data frame would then read only these
tasks, and would lose rows without an error (Spark 5 stores them for each query).

A stream reads committed transactions batch by batch. One long-lived process returns the offsets and
the tasks of batches (`RedoStreamReader` with its `redo_stream.RedoStream`). Workers return the
rows. A worker gets a reader without state, because each task contains the data that it needs.
"""

from __future__ import annotations

import pickle
import zlib
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, cast

import pyarrow as pa
import structlog
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from olr_pg.datasource.redo_stream import BEGINNING, Limit, RedoStream, parse_offset, parse_options
from olr_pg.datasource.split_reading import SplitReader, storage
from olr_pg.datasource.survey import survey
from olr_pg.decoding.heap import keep_freed_memory
from olr_pg.dictionary.loader import load_dictionary
from olr_pg.errors import Code, OlrPgError
from olr_pg.redo.sessions import SessionAttributes
from olr_pg.rendering.arrow_types import arrow_type
from olr_pg.replicator.decode_once import chosen_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence

    from pyspark.sql import SparkSession

    from olr_pg.datasource.redo_stream import SourceOptions, StreamSplit
    from olr_pg.datasource.survey import Decoding, RedoSplit, Survey
    from olr_pg.dictionary.model import Column, Snapshot, Table


class RedoStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans and reads the batches of one query.

    Args:
        schema: the wanted columns.
        check: called before each batch with what was surveyed; it raises an error if the columns do
            not fit any more.
    """

    def __init__(
        self,
        options: SourceOptions,
        schema: StructType,
        check: Callable[[Decoding], None] | None = None,
    ) -> None:
        self._options = options
        self._schema = schema
        self._check = check
        self._stream: RedoStream | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for the workers, without the survey."""
        return {**self.__dict__, "_stream": None}

    @property
    def stream(self) -> RedoStream:
        """The redo of the stream, surveyed up to now; it is created on first use."""
        if self._stream is None:
            self._stream = RedoStream(self._options, storage())
        return self._stream

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return the offset that lies before all redo."""
        return BEGINNING.as_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return the maximum size of a batch."""
        if self._options.max_files is not None:
            return ReadMaxFiles(self._options.max_files)
        if self._options.max_bytes is not None:
            return ReadMaxBytes(self._options.max_bytes)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """From now on, use only the logs that are available now."""
        self.stream.fix()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Return the end offset of the next batch."""
        most = Limit(
            files=limit.max_files if isinstance(limit, ReadMaxFiles) else None,
            size=limit.max_bytes if isinstance(limit, ReadMaxBytes) else None,
        )
        return self.stream.latest(parse_offset(start), most).as_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the tasks of a batch.

        Raises:
            OlrPgError: as for `RedoStream.splits`; 6222, DDL has changed the table's columns; 6040,
                a column does not exist.
        """
        first = parse_offset(start)
        splits = self.stream.splits(first, parse_offset(end))
        if not splits:
            return []
        surveyed = self.stream.decoding()
        if first == BEGINNING:  # later, DDL may have renamed columns
            check_images(self._schema, surveyed)
        if self._check is not None:
            self._check(surveyed)
        decoding = self._packed(surveyed._replace(invalid_date=self._options.invalid_date))
        return [InputPartition((decoding, split)) for split in splits]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the changes of a task's transactions, in commit order."""
        decoding, one = cast("tuple[bytes, StreamSplit]", partition.value)
        keep_freed_memory()
        reader = SplitReader(_unpacked(decoding), self._arrow_schema, self._options.bounds)
        yield from reader.read(one.split, since=one.since, until=one.until)

    @cached_property
    def _arrow_schema(self) -> pa.Schema:
        return to_arrow_schema(self._schema, timezone="UTC")

    def _packed(self, decoding: Decoding) -> bytes:
        """Return the data that each task contains, pickled and compressed. The data contains
        sessions only if a column needs sessions.
        """
        if not set(SessionAttributes._fields) & set(self._schema.names):
            decoding = decoding._replace(sessions={})
        return zlib.compress(pickle.dumps(decoding), 1)


@lru_cache(1)
def _unpacked(decoding: bytes) -> Decoding:
    return cast("Decoding", pickle.loads(zlib.decompress(decoding)))  # noqa: S301 - ours


_log = structlog.get_logger(__name__)

FORMAT: Final = "olr_pg"

_LOG_ERRORS: Final = 2
"""Errors about logs have the codes 2000 to 2999."""


def register(spark: SparkSession) -> None:
    """Register the format "olr_pg" in a session."""
    spark.dataSource.register(RedoSource)


class RedoSource(DataSource):
    """The data source; its options are in docs/data-source.md."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._survey: Survey | None = None
        self._has_own_columns = False

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return FORMAT

    @property
    def chosen(self) -> SourceOptions:
        """The options of the query.

        Raises:
            OlrPgError: 6040, an option is invalid.
        """
        return parse_options(self.options)

    @property
    def surveyed(self) -> Survey:
        """The result of the survey, which runs on first use.

        Raises:
            OlrPgError: see `survey`.
        """
        if self._survey is None:
            chosen = self.chosen
            self._survey = survey(
                load_dictionary(chosen.dictionary),
                chosen.logs,
                tables=None if chosen.table is None else [chosen.table],
                split_bytes=chosen.split_bytes,
                storage=storage(),
            )
        return self._survey

    def schema(self) -> StructType:
        """Return the columns. The schema needs the survey, because DDL in the redo may have added
        columns.
        """
        table = self.chosen.table
        self._has_own_columns = True  # Spark does not ask for them if the query names its columns
        try:
            found = changes_schema(self.surveyed.decoding, table)
        except OlrPgError as error:
            # Ignore missing logs here: a stream waits for them, and a query fails when it reads
            # them.
            if error.code // 1000 != _LOG_ERRORS:
                raise
            found = _schema_before_logs(load_dictionary(self.chosen.dictionary), table)
        return from_arrow_schema(found)

    def reader(self, schema: StructType) -> RedoReader:
        """Return the reader of a query.

        Raises:
            OlrPgError: 6040, a column does not exist; and errors of `survey`.
        """
        check_names(schema.names)
        check_images(schema, self.surveyed.decoding)
        return RedoReader(self.surveyed, schema, self.chosen)

    def streamReader(self, schema: StructType) -> RedoStreamReader:  # noqa: N802 - Spark's name
        """Return the reader of a stream's batches.

        Raises:
            OlrPgError: 6040, a column does not exist.
        """
        check_names(schema.names)
        table = self.chosen.table
        check = None
        if self._has_own_columns and table is not None:
            check = partial(check_columns, schema, table)
        return RedoStreamReader(self.chosen, schema, check)


def changes_schema(decoding: Decoding, table: str | None) -> pa.Schema:
    """Return the columns of a query."""
    return changes_of_any_table() if table is None else changes_of_table(_versions(decoding))


def check_columns(schema: StructType, table: str, decoding: Decoding) -> None:
    """Check that a stream's columns can represent all changes of the table that were surveyed.
    Otherwise, columns would be missing in the stream's output forever.

    Args:
        schema: the stream's columns, from the definitions that were known when it started.

    Raises:
        OlrPgError: 6222, they cannot.
    """
    known = {
        one.name: one.type for one in to_arrow_schema(schema, timezone="UTC").field("after").type
    }
    now = arrow_schema(changes_schema(decoding, table)).field("after").type
    changed = [
        one.name for one in now
        if one.name not in known or _wider(known[one.name], one.type) != known[one.name]
    ]  # fmt: skip
    if changed:
        raise OlrPgError(
            Code.STREAM_COLUMNS_CHANGED,
            f"new, or of another type: {', '.join(changed)}",
            table=table,
        )


def _schema_before_logs(snapshot: Snapshot, table: str | None) -> pa.Schema:
    """Return the columns as the dictionary snapshot has them, without the survey."""
    if table is None:
        return changes_of_any_table()
    return changes_of_table(chosen_tables(snapshot, [table]))


def _versions(decoding: Decoding) -> list[Table]:
    """Return the versions of the wanted tables, without the SYS tables, which are decoded only to
    follow the dictionary.
    """
    tables, delivered = decoding.subscription.tables, decoding.subscription.row_plan.delivered
    return [table for at, table in enumerate(tables) if not delivered.size or delivered[at]]


class RedoReader(DataSourceReader):
    """Plans and reads one query, with one task for each split that owns a wanted transaction.

    Args:
        schema: the wanted columns.
    """

    def __init__(self, surveyed: Survey, schema: StructType, options: SourceOptions) -> None:
        self._splits = surveyed.splits
        self._decoding = surveyed.decoding._replace(invalid_date=options.invalid_date)
        self._schema = schema
        self._bounds = options.bounds

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for the workers, without the list of splits: each task contains its own
        split.
        """
        return {**self.__dict__, "_splits": ()}

    def partitions(self) -> Sequence[InputPartition]:
        """Return one task for each split that must be read."""
        return [
            InputPartition(split)
            for split in self._splits
            if split.commits is not None and split.commits.overlap(self._bounds)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the changes of the transactions that begin in a split."""
        split = cast("RedoSplit | None", partition.value)
        if split is None:  # Spark passes None if there are no tasks
            return
        keep_freed_memory()
        reader = SplitReader(self._decoding, self._arrow_schema, self._bounds)
        yield from reader.read(split)

    @cached_property
    def _arrow_schema(self) -> pa.Schema:
        return to_arrow_schema(self._schema, timezone="UTC")


def arrow_schema(schema: pa.Schema) -> pa.Schema:
    """Convert an Arrow schema to Spark's types and back. Return the converted schema with times in
    UTC.
    """
    return to_arrow_schema(from_arrow_schema(schema), timezone="UTC")


_CHANGE: Final[tuple[pa.Field[Any], ...]] = (
    pa.field("op", pa.string(), nullable=False),
    pa.field("commit_scn", pa.int64(), nullable=False),
    pa.field("commit_time", pa.timestamp("us"), nullable=False),
    pa.field("scn", pa.int64(), nullable=False),
    pa.field("xid", pa.string(), nullable=False),
    pa.field("position", pa.int64(), nullable=False),
    pa.field("rowid", pa.string(), nullable=False),
    pa.field("thread", pa.int32(), nullable=False),
    pa.field("login_user", pa.string()),
    pa.field("os_user", pa.string()),
    pa.field("machine", pa.string()),
    pa.field("program", pa.string()),
)
_NAMES: Final[tuple[pa.Field[Any], ...]] = (
    pa.field("owner", pa.string(), nullable=False),
    pa.field("table", pa.string(), nullable=False),
)

_DECIMAL_DIGITS_MAX: Final = 38


def check_names(names: Iterable[str]) -> None:
    """Check that the columns that a query names exist.

    Raises:
        OlrPgError: 6040, one does not.
    """
    known = {*(one.name for one in (*_CHANGE, *_NAMES)), "before", "after"}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise OlrPgError(Code.DATA_SOURCE_OPTION, f"there is no column {', '.join(unknown)}")


def check_images(schema: StructType, decoding: Decoding) -> None:
    """Check that the tables have the columns that a query names in the structs `before` and
    `after`. Spark does not distinguish the case of names, but Oracle does. Log a warning about
    columns that no table has.

    Raises:
        OlrPgError: 6040, a name differs from the column's name in case only.
    """
    known = {column.name for table in _versions(decoding) for column in table.delivered}
    by_lower = {name.lower(): name for name in sorted(known)}
    for image in schema.fields:
        if image.name not in {"before", "after"} or not isinstance(image.dataType, StructType):
            continue
        for name in sorted(set(image.dataType.names) - known):
            if name.lower() in by_lower:
                raise OlrPgError(
                    Code.DATA_SOURCE_OPTION,
                    f"there is no column {image.name}.{name}; did you mean"
                    f" {image.name}.{by_lower[name.lower()]}",
                )
            _log.warning("no table has this column, so it is NULL", column=f"{image.name}.{name}")


def changes_of_any_table() -> pa.Schema:
    """Return the columns for changes of several tables; before and after images are JSON text."""
    images = (pa.field("before", pa.string()), pa.field("after", pa.string()))
    return pa.schema([*_CHANGE, *_NAMES, *images])


def changes_of_table(versions: Sequence[Table]) -> pa.Schema:
    """Return the columns for changes of one table; before and after images are structs with its
    columns.

    Args:
        versions: the table's definitions over time, the oldest first. If a definition does not have
            a column that another definition has, the column is NULL in changes with the first
            definition.
    """
    types: dict[str, pa.DataType] = {}
    for table in versions:
        for column in table.delivered:
            own = _spark_type(column)
            types[column.name] = _wider(types.get(column.name, own), own)
    image = pa.struct(types.items())
    return pa.schema([*_CHANGE, pa.field("before", image), pa.field("after", image)])


def _spark_type(column: Column) -> pa.DataType:
    """Return the Arrow type of a column's values. Spark has times in microseconds only."""
    kind = arrow_type(column)
    return pa.timestamp("us") if kind == pa.timestamp("s") else kind


def _wider(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Return a type that can represent the values of both types."""
    if one == other:
        return one
    if pa.types.is_decimal(one) and pa.types.is_decimal(other):
        scale = max(one.scale, other.scale)
        digits = max(one.precision - one.scale, other.precision - other.scale) + scale
        if digits <= _DECIMAL_DIGITS_MAX:
            return pa.decimal128(digits, scale)
    return pa.string()
