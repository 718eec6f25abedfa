// The memory map. Rust decided what lies together (see detail.rs); here every class is walked from its top, and
// whatever would be thinner than a spot is drawn as one.
const FAN = scene.fan;
const CROWDED = scene.crowded;
const LEFT = 64;
const BOTTOM = 22;
const map = document.getElementById("map");

// The nodes over the buffers of a layout, built when the layout is first drawn.
function buildTree(usage, detail, top) {
  const classes = [];
  let start = 0;
  for (const length of detail.classes) {
    const members = detail.order.subarray(start, start + length);
    start += length;
    const levels = [];
    let below = length;
    for (;;) {
      const count = Math.ceil(below / FAN);
      const level = {
        x0: new Float64Array(count).fill(Infinity), x1: new Float64Array(count).fill(-Infinity),
        y0: new Float64Array(count).fill(Infinity), y1: new Float64Array(count).fill(-Infinity),
        area: new Float64Array(count), bytes: new Float64Array(count), count: new Uint32Array(count),
      };
      const under = levels.at(-1);
      for (let i = 0; i < below; i += 1) {
        const node = (i / FAN) | 0;
        const buffer = members[i];
        const x0 = under ? under.x0[i] : usage.lower[buffer];
        const x1 = under ? under.x1[i] : usage.upper[buffer];
        const y0 = under ? under.y0[i] : top[buffer];
        const y1 = under ? under.y1[i] : top[buffer] + usage.size[buffer];
        if (x0 < level.x0[node]) level.x0[node] = x0;
        if (x1 > level.x1[node]) level.x1[node] = x1;
        if (y0 < level.y0[node]) level.y0[node] = y0;
        if (y1 > level.y1[node]) level.y1[node] = y1;
        level.area[node] += under ? under.area[i] : (x1 - x0) * (y1 - y0);
        level.bytes[node] += under ? under.bytes[i] : usage.size[buffer];
        level.count[node] += under ? under.count[i] : 1;
      }
      levels.push(level);
      if (count === 1) break;
      below = count;
    }
    classes.push({ members, levels });
  }
  return classes;
}

// One value per node from one per buffer: `combine` makes it of those below, from `start` up to `end`.
function valuesOfNodes(tree, values, combine) {
  return tree.map(({ members, levels }) => {
    let below = Uint8Array.from(members, (buffer) => values[buffer]);
    return levels.map((level) => {
      const here = new Uint8Array(level.count.length);
      for (let node = 0; node < here.length; node += 1) {
        here[node] = combine(below, node * FAN, Math.min((node + 1) * FAN, below.length));
      }
      below = here;
      return here;
    });
  });
}

const votes = new Uint8Array(256);

// The value that most have.
function mostCommon(values, start, end) {
  let winner = values[start];
  for (let i = start; i < end; i += 1) if (++votes[values[i]] > votes[winner]) winner = values[i];
  for (let i = start; i < end; i += 1) votes[values[i]] = 0;
  return winner;
}

function largest(values, start, end) {
  let most = 0;
  for (let i = start; i < end; i += 1) if (values[i] > most) most = values[i];
  return most;
}

// How coarse the map is: the least size of a spot and the least area of a buffer, in pixels, and the least share of
// its node that small buffers fill where they are drawn as one.
const FINE = { spot: 2, grain: 0.35, sparse: 0.15 };
const COARSE = { spot: 5, grain: 6, sparse: 0 };

