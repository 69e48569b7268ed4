"""Strategies for the values of JSON and VECTOR columns, and python-oracledb as a judge of OSON."""

from __future__ import annotations

import datetime
import importlib
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import oracledb
from hypothesis import strategies as st

from olr_pg.datatypes.interval import DaySecond
from olr_pg.datatypes.oson import Single
from olr_pg.datatypes.temporal import DateTime
from olr_pg.datatypes.vector import VectorFormat, VectorValue
from olr_pg.errors import OlrPgError

if TYPE_CHECKING:
    from collections.abc import Callable

NUMBERS = st.integers(-(10**38) + 1, 10**38 - 1).flatmap(
    lambda digits: st.integers(-30, 30).map(lambda exponent: Decimal(digits).scaleb(exponent))
)
FLOATS = st.floats(allow_nan=False).map(lambda value: value + 0.0 if value else 0.0)
SINGLES = st.floats(allow_nan=False, width=32).map(lambda value: Single(value or 0.0))
DATES = st.builds(
    DateTime,
    st.integers(1, 9999),
    st.integers(1, 12),
    st.integers(1, 28),
    st.integers(0, 23),
    st.integers(0, 59),
    st.integers(0, 59),
    st.integers(0, 999_999_999),
)
INTERVALS = st.integers(-(10**20), 10**20).map(DaySecond)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
LEAVES_OF_SQL = st.one_of(
    st.none(), st.booleans(), NUMBERS, DATES, INTERVALS, TEXTS, st.binary(max_size=300)
)
"""Those that python-oracledb writes as they are: it makes NUMBERs of floats."""

LEAVES = LEAVES_OF_SQL | FLOATS | SINGLES


def documents(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Objects and arrays of such values, and the values alone."""
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=5) | st.dictionaries(NAMES, inner, max_size=5),
        max_leaves=20,
    )


DOCUMENTS = documents(LEAVES)


def numbers_of(form: VectorFormat) -> st.SearchStrategy[Any]:
    """Elements of a vector."""
    return {
        VectorFormat.FLOAT32: st.floats(width=32, allow_nan=False),
        VectorFormat.FLOAT64: st.floats(allow_nan=False),
        VectorFormat.INT8: st.integers(-128, 127),
        VectorFormat.BINARY: st.integers(0, 255),
    }[form]


NUMPY: dict[VectorFormat, np.dtype[Any]] = {
    VectorFormat.FLOAT32: np.dtype("f4"),
    VectorFormat.FLOAT64: np.dtype("f8"),
    VectorFormat.INT8: np.dtype("i1"),
    VectorFormat.BINARY: np.dtype("u1"),
}


@st.composite
def vectors(draw: st.DrawFn) -> VectorValue:
    """Dense vectors of every format, sparse ones of all but BINARY."""
    form = draw(st.sampled_from(VectorFormat))
    items = draw(st.lists(numbers_of(form), min_size=1, max_size=40))
    elements = np.array(items, NUMPY[form])
    elements += elements.dtype.type(0)  # Oracle has one zero
    if form is VectorFormat.BINARY:
        return VectorValue(form, 8 * len(elements), elements)
    if draw(st.booleans()):
        return VectorValue(form, len(elements), elements)
    gaps = draw(st.lists(st.integers(1, 90), min_size=len(elements), max_size=len(elements)))
    indexes = np.cumsum(gaps) - 1
    return VectorValue(form, int(indexes[-1]) + draw(st.integers(1, 5)), elements, indexes)


def refused_with(read: Callable[[bytes], object], raw: bytes) -> int | None:
    """The code of the error that reading raises, None where it gives a value."""
    try:
        read(raw)
    except OlrPgError as error:
        return error.code
    return None


def python_oracledb() -> Any:
    """Encodes and decodes OSON without a connection, by python-oracledb's own code."""
    implementation = importlib.import_module("oracledb.thin_impl").ThinConnImpl
    return implementation.__new__(implementation, "nowhere", oracledb.ConnectParams())


def plain(value: Any) -> Any:
    """A document with the types that python-oracledb uses."""
    match value:
        case dict():
            return {name: plain(child) for name, child in value.items()}
        case list():
            return [plain(child) for child in value]
        case DateTime():
            micros = value.nanosecond // 1000
            return datetime.datetime(  # noqa: DTZ001 - a label
                value.year, value.month, value.day, value.hour, value.minute, value.second, micros
            )
        case DaySecond():
            return datetime.timedelta(microseconds=value.total // 1000)
        case VectorValue():
            return value.values.tolist()
        case Single():
            return float(value)
    return value
