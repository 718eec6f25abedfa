// The table: who holds memory at the peak, or at the moment chosen on the curve.
import assert from "node:assert/strict";
import { test } from "node:test";
import { recorded } from "./inputs.mjs";
import { address, bytesText, click, mixtral, open, press, resnet, rows, inRepository, settle, text, view } from "./support.mjs";

const group = (page, place) => page.locator("tr.group").nth(place);
const groups = (page) => page.locator("tr.group").evaluateAll((rows) => (
  rows.map((row) => [...row.cells].slice(0, 4).map((cell) => cell.textContent.trim()))
));

async function chooseOnCurve(page, time) {
  const { place } = await view(page);
  await page.locator("#curves").scrollIntoViewIfNeeded();
  const box = await page.locator("#curves").boundingBox();
  await page.mouse.click(place(time, 0).x, box.y + 40);
  await settle(page);
}

for (const [name, make] of Object.entries({ mixtral, resnet, recorded })) {
  test(`the groups of ${name} are those the command line tells, and together they are the peak`, async (t) => {
    const { path, numbers } = make();
    const page = await open(t, { path });
    assert.equal(numbers.alive.reduce((sum, { bytes }) => sum + bytes, 0), numbers.live_peak);
    const buffers = numbers.alive.reduce((sum, one) => sum + one.buffers, 0);
    assert.match(await text(page, "#moment"), /^At the peak, event [\d,]+/);
    assert.ok((await text(page, "#moment")).endsWith(`: ${bytesText(numbers.live_peak)} in ${buffers} buffers`));
    const wanted = numbers.alive.map(({ key, bytes, buffers }) => (
      [key, bytesText(bytes), `${((100 * bytes) / numbers.live_peak).toFixed(1)}%`, String(buffers)]
    ));
    assert.deepEqual(await groups(page), wanted);
  });
}

test("a group opens and closes by click, by Enter and by Space", async (t) => {
  const page = await open(t, recorded());
  const members = () => page.locator("tr.one").count();
  const isOpen = () => group(page, 0).getAttribute("aria-expanded");
  assert.deepEqual([await isOpen(), await members()], ["false", 0]);
  await click(page, "tr.group:nth-child(1)");
  assert.deepEqual([await isOpen(), await members()], ["true", 12]);
  await press(page, "Enter");
  assert.deepEqual([await isOpen(), await members()], ["false", 0]);
  await press(page, "Space");
  assert.deepEqual([await isOpen(), await members()], ["true", 12]);
  const listed = await page.locator("tr.one td:nth-child(2)").allTextContents();
  assert.deepEqual(listed, Array.from({ length: 12 }, (_, place) => bytesText((12 - place) * 131072)));
});

test("a group with many members says how many more there are", async (t) => {
  const { path, numbers } = mixtral();
  const page = await open(t, { path });
  const many = numbers.alive.findIndex(({ buffers }) => buffers > 25);
  await click(page, `tr.group:nth-child(${many + 1})`);
  assert.equal(await page.locator("tr.one").count(), 25);
  const rest = numbers.alive[many].buffers - 25;
  assert.match(await text(page, "tr.more td.name"), new RegExp(`^\\+${rest} smaller$`));
});

test("choosing a member selects it on the map, by click and by Enter", async (t) => {
  const page = await open(t, recorded());
  await click(page, "tr.group:nth-child(1)");
  const first = page.locator("tr.one").first();
  await click(page, "tr.one >> nth=0");
  assert.match(await first.textContent(), /layer11\.out\.1/);
  assert.equal(await first.getAttribute("aria-selected"), "true");
  assert.equal(await text(page, "#selected b"), "layer11.out.1");
  assert.ok((await address(page)).y, "the map goes there");
  await press(page, "Tab", "Enter");
  assert.equal(await text(page, "#selected b"), "layer10.out.1");
  assert.deepEqual(await page.locator("tr[aria-selected=true]").count(), 1);
});

test("a click on the curve chooses another moment, and its table is right", async (t) => {
  const page = await open(t, resnet());
  const before = await text(page, "#moment");
  await chooseOnCurve(page, 10.5);
  const heading = await text(page, "#moment");
  assert.notEqual(heading, before);
  const time = Number(heading.match(/^Chosen moment, event (\d+)/)[1]);
  assert.ok(Math.abs(time - 10) <= 1);
  const alive = rows(inRepository("examples/resnet50.csv")).filter(({ lower, upper }) => Number(lower) <= time && time < Number(upper));
  const bytes = alive.reduce((sum, { size }) => sum + Number(size), 0);
  assert.ok(heading.endsWith(`: ${bytesText(bytes)} in ${alive.length} buffers`), heading);
  assert.equal((await address(page)).at, String(time));
  await press(page, "0");
  assert.equal(await text(page, "#moment"), before);
});

test("with the curve in focus arrow keys choose the moment before and after", async (t) => {
  const page = await open(t, resnet());
  const event = async () => Number((await text(page, "#moment")).match(/event ([\d,]+)/)[1]);
  const peak = await event();
  await page.locator("#curves").focus();
  await press(page, "ArrowLeft", "ArrowLeft");
  assert.equal(await event(), peak - 2);
  await press(page, "ArrowRight");
  assert.equal(await event(), peak - 1);
  assert.equal((await address(page)).x, null, "the map has not moved");
  await press(page, "ArrowRight");
  assert.match(await text(page, "#moment"), /^At the peak/);
});

test("one buffer is not `1 buffers`", async (t) => {
  const page = await open(t, resnet());
  await chooseOnCurve(page, 0.2);
  assert.match(await text(page, "#moment"), /event 0: 3\.1 MiB in 1 buffer$/);
});
