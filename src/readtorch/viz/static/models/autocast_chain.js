// A chain of operators within autocast: policies, casts and dtypes, as figures/autocast_chain.py.
const SIDE = 1024,
  MOST = 6;
const SIZES = { float16: 2, bfloat16: 2, float32: 4, float64: 8 };

// name: [its policy on the CPU, on CUDA; operands: t the tensor so far, w a weight, x the chain's input; what else it does]
const OPERATORS = {
  linear: ["lower_precision_fp", "lower_precision_fp", "tw", "refuses"],
  mm: ["lower_precision_fp", "lower_precision_fp", "tw", "refuses"],
  relu: ["", ""],
  gelu: ["", ""],
  silu: ["", ""],
  tanh: ["", ""],
  sigmoid: ["", ""],
  dropout: ["", ""],
  "+": ["", "", "tx"],
  "*": ["", "", "tx"],
  exp: ["", "fp32"],
  log: ["", "fp32"],
  rsqrt: ["", "fp32"],
  softplus: ["", "fp32"],
  layer_norm: ["", "fp32"],
  group_norm: ["", "fp32"],
  pow: ["", "fp32"],
  softmax: ["", "fp32_set_opt_dtype"],
  log_softmax: ["", "fp32_set_opt_dtype"],
  cumsum: ["", "fp32_set_opt_dtype"],
  cumprod: ["", "fp32_set_opt_dtype"],
  cat: ["promote", "", "tx"],
  addcmul: ["", "promote", "ttx"],
  scatter_add: ["", "promote", "tx", "refuses"],
  sum: ["", "fp32_set_opt_dtype", "t", "ends"],
  mean: ["", "", "t", "ends"],
  prod: ["fp32", "fp32_set_opt_dtype", "t", "ends"],
  trace: ["fp32", "", "t", "ends"],
  norm: ["", "fp32_append_dtype", "t", "ends"],
  mse_loss: ["fp32", "fp32", "tx", "ends"],
  l1_loss: ["fp32", "fp32", "tx", "ends"],
  smooth_l1_loss: ["fp32", "fp32", "tx", "ends"],
  binary_cross_entropy: ["fp32", "banned", "tx", "ends refuses"],
};
const BY_HAND = { float: "float32", half: "float16", bfloat16: "bfloat16", double: "float64" };
const NAMES = [...Object.keys(OPERATORS), ...Object.keys(BY_HAND)];
const ALIASES = { "+ x": "+", add: "+", "* x": "*", mul: "*", matmul: "mm", "@ w": "mm" };
const does = (name, what) => (OPERATORS[name]?.[3] ?? "").includes(what);

function operatorsOf(words) {
  const typed = words.split(",").map((one) => one.trim().toLowerCase()).filter(Boolean),
    names = typed.map((name) => (Object.hasOwn(ALIASES, name) ? ALIASES[name] : name)); // prettier-ignore
  if (names.length < 1 || names.length > MOST) refuse(`A chain is 1 to ${MOST} operators with commas between them, such as linear, gelu, softmax.`);
  names.forEach((name, i) => {
    if (!NAMES.includes(name)) refuse(`There is no operator ${name} here. There are ${NAMES.join(", ")}.`);
    if (i < names.length - 1 && does(name, "ends")) refuse(`${name} gives one number, so it stands last.`);
    if (name === "binary_cross_entropy" && !["sigmoid", "softmax"].includes(names[i - 1]))
      refuse("binary_cross_entropy takes numbers from 0 to 1: put sigmoid or softmax before it.");
  });
  return names;
}

const CPP_NAMES = { float16: "c10::Half", bfloat16: "c10::BFloat16", float32: "float", float64: "double" };
const SCALAR_TYPES = { float16: "Half", bfloat16: "BFloat16", float32: "Float", float64: "Double" };

function mismatch(name, device, first, second) {
  if (name === "scatter_add") return "scatter(): Expected self.dtype to be equal to src.dtype";
  if (name === "binary_cross_entropy") return `Found dtype ${SCALAR_TYPES[second]} but expected ${SCALAR_TYPES[first]}`;
  const matrices = device === "cpu" ? "m1 and m2" : "mat1 and mat2";
  return `expected ${matrices} to have the same dtype, but got: ${CPP_NAMES[first]} != ${CPP_NAMES[second]}`;
}