// Calls `one(buffer)` or `several(class, level, node)` for everything in `view`, large things first.
function walk(tree, view, { spot, grain, sparse }, one, several) {
  const across = view.width / (view.x1 - view.x0);
  const up = view.height / (view.y1 - view.y0);
  tree.forEach(({ members, levels }, kind) => {
    const stack = [[levels.length - 1, 0]];
    while (stack.length > 0) {
      const [depth, node] = stack.pop();
      const level = levels[depth];
      if (level.x1[node] <= view.x0 || level.x0[node] >= view.x1 || level.y1[node] <= view.y0 || level.y0[node] >= view.y1) continue;
      const wide = ((level.x1[node] - level.x0[node]) * across) / spot;
      const high = ((level.y1[node] - level.y0[node]) * up) / spot;
      const filled = level.area[node] * across * up;
      const isDense = filled > wide * high * spot * spot * sparse;
      const isCrowd = depth === 0 && (wide * high < level.count[node] * CROWDED || (filled < level.count[node] * grain && isDense));
      if (wide < 1 || high < 1 || isCrowd) {
        if (level.count[node] === 1 && depth === 0) one(members[node * FAN]);
        else several(kind, depth, node);
      } else if (depth === 0) {
        const end = Math.min((node + 1) * FAN, members.length);
        for (let i = node * FAN; i < end; i += 1) if (isInView(members[i], view)) one(members[i]);
      } else {
        const end = Math.min((node + 1) * FAN, levels[depth - 1].count.length);
        for (let i = end - 1; i >= node * FAN; i -= 1) stack.push([depth - 1, i]);
      }
    }
  });
}

// Of the buffers under a node that reaches into the view, some may lie outside.
function isInView(buffer, view) {
  const { usage, top } = model;
  return usage.upper[buffer] > view.x0 && usage.lower[buffer] < view.x1
    && top[buffer] + usage.size[buffer] > view.y0 && top[buffer] < view.y1;
}

function prepareCanvas(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const { clientWidth: width, clientHeight: height } = canvas;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = "11px system-ui, 'DejaVu Sans', sans-serif";
  return { pen, width, height };
}

function mapView() {
  const full = fullView();
  const [x0, x1] = state.x ?? full.x;
  const [y0, y1] = state.y ?? full.y;
  return { x0, x1, y0, y1, width: Math.max(1, map.clientWidth - LEFT), height: Math.max(1, map.clientHeight - BOTTOM) };
}

function toScreen(view) {
  const across = view.width / (view.x1 - view.x0);
  const up = view.height / (view.y1 - view.y0);
  return {
    x: (time) => LEFT + (time - view.x0) * across,
    y: (address) => view.height - (address - view.y0) * up,
    time: (x) => view.x0 + (x - LEFT) / across,
    address: (y) => view.y0 + (view.height - y) / up,
  };
}

// Rectangles by colour, faded or not, so that each style is set once.
class Brush {
  constructor(pen, view) {
    this.pen = pen;
    this.screen = toScreen(view);
    this.view = view;
    this.batches = [];
    this.outlines = [];
  }

  add(colour, strength, x0, x1, y0, y1) {
    const { view, screen } = this;
    const left = Math.max(LEFT, screen.x(x0));
    const top = Math.max(0, screen.y(y1));
    const width = Math.max(Math.min(LEFT + view.width, screen.x(x1)) - left, 0.7);
    const height = Math.max(Math.min(view.height, screen.y(y0)) - top, 0.7);
    const key = colour * 32 + Math.max(1, Math.min(31, Math.round(strength * 31)));
    (this.batches[key] ??= []).push(left, top, width, height);
    if (width > 4 && height > 4) this.outlines.push(left, top, width, height);
  }

  paint() {
    const { pen, outlines } = this;
    this.batches.forEach((batch, key) => {
      pen.fillStyle = colourText(key >> 5);
      pen.globalAlpha = (key & 31) / 31;
      for (let i = 0; i < batch.length; i += 4) pen.fillRect(batch[i], batch[i + 1], batch[i + 2], batch[i + 3]);
    });
    pen.strokeStyle = cssColour("--ground");
    pen.globalAlpha = 0.6;
    pen.lineWidth = 1;
    pen.beginPath();
    for (let i = 0; i < outlines.length; i += 4) pen.rect(outlines[i] + 0.5, outlines[i + 1] + 0.5, outlines[i + 2] - 1, outlines[i + 3] - 1);
    pen.stroke();
    pen.globalAlpha = 1;
  }
}

function cssColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// The pieces of a buffer's rectangle: all of it, or what its gaps leave.
function pieces(usage, buffer, tell) {
  const y = model.top[buffer];
  const gaps = usage.gaps.get(buffer);
  let from = usage.lower[buffer];
  for (const gap of gaps ?? []) {
    tell(from, gap.from, y, y + usage.size[buffer]);
    if (gap.stays) tell(gap.from, gap.to, y + gap.stays[0], y + gap.stays[1]);
    from = gap.to;
  }
  tell(from, usage.upper[buffer], y, y + usage.size[buffer]);
}

