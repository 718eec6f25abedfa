// Moving over the map: wheel, keys, buttons, a rectangle drawn with Shift, fingers.
import assert from "node:assert/strict";
import { test } from "node:test";
import { address, click, drag, middle, mixtral, open, picture, press, resnet, settle, view, wheel } from "./support.mjs";

const length = (range) => range[1] - range[0];
const near = (found, wanted, slack) => assert.ok(Math.abs(found - wanted) <= slack, `${found} is not near ${wanted}`);

test("the wheel zooms time around the pointer, with Shift addresses, with Control both", async (t) => {
  const page = await open(t, mixtral());
  const full = await view(page);
  const at = full.place(4504, 5e9);
  await wheel(page, -100, { at });
  const time = await view(page);
  near(length(time.x) / length(full.x), Math.exp(-1 / 4), 0.001);
  assert.equal((await address(page)).y, null);
  near(time.place(4504, 0).x, at.x, 1);
  await page.keyboard.down("Shift");
  await wheel(page, -100, { at });
  await page.keyboard.up("Shift");
  const both = await view(page);
  assert.deepEqual(both.x, time.x);
  near(length(both.y) / length(full.y), Math.exp(-1 / 4), 0.001);
  near(both.place(0, 5e9).y, at.y, 1);
  await page.keyboard.down("Control");
  await wheel(page, 100, { at });
  await page.keyboard.up("Control");
  assert.deepEqual([(await address(page)).x, (await address(page)).y], [null, null], "back where it began");
});

test("the wheel over the curves zooms the map too", async (t) => {
  const page = await open(t, mixtral());
  const before = [(await picture(page)).digest, (await picture(page, "#curves")).digest];
  await wheel(page, -100, { selector: "#curves" });
  assert.notEqual((await picture(page)).digest, before[0]);
  assert.notEqual((await picture(page, "#curves")).digest, before[1]);
});

test("`+` and `-` zoom, as their buttons do, and `0` shows everything again", async (t) => {
  const page = await open(t, mixtral());
  const full = await view(page);
  const before = await picture(page);
  await press(page, "+");
  const near = await view(page);
  assert.ok(length(near.x) < length(full.x) && length(near.y) < length(full.y));
  await press(page, "-");
  assert.deepEqual(await picture(page), before);
  await click(page, "#zoom-in");
  assert.deepEqual((await view(page)).x, near.x);
  await click(page, "#zoom-out");
  assert.deepEqual(await picture(page), before);
  await press(page, "=", "=", "=", "ArrowUp");
  assert.notEqual((await picture(page)).digest, before.digest);
  await press(page, "0");
  assert.deepEqual(await picture(page), before);
  assert.deepEqual([(await address(page)).x, (await address(page)).y], [null, null]);
  await press(page, "+");
  await click(page, "#reset");
  assert.deepEqual(await picture(page), before);
});

test("`t` and `a` zoom time and addresses alone, `T` and `A` back", async (t) => {
  const page = await open(t, mixtral());
  await press(page, "t");
  const time = await address(page);
  assert.ok(time.x && !time.y);
  await press(page, "T", "a");
  const addresses = await address(page);
  assert.ok(!addresses.x && addresses.y);
  await press(page, "A");
  assert.equal((await address(page)).y, null);
});

test("keys that belong to the browser are left to it", async (t) => {
  const page = await open(t, mixtral());
  await press(page, "+", "+");
  const before = await address(page);
  await page.evaluate(() => {
    window.taken = [];
    addEventListener("keydown", (event) => { if (event.defaultPrevented) window.taken.push(event.key); });
  });
  await press(page, "Alt+ArrowLeft", "Alt+d", "Control+l", "Control+ArrowUp", "Meta+ArrowDown");
  assert.deepEqual(await page.evaluate(() => window.taken), []);
  assert.deepEqual(await address(page), before);
});

