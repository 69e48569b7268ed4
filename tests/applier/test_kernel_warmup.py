from __future__ import annotations

import threading
from typing import Any

import pytest

from olr_pg.applier import kernel_warmup as warm
from olr_pg.applier.received import change_reading
from olr_pg.applier.received import row_columns as rows
from olr_pg.applier.statements import copying, images
from olr_pg.applier.statements import net_change as netchange
from olr_pg.datatypes import number, temporal, text
from olr_pg.wire.frames import ByteOrder


@pytest.mark.parametrize("order", list(ByteOrder))
def test_made_up_changes_go_through_every_kernel(order: ByteOrder) -> None:
    warm.warm_kernels(order)
    kernels: tuple[Any, ...] = (
        change_reading.read_changes_kernel,
        netchange.net_change_kernel,
        netchange.outcome_kernel,
        rows.encode_rows_kernel,
        copying.copy_rows_kernel,
        copying.reorder_kernel,
        images.rows_kernel,
        images.masks_kernel,
        number.integers_kernel,
        number.numeric_kernel,
        temporal.micros_kernel,
        text.utf8_kernel,
        text.utf16_kernel,
    )
    for kernel in kernels:
        assert kernel.signatures, kernel


def test_it_ends_with_its_block(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = threading.Event()
    # Kernels that are compiled already would be through before anybody looks.
    monkeypatch.setattr(warm, "warm_kernels", lambda *_: seen.wait(60))
    with warm.warming(ByteOrder.LITTLE):
        assert any(thread.name == "warm-kernels" for thread in threading.enumerate())
        seen.set()
    assert not any(thread.name == "warm-kernels" for thread in threading.enumerate())


def test_an_error_is_told_and_ends_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("no compiler")

    monkeypatch.setattr(warm, "warm_kernels", broken)
    with warm.warming(ByteOrder.LITTLE):
        pass
    assert "no compiler" in capsys.readouterr().out
