"use strict";
/* The status page: shows the states that /events sends, and draws the readings of /history.json.
   All values are inserted as text, and never parsed as HTML. */
const byId = id => document.getElementById(id);
const whole = n => Math.round(n).toLocaleString("en");
const scn = n => n ? String(n) : "none yet";
function make(name, kind, ...inner) {
  const one = document.createElement(name);
  if (kind) one.className = kind;
  one.append(...inner.map(part => part instanceof Node ? part : String(part)));
  return one;
}

/* Text in which `commands` and `keys` are shown as code. */
const prose = text => text.split("`").map((part, i) => i % 2 ? make("code", "", part) : part);

/* --- amounts in words --- */

function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  while (n >= 1024 && i < units.length - 1) { n /= 1024; i++; }
  return (i && n < 100 ? n.toFixed(1).replace(/\.0$/, "") : Math.round(n)) + " " + units[i];
}
function span(s) {
  if (s === null || s === undefined) return "–";
  if (s < 60) return s.toFixed(1) + " s";
  if (s < 3600) return Math.floor(s / 60) + " min " + Math.floor(s % 60) + " s";
  if (s < 86400) return Math.floor(s / 3600) + " h " + Math.floor(s % 3600 / 60) + " min";
  return Math.floor(s / 86400) + " d " + Math.floor(s % 86400 / 3600) + " h";
}
const lag = s => s === null ? "unknown" : span(s);
const short = s => span(s).replace(/\.0 s$| 0 (s|min|h)$/, (_, unit) => unit ? "" : " s");
const few = n => n >= 1e6 ? +(n / 1e6).toFixed(1) + " M" : n >= 1e4 ? +(n / 1e3).toFixed(1) + " k"
  : n >= 10 ? whole(n) : String(+n.toFixed(1));
const moment = t => new Date(t * 1000).toISOString();
const clock = t => moment(t).slice(11, 16);

/* --- parts of the page --- */

function cell(value, kind, label) {
  const td = make("td", kind, value);
  if (label) td.dataset.label = label;
  return td;
}
function rows(id, list) {
  byId(id).querySelector("tbody").replaceChildren(...list.map(cells => make("tr", "", ...cells)));
}
function pairs(id, list) {
  byId(id).replaceChildren(...list.flatMap(([name, value, kind]) =>
    [make("dt", "", name), make("dd", kind, value)]));
}
function meter(parts) {
  const outer = make("div", "meter");
  for (const [kind, share, title] of parts) {
    const part = make("i", kind);
    part.style.width = Math.min(100, 100 * share) + "%";
    if (title) part.title = title;
    outer.append(part);
  }
  return outer;
}
function changed(element, value) {  // do not redraw unchanged elements: keep a selection in them, and the focus
  const text = JSON.stringify(value);
  if (element.dataset.shown === text) return false;
  element.dataset.shown = text;
  return true;
}
async function copy(text, button) {
  const code = button.previousElementSibling;
  try {
    await navigator.clipboard.writeText(text);
  } catch {  // without TLS a browser has no clipboard for a page
    getSelection().selectAllChildren(code);
    document.execCommand("copy");
  }
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
}
function command(text) {
  const button = make("button", "", "Copy");
  button.type = "button";
  button.addEventListener("click", () => copy(text, button));
  return make("div", "command", make("code", "", text), button);
}

/* --- what is now --- */

