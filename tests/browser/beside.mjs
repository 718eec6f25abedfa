// Pages of the same input beside each other: how long they take to make, how large they are, whether they show anything
// without a network, and when.
//
//     node tests/browser/beside.mjs INPUT [NAME=COMMAND]...
//
// A command has {input} and {output} in it. For PyTorch's own page of a snapshot:
//
//     node tests/browser/beside.mjs snapshot.pickle \
//         'memory_viz=python -m torch.cuda._memory_viz trace_plot {input} -o {output}'

import { execSync } from "node:child_process";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { chromium } from "playwright-core";

const [input, ...rivals] = process.argv.slice(2);
if (!input) throw new Error("give an input; see the head of this file");
const binary = process.env.LOWTIDE_BINARY ?? "target/release/lowtide";
const commands = [`lowtide=${binary} report {input} -o {output} --json`, ...rivals];
const folder = mkdtempSync(join(tmpdir(), "lowtide-beside-"));
const browser = await chromium.launch({
  executablePath: process.env.LOWTIDE_CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});

async function measured(entry, place) {
  const [name, command] = [entry.slice(0, entry.indexOf("=")), entry.slice(entry.indexOf("=") + 1)];
  const output = join(folder, `${place}.html`);
  const start = performance.now();
  execSync(command.replaceAll("{input}", `'${resolve(input)}'`).replaceAll("{output}", `'${output}'`), { stdio: "ignore" });
  const made = performance.now() - start;
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  const asked = new Set();
  page.on("request", (request) => {
    if (/^https?:/.test(request.url())) asked.add(new URL(request.url()).host);
  });
  await page.goto(`file://${output}`, { waitUntil: "load" });
  await page.waitForTimeout(5000);
  const seen = await page.evaluate(() => ({
    paint: performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? null,
    drawings: [...document.querySelectorAll("canvas, svg")].length,
    letters: document.body.innerText.trim().length,
  }));
  await page.close();
  const shows = seen.drawings > 0 ? `${seen.drawings} drawings, first paint ${Math.round(seen.paint)} ms` : "nothing";
  return [name, `${(made / 1000).toFixed(1)} s`, `${(statSync(output).size / 1e6).toFixed(2)} MB`, `${asked.size} hosts asked`, shows];
}

const rows = [["page", "made in", "size", "network", "shown without a network"]];
for (const [place, entry] of commands.entries()) rows.push(await measured(entry, place));
const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
for (const row of rows) console.log(row.map((cell, column) => cell.padEnd(widths[column])).join("  ").trimEnd());
await browser.close();
rmSync(folder, { recursive: true });
