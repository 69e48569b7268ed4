"""VECTOR values (Oracle 23ai): conversion between stored images and elements, and conversion to
PostgreSQL arrays, pgvector's types, bit strings and text.

An image is the content of the column's BLOB (values-and-lobs §13; checked with captured rows). An
image can contain the vector's norm (its magnitude). The norm is not read, because it may be missing
or zero.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from olr_pg.datatypes.binary_float import shortest
from olr_pg.datatypes.outcomes import malformed
from olr_pg.errors import Code, OlrPgError

DIMENSIONS_MAX: Final = 65_535
"""Oracle's maximum number of dimensions. A dimension of a BINARY vector is one bit."""

_MAGIC: Final = 0xDB
_HEAD: Final = struct.Struct(">BBHBI")
_NORM: Final = 0x0012
_SPARSE: Final = 0x0020
_TYPE: Final = "VECTOR"


class VectorFormat(IntEnum):
    """How the elements of a vector are stored."""

    FLOAT32 = 2
    FLOAT64 = 3
    INT8 = 4
    BINARY = 5


_STORED: Final[dict[VectorFormat, np.dtype[Any]]] = {
    VectorFormat.FLOAT32: np.dtype(">u4"),
    VectorFormat.FLOAT64: np.dtype(">u8"),
    VectorFormat.INT8: np.dtype("i1"),
    VectorFormat.BINARY: np.dtype("u1"),
}
_VALUES: Final[dict[VectorFormat, np.dtype[Any]]] = {
    VectorFormat.FLOAT32: np.dtype("f4"),
    VectorFormat.FLOAT64: np.dtype("f8"),
}


@dataclass(frozen=True, slots=True, eq=False)
class VectorValue:
    """A VECTOR value.

    Attributes:
        format: the format of the elements.
        dimensions: the number of dimensions; for BINARY, the number of bits.
        values: the elements as float32, float64 or int8; for BINARY, the bytes (uint8); for a
            sparse vector, only the elements that are not 0.
        indexes: for a sparse vector, the index of each of `values`, from 0; None for a dense
            vector.
    """

    format: VectorFormat
    dimensions: int
    values: npt.NDArray[Any]
    indexes: npt.NDArray[np.int64] | None = None

    def dense(self) -> npt.NDArray[Any]:
        """Return all elements, including zeros; for BINARY, the bytes."""
        if self.indexes is None:
            return self.values
        elements = np.zeros(self.dimensions, self.values.dtype)
        elements[self.indexes] = self.values
        return elements


def decode_vector(raw: bytes) -> VectorValue:
    """Decode an image.

    Raises:
        OlrPgError: 2050, malformed image.
    """
    if len(raw) < _HEAD.size:
        raise malformed(_TYPE, raw)
    magic, version, flags, code, dimensions = _HEAD.unpack_from(raw)
    known = magic == _MAGIC and version <= 2 and code in _FORMATS
    if not known or not 0 < dimensions <= DIMENSIONS_MAX:
        raise malformed(_TYPE, raw)
    form = VectorFormat(code)
    at = _HEAD.size + (8 if flags & _NORM else 0)
    indexes = None
    count = dimensions
    if form is VectorFormat.BINARY:
        if dimensions % 8 or flags & _SPARSE:
            raise malformed(_TYPE, raw)
        count = dimensions // 8
    if flags & _SPARSE:
        count = int.from_bytes(raw[at : at + 2])
        at += 2
        if at + 4 * count > len(raw):
            raise malformed(_TYPE, raw)
        indexes = np.frombuffer(raw, ">u4", count, at).astype(np.int64)
        at += 4 * count
        if (indexes >= dimensions).any() or (np.diff(indexes) <= 0).any():
            raise malformed(_TYPE, raw)
    stored = _STORED[form]
    if len(raw) != at + count * stored.itemsize:
        raise malformed(_TYPE, raw)
    bits = np.frombuffer(raw, stored, count, at)
    return VectorValue(form, dimensions, _floats(bits, form), indexes)


_FORMATS: Final = frozenset(VectorFormat)


def _floats(bits: npt.NDArray[Any], form: VectorFormat) -> npt.NDArray[Any]:
    """Convert stored elements to floats. Oracle stores floats with inverted bits, as in
    BINARY_FLOAT and BINARY_DOUBLE (values-and-lobs §8).
    """
    if form not in _VALUES:
        return bits
    native = bits.astype(bits.dtype.newbyteorder("="))
    top = native.dtype.type(1 << (8 * native.itemsize - 1))
    return np.where(native & top, native ^ top, ~native).view(_VALUES[form])


def encode_vector(vector: VectorValue) -> bytes:
    """Encode the vector as an image, without a norm.

    Raises:
        OlrPgError: 2058, the number of elements does not match the dimensions.
    """
    stored = _STORED[vector.format]
    count = len(vector.values)
    expected = vector.dimensions // (8 if vector.format is VectorFormat.BINARY else 1)
    if vector.indexes is not None:
        expected = len(vector.indexes)
    if count != expected or not 0 < vector.dimensions <= DIMENSIONS_MAX:
        raise OlrPgError(
            Code.VALUE_NOT_EXPRESSIBLE_IN_ORACLE,
            f"{count} elements for a VECTOR of {vector.dimensions}",
        )
    sparse = b""
    version = 1 if vector.format is VectorFormat.BINARY else 0
    if vector.indexes is not None:
        version = 2
        sparse = count.to_bytes(2) + vector.indexes.astype(">u4").tobytes()
    head = _HEAD.pack(_MAGIC, version, _SPARSE if sparse else 0, vector.format, vector.dimensions)
    values = vector.values
    if vector.format in _VALUES:
        bits: npt.NDArray[Any] = (values.astype(_VALUES[vector.format]) + 0.0).view(
            f"u{stored.itemsize}"
        )
        bits = np.where(np.isnan(values), _quiet_nan(stored.itemsize), bits)
        top = bits.dtype.type(1 << (8 * stored.itemsize - 1))
        values = np.where(bits & top, ~bits, bits ^ top)
    return b"".join((head, sparse, values.astype(stored).tobytes()))


