"""Framed messages of elements, as decoding yields them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.wire.elements import encode_element
from olr_pg.wire.frames import ByteOrder, encode_frame

if TYPE_CHECKING:
    from olr_pg.wire.elements import Element


def framed(*elements: Element, order: ByteOrder = ByteOrder.LITTLE) -> bytes:
    """The blob that the wire carries: Data messages (operation code 4)."""
    code = (4).to_bytes(2, order.value)
    return b"".join(encode_frame(code + encode_element(e, order), order) for e in elements)
