"""Transactions that are not finished where LOB pages wait that name none: some may be theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from olr_pg.redo.batch import EventKind
from olr_pg.transactions.lobs.page_claims import Claims, claims_of_stranger, joined_claims

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import numpy.typing as npt

    from olr_pg.redo.batch import ChangeBatch
    from olr_pg.transactions.lobs.page_claims import UnownedPages


class Strangers:
    """What transactions claim that are not finished here; see the module's docstring.

    Args:
        is_split: whether others go to the driver, see `assembler.Assembler`.
    """

    def __init__(self, *, is_split: bool) -> None:
        self._is_split = is_split
        self._claims: list[tuple[Claims, object | None]] = []

    def note(
        self,
        chunks: Sequence[ChangeBatch],
        lob_tables: npt.NDArray[np.uint8],
        large: object | None = None,
    ) -> None:
        """Note what a transaction claims.

        Args:
            chunks: its events; their end counts as its commit, which is behind its pages.
            lob_tables: see `claims_of_stranger`.
            large: the transaction, where it is to be read in parts.
        """
        if not self._is_split and any(
            (one.events.kind == EventKind.UNDONE).any() for one in chunks
        ):
            # Somebody else may have written a LOB whose row it changed and then gave back. In a
            # split that one is left to the driver; here its value would be lost.
            return
        claims = claims_of_stranger(chunks, lob_tables)
        if claims.key.size:
            self._claims.append((claims, large))

    def claims(self, own: object | None = None) -> Claims:
        """Return the claims of the strangers; what `own` claims is nobody's."""
        return joined_claims(
            [claims if own is None or large is not own else claims.of_nobody()
             for claims, large in self._claims]
        ).in_order()  # fmt: skip

    def drop_from(self, pages: UnownedPages) -> None:
        """Drop the pages that nobody else will claim, and forget all claims.

        Which are those of transactions without a begin: were they left, others would have more LOB
        values where less redo was read.
        """
        if self._claims:
            pages.drop_claimed(self.claims(), by_strangers=True)
        self._claims = []
