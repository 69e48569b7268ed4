"""Replaces the LOB locators in assembled row changes by the contents of the LOBs (docs/lobs.md).

A value is delivered completely or not at all. If the redo contains only a part of it, its column is
left out of the change: an updated row of the target keeps its old value, and an inserted row has
NULL. The value of a LOB before a change is never delivered. Facts: values-and-lobs §16–§22.

The module also converts the contents of LOB values that cannot be delivered as they are stored,
because they are compressed or have another character set.

Contents are converted in pieces of limited size, so that a large value does not need memory. The
exception is binary XML: a document is assembled as a whole. Facts: values-and-lobs §17, §22, §24.
"""

from __future__ import annotations

import codecs
import zlib
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from olr_pg.datatypes.binary_xml import XmlTokens, binary_xml_text
from olr_pg.datatypes.charsets import charset
from olr_pg.datatypes.lob_locator import COMPRESSION, LENGTH, STORED, TEXT, LobCompression, LobText
from olr_pg.datatypes.text import encode_text
from olr_pg.dictionary.lob_delivery import LobDelivery
from olr_pg.errors import OlrPgError
from olr_pg.redo.batch import ChangeBatch, EventKind
from olr_pg.redo.column_tables import ColumnTable, grown, head, joined_rows
from olr_pg.transactions.finished_columns import DmlColumns, DmlKind, Image, OwnedChanges
from olr_pg.transactions.left_out import emptied_updates, keep_entries
from olr_pg.transactions.lobs.logged_rows import OwnedEvents, collect_rows, lob_numbers, lob_rows
from olr_pg.transactions.lobs.lost_values import CODES, Counted, LostOf, lost_lobs
from olr_pg.transactions.lobs.page_claims import ClaimedPages, Claims, Places, lob_keys
from olr_pg.transactions.lobs.pages import resolve_values
from olr_pg.transactions.lobs.value_tables import (
    EXTRA,
    LobRows,
    Space,
    ValueRoom,
    Values,
    ValueStatus,
    distinct_keys,
    empty_rows,
    sort_rows,
    value_room,
)
from olr_pg.transactions.select import first_rows
from olr_pg.transactions.waiting_storage import Allocate, joined

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from olr_pg.dictionary.decoding_plan import RowPlan
    from olr_pg.transactions.lobs.source_reads import LobWanted

_PIECE_BYTES: Final = 1 << 20
_CHUNK_MAP_MARK: Final = b"\xde\xad\xbe\xef\x01"
_CHUNK_MAP_HEAD: Final = 29
_GROWTH: Final = 3
"""Maximum factor by which text grows when it is converted to another character set, rounded up."""


class _BrokenError(Exception):
    """Raised if the stored bytes do not match their locator."""


def rewrite(
    values: Values,
    room: ValueRoom,
    delivery: npt.NDArray[np.uint8],
    charset_id: npt.NDArray[np.int32],
    xml_tokens: XmlTokens,
    allocate: Allocate,
) -> dict[int, U8]:
    """Return the converted contents by the number of the value. If a value cannot be decoded, its
    status in `room` becomes UNDECODED.

    Args:
        values, room: the values and the result of `resolve_values`.
        delivery: `LobDelivery` of each value.
        charset_id: character set of each value's column.
        xml_tokens: the names to which binary XML refers by numbers.
        allocate: returns a buffer for contents.
    """
    text = room.facts[:, TEXT]
    as_it_stands = (
        (delivery == LobDelivery.BYTES)
        | ((delivery == LobDelivery.UTF16) & (text == LobText.UTF16_BE))
        | ((delivery == LobDelivery.CHARSET) & (text == LobText.CHARSET))
    )
    packed = room.facts[:, COMPRESSION] != LobCompression.NONE
    whole = room.status == ValueStatus.WHOLE
    rewritten: dict[int, U8] = {}
    for i in np.flatnonzero(whole & (packed | ~as_it_stands)).tolist():
        pieces = _inflated(_stored(values, room, i), room.facts[i])
        size = int(room.facts[i, LENGTH])
        if size < 0:
            size = int(room.parts[1, room.part_first[i] : room.part_first[i + 1]].sum())
        try:
            if delivery[i] == LobDelivery.XML_TEXT:
                document = binary_xml_text(b"".join(pieces), xml_tokens).encode()
                rewritten[i] = np.frombuffer(document, np.uint8)
                continue
            if not as_it_stands[i]:
                form, target = LobText(int(text[i])), LobDelivery(int(delivery[i]))
                pieces = _converted(pieces, form, target, int(charset_id[i]))
                size = _GROWTH * size
            rewritten[i] = _gathered(pieces, allocate(size))
        except (_BrokenError, UnicodeError, OlrPgError):
            room.status[i] = ValueStatus.UNDECODED  # the caller counts it as a loss
    return rewritten


