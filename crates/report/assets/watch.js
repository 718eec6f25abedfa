// Two charts over one stretch of time: amounts with marks and peaks, and faults per second.
const scene = JSON.parse(document.getElementById("scene").textContent);
const { time, resident, anonymous, file, shared, swapped, huge, minor, major } = scene.series;
const memory = document.getElementById("memory");
const faultsCanvas = document.getElementById("faults");
const tip = document.getElementById("tip");
const [LEFT, RIGHT, TOP, BOTTOM] = [72, 10, 8, 22];
const end = Math.max(time.at(-1) ?? 1, 1e-3);
const view = { from: 0, to: end, zero: true };
let pointer = null;
let dragged = null;

const LINES = [
  { name: "RSS", values: resident, colour: COLOURS[0], width: 2 },
  { name: "anonymous", values: anonymous, colour: COLOURS[1], width: 1.5 },
  { name: "file", values: file, colour: COLOURS[2], width: 1.5 },
  { name: "shared", values: shared, colour: COLOURS[3], width: 1.5 },
  { name: "swapped", values: swapped, colour: COLOURS[5], width: 1.5 },
  { name: "huge pages", values: huge, colour: COLOURS[4], width: 1.5 },
].filter(({ name, values }) => name === "RSS" || values.some((value) => value > 0));
const rates = (counts) => counts.map((count, at) => {
  const passed = time[at] - (time[at - 1] ?? 0);
  return at > 0 && passed > 0 ? Math.max(0, count - counts[at - 1]) / passed : 0;
});
const RATES = [
  { name: "minor faults a second", values: rates(minor), colour: COLOURS[0], width: 1.5 },
  { name: "major faults a second", values: rates(major), colour: COLOURS[5], width: 1.5 },
];
const actionColour = (action) => COLOURS[(action + 3) % COLOURS.length];
const cssColour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function secondsText(seconds) {
  if (seconds < 120) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  if (seconds < 7200) return `${(seconds / 60).toFixed(1)} min`;
  return seconds < 172800 ? `${(seconds / 3600).toFixed(1)} h` : `${(seconds / 86400).toFixed(1)} d`;
}

// The first place at or behind a moment.
function placeAt(moment) {
  let [low, high] = [0, time.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (time[middle] < moment) low = middle + 1;
    else high = middle;
  }
  return low;
}

function extent(lines, zero) {
  const [first, last] = [Math.max(0, placeAt(view.from) - 1), placeAt(view.to) + 1];
  let [low, high] = [Infinity, 1];
  for (const { values } of lines) {
    for (let at = first; at < Math.min(last, values.length); at += 1) {
      low = Math.min(low, values[at]);
      high = Math.max(high, values[at]);
    }
  }
  if (zero || !(low < high)) low = 0;
  const room = (high - low) * 0.06;
  return { low: zero ? 0 : Math.max(0, low - room), high: high + room };
}

function begun(canvas, lines, zero) {
  const box = canvas.getBoundingClientRect();
  const scale = devicePixelRatio || 1;
  canvas.width = Math.max(1, Math.round(box.width * scale));
  canvas.height = Math.max(1, Math.round(box.height * scale));
  const pen = canvas.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, box.width, box.height);
  pen.font = "12px system-ui, sans-serif";
  const { low, high } = extent(lines, zero);
  const [width, height] = [box.width - LEFT - RIGHT, box.height - TOP - BOTTOM];
  const x = (moment) => LEFT + ((moment - view.from) / (view.to - view.from)) * width;
  const y = (value) => TOP + height * (1 - (value - low) / (high - low));
  return { pen, x, y, low, high, width, height };
}

function drawAxes({ pen, x, y, low, high, width, height }, text, bases) {
  pen.strokeStyle = cssColour("--line");
  pen.fillStyle = cssColour("--quiet");
  pen.lineWidth = 1;
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  const amounts = ticks(low, high, Math.max(3, height / 60), bases);
  for (const value of amounts) {
    pen.beginPath();
    pen.moveTo(LEFT, Math.round(y(value)) + 0.5);
    pen.lineTo(LEFT + width, Math.round(y(value)) + 0.5);
    pen.stroke();
    pen.fillText(text(value, amounts[1] - amounts[0]), LEFT - 6, y(value));
  }
  pen.textAlign = "center";
  pen.textBaseline = "top";
  // Steps are whole numbers: counted in tenths of a second, which is as fine as it needs to be.
  for (const tenths of ticks(view.from * 10, view.to * 10, Math.max(2, width / 110), 10)) {
    pen.fillText(secondsText(tenths / 10), x(tenths / 10), TOP + height + 5);
  }
}

