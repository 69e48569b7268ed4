"""Implements ``spark.readStream.format("olr_pg")``: reads committed transactions batch by batch.

One long-lived process returns the offsets and the tasks of batches (`RedoStreamReader` with its
`redo_stream.RedoStream`). Workers return the rows. A worker gets a reader without state, because
each task contains the data that it needs.
"""

from __future__ import annotations

import pickle
import zlib
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, cast

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)

from olr_pg.datasource.redo_stream import Limit, RedoStream
from olr_pg.datasource.split_reading import SplitReader, storage
from olr_pg.datasource.stream_offset import BEGINNING, parse_offset
from olr_pg.decoding.heap import keep_freed_memory
from olr_pg.redo.sessions import SessionAttributes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from olr_pg.datasource.options import SourceOptions
    from olr_pg.datasource.redo_split import Decoding
    from olr_pg.datasource.redo_stream import StreamSplit


class RedoStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans and reads the batches of one query.

    Args:
        schema: the wanted columns.
        check: called with what was surveyed before each batch; it raises an error if the columns do
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
        """The redo of the stream."""
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
            OlrPgError: as for `RedoStream.splits`; 6222, DDL has changed the table's columns.
        """
        splits = self.stream.splits(parse_offset(start), parse_offset(end))
        if not splits:
            return []
        surveyed = self.stream.decoding()
        if self._check is not None:
            self._check(surveyed)
        decoding = self._packed(surveyed)
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
        """Return the data that each task contains, pickled and compressed. It has sessions only if
        a column needs them.
        """
        if not set(SessionAttributes._fields) & set(self._schema.names):
            decoding = decoding._replace(sessions={})
        return zlib.compress(pickle.dumps(decoding), 1)


@lru_cache(1)
def _unpacked(decoding: bytes) -> Decoding:
    return cast("Decoding", pickle.loads(zlib.decompress(decoding)))  # noqa: S301 - ours
