"""Import it before any kernel: with bounds checks, a part of kernels is a function of its own.

Inlined at every place, with a check at every index, the code of the largest kernel is several times
what the product has, and nearly all of the time goes into compiling it.
"""

from __future__ import annotations

import os

from olr_pg.kernels import compile as decorators

CHECKS_BOUNDS = os.environ.get("NUMBA_BOUNDSCHECK", "0") != "0"

if CHECKS_BOUNDS:
    decorators.inlined = decorators.part
