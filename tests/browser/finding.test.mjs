// Finding buffers: by searching, by pointing and clicking, and among what is drawn together.
import assert from "node:assert/strict";
import { test } from "node:test";
import { recorded } from "./inputs.mjs";
import {
  address, bytesText, click, inFolder, inRepository, lowtide, mixtral, open, picture, press, resnet, rows, search, shown, text, view,
} from "./support.mjs";

test("searching counts what the input has, in names, lines and categories", async (t) => {
  recorded();
  const allocated = rows(inFolder("recorded.csv")).filter(({ event }) => event === "alloc");
  const page = await open(t, recorded());
  for (const words of ["grad", "model.py:2", "WEIGHTS", "layer1", "train.py:30", "nothing like it"]) {
    await press(page, "Escape");
    await search(page, words);
    const fits = ({ id, category, site }) => [id, category, site].some((part) => part.toLowerCase().includes(words.toLowerCase()));
    const found = allocated.filter(fits);
    const bytes = found.reduce((sum, { bytes }) => sum + Number(bytes), 0);
    assert.equal(await text(page, "#found"), `${found.length} found, ${bytesText(bytes)}`, words);
  }
});

test("what is found stands out on the map, and Escape lets go of it", async (t) => {
  const page = await open(t, resnet());
  const before = await picture(page);
  await search(page, "7");
  await press(page);
  const found = rows(inRepository("examples/resnet50.csv")).filter(({ id }) => id.includes("7"));
  assert.match(await text(page, "#found"), new RegExp(`^${found.length} found`));
  assert.notEqual((await picture(page)).digest, before.digest);
  assert.equal((await address(page)).q, "7");
  await press(page, "Escape");
  assert.equal(await page.locator("#search").inputValue(), "");
  assert.equal(await text(page, "#found"), "");
  assert.deepEqual(await picture(page), before);
  assert.equal(await page.evaluate(() => document.activeElement.id), "map");
});

test("Enter selects what is found one by one and zooms to it, with Shift backwards", async (t) => {
  const page = await open(t, recorded());
  const name = () => text(page, "#selected b");
  await search(page, "layer1.");
  await press(page, "Enter");
  assert.equal(await name(), "layer1.weight");
  const first = await address(page);
  assert.ok(first.x || first.y);
  await press(page, "Enter");
  assert.equal(await name(), "layer1.out.1");
  assert.notDeepEqual((await address(page)).y, first.y);
  await press(page, "Shift+Enter");
  assert.equal(await name(), "layer1.weight");
  assert.deepEqual((await address(page)).y, first.y);
  await press(page, "Shift+Enter");
  assert.equal(await name(), "layer1.grad.2", "around the end");
});

test("`n` and `N` go through what was found, and without a search through what is alive", async (t) => {
  const page = await open(t, recorded());
  const name = () => text(page, "#selected b");
  await press(page, "n");
  const largest = await name();
  assert.equal(largest, "layer11.out.1", "the largest at the peak comes first");
  await press(page, "n");
  assert.notEqual(await name(), largest);
  await press(page, "N");
  assert.equal(await name(), largest);
});

test("a click on a rectangle selects its buffer and says all about it", async (t) => {
  const input = inRepository("examples/resnet50.csv");
  const plan = inFolder("resnet-plan.csv");
  lowtide("plan", input, "-o", plan);
  const page = await open(t, resnet());
  const { place } = await view(page);
  const large = rows(plan).filter(({ lower, upper, size }) => Number(upper) - Number(lower) > 1 && Number(size) > 1 << 20);
  assert.ok(large.length > 5);
  for (const { id, lower, upper, size, offset } of large.slice(0, 8)) {
    const { x, y } = place((Number(lower) + Number(upper)) / 2, Number(offset) + Number(size) / 2);
    await page.mouse.click(x, y);
    await press(page);
    assert.equal(await text(page, "#selected b"), id);
    const facts = await text(page, "#selected");
    const count = (number) => Number(number).toLocaleString("en-US");
    assert.ok(facts.includes(`events ${count(lower)} to ${count(upper)}`), facts);
    assert.ok(facts.includes(`(${count(size)} bytes)`), facts);
    assert.ok(facts.includes(`offset ${count(offset)}`), facts);
  }
  await page.mouse.click(place(0, 0).x - 40, place(0, 0).y - 40);
  await press(page);
  assert.ok(await page.locator("#selected").isHidden(), "a click beside the map lets go");
});

