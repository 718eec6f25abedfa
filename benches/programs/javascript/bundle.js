// Bundles the modules below FOLDER/index.js into FILE, with short names and without comments and spaces, and writes a
// source map beside it: `node bundle.js FOLDER FILE`. All sources, their tokens and the mappings are in memory at once.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const zlib = require("node:zlib");

const KINDS = {
  space: /\s+|\/\/[^\n]*|\/\*[\s\S]*?\*\//,
  text: /"(?:[^"\\]|\\.)*"|`(?:[^`\\]|\\.)*`/,
  name: /[A-Za-z_$][\w$]*/,
  number: /\d[\w.]*/,
  mark: /=>|===|!==|\+\+|--|&&|\|\||[<>]=|./,
};
const TOKEN = new RegExp(Object.entries(KINDS).map(([kind, { source }]) => `(?<${kind}>${source})`).join("|"), "gy");

/** What the sources have of words that are not theirs to name. */
const KEPT = new Set("console const else exports for function if let module require return".split(" "));

/** Tokens of a text, each with its place. */
function tokens(text) {
  const found = [];
  let line = 0;
  let lineStart = 0;
  for (const match of text.matchAll(TOKEN)) {
    const kind = Object.keys(match.groups).find((name) => match.groups[name] !== undefined);
    if (kind !== "space") {
      found.push({ kind, text: match[0], line, column: match.index - lineStart });
    }
    for (let at = match[0].indexOf("\n"); at >= 0; at = match[0].indexOf("\n", at + 1)) {
      line++;
      lineStart = match.index + at + 1;
    }
  }
  return found;
}

/** The module and all that it requires, those that are required first. */
function load(file, modules = new Map()) {
  if (!modules.has(file)) {
    const text = fs.readFileSync(file, "utf8");
    const module = { file, text, tokens: tokens(text), requires: [] };
    modules.set(file, module);
    for (const [index, token] of module.tokens.entries()) {
      if (token.text === "require" && module.tokens[index + 1]?.text === "(") {
        module.requires.push(path.join(path.dirname(file), `${JSON.parse(module.tokens[index + 2].text)}.js`));
      }
    }
    for (const required of module.requires) load(required, modules);
    // Whoever is required comes first.
    modules.delete(file);
    modules.set(file, module);
  }
  return modules;
}

/** a, b, … z, aa, ab, … */
function shortName(number) {
  const letter = String.fromCharCode(97 + (number % 26));
  return number < 26 ? `$${letter}` : shortName(Math.floor(number / 26) - 1) + letter;
}

/** The names that a module declares or takes, short. Properties keep theirs. */
function rename(module) {
  const names = new Map();
  const list = module.tokens;
  for (const [index, token] of list.entries()) {
    const declares = ["const", "let", "function"].includes(list[index - 1]?.text);
    const takes = ["(", ","].includes(list[index - 1]?.text) && ["=", ",", ")"].includes(list[index + 1]?.text);
    if (token.kind === "name" && (declares || takes) && !KEPT.has(token.text) && !names.has(token.text)) {
      names.set(token.text, shortName(names.size));
    }
  }
  return list.map((token, index) => {
    const isProperty = list[index - 1]?.text === "." || list[index + 1]?.text === ":";
    const short = token.kind === "name" && !isProperty ? names.get(token.text) : undefined;
    const isShorthand = ["{", ","].includes(list[index - 1]?.text) && ["}", ","].includes(list[index + 1]?.text);
    const inLiteral = isShorthand && enclosing(list, index) === "{";
    return { ...token, short: short && inLiteral ? `${token.text}:${short}` : (short ?? token.text) };
  });
}

/** The bracket around a token. */
function enclosing(list, index) {
  let depth = 0;
  for (let at = index - 1; at >= 0; at--) {
    if (")}]".includes(list[at].text)) depth++;
    else if ("({[".includes(list[at].text) && depth-- === 0) return list[at].text;
  }
  return "";
}

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** A number as source maps have it. */
function digits(value) {
  let rest = value < 0 ? (-value << 1) | 1 : value << 1;
  let text = "";
  do {
    text += DIGITS[(rest & 31) | (rest > 31 ? 32 : 0)];
    rest >>>= 5;
  } while (rest > 0);
  return text;
}

/** What a bundle begins with. */
const LOADER = `const modules=[];
const load=(n)=>{const m=modules[n];if(!m.exports)m(m);return m.exports};`;

/** The code of a module with all that it requires, and the source map of that. */
function bundle(entry) {
  const modules = [...load(entry).values()].map((module) => ({ ...module, tokens: rename(module) }));
  const numbers = new Map(modules.map((module, number) => [module.file, number]));
  const mappings = new Array(LOADER.split("\n").length).fill("");
  const lines = [LOADER];
  let [lastSource, lastLine, lastColumn] = [0, 0, 0];
  for (const [source, module] of modules.entries()) {
    let text = `modules[${source}]=module=>{`;
    let lastOut = 0;
    let afterWord = false;
    const segments = [];
    for (let index = 0; index < module.tokens.length; index++) {
      const token = module.tokens[index];
      const moved = [text.length - lastOut, source - lastSource, token.line - lastLine, token.column - lastColumn];
      segments.push(moved.map(digits).join(""));
      [lastOut, lastSource, lastLine, lastColumn] = [text.length, source, token.line, token.column];
      if (token.text === "require") {
        const required = path.join(path.dirname(module.file), `${JSON.parse(module.tokens[index + 2].text)}.js`);
        text += `load(${numbers.get(required)})`;
        index += 3;
        afterWord = false;
        continue;
      }
      const isWord = /^[\w$]/.test(token.short);
      text += (isWord && afterWord ? " " : "") + token.short;
      afterWord = isWord;
    }
    lines.push(`${text}};`);
    mappings.push(segments.join(","));
  }
  lines.push(`load(${modules.length - 1});`);
  const map = {
    version: 3,
    sources: modules.map((module) => path.basename(module.file)),
    sourcesContent: modules.map((module) => module.text),
    names: [],
    mappings: mappings.join(";"),
  };
  return { code: lines.join("\n"), map: JSON.stringify(map) };
}

const [folder, file] = process.argv.slice(2);
const { code, map } = bundle(path.join(folder, "index.js"));
fs.writeFileSync(file, code);
fs.writeFileSync(`${file}.map`, map);
const packed = [zlib.gzipSync(code, { level: 9 }), zlib.brotliCompressSync(map.slice(0, 1 << 21))];
console.log(code.length, map.length, ...packed.map((bytes) => bytes.length));
