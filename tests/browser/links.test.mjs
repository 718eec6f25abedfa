// The address of a page is its view: opened again, it shows the same.
import assert from "node:assert/strict";
import { test } from "node:test";
import { recorded } from "./inputs.mjs";
import { address, click, mixtral, open, picture, press, resnet, search, settle, text, wheel } from "./support.mjs";

// A window that knows nothing of the one before.
const ELSEWHERE = { colorScheme: "light" };
const hash = (page) => page.evaluate(() => location.hash);

async function everything(page) {
  const told = ["#shown", "#found", "#moment", "#selected", "#legend"].map((part) => text(page, part));
  const scheme = page.evaluate(() => [document.documentElement.dataset.theme, document.querySelector("#search").value]);
  return [await hash(page), await picture(page), await picture(page, "#curves"), await Promise.all(told), await scheme];
}

test("a view with zoom, search, selection, moment, colouring, layout and theme opens again as it was", async (t) => {
  const page = await open(t, recorded());
  await click(page, "#layouts button:nth-child(3)");
  await press(page, "g", "d", "s");
  await search(page, "layer1");
  await press(page, "Enter", "Enter");
  await page.evaluate(() => document.activeElement.blur());
  await press(page, "-", "-", "ArrowLeft");
  await wheel(page, -70);
  const { x, y } = await page.locator("#curves").boundingBox();
  await page.mouse.click(x + 500, y + 40);
  await settle(page);
  const before = await everything(page);
  const { layout, by, q, buffer, at, same, theme, x: times, y: addresses } = await address(page);
  assert.deepEqual({ layout, by, q, same, theme }, { layout: "2", by: "module", q: "layer1", same: "1", theme: "dark" });
  assert.ok([buffer, at, times, addresses].every((part) => part !== null && part !== undefined), before[0]);
  const again = await open(t, recorded(), { hash: before[0], ...ELSEWHERE });
  assert.deepEqual(await everything(again), before);
});

test("a view deep inside opens again to the pixel", async (t) => {
  const page = await open(t, mixtral());
  await press(page, "n");
  for (const amount of [-90, -90, -90, 37]) await wheel(page, amount);
  for (let turn = 0; turn < 6; turn += 1) await press(page, "+");
  const before = await everything(page);
  const again = await open(t, mixtral(), { hash: before[0], ...ELSEWHERE });
  assert.deepEqual(await everything(again), before);
});

test("texts that mean something in an address come back as they were searched", async (t) => {
  const page = await open(t, resnet());
  const words = "a&b=c #%41 + 世界";
  await search(page, words);
  const again = await open(t, resnet(), { hash: await hash(page) });
  assert.equal(await again.locator("#search").inputValue(), words);
});

test("following a link inside an open page changes the view", async (t) => {
  const page = await open(t, mixtral());
  await press(page, "+", "b");
  const link = await hash(page);
  const wanted = await picture(page);
  await press(page, "0", "b");
  await page.evaluate((link) => { location.hash = link; }, link);
  await settle(page);
  assert.deepEqual(await picture(page), wanted);
});

test("the link button copies the address of the view, or puts it into the address bar and says so", async (t) => {
  const page = await open(t, mixtral());
  await press(page, "+");
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await click(page, "#link");
  assert.equal(await text(page, "#link"), "copied");
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  assert.equal(copied, page.url());
  await page.context().clearPermissions();
  await page.evaluate(() => { navigator.clipboard.writeText = () => Promise.reject(new Error("no")); });
  await press(page, "b", "l");
  assert.equal(await text(page, "#link"), "in the address bar");
  assert.equal((await address(page)).layout, "0");
});

test("addresses that mean nothing show the whole map", async (t) => {
  const wanted = await picture(await open(t, resnet()));
  const addresses = ["#layout=99&x=5&y=a,b&by=colour&buffer=-1&at=x", "#x=9,2&y=Infinity,NaN&q=%", "#&&==&layout", "#buffer=1e99&theme=pink"];
  for (const nonsense of addresses) {
    const page = await open(t, resnet(), { hash: nonsense });
    assert.deepEqual(await picture(page), wanted, nonsense);
  }
});

test("an address far outside the run still shows the map", async (t) => {
  const wanted = await picture(await open(t, resnet()));
  const page = await open(t, resnet(), { hash: "#x=1e12,2e12&y=-5e15,-4e15&at=999999999" });
  assert.ok((await picture(page)).colours > 3);
  await press(page, "0");
  assert.deepEqual(await picture(page), wanted);
});
