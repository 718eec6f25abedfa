// Inputs that the tests make themselves: names that want to be more than names, a recorded run with labels and
// addresses, and a million buffers.
import { chance, report, write } from "./support.mjs";

export const HOSTILE = [
  "</script><script>alert(1)</script>",
  "{{data}}",
  "\"quoted\" and 'single'",
  "<img src=x onerror=alert(2)>",
  "Привет, 世界 🌊",
  "\u202Eright to left",
  "&lt;b&gt; &amp; &#x27;",
  "a\\u003c\\n\\",
  "javascript:alert(3)",
  "x".repeat(5000),
];

export function hostile() {
  const quoted = (name) => `"${name.replaceAll("\"", "\"\"")}"`;
  const lines = HOSTILE.map((name, place) => `${quoted(name)},${place},${place + 12},${(place + 1) * 4096}`);
  return report("hostile", write("hostile <b>{{script}} &amp;.csv", `id,lower,upper,size\n${lines.join("\n")}\n`));
}

// Two steps of a small model as an allocator recorded them: weights stay, activations go in reverse order.
export function recorded() {
  const lines = ["event,id,bytes,stream,time_ns,category,site,address"];
  const base = 0x7f0000000000;
  let clock = 0;
  let top = base;
  const line = (event, id, bytes, category, site, at) => {
    clock += 1500;
    lines.push([event, id, bytes, event === "step" ? "" : 0, clock, category, site, at].join(","));
  };
  const layers = Array.from({ length: 12 }, (_, layer) => ({ layer, bytes: 65536 * (layer + 1) }));
  line("reserve", "", 1 << 25, "", "", base);
  for (const { layer, bytes } of layers) {
    line("alloc", `layer${layer}.weight`, bytes, "weights", "model.py:12 __init__; train.py:8 main", top);
    top += bytes;
  }
  for (const step of [1, 2]) {
    const floor = top;
    for (const { layer, bytes } of layers) {
      line("alloc", `layer${layer}.out.${step}`, bytes * 2, "activations", `model.py:${20 + layer} forward; train.py:30 step`, top);
      top += bytes * 2;
    }
    for (const { layer, bytes } of layers.toReversed()) {
      line("alloc", `layer${layer}.grad.${step}`, bytes, "gradients", "optimizer.py:44 backward; train.py:31 step", top);
      line("free", `layer${layer}.grad.${step}`, "", "", "", "");
      line("free", `layer${layer}.out.${step}`, "", "", "", "");
    }
    top = floor;
    line("step", step, "", "", "", "");
  }
  return report("recorded", write("recorded.csv", `${lines.join("\n")}\n`));
}

export const MILLION = 1_000_000;

// A new buffer at every event. Most live for a few events and some for very long; most are small and some are 64 MiB.
export function million() {
  const next = chance(20);
  const lines = ["id,lower,upper,size"];
  for (let place = 0; place < MILLION; place += 1) {
    const length = Math.min(200_000, Math.floor(4 / next() ** 1.2));
    const size = 512 * Math.floor(2 ** (17 * next() ** 2));
    lines.push(`block${place % 48}.op${place},${place},${place + length},${size}`);
  }
  const path = write("million.csv", `${lines.join("\n")}\n`);
  return { input: path, ...report("million", path, "--work", "1") };
}
