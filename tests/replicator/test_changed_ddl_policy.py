"""A policy of `apply.ddl` that is changed after it has stopped tables: the restart retries them, as
the error advises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest

from olr_pg.errors import OlrPgError
from tests.replicator.ddl_source import NUMBER, DdlSource
from tests.replicator.test_ddl_pipeline import rows_of, run_once
from tests.replicator.test_exchanged_partitions import exchanging, make_target
from tests.replicator.test_renamed_tables import COLUMNS, check, stopped_of

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("one_session")


@pytest.mark.parametrize(("old", "new"), ["AB", "BA"])
def test_a_renamed_table_resumes_under_both_names(
    tmp_path: Path, postgres_database: str, old: str, new: str
) -> None:
    """The new name can resume only after the old one, also if it comes first in the alphabet."""
    source = DdlSource(tmp_path / "s")
    source.create(old, COLUMNS)
    source.create("KEPT", {"ID": NUMBER})
    source.take_snapshot()
    row = source.insert(old, 1, "old")
    source.rename(old, new)
    source.update(row, {1: "new"})
    source.insert("KEPT", 1)
    source.finish()
    with pytest.raises(OlrPgError, match="3071"):
        run_once(source, postgres_database, ["*"], ddl={"rename-table": "stop"})
    run_once(source, postgres_database, ["*"])
    check(source, postgres_database, new, "KEPT")


def test_two_tables_that_exchanged_their_names_resume(
    tmp_path: Path, postgres_database: str
) -> None:
    source = DdlSource(tmp_path / "s")
    for name in ("A", "B"):
        source.create(name, COLUMNS)
    source.take_snapshot()
    source.insert("A", 1, "a")
    source.insert("B", 1, "b")
    source.swap("A", "B")
    source.insert("A", 2, "c")
    source.insert("B", 2, "d")
    source.finish()
    with pytest.raises(OlrPgError, match="3071"):
        run_once(source, postgres_database, ["*"], ddl={"rename-table": "stop"})
    run_once(source, postgres_database, ["*"])
    check(source, postgres_database, "A", "B")


def test_a_partition_and_the_table_that_it_was_exchanged_with_resume(
    tmp_path: Path, postgres_database: str
) -> None:
    source, table = exchanging(tmp_path)
    make_target(postgres_database, table)
    with pytest.raises(OlrPgError, match="3073"):
        run_once(source, postgres_database, ["P", "X"], ddl={"exchange-partition": "stop"})
    run_once(source, postgres_database, ["P", "X"])
    with psycopg.connect(postgres_database) as connection:
        for one in ("P", "X"):
            assert rows_of(connection, one) == source.rows(one)
        assert stopped_of(connection) == []


@pytest.mark.parametrize("policy", ["follow", "ignore"])
def test_a_dropped_table_is_emptied_or_kept(
    tmp_path: Path, postgres_database: str, policy: str
) -> None:
    source = DdlSource(tmp_path / "s")
    for name in ("A", "KEPT"):
        source.create(name, COLUMNS)
    source.take_snapshot()
    source.insert("A", 1, "a")
    source.drop("A")
    source.insert("KEPT", 1, "b")
    source.finish()
    with pytest.raises(OlrPgError, match="3071"):
        run_once(source, postgres_database, ["*"])
    run_once(source, postgres_database, ["*"], ddl={"drop-table": policy})
    with psycopg.connect(postgres_database) as connection:
        assert stopped_of(connection) == []
        assert len(rows_of(connection, "A")) == (policy == "ignore")
