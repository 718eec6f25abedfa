// Mouse, touch, keys and buttons.
const actions = {
  "zoom-in": () => zoom(1.6),
  "zoom-out": () => zoom(1 / 1.6),
  reset: () => { state.at = null; moveView(fullView().x, fullView().y, false); refresh(); },
  "to-peak": toPeak,
  "same-scale": () => { state.same = !state.same; state.y = null; refresh(); },
  theme: () => { state.theme = isDark() ? "light" : "dark"; applyTheme(); refresh(); },
  link: copyLink,
  "help-button": () => {
    $("help").hidden = !$("help").hidden;
    $("help-button").setAttribute("aria-expanded", String(!$("help").hidden));
  },
};

async function copyLink() {
  const link = location.href.split("#")[0] + stateText();
  try {
    await navigator.clipboard.writeText(link);
    $("link").textContent = "copied";
  } catch {
    // Without a clipboard the address bar has the link.
    location.hash = stateText();
    $("link").textContent = "in the address bar";
  }
  setTimeout(() => { $("link").textContent = "link"; }, 1500);
}

function wire() {
  for (const [id, act] of Object.entries(actions)) $(id).addEventListener("click", act);
  $("grouping").addEventListener("change", (event) => { state.by = Number(event.target.value); refresh(); });
  let typing = 0;
  $("search").addEventListener("input", (event) => {
    clearTimeout(typing);
    typing = setTimeout(() => { search(event.target.value); refresh(); }, 120);
  });
  $("search").addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      clearTimeout(typing);
      if (event.target.value.trim() !== state.query) search(event.target.value);
      refresh();
      next(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape") {
      clear();
      map.focus();
    }
  });
  addEventListener("keydown", onKey);
  addEventListener("resize", () => draw(false));
  addEventListener("hashchange", () => restore(location.hash));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw(false));
  wireMap();
  curvesCanvas.addEventListener("click", (event) => chooseMoment(Math.floor(toScreen(mapView()).time(event.offsetX))));
  curvesCanvas.addEventListener("wheel", onWheel, { passive: false });
}

function chooseMoment(time) {
  const [from, to] = run().span;
  state.at = Math.min(Math.max(time, from), to - 1);
  if (state.at === run().peak.time) state.at = null;
  refresh();
}

function onKey(event) {
  if (event.target.matches("input, select") || event.ctrlKey || event.metaKey || event.altKey) return;
  const keys = {
    ArrowLeft: () => pan(-0.15, 0), ArrowRight: () => pan(0.15, 0), ArrowUp: () => pan(0, 0.15), ArrowDown: () => pan(0, -0.15),
    "+": () => zoom(1.6), "=": () => zoom(1.6), "-": () => zoom(1 / 1.6),
    t: () => zoom(1.6, { axes: "time" }), T: () => zoom(1 / 1.6, { axes: "time" }),
    a: () => zoom(1.6, { axes: "addresses" }), A: () => zoom(1 / 1.6, { axes: "addresses" }),
    0: actions.reset, Home: actions.reset, p: toPeak, s: actions["same-scale"], d: actions.theme, l: copyLink,
    "?": actions["help-button"], "/": () => { $("search").focus(); $("search").select(); },
    b: () => chooseLayout(state.layout + 1), B: () => chooseLayout(state.layout - 1),
    g: () => { state.by = (state.by + 1) % scene.groupings.length; refresh(); },
    n: () => next(1), N: () => next(-1), Escape: () => { if ($("help").hidden) clear(); else actions["help-button"](); },
  };
  const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
  let act = keys[event.key];
  if (step && event.target.matches("[role=radio]")) act = () => chooseLayout(state.layout + step);
  if (step && event.target === curvesCanvas) act = () => chooseMoment(chosenMoment() + step);
  if (!act) return;
  event.preventDefault();
  act();
}

function onWheel(event) {
  const view = mapView();
  const amount = event.deltaY || event.deltaX;
  const axes = event.ctrlKey ? "both" : event.shiftKey ? "addresses" : "time";
  // Where everything is shown already, the wheel scrolls the page on.
  if (amount > 0 && axes === "time" && !state.x) return;
  event.preventDefault();
  const time = Math.min(Math.max((event.offsetX - LEFT) / view.width, 0), 1);
  const address = Math.min(Math.max(1 - event.offsetY / view.height, 0), 1);
  zoom(Math.exp(-Math.sign(amount) * Math.min(Math.abs(amount), 100) / 400), { time, address, axes });
}

