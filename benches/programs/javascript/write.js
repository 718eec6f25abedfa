// Writes a source tree of modules that import each other: `node write.js FOLDER MODULES`.
"use strict";
const fs = require("node:fs");
const path = require("node:path");

const [folder, modules] = [process.argv[2], Number(process.argv[3])];
const FUNCTIONS = 24;

function body(module, number) {
  const first = (module * 31 + number * 7) % 89;
  return `
/** Counts what the numbers below \`limit\` come to, way ${number} of module ${module}. */
function way${number}(limit, start = ${first}) {
  const totals = [];
  let running = start;
  for (let step = 0; step < limit; step++) {
    const part = (running * ${2 * number + 3} + step * ${module + 1}) % 65521;
    if (part % 3 === 0) {
      totals.push({ step, part, label: "part of " + ${number} });
    } else if (part % 5 === 1 && step > 2) {
      running = running + part - ${first}; // a step aside
    }
    running = (running + part) % 1048573;
  }
  return totals.reduce((sum, one) => (sum * 31 + one.part + one.label.length) % 1000003, running);
}
`;
}

fs.mkdirSync(folder);
for (let module = 0; module < modules; module++) {
  const others = [1, 2, 5].map((distance) => module - distance).filter((other) => other >= 0);
  const imports = others.map((other) => `const from${other} = require("./module${other}");\n`);
  const ways = Array.from({ length: FUNCTIONS }, (_, number) => body(module, number));
  const sum = Array.from({ length: FUNCTIONS }, (_, number) => `way${number}(limit)`).join(" +\n    ");
  const calls = others.map((other) => ` + from${other}.known`).join("");
  const end = `
const known = (way${module % FUNCTIONS}(9)${calls}) % 1000003;
function all(limit) {
  return (${sum} + known) % 1000003;
}
module.exports = { all, known };
`;
  fs.writeFileSync(path.join(folder, `module${module}.js`), imports.join("") + ways.join("") + end);
}
const last = Array.from({ length: modules }, (_, module) => `require("./module${module}").all(20)`).join(" +\n  ");
fs.writeFileSync(path.join(folder, "index.js"), `console.log(${last});\n`);