function targets(s) {
  const nav = byId("targets");
  if (!s.targets || nav.childElementCount) return;
  nav.hidden = false;
  for (const name of s.targets) {
    const link = make(name === s.target ? "b" : "a", "", name);
    if (name !== s.target) link.href = "?target=" + encodeURIComponent(name);
    else link.setAttribute("aria-current", "page");
    nav.append(link);
  }
}
function head(s) {
  const health = byId("health");
  health.textContent = s.health; health.className = "pill " + s.health;
  document.title = "olr_pg: " + s.health + (s.identity.instance ? ", " + s.identity.instance : "");
  byId("state").textContent = s.state.words;
  byId("code").textContent = s.state.name;
  byId("since").textContent = "for " + span(s.at - s.state.since);
  const told = s.problems.some(problem => problem.includes(s.state.reason));
  byId("reason").hidden = !s.state.reason || told;
  byId("reason").replaceChildren(...prose(s.state.reason || ""));
  const who = [
    ["Source", [s.identity.source, s.identity.source_place].filter(Boolean).join(", ")],
    ["Container", s.identity.container],
    ["Target", s.identity.target],
    ["Subscription", s.identity.subscription],
    ["Instance", s.identity.instance],
    ["Version", "olr_pg " + s.version + ", up " + span(s.at - s.started_at)],
  ].filter(([, value]) => value);
  byId("who").replaceChildren(...who.map(([name, value]) =>
    make("div", "", make("dt", "", name), make("dd", "", value))));
}
/* A problem has the form "what; action": show the action in its own paragraph. */
function told(problem) {
  const end = problem.indexOf("; ");
  if (end < 0) return [make("p", "what", ...prose(problem))];
  const action = problem.slice(end + 2);
  return [make("p", "what", ...prose(problem.slice(0, end))),
    make("p", "", ...prose(action[0].toUpperCase() + action.slice(1) + "."))];
}
function problems(s) {
  const section = byId("problems");
  section.hidden = !s.problems.length;
  if (!changed(section, [s.problems, s.commands])) return;
  section.querySelector("ol").replaceChildren(...s.problems.map((problem, i) =>
    make("li", "", ...told(problem), ...(s.commands[i] || []).map(command))));
}
function loads(s) {
  byId("loads").hidden = !s.loads.length;
  byId("loads").querySelector(".loads").replaceChildren(...s.loads.map(load => {
    if (!load.parts) return make("div", "load", make("b", "", load.table), meter([]),
      make("span", "n", "another tool copies the rows as of SCN " + scn(load.scn)));
    const share = load.rows_expected ? load.rows / load.rows_expected
      : load.parts ? load.parts_done / load.parts : 0;
    const seconds = Math.max(s.at - load.began, .001), rate = load.rows / seconds;
    const left = share > 0 && share < 1 ? ", about " + short(seconds * (1 - share) / share) + " left" : "";
    return make("div", "load", make("b", "", load.table), meter([["fill", share]]),
      make("span", "n", Math.floor(100 * Math.min(share, 1)) + " %, " + whole(load.rows) + " rows, "
        + few(rate) + "/s" + left));
  }), ...(s.shown.loads > s.loads.length ? [make("p", "soft", "… and " + whole(s.shown.loads - s.loads.length) + " more tables")] : []));
}
function largestLag(s) {
  return s.shown.lag_seconds === null ? "unknown" : span(s.shown.lag_seconds);
}
let latest = null, wanted = "";
function tableRow(t, largest) {
  const name = make("button", "", t.name);
  name.type = "button";
  name.title = "Show its history";
  name.addEventListener("click", () => { pick(t.name); byId("history").scrollIntoView({block: "nearest"}); });
  const title = make("td", t.stopped ? "name stopped" : "name", name);
  if (t.stopped) title.append(make("small", "", t.stopped.split("; ")[0]));  // the rest is a problem
  else if (t.behind) title.append(make("small", "", "waits for " + t.behind));
  else if (t.verified_at) title.append(make("small", "", (t.differences ? whole(t.differences) + " rows differ" : "equal")
    + (t.verified_scn ? " as of SCN " + scn(t.verified_scn) : "") + ", " + span(latest.at - t.verified_at) + " ago"));
  const count = (label, n, kind) => cell(whole(n), "n count" + (n ? " " + (kind || "") : " zero"), label);
  const waits = ["reading", "decoding", "queue", "apply"].map(cause =>
    [cause, largest && t.lag ? t.lag[cause] / largest : 0, cause + " " + lag(t.lag && t.lag[cause])]);
  return [title, cell((t.stopped ? "stopped, " : t.paused ? "paused, " : t.blocked ? "blocked, " : "") + lag(t.lag_seconds), t.stopped ? "n lag stopped" : "n lag"),
    cell(meter(waits), "waits"), count("waiting", t.waiting), count("inserted", t.inserted),
    count("updated", t.updated), count("deleted", t.deleted), count("conflicts", t.conflicts, "warning"),
    cell(scn(t.applied_scn), "n count", "applied SCN")];
}
/* The server sorts the tables, and sends only the first ones; `shown` has the numbers of all. */
function more(s) {
  const count = s.shown.matching - s.tables.length;
  return whole(count) + (count === 1 ? " more table" : " more tables");
}
function tables(s) {
  byId("tables").hidden = !s.shown.tables;
  byId("wanted").hidden = s.shown.tables <= 12;
  const largest = s.shown.lag_seconds || 0;
  const focused = document.activeElement?.closest?.("#tables td.name")?.textContent;
  rows("tables", s.tables.map(t => tableRow(t, largest)));
  if (focused) [...document.querySelectorAll("#tables td.name button")].find(b => focused.startsWith(b.textContent))?.focus();
  byId("table_count").textContent = whole(s.shown.tables);
  byId("more_tables").hidden = s.shown.matching <= s.tables.length;
  byId("more_tables").textContent = more(s) + ": use the search field to find one.";
}
function details(s) {
  pairs("positions", [
    ["commits decoded below", scn(s.source.decoded_scn)],
    ["commits sent below", scn(s.port.taken_scn)],
    ...s.identity.target ? [["confirmed", scn(s.confirmed_scn)]] : [],
    ["restart from", scn(s.port.saved_scn)],
  ]);
  pairs("waiting", [
    ["since the last archived log", s.archive_seconds === null ? "none yet" : span(s.archive_seconds)],
    ["for other redo threads", whole(s.source.waiting_transactions)],
    ["open transactions", whole(s.source.open_transactions)],
    ["age of the oldest one", s.source.oldest_open_xid ? span(s.source.oldest_open_seconds) : "none"],
    ["XID of the oldest one", s.source.oldest_open_xid || "none"],
    ["spilled to disk", bytes(s.source.spilled_bytes)],
  ]);
  pairs("queue", [
    ["ready", whole(s.port.ready)],
    ["sent, not confirmed", whole(s.port.transmitted)],
    ["bytes", s.port.bytes_max ? bytes(s.port.queued_bytes) + " of " + bytes(s.port.bytes_max) : "none"],
    ["decoding waits", s.port.full ? "yes" : "no", s.port.full ? "warning" : ""],
  ]);
  const used = Math.max(s.port.bytes_max ? s.port.queued_bytes / s.port.bytes_max : 0,
    s.port.transactions_max ? (s.port.ready + s.port.transmitted) / s.port.transactions_max : 0);
  const fill = byId("queue_fill");
  fill.style.width = Math.min(100, 100 * used) + "%";
  fill.className = used > .8 ? "fill high" : "fill";
  const refused = Object.entries(s.port.refused).map(([code, n]) => n + " × " + code).join(", ");
  pairs("process", [
    ["memory", s.process.resident_bytes === null ? "unknown" : bytes(s.process.resident_bytes)],
    ["threads, descriptors", s.process.threads + ", " + (s.process.descriptors ?? "unknown")],
    ["port", s.port.address],
    ["client", s.port.client || "none"],
    ...(s.port.client ? [["last request of the client", span(s.port.silent_seconds) + " ago"]] : []),
    ["connections", whole(s.port.connections)],
    ["refused", refused || "none", refused ? "warning" : ""],
  ]);
  const left = [
    ["rows excluded by the filter", s.source.rows_filtered],
    ["transactions excluded by the filter", s.source.transactions_filtered],
    ["incomplete LOB values in the redo", s.source.lob_unavailable, "warning"],
    ["LOB values changed without a row change", s.source.lob_unclaimed, "warning"],
  ].filter(([, count]) => count);
  byId("left_out").hidden = !left.length;
  pairs("left", left.map(([name, count, kind]) => [name, whole(count), kind]));
}
/* `olr-pg fallback run` also serves this page. Then the parts about redo and the history are hidden. */
function wayBack(s) {
  const back = s.way_back, slot = back && back.slot, ledger = back && back.ledger;
  for (const one of document.querySelectorAll("main > *")) {
    if (one.id !== "problems") one.hidden = !back || !one.id.startsWith("way_");
  }
  if (!back) return;
  pairs("way_position", [
    ["commits up to this LSN are in Oracle", ledger ? ledger.lsn : "unknown"],
    ["WAL that is not applied to Oracle yet", back.lag_bytes === null ? "unknown" : bytes(back.lag_bytes)],
    ["transactions applied", ledger ? whole(ledger.transactions) : "unknown"],
    ["last answer of both databases", span(s.at - back.answered_at) + " ago"],
  ]);
  const used = slot && slot.wal_bytes !== null ? slot.wal_bytes / back.max_wal_bytes : 0;
  pairs("way_slot", slot ? [
    ["confirmed up to", slot.lsn],
    ["in use by olr-pg fallback run", slot.is_active ? "yes" : "no", slot.is_active ? "" : "warning"],
    ["state of its WAL", slot.wal_status || "unknown", slot.wal_status === "lost" ? "error" : ""],
    ["WAL kept", slot.wal_bytes === null ? "unknown" : bytes(slot.wal_bytes)],
    ["fallback.max-wal-mb", bytes(back.max_wal_bytes)],
  ] : [["slot", "missing", "error"]]);
  byId("way_fill").style.width = Math.min(100, 100 * used) + "%";
  byId("way_fill").className = used > .8 ? "fill high" : "fill";
  rows("way_tables", s.tables.map(t => {
    const state = cell(t.state, t.state === "stopped" ? "stopped" : "");
    if (t.reason) state.append(make("small", "", ": " + t.reason));
    return [cell(t.name, "name"), state, cell(t.lsn, "n"), cell(whole(t.conflicts), t.conflicts ? "n warning" : "n"),
      cell(whole(t.changed_values), t.changed_values ? "n warning" : "n")];
  }));
  byId("way_count").textContent = whole(s.shown.tables);
  byId("way_more").hidden = s.shown.matching <= s.tables.length;
  byId("way_more").textContent = more(s) + " are in /status.json.";
}
function show(s) {
  latest = s;
  targets(s); head(s); problems(s);
  if ("way_back" in s) return wayBack(s);
  loads(s);
  byId("redo_rate").textContent = bytes(s.rates.redo_bytes) + "/s";
  byId("rows_rate").textContent = whole(s.rates.decoded_rows) + "/s";
  byId("apply_rate").textContent = whole(s.rates.applied_changes) + "/s";
  byId("lag").textContent = largestLag(s);
  tables(s); details(s); choices(s);
  byId("threads").hidden = !s.source.threads.length && !s.source.gaps.length;
  rows("threads", s.source.threads.map(t => [cell(t.thread, "", "thread"), cell(t.archived_sequence, "n", "last archived"),
    cell(t.decoded_sequence || "none yet", "n", "last decoded"), cell(scn(t.archived_scn), "n", "archived up to SCN"),
    cell(scn(t.decoded_scn), "n", "decoded up to SCN"), cell(span(s.at - t.archived_at) + " ago", "n", "archived")]));
  byId("gaps").replaceChildren(...s.source.gaps.map(gap => make("li", "", gap)));
  byId("no_events").hidden = s.events.length > 0;
  if (changed(byId("events"), s.events)) rows("events", events(s).map(([e, text, count]) => {
    const td = make("td", "text", ...prose(text));
    if (count > 1) td.append(make("span", "soft", " (" + count + " times)"));
    return [cell((e.timestamp || "").replace("T", " ").slice(0, 19), "soft"), cell(e.level, e.level), td];
  }));
}
/* The latest event first; equal events in succession are shown once, with their number. */
function events(s) {
  const found = [];
  for (const e of s.events.slice(-20).reverse()) {
    const text = sentence(e), last = found[found.length - 1];
    if (last && last[1] === text) last[2]++; else found.push([e, text, 1]);
  }
  return found;
}
function sentence(e) {
  const {event, message, level, timestamp, component, code, what, reason, error, where, action, ...rest} = e;
  const head = event || message || "", why = reason || error || what || "";
  const named = code && !(head + why).includes(code) ? code + ": " : "";
  const isNew = ([, value]) => !(head + why).includes(String(value));
  const more = Object.entries(rest).filter(isNew).map(([key, value]) => key + ": " + value).join(", ");
  return head + (named || why ? ": " + (why ? named + why : code) : "") + (where ? " [" + where + "]" : "")
    + (more ? " [" + more + "]" : "") + (action ? "; " + action : "");
}

