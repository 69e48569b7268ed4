"""Ways in which a database may write its redo that most databases do not have."""

from __future__ import annotations

from enum import StrEnum


class SourceMode(StrEnum):
    """A way of writing redo (docs/simulator.md, "Modes").

    SHARED_UNDO: the undo of all PDBs is in the root, whose container its vectors bear. ENCRYPTED:
    some tables are in encrypted tablespaces: redo of their blocks is cipher text. DEPENDENT_LOADS:
    tables with row dependencies are loaded directly, too. LEAF_LOADS: index-organised tables are
    created from a query, which writes their leaf blocks. PARALLEL_DML: some statements are carried
    out by several transactions, which commit as one. ONE_RECORD: some transactions end in the
    record of their last changes, which follow the commit. FLAGLESS: the supplemental header of some
    changes of one piece is marked neither first nor last. STUB_IMAGES: the undo of heads without
    columns contains them as they are in their blocks.
    """

    SHARED_UNDO = "shared-undo"
    ENCRYPTED = "encrypted"
    DEPENDENT_LOADS = "dependent-loads"
    LEAF_LOADS = "leaf-loads"
    PARALLEL_DML = "parallel-dml"
    ONE_RECORD = "one-record"
    FLAGLESS = "flagless"
    STUB_IMAGES = "stub-images"


UNDECODED_MODES = frozenset({SourceMode.ENCRYPTED, SourceMode.LEAF_LOADS})
"""Modes in which some changes cannot be decoded: ``undecoded.jsonl`` lists them."""
