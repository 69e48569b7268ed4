"""Defines the offset of a stream: its position in each redo thread, as Spark's checkpoint stores
it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from olr_pg.datasource.ownership import Place
from olr_pg.errors import Code, OlrPgError

if TYPE_CHECKING:
    from collections.abc import Mapping


class ThreadOffset(NamedTuple):
    """The position of a stream in a redo thread.

    Attributes:
        place: all transactions that commit before this position were delivered.
        open_sequence: the sequence of the log in which the oldest transaction begins that is open
            at `place`. To continue from `place`, this log and all later logs are needed.
    """

    place: Place
    open_sequence: int


class StreamOffset(NamedTuple):
    """The position of a stream in the redo of all threads.

    Attributes:
        incarnation: the resetlogs id of the redo; 0 if nothing was read.
        scn: the highest commit SCN before the position; 0 if there was no commit.
        threads: the position in each redo thread; threads of which nothing was read are missing.
    """

    incarnation: int
    scn: int
    threads: Mapping[int, ThreadOffset]

    def as_json(self) -> dict[str, Any]:
        """Return the offset in the form in which Spark stores it."""
        threads = {
            str(thread): {
                "sequence": one.place.sequence,
                "block": one.place.block,
                "open": one.open_sequence,
            }
            for thread, one in sorted(self.threads.items())
        }
        return {"incarnation": self.incarnation, "scn": self.scn, "threads": threads}


BEGINNING = StreamOffset(0, 0, {})


def parse_offset(offset: Any) -> StreamOffset:
    """Parse the result of `StreamOffset.as_json`.

    Raises:
        OlrPgError: 6221, `offset` has another form.
    """
    try:
        threads = {
            int(thread): ThreadOffset(
                Place(int(one["sequence"]), int(one["block"])), int(one["open"])
            )
            for thread, one in offset["threads"].items()
        }
        return StreamOffset(int(offset["incarnation"]), int(offset["scn"]), threads)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise OlrPgError(Code.STREAM_OFFSET, f"there is no {error}") from error