function drawMap(isMoving) {
  const { pen, height } = prepareCanvas(map);
  const view = mapView();
  const brush = new Brush(pen, view);
  pen.save();
  pen.beginPath();
  pen.rect(LEFT, 0, view.width, view.height);
  pen.clip();
  const shown = model.tree ? drawDetail(brush, view, isMoving) : drawOverview(brush);
  brush.paint();
  drawLabels(pen, view, shown.labels);
  drawLimits(pen, view);
  drawSelection(pen, view);
  pen.restore();
  drawAxes(pen, view, height);
  tellShown(shown);
}

function drawDetail(brush, view, isMoving) {
  const { usage } = model;
  const shown = { alone: 0, merged: 0, bytes: 0, labels: [] };
  const searching = model.matches !== null;
  const across = view.width / (view.x1 - view.x0);
  const up = view.height / (view.y1 - view.y0);
  walk(model.tree, view, isMoving ? COARSE : FINE, (buffer) => {
    const strength = searching && !model.matches[buffer] ? 0.12 : 0.9;
    pieces(usage, buffer, (x0, x1, y0, y1) => brush.add(model.colours[buffer], strength, x0, x1, y0, y1));
    shown.alone += 1;
    const wide = (usage.upper[buffer] - usage.lower[buffer]) * across;
    if (wide > 56 && usage.size[buffer] * up > 13) shown.labels.push(buffer);
  }, (kind, depth, node) => {
    const level = model.tree[kind].levels[depth];
    const extent = (level.x1[node] - level.x0[node]) * (level.y1[node] - level.y0[node]);
    const density = extent > 0 ? Math.min(1, level.area[node] / extent) : 1;
    const found = searching ? model.foundCommon[kind][depth][node] : 1;
    const strength = found === 0 ? 0.1 * density : 0.9 * density;
    brush.add(model.coloursCommon[kind][depth][node], strength, level.x0[node], level.x1[node], level.y0[node], level.y1[node]);
    shown.merged += level.count[node];
    shown.bytes += level.bytes[node];
  });
  return shown;
}

// What Rust saw at the scale of the whole map, before the data is there or where it is not in the file.
function drawOverview(brush) {
  const shown = { alone: 0, merged: 0, bytes: 0, labels: [] };
  for (const [x0, length, y0, size, count, bytes, group] of model.layout.overview ?? []) {
    brush.add(model.groupColours[group], count > 1 ? 0.5 : 0.9, x0, x0 + length, y0, y0 + size);
    if (count > 1) {
      shown.merged += count;
      shown.bytes += bytes;
    } else shown.alone += 1;
  }
  return shown;
}

function drawLabels(pen, view, buffers) {
  const screen = toScreen(view);
  pen.textBaseline = "middle";
  for (const buffer of buffers.slice(0, 400)) {
    const { usage } = model;
    const left = Math.max(LEFT, screen.x(usage.lower[buffer]));
    const right = Math.min(LEFT + view.width, screen.x(usage.upper[buffer]));
    const top = Math.max(0, screen.y(model.top[buffer] + usage.size[buffer]));
    const bottom = Math.min(view.height, screen.y(model.top[buffer]));
    if (right - left < 56 || bottom - top < 13) continue;
    pen.save();
    pen.beginPath();
    pen.rect(left + 2, top, right - left - 4, bottom - top);
    pen.clip();
    pen.fillStyle = model.colours[buffer] === 0 ? "#fff" : "#000";
    pen.globalAlpha = model.matches && !model.matches[buffer] ? 0.25 : 1;
    // Set apart, so that a name that runs from right to left does not turn the size around.
    pen.fillText(`\u2068${labelOf(buffer)}\u2069 · ${bytesText(usage.size[buffer])}`, left + 4, (top + bottom) / 2);
    pen.restore();
  }
}

