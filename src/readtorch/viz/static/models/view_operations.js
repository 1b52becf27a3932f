// Operations that give a view, on sizes, strides and offset alone: as view_operations.py, function for function.

const MOST_ELEMENTS = 100;
const MOST_DIMENSIONS = 5;
const ITEMSIZES = {bool: 1, uint8: 1, int8: 1, int16: 2, int32: 4, int64: 8, float16: 2, bfloat16: 2, float32: 4, float64: 8};
const CLASSES = {
  bool: "CPUBoolType",
  uint8: "torch.ByteTensor",
  int8: "torch.CharTensor",
  int16: "torch.ShortTensor",
  int32: "torch.IntTensor",
  int64: "torch.LongTensor",
  float16: "torch.HalfTensor",
  bfloat16: "CPUBFloat16Type",
  float32: "torch.FloatTensor",
  float64: "torch.DoubleTensor",
};

const error = (kind, text) => refuse(`${kind}: ${text}`);
const product = (numbers) => numbers.reduce((one, other) => one * other, 1);
const numelOf = (x) => product(x.sizes);
const withNumbers = (x, sizes, strides, offset = x.offset) => ({ ...x, sizes, strides, offset });
const cellOf = (x, index) => x.offset + index.reduce((sum, i, d) => sum + i * x.strides[d], 0);
const range = (count) => Array.from({ length: count }, (_, i) => i);
const indicesOf = (sizes) =>
  sizes.reduce((found, size) => found.flatMap((index) => range(size).map((i) => [...index, i])), [[]]);
const cellsOf = (x) => indicesOf(x.sizes).map((index) => cellOf(x, index));

function denseStrides(sizes) {
  const strides = [];
  let step = 1;
  for (const size of [...sizes].reverse()) {
    strides.unshift(step);
    step *= Math.max(size, 1);
  }
  return strides;
}

// ---- reading a program

const CALL = /\s*\.\s*([a-z_]+)\s*\(((?:[^()]|\([^()]*\))*)\)/y;
const TURNED = /\s*\.\s*T(?![a-zA-Z_0-9])/y;
const LIST = /\s*\[\s*\[([^\[\]]*)\]\s*\]/y;
const INDEX = /\s*\[([^\[\]]*)\]/y;
const ARGUMENT = /[(\[][^()\[\]]*[)\]]|[^,()\[\]]+/g;

