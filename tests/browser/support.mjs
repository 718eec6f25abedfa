// What the tests share: pages made by the real binary, a real browser, and eyes on everything that may go wrong in it.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const needed = (variable) => process.env[variable] ?? assert.fail(`\`${variable}\` is not set; \`cargo xtask test\` sets it`);
const binary = needed("LOWTIDE_BINARY");
const executablePath = needed("LOWTIDE_CHROMIUM");
const folder = mkdtempSync(join(tmpdir(), "lowtide-browser-"));
const repository = fileURLToPath(new URL("../..", import.meta.url));
const made = new Map();
let browser;
let shared;

before(async () => {
  browser = await chromium.launch({ executablePath });
});

after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

export const inRepository = (path) => join(repository, path);
export const inFolder = (name) => join(folder, name);

export function write(name, text) {
  writeFileSync(inFolder(name), text);
  return inFolder(name);
}

// What the binary prints, read as JSON.
export function lowtide(...words) {
  const text = execFileSync(binary, [...words, "--json"], { encoding: "utf8", maxBuffer: 1 << 26, stdio: ["ignore", "pipe", "pipe"] });
  return JSON.parse(text);
}

// A report as a page, made once: where it lies, and the numbers that the binary gave for it.
export function report(name, ...words) {
  const key = JSON.stringify([name, ...words]);
  if (!made.has(key)) {
    const path = inFolder(`${name}.html`);
    made.set(key, { path, numbers: lowtide("report", ...words, "-o", path) });
  }
  return made.get(key);
}

export const mixtral = () => report("mixtral", inRepository("crates/cli/data/mixtral_moe.csv.gz"), "--step", "2");
export const resnet = () => report("resnet", inRepository("examples/resnet50.csv"));
export const compared = () => report("compared", inRepository("examples/resnet50.csv"), inRepository("examples/dlrm_step.csv"));

// The rows of a CSV without quotes, as objects.
export function rows(path) {
  const [header, ...lines] = readFileSync(path, "utf8").trimEnd().split("\n").map((line) => line.split(","));
  return lines.map((line) => Object.fromEntries(header.map((name, place) => [name, line[place]])));
}

// Opens a page: in the window that the tests of a file share, or with `options` in one of its own. When the test ends,
// everything that went wrong fails it. A page that takes long to load may be kept from the test before.
export async function open(test, { path }, { hash = "", isKept = false, ...options } = {}) {
  const isShared = Object.keys(options).length === 0;
  const { page, faults } = isShared ? await (shared ??= window(options)) : await window(options);
  const hasScripts = options.javaScriptEnabled !== false;
  test.after(async () => {
    const refused = hasScripts ? await page.evaluate(() => window.refused.splice(0)) : [];
    if (!isShared) await page.context().close();
    assert.deepEqual([...faults.splice(0), ...refused], [], "console errors, page errors, requests and refusals");
  });
  if (isKept && page.url().startsWith(pathToFileURL(path).href)) {
    await press(page, "Escape", "Escape", "0");
    return page;
  }
  // From one view of a page to another is no new start.
  if (isShared) await page.goto("about:blank");
  await page.goto(pathToFileURL(path).href + hash);
  if (hasScripts) {
    await page.waitForSelector("html[data-ready]");
    await settle(page);
  }
  return page;
}

async function window(options) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 1000 }, offline: true, ...options });
  const page = await context.newPage();
  await page.addInitScript(() => {
    window.refused = [];
    addEventListener("securitypolicyviolation", (event) => window.refused.push(`${event.violatedDirective} ${event.blockedURI}`));
  });
  return { page, faults: watch(page) };
}

function watch(page) {
  const faults = [];
  page.on("console", (message) => {
    if (["error", "warning", "assert"].includes(message.type())) faults.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => faults.push(`page: ${error.message}`));
  page.on("dialog", (dialog) => faults.push(`dialog: ${dialog.message()}`));
  page.on("request", (request) => {
    if (!/^(file|data|blob|about):/.test(request.url())) faults.push(`request: ${request.url()}`);
  });
  return faults;
}

// Waits until the page has drawn and written its address, which it does 150 ms after an event.
export function settle(page) {
  const rest = () => new Promise((done) => {
    setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done)), 155);
  });
  return page.evaluate(rest);
}