// The height of the layout, the floors of pools, the peak, the chosen moment and the ends of steps.
function drawLimits(pen, view) {
  const screen = toScreen(view);
  const across = (address, colour, dash) => {
    pen.strokeStyle = cssColour(colour);
    pen.setLineDash(dash);
    pen.beginPath();
    pen.moveTo(LEFT, Math.round(screen.y(address)) + 0.5);
    pen.lineTo(LEFT + view.width, Math.round(screen.y(address)) + 0.5);
    pen.stroke();
  };
  const upright = (time, colour, dash) => {
    pen.strokeStyle = cssColour(colour);
    pen.setLineDash(dash);
    pen.beginPath();
    pen.moveTo(Math.round(screen.x(time)) + 0.5, 0);
    pen.lineTo(Math.round(screen.x(time)) + 0.5, view.height);
    pen.stroke();
  };
  pen.lineWidth = 1;
  let floor = 0;
  for (const height of model.layout.heights) across(floor += height, "--ink", []);
  if (run().bound > 0 && model.layout.heights.length === 1) across(run().bound, "--warn", [6, 4]);
  const steps = run().steps.filter(([, at]) => view.x0 <= at && at <= view.x1);
  if (steps.length < view.width / 8) for (const [, at] of steps) upright(at, "--line", [2, 3]);
  upright(chosenMoment(), "--accent", [4, 3]);
  pen.setLineDash([]);
}

function drawSelection(pen, view) {
  if (state.selected < 0 || !model.tree) return;
  const screen = toScreen(view);
  pen.strokeStyle = cssColour("--ink");
  pen.lineWidth = 2;
  pieces(model.usage, state.selected, (x0, x1, y0, y1) => {
    pen.strokeRect(screen.x(x0), screen.y(y1), Math.max(2, screen.x(x1) - screen.x(x0)), Math.max(2, screen.y(y0) - screen.y(y1)));
  });
}

function drawAxes(pen, view, height) {
  drawAddresses(pen, view, view.height / 48);
  drawTimes(pen, view, height);
}

function drawAddresses(pen, view, wanted) {
  const screen = toScreen(view);
  pen.fillStyle = cssColour("--quiet");
  pen.textBaseline = "middle";
  pen.textAlign = "right";
  const found = ticks(view.y0, view.y1, wanted, 2);
  for (const at of found) {
    pen.fillText(bytesText(at, found[1] - found[0]), LEFT - 6, Math.min(Math.max(screen.y(at), 7), view.height - 6));
  }
  pen.textAlign = "left";
}

function drawTimes(pen, view, height) {
  const screen = toScreen(view);
  pen.fillStyle = cssColour("--quiet");
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  for (const at of ticks(view.x0, view.x1, view.width / 90, 10)) {
    const text = countText(at);
    const half = pen.measureText(text).width / 2 + 2;
    pen.fillText(text, Math.min(Math.max(screen.x(at), LEFT + half), LEFT + view.width - half), height - BOTTOM / 2);
  }
  pen.textAlign = "right";
  pen.fillText("event", LEFT - 6, height - BOTTOM / 2);
  pen.textAlign = "left";
}

// What lies at a place of the map: a buffer, a node that stands for several, or nothing.
function hit(x, y) {
  const view = mapView();
  if (x < LEFT || y > view.height || !model.tree) return null;
  const screen = toScreen(view);
  const [time, address] = [screen.time(x), screen.address(y)];
  let found = null;
  const slack = [(1.5 * (view.x1 - view.x0)) / view.width, (1.5 * (view.y1 - view.y0)) / view.height];
  walk(model.tree, view, FINE, (buffer) => {
    pieces(model.usage, buffer, (x0, x1, y0, y1) => {
      if (x0 <= time && time < x1 && y0 <= address && address < y1) found = { buffer };
    });
  }, (kind, depth, node) => {
    if (found?.buffer !== undefined) return;
    const level = model.tree[kind].levels[depth];
    if (level.x0[node] - slack[0] <= time && time < level.x1[node] + slack[0]
      && level.y0[node] - slack[1] <= address && address < level.y1[node] + slack[1]) {
      found = { count: level.count[node], bytes: level.bytes[node], node: [level.x0[node], level.x1[node], level.y0[node], level.y1[node]] };
    }
  });
  return found;
}