def _gathered(pieces: Iterable[bytes], room: U8) -> U8:
    at = 0
    for piece in pieces:
        if at + len(piece) > room.size:
            raise _BrokenError
        room[at : at + len(piece)] = np.frombuffer(piece, np.uint8)
        at += len(piece)
    return room[:at]


def _stored(values: Values, room: ValueRoom, i: int) -> Iterator[bytes]:
    """Yield the stored bytes of value i, in pieces."""
    size = values.data.size
    for part in range(int(room.part_first[i]), int(room.part_first[i + 1])):
        offset, length = int(room.parts[0, part]), int(room.parts[1, part])
        source, at = (values.data, offset) if offset < size else (room.extra, offset - size)
        for start in range(at, at + length, _PIECE_BYTES):
            yield source[start : min(start + _PIECE_BYTES, at + length)].tobytes()


def _inflated(stored: Iterator[bytes], facts: I64) -> Iterator[bytes]:
    """Yield the content of a value, in pieces. If the value is compressed, decompress it."""
    compression, length = LobCompression(int(facts[COMPRESSION])), int(facts[LENGTH])
    if compression is LobCompression.NONE:
        yield from stored
        return
    reader = _Reader(stored)
    pieces = (
        _stream(reader, int(facts[STORED]))
        if compression is LobCompression.STREAM
        else _chunk_map(reader)
    )
    done = 0
    for piece in pieces:
        done += len(piece)
        if done > length:
            raise _BrokenError
        yield piece
    if done != length or (compression is LobCompression.STREAM and reader.taken != facts[STORED]):
        raise _BrokenError


