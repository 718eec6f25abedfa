// The page of something that was watched: it opens, draws, zooms, and says the same without scripts.
import assert from "node:assert/strict";
import { test } from "node:test";
import { click, drag, inFolder, lowtide, middle, open, picture, press, text, wheel } from "./support.mjs";

const PROGRAM = `turn=0; while [ $turn -lt 10 ]; do echo 'compile <b>' > $LOWTIDE_MARKS; sleep 0.05; turn=$((turn+1)); done`;
let made;
const watched = () => {
  if (!made) {
    const path = inFolder("watch.html");
    made = { path, numbers: lowtideWatch(path) };
  }
  return made;
};

// The helper puts `--json` behind everything, where it is an argument of the program; so it is given in front as well.
function lowtideWatch(path) {
  return lowtide("watch", "-o", path, "--interval", "0.01", "--json", "--", "sh", "-c", PROGRAM, "sh");
}

test("the page opens without a complaint, draws both charts and keeps to itself", async (t) => {
  const page = await open(t, watched());
  for (const canvas of ["#memory", "#faults"]) assert.ok((await picture(page, canvas)).colours > 3, `${canvas} is blank`);
  assert.match(await text(page, "h1"), /^Memory of sh -c /);
  assert.match(await text(page, "#legend"), /RSS.*anonymous.*peak of compile <b>/);
  assert.doesNotMatch(await text(page, "#legend"), /huge pages/, "there are none");
  assert.equal(await page.locator("head meta[http-equiv=Content-Security-Policy]").count(), 1);
  assert.equal(await page.locator("h1 *, #legend b").count(), 0);
});

test("zooming, moving and letting amounts begin elsewhere change the picture, and 0 brings it back", async (t) => {
  const page = await open(t, watched());
  await page.mouse.move(1, 1);
  const whole = await picture(page, "#memory");
  for (const key of ["+", "ArrowRight", "z", "d"]) {
    const before = await picture(page, "#memory");
    await press(page, key);
    assert.notEqual((await picture(page, "#memory")).digest, before.digest, key);
  }
  await press(page, "z", "d", "0");
  assert.equal((await picture(page, "#memory")).digest, whole.digest);
  const { x, y } = await middle(page, "#memory");
  await drag(page, { x: x - 100, y }, { x: x + 100, y });
  await page.mouse.move(1, 1);
  assert.notEqual((await picture(page, "#memory")).digest, whole.digest);
  await wheel(page, 100, { selector: "#memory" });
  await click(page, "#reset");
  await page.mouse.move(1, 1);
  await press(page, "0");
  assert.equal((await picture(page, "#memory")).digest, whole.digest);
});

test("the pointer tells the numbers of its moment", async (t) => {
  const page = await open(t, watched());
  const { x, y } = await middle(page, "#memory");
  await page.mouse.move(x, y);
  assert.match(await text(page, "#tip"), /RSS [\d.]+ [KM]iB\n.*faults a second/s);
});

test("without scripts the verdict and the table are there", async (t) => {
  const { path, numbers } = watched();
  const page = await open(t, { path }, { javaScriptEnabled: false });
  assert.equal(await text(page, ".verdict"), { warming: "still warming" }[numbers.verdict] ?? numbers.verdict);
  assert.equal(await page.locator("tbody tr").count(), 1);
  assert.match(await text(page, "thead"), /growth each.*RSS after.*verdict/s);
  // How sure it is, or else why.
  assert.match(await text(page, "tbody td:last-child"), /^(too few|(stable|leaking), [\d.]+%|(stable|still warming): .+)$/);
  assert.equal(await page.locator("button:visible, canvas:visible").count(), 0);
});
