// Asks for the state every two seconds and puts it into the tables. All text goes through textContent: nothing is ever markup.
"use strict";

const POLL_MS = 2000;
const ANSWER_MS = 5000; // a program that takes longer hangs
const TYPED_MS = 300; // a key is complete if no character follows for so long
const REMEMBERED_MAX = 1000; // reconciles, as many as the program remembers
const OBJECTS_MAX = 50; // rows of timelines
const DETAILS_MAX = 30; // reconciles of one object
const SPAN_MS = 10 * 60 * 1000; // what a timeline shows at most
const RESTART_MS = 5000; // two starts that differ by more are not the same: clocks are corrected by less

const byId = (id) => document.getElementById(id);
const past = []; // reconciles, the oldest first
const open = new Set(); // timelines whose reconciles are shown
let last = 0;
let failed = new Set(); // checks that failed at the last update
let paused = false;
let timer = null; // of the next poll; none while one is under way
let typed = null; // timer of the key whose slot is shown
let asked = 0; // requests for a slot: only the last one is shown
let state = null;

function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 0.0995) return `${(value * 1000).toFixed(value < 0.00995 ? 1 : 0)} ms`;
  if (value < 60) return `${value.toFixed(1)} s`;
  if (value < 3600) return `${Math.floor(value / 60)} min ${Math.floor(value % 60)} s`;
  return `${Math.floor(value / 3600)} h ${Math.floor((value % 3600) / 60)} min`;
}

function bytes(value) {
  for (const unit of ["B", "KiB", "MiB"]) {
    if (value < 1024) return `${unit === "B" ? value : value.toFixed(1)} ${unit}`;
    value /= 1024;
  }
  return `${value.toFixed(1)} GiB`;
}

function counted(n, one, many) {
  return `${n} ${n === 1 ? one : many}`;
}

function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function make(name, className) {
  const node = document.createElement(name);
  if (className) node.className = className;
  return node;
}

// A cell is a string, [string, class], or a function that fills the element.
function fill(cell, value) {
  if (typeof value === "function") return value(cell);
  const [text, className] = Array.isArray(value) ? value : [value, ""];
  write(cell, String(text));
  if (cell.className !== className) cell.className = className;
}

// A row keeps its element as long as its key is listed, so that focus survives an update. An element that moves loses its
// focus: a row that has it is not moved, and the rows before it move behind it.
function rows(body, items) {
  const known = new Map([...body.children].map((row) => [row.dataset.key, row]));
  let at = body.firstChild;
  for (const { key, cells, span } of items) {
    let row = known.get(key);
    known.delete(key);
    if (!row) {
      row = make("tr", span ? "details" : "");
      row.dataset.key = key;
      cells.forEach((_, index) => {
        const cell = make(index === 0 && !span ? "th" : "td");
        if (index === 0 && !span) cell.scope = "row";
        if (span) cell.colSpan = span;
        row.append(cell);
      });
    }
    cells.forEach((value, index) => fill(row.children[index], value));
    if (row.contains(document.activeElement)) {
      while (at !== row) {
        const moved = at;
        at = at.nextSibling;
        body.append(moved);
      }
    }
    if (row === at) at = at.nextSibling;
    else body.insertBefore(row, at);
  }
  for (const row of known.values()) row.remove();
}

const KIND = { done: "done", gone: "done", conflict: "conflict", failed: "failed", panicked: "failed", "timed out": "failed" };
const TONE = { done: "good", conflict: "warn", failed: "bad" };
const number = (value) => [value, "number"];

