// What load_state_dict makes of names and shapes: as figures/load_state_dict.py.
const OWN_SHAPES = new Map([["0.weight", [3, 4]], ["0.bias", [3]], ["2.weight", [2, 3]], ["2.bias", [2]]]); // prettier-ignore
const CHILDREN = ["0", "1", "2"];
const CHECKPOINTS = {
  head: "0.weight 3 4\n0.bias 3\n2.weight 5 3\n2.bias 5",
  same: "0.weight 3 4\n0.bias 3\n2.weight 2 3\n2.bias 2",
  compiled: "_orig_mod.0.weight 3 4\n_orig_mod.0.bias 3\n_orig_mod.2.weight 2 3\n_orig_mod.2.bias 2",
  renamed: "first.weight 3 4\nfirst.bias 3\n2.weight 2 3\n2.bias 2",
  longer: "0.weight 3 4\n0.bias 3\n2.weight 2 3\n2.bias 2\n4.weight 1 2\n4.bias 1",
  one: "0.weight 3 4\n0.bias 3\n2.weight 1 3\n2.bias 1",
  body: "0.weight 3 4\n0.bias 3",
};
const MOST_NAMES = 12;
const LINE = /^["']?([A-Za-z0-9_.-]+)["']?[ \t]*:?[ \t]*(?:torch\.Size)?[([]*([0-9, \t]*)[)\]]*,?$/;

function readCheckpoint(written) {
  const found = new Map();
  for (const whole of written.split(/[;\n]/)) {
    const line = whole.replace(/^[ \t\r]+|[ \t\r]+$/g, "");
    if (!line) continue;
    const match = line.match(LINE);
    const sizes = match ? (match[2].match(/[0-9]+/g) ?? []) : [];
    if (!match || sizes.length > 5 || sizes.some((size) => size.length > 4))
      refuse(`A line is a name and its sizes, such as 0.weight 3 4. Not understood: ${[...line].slice(0, 40).join("")}`);
    found.set(match[1], sizes.map(Number));
  }
  if (found.size > MOST_NAMES) refuse(`There is room for ${MOST_NAMES} names.`);
  return found;
}

// Whether a module has nothing of this name, the prefix taken off: neither a tensor nor a child.
function isUnexpected(rest, children, own) {
  const dot = rest.indexOf(".");
  return dot < 0 ? !own.includes(rest) : !children.includes(rest.slice(0, dot));
}
// In the order in which the modules find them: the root first, which looks at the first part alone.
function unexpectedNames(saved) {
  const modules = [["", CHILDREN], ...CHILDREN.map((child) => [`${child}.`, []])];
  return modules.flatMap(([prefix, children]) => {
    const below = (names) => [...names].filter((name) => name.startsWith(prefix)).map((name) => name.slice(prefix.length));
    const own = prefix ? below(OWN_SHAPES.keys()) : [];
    const rests = below(saved.keys()).sort((a, b) => (b === "_extra_state") - (a === "_extra_state"));
    return rests.filter((rest) => isUnexpected(rest, children, own)).map((rest) => prefix + rest);
  });
}

const sizeWords = (shape) => `torch.Size([${shape.join(", ")}])`;
const listWords = (names) => `[${names.map((name) => `'${name}'`).join(", ")}]`;
const quotedNames = (names) => names.map((name) => `"${name}"`).join(", ");

function verdictOf(name, saved) {
  if (!OWN_SHAPES.has(name)) return "unexpected";
  if (!saved.has(name)) return "missing";
  return equal(saved.get(name), OWN_SHAPES.get(name)) ? "copied" : "shape";
}
function reportOf(saved, strict) {
  const missing = [...OWN_SHAPES.keys()].filter((name) => !saved.has(name)),
    unexpected = unexpectedNames(saved);
  const lines = [];
  if (strict && missing.length) lines.push(`Missing key(s) in state_dict: ${quotedNames(missing)}.`);
  if (strict && unexpected.length) lines.push(`Unexpected key(s) in state_dict: ${quotedNames(unexpected)}.`);
  for (const [name, shape] of OWN_SHAPES)
    if (verdictOf(name, saved) === "shape")
      lines.push(`size mismatch for ${name}: copying a param with shape ${sizeWords(saved.get(name))} from checkpoint, ` +
        `the shape in current model is ${sizeWords(shape)}.`); // prettier-ignore
  if (lines.length) return [["RuntimeError: Error(s) in loading state_dict for Sequential:", ...lines], true];
  if (!missing.length && !unexpected.length) return [["<All keys matched successfully>"], false];
  return [[`_IncompatibleKeys(missing_keys=${listWords(missing)}, unexpected_keys=${listWords(unexpected)})`], false];
}

const model = ({ checkpoint, strict, written: typed }) => {
  const written = checkpoint === "own" ? typed : CHECKPOINTS[checkpoint];
  const saved = readCheckpoint(written);
  const names = [...OWN_SHAPES.keys(), ...[...saved.keys()].filter((name) => !OWN_SHAPES.has(name))];
  const rows = names.map((name) => ({
    name, own: OWN_SHAPES.get(name) ?? null, saved: saved.get(name) ?? null, verdict: verdictOf(name, saved),
  })); // prettier-ignore
  const [lines, raised] = reportOf(saved, strict);
  const copied = rows.filter(({ verdict }) => verdict === "copied").length;
  const count = `${copied} of the model's ${OWN_SHAPES.size} tensors ${copied === 1 ? "is" : "are"} loaded.`;
  return { written, rows, lines, raised, say: raised ? `An error is raised, and ${count}` : `No error: ${count}` };
};
