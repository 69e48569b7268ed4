"""The complete result of a run of `olr-pg prove`, with the verdicts of the judges on each scenario.
The result is written as one HTML file, which needs no network access and no scripts, and as lines
of text.
"""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from html import escape
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from olr_pg.observability.wording import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.errors import OlrPgError


FORMAT: Final = "olr-pg-proof/1"


class Judge(StrEnum):
    """The judges of a scenario."""

    REPLAY = "replay"
    LOGMINER = "logminer"
    WHOLE_WAY = "whole way"


class Word(StrEnum):
    """The possible verdicts."""

    RIGHT = "right"
    DIFFERS = "differs"
    REFUSED = "refused"
    UNTRIED = "not tried"


class Verdict(NamedTuple):
    """The verdict of a judge on a scenario.

    Attributes:
        code: code of the error if the scenario was refused, such as ``OLR-02062``.
        reason: the reason why the scenario was refused or not tried. For the verdict "right", it
            says what was compared.
        differences: the differences as text.
        incident: the path of the masked incident file; empty for none.
    """

    word: Word
    reason: str = ""
    code: str = ""
    differences: tuple[str, ...] = ()
    incident: str = ""

    @classmethod
    def refused(cls, error: OlrPgError) -> Verdict:
        """Return the verdict for a scenario that cannot be decoded because of an error."""
        return cls(Word.REFUSED, f"{error.title}: {error.detail}", error.label)

    @classmethod
    def of(cls, document: dict[str, Any]) -> Verdict:
        """Return the verdict that a document from `as_json` contains."""
        return cls(
            Word(document["verdict"]), document["reason"], document["code"],
            tuple(document["differences"]), document["incident"],
        )  # fmt: skip

    def as_json(self) -> dict[str, Any]:
        """Return the verdict as JSON."""
        return {
            "verdict": self.word.value,
            "reason": self.reason,
            "code": self.code,
            "differences": list(self.differences),
            "incident": self.incident,
        }


class ScenarioResult(NamedTuple):
    """The verdicts of all judges on a scenario."""

    name: str
    purpose: str
    verdicts: dict[Judge, Verdict]
    seconds: float

    @property
    def differs(self) -> bool:
        """Return whether a judge found a difference."""
        return any(one.word is Word.DIFFERS for one in self.verdicts.values())

    @classmethod
    def of(cls, document: dict[str, Any]) -> ScenarioResult:
        """Return the result that a document from `as_json` contains."""
        judged = document["judges"]
        return cls(
            document["scenario"], document["purpose"],
            {judge: Verdict.of(judged[judge.value]) for judge in Judge}, document["seconds"],
        )  # fmt: skip

    def as_json(self) -> dict[str, Any]:
        """Return the result as JSON."""
        return {
            "scenario": self.name,
            "purpose": self.purpose,
            "judges": {judge.value: one.as_json() for judge, one in self.verdicts.items()},
            "seconds": round(self.seconds, 2),
        }


class Proof(NamedTuple):
    """The complete result of a run.

    Attributes:
        facts: the properties of the database, as text.
        results: results of all selected scenarios, in order.
    """

    version: str
    facts: dict[str, str]
    results: tuple[ScenarioResult, ...]

    @property
    def differs(self) -> bool:
        """Return whether any judge found a difference."""
        return any(one.differs for one in self.results)

    def counts(self) -> dict[Judge, Counter[Word]]:
        """Count the verdicts of each judge."""
        return {judge: Counter(one.verdicts[judge].word for one in self.results) for judge in Judge}

    def as_json(self) -> dict[str, Any]:
        """Return the result as JSON."""
        counted = {
            judge.value: {word.value: found[word] for word in Word}
            for judge, found in self.counts().items()
        }
        return {
            "format": FORMAT,
            "version": self.version,
            "database": self.facts,
            "differs": self.differs,
            "counts": counted,
            "scenarios": [one.as_json() for one in self.results],
        }


_STYLE: Final = """
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#5a6472;--line:#d9dee5;--paper:#fff;
--card:#f6f8fa;--right:#2f855a;--differs:#c0392b;--refused:#b7791f;--untried:#5a6472}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ee;--soft:#9aa5b4;--line:#333b46;--paper:#14181d;
--card:#1c222a;--right:#58b888;--differs:#f08070;--refused:#e0ab4f;--untried:#9aa5b4}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:72rem;padding:1.5rem;background:var(--paper);color:var(--ink);
font:16px/1.5 system-ui,sans-serif}
h1{font-size:1.6rem;margin:0}h2{font-size:1.2rem;margin:2.2rem 0 .6rem}p{margin:.4rem 0}
.soft{color:var(--soft)}code{font-family:ui-monospace,monospace;overflow-wrap:anywhere}
.cards{display:grid;gap:.8rem;margin:1rem 0;
grid-template-columns:repeat(auto-fit,minmax(11rem,1fr))}
.card{background:var(--card);border:1px solid var(--line);border-radius:.5rem;padding:.7rem .9rem}
.card b{display:block;font-size:1.2rem}
table{border-collapse:collapse;width:100%;font-size:.93rem}
th,td{text-align:left;vertical-align:top;padding:.35rem .6rem .35rem 0;
border-bottom:1px solid var(--line)}th{color:var(--soft);font-weight:600}
.tag{display:inline-block;border-radius:1rem;padding:0 .55rem;color:var(--paper);font-size:.8rem;
white-space:nowrap}
.right{background:var(--right)}.differs{background:var(--differs)}
.refused{background:var(--refused)}.untried{background:var(--untried)}
ul{margin:.2rem 0;padding-left:1.1rem}li{overflow-wrap:anywhere}
@media(max-width:40rem){body{padding:1rem}table.wide thead{display:none}
table.wide tr{display:block;padding:.4rem 0;border-bottom:1px solid var(--line)}
table.wide td{display:block;border:0;padding:.05rem 0}
table.wide td[data-t]::before{content:attr(data-t)": ";color:var(--soft)}}
@media print{body{max-width:none;font-size:11px;padding:0}tr,.card{break-inside:avoid}}
"""
_CLASS: Final = {Word.UNTRIED: "untried"}
_SHOWN_MAX: Final = 20
_DIFFERENCES_MAX: Final = 5