function showHealth() {
  rows(byId("checks"), state.checks.map((check) => ({
    key: check.name,
    cells: [check.name, check.ok ? ["in order", "good"] : ["fails", "bad"], [check.text, "text"]],
  })));
  const wrong = state.checks.filter((check) => !check.ok);
  const n = state.checks.length;
  const text = wrong.length ? `${wrong.length} of ${n} checks fail.` : `All ${n} checks are in order.`;
  fill(byId("checked"), [text, wrong.length ? "bad" : "good"]);
  // Opened once for each failure that is new: a reader may close it again.
  if (wrong.some((check) => !failed.has(check.name))) byId("all-checks").open = true;
  failed = new Set(wrong.map((check) => check.name));
  const { election } = state;
  const who = { leads: "This process leads.", over: "This process no longer leads, and ends." };
  const standby = election && `This process is a standby; ${election.holder || "nobody"} leads.`;
  const { shards } = state;
  const leads = election ? `${who[election.state] || standby} The lease is ${election.lease}.` : "";
  const slot = ({ number, owner, state, moves }) => {
    const notes = [state === "other" ? "" : state, moves === null ? "" : counted(moves, "move", "moves")];
    const noted = notes.filter((note) => note).join(", ");
    return `${number}: ${owner || "no known owner"}${noted && ` (${noted})`}`;
  };
  const owns = shards && `This process ${shards.note}, by ${shards.by}. ${shards.slots.map(slot).join(", ")}.`;
  const { ring } = state;
  const shard = ring && `This process is shard ${ring.shard} of the ring ${ring.name}, and handed over ${ring.handed_over} objects. `;
  write(byId("election"), owns || (shard || "") + leads);
}

async function showSlot() {
  clearTimeout(typed);
  typed = null;
  const key = byId("slot-key").value.trim();
  const request = ++asked;
  let text = "Why this process works on a key or does not: enter NAMESPACE/NAME, or NAME for a cluster-scoped object.";
  if (key) {
    try {
      const answer = await get(`/debug/slot.json?key=${encodeURIComponent(key)}`);
      text = answer.ok ? (await answer.json()).reason : (await answer.text()).trim();
    } catch (error) {
      text = `The program does not answer: ${error.message}`;
    }
  }
  if (request === asked) write(byId("slot-reason"), text);
}

function showControllers() {
  rows(byId("controller-rows"), state.controllers.map((of) => ({
    key: of.name,
    cells: [
      of.name, of.kind, number(of.ready), number(of.ready ? seconds(of.oldest_waiting_seconds) : "–"), number(of.delayed),
      number(`${of.running} of ${of.workers}`), number(of.running ? seconds(of.longest_running_seconds) : "–"),
      [of.n_failing, of.n_failing ? "number bad" : "number"], number(of.adds), number(of.retries), of.location,
    ],
  })));
  const running = state.controllers.flatMap((of) =>
    of.running_keys.filter((run) => run.seconds >= 1).map((run) => ({
      key: `${of.name} ${run.key}`,
      cells: [of.name, run.key, number(seconds(run.seconds))],
    })));
  byId("running").hidden = running.length === 0;
  rows(byId("running-rows"), running);
}

function showFailing() {
  const failing = state.controllers.flatMap((of) => of.failing.map((key) => ({
    key: `${of.name} ${key.key}`,
    cells: [
      key.key, of.name, number(key.failures),
      key.given_up ? ["given up until the next event or resync", "bad"]
        : key.next_try_seconds === null ? "now" : `in ${seconds(key.next_try_seconds)}`,
      [key.text || "not remembered: too many keys fail", "text"],
    ],
  })));
  const all = state.controllers.reduce((sum, of) => sum + of.n_failing, 0);
  byId("failing-table").hidden = all === 0;
  byId("no-failing").hidden = all !== 0 && all === failing.length;
  write(byId("no-failing"), all === 0 ? "No key fails." : `${all} keys fail; these are the first ${failing.length}.`);
  rows(byId("failing-rows"), failing);
  return all;
}

function showCaches() {
  rows(byId("cache-rows"), state.caches.map((cache, index) => ({
    key: `${index} ${cache.kind}`,
    cells: [
      cache.kind, cache.group_version, cache.scope,
      cache.failure ? [cache.failure, "text bad"] : cache.synced ? ["synced", "good"] : ["filling", "warn"],
      number(cache.objects), number(bytes(cache.bytes)), number(cache.backlog),
      number(seconds(cache.lag_seconds)),
      number(cache.silent_seconds === null ? "never" : `${seconds(cache.silent_seconds)} ago`),
      [cache.unreadable, cache.unreadable ? "number bad" : "number"], number(cache.revision),
    ],
  })));
}

