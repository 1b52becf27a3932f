// Which kernels one operator call reaches: as figures/dispatch_calculator.py, line by line.

const DISPATCH_BACKENDS = ["CPU", "CUDA", "Meta"];
const FUNCTIONALITIES = [
  "Dense", "Sparse", "BackendSelect", "Python", "Conjugate", "Negative", "ADInplaceOrView", "Autograd", "Tracer",
  "AutocastCPU", "AutocastCUDA", "PythonTLSSnapshot",
]; // prettier-ignore
const BITS = Object.fromEntries([...DISPATCH_BACKENDS, ...FUNCTIONALITIES].map((name, bit) => [name, 1 << bit]));
const ALL_BACKENDS = BITS.CPU | BITS.CUDA | BITS.Meta;
const PREFIX = { Dense: "", Sparse: "Sparse", Autograd: "Autograd" };
const ALIASES = ["Autograd", "CompositeImplicitAutograd", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional"];
const DISPATCH_TENSORS = { cpu: ["CPU", "Dense"], sparse: ["CPU", "Sparse"], meta: ["Meta", "Dense"], cuda: ["CUDA", "Dense"] };
const ENTRY_KINDS = {
  K: "own kernel", A: "Autograd alias", D: "default kernel", M: "composite", B: "fallback", F: "fallthrough", "-": "no entry",
}; // prettier-ignore

// ---- sets

const reversed = (list) => [...list].reverse();

function keySet(...given) {
  let keys = 0;
  for (const name of given) {
    if (!DISPATCH_BACKENDS.includes(name)) keys |= BITS[name] ?? 0;
    for (const [functionality, prefix] of Object.entries(PREFIX))
      for (const backend of DISPATCH_BACKENDS) if (name === prefix + backend) keys |= BITS[functionality] | BITS[backend];
  }
  return keys;
}
const keysAfter = (key) => BITS[key] - 1;
const keysWithout = (keys, others) => keys & ~(others & ~ALL_BACKENDS);
const backendOf = (keys) => reversed(DISPATCH_BACKENDS).find((backend) => keys & BITS[backend]) ?? "";
const keyOf = (functionality, backend) => (functionality in PREFIX && backend ? PREFIX[functionality] + backend : functionality);
function highestKey(keys) {
  const functionality = reversed(FUNCTIONALITIES).find((one) => keys & BITS[one]);
  return functionality ? keyOf(functionality, backendOf(keys)) : "Undefined";
}
function keyNames(keys) {
  const found = reversed(FUNCTIONALITIES).filter((one) => keys & BITS[one]);
  const backends = reversed(DISPATCH_BACKENDS).filter((one) => keys & BITS[one]);
  return found.flatMap((one) => (one in PREFIX ? backends.map((backend) => keyOf(one, backend)) : [one]));
}

// ---- tables

function rowOf(side, operator) {
  const written = DISPATCH_TABLES[side][operator];
  if (written === undefined) return null;
  const entries = written.split(" ").map((entry) => [entry[0], entry.length > 1 ? DISPATCH_TABLES.places[Number(entry.slice(1))] : ""]);
  return Object.fromEntries(DISPATCH_TABLES.keys.map((key, i) => [key, entries[i]]));
}
const entryOf = (row, key) => row[key] ?? ["-", ""];
function maskOf(row, keys) {
  let mask = ALL_BACKENDS;
  for (const functionality of FUNCTIONALITIES)
    if (entryOf(row, keyOf(functionality, backendOf(keys)))[0] !== "F") mask |= BITS[functionality];
  return mask;
}

// ---- the call

const isFactory = (operator) => !/[xv]/.test(DISPATCH_TABLES.calls[operator]);

function tensorKeys(inputs) {
  if (isFactory(inputs.op)) return 0;
  const [backend, layout] = DISPATCH_TENSORS[inputs.tensor];
  let keys = BITS[backend] | BITS[layout];
  if (!inputs.inference_tensor) keys |= BITS.ADInplaceOrView | BITS.Autograd;
  if (backend !== "Meta") keys |= BITS[`Autocast${backend}`];
  return keys | (inputs.conj ? BITS.Conjugate : 0) | (inputs.neg ? BITS.Negative : 0);
}

function carriedKeys(side, inputs) {
  if (side !== "readtorch" || !isFactory(inputs.op)) return tensorKeys(inputs);
  const [backend, layout] = DISPATCH_TENSORS[inputs.tensor];
  return BITS[backend] | BITS[layout];
}

function threadSets(inputs) {
  let include = keySet("BackendSelect", "ADInplaceOrView"),
    exclude = keySet("AutocastCPU", "AutocastCUDA");
  if (inputs.inference_mode) {
    include = keysWithout(include, BITS.ADInplaceOrView);
    exclude |= BITS.Autograd;
  }
  if (inputs.mode) include |= keySet("Python", "PythonTLSSnapshot");
  if (inputs.tracing) include |= BITS.Tracer;
  if (inputs.autocast) exclude = keysWithout(exclude, keySet(inputs.tensor === "cuda" ? "AutocastCUDA" : "AutocastCPU"));
  return [include | readKeys(inputs.included, true), exclude | readKeys(inputs.excluded, false)];
}

function readKeys(written, adding) {
  let keys = 0;
  for (const name of written.split(/[,\s]+/).filter(Boolean)) {
    if (ALIASES.includes(name)) refuse(`${name} is an alias for several keys and no bit of a set. AutogradCPU is one.`);
    if (!keySet(name) || name in PREFIX) refuse(`${name} is none of this figure's keys, such as AutogradCPU, ADInplaceOrView, Conjugate.`);
    if (adding && (name === "Python" || name === "PythonTLSSnapshot"))
      refuse(`${name} comes with a mode, and without one is an error: switch the dispatch mode on.`);
    keys |= keySet(name);
  }
  return keys;
}

const records = (inputs) => inputs.requires_grad && !inputs.no_grad && !isFactory(inputs.op);
const isInPlace = (operator) => operator.split(".")[0].endsWith("_");

function walk(side, inputs) {
  const row = rowOf(side, inputs.op);
  if (row === null) return [];
  const carried = carriedKeys(side, inputs);
  let [include, exclude] = threadSets(inputs);
  const call = () => {
    const keys = keysWithout(carried | include, exclude);
    return keys & maskOf(row, keys);
  };
  let keys = call(),
    how = "call";
  const hops = [];
  while (keys !== null && hops.length < 20) {
    const key = highestKey(keys);
    const [kind, place] = entryOf(row, key);
    if (side === "readtorch" && goesOnAtOnce(inputs, kind, key, keys)) {
      keys &= keysAfter("Autograd");
      continue;
    }
    if (side === "readtorch" && key === "BackendSelect") {
      keys &= keysAfter(key); // the backend is known already
      continue;
    }
    if (side === "readtorch" && kind === "-" && key in BITS && !DISPATCH_BACKENDS.includes(key)) {
      keys &= keysAfter(key);
      continue;
    }
    const hop = { key, kind: ENTRY_KINDS[kind], place, keys: keyNames(keys), how };
    hops.push(hop);
    how = "redispatch";
    if (kind === "-") {
      hop.does = missingEntry(inputs, key);
      keys = null;
    } else if ("DM".includes(kind) || DISPATCH_BACKENDS.includes(key) || key === "Undefined" || key.startsWith("Sparse")) {
      hop.does = lastKernel(side, inputs, kind, key, place);
      keys = null;
    } else if (key.startsWith("Autocast")) {
      hop.does =
        "It casts the operands where the operator's policy says so, takes its key away for this thread, and calls the operator from the top.";
      how = "call";
      exclude |= BITS[key];
      keys = call();
    } else if (key === "Python") {
      hop.does =
        "It calls the mode. A mode that runs func(*args) calls the operator from the top, without itself and without any key above Python.";
      how = "call";
      include = keySet("BackendSelect", "ADInplaceOrView");
      exclude |= ~keysAfter("Python") & ~BITS.Python;
      keys = call();
    } else if (key.startsWith("Autograd")) {
      const [does, goesOn] = autogradKernel(inputs);
      hop.does = does;
      keys = goesOn ? keys & keysAfter("Autograd") : null;
    } else if (key === "BackendSelect") {
      const [backend, layout] = DISPATCH_TENSORS[inputs.tensor];
      keys = BITS[backend] | BITS[layout];
      hop.does = `It makes the key set anew, from device, layout and dtype of the new tensor: ${keyOf(layout, backend)} alone.`;
    } else {
      hop.does = key === "ADInplaceOrView" ? inPlaceOrView(inputs) : DOES[key];
      keys &= keysAfter(key);
    }
  }
  return hops;
}

function goesOnAtOnce(inputs, kind, key, keys) {
  if (!key.startsWith("Autograd") || records(inputs)) return false;
  const seen = keys & (BITS.Python | BITS.Conjugate | BITS.Negative);
  return kind === "A" || (kind === "M" && DISPATCH_TABLES.fused.includes(inputs.op) && !seen);
}

const DOES = {
  PythonTLSSnapshot: "It writes down the thread's sets as they are now, for the mode, and goes on below its key.",
  Tracer: "It writes the call into the graph that is being traced, and goes on below its key.",
  Negative: "It replaces operands that have the bit by copies in which the sign is computed, and goes on below its key.",
  Conjugate: "It replaces operands that have the bit by copies in which the conjugate is computed, and goes on below its key.",
};

function autogradKernel(inputs) {
  if (records(inputs) && inputs.op.endsWith(".out"))
    return ["An operand requires grad, and a result that is given cannot have a history: RuntimeError.", false];
  if (records(inputs))
    return ["An operand requires grad: it notes what backward() will need, around the call that goes on below Autograd.", true];
  const why = inputs.requires_grad && inputs.no_grad ? "Under no_grad it notes nothing" : "It finds no operand that requires grad";
  return [`${why}, and goes on below Autograd.`, true];
}

// Structured operators whose out= form has another overload name than `out`.
const OUT_FORMS = { "pow.Tensor_Scalar": "Tensor_Scalar_out", "eq.Tensor": "Tensor_out", "sum.dim_IntList": "IntList_out" };

const outForm = (operator) => `${operator.split(".")[0].replace(/_$/, "")}.${OUT_FORMS[operator] ?? "out"}`;

function inPlaceOrView(inputs) {
  const written = isInPlace(inputs.op) || inputs.op.endsWith(".out");
  if (written && inputs.inference_tensor && !inputs.inference_mode)
    return "It calls the kernel below its key, which writes; then it raises RuntimeError, for an inference tensor has no version counter.";
  if (!written && inputs.inference_tensor) return "It calls the kernel below its key; of an inference tensor it notes nothing.";
  const afterIt = written ? "counts the write in the version counter" : "notes of which tensor the result is a view";
  return `It calls the kernel below its key, and then ${afterIt}.`;
}

function missingEntry(inputs, key) {
  const name = `aten::${inputs.op}`;
  if (key === "Undefined") return `${name} has no entry for an empty set: the error says that there were no tensor arguments.`;
  return `NotImplementedError: Could not run '${name}' with arguments from the '${key}' backend.`;
}

function lastKernel(side, inputs, kind, key, place) {
  if (place.includes("NonFunctional")) {
    const out = outForm(inputs.op);
    const fails = {
      CUDA: ` In this build ${out} has no entry at CUDA: NotImplementedError, could not run 'aten::${out}'.`,
      Undefined: ` ${out} has no entry at Undefined: NotImplementedError, there were no tensor arguments.`,
    };
    const what = "It serves every backend without a kernel of its own: it works out the result's sizes and calls the out= form, from the top.";
    return what + (fails[key] ?? "");
  }
  if (side === "readtorch" && kind === "M" && !key.startsWith("Autograd") && DISPATCH_TABLES.fused.includes(inputs.op))
    return "It does the work of all parts at once, where nobody would see them.";
  const inner = (side === "torch" && DISPATCH_TABLES.inner[inputs.op]) || [];
  if ("DM".includes(kind)) {
    const calls = inner.length < 3 ? inner.join(" and ") : `${inner.slice(0, -1).join(", ")} and ${inner.at(-1)}`;
    const what = kind === "M" ? "It is composite" : "It serves every backend without a kernel of its own";
    return inner.length ? `${what}: it calls ${calls}, from the top.` : `${what}: it calls other operators, from the top.`;
  }
  return key === "Meta" ? "It works out the result's sizes and strides, and nothing else." : "It computes.";
}

const model = (inputs) => {
  if (inputs.tensor === "sparse" && (inputs.conj || inputs.neg))
    refuse("Of a sparse tensor conj() computes the numbers at once, and _neg_view refuses: neither key can be set.");
  const operator = inputs.op;
  const carried = tensorKeys(inputs),
    [include, exclude] = threadSets(inputs);
  const mask = maskOf(rowOf("torch", operator), keysWithout(carried | include, exclude));
  const all = keysWithout(carried | include, exclude),
    left = all & mask;
  const through = keyNames((all & ~mask) | (all & ALL_BACKENDS));
  const hops = walk("torch", inputs),
    ours = walk("readtorch", inputs);
  return {
    carried: keyNames(carried),
    included: keyNames(include),
    taken: keyNames((carried | include) & (exclude | ALL_BACKENDS)),
    through,
    left: keyNames(left),
    rows: shownRows(inputs, carried, include, exclude, left, through, hops, ours),
    hops,
    ours,
    known: rowOf("readtorch", operator) !== null,
    say: [firstSentence(operator, carried, include, exclude, through, left), ...hops.map(hopSentence)],
  };
};

const listedKeys = (found) => (found.length ? found.join(", ") : "nothing");

function firstSentence(operator, carried, include, exclude, through, left) {
  const taken = keyNames((carried | include) & (exclude | ALL_BACKENDS));
  const skipped = through.length ? ` ${operator} falls through at ${listedKeys(through)}.` : "";
  const operands = carried ? `The operands carry ${listedKeys(keyNames(carried))}` : "There is no operand";
  return `${operands}; the thread adds ${listedKeys(keyNames(include))} and takes away ${listedKeys(taken)}.${skipped} Left: ${listedKeys(keyNames(left))}.`;
}

const hopSentence = (hop) => `${hop.key}, ${hop.kind}${hop.place ? ` (${hop.place})` : ""}. ${hop.does}`;

function shownRows(inputs, carried, include, exclude, left, through, hops, ours) {
  const [backend, layout] = DISPATCH_TENSORS[inputs.tensor];
  const keys = ["PythonTLSSnapshot", ...(backend === "Meta" ? [] : [`Autocast${backend}`]), "Tracer", `Autograd${backend}`];
  keys.push("ADInplaceOrView", "Negative", "Conjugate", "Python", "BackendSelect", keyOf(layout, backend), "Undefined");
  const visited = [...hops, ...ours].map((hop) => hop.key);
  for (const key of visited) if (!keys.includes(key)) keys.push(key);
  const rows = keys.map((key) => {
    const bit = keySet(key) & ~ALL_BACKENDS;
    return {
      key,
      carried: Boolean(carried & bit),
      included: Boolean(include & bit),
      excluded: Boolean(exclude & bit),
      skipped: through.includes(key),
      left: Boolean(left & bit),
      torch: sideOf("torch", inputs, key, hops),
      ours: sideOf("readtorch", inputs, key, ours),
    };
  });
  return rows.filter((row) => row.key !== "Undefined" || visited.includes("Undefined"));
}

function sideOf(side, inputs, key, hops) {
  const row = rowOf(side, inputs.op);
  return {
    entry: row ? ENTRY_KINDS[entryOf(row, key)[0]] : "",
    hops: hops.flatMap((hop, i) => (hop.key === key ? [i + 1] : [])),
  };
}
