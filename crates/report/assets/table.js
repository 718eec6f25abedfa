// Who holds memory at the chosen moment, put together as the map is coloured.
const MOST_GROUPS = 40;
const MOST_MEMBERS = 25;
const opened = new Set();

function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (key === "on") for (const [event, heard] of Object.entries(value)) made.addEventListener(event, heard);
    else if (value !== null) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

// What a buffer holds at `time`; of aliases only the largest counts.
function heldAt(usage, buffer, time) {
  if (!(usage.lower[buffer] <= time && time < usage.upper[buffer])) return 0;
  const gap = usage.gaps.get(buffer)?.find(({ from, to }) => from <= time && time < to);
  const held = gap ? (gap.stays ? gap.stays[1] - gap.stays[0] : 0) : usage.size[buffer];
  return held;
}

function aliveAt(usage, time) {
  const alive = [];
  const largest = new Map();
  for (let buffer = 0; buffer < usage.count; buffer += 1) {
    const held = heldAt(usage, buffer, time);
    if (held === 0) continue;
    const set = usage.aliases.get(buffer);
    if (!set) alive.push([buffer, held]);
    else if (!largest.has(set) || largest.get(set)[1] <= held) largest.set(set, [buffer, held]);
  }
  return [...alive, ...largest.values()].sort((a, b) => b[1] - a[1] || a[0] - b[0]);
}

function drawTable() {
  const { usage } = model;
  const time = chosenMoment();
  const alive = aliveAt(usage, time);
  model.alive = alive.map(([buffer]) => buffer);
  const counted = alive.reduce((sum, [, held]) => sum + held, 0);
  // What may share memory is counted by the planner, at the peak.
  const total = time === run().peak.time ? run().peak.live : counted;
  const step = run().steps.find(([, at]) => time <= at);
  const when = time === run().peak.time ? "At the peak" : "Chosen moment";
  document.getElementById("moment").textContent =
    `${when}, event ${countText(time)}${step ? ` of step ${step[0]}` : ""}${clockText(time)}: ${bytesText(total)} in ${buffersText(alive.length)}`;
  const groups = new Map();
  for (const [buffer, held] of alive) {
    const key = model.groupOf[buffer];
    if (!groups.has(key)) groups.set(key, { key, bytes: 0, members: [] });
    const group = groups.get(key);
    group.bytes += held;
    group.members.push([buffer, held]);
  }
  const sorted = [...groups.values()].sort((a, b) => b.bytes - a.bytes || a.key - b.key);
  const body = element("tbody");
  for (const group of sorted.slice(0, MOST_GROUPS)) addGroup(body, group, total);
  addRest(body, sorted.slice(MOST_GROUPS).flatMap((group) => group.members));
  const heading = (text, kind) => element("th", { scope: "col", class: kind ?? null }, text);
  const head = element("thead", null, element("tr", null, heading(scene.groupings[state.by].name), heading("bytes", "number"),
    heading("share", "number"), heading("buffers", "number"), heading("since", "number optional"), heading("until", "number optional")));
  document.getElementById("table").replaceChildren(element("div", { class: "scroll" }, element("table", null, head, body)));
}

function keyText(key) {
  return shortText(scene.groupings[state.by].keys[key] || "(unknown)");
}

function addGroup(body, group, total) {
  const isOpen = opened.has(`${state.by}:${group.key}`);
  const toggle = () => {
    const name = `${state.by}:${group.key}`;
    if (!opened.delete(name)) opened.add(name);
    drawTable();
    document.querySelector(`tr[data-group="${group.key}"]`)?.focus();
  };
  const share = total > 0 ? group.bytes / total : 0;
  body.append(element("tr", {
    class: "group", tabindex: "0", "aria-expanded": String(isOpen), "data-group": group.key,
    on: { click: toggle, keydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); toggle(); } } },
  }, element("td", { class: "name" }, swatch(model.groupColours[group.key]), keyText(group.key)), number(bytesText(group.bytes)),
  element("td", { class: "number" }, `${(share * 100).toFixed(1)}% `, shareBar(share)), number(countText(group.members.length)),
  number("", "optional"), number("", "optional")));
  if (!isOpen) return;
  for (const [buffer, held] of group.members.slice(0, MOST_MEMBERS)) addMember(body, buffer, held, total);
  addRest(body, group.members.slice(MOST_MEMBERS));
}

