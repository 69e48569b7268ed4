"""Unusual ways in which a database may write its redo."""

from __future__ import annotations

from enum import StrEnum


class SourceMode(StrEnum):
    """A way of writing redo (docs/simulator.md, "Modes").

    SHARED_UNDO: the undo of all PDBs is in the root, and undo vectors contain the root's container
    id. ENCRYPTED: some tables are in encrypted tablespaces, so that the redo of their blocks is
    cipher text. DEPENDENT_LOADS: direct loads also load tables with row dependencies. LEAF_LOADS:
    index-organised tables are created from a query, which writes their leaf blocks. PARALLEL_DML:
    several transactions, which commit together, carry out one statement. ONE_RECORD: the commit of
    some transactions is in the record of their last changes, before these changes. FLAGLESS: the
    supplemental header of some changes of one piece is marked neither first nor last. STUB_IMAGES:
    the undo of a head without columns contains the head in the form that it has in its block.
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
"""Modes in which some changes cannot be decoded; ``undecoded.jsonl`` lists these changes."""