function showWiring() {
  rows(byId("wiring-rows"), state.wiring.map((wire, index) => ({
    key: `${index}`,
    cells: [wire.kind, wire.relation, wire.controller, wire.triggers ? "yes" : "no"],
  })));
}

function objects() {
  const found = new Map();
  for (const run of past) {
    const key = `${run.controller} ${run.key}`;
    const object = found.get(key) || { key, runs: [] };
    object.runs.push(run);
    found.delete(key); // the one that ran last comes first
    found.set(key, object);
  }
  return [...found.values()].reverse();
}

function wanted({ runs }) {
  const [key, controller] = [byId("filter-key").value.trim().toLowerCase(), byId("filter-controller").value];
  return runs[0].key.toLowerCase().includes(key)
    && (!controller || runs[0].controller === controller)
    && (!byId("filter-failed").checked || runs.some((run) => KIND[run.outcome] === "failed"));
}

const SVG = "http://www.w3.org/2000/svg";

function draw(cell, runs, from, to) {
  let svg = cell.firstChild;
  if (!svg) {
    svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("class", "timeline");
    svg.setAttribute("viewBox", "0 0 1000 24");
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("role", "img");
    cell.append(svg);
  }
  const shown = runs.filter((run) => run.time >= from);
  while (svg.children.length > shown.length) svg.lastChild.remove();
  while (svg.children.length < shown.length) svg.append(document.createElementNS(SVG, "rect"));
  shown.forEach((run, index) => {
    const mark = svg.children[index];
    const width = Math.max(4, (run.seconds * 1000 * 1000) / (to - from));
    const end = ((run.time - from) * 996) / (to - from) + 4;
    const values = { class: KIND[run.outcome], x: Math.max(0, end - width).toFixed(1), y: 3, width: width.toFixed(1), height: 18 };
    for (const [name, value] of Object.entries(values)) mark.setAttribute(name, value);
  });
  const n = (kind) => shown.filter((run) => KIND[run.outcome] === kind).length;
  const parts = ["done", "conflict", "failed"].filter((kind) => n(kind)).map((kind) => `${n(kind)} ${kind}`);
  svg.setAttribute("aria-label", parts.join(", ") || "none in this time");
}

function toggle(cell, object) {
  let button = cell.firstChild;
  if (!button) {
    button = make("button", "key");
    button.type = "button";
    button.addEventListener("click", () => {
      if (!open.delete(object.key)) open.add(object.key);
      showReconciles();
    });
    cell.append(button);
  }
  write(button, object.runs[0].key);
  button.setAttribute("aria-expanded", String(open.has(object.key)));
}

function details(cell, object) {
  let body = cell.querySelector("tbody");
  if (!body) {
    const table = make("table");
    write(table.createCaption(), `Last reconciles of ${object.runs[0].key} by ${object.runs[0].controller}`);
    const head = table.createTHead().insertRow();
    for (const title of ["Ended", "Because", "Outcome", "Took", "Then", "Trace", "Error"]) {
      const th = make("th");
      th.scope = "col";
      write(th, title);
      head.append(th);
    }
    body = table.createTBody();
    cell.append(table);
  }
  rows(body, object.runs.slice(-DETAILS_MAX).reverse().map((run) => ({
    key: `${run.number}`,
    cells: [
      new Date(run.time).toLocaleTimeString(), run.reason, [run.outcome, TONE[KIND[run.outcome]]], seconds(run.seconds),
      run.next, [run.trace, "trace"], [run.text, "text"],
    ],
  })));
}