function promoted(dtypes) {
  const size = Math.max(...dtypes.map((dtype) => SIZES[dtype]));
  if (size === 2 && new Set(dtypes).size > 1) return "float32";
  return dtypes.find((dtype) => SIZES[dtype] === size);
}

const raised = (error) => ({ error });

// The dtype for all operands, or an error.
function targetOf(policy, low, operands) {
  if (policy === "fp32") return "float32";
  let target = low;
  if (policy === "promote")
    for (const [, dtype] of operands) {
      if (dtype === "float64" || dtype === target) continue;
      if (dtype !== "float32" && target !== "float32") return raised("Unexpected floating ScalarType in at::autocast::prioritize");
      target = "float32";
    }
  return target;
}

function runChain({ device, low, dtype: x, on, twice, cache }, names) {
  const kept = new Set(),
    steps = [];
  let now = x,
    weights = 0,
    casts = [];
  const nameOfNow = () => (steps.length ? `y${steps.length}` : "x");

  function copy(who, have, want) {
    const isKept = who.startsWith("w") && want === low && cache,
      found = isKept && kept.has(who),
      numbers = found ? 0 : SIDE * SIDE;
    if (isKept) kept.add(who);
    casts.push({ of: who, from: have, to: want, found, read: numbers * SIZES[have], written: numbers * SIZES[want] });
    return want;
  }
  const cast = (who, have, want) => (have === want || have === "float64" ? have : copy(who, have, want));

  function operandsOf(letters) {
    if (letters.includes("w")) weights += 1;
    const found = { t: [nameOfNow(), now], x: ["x", x], w: [twice ? "w" : `w${weights}`, "float32"] };
    return [...letters].map((one) => found[one]);
  }
  function resultOf(name, policy) {
    if (name in BY_HAND) return BY_HAND[name] === now ? now : copy(nameOfNow(), now, BY_HAND[name]);
    let operands = operandsOf(OPERATORS[name][2] ?? "t");
    if (policy === "banned") return raised("torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.");
    if (policy === "fp32_set_opt_dtype" || policy === "fp32_append_dtype") {
      if (now === "float64") return now;
      const copies = name.endsWith("softmax") ? now === "bfloat16" : name.startsWith("cum") && now !== "float32";
      return copies ? copy(nameOfNow(), now, "float32") : "float32";
    }
    if (policy) {
      const target = targetOf(policy, low, operands);
      if (target.error) return target;
      operands = operands.map(([who, dtype]) => [who, cast(who, dtype, target)]);
    }
    const dtypes = operands.map(([, dtype]) => dtype);
    if (does(name, "refuses") && new Set(dtypes).size > 1) return raised(mismatch(name, device, ...dtypes));
    return promoted(dtypes);
  }
  for (const name of names) {
    casts = [];
    const policy = on ? (OPERATORS[name]?.[device === "cpu" ? 0 : 1] ?? "") : "",
      result = resultOf(name, policy),
      error = result.error ?? null;
    steps.push({ name, policy, casts, result: error ? null : result, error });
    if (error) break;
    now = result;
  }
  return steps;
}

function saidOf(steps, sums) {
  const last = steps.at(-1),
    comes = last.error ? `An error stops the chain at ${last.name}.` : `The result is ${last.result}.`,
    more = sums.found ? `; ${sums.found} more from the cache` : "";
  return `${comes} ${sums.made} cast${sums.made === 1 ? "" : "s"}, ${Math.floor(sums.bytes / 2 ** 20)} MiB read and written for them${more}.`;
}

const model = (inputs) => {
  const names = operatorsOf(inputs.chain),
    steps = runChain(inputs, names),
    casts = steps.flatMap((step) => step.casts),
    sums = {
      made: casts.filter(({ found }) => !found).length,
      found: casts.filter(({ found }) => found).length,
      bytes: casts.reduce((sum, { read, written }) => sum + read + written, 0),
    };
  return { dtype: inputs.dtype, steps, left: names.slice(steps.length), sums, say: saidOf(steps, sums) };
};
