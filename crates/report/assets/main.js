// The page itself: what is known at once from the scene, the data once it is there, and what people do.
const scene = JSON.parse(document.getElementById("scene").textContent);
const model = { usage: null, layout: null, tree: null, top: null, matches: null, alive: [], groups: null };
const runs = [];
const $ = (id) => document.getElementById(id);
const run = () => scene.runs[scene.layouts[state.layout].run];
const chosenMoment = () => state.at ?? run().peak.time;

function fullView() {
  const total = (layout) => layout.heights.reduce((sum, height) => sum + height, 0);
  // Without reuse everything else would be flat beside it.
  const alike = scene.layouts.filter((layout, place) => place === state.layout || layout.origin !== "no reuse");
  const height = state.same ? Math.max(...alike.map(total)) : total(scene.layouts[state.layout]);
  const [from, to] = run().span;
  return { x: [from, Math.max(to, from + 1)], y: [0, Math.max(height, 1) * 1.03] };
}

// A name that says something, or else the line that asked for it, or its group.
function labelOf(buffer) {
  const name = model.usage.names.get(buffer);
  if (!/^\d+(#\d+)?$/.test(name)) return name;
  return lineOf(buffer).split("/").at(-1) || (scene.groupings[state.by].name === "size" ? name : keyText(model.groupOf[buffer]));
}

function lineOf(buffer) {
  const line = scene.groupings.findIndex((grouping) => grouping.name === "line");
  return line >= 0 && model.groups ? scene.groupings[line].keys[model.groups[line][buffer]] : "";
}

function longLabel(buffer) {
  const name = model.usage.names.get(buffer);
  const line = lineOf(buffer);
  return shortText(line ? `${shortText(name)} · ${line}` : name);
}

// The chosen layout, coloured as chosen.
function prepare() {
  model.layout = scene.layouts[state.layout];
  const { colours, order } = colourOfGroups(scene.groupings[state.by]);
  model.groupColours = colours;
  model.groupOrder = order;
  const loaded = runs[model.layout.run];
  model.usage = loaded?.usage ?? null;
  model.tree = null;
  if (!loaded) return;
  model.groups = loaded.groups;
  model.groupOf = loaded.groups[state.by];
  loaded.coloursBy ??= [];
  loaded.coloursBy[state.by] ??= Uint8Array.from(model.groupOf, (group) => colours[group]);
  model.colours = loaded.coloursBy[state.by];
  const detail = loaded.details[model.layout.detail];
  if (model.layout.detail === null || !detail) return;
  detail.top ??= topOf(loaded.usage, model.layout);
  detail.tree ??= buildTree(loaded.usage, detail, detail.top);
  detail.common ??= [];
  detail.common[state.by] ??= valuesOfNodes(detail.tree, model.colours, mostCommon);
  model.top = detail.top;
  model.tree = detail.tree;
  model.coloursCommon = detail.common[state.by];
  model.foundCommon = model.matches ? valuesOfNodes(detail.tree, model.matches, largest) : null;
}

// Pools lie one above the other.
function topOf(usage, layout) {
  const offsets = usage.offsets[layout.detail];
  const pools = usage.pools[layout.detail] ?? usage.pool;
  if (!pools) return offsets;
  let floor = 0;
  const floors = layout.heights.map((height) => (floor += height) - height);
  return offsets.map((offset, buffer) => offset + floors[pools[buffer]]);
}

let frame = 0;
let settling = 0;

function draw(isMoving) {
  cancelAnimationFrame(frame);
  frame = requestAnimationFrame(() => {
    drawMap(isMoving);
    drawCurves();
  });
  clearTimeout(settling);
  if (isMoving) settling = setTimeout(() => draw(false), 120);
}

function refresh() {
  prepare();
  drawChoices();
  drawLegends();
  for (const section of document.querySelectorAll(".run-findings")) section.hidden = Number(section.dataset.run) !== model.layout.run;
  draw(false);
  if (model.usage) {
    drawTable();
    drawSelected();
  }
  saveState();
}

function tellShown({ alone, merged, bytes }) {
  const parts = [`${buffersText(alone)} drawn one by one`];
  if (merged > 0) parts.push(`+${countText(merged)} smaller, ${bytesText(bytes)}`);
  if (runs.length > 0 && !model.tree) parts.push("the file holds no more detail of this layout");
  $("shown").textContent = parts.join(" · ");
}

function drawChoices() {
  const total = (layout) => layout.heights.reduce((sum, height) => sum + height, 0);
  const most = Math.max(...scene.layouts.map(total), 1);
  const hasFocus = $("layouts").contains(document.activeElement);
  $("layouts").replaceChildren(...scene.layouts.map((layout, place) => {
    const made = element("button", {
      type: "button", role: "radio", "aria-checked": String(place === state.layout), tabindex: place === state.layout ? "0" : "-1",
      on: { click: () => chooseLayout(place) },
    }, scene.runs.length > 1 ? element("span", { class: "run" }, `${scene.runs[layout.run].name}: `) : null,
    `${layout.origin} `, element("b", null, bytesText(total(layout))), element("i"));
    made.lastChild.style.width = `${(100 * total(layout)) / most}%`;
    return made;
  }));
  if (hasFocus) $("layouts").children[state.layout].focus();
  $("grouping").replaceChildren(...scene.groupings.map((grouping, place) => {
    const made = element("option", { value: place }, grouping.name);
    made.selected = place === state.by;
    return made;
  }));
  $("same-scale").setAttribute("aria-pressed", String(state.same));
}

function drawLegends() {
  const shown = model.groupOrder.slice(0, COLOURS.length);
  const items = shown.map((group) => element("span", null, patch(colourText(model.groupColours[group])), keyText(group)));
  const rest = model.groupOrder.length - shown.length;
  if (rest > 0) items.push(element("span", null, patch(OTHER), `+${countText(rest)} more`));
  $("legend").replaceChildren(...items);
  const lines = curveLines().map(({ name, colour }) => element("span", null, patch(colour), name));
  if (run().bound > 0) {
    const dashed = element("i", { class: "dashed" });
    dashed.style.borderTopColor = "var(--warn)";
    lines.push(element("span", null, dashed, `lower bound ${bytesText(run().bound)}`));
  }
  $("curve-legend").replaceChildren(...lines);
}

function patch(colour) {
  const made = element("i");
  made.style.background = colour;
  return made;
}

function chooseLayout(place) {
  const before = run();
  state.layout = (place + scene.layouts.length) % scene.layouts.length;
  if (!state.same) state.y = null;
  if (run() !== before) {
    state.x = null;
    state.y = null;
    state.selected = -1;
    state.at = null;
  }
  if (state.query) search(state.query);
  refresh();
}

function moveView(x, y, isMoving) {
  const full = fullView();
  // Rounded, so that a link is short and restores the view to the pixel.
  const within = ([low, high], [first, last], least, digits) => {
    const length = Math.max(high - low, least);
    if (length >= (last - first) * 0.999999) return null;
    const start = Math.min(Math.max(low, first), last - length);
    return [start, start + length].map((at) => Number(at.toFixed(digits)));
  };
  state.x = within(x, full.x, 2, 3);
  state.y = within(y, full.y, 64, 0);
  draw(isMoving);
  saveState();
}

// Zooms by `factor` around a place of the map, given as shares of its width and height.
function zoom(factor, { time = 0.5, address = 0.5, axes = "both" } = {}) {
  const view = mapView();
  const scaled = (low, high, at, does) => {
    if (!does) return [low, high];
    const fixed = low + (high - low) * at;
    return [fixed - (fixed - low) / factor, fixed + (high - fixed) / factor];
  };
  moveView(scaled(view.x0, view.x1, time, axes !== "addresses"), scaled(view.y0, view.y1, address, axes !== "time"), true);
}

function pan(right, up) {
  const view = mapView();
  const [dx, dy] = [(view.x1 - view.x0) * right, (view.y1 - view.y0) * up];
  moveView([view.x0 + dx, view.x1 + dx], [view.y0 + dy, view.y1 + dy], true);
}

function zoomTo(x0, x1, y0, y1) {
  const [wide, high] = [Math.max(x1 - x0, 4), Math.max(y1 - y0, 256)];
  moveView([x0 - wide * 0.4, x1 + wide * 0.4], [y0 - high * 0.8, y1 + high * 0.8], false);
}

function select(buffer, isFar) {
  state.selected = buffer;
  drawSelected();
  for (const row of document.querySelectorAll("tr.one")) row.setAttribute("aria-selected", String(Number(row.dataset.buffer) === buffer));
  if (isFar && model.top && buffer >= 0) {
    const { usage } = model;
    zoomTo(usage.lower[buffer], usage.upper[buffer], model.top[buffer], model.top[buffer] + usage.size[buffer]);
  }
  draw(false);
  saveState();
}

function search(text) {
  state.query = text.trim();
  model.matches = null;
  model.found = [];
  const wanted = state.query.toLowerCase();
  const loaded = runs[scene.layouts[state.layout].run];
  if (wanted && loaded) {
    const { usage } = loaded;
    const inText = (usage.header.texts ?? []).map((one) => one.toLowerCase().includes(wanted));
    const inKey = scene.groupings.map(({ name, keys }) => (name === "size" ? [] : keys.map((key) => key.toLowerCase().includes(wanted))));
    model.matches = new Uint8Array(usage.count);
    let bytes = 0;
    for (let i = 0; i < usage.count; i += 1) {
      const fits = (usage.site && inText[usage.site[i] - 1]) || loaded.groups.some((groups, by) => inKey[by][groups[i]])
        || usage.names.get(i).toLowerCase().includes(wanted);
      if (!fits) continue;
      model.matches[i] = 1;
      model.found.push(i);
      bytes += usage.size[i];
    }
    $("found").textContent = `${countText(model.found.length)} found, ${bytesText(bytes)}`;
  } else $("found").textContent = "";
}

function next(direction) {
  const among = model.matches ? model.found : model.alive;
  if (among.length === 0) return;
  const place = among.indexOf(state.selected);
  const start = direction > 0 ? 0 : among.length - 1;
  select(among[place < 0 ? start : (place + direction + among.length) % among.length], true);
}

function isDark() {
  return state.theme ? state.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function applyTheme() {
  if (state.theme) document.documentElement.dataset.theme = state.theme;
  else delete document.documentElement.dataset.theme;
}

function toPeak() {
  const { time } = run().peak;
  const [from, to] = run().span;
  const around = Math.max(8, (to - from) / 20);
  state.at = null;
  moveView([time - around, time + around], fullView().y, false);
  if (model.usage) drawTable();
}

function clear() {
  $("search").value = "";
  search("");
  state.selected = -1;
  refresh();
}
