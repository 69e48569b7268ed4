"""The result as a page that loads nothing, as text, and back from its JSON."""

from __future__ import annotations

import json

from olr_pg.proving.report_page import (
    Judge,
    Proof,
    ScenarioResult,
    Verdict,
    Word,
    html_page,
    summary,
    text_lines,
)

RIGHT = Verdict(Word.RIGHT, "3 commits")
UNTRIED = Verdict(Word.UNTRIED, "ORA-00942 <no view>")
RESULTS = (
    ScenarioResult(
        "types/dates", "dates & times",
        {Judge.REPLAY: RIGHT, Judge.LOGMINER: UNTRIED, Judge.WHOLE_WAY: RIGHT}, 1.5,
    ),
    ScenarioResult(
        "lobs/empty", "empty LOBs",
        {
            Judge.REPLAY: Verdict(Word.DIFFERS, differences=("A.T: V is 1, not 2",), incident="/x"),
            Judge.LOGMINER: UNTRIED,
            Judge.WHOLE_WAY: Verdict(Word.REFUSED, "why", "OLR-02120"),
        },
        0.5,
    ),
)  # fmt: skip
PROOF = Proof("0.1", {"name": "ORCL", "version": "19c"}, RESULTS)


def test_the_page_has_everything_and_loads_nothing() -> None:
    page = html_page(PROOF)
    for text in ("types/dates", "dates &amp; times", "&lt;no view&gt;", "OLR-02120", "ORCL", "19c",
                 "A.T: V is 1, not 2", "<code>/x</code>", "differences in 1 scenario"):  # fmt: skip
        assert text in page
    for loading in ("http", "src=", "<script", "@import", "url("):
        assert loading not in page


def test_the_text_explains_what_is_not_right_once() -> None:
    lines = list(text_lines(PROOF))
    assert "    replay: A.T: V is 1, not 2" in lines
    assert "    masked redo: /x" in lines
    explained = [line for line in lines if "ORA-00942" in line]
    assert explained == ["logminer not tried ORA-00942 <no view> (types/dates, lobs/empty)"]
    assert "replay: 1 right, 1 differs" in lines
    assert summary(PROOF._replace(results=RESULTS[:1])) == ("1 scenario tried, no differences")


def test_results_come_back_from_their_json() -> None:
    document = json.loads(json.dumps(PROOF.as_json()))
    assert tuple(map(ScenarioResult.of, document["scenarios"])) == RESULTS
    assert document["differs"] is True
    assert document["counts"]["whole way"] == {
        "right": 1, "differs": 0, "refused": 1, "not tried": 0,
    }  # fmt: skip