function drawLines({ pen, x, y, width, height }, lines) {
  pen.save();
  pen.beginPath();
  pen.rect(LEFT, TOP, width, height);
  pen.clip();
  const [first, last] = [Math.max(0, placeAt(view.from) - 1), Math.min(time.length, placeAt(view.to) + 1)];
  for (const { values, colour, width: thick } of lines) {
    pen.beginPath();
    for (let at = first; at < last; at += 1) pen.lineTo(x(time[at]), y(values[at]));
    pen.strokeStyle = colour;
    pen.lineWidth = thick;
    pen.stroke();
  }
  pen.restore();
}

function drawMarks({ pen, x, y, width, height }) {
  const shown = scene.marks.filter(([at]) => at >= view.from && at <= view.to);
  pen.save();
  pen.beginPath();
  pen.rect(LEFT, TOP, width, height);
  pen.clip();
  // Lines that would touch hide the curves.
  const isSparse = shown.length < width / 4;
  pen.lineWidth = 1;
  pen.textAlign = "left";
  pen.textBaseline = "top";
  let behind = LEFT;
  for (const [at, action] of isSparse ? shown : []) {
    pen.strokeStyle = actionColour(action);
    pen.globalAlpha = 0.55;
    pen.setLineDash([3, 3]);
    pen.beginPath();
    pen.moveTo(x(at), TOP);
    pen.lineTo(x(at), TOP + height);
    pen.stroke();
    pen.globalAlpha = 1;
    const name = scene.actions[action].name.slice(0, 24);
    if (x(at) > behind + 4) {
      pen.fillStyle = cssColour("--quiet");
      pen.fillText(name, x(at) + 3, TOP + 2);
      behind = x(at) + pen.measureText(name).width + 8;
    }
  }
  pen.setLineDash([]);
  scene.actions.forEach(({ peaks }, action) => {
    pen.fillStyle = actionColour(action);
    for (const [at, peak] of peaks) {
      if (at < view.from || at > view.to) continue;
      pen.beginPath();
      pen.arc(x(at), y(peak), 3, 0, 7);
      pen.fill();
    }
  });
  if (scene.trend) {
    const { from, to, level, slope } = scene.trend;
    pen.strokeStyle = cssColour("--warn");
    pen.lineWidth = 1.5;
    pen.setLineDash([7, 5]);
    pen.beginPath();
    pen.moveTo(x(from), y(level));
    pen.lineTo(x(to), y(level + slope * (to - from)));
    pen.stroke();
  }
  pen.restore();
}

function draw() {
  const peaks = scene.actions.flatMap((action) => action.peaks.filter(([at]) => at >= view.from && at <= view.to).map(([, peak]) => peak));

  const chart = begun(memory, [...LINES, ...(peaks.length > 0 ? [highest(peaks)] : [])], view.zero);
  drawAxes(chart, (value, step) => bytesText(value, step), 2);
  drawLines(chart, LINES);
  drawMarks(chart);
  const below = begun(faultsCanvas, RATES, true);
  drawAxes(below, countText, 10);
  drawLines(below, RATES);
  if (pointer !== null) for (const one of [chart, below]) drawPointer(one);
  if (dragged !== null) drawDragged(chart);
}

// Peaks between two samples are higher than anything on the lines: room is made for them.
function highest(peaks) {
  const most = peaks.reduce((most, peak) => Math.max(most, peak), 0);
  return { values: time.map(() => most) };
}

function drawPointer({ pen, x, height }) {
  pen.strokeStyle = cssColour("--accent");
  pen.beginPath();
  pen.moveTo(x(time[pointer]), TOP);
  pen.lineTo(x(time[pointer]), TOP + height);
  pen.stroke();
}

function drawDragged({ pen, x, height }) {
  pen.fillStyle = cssColour("--accent");
  pen.globalAlpha = 0.15;
  pen.fillRect(x(dragged.from), TOP, x(dragged.to) - x(dragged.from), height);
  pen.globalAlpha = 1;
}

