"""Implements ``spark.read.format("olr_pg")``: the changes in archived redo as a DataFrame.

Spark calls this code in three kinds of processes. The first process returns the columns
(`RedoSource.schema`); for this it makes the survey. Spark then passes the source, with the survey,
to a second process, which returns the tasks (`RedoReader.partitions`). Workers return the rows
(`RedoReader.read`). The reader contains the data that all tasks share; it is sent to the workers
once.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, cast

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from olr_pg.datasource.change_schema import changes_of_any_table, changes_of_table
from olr_pg.datasource.options import parse_options
from olr_pg.datasource.pushed_filters import bounds_of
from olr_pg.datasource.split_reading import SplitReader, storage
from olr_pg.datasource.stream_reader import RedoStreamReader
from olr_pg.datasource.survey import survey
from olr_pg.decoding.heap import keep_freed_memory
from olr_pg.dictionary.loader import load_dictionary
from olr_pg.errors import OlrPgError
from olr_pg.replicator.decode_once import chosen_tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, MutableMapping, Sequence

    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import Filter

    from olr_pg.datasource.options import SourceOptions
    from olr_pg.datasource.redo_split import Bounds, Decoding, RedoSplit
    from olr_pg.datasource.survey import Survey
    from olr_pg.dictionary.model import Snapshot, Table

FORMAT: Final = "olr_pg"

_LOG_ERRORS: Final = 2
"""Errors about logs have the codes 2000 to 2999."""

_PUSHED: Final = "spark.sql.python.filterPushdown.enabled"
"""The Spark setting without which Spark refuses a data source that accepts a query's conditions."""


def register(spark: SparkSession) -> None:
    """Register the format "olr_pg" in a session, and let Spark pass it the conditions of
    queries.
    """
    spark.conf.set(_PUSHED, "true")
    spark.dataSource.register(RedoSource)


class RedoSource(DataSource):
    """The data source; its options are in docs/data-source.md."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._survey: Survey | None = None

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
        """Return the columns. This needs the survey, because DDL in the redo may have added
        columns.
        """
        table = self.chosen.table
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
        """Return the reader of a query."""
        return RedoReader(self.surveyed, schema, self.chosen.bounds)

    def streamReader(self, schema: StructType) -> RedoStreamReader:  # noqa: N802 - Spark's name
        """Return the reader of a stream's batches."""
        return RedoStreamReader(self.chosen, schema)


def changes_schema(decoding: Decoding, table: str | None) -> pa.Schema:
    """Return the columns of a query."""
    return changes_of_any_table() if table is None else changes_of_table(_versions(decoding))


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

    def __init__(self, surveyed: Survey, schema: StructType, bounds: Bounds) -> None:
        self._splits = surveyed.splits
        self._decoding = surveyed.decoding
        self._schema = schema
        self.bounds = bounds

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for the workers, without the list of splits: each task contains its own
        split.
        """
        return {**self.__dict__, "_splits": ()}

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Restrict the commits that are read to commits that can meet the conditions. Return all
        conditions, so that Spark also filters the rows.
        """
        self.bounds = self.bounds.meet(bounds_of(filters))
        return filters

    def partitions(self) -> Sequence[InputPartition]:
        """Return one task for each split that must be read."""
        return [
            InputPartition(split)
            for split in self._splits
            if split.commits is not None and split.commits.overlap(self.bounds)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the changes of the transactions that begin in a split."""
        split = cast("RedoSplit | None", partition.value)
        if split is None:  # Spark passes None if there are no tasks
            return
        keep_freed_memory()
        reader = SplitReader(self._decoding, self._arrow_schema, self.bounds)
        yield from reader.read(split)

    @cached_property
    def _arrow_schema(self) -> pa.Schema:
        return to_arrow_schema(self._schema, timezone="UTC")


def arrow_schema(schema: pa.Schema) -> pa.Schema:
    """Convert an Arrow schema to Spark's types and back. Return it with times in UTC."""
    return to_arrow_schema(from_arrow_schema(schema), timezone="UTC")