test("the selection names line and frames of what was recorded", async (t) => {
  const page = await open(t, recorded());
  await search(page, "layer3.out.2");
  await press(page, "Enter");
  assert.match(await text(page, "#selected"), /activations · model · 512\.0 KiB \(524,288 bytes\)/);
  assert.deepEqual(await page.locator("#selected li").allTextContents(), ["model.py:23 forward", "train.py:30 step"]);
});

test("pointing at a rectangle tells its name, size and life, and pointing away hides that", async (t) => {
  const page = await open(t, recorded());
  await search(page, "layer9.weight");
  await press(page, "Enter", "Escape");
  await search(page, "layer9.weight");
  await press(page, "Enter");
  const { x, y } = await view(page);
  const { place } = await view(page);
  const at = place((x[0] + x[1]) / 2, (y[0] + y[1]) / 2);
  await page.mouse.move(at.x, at.y);
  const tip = page.locator("#tip");
  assert.match(await tip.textContent(), /^layer9\.weight · model\.py:12 __init__\n640\.0 KiB\nevents .*\nweights$/);
  assert.ok(await tip.isVisible());
  await page.mouse.move(5, 5);
  assert.ok(await tip.isHidden());
});

test("the tip stays inside the window wherever the pointer is", async (t) => {
  const page = await open(t, mixtral(), { viewport: { width: 400, height: 800 } });
  const { area } = await view(page);
  for (const [right, down] of [[0.02, 0.5], [0.98, 0.5], [0.5, 0.98], [0.98, 0.98], [0.5, 0.6]]) {
    await page.mouse.move(area.x + area.width * right, area.y + area.height * down);
    const box = await page.locator("#tip").boundingBox();
    if (!box) continue;
    assert.ok(box.x >= 0 && box.x + box.width <= 400, JSON.stringify(box));
    assert.ok(box.y >= area.y && box.y + box.height <= area.y + area.height + 22, JSON.stringify(box));
  }
});

test("things too small to be drawn alone say how many they are, and a click looks closer", async (t) => {
  const page = await open(t, mixtral());
  const { area } = await view(page);
  const before = await shown(page);
  assert.ok(before.merged > 0);
  const place = await firstMerged(page, area);
  assert.match(await text(page, "#tip"), /^\+[\d,]+ smaller, [\d.]+ \w+\nclick to look closer$/);
  await page.mouse.click(place.x, place.y);
  await press(page);
  const after = await address(page);
  assert.ok(after.x || after.y);
  assert.ok((await shown(page)).merged < before.merged);
  await press(page, "0");
  assert.deepEqual(await shown(page), before);
});

// Moves the pointer over the map until its tip speaks of several.
async function firstMerged(page, { x, y, width, height }) {
  await page.evaluate(() => {
    window.merged = null;
    addEventListener("pointermove", ({ clientX, clientY }) => {
      const tip = document.querySelector("#tip");
      if (!tip.hidden && tip.textContent.startsWith("+")) window.merged ??= { x: clientX, y: clientY };
    });
  });
  for (let right = 1; right < 12; right += 1) {
    const across = x + (width * right) / 12;
    await page.mouse.move(across, y + 1);
    await page.mouse.move(across, y + height - 1, { steps: 80 });
    const merged = await page.evaluate(() => window.merged);
    if (!merged) continue;
    await page.mouse.move(merged.x, merged.y);
    return merged;
  }
  return assert.fail("nothing is drawn together");
}

test("a double click zooms to a buffer", async (t) => {
  const page = await open(t, mixtral());
  const { place } = await view(page);
  const { x, y } = place(5200, 1e9);
  await page.mouse.dblclick(x, y);
  await press(page);
  assert.ok((await address(page)).y);
  assert.ok(await page.locator("#selected").isVisible());
  await click(page, "#reset");
  assert.equal((await address(page)).y, null);
});
