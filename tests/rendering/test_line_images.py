"""Images are found in lines, whatever their values look like."""

from __future__ import annotations

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
KEYS = ("op", "scn", "table", "session", "before", "after")
FIND = interpreted(images_kernel)


@given(st.lists(LINES, max_size=6))
def test_images_are_found(made: list[dict[str, object]]) -> None:
    lines = [{key: line[key] for key in KEYS if key in line} for line in made]
    text = np.frombuffer(b"".join(orjson.dumps(line) + b"\n" for line in lines), np.uint8)
    changes = [line for line in lines if {"before", "after"} & line.keys()]
    places = np.empty((4, len(changes)), np.int64)
    for kernel in (images_kernel, FIND):
        assert kernel(text, *places) == len(changes)
        for line, (before, before_size, after, after_size) in zip(
            changes, places.T.tolist(), strict=True
        ):
            for name, at, size in (("before", before, before_size), ("after", after, after_size)):
                found = None if size < 0 else orjson.loads(text[at : at + size].tobytes())
                assert found == line.get(name)
