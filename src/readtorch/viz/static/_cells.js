// Cells of memory for the viewer of accesses: their numbers, their names, and how they are drawn.

const SECTOR = 32, // bytes
  BANKS = 32,
  LANES = 32;
const DONE = { read: "reads", write: "writes", atomic: "updates" };

const cellBytes = (n) => (n >= 10240 ? `${Number((n / 1024).toPrecision(3))} KiB` : `${n} B`);
const listText = (texts) => texts.join("; ") || "nothing";
const range = (from, to) => Array.from({ length: to - from }, (_, i) => from + i);
const indexText = (index) => index.join(", ");

// ---- steps: a barrier is [scope, warp or -1, place],
//      an access [kind, warp, place, array, progressions of cells, cost, least]

const isAccess = (step) => step.length > 3;

// [[lane, cell], …] of an access, from its progressions
function lanesOf([, , , , progressions]) {
  return progressions.flatMap(([lane, count, cell, stride]) =>
    range(0, count).map((k) => [lane + k, cell + k * stride]),
  );
}

// The index of a cell in its array; null where padding of a view lies.
function indexOf({ strides, shape }, cell) {
  const order = strides.map((stride, d) => d).sort((a, b) => strides[b] - strides[a]);
  const index = strides.map(() => 0);
  for (const d of order.filter((d) => strides[d] > 0)) {
    index[d] = Math.floor(cell / strides[d]);
    cell -= index[d] * strides[d];
  }
  return cell || index.some((i, d) => i >= shape[d]) ? null : index;
}
function cellName(array, cell) {
  const index = indexOf(array, cell);
  return index ? `${array.name}[${indexText(index)}]` : `${array.name} + ${cell * array.itemsize} B`;
}
const bankOf = ({ address, itemsize }, cell) => Math.floor((address + cell * itemsize) / 4) % BANKS;
const sectorOf = ({ address, itemsize }, cell) => Math.floor((address + cell * itemsize) / SECTOR);

const wordsOfPlace = (array, cell) =>
  array.space === "shared" ? `bank ${bankOf(array, cell)}` : `sector ${sectorOf(array, cell)}`;

// What had been done to the cells of each array before a step, and by which threads.
function pastOf({ steps, arrays }, now) {
  const past = arrays.map(() => ({ read: new Set(), write: new Set() }));
  for (const step of steps.slice(0, now).filter(isAccess)) {
    const { read, write } = past[step[3]];
    for (const [, cell] of lanesOf(step)) (step[0] === "read" ? read : write).add(cell);
  }
  return past;
}

// ---- drawing cells

// A path of squares; `inset` is what stays free around each.
function squares(places, size, inset) {
  const side = (size - 2 * inset).toFixed(2);
  return places
    .map(([x, y]) => `M${(x + inset).toFixed(2)} ${(y + inset).toFixed(2)}h${side}v${side}h-${side}z`)
    .join("");
}
const layer = (name, places, size, inset = 0.5) =>
  places.length ? s("path", { class: `rt-k-${name}`, d: squares(places, size, inset) }) : "";

// What happens now has a form for each kind: a full square, one with a hole, a cross.
function marks(kind, places, size) {
  const middle = places.map(([x, y]) => [x + size / 3, y + size / 3]);
  const cross = places
    .map(([x, y]) => `M${x + 1} ${y + 1}l${size - 2} ${size - 2}m${2 - size} 0l${size - 2} ${2 - size}`)
    .join("");
  return [
    layer(`now-${kind}`, places, size),
    kind === "write" ? layer("hole", middle, size / 3, 0) : "",
    kind === "atomic" ? s("path", { class: "rt-k-cross", d: cross }) : "",
  ];
}

// An outline around each sector that moves; one that goes over the end of a row has two.
function sectors(array, cells, first, columns, size) {
  const { address, itemsize, low, high } = array;
  const boxes = [...new Set(cells.map((cell) => sectorOf(array, cell)))].flatMap((sector) => {
    const from = Math.max(low, Math.floor((sector * SECTOR - address) / itemsize)) - first;
    const to = Math.min(high, Math.ceil(((sector + 1) * SECTOR - address) / itemsize)) - first;
    const rows = range(Math.floor(from / columns), Math.ceil(to / columns));
    return rows.map((row) => [Math.max(from, row * columns), Math.min(to, (row + 1) * columns), row]);
  });
  const d = boxes.map(([from, to, row]) => {
    const wide = (to - from) * size;
    return `M${1 + (from - row * columns) * size} ${1 + row * size}h${wide}v${size}h-${wide}z`;
  });
  return s("path", { class: "rt-k-sector", d: d.join("") });
}
// How many different words each bank has to give.
function bankBars({ address, itemsize }, cells, top, width) {
  const words = new Set();
  for (const cell of cells)
    for (let byte = address + cell * itemsize, end = byte + itemsize; byte < end; byte += 4)
      words.add(Math.floor(byte / 4));
  const counts = Array(BANKS).fill(0);
  for (const word of words) counts[word % BANKS] += 1;
  const wide = width / BANKS - 1;
  const tallest = Math.max(...counts, 1);
  const d = counts.map((n, bank) => {
    const tall = (n / tallest) * 20;
    return n ? `M${1 + bank * (wide + 1)} ${top + 22 - tall}h${wide}v${tall}h-${wide}z` : "";
  });
  const base = s("path", { class: "rt-gridline", d: `M1 ${top + 22.5}h${width}` });
  return [base, s("path", { class: tallest > Math.max(1, itemsize / 4) ? "rt-k-conflict" : "rt-k-bank", d: d.join("") })];
}

// Scroll a box of source so that a line of it can be seen.
function revealLine(box, line) {
  const top = line && line.offsetTop - box.offsetTop;
  if (line) revealIn(box, 0, top, 0, top + line.offsetHeight);
}

const table = (head, rows, label) =>
  h(
    "div",
    { class: "rt-scrollx", tabindex: 0, role: "group", "aria-label": label },
    h(
      "table",
      { class: "rt-busy" },
      h("thead", {}, h("tr", {}, head.map((text) => h("th", { scope: "col" }, text)))),
      h("tbody", {}, rows),
    ),
  );
