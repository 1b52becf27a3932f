// What the figures that run small tensor programs share, as broadcasting.py: PyTorch's errors, broadcasting, and who waits
// for whom in a graph.

// What Python or PyTorch raises: its kind and its words.
class Raised extends Error {
  constructor(words, kind = "RuntimeError") {
    super(`${kind}: ${words}`);
  }
}
const raise = (words, kind) => {
  throw new Raised(words, kind);
};

const countOf = (shape) => shape.reduce((count, size) => count * size, 1);

// For each element of an array of the shape `larger`, the place of its partner in one of `shape`.
function partners(shape, larger) {
  const steps = [];
  let step = 1;
  for (const size of [...shape].reverse()) {
    steps.unshift(size === 1 ? 0 : step);
    step *= size;
  }
  while (steps.length < larger.length) steps.unshift(0);
  return larger.reduce(
    (found, size, dim) => found.flatMap((place) => Array.from({ length: size }, (_, i) => place + i * steps[dim])),
    [0],
  );
}

// The shape of a * b. Raises.
function broadcast(a, b) {
  const rank = Math.max(a.length, b.length);
  const filled = (shape) => [...Array(rank - shape.length).fill(1), ...shape];
  const [left, right] = [filled(a), filled(b)];
  for (let dim = rank - 1; dim >= 0; dim--)
    if (left[dim] !== right[dim] && left[dim] !== 1 && right[dim] !== 1)
      raise(
        `The size of tensor a (${left[dim]}) must match the size of tensor b (${right[dim]}) at non-singleton dimension ${dim}`,
      );
  return left.map((size, dim) => (size === 1 ? right[dim] : size));
}

// How many gradients each node that `root` leads to waits for, as compute_dependencies counts them.
function dependencies(root) {
  const needs = new Map([[root, 0]]),
    stack = [root];
  while (stack.length)
    for (const node of stack.pop().next) {
      if (!node) continue;
      if (!needs.has(node)) stack.push(node);
      needs.set(node, (needs.get(node) ?? 0) + 1);
    }
  return needs;
}
