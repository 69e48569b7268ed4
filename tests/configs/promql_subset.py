"""The part of PromQL that the alert rules use, evaluated on recorded metrics.

Selectors with matchers of equality and of regular expressions, comparisons with a number, `and`,
`unless`, `or`, brackets, `max without` a label, `increase` and `resets` over a range, and the
`offset` of a selector. Whatever else a rule says is an error here. `test_alert_rules` lets promtool
judge the same rules on the same metrics where it is at hand.
"""

from __future__ import annotations

import itertools
import operator
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

STALE_SECONDS: Final = 300
"""A series that has no newer sample is over."""

Labels = frozenset[tuple[str, str]]
Vector = dict[Labels, float]
Matchers = tuple[tuple[str, re.Pattern[str]], ...]

_TOKEN: Final = re.compile(
    r"\s*(?P<token>(?:and|unless|or|without|max|increase|resets)\b|offset \d+[smh]"
    r"|[a-zA-Z_:][\w:]*|\{[^}]*\}|\[\d+[smh]\]|[<>]=?|[!=]=|\d+(?:\.\d+)?|[()])"
)
_MATCHER: Final = re.compile(r'\s*(\w+)\s*(=~?)\s*"([^"]*)"\s*,?')
_UNITS: Final = {"s": 1, "m": 60, "h": 3600}
_COMPARISONS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    ">": operator.gt, "<": operator.lt, ">=": operator.ge, "<=": operator.le,
    "==": operator.eq, "!=": operator.ne,
}  # fmt: skip


class Alert(NamedTuple):
    """A rule: it fires once its expression has held for so many seconds."""

    name: str
    expression: str
    seconds: float


class Samples(NamedTuple):
    """The samples of a series, in order."""

    seconds: list[float]
    values: list[float]


class Recording:
    """The samples of all series, by name and labels."""

    def __init__(self) -> None:
        self._series: dict[str, dict[Labels, Samples]] = defaultdict(
            lambda: defaultdict(lambda: Samples([], []))
        )

    def add(self, name: str, labels: Mapping[str, str], at: float, value: float) -> None:
        samples = self._series[name][frozenset(labels.items())]
        samples.seconds.append(at)
        samples.values.append(value)

    def items(self) -> Iterable[tuple[str, Labels, Samples]]:
        for name, series in self._series.items():
            for labels, samples in series.items():
                yield name, labels, samples

    def instant(self, name: str, wanted: Matchers, at: float) -> Vector:
        """The newest value of each series, where it is not stale."""
        found = Vector()
        for labels, samples in self._series[name].items():
            if not _fit(labels, wanted):
                continue
            place = bisect_right(samples.seconds, at)
            if place and samples.seconds[place - 1] > at - STALE_SECONDS:
                found[labels] = samples.values[place - 1]
        return found

    def increase(self, name: str, wanted: Matchers, seconds: float, at: float) -> Vector:
        """How much counters grew, resets included; not extrapolated to the range's ends."""
        return {
            labels: sum(new - old if new >= old else new for old, new in itertools.pairwise(values))
            for labels, values in self._ranges(name, wanted, seconds, at)
            if len(values) > 1
        }

    def resets(self, name: str, wanted: Matchers, seconds: float, at: float) -> Vector:
        """How often a value became lower."""
        return {
            labels: float(sum(new < old for old, new in itertools.pairwise(values)))
            for labels, values in self._ranges(name, wanted, seconds, at)
        }

    def _ranges(
        self, name: str, wanted: Matchers, seconds: float, at: float
    ) -> Iterable[tuple[Labels, list[float]]]:
        for labels, samples in self._series[name].items():
            first = bisect_left(samples.seconds, at - seconds)
            values = samples.values[first : bisect_right(samples.seconds, at)]
            if values and _fit(labels, wanted):
                yield labels, values


@cache  # The same rules look at the same series each minute.
def _fit(labels: Labels, wanted: Matchers) -> bool:
    found = dict(labels)
    return all(pattern.fullmatch(found.get(name, "")) for name, pattern in wanted)


