"""Writes the assessment as text, as JSON, and as one HTML file.

The HTML file needs no network access and no scripts. The page is made for screens, phones and
printers, and for light and dark mode.
"""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING, Any, Final

import orjson
from rich.filesize import decimal

from olr_pg.assessment.report import Carrier, Effort, duration
from olr_pg.dictionary.inventory import named_version, release_name
from olr_pg.observability.wording import counted, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from olr_pg.assessment.report import AssessedTable, Item, Report

_BREAKS: Final = re.compile(r"([._])(?=\w)")
_CODE: Final = re.compile(r"`([^`]+)`")
_STYLE: Final = """
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#5a6472;--line:#d9dee5;--paper:#fff;
--card:#f6f8fa;
--none:#2f855a;--low:#3b6fb6;--medium:#b7791f;--high:#c0392b}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ee;--soft:#9aa5b4;--line:#333b46;--paper:#14181d;
--card:#1c222a;--none:#58b888;--low:#7fb0ee;--medium:#e0ab4f;--high:#f08070}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:72rem;padding:1.5rem;background:var(--paper);color:var(--ink);
font:16px/1.5 system-ui,sans-serif}
h1{font-size:1.6rem;margin:0}h2{font-size:1.2rem;margin:2.2rem 0 .6rem}p{margin:.4rem 0}
.soft{color:var(--soft)}
code{font-family:ui-monospace,monospace;font-size:.92em;overflow-wrap:break-word}
.cards{display:grid;
grid-template-columns:repeat(auto-fit,minmax(9.5rem,1fr));gap:.8rem;margin:1rem 0}
.card{background:var(--card);border:1px solid var(--line);border-radius:.5rem;padding:.7rem .9rem}
.card b{display:block;font-size:1.35rem;line-height:1.3}
.bar{display:flex;height:.8rem;border-radius:.4rem;overflow:hidden;background:var(--line)}
.bar i{display:block}.none{background:var(--none)}.low{background:var(--low)}
.medium{background:var(--medium)}.high{background:var(--high)}
table{border-collapse:collapse;width:100%;font-size:.93rem}
th,td{text-align:left;
vertical-align:top;padding:.35rem .6rem .35rem 0;border-bottom:1px solid var(--line)}
th{color:var(--soft);font-weight:600}td.n,th.n{text-align:right;white-space:nowrap;
padding-right:1rem}
.tag{display:inline-block;border-radius:1rem;padding:0 .55rem;color:var(--paper);font-size:.8rem}
ul{margin:.1rem 0;padding-left:1.1rem}
details .wide{table-layout:fixed}
details{border-bottom:1px solid var(--line);padding:.4rem 0}summary{cursor:pointer}
summary span{color:var(--soft)}
nav a{margin-right:1rem;color:var(--low)}
@media(max-width:40rem){body{padding:1rem}
table.wide thead{display:none}table.wide tr{display:block;
padding:.4rem 0;border-bottom:1px solid var(--line)}
table.wide td{display:block;border:0;padding:.05rem 0;text-align:left}
table.wide td[data-t]:not(:empty)::before{content:attr(data-t)": ";color:var(--soft)}}
@media print{body{max-width:none;font-size:11px;padding:0}nav{display:none}
details>*{display:block!important}
details::details-content{content-visibility:visible;display:block}tr,.card{break-inside:avoid}}
"""


def html_pieces(report: Report) -> Iterator[str]:
    """Yield the page in pieces, because for a large schema it has 50 MB."""
    title = f"Assessment of {report.database or 'the source'}"
    yield '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width,initial-scale=1">'
    yield f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>\n"
    yield from _head(report, title)
    for section in (_counts, _causes, _by_hand, _altered, _tables, _redo, _everything, _left_out):
        yield from section(report)
    yield "</body></html>\n"


