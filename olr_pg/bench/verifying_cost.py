"""The benchmark of continuous verification: what it costs replication.

The same source is replicated without and with continuous verification, which has the default budget
and does not get smaller with the lag. The source's redo is written at a fixed rate, and the
latencies of its commits are compared. The share of a core that the verification's process uses is
compared with the budget, which also covers the statements of the source and of the target.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from olr_pg.bench.measure import Result
from olr_pg.bench.online_latency import (
    CONFIG,
    LOW,
    commits,
    flushes_of,
    latencies,
    replicated,
)
from olr_pg.config.verify_section import Verify

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from olr_pg.bench.suite import Options

_VERIFY: Final = {"continuous": "report", "lag-max": 1_000_000}
_SHARES: Final = (("median", 0.5), ("99 %", 0.99))


class _Run(NamedTuple):
    """The measurements of a run.

    Attributes:
        seconds: the latencies, in ascending order.
        share: share of a core that the verification's process used.
    """

    seconds: Sequence[float]
    share: float
    cpu_seconds: float
    peak_rss_mib: float


def verification(options: Options) -> Iterator[Result]:
    """Yield the latencies of commits beside continuous verification, in milliseconds, with the
    latencies without it as anchor; and the CPU time of the verification.
    """
    name, rate = LOW
    pairs = []
    for number in range(options.runs):
        folder = options.folder / str(number)
        plain = _run(folder / "plain", rate, options.seconds, {})
        pairs.append((plain, _run(folder / "verified", rate, options.seconds, _VERIFY)))
    runs = [verified for _, verified in pairs]
    beside = median(one.cpu_seconds for one in runs), max(one.peak_rss_mib for one in runs)
    for what, share in _SHARES:
        values = [(_at(plain, share), _at(verified, share)) for plain, verified in pairs]
        yield Result(
            f"online redo, {name}, verified: {what}",
            median(verified for _, verified in values),
            "ms",
            "not verified",
            median(plain for plain, _ in values),
            median(verified / plain for plain, verified in values),
            *beside,
        )
    used, budget = 100 * median(one.share for one in runs), Verify().share
    yield Result(
        f"online redo, {name}: CPU of the verification", used, "% of a core",
        "budget", budget, used / budget, *beside,
    )  # fmt: skip


def _at(run: _Run, share: float) -> float:
    """Return the latency in milliseconds that a share of the commits does not exceed."""
    return 1000 * run.seconds[int(share * (len(run.seconds) - 1))]


def _run(folder: Path, rate: str, seconds: float, verify: Mapping[str, Any]) -> _Run:
    folder.mkdir(parents=True)
    watched = replicated(folder, rate, seconds, _live, {"verify": verify})
    source = folder / "source"
    found = latencies(commits(source / "truth.jsonl"), flushes_of(source), watched.seen)
    return _Run(found, watched.verifying_share, watched.cpu_seconds, watched.peak_rss_mib)


def _live(source: Path) -> dict[str, Any]:
    """Return the section `source` for a simulated database that answers queries, whose online logs
    are read in place.
    """
    section: dict[str, Any] = orjson.loads((source / CONFIG).read_bytes())["source"]
    return section | {"redo": "online"}