/* --- history --- */

const perSecond = n => few(n) + "/s";
const CHARTS = [
  {name: "Redo decoded", of: "all", words: v => bytes(v) + "/s", steps: "bytes", least: 1024,
    series: [["redo_bytes", "redo", "decoding"]]},
  {name: "Rows", of: "all", words: perSecond, least: 10,
    series: [["rows", "decoded", "decoding"], ["changes", "applied", "apply"]]},
  {name: "Changes applied", of: "table", words: perSecond, least: 10,
    series: [["changes", "applied", "apply"]]},
  {name: "Lag", words: short, steps: "seconds", least: 1, stacked: true,
    series: [["reading", "reading", "reading"], ["decoding", "decoding", "decoding"], ["queue", "queue", "queue"], ["apply", "apply", "apply"]]},
  {name: "Ready queue", of: "all", words: bytes, steps: "bytes", least: 1024,
    series: [["queued_bytes", "waiting bytes", "queue"]]},
  {name: "Waiting in the applier", of: "table", words: few, least: 10,
    series: [["waiting", "changes", "queue"]]},
];
const STEPS = {
  seconds: [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 28800, 43200, 86400, 172800, 604800],
  bytes: [0, 1, 2, 3, 4].flatMap(p => [1, 2, 4, 8, 16, 32, 64, 128, 256, 512].map(m => m * 1024 ** p)),
};
let range = "1h", ofTable = "", kept = null;

