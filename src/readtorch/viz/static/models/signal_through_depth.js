// A signal through a deep network: as figures/signal_through_depth.py.
const SAMPLES = 16;
const NAMED = { "nn.Linear": 1 / Math.sqrt(3), Xavier: 1, ReLU: Math.sqrt(2), tanh: 5 / 3 };

// ---- random numbers: mt19937, the low 24 bits of a word as a fraction

function twister(seed) {
  const words = new Uint32Array(624);
  words[0] = seed;
  for (let i = 1; i < 624; i++) words[i] = Math.imul(1812433253, words[i - 1] ^ (words[i - 1] >>> 30)) + i;
  let position = 624;
  const renew = () => {
    for (let i = 0; i < 624; i++) {
      const joined = (words[i] & 0x80000000) | (words[(i + 1) % 624] & 0x7fffffff);
      words[i] = words[(i + 397) % 624] ^ (joined >>> 1) ^ (joined & 1 ? 0x9908b0df : 0);
    }
    position = 0;
  };
  return () => {
    if (position === 624) renew();
    let y = words[position++];
    y ^= y >>> 11;
    y ^= (y << 7) & 0x9d2c5680;
    y ^= (y << 15) & 0xefc60000;
    return ((y ^ (y >>> 18)) & 0xffffff) / 16777216;
  };
}

// `torch.randn` of a multiple of 16 numbers
function normals(draw, count) {
  const out = Float32Array.from({ length: count }, () => 0),
    u = Float64Array.from({ length: count }, draw);
  for (let block = 0; block < count; block += 16)
    for (let i = block; i < block + 8; i++) {
      const radius = Math.sqrt(-2 * Math.log(1 - u[i])),
        angle = 2 * Math.PI * u[i + 8];
      out[i] = radius * Math.cos(angle);
      out[i + 8] = radius * Math.sin(angle);
    }
  return out;
}

// `uniform_(-bound, bound)`: the sum is exact, and rounded once
function uniforms(draw, count, wanted) {
  const bound = Math.fround(wanted),
    out = new Float32Array(count);
  for (let i = 0; i < count; i++) out[i] = draw() * (2 * bound) - bound;
  return out;
}

// ---- the network

function tanhOf(x) {
  const y = Math.max(-12, Math.min(12, x)) / 16,
    q = y * y;
  let t = y / (1 + q / (3 + q / (5 + q / (7 + q / (9 + q / (11 + q / (13 + q / 15)))))));
  for (let i = 0; i < 4; i++) t = (2 * t) / (1 + t * t);
  return t;
}

const ACTIVATIONS = {
  relu: [(z) => Math.max(z, 0), (a) => (a > 0 ? 1 : 0)],
  tanh: [tanhOf, (a) => 1 - a * a],
  sigmoid: [(z) => (1 + tanhOf(z / 2)) / 2, (a) => a * (1 - a)],
  none: [(z) => z, () => 1],
};

const exactGain = (gain) => Object.values(NAMED).find((exact) => Math.abs(exact - gain) < 6e-4) ?? gain;

function makeNetwork({ width, depth, seed, bias }, gain) {
  const draw = twister(seed),
    x = normals(draw, SAMPLES * width);
  const wanted = gain * Math.sqrt(3),
    factor = Math.fround(wanted),
    bound = 1 / Math.sqrt(width);
  const layers = Array.from({ length: depth }, () => {
    let weight = uniforms(draw, width * width, bound);
    const drawn = bias === "none" ? new Float32Array(width) : uniforms(draw, width, bound);
    if (Math.abs(wanted - 1) >= 1e-9) weight = weight.map((w) => w * factor);
    return { weight, bias: bias === "drawn" ? drawn : new Float32Array(width) };
  });
  return { x, layers };
}

// x @ w.T: the row of a sample times the row of each unit, added in order
function timesRows(x, w, width) {
  const z = new Float64Array(SAMPLES * width);
  for (let n = 0; n < SAMPLES; n++)
    for (let o = 0; o < width; o++) {
      let sum = 0;
      for (let k = 0, a = n * width, b = o * width; k < width; k++, a++, b++) sum += x[a] * w[b];
      z[n * width + o] = sum;
    }
  return z;
}

