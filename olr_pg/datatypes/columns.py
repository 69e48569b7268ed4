"""Columns of values: the form in which values enter and leave the conversions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class ValueColumn(NamedTuple):
    """Values of one column as slices of a buffer: value i is ``data[offset[i] : offset[i] + length[i]]``.

    Oracle's internal form on the way in, PostgreSQL's binary form on the way out.

    Attributes:
        data: the buffer.
        offset: shape (n).
        length: shape (n); −1 is NULL.
    """

    data: npt.NDArray[np.uint8]
    offset: npt.NDArray[np.int64]
    length: npt.NDArray[np.int64]
