"""Collects the claims of *strangers* on waiting LOB pages (`page_claims`). A stranger is a
transaction that this assembler does not finish.
"""

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
    """The claims of strangers; see the module's docstring.

    Args:
        is_split: whether the driver finishes the strangers, see `assembler.Assembler`.
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
        """Record the claims of a transaction.

        Args:
            chunks: the events of the transaction. The last one counts as its commit, which is after
                its pages.
            lob_tables: see `claims_of_stranger`.
            large: the transaction, if it is a large one that is read in parts.
        """
        if not self._is_split and any(
            (one.events.kind == EventKind.UNDONE).any() for one in chunks
        ):
            # This transaction undid changes, so it may have changed the row of a LOB and then
            # undone this. Then another transaction may have written the LOB, and the claim would
            # take the page from it.
            return
        claims = claims_of_stranger(chunks, lob_tables)
        if claims.key.size:
            self._claims.append((claims, large))

    def claims(self, own: object | None = None) -> Claims:
        """Return the claims of the strangers. The claims of the large transaction `own` get the
        owner `NOBODY`.
        """
        return joined_claims(
            [claims if own is None or large is not own else claims.of_nobody()
             for claims, large in self._claims]
        ).in_order()  # fmt: skip

    def drop_from(self, pages: UnownedPages) -> None:
        """Drop the pages that belong to strangers, and forget all claims.

        These pages belong to transactions whose begin was not read. If they stayed, the result
        would depend on where reading started.
        """
        if self._claims:
            pages.drop_claimed(self.claims(), by_strangers=True)
        self._claims = []