function addMember(body, buffer, held, total) {
  const { usage } = model;
  const choose = () => select(buffer, true);
  const share = total > 0 ? held / total : 0;
  body.append(element("tr", {
    class: "one", tabindex: "0", "data-buffer": buffer, "aria-selected": String(buffer === state.selected),
    on: { click: choose, keydown: (event) => { if (event.key === "Enter") choose(); } },
  }, element("td", { class: "name" }, longLabel(buffer)), number(bytesText(held)),
  element("td", { class: "number" }, `${(share * 100).toFixed(1)}% `, shareBar(share)), number(""),
  number(countText(usage.lower[buffer]), "optional"), number(countText(usage.upper[buffer]), "optional")));
}

function addRest(body, members) {
  if (members.length === 0) return;
  const bytes = members.reduce((sum, [, held]) => sum + held, 0);
  body.append(element("tr", { class: "more" }, element("td", { class: "name" }, `+${countText(members.length)} smaller`),
    number(bytesText(bytes)), number(""), number(""), number("", "optional"), number("", "optional")));
}

function number(text, kind) {
  return element("td", { class: kind ? `number ${kind}` : "number" }, text);
}

function swatch(colour) {
  const made = element("span", { class: "swatch" });
  made.style.background = colourText(colour);
  return made;
}

function shareBar(share) {
  const made = element("span", { class: "share optional" });
  made.style.width = `${Math.max(1, share * 60)}px`;
  return made;
}

function clockText(time) {
  const clock = model.usage?.clock;
  if (!clock) return "";
  const place = Math.min(Math.max(Math.floor((time - clock.first) / clock.every), 0), clock.readings.length - 1);
  return ` (${durationText(clock.readings[place] - clock.readings[0])})`;
}

// The offset in its pool, and which that is where there are several.
function placeText(usage, buffer) {
  if (!model.tree) return null;
  const pools = usage.pools[model.layout.detail] ?? usage.pool;
  const pool = pools ? pools[buffer] : 0;
  const name = usage.header.pools.length > 1 ? ` in ${usage.header.pools[pool].name}` : "";
  return `offset ${countText(usage.offsets[model.layout.detail][buffer])}${name}`;
}

// The lines of Python first; what lies under them can be opened.
function stack(frames) {
  const list = (some) => element("ol", null, ...some.map((frame) => element("li", null, frame)));
  const python = frames.filter((frame) => /\.py:\d+/.test(frame));
  if (python.length === 0 || python.length === frames.length) return list(frames);
  const all = element("details", null, element("summary", null, `all ${frames.length} frames`), list(frames));
  return element("div", null, list(python), all);
}

function drawSelected() {
  const panel = document.getElementById("selected");
  panel.hidden = state.selected < 0 || !model.usage;
  if (panel.hidden) return;
  const { usage } = model;
  const buffer = state.selected;
  const facts = [
    `${bytesText(usage.size[buffer])} (${countText(usage.size[buffer])} bytes)`,
    `events ${countText(usage.lower[buffer])} to ${countText(usage.upper[buffer])}${clockText(usage.lower[buffer])}`,
    placeText(usage, buffer),
    usage.stream && usage.stream[buffer] > 0 ? `stream ${usage.header.streams[usage.stream[buffer] - 1]}` : null,
    usage.freedAt(buffer) !== null ? `freed at ${countText(usage.freedAt(buffer))}, in use until its end` : null,
    usage.gaps.has(buffer) ? `away ${usage.gaps.get(buffer).length} times` : null,
  ].filter(Boolean);
  const site = usage.site && usage.site[buffer] > 0 ? usage.header.texts[usage.site[buffer] - 1] : "";
  const groups = scene.groupings.map((grouping, by) => grouping.keys[model.groups[by][buffer]])
    .filter((key, by) => key && scene.groupings[by].name !== "size" && scene.groupings[by].name !== "line");
  const frames = site ? stack(site.split("; ")) : null;
  panel.replaceChildren(element("b", null, element("bdi", null, usage.names.get(buffer))), ` · ${[...groups, ...facts].join(" · ")}`, ...(frames ? [frames] : []));
}
