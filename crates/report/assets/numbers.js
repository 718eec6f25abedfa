// Numbers as people read them; the same words as the command line uses.
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

// `17 B`, `1.5 KiB`; with as many decimals as tell amounts apart that differ by `step`.
function bytesText(bytes, step) {
  let unit = 0;
  let amount = bytes;
  while (amount >= 1024 && unit < UNITS.length - 1) {
    amount /= 1024;
    unit += 1;
  }
  const finest = step > 0 ? Math.ceil(-Math.log2(step / 1024 ** unit)) : 1;
  return unit === 0 ? `${bytes} B` : `${amount.toFixed(Math.min(Math.max(finest, 1), 3))} ${UNITS[unit]}`;
}

function countText(count) {
  return Math.round(count).toLocaleString("en-US");
}

function buffersText(count) {
  return `${countText(count)} ${count === 1 ? "buffer" : "buffers"}`;
}

// As much of a name as a line or two hold; the panel of the selected buffer has all of it.
function shortText(text) {
  return text.length <= 160 ? text : `${text.slice(0, 159).replace(/[\ud800-\udbff]$/, "")}…`;
}

function durationText(nanoseconds) {
  if (nanoseconds >= 1e9) return `${(nanoseconds / 1e9).toFixed(2)} s`;
  if (nanoseconds >= 1e6) return `${(nanoseconds / 1e6).toFixed(1)} ms`;
  return `${(nanoseconds / 1e3).toFixed(1)} µs`;
}

// Steps of an axis from `low` to `high`: about `wanted` of them, at round numbers.
function ticks(low, high, wanted, bases) {
  const rough = (high - low) / Math.max(1, wanted);
  if (!(rough > 0)) return [];
  const scale = bases === 2 ? 2 ** Math.floor(Math.log2(rough)) : 10 ** Math.floor(Math.log10(rough));
  const factors = bases === 2 ? [1, 2] : [1, 2, 5, 10];
  let step = scale * factors.find((factor) => scale * factor >= rough);
  step = Math.max(step, 1);
  const found = [];
  const first = Math.ceil(low / step);
  const count = Math.min(Math.floor(high / step) - first + 1, 200);
  for (let i = 0; i < count; i += 1) found.push((first + i) * step);
  return found;
}
