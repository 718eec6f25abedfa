// The page for everybody: names for controls, a focus that can be seen, text that can be read, small windows.
import assert from "node:assert/strict";
import { test } from "node:test";
import { recorded } from "./inputs.mjs";
import { click, compared, mixtral, open, press, resnet } from "./support.mjs";

test("every control has a name in words", async (t) => {
  const page = await open(t, recorded());
  for (const control of await page.locator("button, input, select, canvas").all()) {
    const snapshot = await control.ariaSnapshot();
    const own = await control.getAttribute("aria-label");
    assert.match(own ?? snapshot, /[a-z]{3}/i, snapshot);
  }
  for (const canvas of ["#map", "#curves"]) assert.ok(await page.locator(canvas).getAttribute("role"));
  assert.equal(await page.locator("html").getAttribute("lang"), "en");
});

test("Tab goes through everything in reading order, and the focus can be seen everywhere", async (t) => {
  const page = await open(t, resnet());
  const walked = [];
  for (;;) {
    await page.keyboard.press("Tab");
    const name = await page.evaluate(() => {
      const { id, className, role } = document.activeElement;
      return id || className || role;
    });
    if (!name) break;
    walked.push(name);
    if (walked.filter((one) => one === "group").length <= 1) assert.ok(await focusIsSeen(page), `the focus on ${name} cannot be seen`);
  }
  const groups = walked.filter((name) => name === "group").length;
  const tools = ["zoom-in", "zoom-out", "reset", "to-peak", "same-scale", "link", "theme", "help-button"];
  assert.deepEqual(walked, ["radio", "search", "grouping", ...tools, "map", "curves", ...Array(groups).fill("group")]);
  assert.ok(groups > 0);
});

async function focusIsSeen(page) {
  const focused = await page.evaluateHandle(() => document.activeElement);
  const box = await focused.boundingBox();
  const around = { x: Math.max(0, box.x - 4), y: Math.max(0, box.y - 4), width: Math.min(box.width + 8, 1200), height: box.height + 8 };
  const before = await page.screenshot({ clip: around, caret: "hide" });
  await focused.evaluate((element) => element.blur());
  const after = await page.screenshot({ clip: around, caret: "hide" });
  await focused.evaluate((element) => element.focus());
  return !before.equals(after);
}

for (const colorScheme of ["light", "dark"]) {
  test(`text stands out from its ground in ${colorScheme} by 4.5 to 1 or more`, async (t) => {
    const page = await open(t, recorded(), { colorScheme });
    await press(page, "?", "n");
    await click(page, "tr.group:nth-child(1)");
    await page.locator("tr.one").nth(2).hover();
    const weak = await page.evaluate(weakTexts);
    assert.deepEqual(weak, []);
  });
}

// Runs in the page: texts whose colour is too near to what is behind them.
function weakTexts() {
  const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const channels = (colour) => {
    pen.clearRect(0, 0, 1, 1);
    pen.fillStyle = colour;
    pen.fillRect(0, 0, 1, 1);
    return [...pen.getImageData(0, 0, 1, 1).data].map((value) => value / 255);
  };
  const over = ([r, g, b, alpha], under) => [r, g, b].map((value, place) => value * alpha + under[place] * (1 - alpha));
  const ground = (element) => {
    const own = channels(getComputedStyle(element).backgroundColor);
    return own[3] === 1 || !element.parentElement ? own : over(own, ground(element.parentElement));
  };
  const light = (colour) => {
    const [r, g, b] = colour.map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
  const told = (element, part) => {
    const behind = ground(element);
    const ratio = contrast(over(channels(getComputedStyle(element, part).color), behind), behind);
    return ratio < 4.5 ? [`${element.tagName} ${element.textContent.slice(0, 20)} ${part ?? ""} ${ratio.toFixed(2)}`] : [];
  };
  const isSeen = (element) => element.checkVisibility() && [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  const texts = [...document.body.querySelectorAll("*")].filter(isSeen).flatMap((element) => told(element));
  return [...texts, ...told(document.querySelector("#search"), "::placeholder")];
}

for (const [name, make] of Object.entries({ mixtral, recorded, compared })) {
  test(`at 400 pixels the page of ${name} needs no scrolling sideways`, async (t) => {
    const page = await open(t, make(), { viewport: { width: 400, height: 800 } });
    await press(page, "?", "n");
    await click(page, "tr.group:nth-child(1)");
    const wide = await page.evaluate(() => [document.scrollingElement.scrollWidth, innerWidth]);
    assert.ok(wide[0] <= wide[1], String(wide));
    for (const table of await page.locator(".scroll").all()) {
      const [inner, outer] = await table.evaluate((element) => [element.scrollWidth, element.clientWidth]);
      assert.ok(inner <= outer, `the table is ${inner} wide in ${outer}`);
    }
    for (const button of await page.locator("button").all()) {
      const { x, width } = await button.boundingBox();
      assert.ok(x >= 0 && x + width <= 400);
    }
  });
}

test("the map follows the size of the window, and fine screens get fine pictures", async (t) => {
  const page = await open(t, mixtral(), { deviceScaleFactor: 2 });
  const size = () => page.locator("#map").evaluate((map) => [map.width / map.clientWidth, map.height / map.clientHeight, map.clientWidth]);
  const before = await size();
  assert.deepEqual(before.slice(0, 2), [2, 2]);
  await page.setViewportSize({ width: 700, height: 600 });
  await press(page);
  const after = await size();
  assert.deepEqual(after.slice(0, 2), [2, 2]);
  assert.ok(after[2] < before[2]);
});