function showReconciles() {
  const found = objects().filter(wanted);
  const shown = found.slice(0, OBJECTS_MAX);
  const to = Date.parse(state.now);
  const first = Math.min(to - 30000, ...shown.flatMap((object) => object.runs.map((run) => run.time)));
  const from = Math.max(first, to - SPAN_MS);
  rows(byId("timeline-rows"), shown.flatMap((object) => {
    const run = object.runs[object.runs.length - 1];
    const row = {
      key: object.key,
      cells: [
        (cell) => toggle(cell, object), run.controller, number(object.runs.length),
        [run.outcome, TONE[KIND[run.outcome]]], (cell) => draw(cell, object.runs, from, to),
      ],
    };
    const more = { key: `${object.key} details`, span: 5, cells: [(cell) => details(cell, object)] };
    return open.has(object.key) ? [row, more] : [row];
  }));
  write(byId("timeline-head"), `Timeline of ${seconds((to - from) / 1000)}`);
  const kept = `The last ${counted(past.length, "reconcile", "reconciles")}`;
  const rest = found.length > shown.length ? `, and the ${shown.length} of ${found.length} objects that ran last` : "";
  write(byId("timeline-note"), past.length === 0 ? "Nothing was reconciled yet." : `${kept}${rest}.`);
}

function showOptions() {
  const select = byId("filter-controller");
  const present = new Set([...select.options].map((option) => option.value));
  for (const { name } of state.controllers) {
    if (!present.has(name)) select.add(new Option(name, name));
  }
}

function take(next) {
  // A program that was started again counts from the beginning. After a pause of this page it may have run for longer
  // than the former one, so the times of both starts are compared as well.
  const started = (of) => Date.parse(of.now) - of.up_seconds * 1000;
  const again = state !== null && (next.up_seconds < state.up_seconds || started(next) - started(state) > RESTART_MS);
  if (again) {
    past.length = 0;
    last = 0;
  }
  state = next;
  if (again) return false;
  for (const run of next.reconciles) {
    run.time = Date.parse(run.at);
    past.push(run);
    last = run.number;
  }
  past.splice(0, Math.max(0, past.length - REMEMBERED_MAX));
  return true;
}

function show() {
  document.title = `${state.app} – kctl debug`;
  write(byId("app"), state.app);
  const leads = state.election ? ` · ${state.election.state}` : "";
  write(byId("summary"), `kctl ${state.version} · up for ${seconds(state.up_seconds)}${leads}`);
  showOptions();
  showHealth();
  byId("slot").hidden = !state.shards;
  showControllers();
  const failing = showFailing();
  showReconciles();
  showCaches();
  showWiring();
  const wrong = state.checks.filter((check) => !check.ok).length;
  const parts = [
    failing ? counted(failing, "key fails", "keys fail") : "no key fails",
    ...(wrong ? [counted(wrong, "check fails", "checks fail")] : []),
  ];
  // A live region: it is read aloud when this text changes, and not at each update.
  write(byId("connection"), parts.join(", "));
}

function get(path) {
  return fetch(path, { cache: "no-store", signal: AbortSignal.timeout(ANSWER_MS) });
}

async function poll() {
  clearTimeout(timer);
  timer = null;
  try {
    const answer = await get(`/debug/state.json?after=${last}`);
    if (!answer.ok) throw new Error(await answer.text());
    if (take(await answer.json())) show();
    // A key that is still being typed is asked for when it is complete.
    if (state.shards && typed === null) await showSlot();
  } catch (error) {
    const reason = error.name === "TimeoutError" ? `nothing came within ${seconds(ANSWER_MS / 1000)}` : error.message;
    const shown = state ? `; this is of ${new Date(state.now).toLocaleTimeString()}` : "";
    write(byId("connection"), `The program does not answer: ${reason}${shown}`);
  }
  timer = setTimeout(() => !paused && poll(), POLL_MS);
}

byId("pause").addEventListener("click", () => {
  paused = !paused;
  byId("pause").setAttribute("aria-pressed", String(paused));
  if (!paused && timer !== null) poll();
});
byId("slot").addEventListener("submit", (event) => {
  event.preventDefault();
  showSlot();
});
byId("slot").addEventListener("input", () => {
  clearTimeout(typed);
  typed = setTimeout(showSlot, TYPED_MS);
});
byId("filter").addEventListener("submit", (event) => event.preventDefault());
byId("filter").addEventListener("input", () => state && showReconciles());
poll();