test("arrow keys and dragging move a zoomed map, as far as its edges", async (t) => {
  const page = await open(t, mixtral());
  await press(page, "+", "+", "+");
  const start = await view(page);
  await press(page, "ArrowRight");
  const right = await view(page);
  near(right.x[0] - start.x[0], 0.15 * length(start.x), 1);
  assert.deepEqual(right.y, start.y);
  await press(page, "ArrowLeft", "ArrowUp");
  near((await view(page)).y[0] - start.y[0], 0.15 * length(start.y), 2);
  await press(page, "ArrowDown");
  const from = await middle(page, "#map");
  await drag(page, from, { x: from.x + 100, y: from.y + 50 });
  const dragged = await view(page);
  near(start.x[0] - dragged.x[0], (100 / start.area.width) * length(start.x), 1);
  near(dragged.y[0] - start.y[0], (50 / start.area.height) * length(start.y), length(start.y) / 1000);
  for (let turn = 0; turn < 5; turn += 1) await drag(page, from, { x: from.x + 500, y: from.y - 250 });
  const edge = await view(page);
  assert.equal(edge.y[0], 0);
  near(length(edge.x), length(start.x), 0.01);
  await press(page, "0");
  assert.equal(edge.x[0], (await view(page)).x[0]);
});

test("Shift and a drag zoom to the rectangle drawn", async (t) => {
  const page = await open(t, mixtral());
  const { place } = await view(page);
  await page.keyboard.down("Shift");
  await drag(page, place(4000, 6e9), place(5000, 4e9));
  await page.keyboard.up("Shift");
  const { x, y } = await address(page);
  near(x[0], 4000, 5);
  near(x[1], 5000, 5);
  near(y[0], 4e9, 3e7);
  near(y[1], 6e9, 3e7);
});

test("`p` and its button show the peak", async (t) => {
  const { path, numbers } = mixtral();
  const page = await open(t, { path });
  await press(page, "p");
  const { x } = await address(page);
  assert.ok(x[0] < numbers.peak_event && numbers.peak_event < x[1]);
  await press(page, "0");
  await click(page, "#to-peak");
  assert.deepEqual((await address(page)).x, x);
});

test("the map can be zoomed in to a few events and bytes and no further, and is still drawn", async (t) => {
  const page = await open(t, resnet());
  for (let turn = 0; turn < 80; turn += 1) await page.keyboard.press("+");
  await settle(page);
  const { x, y } = await view(page);
  assert.ok(length(x) >= 1 && length(y) >= 1, `${x} ${y}`);
  await press(page, "0");
  assert.ok((await picture(page)).colours > 3);
});

test("a finger moves the map and not the page, two fingers zoom it, and neither selects", async (t) => {
  const page = await open(t, mixtral(), { viewport: { width: 400, height: 800 }, hasTouch: true, isMobile: true });
  const fingers = await page.context().newCDPSession(page);
  const touch = (type, ...touchPoints) => fingers.send("Input.dispatchTouchEvent", { type, touchPoints });
  await press(page, "+", "+");
  const start = await view(page);
  const { x, y } = await middle(page, "#map");
  await touch("touchStart", { x, y, id: 1 });
  for (const part of [20, 40, 60]) await touch("touchMove", { x: x - part, y: y - part, id: 1 });
  await touch("touchEnd");
  await settle(page);
  const moved = await view(page);
  near(moved.x[0] - start.x[0], (60 / start.area.width) * length(start.x), 1);
  near(length(moved.x), length(start.x), 0.01);
  assert.equal(await page.evaluate(() => scrollY), 0);
  await touch("touchStart", { x: x - 30, y, id: 1 });
  await touch("touchStart", { x: x - 30, y, id: 1 }, { x: x + 30, y, id: 2 });
  for (const part of [40, 50, 60]) await touch("touchMove", { x: x - part, y, id: 1 }, { x: x + part, y, id: 2 });
  await settle(page);
  const zoomed = await view(page);
  near(length(moved.x) / length(zoomed.x), 2, 0.1);
  await touch("touchEnd", { x: x + 60, y, id: 2 });
  await touch("touchMove", { x: x - 62, y, id: 1 });
  await settle(page);
  near(length((await view(page)).x), length(zoomed.x), 0.01);
  near((await view(page)).x[0], zoomed.x[0], length(zoomed.x) / 50);
  await touch("touchEnd");
  await settle(page);
  assert.ok(await page.locator("#selected").isHidden());
});
