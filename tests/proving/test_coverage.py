"""The scenarios cover all that a site may write: each entry of the list has some, by its word.

A word that no scenario covers is a gap, and one that is not listed an error of writing.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

import pytest

import olr_pg.proving
from olr_pg.proving.scenario import NEEDS, read_scenario

FOLDER: Final = Path(olr_pg.proving.__file__).parent / "scenarios"
SCENARIOS: Final = {one.name: one for one in map(read_scenario, sorted(FOLDER.rglob("*.sql")))}

LIST: Final = {
    "types": "extremes nulls character-sets padding lengths",
    "rows": "chained migrated trailing-nulls column-borders mixed-widths",
    "transactions": (
        "savepoints fail-halfway interleaved over-many-logs 300000-rows same-row-many-times"
        " key-swaps autonomous xa for-update rowdependencies triggers rolled-back"
    ),
    "statements": "multi-row merge insert-all array-binds returning",
    "lobs": (
        "lob-in-row lob-out-of-row lob-write lob-append lob-trim lob-erase"
        " several-in-one-transaction lob-rolled-back lob-compressed"
    ),
    "storage": (
        "partitions-range partitions-list partitions-hash partition-moves iot direct-path"
        " compression clusters encryption storage-other"
    ),
    "ddl": (
        "add-column add-column-default drop-column set-unused modify-column rename-column"
        " rename-table truncate move exchange partition-ddl drop-table ddl-while-open ddl-other"
    ),
    "logging": (
        "logging-minimal logging-primary-key logging-unique logging-foreign-key logging-groups"
        " logging-all logging-dropped"
    ),
    "place": "pdbs redo-threads reader-restarts",
}
WIDTHS: Final = (63, 64, 65, 127, 128, 129, 255, 256, 257, 1000)
SEVERAL: Final = 2
RARE: Final = ("logging-unique", "logging-foreign-key", "logging-groups", "lob-compressed")
"""What few databases have, or what redo tells of in one way only."""


@pytest.mark.parametrize("group", LIST)
def test_each_entry_of_the_list_has_scenarios(group: str) -> None:
    covered = Counter(word for one in SCENARIOS.values() for word in one.covers)
    missing = {word: covered[word] for word in LIST[group].split()
               if covered[word] < (1 if word in RARE else SEVERAL)}  # fmt: skip
    assert missing == {}


def test_each_scenario_covers_an_entry() -> None:
    known = {word for words in LIST.values() for word in words.split()}
    unknown = {one.name: set(one.covers) - known for one in SCENARIOS.values()
               if not one.covers or set(one.covers) - known}  # fmt: skip
    assert unknown == {}
    assert {name.partition("/")[0] for name in SCENARIOS} == set(LIST)


def test_each_width_of_the_list_has_a_table() -> None:
    assert [width for width in WIDTHS if f"rows/columns_{width}" not in SCENARIOS] == []


def test_each_need_is_of_some_scenario() -> None:
    assert set(NEEDS) == {need for one in SCENARIOS.values() for need in one.needs}


def test_each_scenario_says_in_one_line_what_it_is_for() -> None:
    assert [name for name, one in SCENARIOS.items() if not 20 < len(one.purpose) < 140] == []