def _head(report: Report, title: str) -> Iterator[str]:
    owners = ", ".join(report.owners)
    version = named_version(report.version) or "of unknown version"
    yield f"<h1>{escape(title)}</h1>"
    yield (
        f'<p class="soft">Oracle {escape(version)}, schemas'
        f" {escape(owners)}, as of SCN {report.scn}</p>"
    )
    yield (
        '<nav><a href="#kinds">Kinds</a><a href="#hand">By hand</a><a href="#tables">Tables</a>'
        '<a href="#redo">Redo and time</a><a href="#all">Everything</a></nav>'
    )
    by_itself = sum(item.carrier is not Carrier.BY_HAND for item in report.items)
    replicated = [table for table in report.tables if table.replicated == "yes"]
    cards = [
        (f"{len(report.items)}", "objects found"),
        (f"{by_itself}", "migrated by olr_pg"),
        (f"{len(report.items) - by_itself}", "to migrate by hand"),
        (duration(report.minutes), "estimated work by hand"),
        (f"{report.cost_units:,} ({report.level})", "ora2pg's cost units, level"),
        (f"{len(replicated)}", "tables replicated"),
        (decimal(report.replicated_bytes), "to be loaded"),
    ]
    inner = "".join(
        f'<div class="card"><b>{escape(big)}</b>{escape(small)}</div>' for big, small in cards
    )
    yield f'<div class="cards">{inner}</div>'
    yield _bar(report)
    yield (
        '<p class="soft">The estimate follows fixed rules: minutes for each line of code, for'
        " each construct that PostgreSQL lacks, and for each object that you create by hand. Use"
        " the estimate to compare and to plan; it is not a measurement. A cost unit is five"
        " minutes, as in ora2pg. The letter of the level is the cost: A needs no rewriting, B up"
        " to five days, C more. The digit is the kind of code: 1 no code, 2 triggers that olr_pg"
        " converts, 3 routines that olr_pg converts, 4 triggers or views that you must rewrite, 5"
        " routines that you must rewrite.</p>\n"
    )
    if report.texts is not None and report.texts.remark:
        yield f"<p>{escape(report.texts.remark)}</p>\n"


def _bar(report: Report) -> str:
    total = max(len(report.items), 1)
    parts, words = "", []
    for effort in Effort:
        count = sum(item.effort is effort for item in report.items)
        name = effort.name.lower()
        words.append(f"{count} {name}")
        parts += f'<i class="{name}" style="width:{100 * count / total:.2f}%"></i>'
    return f'<div class="bar">{parts}</div><p class="soft">Effort: {", ".join(words)}</p>'


def _grid(
    heads: Iterable[tuple[str, bool]], rows: Iterable[Iterable[str]], *, narrow: bool = False
) -> Iterator[str]:
    """Yield a table; the cells already contain HTML. A narrow table is also shown as a table on a
    phone.
    """
    listed = list(heads)
    top = "".join(
        f"<th{' class=n' if number else ''}>{escape(text)}</th>" for text, number in listed
    )
    kind = "" if narrow else ' class="wide"'
    yield f"<table{kind}><thead><tr>{top}</tr></thead><tbody>"
    begins = [
        f'<td{" class=n" if number else ""} data-t="{escape(text)}">' for text, number in listed
    ]
    for row in rows:
        cells = (f"{begin}{cell}</td>" for begin, cell in zip(begins, row, strict=True))
        yield f"<tr>{''.join(cells)}</tr>\n"
    yield "</tbody></table>\n"


def _counts(report: Report) -> Iterator[str]:
    yield '<h2 id="kinds">Objects by kind</h2>'
    heads = (("Kind", False), ("Count", True), ("By hand", True), ("Estimate", True))
    yield from _grid(
        heads,
        (
            (
                escape(one.kind.lower()),
                str(one.total),
                str(one.by_hand or ""),
                duration(one.minutes) if one.minutes else "",
            )
            for one in report.counts
        ),
        narrow=True,
    )


def _name(name: str) -> str:
    """Return a name as HTML in which lines can break after dots and underscores."""
    broken = _BREAKS.sub(r"\1<wbr>", escape(name))
    return f"<code>{broken}</code>"


def _text(text: str) -> str:
    """Return a sentence as HTML; text between backticks is code."""
    return _CODE.sub(r"<code>\1</code>", escape(text))


def _reasons(item: Item) -> str:
    if len(item.reasons) < 2:
        return _text("".join(item.reasons))
    return "<ul>" + "".join(f"<li>{_text(reason)}</li>" for reason in item.reasons) + "</ul>"


def _tag(effort: Effort) -> str:
    name = effort.name.lower()
    return f'<span class="tag {name}">{name}</span>'


def _causes(report: Report) -> Iterator[str]:
    if report.causes:
        yield '<h2 id="causes">Objects that each reason blocks, including dependent objects</h2>'
        rows = ((str(count), _text(reason)) for count, reason in report.causes)
        yield from _grid((("Count", True), ("Reason", False)), rows)


def _altered(report: Report) -> Iterator[str]:
    if report.altered:
        yield '<h2 id="altered">Different in PostgreSQL</h2>'
        heads = (("Kind", False), ("Name", False), ("Difference", False))
        yield from _grid(
            heads,
            (
                (escape(item.kind.lower()), _name(item.name), _reasons(item))
                for item in report.altered
            ),
        )


def _by_hand(report: Report) -> Iterator[str]:
    yield '<h2 id="hand">Work by hand</h2>'
    work = sorted((i for i in report.items if i.minutes), key=lambda item: -item.minutes)
    if not work:
        yield "<p>Nothing.</p>"
        return
    heads = (
        *(("Kind", False), ("Name", False), ("Effort", False), ("Estimate", True)),
        ("Reasons", False),
    )
    yield from _grid(
        heads,
        (
            (
                escape(item.kind.lower()),
                _name(item.name),
                _tag(item.effort),
                duration(item.minutes),
                _reasons(item),
            )
            for item in work
        ),
    )