def _seconds(span: str) -> float:
    return float(span[:-1]) * _UNITS[span[-1]]


@cache
def _tokens(text: str) -> tuple[str, ...]:
    tokens, end = [], 0
    for match in _TOKEN.finditer(text):
        assert match.start() == end, f"what is {text[end:]!r}?"
        tokens.append(match["token"])
        end = match.end()
    assert not text[end:].strip(), f"what is {text[end:]!r}?"
    return tuple(tokens)


@cache
def _matchers(text: str) -> Matchers:
    return tuple(
        (name, re.compile(value if kind == "=~" else re.escape(value)))
        for name, kind, value in _MATCHER.findall(text[1:-1])
    )


class _Parser:
    def __init__(self, text: str, recording: Recording, at: float) -> None:
        self._recording, self._at = recording, at
        self._tokens = list(_tokens(text))

    def whole(self) -> Vector:
        found = self._either()
        assert not self._tokens, self._tokens
        return found

    def _next(self) -> str:
        return self._tokens[0] if self._tokens else ""

    def _either(self) -> Vector:
        found = self._both()
        while self._next() == "or":
            self._tokens.pop(0)
            found = self._both() | found
        return found

    def _both(self) -> Vector:
        found = self._comparison()
        while self._next() in ("and", "unless"):
            is_kept = self._tokens.pop(0) == "and"
            other = self._comparison()
            found = {
                labels: value for labels, value in found.items() if (labels in other) == is_kept
            }
        return found

    def _comparison(self) -> Vector:
        found = self._operand()
        if self._next() in _COMPARISONS:
            holds, bound = _COMPARISONS[self._tokens.pop(0)], float(self._tokens.pop(0))
            found = {labels: value for labels, value in found.items() if holds(value, bound)}
        return found

    def _operand(self) -> Vector:
        token = self._tokens.pop(0)
        if token == "(":
            found = self._either()
            assert self._tokens.pop(0) == ")"
            return found
        if token == "max":
            return self._highest()
        if token in ("increase", "resets"):
            assert self._tokens.pop(0) == "("
            name, wanted = self._tokens.pop(0), self._labels()
            seconds = _seconds(self._tokens.pop(0).strip("[]"))
            assert self._tokens.pop(0) == ")"
            function = getattr(self._recording, token)
            found = function(name, wanted, seconds, self._at)
            assert isinstance(found, dict)
            return found
        wanted, at = self._labels(), self._at
        if self._next().startswith("offset "):
            at -= _seconds(self._tokens.pop(0).removeprefix("offset "))
        return self._recording.instant(token, wanted, at)

    def _highest(self) -> Vector:
        assert self._tokens[:2] == ["without", "("]
        del self._tokens[:2]
        left_out = self._tokens.pop(0)
        assert self._tokens[:2] == [")", "("]
        del self._tokens[:2]
        found = Vector()
        for labels, value in self._either().items():
            rest = frozenset(one for one in labels if one[0] != left_out)
            found[rest] = max(value, found.get(rest, value))
        assert self._tokens.pop(0) == ")"
        return found

    def _labels(self) -> Matchers:
        return _matchers(self._tokens.pop(0)) if self._next().startswith("{") else ()


def names(expression: str) -> set[str]:
    """The metrics that an expression names."""
    bare = re.sub(r"\{[^}]*\}|\[[^]]*\]|\"[^\"]*\"", " ", expression)
    return set(re.findall(r"\b(?:olr_pg|process|up)\w*", bare))


def firing(
    alerts: Iterable[Alert], recording: Recording, times: Iterable[float]
) -> dict[float, list[str]]:
    """The alerts that fire at each of the times, as Prometheus evaluates them: each by itself."""
    since: dict[tuple[str, Labels], float] = {}
    alerts = list(alerts)
    found: dict[float, list[str]] = {}
    for at in times:
        active = {
            (alert.name, labels): alert.seconds
            for alert in alerts
            for labels in _Parser(alert.expression, recording, at).whole()
        }
        since = {key: since.get(key, at) for key in active}
        found[at] = sorted(key[0] for key, seconds in active.items() if at - since[key] >= seconds)
    return found
