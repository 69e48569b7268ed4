"""The bytes of TIMESTAMP WITH TIME ZONE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.datatypes.temporal import encode_timestamp

if TYPE_CHECKING:
    from olr_pg.datatypes.temporal import ZonedDateTime


def encode_timestamp_tz(value: ZonedDateTime) -> bytes:
    """Encode a label of UTC with its offset in minutes or its region as 13 bytes."""
    offset, region = value.zone
    if region is not None:
        zone = bytes([0x80 | region >> 6, (region & 0x3F) << 2])
    else:
        assert offset is not None
        hours, minutes = divmod(abs(offset), 60)
        sign = -1 if offset < 0 else 1
        zone = bytes([20 + sign * hours, 60 + sign * minutes])
    return encode_timestamp(value.utc)[:7] + value.utc.nanosecond.to_bytes(4, "big") + zone
