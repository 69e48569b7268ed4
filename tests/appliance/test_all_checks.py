"""What doctor finds in each container of a live source, and in all of them together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from olr_pg.appliance.all_checks import diagnose
from olr_pg.config.reading import load_config
from tests.oracle.live_twins import LiveTwins

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def twins(tmp_path: Path) -> Iterator[LiveTwins]:
    made = LiveTwins(tmp_path, rows=1)
    yield made
    made.close()


def found(twins: LiveTwins, target: str, **apply: Any) -> list[tuple[str, str, tuple[str, ...]]]:
    findings = diagnose(load_config(twins.write_config(target, **apply)), for_load=True)
    return [(one.check, one.what, one.mend) for one in findings]


def test_two_healthy_containers_have_no_findings(twins: LiveTwins, postgres_database: str) -> None:
    assert found(twins, postgres_database) == []


def test_a_finding_names_its_container_and_is_mended_there(
    twins: LiveTwins, postgres_database: str
) -> None:
    twins.server.containers["PDB2"].catalogue.denied.add("CCOL$")
    (first, *_) = found(twins, postgres_database)
    enter = "ALTER SESSION SET CONTAINER = PDB2;"
    assert first[:2] == ("oracle.privileges", "PDB2: OLR is not allowed to read SYS.CCOL$")
    assert first[2] == (enter, "GRANT SELECT, FLASHBACK ON SYS.CCOL$ TO OLR;")
    for line in first[2]:
        twins.server.containers["PDB2"].command(line)
    assert found(twins, postgres_database) == []


def test_what_is_of_the_whole_database_is_said_once(
    twins: LiveTwins, postgres_database: str
) -> None:
    for state in twins.server.containers.values():
        state.command("ALTER DATABASE NO FORCE LOGGING")
    checks = [check for check, _, _ in found(twins, postgres_database)]
    assert checks.count("oracle.force-logging") == 1


@pytest.mark.parametrize("is_embedded", [False, True])
def test_tables_that_would_be_one_are_told(
    twins: LiveTwins, postgres_database: str, is_embedded: bool
) -> None:
    mapping = {"PDB1.SHOP": "shop", "PDB2.SHOP": "shop"}
    target = "embedded" if is_embedded else postgres_database
    found_ones = found(twins, target, **{"schema-mapping": mapping})
    assert [check for check, _, _ in found_ones] == ["postgres.names"]
    assert "PDB1.SHOP.A and PDB2.SHOP.A would both become shop.a" in found_ones[0][1]


def test_containers_of_other_character_sets_are_told(
    twins: LiveTwins, postgres_database: str
) -> None:
    twins.server.containers["PDB2"].catalogue.update(
        'UPDATE SYS."DATABASE_PROPERTIES" SET "PROPERTY_VALUE" = ? WHERE "PROPERTY_NAME" = ?',
        *("WE8ISO8859P1", "NLS_CHARACTERSET"),
    )
    (one,) = found(twins, postgres_database)
    assert one[0] == "oracle.containers"
    assert "OLR-03021" in one[1]


def test_a_container_that_is_not_there_is_told_with_its_name(
    twins: LiveTwins, postgres_database: str
) -> None:
    del twins.server.containers["PDB2"]
    (one,) = found(twins, postgres_database)
    assert one[0] == "oracle.connection"
    assert one[1].startswith("PDB2: ")
