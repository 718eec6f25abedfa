// The data of the page: base64, gzip, then columns of numbers in groups of seven bits. docs/formats.md describes it.

function bytesOfBase64(text) {
  const trimmed = text.trim();
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(trimmed);
  const letters = atob(trimmed);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i += 1) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

async function inflated(element) {
  const packed = bytesOfBase64(element.textContent);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

class Column {
  constructor(bytes) {
    this.bytes = bytes;
    this.place = 0;
  }

  number() {
    let value = 0;
    let scale = 1;
    for (;;) {
      const byte = this.bytes[this.place++];
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) return value;
      scale *= 128;
    }
  }

  signed() {
    const folded = this.number();
    return folded % 2 === 0 ? folded / 2 : -(folded + 1) / 2;
  }

  numbers(count) {
    const values = new Float64Array(count);
    for (let i = 0; i < count; i += 1) values[i] = this.number();
    return values;
  }

  differences(count) {
    const values = new Float64Array(count);
    let before = 0;
    for (let i = 0; i < count; i += 1) values[i] = before += this.signed();
    return values;
  }
}

// A usage file: who lives when, how large, and where in each layout.
function readUsage(bytes) {
  const text = new TextDecoder();
  const start = text.decode(bytes.subarray(0, 16));
  if (start !== "lowtide usage 1\n") throw new Error("unknown data");
  const length = new DataView(bytes.buffer, bytes.byteOffset + 16).getUint32(0, true);
  const header = JSON.parse(text.decode(bytes.subarray(20, 20 + length)));
  const columns = new Map();
  let place = 20 + length;
  for (const [name, size] of header.columns) {
    columns.set(name, bytes.subarray(place, place + size));
    place += size;
  }
  const count = header.buffers;
  const column = (name) => (columns.has(name) ? new Column(columns.get(name)) : null);
  // Some columns hold multiples of what they have in common.
  const inUnits = (name, values) => {
    const unit = header.units?.[name] ?? 1;
    if (unit !== 1) for (let i = 0; i < values.length; i += 1) values[i] *= unit;
    return values;
  };
  const lower = column("lower").differences(count);
  const upper = column("length").numbers(count);
  for (let i = 0; i < count; i += 1) upper[i] += lower[i];
  const freed = column("freed")?.numbers(count);
  const clock = header.clock ? { first: header.clock[0], every: header.clock_every ?? 1, readings: inUnits("clock", column("clock").differences(header.clock[1])) } : null;
  const gaps = new Map();
  for (const [buffer, from, to, stays] of header.gaps ?? []) {
    if (!gaps.has(buffer)) gaps.set(buffer, []);
    gaps.get(buffer).push({ from, to, stays });
  }
  const aliases = new Map();
  for (const set of header.aliases ?? []) for (const member of set) aliases.set(member, set);
  return {
    header, count, lower, upper, gaps, aliases, clock,
    size: inUnits("size", column("size").numbers(count)),
    pool: column("pool")?.numbers(count) ?? null,
    site: column("site")?.numbers(count) ?? null,
    stream: column("stream")?.numbers(count) ?? null,
    freedAt: (buffer) => {
      const folded = freed ? freed[buffer] - 1 : -1;
      return folded < 0 ? null : lower[buffer] + (folded % 2 === 0 ? folded / 2 : -(folded + 1) / 2);
    },
    names: readNames(columns.get("id"), count),
    offsets: (header.layouts ?? []).map((_, i) => inUnits(`offset ${i}`, column(`offset ${i}`).differences(count))),
    pools: (header.layouts ?? []).map((_, i) => column(`pool ${i}`)?.numbers(count) ?? null),
  };
}

// Names are read when somebody asks: most pages of a million buffers show a few dozen of them.
function readNames(bytes, count) {
  if (!bytes) return { get: (buffer) => String(buffer) };
  let names = null;
  const text = new TextDecoder();
  const read = () => {
    const column = new Column(bytes);
    const all = new Array(count);
    let before = new Uint8Array(0);
    for (let i = 0; i < count; i += 1) {
      const common = column.number();
      const rest = column.number();
      const name = new Uint8Array(common + rest);
      name.set(before.subarray(0, common));
      name.set(bytes.subarray(column.place, column.place + rest), common);
      column.place += rest;
      all[i] = text.decode(name);
      before = name;
    }
    return all;
  };
  return { get: (buffer) => (names ??= read())[buffer] };
}