def html_page(proof: Proof) -> str:
    """Return the whole page."""
    return "".join(_pieces(proof))


def _pieces(proof: Proof) -> Iterator[str]:
    title = f"Scenarios on {proof.facts.get('name', 'the source')}"
    yield '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width,initial-scale=1">'
    yield f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>\n"
    yield f"<h1>{escape(title)}</h1>"
    yield f'<p class="soft">olr_pg {escape(proof.version)}: {escape(summary(proof))}</p>'
    cards = (
        f'<div class="card"><b>{escape(judge.value)}</b>{escape(_counted(proof, judge))}</div>'
        for judge in Judge
    )
    yield f'<div class="cards">{"".join(cards)}</div>\n'
    yield from _differences(proof)
    yield "<h2>Scenarios</h2>\n"
    yield '<table class="wide"><thead><tr><th>scenario</th><th>purpose</th>'
    yield "".join(f"<th>{escape(judge.value)}</th>" for judge in Judge)
    yield "</tr></thead><tbody>\n"
    for result in proof.results:
        yield _row(result)
    yield "</tbody></table>\n<h2>The database</h2>\n<table><tbody>"
    for name, value in proof.facts.items():
        yield f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>"
    yield "</tbody></table></body></html>\n"


def _differences(proof: Proof) -> Iterator[str]:
    if not proof.differs:
        return
    yield "<h2>Differences</h2>\n<ul>"
    for result in proof.results:
        for judge, verdict in result.verdicts.items():
            if verdict.word is not Word.DIFFERS:
                continue
            yield f"<li><b>{escape(result.name)}</b>, {escape(judge.value)}<ul>"
            yield "".join(f"<li>{escape(one)}</li>" for one in verdict.differences[:_SHOWN_MAX])
            if verdict.incident:
                yield f"<li>masked redo: <code>{escape(verdict.incident)}</code></li>"
            yield "</ul></li>"
    yield "</ul>\n"


def _row(result: ScenarioResult) -> str:
    cells = "".join(
        f'<td data-t="{escape(judge.value)}">{_cell(verdict)}</td>'
        for judge, verdict in result.verdicts.items()
    )
    name, purpose = escape(result.name), escape(result.purpose)
    return f"<tr><td><b>{name}</b></td><td>{purpose}</td>{cells}</tr>\n"


def _cell(verdict: Verdict) -> str:
    kind = _CLASS.get(verdict.word, verdict.word.value)
    words = " ".join(filter(None, (verdict.code, verdict.reason)))
    tag = f'<span class="tag {kind}">{escape(verdict.word.value)}</span>'
    return f'{tag} <span class="soft">{escape(words)}</span>'


def _counted(proof: Proof, judge: Judge) -> str:
    found = proof.counts()[judge]
    return ", ".join(f"{found[word]} {word.value}" for word in Word if found[word])


def summary(proof: Proof) -> str:
    """Return the result in one line."""
    differing = sum(one.differs for one in proof.results)
    said = f"differences in {counted(differing, 'scenario')}" if differing else "no differences"
    return f"{counted(len(proof.results), 'scenario')} tried, {said}"


def text_lines(proof: Proof) -> Iterator[str]:
    """Yield the proof as lines of text. Every verdict other than "right" is explained; each reason
    is printed once.
    """
    for name, value in proof.facts.items():
        yield f"{name}: {value}"
    yield ""
    width = max((len(one.name) for one in proof.results), default=0)
    reasons: dict[str, list[str]] = {}
    for result in proof.results:
        words = ", ".join(
            f"{judge.value} {one.word.value}" for judge, one in result.verdicts.items()
        )
        yield f"{result.name:{width}}  {words}"
        for judge, verdict in result.verdicts.items():
            for line in verdict.differences[:_DIFFERENCES_MAX]:
                yield f"    {judge.value}: {line}"
            if verdict.incident:
                yield f"    masked redo: {verdict.incident}"
            if verdict.word in (Word.REFUSED, Word.UNTRIED):
                said = " ".join(filter(None, (verdict.word.value, verdict.code, verdict.reason)))
                reasons.setdefault(f"{judge.value} {said}", []).append(result.name)
    yield ""
    for reason, names in reasons.items():
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        yield f"{reason} ({', '.join(names[:3])}{more})"
    yield summary(proof)
    for judge in Judge:
        yield f"{judge.value}: {_counted(proof, judge) or 'nothing'}"
