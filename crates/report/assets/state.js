// What is shown, and its text in the address bar: a link restores the view.
const state = { layout: 0, x: null, y: null, by: 0, query: "", selected: -1, at: null, same: false, theme: null };

function stateText() {
  const parts = [`layout=${state.layout}`];
  if (state.x) parts.push(`x=${state.x.join(",")}`);
  if (state.y) parts.push(`y=${state.y.join(",")}`);
  if (scene.groupings[state.by]) parts.push(`by=${scene.groupings[state.by].name}`);
  if (state.query) parts.push(`q=${encodeURIComponent(state.query)}`);
  if (state.selected >= 0) parts.push(`buffer=${state.selected}`);
  if (state.at !== null) parts.push(`at=${state.at}`);
  if (state.same) parts.push("same=1");
  if (state.theme) parts.push(`theme=${state.theme}`);
  return `#${parts.join("&")}`;
}

function readState(text) {
  const given = new Map(text.replace(/^#/, "").split("&").filter(Boolean).map((part) => {
    const cut = part.indexOf("=");
    return [part.slice(0, cut), part.slice(cut + 1)];
  }));
  const range = (name) => {
    const ends = (given.get(name) ?? "").split(",").map(Number);
    return ends.length === 2 && ends.every(Number.isFinite) && ends[0] < ends[1] ? ends : null;
  };
  const whole = (name, most) => {
    const value = Number(given.get(name));
    return given.has(name) && Number.isInteger(value) && value >= 0 && value < most ? value : null;
  };
  state.layout = whole("layout", scene.layouts.length) ?? scene.first_layout;
  state.x = range("x");
  state.y = range("y");
  const by = scene.groupings.findIndex((grouping) => grouping.name === given.get("by"));
  state.by = by >= 0 ? by : scene.first_grouping;
  try {
    state.query = decodeURIComponent(given.get("q") ?? "");
  } catch {
    state.query = "";
  }
  state.selected = whole("buffer", run().buffers) ?? -1;
  const at = Number(given.get("at"));
  state.at = given.has("at") && Number.isInteger(at) ? at : null;
  state.same = given.get("same") === "1";
  state.theme = ["light", "dark"].includes(given.get("theme")) ? given.get("theme") : null;
}

let saving = 0;

function saveState() {
  clearTimeout(saving);
  saving = setTimeout(() => {
    // A page inside a frame or a strict viewer may not change its address; the view itself does not depend on it.
    try { history.replaceState(null, "", stateText()); } catch { /* the link button still works */ }
  }, 150);
}