// One pointer moves, with Shift it draws a rectangle to zoom to; two pinch.
function wireMap() {
  const pointers = new Map();
  let start = null;
  let box = null;
  const place = (event) => {
    const { left, top } = map.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  };
  map.addEventListener("pointerdown", (event) => {
    map.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, place(event));
    start = { ...place(event), view: mapView(), hasMoved: false };
    box = event.shiftKey ? place(event) : null;
  });
  map.addEventListener("pointermove", (event) => {
    const at = place(event);
    if (!pointers.has(event.pointerId)) return void showTip(at);
    $("tip").hidden = true;
    const before = pointers.get(event.pointerId);
    pointers.set(event.pointerId, at);
    if (pointers.size === 2) {
      pinch(pointers, event.pointerId, before);
      start = { hasMoved: true };
      return;
    }
    // The finger that stays after a pinch moves on from where it is.
    if (!start.view) start = { ...at, view: mapView(), hasMoved: true };
    if (Math.hypot(at.x - start.x, at.y - start.y) > 3) start.hasMoved = true;
    if (!start.hasMoved) return;
    if (box) return void drawBox(box, at);
    const { view } = start;
    const dx = ((at.x - start.x) / view.width) * (view.x1 - view.x0);
    const dy = ((at.y - start.y) / view.height) * (view.y1 - view.y0);
    moveView([view.x0 - dx, view.x1 - dx], [view.y0 + dy, view.y1 + dy], true);
  });
  const end = (event) => {
    if (!pointers.delete(event.pointerId) || !start || event.type === "pointercancel") return;
    const at = place(event);
    if (box && start.hasMoved) {
      const screen = toScreen(mapView());
      const times = [box.x, at.x].map(screen.time).sort((a, b) => a - b);
      const addresses = [box.y, at.y].map(screen.address).sort((a, b) => a - b);
      moveView(times, addresses, false);
    } else if (!start.hasMoved && pointers.size === 0) {
      const found = hit(at.x, at.y);
      if (found?.node) zoomTo(...found.node);
      else select(found?.buffer ?? -1, false);
    }
    box = null;
  };
  map.addEventListener("pointerup", end);
  map.addEventListener("pointercancel", end);
  map.addEventListener("pointerleave", () => { $("tip").hidden = true; });
  map.addEventListener("dblclick", (event) => {
    const found = hit(event.offsetX, event.offsetY);
    if (found?.buffer !== undefined) select(found.buffer, true);
  });
  map.addEventListener("wheel", onWheel, { passive: false });
}

function pinch(pointers, moved, before) {
  const [other] = [...pointers].filter(([id]) => id !== moved).map(([, at]) => at);
  const now = pointers.get(moved);
  const apart = (at) => Math.max(1, Math.hypot(at.x - other.x, at.y - other.y));
  const view = mapView();
  zoom(apart(now) / apart(before), { time: ((now.x + other.x) / 2 - LEFT) / view.width, address: 1 - (now.y + other.y) / 2 / view.height });
}

function drawBox(from, to) {
  drawMap(true);
  const pen = map.getContext("2d");
  pen.strokeStyle = cssColour("--accent");
  pen.lineWidth = 1.5;
  pen.strokeRect(from.x, from.y, to.x - from.x, to.y - from.y);
}

function showTip({ x, y }) {
  const found = hit(x, y);
  const tip = $("tip");
  tip.hidden = !found;
  if (!found) return;
  const { usage } = model;
  tip.textContent = found.node
    ? `+${countText(found.count)} smaller, ${bytesText(found.bytes)}\nclick to look closer`
    : [`${longLabel(found.buffer)}`, bytesText(usage.size[found.buffer]),
      `events ${countText(usage.lower[found.buffer])} to ${countText(usage.upper[found.buffer])}`,
      keyText(model.groupOf[found.buffer])].join("\n");
  const { clientWidth, clientHeight } = map;
  tip.style.left = x > clientWidth / 2 ? "auto" : `${x + 14}px`;
  tip.style.right = x > clientWidth / 2 ? `${clientWidth - x + 14}px` : "auto";
  tip.style.top = y > clientHeight / 2 ? "auto" : `${y + 14}px`;
  tip.style.bottom = y > clientHeight / 2 ? `${clientHeight - y + 14}px` : "auto";
}

function restore(text) {
  state.layout = scene.first_layout;
  readState(text);
  applyTheme();
  $("search").value = state.query;
  search(state.query);
  refresh();
}

// The data comes last in the file: by then the map has been drawn from what the scene holds.
async function lowtideReady() {
  try {
    const usages = [...document.querySelectorAll("script[type='application/x-lowtide-usage']")];
    const views = [...document.querySelectorAll("script[type='application/x-lowtide-view']")];
    for (let i = 0; i < usages.length; i += 1) {
      const [data, view] = await Promise.all([inflated(usages[i]), inflated(views[i])]);
      const usage = readUsage(data);
      const column = new Column(view);
      const groups = scene.groupings.map(() => Uint32Array.from(column.numbers(usage.count)));
      const details = scene.layouts.filter((layout) => layout.run === i && layout.detail !== null).map(() => {
        const classes = [...column.numbers(column.number())];
        const order = Uint32Array.from(column.differences(classes.reduce((sum, length) => sum + length, 0)));
        return { classes, order };
      });
      runs[i] = { usage, groups, details };
    }
    restore(location.hash);
    performance.mark("lowtide-ready");
    document.documentElement.dataset.ready = "true";
  } catch (error) {
    $("shown").textContent = `The data of this page cannot be read: ${error.message}`;
    throw error;
  }
}

window.lowtideReady = lowtideReady;
wire();
restore(location.hash);
drawMap(false);
drawCurves();
performance.mark("lowtide-first-paint");