export async function press(page, ...keys) {
  for (const key of keys) await page.keyboard.press(key);
  await settle(page);
}

// Types into the field for searching, which looks 120 ms after the last letter.
export async function search(page, words) {
  await page.keyboard.press("/");
  await page.keyboard.insertText(words);
  await page.waitForTimeout(125);
  await settle(page);
}

// Turns the wheel over the middle of an element, or over a place of it.
export async function wheel(page, amount, { selector = "#map", at } = {}) {
  const place = at ?? await middle(page, selector);
  await page.mouse.move(place.x, place.y);
  await page.mouse.wheel(0, amount);
  await settle(page);
}

export async function middle(page, selector) {
  const { x, y, width, height } = await page.locator(selector).boundingBox();
  return { x: x + width / 2, y: y + height / 2 };
}

export async function click(page, selector) {
  await page.locator(selector).scrollIntoViewIfNeeded();
  const { x, y } = await middle(page, selector);
  await page.mouse.click(x, y);
  await settle(page);
}

export async function drag(page, from, to) {
  await page.mouse.move(from.x, from.y);
  await page.mouse.down();
  await page.mouse.move((from.x + to.x) / 2, (from.y + to.y) / 2);
  await page.mouse.move(to.x, to.y);
  await page.mouse.up();
  await settle(page);
}

export const text = (page, selector) => page.locator(selector).textContent();

// What the address says is shown.
export async function address(page) {
  const parts = new URLSearchParams(await page.evaluate(() => location.hash.slice(1)));
  const range = (name) => parts.get(name)?.split(",").map(Number) ?? null;
  return { ...Object.fromEntries(parts), x: range("x"), y: range("y") };
}

// A number that tells pictures apart, and how many colours the canvas has.
export function picture(page, selector = "#map") {
  return page.locator(selector).evaluate((canvas) => {
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
    const pixels = new Uint32Array(data.buffer);
    const colours = new Set();
    let digest = 17;
    for (let place = 0; place < pixels.length; place += 1) {
      digest = (Math.imul(digest, 31) + pixels[place]) | 0;
      if (pixels[place] !== pixels[place - 1] && colours.size < 64) colours.add(pixels[place]);
    }
    return { digest, colours: colours.size };
  });
}

// The line under the map as numbers.
export async function shown(page) {
  const words = (await text(page, "#shown")).replaceAll(",", "");
  const number = (pattern) => Number(words.match(pattern)?.[1] ?? 0);
  return { alone: number(/^(\d+) buffers? drawn one by one/), merged: number(/\+(\d+) smaller/), words };
}

// What the page was given to draw at once, without the curves and pictures in it.
export const scene = (page) => page.locator("#scene").evaluate((element) => {
  const { runs, layouts, groupings } = JSON.parse(element.textContent);
  return {
    spans: runs.map(({ span }) => span),
    layouts: layouts.map(({ run, heights }) => ({ run, heights })),
    groupings: groupings.map(({ name }) => name),
  };
});

// What the map shows: event numbers across and addresses up, with its place on the screen.
export async function view(page) {
  const { layouts, spans } = await scene(page);
  const { layout, x, y } = await address(page);
  const { run, heights } = layouts[layout];
  const height = heights.reduce((sum, one) => sum + one, 0);
  const box = await page.locator("#map").boundingBox();
  const [left, bottom] = [64, 22];
  const area = { x: box.x + left, y: box.y, width: box.width - left, height: box.height - bottom };
  const [[x0, x1], [y0, y1]] = [x ?? spans[run], y ?? [0, height * 1.03]];
  return {
    x: [x0, x1], y: [y0, y1], area,
    place: (time, at) => ({
      x: area.x + ((time - x0) / (x1 - x0)) * area.width,
      y: area.y + area.height * (1 - (at - y0) / (y1 - y0)),
    }),
  };
}

// Bytes as the page writes them.
export function bytesText(bytes) {
  const power = bytes < 1024 ? 0 : Math.floor(Math.log2(bytes) / 10);
  return power === 0 ? `${bytes} B` : `${(bytes / 1024 ** power).toFixed(1)} ${["KiB", "MiB", "GiB", "TiB"][power - 1]}`;
}

// Chance that is the same every time: numbers from 0 up to 1.
export function chance(seed) {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
