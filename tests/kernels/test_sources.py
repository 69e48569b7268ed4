"""The digest of a kernel's sources."""

from __future__ import annotations

from olr_pg.kernels.late_dispatcher import MAKERS
from olr_pg.kernels.sources import imported, sources_digest


def test_a_module_is_known_by_all_that_it_imports() -> None:
    found = imported("olr_pg.wire.encoder")
    assert "olr_pg.kernels.compile" in found
    assert "olr_pg.transactions.finished_columns" in found  # through others
    assert not any(name.startswith("olr_pg.server") for name in found)
    assert "olr_pg.errors" not in found  # which no kernel is made of
    assert sources_digest("olr_pg.wire.encoder") != sources_digest("olr_pg.redo.log_extraction")


def test_what_compiles_kernels_counts() -> None:
    assert {"olr_pg.kernels.cache", "olr_pg.kernels.dispatchers"} <= {MAKERS, *imported(MAKERS)}
