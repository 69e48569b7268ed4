from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from olr_pg.simulator.database_shape import choose_shape
from olr_pg.simulator.fields.redo_format import MARKER, change_vector
from olr_pg.simulator.stamping.marks import Steps, find_marks
from olr_pg.simulator.stamping.redo_copies import Template, make_template
from olr_pg.simulator.writer.log_file import LogIdentity, LwnGroup, OpenLog, RedoRecord


@pytest.fixture(scope="module")
def template() -> Template:
    shape = choose_shape(1, "orders")
    shape = replace(shape, pace=replace(shape.pace, log_blocks=100))
    return make_template(1, "orders", shape, prefilled=False, size=60_000)


def test_every_kind_of_value_is_found(template: Template) -> None:
    (marks,) = template.marks
    for kind in (
        *("scns", "short_scns", "words", "halves", "incarnations", "rowid_words", "pairs"),
        *("times", "carried"),
    ):
        assert any(getattr(own, kind) for own in marks), kind


def test_no_byte_is_stamped_twice(template: Template) -> None:
    """But for the state of an undo header, which the first change of a copy takes over."""
    for part, own in zip(template.copied.parts[0], template.marks[0], strict=True):
        times = np.zeros(len(part.stream), np.uint8)
        spans = [(one.low, 4) for one in own.scns + own.short_scns]
        spans += [(one.high, 2) for one in own.scns + own.short_scns]
        for kind, width in (("words", 4), ("halves", 2), ("incarnations", 2)):
            spans += [(one.at, width) for one in getattr(own, kind)]
        for kind, width in (("rowid_words", 4), ("pairs", 2), ("times", 4)):
            spans += [(one.at, width) for one in getattr(own, kind)]
        for at, width in spans:
            times[at : at + width] += 1
        assert times.max() == 1


def test_what_is_not_known_to_be_the_same_in_copies_is_refused() -> None:
    redo = choose_shape(1, "orders").redo
    log = OpenLog(redo, LogIdentity(1, "DB", 1, 1, 1), 1, 100, 1)
    vector = change_vector(redo, (26, 2), MARKER, [bytes(8)])
    log.write(LwnGroup((RedoRecord(101, 1, vector),), 101, 1, 102))
    steps = Steps(100, 10, 1, {}, {}, {}, {}, {})
    with pytest.raises(ValueError, match=r"26\.2"):
        find_marks(redo, bytes(log.payloads[0]), steps)
