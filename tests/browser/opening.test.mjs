// Every page opens, paints and stays within itself; without scripts it still says who holds the memory.
import assert from "node:assert/strict";
import { test } from "node:test";
import { HOSTILE, hostile, recorded } from "./inputs.mjs";
import { click, compared, inRepository, lowtide, mixtral, open, picture, press, report, resnet, search, shown, text } from "./support.mjs";

const related = () => report("related", inRepository("examples/relations.json"));
const pages = { mixtral, resnet, compared, recorded, related, hostile };

for (const [name, make] of Object.entries(pages)) {
  test(`the page of ${name} opens without a complaint, paints its map and its curves, and keeps to itself`, async (t) => {
    const page = await open(t, make());
    for (const canvas of ["#map", "#curves"]) {
      assert.ok((await picture(page, canvas)).colours > 3, `${canvas} is blank`);
    }
    const { alone, merged } = await shown(page);
    assert.ok(alone > 0);
    assert.ok(merged >= 0);
    // Every action once, with whatever the page holds.
    await press(page, "b", "g", "s", "p", "n", "N", "+", "-", "t", "T", "a", "A", "ArrowLeft", "ArrowUp", "d", "?", "0", "Escape", "l");
    assert.ok((await picture(page)).colours > 3);
  });
}

for (const [name, make] of Object.entries({ mixtral, resnet, recorded, related })) {
  test(`the page of ${name} is read back as the problem it was made of`, () => {
    const { path, numbers } = make();
    const again = lowtide("plan", path);
    assert.equal(again.peak, numbers.peak);
    assert.equal(again.buffers, numbers.buffers);
  });
}

test("names that want to be markup, scripts or places of the template are shown as they are", async (t) => {
  const page = await open(t, hostile());
  assert.equal(await text(page, "h1"), "hostile <b>{{script}} &amp;.csv");
  assert.equal(await page.locator("h1 *, img, #selected script").count(), 0);
  for (const name of HOSTILE) {
    await page.keyboard.press("Escape");
    await page.keyboard.press("/");
    await page.keyboard.insertText(name);
    await press(page, "Enter");
    assert.equal(await text(page, "#selected b"), name);
    assert.match(await text(page, "#found"), /^1 found/);
  }
  assert.equal(await page.evaluate(() => document.scripts.length), 5);
});

test("a very long name is cut in the table and whole in the panel, and the page stays as wide as the window", async (t) => {
  const page = await open(t, hostile(), { viewport: { width: 400, height: 800 } });
  await search(page, "xxxx");
  await press(page, "Enter");
  assert.equal((await text(page, "#selected b")).length, 5000);
  assert.ok((await page.locator("#selected").boundingBox()).height < 500);
  await click(page, "tr.group:nth-child(1)");
  const names = await page.locator("tr.one td.name").allTextContents();
  assert.ok(names.some((name) => /^x+…$/.test(name)), names.join(" "));
  for (const row of await page.locator("tr.one").all()) assert.ok((await row.boundingBox()).height < 400);
  const [wide, inner] = await page.evaluate(() => [document.scrollingElement.scrollWidth, innerWidth]);
  assert.ok(wide <= inner, `${wide} > ${inner}`);
});

test("without scripts the page shows a note and the table of the peak, and no dead controls", async (t) => {
  const { path, numbers } = mixtral();
  const page = await open(t, { path }, { javaScriptEnabled: false });
  assert.match(await page.locator(".note:visible").textContent(), /^The memory map needs scripts/);
  assert.match(await page.locator("#moment").innerText(), /^At the peak, event 4504: 9\.5 GiB in 482 buffers$/);
  const rows = page.locator("#table tbody tr");
  assert.equal(await rows.count(), Math.min(numbers.alive.length, 21));
  assert.ok(await rows.first().isVisible());
  assert.equal(await page.locator("button:visible, canvas:visible, input:visible, select:visible").count(), 0);
});
