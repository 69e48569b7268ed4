"""Names and patterns of the configuration that match nothing are reported, not ignored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from structlog.testing import capture_logs

from olr_pg.appliance.mapping_checks import check_idle, report_idle_mappings
from olr_pg.config.model import Config
from olr_pg.observability.findings import Severity
from tests.replicator.ddl_source import NUMBER, DdlSource

if TYPE_CHECKING:
    from pathlib import Path

    from olr_pg.dictionary.model import Table

SOURCE = {"kind": "offline", "dictionary": "d.json", "logs": "logs"}
MISSPELT = {
    "schema-mapping": {"SHOP": "s", "shop": "s"},
    "table-mapping": {"SHOP.A": "s.a", "SHOP.B": "s.b"},
    "columns": {
        "shop.a.id": {"type": "bigint"},
        "*.ID": {"type": "bigint"},
        "A.ID": {"type": "bigint"},
        "SHOP.A.IDD": {"type": "bigint"},
    },
    "incomplete-lobs": {"SHOP.A.*": "stop", "SHOP.AA.*": "stop"},
}
IDLE = [
    ("apply.schema-mapping", "shop"),
    ("apply.table-mapping", "SHOP.B"),
    ("apply.columns", "A.ID"),
    ("apply.columns", "SHOP.A.IDD"),
    ("apply.incomplete-lobs", "SHOP.AA.*"),
]


def configured(**sections: Any) -> Config:
    apply = {"connect-string": "host=h dbname=d", "tables": ["SHOP.A"], **MISSPELT}
    return Config.model_validate({"source": SOURCE, "apply": apply, **sections})


def tables(tmp_path: Path) -> tuple[Table, ...]:
    source = DdlSource(tmp_path / "s", followed=False)
    source.create("A", {"ID": NUMBER})
    return tuple(table for table in source.take_snapshot().tables if table.owner == "SHOP")


def test_a_run_warns_about_each(tmp_path: Path) -> None:
    apply = configured().apply
    assert apply is not None
    with capture_logs() as said:
        report_idle_mappings(apply, tables(tmp_path))
    assert [(line["key"], line["reason"]) for line in said] == IDLE
    assert {(line["log_level"], line["code"]) for line in said} == {("warning", "OLR-01098")}


def test_doctor_warns_about_each_and_about_the_filter(tmp_path: Path) -> None:
    filters = {"columns": {"SHOP.A": ["SSN"]}, "operations": {"SHOP.AA": ["delete"]}}
    found = check_idle(configured(filter=filters), tables(tmp_path))
    assert {finding.severity for finding in found} == {Severity.WARNING}
    assert [finding.check for finding in found] == ["filter", "filter", *["mapping"] * len(IDLE)]
    assert "[key filter.columns]" in found[1].what
    assert all(
        f"{name} [key {key}]" in one.what for one, (key, name) in zip(found[2:], IDLE, strict=True)
    )


def test_tables_that_could_not_be_read_match_nothing_and_are_not_reported() -> None:
    assert check_idle(configured(), ()) == []