// dz @ w: the rows of w, weighted and added in order
function timesColumns(dz, w, width) {
  const da = new Float64Array(SAMPLES * width);
  for (let n = 0; n < SAMPLES; n++)
    for (let o = 0; o < width; o++)
      for (let i = 0, by = dz[n * width + o], a = n * width, b = o * width; i < width; i++, a++, b++) da[a] += by * w[b];
  return da;
}

function scaleOf(z) {
  let sum = 0;
  for (const value of z) sum += value * value;
  return Math.sqrt(sum / z.length);
}

// The deviation between samples, averaged over the units
function differenceOf(z, width) {
  let total = 0;
  for (let o = 0; o < width; o++) {
    let mean = 0,
      square = 0;
    for (let n = 0; n < SAMPLES; n++) mean += z[n * width + o];
    mean /= SAMPLES;
    for (let n = 0; n < SAMPLES; n++) square += (z[n * width + o] - mean) ** 2;
    total += Math.sqrt(square / (SAMPLES - 1));
  }
  return total / width;
}

// The root mean square of dz.T @ x, averaged over the samples, from the products of their rows with one another
function gradientSize(dz, x, width) {
  let sum = 0;
  for (let m = 0; m < SAMPLES; m++)
    for (let n = 0; n < SAMPLES; n++) {
      let one = 0,
        other = 0;
      for (let k = 0; k < width; k++) {
        one += dz[m * width + k] * dz[n * width + k];
        other += x[m * width + k] * x[n * width + k];
      }
      sum += one * other;
    }
  return Math.sqrt(Math.max(0, sum)) / dz.length;
}

function shortNumber(x) {
  const [mantissa, exponent] = x.toExponential(1).split("e"),
    power = Number(exponent);
  return power >= -3 && power <= 3 ? x.toFixed(Math.max(0, 1 - power)) : `${mantissa}e${power}`;
}

function layersAtZero(line) {
  const where = line.map((value, i) => (value ? 0 : i + 1)).filter(Boolean),
    [first, last] = [where[0], where.at(-1)];
  if (where.length === 1) return `layer ${first}`;
  return last - first === where.length - 1 ? `layers ${first} to ${last}` : `${where.length} layers`;
}

const model = (inputs) => {
  const { width } = inputs,
    gain = exactGain(inputs.gain),
    { x, layers } = makeNetwork(inputs, gain),
    [act, slope] = ACTIVATIONS[inputs.act];
  const seen = [x],
    scale = [],
    difference = [];
  for (const { weight, bias } of layers) {
    const z = Float32Array.from(timesRows(seen.at(-1), weight, width), (sum, i) => sum + bias[i % width]);
    scale.push(scaleOf(z));
    difference.push(differenceOf(z, width));
    seen.push(z.map(act));
  }
  let dz = new Float32Array(SAMPLES * width).fill(1);
  const gradient = [];
  for (let i = layers.length - 1; i >= 0; i--) {
    gradient.unshift(gradientSize(dz, seen[i], width));
    if (i) dz = Float32Array.from(timesColumns(dz, layers[i].weight, width), (da, k) => Math.fround(da) * slope(seen[i][k]));
  }
  const powers = [...scale, ...difference, ...gradient].filter(Boolean).map((value) => Math.floor(Math.log10(value)));
  const words = [scale[0], scale.at(-1), difference[0], difference.at(-1), gradient.at(-1), gradient[0]].map(shortNumber);
  const zeros = Object.entries({ scale, difference, gradient })
    .filter(([, line]) => !line.every(Boolean))
    .map(([name, line]) => `the ${name} of ${layersAtZero(line)}`);
  const say =
    `${layers.length} layer${layers.length > 1 ? "s" : ""} of ${width}, gain ${gain.toFixed(3)}: the scale goes from ${words[0]} to ${words[1]}, ` +
    `the difference between samples from ${words[2]} to ${words[3]}; the gradient, on its way back, from ${words[4]} to ${words[5]}.` +
    (zeros.length ? ` Exactly 0, and therefore not drawn: ${zeros.join(", ")}.` : "");
  const ends = { low: Math.min(...powers, -1), high: Math.max(...powers, -1) + 1 };
  return { scale, difference, gradient, at: Math.min(inputs.layer, layers.length), ...ends, say };
};