function matchAt(pattern, text, at) {
  pattern.lastIndex = at;
  return pattern.exec(text);
}
function stepsOf(program) {
  if (!program.startsWith("x")) refuse("A program begins with x, such as x.t().reshape(12).");
  const steps = [];
  for (let at = 1; at < program.length; ) {
    const [call, turned, listed, index] = [CALL, TURNED, LIST, INDEX].map((pattern) => matchAt(pattern, program, at));
    const found = call ?? turned ?? listed ?? index;
    if (!found && /^\s*\.\s*mT\b/.test(program.slice(at)))
      refuse("The figure does not know mT; use .t() or .transpose(-2, -1).");
    if (!found) refuse(`The program cannot be read from "${program.slice(at).trim()}" on.`);
    if (call && !Object.hasOwn(OPERATIONS, call[1]))
      refuse(`The figure does not know ${call[1]}; it knows ${Object.keys(OPERATIONS).join(", ")}.`);
    const text = found[0].trim();
    if (call) steps.push([text, call[1], argumentsOf(call[2])]);
    else if (turned) steps.push([text, ".T", []]);
    else if (index && /[<>=!]/.test(index[1])) refuse(`The figure does not read masks; x${text} is a copy.`);
    else if (listed) refuse(`The figure does not read lists of indices; x${text} is a copy.`);
    else steps.push([text, "[]", index[1]]);
    at += found[0].length;
  }
  return steps;
}
function whole(text) {
  if (text.trim().startsWith("torch.") || Object.hasOwn(ITEMSIZES, text.trim())) refuse("The figure does not reinterpret bytes.");
  return INTEGER.test(text.trim()) ? Number(text) + 0 : refuse(`"${text.trim()}" is not a whole number.`);
}
const argumentsOf = (text) =>
  (text.match(ARGUMENT) ?? [])
    .map((part) => part.trim())
    .filter(Boolean)
    .map((part) =>
      /^[(\[]/.test(part)
        ? part.slice(1, -1).split(",").filter((one) => one.trim()).map(whole)
        : whole(part),
    );

// Sizes may come as one list or one by one.
const flat = (found) => (found.length === 1 && Array.isArray(found[0]) ? found[0] : found);

// ---- operations: each takes a tensor and the arguments

const modulo = (number, count) => ((number % count) + count) % count;
function wrapped(dim, count) {
  const most = Math.max(count, 1);
  if (dim < -most || dim >= most) {
    const expected = `[${-most}, ${most - 1}]`;
    error("IndexError", `Dimension out of range (expected to be in range of ${expected}, but got ${dim})`);
  }
  return modulo(dim, most);
}
const reordered = (x, order) =>
  withNumbers(x, order.map((d) => x.sizes[d]), order.map((d) => x.strides[d]));

function t(x) {
  if (x.sizes.length > 2)
    error("RuntimeError", `t() expects a tensor with <= 2 dimensions, but self is ${x.sizes.length}D`);
  return reordered(x, range(x.sizes.length).reverse());
}
function transpose(x, one, other) {
  const [first, second] = [one, other].map((dim) => wrapped(dim, x.sizes.length));
  const order = range(x.sizes.length);
  if (order.length) [order[first], order[second]] = [second, first];
  return reordered(x, order);
}
function permute(x, ...found) {
  const dims = flat(found);
  if (dims.length !== x.sizes.length)
    error(
      "RuntimeError",
      "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired " +
        `ordering of dimensions i.e. input.dim() = ${x.sizes.length} is not equal to len(dims) = ${dims.length}`,
    );
  const order = [];
  for (const dim of dims) {
    const d = wrapped(dim, x.sizes.length);
    if (order.includes(d)) error("RuntimeError", "permute(): duplicate dims are not allowed.");
    order.push(d);
  }
  return reordered(x, order);
}

// A shape in which -1 is replaced by what is left.
function inferred(shape, numel) {
  let known = 1,
    open = null;
  shape.forEach((size, at) => {
    if (size === -1) {
      if (open !== null) error("RuntimeError", "only one dimension can be inferred");
      open = at;
    } else if (size < 0)
      error("RuntimeError", `invalid shape dimension ${size} at index ${at} of shape ${shapeText(shape)}`);
    else known *= size;
  });
  if (numel !== known && (open === null || known === 0 || numel % known))
    error("RuntimeError", `shape '${shapeText(shape)}' is invalid for input of size ${numel}`);
  if (open === null) return shape;
  if (known === 0)
    error(
      "RuntimeError",
      `cannot reshape tensor of 0 elements into shape ${shapeText(shape)} because the unspecified dimension size -1 can be ` +
        "any value and is ambiguous",
    );
  return shape.map((size) => (size === -1 ? numel / known : size));
}

// Which neighbouring dimensions lie in memory as one: lists of dimensions, from the first.
function groupsOf(sizes, strides) {
  const groups = [];
  const reach = (group) => strides[group.at(-1)] * product(group.map((d) => sizes[d]));
  for (const d of range(sizes.length).reverse()) {
    if (groups.length && (sizes[d] === 1 || strides[d] === reach(groups[0]))) groups[0].unshift(d);
    else groups.unshift([d]);
  }
  return groups;
}

// The strides with which the elements have that shape, or null when they must be copied. In PyTorch: computeStride.
function viewStrides(x, shape) {
  if (!x.sizes.length) return shape.map(() => 1);
  if (numelOf(x) === 0) return equal(shape, x.sizes) ? x.strides : denseStrides(shape);
  const strides = shape.map(() => 0);
  let d = shape.length - 1;
  for (const group of groupsOf(x.sizes, x.strides).reverse()) {
    const wanted = product(group.map((i) => x.sizes[i]));
    let taken = 1;
    for (; d >= 0 && (taken < wanted || shape[d] === 1); d--) {
      strides[d] = taken * x.strides[group.at(-1)];
      taken *= shape[d];
    }
    if (taken !== wanted) return null;
  }
  return d === -1 ? strides : null;
}
function view(x, ...found) {
  const shape = inferred(flat(found), numelOf(x)),
    strides = viewStrides(x, shape);
  if (strides === null)
    error(
      "RuntimeError",
      "view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous " +
        "subspaces). Use .reshape(...) instead.",
    );
  return withNumbers(x, shape, strides);
}
function reshape(x, ...found) {
  const shape = inferred(flat(found), numelOf(x)),
    strides = viewStrides(x, shape);
  return strides === null ? copied(x, shape) : withNumbers(x, shape, strides);
}
const flatten = (x) => (x.sizes.length === 1 ? x : reshape(x, numelOf(x)));
const contiguous = (x) => (isContiguous(x) ? x : copied(x, x.sizes));

// The elements in a storage of their own.
const copied = (x, shape) => ({
  ...x, sizes: shape, strides: denseStrides(shape), offset: 0, storage: x.storage + 1,
  places: cellsOf(x).map((cell) => x.places[cell]),
});

// A copy without gaps that keeps the order of the dimensions.
const clone = (x) => inOrderOf(x, cellsOf(x).map((cell) => x.places[cell]));

// A copy, as no stride is negative.
function flip(x, ...found) {
  const seen = [];
  for (const dim of flat(found).map((one) => wrapped(one, x.sizes.length))) {
    if (seen.includes(dim)) error("RuntimeError", `dim ${dim} appears multiple times in the list of dims`);
    seen.push(dim);
  }
  const mirrored = indicesOf(x.sizes).map((at) => at.map((i, d) => (seen.includes(d) ? x.sizes[d] - 1 - i : i)));
  return inOrderOf(x, mirrored.map((index) => x.places[cellOf(x, index)]));
}
// A new storage for the elements of x, which get these values, laid out as x is. In PyTorch: empty_like.
function inOrderOf(x, values) {
  const strides = isDense(x) ? x.strides : inferredStrides(x);
  const like = { ...x, strides, offset: 0, storage: x.storage + 1, places: values.map(() => 0) };
  cellsOf(like).forEach((cell, at) => (like.places[cell] = values[at]));
  return like;
}
// Whether the elements lie one after the other, in some order of the dimensions; where there are none, they do.
function isDense(x) {
  const dims = range(x.sizes.length).filter((d) => x.sizes[d] > 1);
  dims.sort((d, other) => x.strides[d] - x.strides[other] || x.sizes[d] - x.sizes[other]);
  let step = 1;
  for (const d of dims) {
    if (x.strides[d] !== step && numelOf(x)) return false;
    step *= x.sizes[d];
  }
  return true;
}
// Strides without gaps, in the order of those of x; a stride of 0 stays where it is. In PyTorch: infer_dense_strides.
function inferredStrides(x) {
  const order = range(x.sizes.length).reverse();
  for (let last = 1; last < order.length; last++) {
    let at = last;
    for (let before = last - 1; before >= 0; before--) {
      const way = comesAfter(x, order[before], order[at]);
      if (way < 0) break;
      if (way > 0) {
        [order[before], order[at]] = [order[at], order[before]];
        at = before;
      }
    }
  }
  const strides = order.map(() => 0);
  let step = 1;
  for (const d of order) {
    strides[d] = step;
    step *= x.sizes[d];
  }
  return strides;
}
// 1 if dimension d takes longer steps than the other, -1 if shorter, 0 if either order will do.
function comesAfter({ sizes, strides }, d, other) {
  if (!strides[d] || !strides[other]) return 0;
  if (strides[d] !== strides[other]) return strides[d] > strides[other] ? 1 : -1;
  return Number(sizes[d] > sizes[other]);
}
const detach = (x) => x;

// Of the first two dimensions.
function diagonal(x, offset = 0) {
  wrapped(0, x.sizes.length);
  wrapped(1, x.sizes.length);
  const down = Math.max(-offset, 0),
    right = Math.max(offset, 0);
  const length = Math.max(Math.min(x.sizes[0] - down, x.sizes[1] - right), 0);
  const start = length ? down * x.strides[0] + right * x.strides[1] : 0;
  const strides = [...x.strides.slice(2), x.strides[0] + x.strides[1]];
  return withNumbers(x, [...x.sizes.slice(2), length], strides, x.offset + start);
}

function isContiguous(x) {
  let step = 1;
  for (const d of range(x.sizes.length).reverse()) {
    if (x.sizes[d] !== 1 && x.strides[d] !== step && numelOf(x)) return false;
    step *= x.sizes[d];
  }
  return true;
}
function expand(x, ...found) {
  const sizes = flat(found);
  if (!x.sizes.length) {
    if (Math.min(0, ...sizes) < 0) error("RuntimeError", "numel: integer multiplication overflow");
    return withNumbers(x, sizes, sizes.map(() => 0));
  }
  const fresh = sizes.length - x.sizes.length;
  if (fresh < 0)
    error(
      "RuntimeError",
      `expand(${CLASSES[x.dtype]}{${shapeText(x.sizes)}}, size=${shapeText(sizes)}): the number of sizes provided ` +
        `(${sizes.length}) must be greater or equal to the number of dimensions in the tensor (${x.sizes.length})`,
    );
  const grown = [],
    strides = [];
  for (const d of range(sizes.length).reverse()) {
    const old = d >= fresh ? x.sizes[d - fresh] : 1;
    let size = sizes[d],
      stride = d >= fresh ? x.strides[d - fresh] : grown.length ? grown[0] * strides[0] : 1;
    if (size === -1) {
      if (d < fresh)
        error(
          "RuntimeError",
          `The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension ${d}`,
        );
      size = old;
    }
    if (old !== size) {
      if (old !== 1)
        error(
          "RuntimeError",
          `The expanded size of the tensor (${size}) must match the existing size (${old}) at non-singleton dimension ${d}.  ` +
            `Target sizes: ${shapeText(sizes)}.  Tensor sizes: ${shapeText(x.sizes)}`,
        );
      stride = 0;
    }
    grown.unshift(size);
    strides.unshift(stride);
  }
  return withNumbers(x, grown, strides);
}
function narrow(x, dimension, from, length) {
  if (!x.sizes.length) error("RuntimeError", "narrow() cannot be applied to a 0-dim tensor.");
  if (length < 0) error("RuntimeError", "narrow(): length must be non-negative.");
  const dim = wrapped(dimension, x.sizes.length),
    size = x.sizes[dim];
  if (from < -size || from > size)
    error("IndexError", `start out of range (expected to be in range of [${0 - size}, ${size}], but got ${from})`);
  const start = from < 0 ? from + size : from;
  if (start + length > size)
    error("RuntimeError", `start (${start}) + length (${length}) exceeds dimension size (${size}).`);
  return sliced(x, dim, start, start + length, 1);
}
function sliced(x, dim, start, stop, step) {
  const sizes = x.sizes.with(dim, Math.ceil(Math.max(0, stop - start) / step)),
    strides = x.strides.with(dim, x.strides[dim] * step);
  return withNumbers(x, sizes, strides, x.offset + start * x.strides[dim]);
}
function select(x, dimension, index) {
  if (!x.sizes.length) error("IndexError", "select() cannot be applied to a 0-dim tensor.");
  const dim = wrapped(dimension, x.sizes.length),
    size = x.sizes[dim];
  if (index < -size || index >= size)
    error(
      "IndexError",
      `select(): index ${index} out of range for tensor of size ${shapeText(x.sizes)} at dimension ${dim}`,
    );
  return selected(x, dim, modulo(index, size));
}
const selected = (x, dim, index) =>
  withNumbers(x, x.sizes.toSpliced(dim, 1), x.strides.toSpliced(dim, 1), x.offset + index * x.strides[dim]);

function unfold(x, dimension, size, step) {
  const dim = wrapped(dimension, x.sizes.length),
    [old, stride] = x.sizes.length ? [x.sizes[dim], x.strides[dim]] : [1, 1];
  if (size < 0) error("RuntimeError", `size is ${size} but must be >= 0`);
  if (size > old) error("RuntimeError", `maximum size for tensor at dimension ${dim} is ${old} but size is ${size}`);
  if (step <= 0) error("RuntimeError", `step is ${step} but must be > 0`);
  const sizes = [...x.sizes, size],
    strides = [...x.strides, stride];
  if (x.sizes.length) [sizes[dim], strides[dim]] = [Math.floor((old - size) / step) + 1, step * stride];
  return withNumbers(x, sizes, strides);
}
const asStrided = (x, sizes, strides, offset = x.offset) => placed(withNumbers(x, sizes, strides, offset));

// The tensor, if its elements lie within its storage.
function placed(x) {
  const itemsize = ITEMSIZES[x.dtype],
    [sizes, strides] = [x.sizes, x.strides].map(shapeText);
  if (x.sizes.length !== x.strides.length) error("RuntimeError", "mismatch in length of strides and shape");
  if (Math.min(0, ...x.strides) < 0)
    error("RuntimeError", `as_strided: Negative strides are not supported at the moment, got strides: ${strides}`);
  if (x.offset < 0) error("RuntimeError", `Tensor: invalid storage offset ${x.offset}`);
  if (Math.min(0, ...x.sizes) < 0)
    error("RuntimeError", `Storage size calculation overflowed with sizes=${sizes} and strides=${strides}`);
  const last = cellOf(x, x.sizes.map((size) => size - 1));
  if (numelOf(x) && last >= x.places.length)
    error(
      "RuntimeError",
      `setStorage: sizes ${sizes}, strides ${strides}, storage offset ${x.offset}, and itemsize ${itemsize} requiring a storage ` +
        `size of ${(last + 1) * itemsize} are out of bounds for storage of size ${x.places.length * itemsize}`,
    );
  return x;
}
function unsqueeze(x, dimension) {
  const dim = wrapped(dimension, x.sizes.length + 1);
  const stride = dim < x.sizes.length ? x.sizes[dim] * x.strides[dim] : 1;
  return withNumbers(x, x.sizes.toSpliced(dim, 0, 1), x.strides.toSpliced(dim, 0, stride));
}
function squeeze(x, dimension = null) {
  const dims = range(x.sizes.length);
  const gone = dimension === null ? dims : [wrapped(dimension, x.sizes.length)];
  return reordered(x, dims.filter((d) => !gone.includes(d) || x.sizes[d] !== 1));
}

// ---- the table: an operation, an example of it, and whether its arguments fit

const SIZES = "sizes"; // any number of them, or one list
const OPERATIONS = {
  t: [t, "t()", 0, 0],
  transpose: [transpose, "transpose(0, 1)", 2, 2],
  permute: [permute, "permute(1, 0)", SIZES],
  view: [view, "view(2, 6)", SIZES],
  reshape: [reshape, "reshape(2, 6)", SIZES],
  flatten: [flatten, "flatten()", 0, 0],
  contiguous: [contiguous, "contiguous()", 0, 0],
  expand: [expand, "expand(2, -1, -1)", SIZES],
  narrow: [narrow, "narrow(0, 1, 2)", 3, 3],
  select: [select, "select(0, 1)", 2, 2],
  unfold: [unfold, "unfold(0, 2, 1)", 3, 3],
  as_strided: [asStrided, "as_strided((2, 2), (1, 1), 0)", 2, 3],
  unsqueeze: [unsqueeze, "unsqueeze(0)", 1, 1],
  squeeze: [squeeze, "squeeze(0)", 0, 1],
  diagonal: [diagonal, "diagonal()", 0, 1],
  detach: [detach, "detach()", 0, 0],
  clone: [clone, "clone()", 0, 0],
  flip: [flip, "flip(0)", SIZES],
};

function fits(name, found) {
  const lists = found.map(Array.isArray),
    [, , low, high] = OPERATIONS[name];
  if (low === SIZES) return found.length > 0 && (equal(lists, [true]) || !lists.includes(true));
  if (name === "as_strided") return equal(lists, [true, true]) || equal(lists, [true, true, false]);
  return low <= found.length && found.length <= high && !lists.includes(true);
}
function carryOut(x, [, name, found]) {
  if (name === "[]") return indexed(x, found);
  if (name === ".T") return reordered(x, range(x.sizes.length).reverse());
  const [operation, example] = OPERATIONS[name];
  return fits(name, found) ? operation(x, ...found) : refuse(`Write ${name} as in x.${example}.`);
}

// ---- indexing

function indexed(x, text) {
  const items = text.split(",").map((item) => item.trim());
  if (items.length > 1 && items.at(-1) === "") items.pop();
  if (items.filter((item) => item === "...").length > 1) refuse("The figure reads one ... in an index.");
  const used = items.filter((item) => item !== "None" && item !== "...").length;
  if (used > x.sizes.length && (x.sizes.length || items.length > 1))
    error("IndexError", `too many indices for tensor of dimension ${x.sizes.length}`);
  let dim = 0;
  items.forEach((item, position) => {
    if (item === "None") x = unsqueeze(x, dim++);
    else if (item === "...")
      dim += x.sizes.length - dim - items.slice(position + 1).filter((later) => later !== "None").length;
    else if (item.includes(":")) x = sliceItem(x, dim++, item);
    else x = numberItem(x, dim, whole(item), position);
  });
  return x;
}
function sliceItem(x, dim, item) {
  if (!x.sizes.length) error("IndexError", "slice() cannot be applied to a 0-dim tensor.");
  const parts = item.split(":");
  if (parts.length > 3) refuse(`"${item}" is not a slice.`);
  const [from, to, by] = [...parts, "", ""].slice(0, 3).map((part) => (part.trim() ? whole(part) : null));
  if (by === 0) error("ValueError", "slice step cannot be zero");
  if (by !== null && by < 0) error("ValueError", "step must be greater than zero");
  const size = x.sizes[dim];
  const clamped = (at) => Math.min(size, Math.max(0, at < 0 ? at + size : at));
  const start = clamped(from ?? 0);
  return sliced(x, dim, start, Math.max(start, clamped(to ?? size)), by ?? 1);
}
function numberItem(x, dim, index, position) {
  if (!x.sizes.length && index === 0)
    error(
      "IndexError",
      "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a 0-dim " +
        "tensor to a number",
    );
  const size = x.sizes.length ? x.sizes[dim] : 0;
  if (index < -size || index >= size)
    error("IndexError", `index ${index} is out of bounds for dimension ${position} with size ${size}`);
  return selected(x, dim, modulo(index, size));
}
