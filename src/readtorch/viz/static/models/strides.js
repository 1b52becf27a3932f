// Where the elements of a tensor lie in its storage: as figures/strides.py, function for function.

function model(inputs) {
  const stages = run(inputs),
    [name, x] = stages.at(-1);
  markCopy(inputs, x);
  const index = picked(inputs.index, x.sizes);
  const used = [...new Set(cellsOf(x))].sort((one, other) => one - other);
  return {
    stages: stages.map(([text, stage]) => described(text, stage)),
    places: x.places,
    itemsize: ITEMSIZES[x.dtype],
    index,
    cell: numelOf(x) ? cellOf(x, index) : null,
    used,
    facts: [
      ["contiguous", aboutContiguity(x)],
      ["view", aboutView(x)],
      ["memory", aboutMemory(x, used.length)],
      ["write", aboutWrite(stages, index)],
    ],
    say: said(name, x, index, stages.length),
  };
}
function run({ count, dtype, sizes, strides, offset, program, marks }) {
  const places = range(count).map((cell) => (marks.includes(cell) ? -1 - cell : cell));
  let x = small(placed({ sizes, strides, offset, storage: 0, places, dtype })),
    name = "x";
  const stages = [[name, x]];
  for (const step of stepsOf(program)) {
    try {
      x = small(carryOut(x, step));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      refuse(error.message, { program: name });
    }
    name += step[0];
    stages.push([name, x]);
  }
  return stages;
}
// Note [ Marks ]
function markCopy({ program, copied_by, copied_marks }, x) {
  if (!x.storage || copied_by !== program) return;
  for (const cell of new Set(copied_marks)) if (cell < x.places.length && x.places[cell] >= 0) x.places[cell] = -1 - x.places[cell];
}
function small(x) {
  const [dimensions, numel] = [x.sizes.length, numelOf(x)];
  if (dimensions > MOST_DIMENSIONS)
    refuse(`The figure draws ${MOST_DIMENSIONS} dimensions; this tensor has ${dimensions}.`);
  if (numel > MOST_ELEMENTS) refuse(`The figure draws ${MOST_ELEMENTS} elements; this tensor has ${numel}.`);
  return x;
}
const described = (name, x) => ({
  name, sizes: x.sizes, strides: x.strides, offset: x.offset, storage: x.storage,
  values: cellsOf(x).map((cell) => x.places[cell]),
});

// The nearest index that these sizes have.
const picked = (index, sizes) =>
  index.length !== sizes.length || sizes.includes(0)
    ? sizes.map(() => 0)
    : index.map((i, d) => Math.min(i, sizes[d] - 1));

// ---- sentences

const tupled = (numbers) => `(${numbers.join(", ")}${numbers.length === 1 ? "," : ""})`;

function said(name, x, index, stages) {
  const strides = `${stages > 1 ? "After" : "For"} ${name} the strides are ${tupled(x.strides)}`;
  if (!numelOf(x)) return `${strides}; the sizes are ${tupled(x.sizes)}, so there are no elements.`;
  const copy = x.storage ? " of a new storage" : "";
  const terms = index.map((i, d) => ` + ${i}·${x.strides[d]}`).join("");
  const total = index.length ? `${x.offset}${terms} = ${cellOf(x, index)}` : `${x.offset}`;
  return `${strides}; element ${shapeText(index)} is in cell ${total}${copy}.`;
}
function aboutContiguity(x) {
  if (isContiguous(x)) return "yes: the elements follow one another in the order of their indices.";
  let step = 1;
  for (const d of range(x.sizes.length).reverse()) {
    if (x.sizes[d] !== 1 && x.strides[d] !== step)
      return `no: the stride of dimension ${d} is ${x.strides[d]}, and elements without gaps, in order, need ${step}.`;
    step *= x.sizes[d];
  }
}
// Which dimensions merge, so that view may cut their elements anew.
function aboutView(x) {
  const numel = numelOf(x);
  if (!numel || x.sizes.length < 2) return `any shape with ${plural(numel, "element")}.`;
  // of dimensions with one index nothing is to be cut
  const groups = groupsOf(x.sizes, x.strides).filter((group) => group.some((d) => x.sizes[d] !== 1));
  if (groups.length < 2)
    return `any shape with ${plural(numel, "element")}: all dimensions merge${exampleOfMerging(x, groups)}.`;
  const cut = groups.map((group) => shapeText(group.map((d) => x.sizes[d]))).join(" | ");
  const last = groups.at(-1),
    stride = x.strides[last.at(-1)],
    count = product(last.map((d) => x.sizes[d]));
  return (
    `only shapes that keep the cut ${cut}: dimensions ${last[0] - 1} and ${last[0]} do not merge, because the stride ` +
    `${x.strides[last[0] - 1]} is not ${count}·${stride} = ${count * stride}.`
  );
}
function exampleOfMerging(x, groups) {
  for (const group of groups) {
    const at = group.findIndex((d) => x.sizes[d] !== 1),
      rest = group.slice(at + 1);
    if (rest.length)
      return `, as the stride ${x.strides[group[at]]} is ${product(rest.map((d) => x.sizes[d]))}·${x.strides[group.at(-1)]}`;
  }
  return "";
}
function aboutMemory(x, cells) {
  const itemsize = ITEMSIZES[x.dtype],
    numel = numelOf(x);
  const elements = `${plural(numel, "element")} of ${plural(itemsize, "byte")}`;
  const shared =
    cells < numel
      ? `${elements} in ${plural(cells, "cell")}: some share a cell.`
      : `${elements}, each in a cell of its own.`;
  return `${shared} The storage has ${x.places.length * itemsize} bytes.`;
}
// Where else a value is seen that is written to the picked element.
function aboutWrite(stages, index) {
  const [first, base] = stages[0],
    [name, x] = stages.at(-1);
  if (!numelOf(x)) return "there is nothing to write to.";
  if (x.storage)
    return `what is written to ${name}${index.length ? shapeText(index) : ""} stays in the new storage; x does not see it.`;
  const cell = cellOf(x, index);
  const seenIn = ([text, y]) =>
    indicesOf(y.sizes).filter((at) => cellOf(y, at) === cell).map((at) => text + (at.length ? shapeText(at) : ""));
  const seen = [...seenIn([first, base]), ...(stages.length > 1 ? seenIn([name, x]) : [])];
  const others = seen.length > 4 ? ` and ${seen.length - 4} more` : "";
  return `cell ${cell} is seen as ${seen.slice(0, 4).join(", ")}${others}.`;
}
