// Which inputs and weights an element of a convolution reads, and which algorithm PyTorch takes: as figures/convolution.py.

const FEW = 20480;
const range = (count) => Array.from({ length: count }, (_, i) => i);

function model(inputs) {
  const call = callOf(inputs),
    whole = outOf(call),
    out = whole.slice(-2);
  const at = inputs.at.map((i, d) => Math.min(i, out[d] - 1)),
    filter = Math.min(inputs.filter, call.filters - 1);
  const [rows, columns] = [0, 1].map((d) => (call.images ? taps(call, d, at[d]) : []));
  const inner = call.channels / call.groups,
    from = Math.floor(filter / (call.filters / call.groups)) * inner;
  const { asked, backend } = choice(call);
  return {
    ...call, out, at, filter, rows, columns, from, inner, asked, backend,
    facts: factsOf(call, whole, inner, backend),
    say: said(call, at, filter, rows, columns, from, inner, backend),
  };
}

// ---- the call, and what PyTorch refuses
function callOf(inputs) {
  const both = (numbers) => (numbers.length === 1 ? [numbers[0], numbers[0]] : numbers);
  const { depth, images, channels, filters, groups, dtype, transposed, onednn, threads } = inputs;
  if (channels % groups) refuse("ValueError: in_channels must be divisible by groups");
  if (filters % groups) refuse("ValueError: out_channels must be divisible by groups");
  return {
    depth, images, channels, filters, groups, dtype, transposed, onednn, threads,
    size: both(inputs.size), kernel: both(inputs.kernel), stride: both(inputs.stride), padding: both(inputs.padding), dilation: both(inputs.dilation),
  };
}
function dimensions({ depth, size, kernel, stride, padding, dilation }) {
  const [height, width] = [0, 1].map((i) => [size, kernel, stride, padding, dilation].map((numbers) => numbers[i]));
  return depth ? [[depth, ...height.slice(1)], height, width] : [height, width];
}
function outOf(call) {
  const lines = dimensions(call);
  if (call.transposed) {
    const out = lines.map(([n, k, s, p, d]) => (n - 1) * s - 2 * p + d * (k - 1) + 1);
    if (Math.min(...out) < 1) refuse(`The result would have the size ${out.join(" × ")}: the padding of a transposed convolution cuts off.`);
    return out;
  }
  const padded = lines.map(([n, , , p]) => n + 2 * p),
    wide = lines.map(([, k, , , d]) => d * (k - 1) + 1);
  if (padded.some((n, i) => n < wide[i]))
    refuse(
      `RuntimeError: Calculated padded input size per channel: (${padded.join(" x ")}). ` +
        `Kernel size: (${wide.join(" x ")}). Kernel size can't be greater than actual input size`,
    );
  return lines.map(([, , s], i) => Math.floor((padded[i] - wide[i]) / s) + 1);
}
function taps({ size, kernel, stride, padding, dilation, transposed }, d, place) {
  const all = range(kernel[d]);
  if (!transposed) return all.map((tap) => [tap, place * stride[d] - padding[d] + tap * dilation[d]]);
  return all
    .map((tap) => [tap, (place + padding[d] - tap * dilation[d]) / stride[d]])
    .filter(([, i]) => Number.isInteger(i) && 0 <= i && i < size[d])
    .map(([tap, i]) => [tap, i + 0]);
}

