"""Writes the assessment as text and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson
from rich.filesize import decimal

from olr_pg.assessment.report import duration
from olr_pg.dictionary.inventory import named_version, release_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from olr_pg.assessment.report import AssessedTable, Item, Report


CAUSES_MAX: Final = 30


def report_lines(report: Report) -> Iterator[str]:
    """Yield the assessment for a terminal: the counts, and all objects that need manual work."""
    schemas = ", ".join(report.owners)
    version = named_version(report.version) or "version unknown"
    yield f"{report.database}: Oracle {version}, schemas {schemas}"
    yield (
        f"Estimated work by hand: {duration(report.minutes)}"
        f" ({report.cost_units} cost units and level {report.level}, as ora2pg counts)"
    )
    yield from report.time_lines()
    if report.texts is not None and report.texts.remark:
        yield report.texts.remark
    yield ""
    for count in report.counts:
        work = f", {count.by_hand} by hand: {duration(count.minutes)}" if count.by_hand else ""
        yield f"{count.kind}: {count.total}{work}"
    yield ""
    if report.causes:
        yield "Number of objects that each reason blocks, including dependent objects:"
        yield from (f"{count}: {reason}" for count, reason in report.causes[:CAUSES_MAX])
        yield ""
    yield "By hand, objects with the most work first:"
    for item in sorted(report.items, key=lambda item: -item.minutes):
        if item.minutes:
            yield f"{item.kind} {item.name} ({item.effort.name.lower()}, {duration(item.minutes)})"
            for reason in item.reasons:
                yield f"    {reason}"
    for table in report.tables:
        for column in table.columns:
            if column.lost or column.obstacle:
                yield f"{table.name}.{column.name}: {column.obstacle or column.lost}"
        if table.replicated == "yes" and not table.key:
            yield f"{table.name}: it has no key; log all columns (supplemental logging)"
    for item in report.altered:
        yield f"different in PostgreSQL: {item.kind} {item.name}: {'; '.join(item.reasons)}"
    for what, view in report.not_looked_at:
        yield f"not assessed: {what} (see {view})"
    for one in report.unread:
        yield f"cannot be read: {one} (grant SELECT_CATALOG_ROLE)"
    for other in report.others:
        yield f"not assessed: schema {other.owner}, {other.objects} objects (use --owner)"


def whole_report(report: Report) -> Iterator[str]:
    """Yield the lines of `report_lines`, then every table, column and object."""
    yield from report_lines(report)
    yield ""
    yield "Tables and their columns:"
    for table in report.tables:
        yield f"{table.name}: {', '.join(table.facts)}"
        for column in table.columns:
            target = column.target_type or "not created"
            remark = column.obstacle or column.lost
            yield f"    {column.name}: {column.oracle_type} → {target}" + (
                f": {remark}" if remark else ""
            )
    yield ""
    yield "Everything:"
    for item in report.items:
        status = " (invalid)" if item.status == "INVALID" else ""
        remarks = f": {'; '.join(item.reasons)}" if item.reasons else ""
        yield f"{item.kind} {item.name}{status}: {item.carrier.title}{remarks}"
    if report.redo:
        yield ""
        yield "Redo by day:"
        yield from (f"{day.day}: {day.logs} logs, {decimal(day.bytes)}" for day in report.redo)


def report_json(report: Report) -> dict[str, Any]:
    """Return the assessment as JSON."""
    return {
        **_facts_json(report),
        "items": [_item_json(item) for item in report.items],
        "tables": [_table_json(table) for table in report.tables],
    }


def json_pieces(report: Report) -> Iterator[bytes]:
    """Yield the JSON of `report_json` as text, with one line for each item and table."""
    for key, value in _facts_json(report).items():
        yield b"{" if key == "database" else b",\n"
        yield orjson.dumps(key) + b": " + orjson.dumps(value)
    for key, lines in (
        ("items", (orjson.dumps(_item_json(item)) for item in report.items)),
        ("tables", (orjson.dumps(_table_json(table)) for table in report.tables)),
    ):
        yield b",\n" + orjson.dumps(key) + b": ["
        for number, line in enumerate(lines):
            yield (b",\n" if number else b"\n") + line
        yield b"]"
    yield b"}\n"


def csv_lines(report: Report) -> Iterator[str]:
    """Yield a line of CSV for each object (RFC 4180), after a header line."""
    names = ("kind", "name", "status", "carried over", "effort", "minutes", "cost units", "reasons")
    yield ",".join(names)
    for item in report.items:
        values = (
            *(item.kind, item.name, item.status, item.carrier.title, item.effort.name.lower()),
            *(str(item.minutes), f"{item.minutes / 5:g}", "; ".join(item.reasons)),
        )
        yield ",".join('"' + value.replace('"', '""') + '"' for value in values)


def _item_json(item: Item) -> dict[str, Any]:
    return item._asdict() | {"carrier": item.carrier.title, "effort": item.effort.name.lower()}


def _table_json(table: AssessedTable) -> dict[str, Any]:
    return table._asdict() | {"columns": [column._asdict() for column in table.columns]}


def _facts_json(report: Report) -> dict[str, Any]:
    """Return the report without its objects and tables."""
    return {
        "database": report.database,
        "version": report.version,
        "release": release_name(report.version),
        "scn": report.scn,
        "owners": list(report.owners),
        "minutes": report.minutes,
        "cost_units": report.cost_units,
        "level": report.level,
        "load_seconds": report.load_seconds,
        "redo_bytes_per_day": report.redo_per_day,
        "counts": [one._asdict() for one in report.counts],
        "others": [one.model_dump() for one in report.others],
        "causes": [{"count": count, "reason": reason} for count, reason in report.causes],
        "not_looked_at": [{"what": what, "view": view} for what, view in report.not_looked_at],
        "unread": list(report.unread),
        "redo": [day.model_dump() for day in report.redo],
        "rates": report.rates._asdict() if report.rates else None,
        "redo_rates": report.redo_rates._asdict() if report.redo_rates else None,
        "texts": report.texts._asdict() if report.texts else None,
        "catch_up": report.catch_up._asdict() if report.catch_up else None,
    }
