from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.kernels.compile import interpreted
from olr_pg.scalars import encode_redo_time
from olr_pg.simulator.named import calendar
from olr_pg.simulator.named import instance_memory as at

EPOCH = date(1970, 1, 1)


@given(day=st.dates(date(1, 1, 1), date(9999, 12, 31)))
def test_a_day_has_its_civil_date(day: date) -> None:
    found = interpreted(calendar.civil)((day - EPOCH).days)
    assert found == day.year * 10_000 + day.month * 100 + day.day


@given(when=st.datetimes(datetime(1988, 1, 2), datetime(2090, 1, 1)), hours=st.integers(-4, 4))  # noqa: DTZ001 - local time
def test_redo_has_the_local_time_of_the_host(when: datetime, hours: int) -> None:
    when = when.replace(microsecond=0, tzinfo=UTC)
    m = np.zeros(at.FIXED, np.int64)
    m[at.CLOCK] = int(when.timestamp()) * 1000
    m[at.ZONE] = hours * 3600
    local = when + timedelta(hours=hours)
    assert interpreted(calendar.redo_time)(m) == encode_redo_time(local)


def test_a_date_has_seven_bytes() -> None:
    d = np.zeros(9, np.uint8)
    seconds = int(datetime(2026, 11, 23, 22, 5, 59, tzinfo=UTC).timestamp())
    interpreted(calendar.put_date)(d, 1, seconds)
    assert d.tolist() == [0, 120, 126, 11, 23, 23, 6, 60, 0]