class _Reader:
    """Reads a given number of bytes from a sequence of pieces."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._left = b""
        self.taken = 0

    def some(self, most: int) -> bytes:
        """Return the next bytes, at most `most`. Return no bytes only if the last piece has
        ended.
        """
        while not self._left:
            following = next(self._pieces, None)
            if following is None:
                return b""
            self._left = following
        found, self._left = self._left[:most], self._left[most:]
        self.taken += len(found)
        return found

    def exactly(self, size: int) -> bytes:
        if size < 0:
            raise _BrokenError
        parts = []
        while size > 0:
            part = self.some(size)
            if not part:
                raise _BrokenError
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def _stream(reader: _Reader, size: int) -> Iterator[bytes]:
    """Decompress one zlib stream, which has `size` bytes when compressed."""
    stream = zlib.decompressobj()
    end = reader.taken + size
    try:
        while not stream.eof:
            packed = stream.unconsumed_tail or reader.some(min(_PIECE_BYTES, end - reader.taken))
            if not packed:
                raise _BrokenError
            yield stream.decompress(packed, _PIECE_BYTES)
    except zlib.error:
        raise _BrokenError from None
    reader.exactly(end - reader.taken)


def _chunk_map(reader: _Reader) -> Iterator[bytes]:
    """Decompress the units of a chunk map, one after the other (values-and-lobs §22)."""
    while True:
        unit = reader.taken
        mark = reader.some(1)
        if not mark:
            return
        head = mark + reader.exactly(_CHUNK_MAP_HEAD - 1)
        if not head.startswith(_CHUNK_MAP_MARK):
            raise _BrokenError
        total = int.from_bytes(head[13:21])
        count, start = int.from_bytes(head[21:23]), int.from_bytes(head[23:25])
        listed = reader.exactly(8 * count)
        reader.exactly(unit + start - reader.taken)
        for k in range(count):
            logical = int.from_bytes(listed[8 * k : 8 * k + 4])
            done = 0
            for piece in _stream(reader, int.from_bytes(listed[8 * k + 4 : 8 * k + 8])):
                done += len(piece)
                yield piece
            if done != logical:
                raise _BrokenError
        reader.exactly(unit + total - reader.taken)


def _converted(
    pieces: Iterable[bytes], text: LobText, delivery: LobDelivery, charset_id: int
) -> Iterator[bytes]:
    """Convert text from the character set that its locator names to the character set for
    delivery.
    """
    decoder: codecs.IncrementalDecoder
    if text is LobText.UTF16_LE:
        decoder = codecs.getincrementaldecoder("utf-16-le")("surrogatepass")
    elif text is LobText.UTF16_BE:
        decoder = codecs.getincrementaldecoder("utf-16-be")("surrogatepass")
    elif text is LobText.CHARSET and charset_id:
        decoder = codecs.getincrementaldecoder(charset(charset_id).codec)()
    else:
        raise _BrokenError
    target = None if delivery is LobDelivery.UTF16 else charset(charset_id)
    for decoded in _decoded(pieces, decoder):
        if target is None:
            yield decoded.encode("utf-16-be", "surrogatepass")
        else:
            yield encode_text(decoded, target)


def _decoded(pieces: Iterable[bytes], decoder: codecs.IncrementalDecoder) -> Iterator[str]:
    for piece in pieces:
        yield decoder.decode(piece)
    yield decoder.decode(b"", final=True)


_FETCHED: Final = (ValueStatus.MISSING, ValueStatus.MALFORMED)
"""Statuses of values that the redo does not contain, but that may be read from the source
database.
"""

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
U8 = npt.NDArray[np.uint8]


class LobLosses(NamedTuple):
    """Counts of LOB values that could not be delivered.

    Attributes:
        missing: by column of the row plan: values with bytes that are not in the redo (2120).
        malformed: by column of the row plan: values whose locator is invalid (2122).
        undecoded: by column of the row plan: values whose content cannot be decoded (2123).
        unclaimed: by table: LOBs that were changed although no change of their row was found
            (2121).
    """

    missing: I64
    malformed: I64
    undecoded: I64
    unclaimed: I64

    def plus(self, other: LobLosses) -> LobLosses:
        """Return the sum of these counts and `other`."""
        return LobLosses(*(a + b for a, b in zip(self, other, strict=True)))

    @property
    def any(self) -> bool:
        """True if anything was lost."""
        return any(bool(counts.any()) for counts in self)


def no_losses(plan: RowPlan) -> LobLosses:
    """Return counts of 0 for all columns and tables of `plan`."""
    missing, malformed, undecoded = np.zeros((3, int(plan.column_first[-1])), np.int64)
    return LobLosses(missing, malformed, undecoded, np.zeros(plan.table_obj.size, np.int64))


class Owners(NamedTuple):
    """The transactions whose LOBs are resolved. The events of transaction i are ``order[first[i] :
    end[i]]``.

    The transactions are in commit order.
    """

    order: I64
    first: I64
    end: I64
    con_id: npt.NDArray[np.uint32]
    begin_scn: npt.NDArray[np.uint64]
    commit: Places


class LobOutcome(NamedTuple):
    """The result of `resolve_lobs`: row changes with LOB contents.

    Attributes:
        changes: the remaining changes.
        incomplete: shape (transactions); True if the redo contains only a part of one of the
            values.
        losses: counts of the values that were left out.
        values: number of delivered LOB values.
        emptied: number of updates that were left out because all values that they set were left
            out.
        fetched: how many of the delivered values were read from the source.
        lost: the values that were left out, with their rows.
    """

    changes: OwnedChanges
    incomplete: npt.NDArray[np.bool_]
    losses: LobLosses
    values: int
    emptied: int
    fetched: int = 0
    lost: tuple[LostOf, ...] = ()


class LobPieces(NamedTuple):
    """The pieces that transactions logged for their LOBs.

    Attributes:
        rows: the pieces, sorted (`value_tables.sort_rows`).
        may_be_unclaimed: shape (transactions); True if a LOB of the transaction must be reported
            when no row change refers to it.
        data: the bytes of the row changes, followed by the bytes of the pieces.
    """

    rows: LobRows
    may_be_unclaimed: npt.NDArray[np.bool_]
    data: U8


def resolve_lobs(
    pieces_of: Callable[[Values], LobPieces],
    changes: OwnedChanges,
    plan: RowPlan,
    allocate: Allocate,
    counted: Counted,
    wanted: LobWanted | None = None,
) -> LobOutcome:
    """Replace the locators in row changes by the contents of the LOBs.

    Args:
        pieces_of: returns the logged pieces of the LOBs to which the values refer; usually
            `pieces_of_events`.
        changes: row changes with locators.
        allocate: returns a buffer for a large number of bytes.
        counted: the tables of the plan, and how many of their changes were already delivered.
        wanted: reads values from the source if the redo contains only a part of them, or None.
    """
    dml = changes.dml
    change_of = dml.change_of
    column_of = plan.column_first[dml.table[change_of]] + dml.entries.column
    delivery = plan.column_lob[column_of]
    is_lob = delivery != LobDelivery.NONE
    entry = np.flatnonzero(is_lob & (dml.entries.image == Image.AFTER))
    owner_of = changes.owner[change_of]
    values = Values(
        entry,
        owner_of[entry],
        _before_of(dml, entry, change_of, column_of, is_lob),
        dml.kind[change_of[entry]] == DmlKind.INSERT,
        plan.column_pages[column_of[entry]],
        dml.values,
        dml.data,
    )
    pieces = pieces_of(values)
    values = values._replace(data=pieces.data)
    room = _resolve(values, pieces.rows, allocate)
    rewritten = rewrite(
        values, room, delivery[entry], plan.column_charset[column_of[entry]], plan.xml_tokens,
        allocate,
    )  # fmt: skip
    incomplete = np.zeros(changes.first.size - 1, np.bool_)
    incomplete[values.owner[np.isin(room.status, _FETCHED)]] = True
    fetched = 0
    if wanted is not None:
        fetched = _fetch(wanted, dml, values, room, rewritten, allocate)
    losses = no_losses(plan)
    np.add.at(losses.missing, column_of[entry[room.status == ValueStatus.MISSING]], 1)
    np.add.at(losses.malformed, column_of[entry[room.status == ValueStatus.MALFORMED]], 1)
    np.add.at(losses.undecoded, column_of[entry[room.status == ValueStatus.UNDECODED]], 1)
    _count_unclaimed(pieces, dml, is_lob, owner_of, losses.unclaimed)
    keep = _kept(values, room, is_lob)
    lost: tuple[LostOf, ...] = ()
    if np.isin(room.status, tuple(CODES)).any():
        lost = lost_lobs(changes, ~emptied_updates(dml, keep), values, room, counted)
    filled, tail = _chains(dml, values, room, rewritten)
    filled = filled._replace(data=joined([values.data, *tail], allocate))
    kept, emptied = keep_entries(OwnedChanges(filled, changes.first), keep)
    whole = int(np.count_nonzero(room.status == ValueStatus.WHOLE))
    return LobOutcome(kept, incomplete, losses, whole, emptied, fetched, lost)


def _fetch(
    wanted: LobWanted,
    dml: DmlColumns,
    values: Values,
    room: ValueRoom,
    rewritten: dict[int, U8],
    allocate: Allocate,
) -> int:
    """Read from the source the values of which the redo contains only a part; return their
    number.
    """
    count = 0
    for i in np.flatnonzero(np.isin(room.status, _FETCHED)).tolist():
        entry, owner = int(values.entry[i]), int(values.owner[i])
        change = int(np.searchsorted(dml.entry_first, entry, "right")) - 1
        found = wanted.value(dml, change, entry, owner, allocate)
        if found is None:
            continue
        count += 1
        if found.content is None:
            room.status[i] = ValueStatus.NULL
        else:
            room.status[i] = ValueStatus.WHOLE
            rewritten[i] = found.content
    return count


def _before_of(
    dml: DmlColumns,
    entry: I64,
    change_of: I64,
    column_of: I64,
    is_lob: npt.NDArray[np.bool_],
) -> I64:
    """For each of the entries `entry`, return the entry with the old value of the same column, −1
    if there is none.
    """
    old = np.flatnonzero(is_lob & (dml.entries.image == Image.BEFORE))
    width = int(column_of.max(initial=0)) + 1
    keys = change_of[old] * width + column_of[old]
    wanted = change_of[entry] * width + column_of[entry]
    at = np.minimum(np.searchsorted(keys, wanted), max(keys.size - 1, 0))
    if keys.size == 0:
        return np.full(entry.size, -1, np.int64)
    return np.where(keys[at] == wanted, old[at], -1)


def pieces_of_events(
    batch: ChangeBatch, claimed: ClaimedPages, owners: Owners, allocate: Allocate, values: Values
) -> LobPieces:
    """Collect the LOB events of the transactions `owners`, and the pages that they own.

    Args:
        batch: the events that the row changes were assembled from.
        claimed: pages whose redo names no transaction, with the transactions that own them.
        owners: the transactions of the row changes.
        allocate: returns a buffer.
    """
    undid = np.zeros(owners.first.size, np.uint8)
    is_lob = batch.events.kind == EventKind.LOB
    rows = empty_rows(int(batch.events.piece_count[is_lob].sum()))
    count = 0
    if is_lob.any():
        count = collect_rows(
            batch,
            first_rows(batch.events.piece_count),
            first_rows(batch.pieces.entry_count),
            OwnedEvents(owners.order, owners.first, owners.end),
            np.empty(batch.events.kind.size, np.int64),
            np.empty(batch.events.kind.size, np.int64),
            undid,
            rows,
        )
    rows = head(rows, count)
    # If the transaction undid changes, the row change of a LOB may be one of them, although the
    # pages of a direct load cannot be undone. So such LOBs are not reported.
    may_be_unclaimed = undid == 0
    if claimed.owner.size == 0:
        return LobPieces(sort_rows(rows), may_be_unclaimed, values.data)
    pages, event_of = lob_rows(claimed.pages, np.arange(claimed.owner.size))
    pages.owner[:] = claimed.owner[event_of]
    pages.offset[:] += values.data.size
    both = sort_rows(joined_rows([rows, pages]))
    return LobPieces(both, may_be_unclaimed, joined([values.data, claimed.pages.data], allocate))


def numbers_of(entries: ColumnTable, data: U8, chosen: I64) -> I64:
    """Return the LOB number in the locator of each of the entries `chosen`, −1 if it has none."""
    numbers = np.empty(chosen.size, np.int64)
    lob_numbers(entries, data, chosen, numbers)
    return numbers


def _known_lobs(dml: DmlColumns, is_lob: npt.NDArray[np.bool_], owner_of: I64) -> I64:
    """Return (transaction, LOB number) of every locator in the images before and after changes;
    shape (n, 2).
    """
    entry = np.flatnonzero(is_lob)
    lob = numbers_of(dml.values, dml.data, entry)
    return np.stack([owner_of[entry], lob], axis=1)[lob >= 0]


def claims_of(changes: OwnedChanges, owners: Owners, plan: RowPlan) -> Claims:
    """Return the claims of the transactions `owners`: the LOBs with a locator in their row changes,
    before or after a change.
    """
    dml = changes.dml
    change_of = dml.change_of
    column_of = plan.column_first[dml.table[change_of]] + dml.entries.column
    is_lob = plan.column_lob[column_of] != LobDelivery.NONE
    owner, lob = distinct_keys(_known_lobs(dml, is_lob, changes.owner[change_of]))[0].T
    key = lob_keys(owners.con_id[owner], lob)
    return Claims(key, owner, owners.begin_scn[owner], owners.commit.take(owner))


def _are_among(rows: I64, others: I64) -> npt.NDArray[np.bool_]:
    """Return for each row of `rows` whether `others` contains it."""
    if not len(rows) or not len(others):
        return np.zeros(len(rows), np.bool_)
    _, place = distinct_keys(np.concatenate([rows, others]))
    is_other = np.zeros(place.size, np.bool_)
    is_other[place[len(rows) :]] = True
    return is_other[place[: len(rows)]]


def _resolve(values: Values, rows: LobRows, allocate: Allocate) -> ValueRoom:
    parts = 64 + values.entry.size + rows.owner.size
    extra = 1 << 16
    while True:
        room = value_room(values.entry.size, parts, allocate(extra))
        if resolve_values(values, rows, room):
            return room
        parts, extra = parts * 2, extra * 4


def _count_unclaimed(
    pieces: LobPieces,
    dml: DmlColumns,
    is_lob: npt.NDArray[np.bool_],
    owner_of: I64,
    unclaimed: I64,
) -> None:
    """Count the LOBs that have logged pieces, but to which no row change of the same transaction
    refers.
    """
    rows = pieces.rows
    mine = (rows.space != Space.LIST) & (rows.lob != 0) & pieces.may_be_unclaimed[rows.owner]
    if not mine.any():
        return
    known = _known_lobs(dml, is_lob, owner_of)
    found, _ = distinct_keys(np.stack([rows.owner[mine], rows.lob[mine], rows.table[mine]], 1))
    unknown = found[~_are_among(found[:, :2], known)]
    np.add.at(unclaimed, unknown[:, 2], 1)


def _kept(values: Values, room: ValueRoom, is_lob: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Return True for each entry that is delivered."""
    keep = ~is_lob
    keep[values.entry[np.isin(room.status, (ValueStatus.WHOLE, ValueStatus.NULL))]] = True
    return keep


