"""The DDL that seeds draw, by the kinds that a copy must follow or stop at.

    uv run python -m tests.simulation.kinds --count 200

Writes each seed's source, without replicating it, and prints how often each kind is in how many.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections import Counter, defaultdict
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from olr_pg.simulator.sessions.ddl_statements import DdlStatements
from olr_pg.simulator.simulation import simulate
from tests.simulation.plan import draw_plan

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

KINDS: Final = {
    name: re.compile(words)
    for name, words in {
        "new column": r"ADD \(\w+ …\)",
        "new column with DEFAULT, NOT NULL": r"ADD \(\w+ … DEFAULT … NOT NULL",
        "new virtual column": r"ADD \(\w+ AS ",
        "new identity column": r"ADD .* AS IDENTITY",
        "new column with NEXTVAL": r"ADD .* DEFAULT OWN_SEQUENCE",
        "virtual column with another expression": r"MODIFY \(\w+ AS ",
        "virtual column renamed": r"RENAME COLUMN V",
        "virtual column dropped": r"DROP COLUMN V",
        "identity dropped": r"DROP IDENTITY",
        "unused column": r"SET UNUSED",
        "column dropped": r"DROP COLUMN [^V]",
        "unused columns dropped": r"DROP UNUSED COLUMNS",
        "column renamed": r"RENAME COLUMN [^V]",
        "table renamed": r"RENAME TO",
        "column with another type or size": r"MODIFY \(\w+ …\)",
        "NOT NULL": r"MODIFY \(\w+ NOT NULL\)",
        "NULL": r"MODIFY \(\w+ NULL\)",
        "TRUNCATE": r"^TRUNCATE TABLE",
        "TRUNCATE PARTITION": r"TRUNCATE PARTITION",
        "ADD PARTITION": r"ADD PARTITION",
        "DROP PARTITION": r"DROP PARTITION",
        "EXCHANGE PARTITION": r"EXCHANGE PARTITION",
        "SPLIT PARTITION": r"SPLIT PARTITION",
        "MERGE PARTITIONS": r"MERGE PARTITIONS",
        "table dropped": r"^DROP TABLE .* PURGE$",
        "table dropped into the recycle bin": r"^DROP TABLE .* AS \"BIN",
        "table purged": r"^PURGE TABLE",
        "table created": r"^CREATE TABLE",
        "comment": r"^COMMENT ON",
        "index on an expression created": r"^CREATE INDEX .*\".*\"",
        "index created": r"^CREATE INDEX [^\"]*$",
        "index dropped": r"^DROP INDEX",
        "check added": r"ADD CONSTRAINT",
        "check switched": r"(DIS|EN)ABLE CONSTRAINT",
    }.items()
}
"""The kinds, and what their statements have."""


def kinds_of(seeds: Iterable[int]) -> tuple[Counter[str], dict[str, set[int]]]:
    """How many statements of each kind there are in the sources of seeds, and in which."""
    counts, found = Counter[str](), defaultdict[str, set[int]](set)
    for seed in seeds:
        plan = draw_plan(seed)
        with tempfile.TemporaryDirectory(prefix="olr-pg-kinds-") as folder, _statements() as texts:
            simulate(
                seed, Path(folder) / "s", workload=plan.workload, size=plan.size, shape=plan.shape
            )
        for text in texts:
            (kind,) = (name for name, words in KINDS.items() if words.search(text))
            counts[kind] += 1
            found[kind].add(seed)
    return counts, found


@contextmanager
def _statements() -> Iterator[list[str]]:
    texts = list[str]()
    log = DdlStatements.log_statement

    def noted(self: DdlStatements, table: Any, command: int, text: str, parts: int = 1) -> None:
        texts.append(text)
        log(self, table, command, text, parts)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DdlStatements, "log_statement", noted)
        yield texts


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.kinds", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="the first one")
    parser.add_argument("--count", type=int, default=200, help="how many")
    options = parser.parse_args()
    counts, found = kinds_of(range(options.seed, options.seed + options.count))
    sys.stdout.write(f"{'kind':40} {'statements':>10} {'seeds':>6}\n")
    for kind in KINDS:
        sys.stdout.write(f"{kind:40} {counts[kind]:10} {len(found[kind]):6}\n")


if __name__ == "__main__":
    main()
