// What is chosen with buttons, keys and the list: layout, colouring, scale, theme, help.
import assert from "node:assert/strict";
import { test } from "node:test";
import { recorded } from "./inputs.mjs";
import { address, click, compared, mixtral, open, picture, press, resnet, scene, settle, shown, text } from "./support.mjs";

const checked = (page) => page.locator("#layouts [aria-checked=true]").allTextContents();
const focused = (page) => page.evaluate(() => document.activeElement.innerText.slice(0, 40));

test("a click on a layout shows it, and every layout shows every buffer once", async (t) => {
  const { path, numbers } = mixtral();
  const page = await open(t, { path });
  const seen = new Set();
  for (const [place, name] of ["no reuse 29.1 GiB", "greedy 9.7 GiB", "planned 9.5 GiB"].entries()) {
    await click(page, `#layouts button:nth-child(${place + 1})`);
    assert.deepEqual(await checked(page), [name]);
    assert.equal((await address(page)).layout, String(place));
    const { alone, merged, words } = await shown(page);
    assert.equal(alone + merged, numbers.buffers, words);
    seen.add(words).add((await picture(page)).digest);
  }
  assert.equal(seen.size, 6, "three lines and three pictures");
});

test("`b` goes to the next layout and `B` back, around the end", async (t) => {
  const page = await open(t, mixtral());
  const walked = [];
  for (const key of ["b", "b", "b", "B", "B"]) {
    await press(page, key);
    walked.push((await address(page)).layout);
  }
  assert.deepEqual(walked, ["0", "1", "2", "1", "0"]);
});

test("arrow keys move among the layouts, also after a click, and the focus goes with them", async (t) => {
  const page = await open(t, mixtral());
  await click(page, "#layouts button:nth-child(1)");
  assert.equal(await focused(page), "no reuse 29.1 GiB");
  await press(page, "ArrowRight");
  assert.deepEqual(await checked(page), ["greedy 9.7 GiB"]);
  assert.equal(await focused(page), "greedy 9.7 GiB");
  await press(page, "ArrowUp");
  assert.deepEqual(await checked(page), ["no reuse 29.1 GiB"]);
  await press(page, "ArrowLeft");
  assert.deepEqual(await checked(page), ["planned 9.5 GiB"]);
  assert.equal((await address(page)).x, null, "the map has not moved");
});

test("a comparison has the layouts of both runs and says whose each is", async (t) => {
  const page = await open(t, compared());
  const names = await page.locator("#layouts button").allTextContents();
  assert.deepEqual(names.map((name) => name.split(":")[0]), ["resnet50.csv", "dlrm_step.csv"]);
  const before = [await text(page, "#moment"), await text(page, "#shown")];
  await press(page, "b");
  const after = [await text(page, "#moment"), await text(page, "#shown")];
  assert.ok(before.every((words, place) => words !== after[place]));
  assert.match(await text(page, "#curve-legend"), /alive in resnet50\.csv.*alive in dlrm_step\.csv/);
});

test("the layout that an allocator left is there beside the planned one, with what it had reserved", async (t) => {
  const page = await open(t, recorded());
  const names = await page.locator("#layouts button").allTextContents();
  assert.deepEqual(names, ["as recorded 32.0 MiB", "no reuse 34.1 MiB", "greedy 15.4 MiB", "planned 15.4 MiB"]);
  assert.match(await text(page, "#curve-legend"), /reserved as recorded/);
});

test("the list and `g` choose what colours and the table mean", async (t) => {
  const page = await open(t, recorded());
  assert.deepEqual((await scene(page)).groupings, ["category", "module", "line", "size"]);
  const legend = () => text(page, "#legend");
  const heading = () => text(page, "#table th:first-child");
  assert.equal(await heading(), "category");
  assert.equal(await legend(), "activationsweightsgradients");
  const before = await picture(page);
  await page.locator("#grouping").focus();
  await press(page, "ArrowDown");
  assert.equal(await heading(), "module");
  assert.equal(await legend(), "modeloptimizer");
  assert.notEqual((await picture(page)).digest, before.digest);
  assert.equal((await address(page)).by, "module");
  await click(page, "h1");
  await press(page, "g");
  assert.equal(await heading(), "line");
  await press(page, "g", "g");
  assert.equal(await heading(), "category");
  assert.deepEqual(await picture(page), before);
});

test("one scale for all layouts is a switch by click and by `s`", async (t) => {
  const page = await open(t, mixtral());
  const button = page.locator("#same-scale");
  const before = await picture(page);
  await click(page, "#same-scale");
  assert.equal(await button.getAttribute("aria-pressed"), "true");
  assert.notEqual((await picture(page)).digest, before.digest);
  await press(page, "s");
  assert.equal(await button.getAttribute("aria-pressed"), "false");
  assert.deepEqual(await picture(page), before);
});

test("the theme follows the system until somebody chooses one", async (t) => {
  const page = await open(t, resnet(), { colorScheme: "dark" });
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const dark = [await ground(), (await picture(page)).digest];
  await page.emulateMedia({ colorScheme: "light" });
  await settle(page);
  const light = [await ground(), (await picture(page)).digest];
  assert.deepEqual([dark[0], light[0]], ["rgb(20, 23, 27)", "rgb(255, 255, 255)"]);
  assert.notEqual(dark[1], light[1], "the map is drawn in the colours of the theme");
  await click(page, "#theme");
  assert.deepEqual([await ground(), (await picture(page)).digest], dark);
  assert.equal((await address(page)).theme, "dark");
  await press(page, "d");
  assert.equal(await ground(), light[0]);
  await page.emulateMedia({ colorScheme: "dark" });
  await settle(page);
  assert.deepEqual([await ground(), (await picture(page)).digest], light);
});

test("`?` and its button open and close the list of keys, and it has them all", async (t) => {
  const page = await open(t, resnet());
  const isOpen = async () => [await page.locator("#help").isVisible(), await page.locator("#help-button").getAttribute("aria-expanded")];
  assert.deepEqual(await isOpen(), [false, "false"]);
  await press(page, "?");
  assert.deepEqual(await isOpen(), [true, "true"]);
  const keys = (await page.locator("#help dt").allTextContents()).flatMap((keys) => keys.split(" "));
  for (const key of ["+", "0", "p", "b", "s", "g", "/", "n", "N", "d", "l", "t", "T", "a", "A"]) {
    assert.ok(keys.includes(key), `${key} is not in the list`);
  }
  await click(page, "#help-button");
  assert.deepEqual(await isOpen(), [false, "false"]);
});