function momentOf(event) {
  const box = event.currentTarget.getBoundingClientRect();
  const share = (event.clientX - box.left - LEFT) / Math.max(1, box.width - LEFT - RIGHT);
  return view.from + Math.min(1, Math.max(0, share)) * (view.to - view.from);
}

function point(event) {
  const moment = momentOf(event);
  if (dragged !== null) dragged.to = moment;
  pointer = time.length > 0 ? Math.min(time.length - 1, placeAt(moment)) : null;
  if (pointer !== null) {
    const amounts = LINES.map(({ name, values }) => `${name} ${bytesText(values[pointer])}`);
    const counts = RATES.map(({ name, values }) => `${countText(values[pointer])} ${name}`);
    tip.textContent = [secondsText(time[pointer]), ...amounts, ...counts].join("\n");
    tip.hidden = false;
    const box = memory.getBoundingClientRect();
    const left = event.clientX - box.left;
    tip.style.left = left > box.width / 2 ? "" : `${left + 14}px`;
    tip.style.right = left > box.width / 2 ? `${box.width - left + 14}px` : "";
    tip.style.top = "10px";
  }
  draw();
}

function show(from, to) {
  const length = Math.min(end, Math.max(end / 1e5, 0.01, to - from));
  view.from = Math.min(Math.max(0, from), end - length);
  view.to = view.from + length;
  draw();
}

function zoom(factor, around = (view.from + view.to) / 2) {
  show(around - (around - view.from) * factor, around + (view.to - around) * factor);
}

for (const canvas of [memory, faultsCanvas]) {
  canvas.addEventListener("pointermove", point);
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    dragged = { from: momentOf(event), to: momentOf(event) };
  });
  canvas.addEventListener("pointerup", () => {
    const { from, to } = dragged ?? { from: 0, to: 0 };
    dragged = null;
    if (Math.abs(to - from) > (view.to - view.from) / 100) show(Math.min(from, to), Math.max(from, to));
    else draw();
  });
  canvas.addEventListener("pointercancel", () => { dragged = null; draw(); });
  canvas.addEventListener("pointerleave", () => { pointer = null; tip.hidden = true; draw(); });
  canvas.addEventListener("dblclick", () => show(0, end));
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, momentOf(event));
  }, { passive: false });
}

const fromZero = document.getElementById("from-zero");
const ACTS = {
  "+": () => zoom(0.5), "=": () => zoom(0.5), "-": () => zoom(2), 0: () => show(0, end),
  ArrowLeft: () => show(view.from - (view.to - view.from) / 5, view.to - (view.to - view.from) / 5),
  ArrowRight: () => show(view.from + (view.to - view.from) / 5, view.to + (view.to - view.from) / 5),
  z: () => {
    view.zero = !view.zero;
    fromZero.setAttribute("aria-pressed", String(view.zero));
    draw();
  },
  d: () => {
    const root = document.documentElement;
    const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = isDark ? "light" : "dark";
    draw();
  },
};
for (const [id, key] of [["zoom-in", "+"], ["zoom-out", "-"], ["reset", "0"], ["from-zero", "z"], ["theme", "d"]]) {
  document.getElementById(id).addEventListener("click", ACTS[key]);
}
addEventListener("keydown", (event) => {
  const act = ACTS[event.key];
  if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  act();
});
addEventListener("resize", draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);

function legend(id, entries) {
  document.getElementById(id).replaceChildren(...entries.map(({ name, colour, kind }) => {
    const entry = document.createElement("span");
    const sign = document.createElement("i");
    sign.className = kind;
    if (kind === "line") sign.style.borderColor = colour;
    else sign.style.background = colour;
    entry.append(sign, name);
    return entry;
  }));
}
const line = ({ name, colour }) => ({ name, colour, kind: "line" });
legend("legend", [
  ...LINES.map(line),
  ...(scene.trend ? [{ name: "what is judged, its trend", colour: "currentColor", kind: "dashed" }] : []),
  ...scene.actions.map(({ name }, action) => ({ name: `peak of ${name}`, colour: actionColour(action), kind: "dot" })),
]);
legend("faults-legend", RATES.map(line));
draw();
document.documentElement.dataset.ready = "";