def _chains(
    dml: DmlColumns, values: Values, room: ValueRoom, rewritten: dict[int, U8]
) -> tuple[DmlColumns, list[npt.NDArray[np.uint8]]]:
    """Return the row changes with contents as values, and the arrays of bytes that must be appended
    to their data.
    """
    extra = room.extra[: int(room.counts[EXTRA])]
    tail = [extra] if extra.size else []
    at = values.data.size + extra.size
    before = dml.values.size
    whole = np.flatnonzero(room.status == ValueStatus.WHOLE)
    entry = values.entry[whole]
    first, count = room.part_first[whole], np.diff(room.part_first)[whole]
    # The further parts of the contents follow all existing values, in order.
    more = np.maximum(count - 1, 0)
    base = before + np.cumsum(more) - more
    owner = np.repeat(np.arange(whole.size), more)
    within = np.arange(owner.size) - (base - before)[owner]
    part = first[owner] + 1 + within
    is_last = within == more[owner] - 1
    place = before + np.arange(owner.size)
    filled: Any = grown(dml.values, before, before + owner.size)
    one = count > 0
    filled.offset[entry] = 0
    filled.length[entry] = 0
    filled.next[entry] = -1
    filled.offset[entry[one]] = room.parts[0, first[one]]
    filled.length[entry[one]] = room.parts[1, first[one]]
    filled.next[entry[more > 0]] = base[more > 0]
    filled.offset[place] = room.parts[0, part]
    filled.length[place] = room.parts[1, part]
    filled.next[place] = np.where(is_last, -1, place + 1)
    for i, content in rewritten.items():
        number = int(values.entry[i])
        filled.offset[number], filled.length[number], filled.next[number] = at, content.size, -1
        tail.append(content)
        at += content.size
    return dml._replace(values=filled), tail
