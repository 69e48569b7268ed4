"""Kernels of a load, compiled ahead."""

from __future__ import annotations

from typing import Any

from olr_pg.applier.statements import images
from olr_pg.load import arrow_oracle_forms, row_images
from olr_pg.load.kernel_warmup import warm_load


def test_the_kernels_that_a_load_needs_are_there() -> None:
    warm_load()
    kernels: tuple[Any, ...] = (
        *(
            arrow_oracle_forms.number_kernel,
            arrow_oracle_forms.ticks_kernel,
            arrow_oracle_forms.time_text_kernel,
        ),
        *(images.rows_kernel, row_images.hash_kernel),
    )
    assert all(kernel.signatures for kernel in kernels)
