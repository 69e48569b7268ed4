"""Lost values as documents: what is read is what was written."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from olr_pg.applier.statements.lost_value_documents import LostValues, lost_document, read_lost
from olr_pg.transactions.finished_columns import DmlKind
from olr_pg.transactions.lobs.lost_values import LostLob

COUNT = st.integers(0, 1_000)
LOBS = st.lists(
    st.builds(
        LostLob, st.text(max_size=5), st.integers(2000, 2999), st.sampled_from(["", "A" * 18]),
        st.sampled_from(DmlKind), st.booleans(), st.tuples(COUNT, COUNT, COUNT),
        st.lists(
            st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=5)), max_size=2
        ).map(tuple),
    ),
    max_size=2,
).map(tuple)  # fmt: skip
MARKED = st.dictionaries(COUNT, st.builds(LostValues, st.text(max_size=5), LOBS, LOBS), max_size=3)


@given(MARKED)
def test_they_come_back_as_they_were(marked: dict[int, LostValues]) -> None:
    assert read_lost(lost_document(marked.items())) == marked


def test_without_any_there_is_no_document() -> None:
    assert lost_document([]) is None
    assert read_lost(None) == {}