def _tables(report: Report) -> Iterator[str]:
    yield '<h2 id="tables">Tables and their columns</h2>'
    for table in report.tables:
        yield from _table(table)


def _table(table: AssessedTable) -> Iterator[str]:
    heads = (("Column", False), ("Oracle", False), ("PostgreSQL", False), ("Not preserved", False))
    yield (
        f"<details><summary>{_name(table.name)} <span>{_text(', '.join(table.facts))}"
        "</span></summary>"
    )
    yield from (f"<p>{_text(limit)}</p>" for limit in table.limits)
    yield from _grid(
        heads,
        (
            (
                _name(column.name),
                escape(column.oracle_type),
                escape(column.target_type or "—"),
                _text(column.obstacle or column.lost or "nothing"),
            )
            for column in table.columns
        ),
    )
    yield "</details>\n"


def _redo(report: Report) -> Iterator[str]:
    yield '<h2 id="redo">Redo and time</h2>'
    if report.redo:
        heads = (("Day", False), ("Logs", True), ("Redo", True))
        rows = ((escape(day.day), str(day.logs), decimal(day.bytes)) for day in report.redo)
        yield from _grid(heads, rows, narrow=True)
    else:
        yield "<p>A snapshot does not contain the redo per day.</p>"
    yield from (f"<p>{_text(line)}</p>" for line in report.time_lines())


def _everything(report: Report) -> Iterator[str]:
    yield '<h2 id="all">Everything, by kind</h2>'
    for count in report.counts:
        own = [item for item in report.items if item.kind == count.kind]
        heads = (("Name", False), ("Migration", False), ("Effort", False), ("Remarks", False))
        yield (
            f"<details><summary>{escape(count.kind.lower())} <span>{count.total}</span></summary>"
        )
        yield from _grid(
            heads,
            (
                (
                    _name(item.name) + (" (invalid)" if item.status == "INVALID" else ""),
                    escape(item.carrier.title),
                    _tag(item.effort),
                    _reasons(item),
                )
                for item in own
            ),
        )
        yield "</details>\n"


def _left_out(report: Report) -> Iterator[str]:
    yield '<h2 id="unseen">Not assessed</h2><p>Check these yourself:</p>'
    rows = ((escape(what), _text(f"`{view}`")) for what, view in report.not_looked_at)
    yield from _grid((("What", False), ("View", False)), rows)
    if report.unread:
        yield "<h2>Views that cannot be read</h2><p>Grant SELECT_CATALOG_ROLE to assess:"
        yield f" {escape(', '.join(report.unread))}</p>"
    if report.others:
        yield "<h2>Schemas that were not assessed</h2>"
        heads = (("Schema", False), ("Objects", True))
        yield from _grid(heads, ((escape(one.owner), str(one.objects)) for one in report.others))


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
        objects = counted(other.objects, "object")
        yield f"not assessed: schema {other.owner}, {objects} (use --owner)"


def whole_report(report: Report) -> Iterator[str]:
    """Yield the lines of `report_lines`, then every table, column and object. Control characters
    and ends of lines in names are escapes.
    """
    return map(one_line, _whole_report(report))


def _whole_report(report: Report) -> Iterator[str]:
    yield from report_lines(report)
    yield ""
    yield "Tables and their columns:"
    for table in report.tables:
        yield f"{table.name}: {', '.join(table.facts)}"
        yield from (f"    {limit}" for limit in table.limits)
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
        yield from (
            f"{day.day}: {counted(day.logs, 'log')}, {decimal(day.bytes)}" for day in report.redo
        )


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


_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""The first characters of a formula. The last four are the full-width forms of the first four."""


def csv_lines(report: Report) -> Iterator[str]:
    """Yield a line of CSV for each object (RFC 4180), after a header line.

    A spreadsheet runs a cell as a formula if it begins with one of `_FORMULA`. The names of objects
    come from the source and can look like a formula. So a cell that begins like a formula gets an
    apostrophe as its first character, and is then text (OWASP, “CSV Injection”).
    """
    names = ("kind", "name", "status", "carried over", "effort", "minutes", "cost units", "reasons")
    yield ",".join(names)
    for item in report.items:
        values = (
            *(item.kind, item.name, item.status, item.carrier.title, item.effort.name.lower()),
            *(str(item.minutes), f"{item.minutes / 5:g}", "; ".join(item.reasons)),
        )
        yield ",".join(map(_csv_cell, values))


def _csv_cell(value: str) -> str:
    text = "'" + value if value.startswith(_FORMULA) else value
    return '"' + text.replace('"', '""') + '"'


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
