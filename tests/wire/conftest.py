"""Hypothesis profile and byte orders for the wire tests."""

from __future__ import annotations

import pytest

from olr_pg.wire.frames import ByteOrder


@pytest.fixture(params=list(ByteOrder), ids=lambda order: order.value)
def order(request: pytest.FixtureRequest) -> ByteOrder:
    value = request.param
    assert isinstance(value, ByteOrder)
    return value
