"""What becomes of a log: its rows, or what its table stops with; the account must close."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from olr_pg.decoding.split import open_for_decoding, subscribe
from olr_pg.decoding.split_results import read_result
from olr_pg.ordering.merger import Merger
from tests.lobs.lob_decoding import Decoded, Row
from tests.lobs.lob_redo import LobRedo, snapshot
from tests.split_results import packed_split

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.dictionary.model import Snapshot


class Told(NamedTuple):
    """The code that ends the delivery or None, its text, and the changes delivered before."""

    code: int | None
    text: str
    changes: list[Row]

    @property
    def ids(self) -> list[object]:
        """ID of each change."""
        return [(one.get("after") or one.get("before") or {}).get("ID") for one in self.changes]


def told(
    redo: LobRedo, folder: Path, dictionary: Snapshot | None = None, *, split_blocks: int = 1 << 20
) -> Told:
    """Decode a log of one container in splits of so many blocks."""
    dictionary = dictionary or snapshot()
    log = open_for_decoding(str(redo.write(folder, group=1)))
    subscription = subscribe(dictionary.tables, redo.con_id)
    merger = Merger(subscription, 0, {1: 0})
    blocks = log.header.nab or 0
    runs = []
    for start in range(2, blocks, split_blocks):
        result = packed_split(subscription, log, start, min(start + split_blocks, blocks))
        runs += merger.feed(1, read_result(result))
        if merger.failure is not None:
            break
    accounting = merger.accounting()
    assert accounting.closes, accounting.values()
    code = None if merger.failure is None else int(merger.failure.code)
    return Told(code, str(merger.failure or ""), Decoded(runs, merger.account, dictionary).changes)
