"""Declarations of column types with their random values, including edge values.

Facts: values-and-lobs §1.1 (what COL$ says), §2–§9 (ranges).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Final

from olr_pg.simulator.fields.cells import (
    BLOB,
    CLOB,
    EXACT,
    NCLOB,
    Cell,
    Moment,
    binary_double,
    binary_float,
    date,
    interval_day_to_second,
    interval_year_to_month,
    number,
    raw,
    text,
    timestamp,
    timestamp_ltz,
    timestamp_tz,
)
from olr_pg.simulator.model.lobs import UTF16, LobDraft, LobStorage
from olr_pg.simulator.model.tables import CHARSET_UTF8, CHARSET_UTF16, ColumnType

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

_LETTERS: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 -_.,'\"\\%"
_BEYOND_ASCII: Final = "żółćäöüß€łñ中文字😀Ωя"
_EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)
_DATE_EDGES: Final = (Moment(1, 1, 1), Moment(9999, 12, 31, 23, 59, 59), Moment(1970, 1, 1))


def number_type(precision: int | None = None, scale: int | None = None) -> ColumnType:
    """Declare NUMBER, NUMBER(p) or NUMBER(p, s)."""

    def make(rng: Random) -> Cell:
        digits = rng.randint(1, precision or 38)
        value = Decimal(rng.randrange(10**digits)) * rng.choice((1, 1, 1, -1))
        places = rng.randint(-8, 12) if precision is None else scale or 0
        return number(value.scaleb(-places, EXACT))

    return ColumnType(2, 22, make, precision, scale)


@cache
def _alphabet(codec: str, *, plain: bool) -> tuple[tuple[str, int], ...]:
    """Return the letters that text is drawn from, each with its number of bytes in `codec`."""
    letters = _LETTERS if plain else _LETTERS + _BEYOND_ASCII
    return tuple((letter, len(letter.encode(codec))) for letter in letters)


def _words(rng: Random, size_max: int, codec: str, *, plain: bool) -> str:
    """Draw a text of 1 to `size_max` bytes in `codec`; most texts are short."""
    limit = rng.choice((4, 12, 12, 40, size_max))
    alphabet = _alphabet(codec, plain=plain)
    _, width = alphabet[0]
    room = max(rng.randint(1, max(1, min(limit, size_max))), width)
    # The same draws as `rng.choice`, but faster: most draws of a simulation are these.
    count, draw = len(alphabet), rng.getrandbits
    bits = count.bit_length()
    letters = list[str]()
    while room >= width:
        at = draw(bits)
        if at >= count:
            continue
        letter, size = alphabet[at]
        if size > room:
            letter, size = "x", width
        letters.append(letter)
        room -= size
    return "".join(letters)


def varchar(size: int) -> ColumnType:
    """VARCHAR2(size BYTE) in AL32UTF8."""

    def make(rng: Random) -> Cell:
        return text(_words(rng, size, "utf-8", plain=rng.random() < 0.7), "utf-8")

    return ColumnType(1, size, make, charset_id=CHARSET_UTF8, charset_form=1)


def nvarchar(characters: int) -> ColumnType:
    """NVARCHAR2(characters) in AL16UTF16."""

    def make(rng: Random) -> Cell:
        words = _words(rng, 2 * characters, "utf-16-be", plain=rng.random() < 0.5)
        return text(words, "utf-16-be")

    return ColumnType(1, 2 * characters, make, charset_id=CHARSET_UTF16, charset_form=2)


def char(size: int) -> ColumnType:
    """CHAR(size BYTE): padded with blanks."""

    def make(rng: Random) -> Cell:
        words = _words(rng, size, "utf-8", plain=rng.random() < 0.8)
        return text(words + " " * (size - len(words.encode())), "utf-8")

    return ColumnType(96, size, make, charset_id=CHARSET_UTF8, charset_form=1)


def raw_type(size: int) -> ColumnType:
    """RAW(size)."""

    def make(rng: Random) -> Cell:
        return raw(rng.randbytes(rng.randint(1, rng.choice((4, 16, size)))))

    return ColumnType(23, size, make)


def _moment(rng: Random, digits: int) -> Moment:
    if rng.random() < 0.05:
        return rng.choice(_DATE_EDGES)
    when = _EPOCH + timedelta(seconds=rng.randrange(-(10**9), 10**9))
    step = 10 ** (9 - digits)
    nanosecond = 0 if rng.random() < 0.2 else rng.randrange(10**digits) * step
    return _moment_of(when, nanosecond)


def _moment_of(when: datetime, nanosecond: int) -> Moment:
    return Moment(
        *(when.year, when.month, when.day, when.hour, when.minute, when.second), nanosecond
    )


def date_type() -> ColumnType:
    """DATE."""
    return ColumnType(12, 7, lambda rng: date(_moment(rng, 0)))


def timestamp_type(digits: int) -> ColumnType:
    """TIMESTAMP(digits)."""
    length = 11 if digits else 7
    return ColumnType(180, length, lambda rng: timestamp(_moment(rng, digits)), scale=digits)


def timestamp_tz_type(digits: int) -> ColumnType:
    """TIMESTAMP(digits) WITH TIME ZONE, fixed offsets."""

    def make(rng: Random) -> Cell:
        seconds = rng.randrange(-(10**9), 10**9)
        nanosecond = rng.randrange(10**digits) * 10 ** (9 - digits)
        minutes = rng.choice((0, 60, -210, 330, 345, 840, -720))
        utc = _EPOCH + timedelta(seconds=seconds)
        local = utc + timedelta(minutes=minutes)
        return timestamp_tz(_moment_of(utc, nanosecond), _moment_of(local, nanosecond), minutes)

    return ColumnType(181, 13, make, scale=digits)


def timestamp_ltz_type(digits: int) -> ColumnType:
    """TIMESTAMP(digits) WITH LOCAL TIME ZONE: the bytes of a TIMESTAMP, in the time zone of the
    database (values-and-lobs §6.3).
    """
    length = 11 if digits else 7
    return ColumnType(231, length, lambda rng: timestamp_ltz(_moment(rng, digits)), scale=digits)


def interval_ym() -> ColumnType:
    """INTERVAL YEAR(4) TO MONTH."""
    return ColumnType(
        *(182, 5, lambda rng: interval_year_to_month(rng.randint(-119999, 119999))), 4, 0
    )


def interval_ds(digits: int) -> ColumnType:
    """INTERVAL DAY(5) TO SECOND(digits)."""

    def make(rng: Random) -> Cell:
        units = rng.randrange(-86400 * 99999, 86400 * 99999) * 10**digits
        units += rng.randrange(10**digits)
        return interval_day_to_second(units * 10 ** (9 - digits))

    return ColumnType(183, 11, make, 5, digits)


def _quarter(rng: Random) -> float:
    return rng.randint(-39999, 39999) / 4


def binary_float_type() -> ColumnType:
    """BINARY_FLOAT."""
    return ColumnType(100, 4, lambda rng: binary_float(_quarter(rng)))


def binary_double_type() -> ColumnType:
    """BINARY_DOUBLE."""

    def make(rng: Random) -> Cell:
        return binary_double(_quarter(rng) if rng.random() < 0.5 else rng.uniform(-1e6, 1e6))

    return ColumnType(101, 8, make)


def lob_type(storage: LobStorage, size_max: int) -> ColumnType:
    """Declare a BLOB, CLOB or NCLOB with values of at most `size_max` bytes; most are short."""
    kind = storage.kind

    def make(rng: Random) -> Cell:
        size = rng.randint(0, min(size_max, rng.choice((4, 40, 40, 400, 4000, size_max))))
        if kind == BLOB:
            return LobDraft.of(storage, rng.randbytes(size))
        piece = _words(rng, max(2, min(size, 400)), UTF16, plain=rng.random() < 0.5)
        # DBMS_LOB may cut a text at any unit, so no character has two units of UTF-16.
        unit = "".join(min(letter, "\uffef") for letter in piece).encode(UTF16)
        return LobDraft.of(storage, unit * -(-size // len(unit)))

    if kind == BLOB:
        return ColumnType(113, 4000, make, lob=storage)
    charset_id, form = (CHARSET_UTF16, 2) if kind == NCLOB else (CHARSET_UTF8, 1)
    return ColumnType(112, 4000, make, charset_id=charset_id, charset_form=form, lob=storage)


SWARM_LOB_MAX: Final = 20_000
"""Maximum bytes of a LOB in the random workload; larger LOBs would leave little redo for other
changes.
"""


LOB_BLOCKS: Final = (*24 * (2048,), *12 * (8192,), 16_384, 32_768)
"""Sizes of LOB blocks; the number of times that a size is listed is its weight."""


def random_lob(rng: Random) -> ColumnType:
    """Draw a LOB declaration; blocks are mostly small, so that short values have several pages."""
    storage = LobStorage(
        rng.choice((BLOB, CLOB, NCLOB)),
        securefile=rng.random() < 0.6,
        in_row=rng.random() < 0.7,
        block_size=rng.choice(LOB_BLOCKS),
    )
    return lob_type(storage, min(rng.choice((1, 3, 16)) * storage.page, SWARM_LOB_MAX))


DECLARATIONS: Final[tuple[Callable[[Random], ColumnType], ...]] = (
    lambda rng: number_type(),
    lambda rng: number_type(rng.randint(1, 18), 0),
    lambda rng: number_type(38, 0),
    lambda rng: number_type(rng.randint(6, 20), rng.randint(1, 5)),
    lambda rng: varchar(rng.choice((10, 50, 200))),
    lambda rng: varchar(rng.choice((100, 600))),
    lambda rng: nvarchar(rng.choice((10, 60))),
    lambda rng: char(rng.choice((1, 10, 24))),
    lambda rng: raw_type(rng.choice((16, 100))),
    lambda rng: date_type(),
    lambda rng: timestamp_type(rng.choice((0, 3, 6, 9))),
    lambda rng: timestamp_tz_type(rng.choice((3, 6, 9))),
    lambda rng: interval_ym(),
    lambda rng: interval_ds(rng.choice((0, 6, 9))),
    lambda rng: binary_float_type(),
    lambda rng: binary_double_type(),
)
"""Functions that draw a declaration, one for each kind of column."""
