"""Loaded once by the server process that children are forked from: the kernels, ready to run."""

from __future__ import annotations

from contextlib import suppress

from olr_pg.applier.kernel_warmup import warm_kernels as warm_applier
from olr_pg.errors import OlrPgError
from olr_pg.replicator.kernel_warmup import warm_kernels as warm_decoder
from olr_pg.wire.frames import ByteOrder
from tests.simulation import children as children

# A planted bug may break what the kernels are warmed up with: the seed is to find it then.
with suppress(OlrPgError):
    warm_decoder()
for order in ByteOrder:
    warm_applier(order)