// ---- which algorithm
function choice(call) {
  const asked = [],
    { dtype } = call;
  const ask = (words, of, answer) => {
    asked.push([words, of, answer]);
    return answer;
  };
  const onednn = () => ({ asked, backend: call.transposed ? "MkldnnTranspose" : "Mkldnn" });
  if (!call.images) {
    ask("an image at all?", "batch 0", false);
    return { asked, backend: "Empty" };
  }
  ask("on a GPU?", "the CPU", false);
  if (ask("oneDNN allowed?", "backends.mkldnn.enabled", call.onednn)) {
    if (ask("bfloat16, on AVX-512?", dtype, dtype === "bfloat16")) return onednn();
    if (ask("float32?", dtype, dtype === "float32") && ask("worth a call?", ...worth(call)) && ask("large enough?", ...large(call)))
      return onednn();
  }
  const name = call.transposed ? "transposed" : "direct",
    dilated = Math.max(...call.dilation) > 1,
    kind = call.depth ? "3d" : "2d";
  if (call.depth && ask("a plain volume?", `${name}, dilation ${pair(call.dilation)}`, !call.transposed && !dilated)) return { asked, backend: "Slow3d" };
  if (ask("transposed?", name, call.transposed)) return { asked, backend: `SlowTranspose${kind}` };
  if (ask("dilated?", `dilation ${pair(call.dilation)}`, dilated)) return { asked, backend: `SlowDilated${kind}` };
  return { asked, backend: ask("NNPACK?", ...nnpack(call)) ? "NnpackSpatial" : "Slow2d" };
}
function nnpack({ dtype, images, kernel, padding }) {
  if (dtype !== "float32") return [dtype, false];
  if (images < 16) return [`batch ${images} < 16`, false];
  if (Math.max(...kernel) > 16) return [`kernel ${pair(kernel)}, over 16`, false];
  if (kernel.some((k, i) => padding[i] >= k)) return [`padding ${pair(padding)}, not below the kernel`, false];
  return [`float32, batch ${images} ≥ 16`, true];
}
function worth({ stride, dilation, images, kernel, threads }) {
  if (Math.max(...stride) > 1) return [`stride ${pair(stride)}`, true];
  if (Math.max(...dilation) > 1) return [`dilation ${pair(dilation)}`, true];
  if (images >= 16) return [`batch ${images} ≥ 16`, true];
  if (Math.max(...kernel) > 1) return [`kernel ${pair(kernel)}, not 1 × 1`, true];
  if (threads > 1) return [`${threads} threads`, true];
  return ["1 × 1, no stride, batch < 16, one thread", false];
}
function large({ depth, images, channels, size, groups, kernel }) {
  const numbers = images * channels * size[0] * (depth || size[1]);
  if (groups > 1) return [`${groups} groups`, true];
  if (Math.min(...kernel) > 3) return [`kernel ${pair(kernel)}, over 3 × 3`, true];
  if (images > 1) return [`batch ${images} > 1`, true];
  const counted = depth ? `${commas(numbers)} of ${commas(numbers * size[1])}` : commas(numbers);
  return [`${counted} numbers ${numbers > FEW ? ">" : "≤"} ${commas(FEW)}`, numbers > FEW];
}

// ---- what it costs, and sentences
const pair = (two) => `${two[0]} × ${two[1]}`;
function factsOf(call, out, inner, backend) {
  const { images, channels, filters, groups, transposed } = call,
    lines = dimensions(call),
    kernels = lines.map(([, k]) => k),
    product = (numbers) => numbers.reduce((a, b) => a * BigInt(b), 1n);
  const weight = transposed ? [channels, filters / groups] : [filters, inner],
    work = product([...kernels, ...(transposed ? lines.map(([n]) => n) : out)]);
  return [
    ["result", `(${[images, filters, ...out].join(", ")})`],
    ["weight", `(${[...weight, ...kernels].join(", ")})`],
    ["products", commasBig(work * product([images, ...weight]))],
    ["numbers in columns (one image)", columnsOf(call, work, backend)],
  ];
}
// How many numbers the columns of one image take; only PyTorch's own code makes columns.
function columnsOf({ channels, filters, transposed, kernel, stride, padding }, places, backend) {
  if (!backend.startsWith("Slow")) return "–";
  const plain = [...kernel, ...stride].every((n) => n === 1) && padding.every((n) => n === 0);
  if (plain && ["Slow2d", "Slow3d"].includes(backend)) return "none: a view";
  return commasBig(places * BigInt(transposed ? filters : channels));
}
const commasBig = (number) => number.toLocaleString("en-US");
function listed(word, numbers) {
  if (numbers.length === 1) return `${word} ${numbers[0]}`;
  return `${word}s ${numbers.length < 6 ? numbers.join(", ") : `${numbers[0]}, ${numbers[1]}, … ${numbers.at(-1)}`}`;
}
function said({ depth, images, size }, at, filter, rows, columns, first, inner, backend) {
  if (!images) return `Without an image the result has no elements. PyTorch takes ${backend}.`;
  const inside = [rows, columns].map((line, d) => line.map(([, i]) => i).filter((i) => 0 <= i && i < size[d]).sort((a, b) => a - b));
  const real = inside[0].length * inside[1].length,
    all = rows.length * columns.length;
  const channels = inner === 1 ? `channel ${first}` : `channels ${first} to ${first + inner - 1}`;
  const start = `${depth ? "In one slice of the volume, output" : "Output"} [${at[0]}, ${at[1]}] of filter ${filter} reads`;
  const where = real
    ? `${start} ${listed("row", inside[0])}, ${listed("column", inside[1])} of ${channels}`
    : `${start} nothing${all ? " but padding" : ""}`;
  const padding = real && all > real ? `, and padding ${all - real} times a channel` : "";
  return `${where}${padding}. PyTorch takes ${backend}.`;
}
