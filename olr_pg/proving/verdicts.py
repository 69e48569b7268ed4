"""The verdicts of the judges on a scenario, and the complete result of a run of `olr-pg prove`."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
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