function stepOf(chart, top) {
  const rough = top / 3;
  const found = (STEPS[chart.steps] || []).find(step => step >= rough);
  if (found) return found;
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map(m => m * power).find(step => step >= rough * .999);
}
function svg(name, attributes, text) {
  const one = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) one.setAttribute(key, value);
  if (text !== undefined) one.textContent = text;
  return one;
}
/* The times to show below a chart: whole minutes, hours or days in UTC. */
function moments(from, to, width) {
  const most = width < 360 ? 4 : 7;
  const step = [300, 600, 900, 1200, 3600, 10800, 14400, 21600, 43200, 86400, 172800].find(s => (to - from) / s <= most);
  const found = [];
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
    found.push([t, step < 86400 ? clock(t) : moment(t).slice(5, 10)]);
  }
  return found;
}
/* Lines from value to value; a line ends where values are missing, because the appliance did not run. */
function lines(values, x, y) {
  let path = "", pen = false;
  values.forEach((value, i) => {
    if (value === null) { pen = false; return; }
    path += (pen ? "L" : "M") + x(i).toFixed(1) + " " + y(value).toFixed(1);
    if (!pen && (i + 1 === values.length || values[i + 1] === null)) path += "h.1";
    pen = true;
  });
  return path;
}
function areas(low, high, x, y) {
  let path = "", i = 0;
  while (i < high.length) {
    if (high[i] === null) { i++; continue; }
    const first = i;
    while (i < high.length && high[i] !== null) i++;
    const there = [], back = [];
    for (let k = first; k < i; k++) {
      there.push(x(k).toFixed(1) + " " + y(high[k]).toFixed(1));
      back.unshift(x(k).toFixed(1) + " " + y(low[k]).toFixed(1));
    }
    path += "M" + there.concat(back).join("L") + "Z";
  }
  return path;
}
function draw(chart, history, figure) {
  const width = Math.max(figure.clientWidth, 240), height = 170;
  const box = {left: 72, right: width - 10, top: 8, bottom: height - 22};
  const all = chart.series.map(([name]) => history.series[name]);
  const count = all[0].length;
  const sums = [];
  for (let k = 0; k < all.length; k++) {
    sums.push(all[k].map((value, i) => value === null ? null
      : value + (chart.stacked && k ? sums[k - 1][i] : 0)));
  }
  const highest = Math.max(chart.least, ...sums.flat().filter(value => value !== null));
  const step = stepOf(chart, highest), top = Math.ceil(highest / step) * step;
  const x = i => box.left + (box.right - box.left) * (i + .5) / count;
  const y = value => box.bottom - (box.bottom - box.top) * value / top;
  const at = t => box.left + (box.right - box.left) * (t - history.from) / (history.to - history.from);
  const picture = svg("svg", {viewBox: `0 0 ${width} ${height}`, role: "img"});
  for (let value = 0; value <= top * 1.001; value += step) {
    picture.append(svg("line", {class: value ? "grid" : "axis", x1: box.left, x2: box.right, y1: y(value), y2: y(value)}),
      svg("text", {x: box.left - 6, y: y(value) + 4, "text-anchor": "end"}, value ? chart.words(value) : "0"));
  }
  for (const [t, words] of moments(history.from, history.to, width)) {
    const place = at(t), anchor = place > box.right - 18 ? "end" : place < box.left + 18 ? "start" : "middle";
    picture.append(svg("line", {class: "axis", x1: place, x2: place, y1: box.bottom, y2: box.bottom + 4}),
      svg("text", {x: place, y: height - 4, "text-anchor": anchor}, words));
  }
  chart.series.forEach(([, , kind], k) => {
    if (chart.stacked) {
      const below = k ? sums[k - 1] : all[k].map(() => 0);
      picture.append(svg("path", {class: "area " + kind, d: areas(below, sums[k], x, y)}));
    }
    // If two lines are equal, the first is visible around the second.
    const under = !chart.stacked && k + 1 < chart.series.length ? " under" : "";
    picture.append(svg("path", {class: kind + under, d: lines(sums[k], x, y)}));
  });
  const line = svg("line", {class: "cursor", y1: box.top, y2: box.bottom, visibility: "hidden"});
  picture.append(line);
  const value = (k, i) => all[k][i] === null ? "–" : chart.words(all[k][i]);
  const legend = make("span", "legend");
  const say = (i, words) => {
    legend.replaceChildren(...chart.series.flatMap(([, name, kind], k) =>
      make("span", "one", make("i", "key " + kind), name + " ", make("span", "value", value(k, i)))), words);
  };
  let last = count - 1;
  while (last > 0 && all[0][last] === null) last--;
  say(last, "");
  picture.addEventListener("pointermove", event => {
    const place = (event.clientX - picture.getBoundingClientRect().left) * width / picture.clientWidth;
    const i = Math.min(count - 1, Math.max(0, Math.floor((place - box.left) / (box.right - box.left) * count)));
    line.setAttribute("x1", x(i)); line.setAttribute("x2", x(i)); line.setAttribute("visibility", "visible");
    say(i, "at " + moment(history.from + i * history.step).replace("T", " ").slice(5, 19));
  });
  picture.addEventListener("pointerleave", () => { line.setAttribute("visibility", "hidden"); say(last, ""); });
  picture.setAttribute("aria-label", chart.name + ", " + chart.series.map(([, name], k) =>
    name + " now " + value(k, last)).join(", ") + "; at most " + chart.words(Math.max(0, ...sums.flat().filter(Boolean))));
  figure.replaceChildren(make("figcaption", "", make("b", "", chart.name), legend), picture);
}
function drawAll() {
  if (!kept) return;
  const empty = kept.series.changes.every(value => value === null);
  byId("no_history").hidden = !empty;
  byId("charts").hidden = empty;
  const wantedCharts = CHARTS.filter(chart => !chart.of || (chart.of === "table") === !!ofTable);
  const figures = wantedCharts.map(() => make("figure"));
  byId("charts").replaceChildren(...figures);
  wantedCharts.forEach((chart, i) => draw(chart, kept, figures[i]));
}
async function ask() {
  if (latest && "way_back" in latest) return;  // `olr-pg fallback run` has no history
  const query = new URLSearchParams(location.search);
  query.set("range", range);
  if (ofTable) query.set("table", ofTable);
  const asked = query.toString();
  try {
    const answer = await fetch("history.json?" + asked);
    if (!answer.ok) throw new Error(String(answer.status));
    const found = await answer.json();
    if (found.range === range && found.table === ofTable) { kept = found; drawAll(); }
  } catch {
    if (!kept) { byId("no_history").hidden = false; byId("charts").hidden = true; }
  }
}
function pick(table) {
  ofTable = table;
  const select = byId("history_table");
  if (![...select.options].some(one => one.value === table)) select.add(new Option(table, table));
  select.value = table;
  kept = null;
  ask();
}
function choices(s) {
  const select = byId("history_table");
  if (wanted) return;  // only the tables that match are known
  // Of many tables, click the name of one in the list.
  const names = s.tables.length === s.shown.tables ? s.tables.map(t => t.name).sort() : ofTable ? [ofTable] : [];
  if (!changed(select, names)) return;
  select.replaceChildren(new Option("all tables", ""), ...names.map(name => new Option(name, name)));
  select.value = ofTable;
}
byId("history_table").addEventListener("change", event => pick(event.target.value));
let searching = 0;
byId("wanted").addEventListener("input", event => {
  wanted = event.target.value;
  clearTimeout(searching);
  searching = setTimeout(listen, 300);
});
for (const button of document.querySelectorAll("[data-range]")) {
  button.addEventListener("click", () => {
    range = button.dataset.range;
    for (const one of document.querySelectorAll("[data-range]")) one.setAttribute("aria-pressed", String(one === button));
    kept = null;
    ask();
  });
}
let drawn = innerWidth;
addEventListener("resize", () => { if (innerWidth !== drawn) { drawn = innerWidth; drawAll(); } });
ask();
setInterval(() => { if (!document.hidden) ask(); }, 10_000);

let source = null;
function listen() {
  source?.close();
  const asked = new URLSearchParams(location.search);
  if (wanted) asked.set("wanted", wanted);
  source = new EventSource("events?" + asked);
  source.onmessage = message => show(JSON.parse(message.data));
  source.onerror = () => {
    const health = byId("health");
    health.textContent = "no answer"; health.className = "pill lost";
  };
}
listen();
