// Which inputs and weights an element of a convolution reads, and which algorithm PyTorch takes: as figures/convolution.py.

const FEW = 20480;
const range = (count) => Array.from({ length: count }, (_, i) => i);

function model(inputs) {
  const call = callOf(inputs),
    out = outOf(call);
  const at = inputs.at.map((i, d) => Math.min(i, out[d] - 1)),
    filter = Math.min(inputs.filter, call.filters - 1);
  const [rows, columns] = [0, 1].map((d) => (call.images ? taps(call, d, at[d]) : []));
  const inner = call.channels / call.groups,
    from = Math.floor(filter / (call.filters / call.groups)) * inner;
  const { asked, backend } = choice(call);
  return {
    ...call, out, at, filter, rows, columns, from, inner, asked, backend,
    facts: factsOf(call, out, inner),
    say: said(call, at, filter, rows, columns, from, inner, backend),
  };
}

// ---- the call, and what PyTorch refuses
function callOf(inputs) {
  const both = (numbers) => (numbers.length === 1 ? [numbers[0], numbers[0]] : numbers);
  const { images, channels, filters, groups, dtype, transposed, onednn, threads } = inputs;
  if (channels % groups) refuse("ValueError: in_channels must be divisible by groups");
  if (filters % groups) refuse("ValueError: out_channels must be divisible by groups");
  return {
    images, channels, filters, groups, dtype, transposed, onednn, threads,
    size: both(inputs.size), kernel: both(inputs.kernel), stride: both(inputs.stride), padding: both(inputs.padding), dilation: both(inputs.dilation),
  };
}
function outOf({ size, kernel: k, stride: s, padding: p, dilation: d, transposed }) {
  if (transposed) {
    const out = [0, 1].map((i) => (size[i] - 1) * s[i] - 2 * p[i] + d[i] * (k[i] - 1) + 1);
    if (Math.min(...out) < 1)
      refuse(`The result would have the size ${out[0]} × ${out[1]}: the padding of a transposed convolution cuts off.`);
    return out;
  }
  const padded = size.map((n, i) => n + 2 * p[i]),
    wide = k.map((n, i) => d[i] * (n - 1) + 1);
  if (padded[0] < wide[0] || padded[1] < wide[1])
    refuse(
      `RuntimeError: Calculated padded input size per channel: (${padded[0]} x ${padded[1]}). ` +
        `Kernel size: (${wide[0]} x ${wide[1]}). Kernel size can't be greater than actual input size`,
    );
  return [0, 1].map((i) => Math.floor((padded[i] - wide[i]) / s[i]) + 1);
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
    if (ask("bfloat16?", dtype, dtype === "bfloat16")) return onednn();
    if (ask("float32?", dtype, dtype === "float32") && ask("worth a call?", ...worth(call)) && ask("large enough?", ...large(call)))
      return onednn();
  }
  if (ask("transposed?", call.transposed ? "transposed" : "direct", call.transposed)) return { asked, backend: "SlowTranspose2d" };
  if (ask("dilated?", `dilation ${pair(call.dilation)}`, Math.max(...call.dilation) > 1)) return { asked, backend: "SlowDilated2d" };
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
function large({ images, channels, size, groups, kernel }) {
  const numbers = images * channels * size[0] * size[1];
  if (groups > 1) return [`${groups} groups`, true];
  if (Math.min(...kernel) > 3) return [`kernel ${pair(kernel)}, over 3 × 3`, true];
  if (images > 1) return [`batch ${images} > 1`, true];
  return [`${commas(numbers)} numbers ${numbers > FEW ? ">" : "≤"} ${commas(FEW)}`, numbers > FEW];
}

// ---- what it costs, and sentences
const pair = (two) => `${two[0]} × ${two[1]}`;
function factsOf({ images, channels, filters, groups, size, kernel, transposed }, out, inner) {
  const all = kernel[0] * kernel[1],
    weight = transposed ? [channels, filters / groups] : [filters, inner],
    [rows, columns] = transposed ? size : out;
  return [
    ["result", `(${images}, ${filters}, ${out[0]}, ${out[1]})`],
    ["weight", `(${weight[0]}, ${weight[1]}, ${kernel[0]}, ${kernel[1]})`],
    ["products", commasBig(BigInt(images) * BigInt(rows * columns) * BigInt(weight[0] * weight[1] * all))],
    ["columns of one image", commas((transposed ? filters : channels) * all * rows * columns)],
  ];
}
const commasBig = (number) => number.toLocaleString("en-US");
function listed(word, numbers) {
  if (numbers.length === 1) return `${word} ${numbers[0]}`;
  return `${word}s ${numbers.length < 6 ? numbers.join(", ") : `${numbers[0]}, ${numbers[1]}, … ${numbers.at(-1)}`}`;
}
function said({ images, size }, at, filter, rows, columns, first, inner, backend) {
  if (!images) return `Without an image the result has no elements. PyTorch takes ${backend}.`;
  const inside = [rows, columns].map((line, d) => line.map(([, i]) => i).filter((i) => 0 <= i && i < size[d]).sort((a, b) => a - b));
  const real = inside[0].length * inside[1].length,
    all = rows.length * columns.length;
  const channels = inner === 1 ? `channel ${first}` : `channels ${first} to ${first + inner - 1}`;
  const start = `Output [${at[0]}, ${at[1]}] of filter ${filter} reads`;
  const where = real
    ? `${start} ${listed("row", inside[0])}, ${listed("column", inside[1])} of ${channels}`
    : `${start} nothing${all ? " but padding" : ""}`;
  const padding = real && all > real ? `, and padding ${all - real} times a channel` : "";
  return `${where}${padding}. PyTorch takes ${backend}.`;
}