def _quiet_nan(width: int) -> Any:
    return np.uint32(0x7FC00000) if width == 4 else np.uint64(0x7FF8000000000000)


def vector_text(raw: bytes) -> str:
    """Return an image as text such as ``[1.5,0]``. Sparse vectors become dense.

    Raises:
        OlrPgError: 2050, a value is malformed.
    """
    vector = decode_vector(raw)
    return f"[{_printed(vector.format, vector.dense())}]"


def _printed(form: VectorFormat, values: npt.NDArray[Any]) -> str:
    if form not in _VALUES:
        return ",".join(map(str, values.tolist()))
    width = values.itemsize
    return ",".join(shortest(value, width).removesuffix(".0") for value in values.tolist())


_ARRAYS: Final[dict[str, tuple[int, np.dtype[Any]]]] = {
    "f4": (700, np.dtype(">f4")),
    "f8": (701, np.dtype(">f8")),
    "i2": (21, np.dtype(">i2")),
}


def vector_to_array(raw: bytes, element: str) -> bytes:
    """Convert an image to PostgreSQL's binary form of a one-dimensional array. Sparse vectors
    become dense.

    Args:
        element: ``f4`` real, ``f8`` double precision, ``i2`` smallint.

    Raises:
        OlrPgError: 2050 malformed image; 2053, 2057 an element does not fit.
    """
    values = decode_vector(raw).dense()
    oid, stored = _ARRAYS[element]
    if element == "i2" and values.dtype.kind == "f":
        raise OlrPgError(Code.VALUE_WOULD_LOSE, f"VECTOR of {values.dtype} to smallint[]")
    with np.errstate(over="ignore", invalid="ignore"):
        converted = values.astype(stored)
    if element == "f4" and (np.isinf(converted) & ~np.isinf(values.astype("f8"))).any():
        raise OlrPgError(Code.VALUE_OUT_OF_RANGE, "VECTOR to real[]: an element is out of range")
    items = np.empty(len(values), [("size", ">i4"), ("value", stored)])
    items["size"] = stored.itemsize
    items["value"] = converted
    return struct.pack(">iiIii", 1, 0, oid, len(values), 1) + items.tobytes()


def vector_to_vector(raw: bytes) -> bytes:
    """Convert an image to the binary form of pgvector's `vector`. Sparse vectors become dense.

    Raises:
        OlrPgError: 2050 malformed image; 2053 an element does not fit.
    """
    values = _elements(raw, "vector", np.dtype(">f4"))
    return struct.pack(">hh", len(values), 0) + values.tobytes()


def vector_to_halfvec(raw: bytes) -> bytes:
    """Convert an image to the binary form of pgvector's `halfvec`, with floats of 2 bytes.

    Raises:
        OlrPgError: 2050 malformed image; 2053 an element does not fit.
    """
    values = _elements(raw, "halfvec", np.dtype(">f2"))
    return struct.pack(">hh", len(values), 0) + values.tobytes()


def vector_to_sparsevec(raw: bytes) -> bytes:
    """Convert an image to the binary form of pgvector's `sparsevec`: the elements that are not 0,
    with their indexes.

    Raises:
        OlrPgError: 2050 malformed image; 2053 an element does not fit.
    """
    values = _elements(raw, "sparsevec", np.dtype(">f4"))
    places = np.flatnonzero(values)
    head = struct.pack(">iii", len(values), len(places), 0)
    return head + places.astype(">i4").tobytes() + values[places].tobytes()


def _elements(raw: bytes, name: str, stored: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return the elements of an image for a type of pgvector. These types accept only finite
    elements.

    Raises:
        OlrPgError: 2050 malformed image; 2053 an element does not fit.
    """
    vector = decode_vector(raw)
    if vector.format is VectorFormat.BINARY:
        raise OlrPgError(
            Code.VALUE_OUT_OF_RANGE, f"a BINARY vector to {name}, but only bit can store it"
        )
    with np.errstate(over="ignore"):
        values = vector.dense().astype(stored)
    if not np.isfinite(values).all():
        raise OlrPgError(Code.VALUE_OUT_OF_RANGE, f"VECTOR to {name}: an element is out of range")
    return values


def vector_to_bits(raw: bytes) -> bytes:
    """Convert a BINARY vector to PostgreSQL's binary form of a bit string. The order of the bytes
    stays the same.

    Raises:
        OlrPgError: 2050 malformed image; 2053 the vector is not BINARY.
    """
    vector = decode_vector(raw)
    if vector.format is not VectorFormat.BINARY:
        raise OlrPgError(Code.VALUE_OUT_OF_RANGE, f"VECTOR of {vector.format.name} to a bit string")
    return struct.pack(">i", vector.dimensions) + vector.values.tobytes()
