"""What the judges say of a scenario, and everything that a run of `olr-pg prove` has found."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from olr_pg.errors import OlrPgError

FORMAT: Final = "olr-pg-proof/1"


class Judge(StrEnum):
    """Who judges."""

    REPLAY = "replay"
    LOGMINER = "logminer"
    WHOLE_WAY = "whole way"


class Word(StrEnum):
    """What a judge says."""

    RIGHT = "right"
    DIFFERS = "differs"
    REFUSED = "refused"
    UNTRIED = "not tried"


class Verdict(NamedTuple):
    """What a judge says of a scenario.

    Attributes:
        code: of the error, where the scenario was refused: ``OLR-02062``.
        reason: why it was refused or not tried; what was compared, where it is right.
        differences: in words.
        incident: the path of the masked incident file; empty for none.
    """

    word: Word
    reason: str = ""
    code: str = ""
    differences: tuple[str, ...] = ()
    incident: str = ""

    @classmethod
    def refused(cls, error: OlrPgError) -> Verdict:
        """Say that an error of the catalogue keeps the scenario from being read."""
        return cls(Word.REFUSED, f"{error.title}: {error.detail}", error.label)

    @classmethod
    def of(cls, document: dict[str, Any]) -> Verdict:
        """Read one that `as_json` made."""
        return cls(
            Word(document["verdict"]), document["reason"], document["code"],
            tuple(document["differences"]), document["incident"],
        )  # fmt: skip

    def as_json(self) -> dict[str, Any]:
        """Return it for scripts."""
        return {
            "verdict": self.word.value,
            "reason": self.reason,
            "code": self.code,
            "differences": list(self.differences),
            "incident": self.incident,
        }


class ScenarioResult(NamedTuple):
    """What all judges say of a scenario."""

    name: str
    purpose: str
    verdicts: dict[Judge, Verdict]
    seconds: float

    @property
    def differs(self) -> bool:
        """Tell whether a judge found a difference."""
        return any(one.word is Word.DIFFERS for one in self.verdicts.values())

    @classmethod
    def of(cls, document: dict[str, Any]) -> ScenarioResult:
        """Read one that `as_json` made."""
        judged = document["judges"]
        return cls(
            document["scenario"], document["purpose"],
            {judge: Verdict.of(judged[judge.value]) for judge in Judge}, document["seconds"],
        )  # fmt: skip

    def as_json(self) -> dict[str, Any]:
        """Return it for scripts."""
        return {
            "scenario": self.name,
            "purpose": self.purpose,
            "judges": {judge.value: one.as_json() for judge, one in self.verdicts.items()},
            "seconds": round(self.seconds, 2),
        }


class Proof(NamedTuple):
    """Everything that a run has found.

    Attributes:
        facts: what makes the database what it is, in words.
        results: of all scenarios that were chosen, in their order.
    """

    version: str
    facts: dict[str, str]
    results: tuple[ScenarioResult, ...]

    @property
    def differs(self) -> bool:
        """Tell whether any judge found a difference."""
        return any(one.differs for one in self.results)

    def counts(self) -> dict[Judge, Counter[Word]]:
        """Count the verdicts of each judge."""
        return {judge: Counter(one.verdicts[judge].word for one in self.results) for judge in Judge}

    def as_json(self) -> dict[str, Any]:
        """Return it for scripts."""
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
