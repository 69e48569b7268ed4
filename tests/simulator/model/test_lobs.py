from __future__ import annotations

from olr_pg.simulator.model.lobs import LobRedo, PageImage


def test_a_page_is_known_from_its_first_byte_or_not_at_all() -> None:
    page = PageImage(bytearray(), bytearray())
    page.put(4, b"tail")
    assert page.start(4) is None
    page.put(0, b"head")
    assert page.start(8) == b"headtail"
    assert page.start(9) is None
    assert not LobRedo().pages
