"""Records, durably, from which incarnation of the source transactions were delivered.

An ``OPEN RESETLOGS`` begins a new incarnation at an SCN: the parent's redo from that SCN on is
orphaned. If transactions from this orphaned redo were already delivered, the target has
transactions that the source does not have. olr_pg cannot undo such transactions in the target.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from olr_pg.capture.wanted_logs import ends_of
from olr_pg.errors import Code, OlrPgError
from olr_pg.files.durable import damaged, read_state, write_state
from olr_pg.transactions.schema_event import Ancestry, Incarnation

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path


FILE_NAME: Final = "incarnation.json"
"""Name of the file in `context.data`."""

VERSION: Final = 2
"""The version of the file's format that we write; a file without a version has version 1. Version 1
does not contain the SCN at which the incarnation began.
"""

_IF_DAMAGED: Final = (
    "restore the file from a backup. Or delete the file: the next start writes it again. The"
    " ledger in the target still shows from which incarnation transactions were applied"
)

_Number = Annotated[int, Field(ge=0)]


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    version: int = 1
    resetlogs: _Number
    resetlogs_scn: _Number | None = None
    delivered_scn: _Number


class Lineage:
    """The incarnation from which redo was delivered, and the earlier incarnations.

    Args:
        path: path of the file, in an existing directory.

    Attributes:
        ancestry: the current incarnation and the earlier ones; None before they are known.

    Raises:
        OlrPgError: 1092 the file exists but cannot be read, 4036 it is damaged, 4035 a newer
            version of olr_pg wrote it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: _File | None = None
        self._ends: dict[int, int] = {}
        self.ancestry: Ancestry | None = None
        data = read_state(path, VERSION)
        if data is None:
            return
        try:
            self._known = _File.model_validate_json(data)
        except ValidationError as error:
            raise damaged(path, data, _IF_DAMAGED) from error

    @property
    def delivered_scn(self) -> int:
        """Transactions with a lower commit SCN may have been delivered."""
        return 0 if self._known is None else self._known.delivered_scn

    def delivered(self, scn: int) -> None:
        """Record durably that transactions with a commit SCN below `scn` may have been delivered.

        Raises:
            OlrPgError: 1092, the file cannot be written.
        """
        if self._known is not None and scn > self._known.delivered_scn:
            self._keep(self._known.model_copy(update={"delivered_scn": scn}))

    def is_of_another(self, current: Incarnation) -> bool:
        """Return whether redo was delivered from another incarnation than `current`."""
        return self._known is not None and self._known.resetlogs != current.resetlogs_id

    def follow(self, incarnations: Sequence[Incarnation]) -> None:
        """Adopt the incarnations of the source, the current one first.

        Raises:
            OlrPgError: 7020, transactions were delivered that the current incarnation does not
                contain.
        """
        if not incarnations:
            raise OlrPgError(Code.ORACLE_ERROR, "V$DATABASE_INCARNATION has no current incarnation")
        # Redo of a parent incarnation is valid up to the SCN at which its child began.
        self._ends = {
            parent.resetlogs_id: child.resetlogs_scn for child, parent in pairwise(incarnations)
        }
        current = incarnations[0]
        if self._known is not None and self.is_of_another(current):
            self._check_end(self._known, current, self._ends.get(self._known.resetlogs))
        self._record(current)
        self.ancestry = Ancestry(tuple(incarnations), is_whole=True)

    def follow_logs(self, incarnations: Collection[tuple[int, int]]) -> None:
        """Adopt the incarnations that log headers name: the resetlogs id and the RESETLOGS SCN of
        each.

        `capture.wanted_logs` explains how the parent of an incarnation is found. The incarnation
        from which transactions were delivered counts even if its logs are deleted. Logs of its
        parent may still exist, with redo that this incarnation has orphaned.

        Raises:
            OlrPgError: 7020, transactions were delivered that the newest incarnation does not
                contain.
        """
        found = {Incarnation(*one) for one in incarnations}
        if self._known is not None and self._known.resetlogs_scn is not None:
            found.add(Incarnation(self._known.resetlogs, self._known.resetlogs_scn))
        self._ends = ends_of(found)
        current = max(found)
        if self._known is not None:
            last = self._known.resetlogs
            begins = [scn for one, scn in found if one > last]
            if begins:
                self._check_end(self._known, current, min(begins))
        if self._known is None or self._known.resetlogs <= current.resetlogs_id:
            self._record(current)
        self.ancestry = Ancestry(tuple(sorted(found, reverse=True)), is_whole=False)

    def _record(self, current: Incarnation) -> None:
        """Record the current incarnation."""
        known = self._known
        file = _File(
            version=VERSION,
            resetlogs=current.resetlogs_id,
            resetlogs_scn=current.resetlogs_scn,
            delivered_scn=self.delivered_scn,
        )
        if file != known:
            self._keep(file)

    def _check_end(self, known: _File, current: Incarnation, end: int | None) -> None:
        """Check that the recorded incarnation, whose valid redo ends at `end`, can be replaced."""
        if known.delivered_scn and (end is None or end < known.delivered_scn):
            where = "before it" if end is None else f"at SCN {end}"
            raise OlrPgError(
                Code.RESETLOGS_BEHIND_DELIVERED,
                f"incarnation {current.resetlogs_id} begins {where}, but transactions up to SCN"
                f" {known.delivered_scn} were delivered from incarnation"
                f" {known.resetlogs}",
                resetlogs=current.resetlogs_id,
                scn=end,
            )

    def end_of(self, resetlogs_id: int) -> int | None:
        """Return the SCN from which an incarnation's redo is orphaned; None for the current one."""
        return self._ends.get(resetlogs_id)

    def _keep(self, known: _File) -> None:
        write_state(self._path, known.model_dump_json().encode())
        # Set the attribute only after the file is written, so that a retry writes the file again.
        self._known = known
