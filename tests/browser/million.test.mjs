// A million buffers: the page is small, paints at once, follows the hand, and can be looked into down to the last one.
import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import { before, test } from "node:test";
import { MILLION, million } from "./inputs.mjs";
import { address, bytesText, inFolder, lowtide, middle, open, picture, press, search, settle, shown, text, view } from "./support.mjs";

let made;
let placed;

before(() => {
  made = million();
});

// The buffers with their offsets, from the page read back.
function placements() {
  placed ??= (() => {
    const plan = inFolder("million-plan.csv");
    const numbers = lowtide("plan", made.path, "--work", "1", "-o", plan);
    const [header, ...lines] = readFileSync(plan, "utf8").trimEnd().split("\n");
    const places = ["id", "lower", "upper", "size", "offset"].map((name) => header.split(",").indexOf(name));
    const buffers = lines.map((line) => {
      const cells = line.split(",");
      const [id, lower, upper, size, offset] = places.map((place) => cells[place]);
      return { id, lower: Number(lower), upper: Number(upper), size: Number(size), offset: Number(offset) };
    });
    return { numbers, buffers };
  })();
  return placed;
}

test("the file of a million buffers is at most 20 MB", (test) => {
  const { size } = statSync(made.path);
  test.diagnostic(`${(size / 1e6).toFixed(1)} MB`);
  assert.ok(size <= 20e6, String(size));
});

test("the page of a million buffers paints within a second and then gets its data", async (t) => {
  // A machine with other work may be late once, not three times.
  const times = [];
  const best = (name) => Math.min(...times.map((time) => time[name]));
  while (times.length < 3 && !(best("content") < 1000 && best("drawn") < 1000)) {
    const page = await open(t, made);
    times.push(await page.evaluate(() => {
      const at = (name) => performance.getEntriesByName(name)[0].startTime;
      return { content: at("first-contentful-paint"), drawn: at("lowtide-first-paint"), ready: at("lowtide-ready") };
    }));
  }
  t.diagnostic(`first content ${best("content").toFixed()} ms, map ${best("drawn").toFixed()} ms, data ${best("ready").toFixed()} ms`);
  assert.ok(best("content") < 1000 && best("drawn") < 1000, JSON.stringify(times));
});

test("the page of a million buffers is read back as the problem it was made of", () => {
  const { numbers } = placements();
  assert.equal(numbers.peak, made.numbers.peak);
  assert.equal(numbers.buffers, MILLION);
});

test("all of a million buffers are on the map, alone or counted", async (t) => {
  const page = await open(t, made, { isKept: true });
  const { alone, merged, words } = await shown(page);
  assert.equal(alone + merged, MILLION, words);
  assert.ok(alone > 1000, words);
  assert.ok((await picture(page)).colours > 16);
  const { alive, live_peak: peak } = made.numbers;
  const buffers = alive.reduce((sum, one) => sum + one.buffers, 0);
  assert.ok((await text(page, "#moment")).endsWith(`: ${bytesText(peak)} in ${buffers} buffers`));
});

test("the wheel redraws a million buffers at once", async (t) => {
  const page = await open(t, made, { isKept: true });
  await page.evaluate(() => {
    window.redraws = [];
    addEventListener("wheel", () => {
      const start = performance.now();
      requestAnimationFrame(() => requestAnimationFrame(() => window.redraws.push(performance.now() - start)));
    });
  });
  const { x, y } = await middle(page, "#map");
  await page.mouse.move(x, y);
  for (let turn = 1; turn <= 15; turn += 1) {
    await page.mouse.wheel(0, -60);
    await page.waitForFunction((turn) => window.redraws.length === turn, turn);
  }
  await settle(page);
  const times = (await page.evaluate(() => window.redraws)).sort((a, b) => a - b);
  t.diagnostic(`redraw ${times[7].toFixed()} ms in the middle, ${times.at(-1).toFixed()} ms at most`);
  assert.ok(times[7] < 250, times.join(" "));
});

test("zooming in ends where every buffer is drawn alone, and the count is right there", async (t) => {
  const page = await open(t, made, { isKept: true });
  const small = placements().buffers.find(({ lower, size }) => lower > MILLION / 2 && size === 512);
  const { place } = await view(page);
  const { x, y } = place(small.lower, small.offset);
  await page.mouse.move(x, y);
  await page.keyboard.down("Control");
  for (let turn = 0; turn < 20 && (await shown(page)).merged > 0; turn += 1) {
    for (let click = 0; click < 4; click += 1) await page.mouse.wheel(0, -100);
    await settle(page);
  }
  await page.keyboard.up("Control");
  const { alone, merged, words } = await shown(page);
  assert.equal(merged, 0, words);
  const { x: [from, to], y: [low, high] } = await view(page);
  t.diagnostic(`${(to - from).toFixed()} events by ${bytesText(Math.round(high - low))}: ${words}`);
  const isSeen = ({ lower, upper, size, offset }) => lower < to && upper > from && offset < high && offset + size > low;
  assert.equal(alone, placements().buffers.filter(isSeen).length);
});

test("one of a million buffers is found by its name, zoomed to, and hit by the pointer", async (t) => {
  const page = await open(t, made, { isKept: true });
  for (const place of [3, 424_242, 999_999]) {
    const { id, lower, upper, size, offset } = placements().buffers[place];
    await search(page, `.op${place}`);
    await press(page, "Enter");
    assert.equal(await text(page, "#selected b"), id);
    const found = placements().buffers.filter((buffer) => buffer.id.includes(`.op${place}`));
    const bytes = found.reduce((sum, buffer) => sum + buffer.size, 0);
    assert.equal(await text(page, "#found"), `${found.length.toLocaleString("en-US")} found, ${bytesText(bytes)}`);
    const { x, y, place: at } = await view(page);
    assert.ok(x[0] <= lower && upper <= x[1] && y[0] <= offset && offset + size <= y[1], "it is in view");
    const middle = at((lower + upper) / 2, offset + size / 2);
    await page.mouse.click(middle.x, middle.y);
    await settle(page);
    assert.equal((await address(page)).buffer, String(place), "a click in its middle hits it");
    await press(page, "Escape");
  }
});
