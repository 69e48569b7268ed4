"""Replaces invalid dates by NULL in the output of ``olr-pg decode`` and of the data source, as the
policy `invalid_date` does in the target.

Kernels write only valid dates. The kernels leave all other values to Python code, which raises an
error for an invalid date. So this code sees each invalid date before the error is raised, and valid
dates cost nothing.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from olr_pg.datatypes.temporal import TEMPORAL_FORMS, invalid_to_null

if TYPE_CHECKING:
    from olr_pg.datatypes.columns import ValueColumn


class InvalidDates:
    """Replaces invalid dates and times by NULL, and counts them. Several threads can use one
    object.

    Attributes:
        count: the number of replaced values.
    """

    def __init__(self) -> None:
        self.count = 0
        self._lock = threading.Lock()

    def replaced(self, type_code: int, values: ValueColumn) -> ValueColumn:
        """Return values of an Oracle type with the invalid dates replaced, as `invalid_to_null`
        does. Values of other types are returned unchanged.
        """
        form = TEMPORAL_FORMS.get(type_code)
        if form is None:
            return values
        valid, count = invalid_to_null(values, form)
        if count:
            with self._lock:
                self.count += count
        return valid
