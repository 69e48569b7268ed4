"""Images are found in lines, whatever their values look like."""

from __future__ import annotations

from typing import Any

import numpy as np
import orjson
from hypothesis import given
from hypothesis import strategies as st

from olr_pg.kernels.compile import interpreted
from olr_pg.rendering.line_images import images_kernel

NAMES = st.text('aA"\\{}:,é\n', max_size=4)
VALUES = st.none() | st.integers(0, 9) | NAMES | st.dictionaries(NAMES, NAMES, max_size=2)
IMAGES = st.dictionaries(NAMES, VALUES, max_size=3)
LINES = st.one_of(
    st.fixed_dictionaries({"op": st.just("begin"), "session": IMAGES}),
    st.fixed_dictionaries({"op": st.just("insert"), "table": NAMES, "after": IMAGES}),
    st.fixed_dictionaries({"op": st.just("delete"), "table": NAMES, "before": IMAGES}),
    st.fixed_dictionaries(
        {"op": st.just("update"), "table": NAMES, "before": IMAGES, "after": IMAGES}
    ),
    st.fixed_dictionaries({"op": st.just("commit"), "scn": st.integers(0, 9)}),
)
CODES = {"begin": 1, "commit": 2, "insert": 4, "delete": 5, "update": 6}
ROW_ID = "AAAR5kAAMAAAACXAAA"
FIND = interpreted(images_kernel)


def line_of(made: dict[str, Any]) -> tuple[bytes, int]:
    """A line, and where its ROWID ends; 0 where it has none."""
    parts = {key: made[key] for key in ("op", "scn", "table", "session") if key in made}
    images = {key: made[key] for key in ("before", "after") if key in made}
    if not images:
        return orjson.dumps(parts) + b"\n", 0
    lead = orjson.dumps(parts | {"rowid": ROW_ID})[:-1]
    return lead + b"," + orjson.dumps(images)[1:] + b"\n", len(lead) - 1


@given(st.lists(LINES, max_size=6), st.integers(0, 6))
def test_images_are_found(made: list[dict[str, Any]], in_first_piece: int) -> None:
    changes = [line for line in made if {"before", "after"} & line.keys()]
    whole = b"".join(line_of(line)[0] for line in made)
    for kernel in (images_kernel, FIND):
        places = np.empty((4, len(changes)), np.int64)
        first_byte = count = 0
        for piece in (made[:in_first_piece], made[in_first_piece:]):
            lines = [line_of(line) for line in piece]
            ends = np.cumsum([len(line) for line, _ in lines], dtype=np.int64)
            begins = np.concatenate([[0], ends])[: len(ends)]
            row_ids = begins + np.array([at for _, at in lines], np.int64)
            text = np.frombuffer(b"".join(line for line, _ in lines), np.uint8)
            kinds = np.array([CODES[line["op"]] for line in piece], np.int32)
            count = kernel(text, first_byte, kinds, row_ids, ends, count, *places)
            first_byte += text.size
        assert count == len(changes)
        for line, (before, before_size, after, after_size) in zip(
            changes, places.T.tolist(), strict=True
        ):
            for name, at, size in (("before", before, before_size), ("after", after, after_size)):
                found = None if size < 0 else orjson.loads(whole[at : at + size])
                assert found == line.get(name)
