// Which gradients a dtype can hold, times a scale, and what a GradScaler makes of it: as figures/number_line.py.
const MOST = 10,
  GROWTH_INTERVAL = 2000;
const GRADIENT = /^[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]{1,2})?|2\^[+-]?[0-9]{1,3})$/i;
const FORMATS = {
  float16: { fraction: 10, lowest: -14, highest: 15 },
  bfloat16: { fraction: 7, lowest: -126, highest: 127 },
  float32: { fraction: 23, lowest: -126, highest: 127 },
};
const OUTCOMES = ["normal", "subnormal", "zero", "inf"];

const numberOf = (part) => (part.includes("^") ? (part.startsWith("-") ? -1 : 1) * 2 ** Number(part.split("^")[1]) : Number(part));

function gradientsOf(words) {
  const parts = words.split(/[,\s]+/).filter((part) => part);
  if (parts.length < 1 || parts.length > MOST || !parts.every((part) => GRADIENT.test(part)))
    refuse(`Gradients are 1 to ${MOST} numbers, such as 3e-8, 0.02, 2^-20.`);
  const values = parts.map(numberOf);
  if (values.some((value) => value !== 0 && !(2 ** -149 <= Math.abs(value) && Math.abs(value) < 2 ** 127)))
    refuse("A gradient is 0, or its size is from 2^-149 to less than 2^127.");
  return values.map(Math.fround);
}

function exponentOf(x) {
  const size = Math.abs(x);
  let e = Math.floor(Math.log2(size));
  if (2 ** e > size) e -= 1;
  if (2 ** (e + 1) <= size) e += 1;
  return e;
}

const stepAt = (x, { fraction, lowest, highest }) => 2 ** (Math.min(Math.max(x === 0 ? lowest : exponentOf(x), lowest), highest) - fraction);

function roundEven(x) {
  const below = Math.floor(x),
    part = x - below;
  return part > 0.5 || (part === 0.5 && below % 2 !== 0) ? below + 1 : below;
}

function rounded(x, form) {
  const step = stepAt(x, form),
    nearest = roundEven(x / step) * step;
  const largest = (2 - 2 ** -form.fraction) * 2 ** form.highest;
  return Math.abs(nearest) <= largest ? nearest : Math.sign(x) * Infinity;
}

function kindOf(stored, { lowest }) {
  if (!Number.isFinite(stored)) return "inf";
  return stored === 0 ? "zero" : Math.abs(stored) < 2 ** lowest ? "subnormal" : "normal";
}

function rowOf(gradient, form, scale) {
  const scaled = gradient * scale,
    stored = rounded(scaled, form),
    finite = Number.isFinite(stored),
    back = finite ? stored / scale : null,
    step = stepAt(scaled, form);
  return {
    gradient,
    scaled,
    stored: finite ? stored : null,
    kind: gradient === 0 ? "zero" : kindOf(stored, form),
    step,
    below: Math.floor(scaled / step) * step,
    back,
    error: finite && gradient !== 0 ? Math.abs(back - gradient) / Math.abs(gradient) : null,
  };
}

function decision(rows, exponent, good) {
  if (rows.some(({ kind }) => kind === "inf")) return { skipped: true, exponent: exponent - 1, good: 0 };
  if (good + 1 === GROWTH_INTERVAL) return { skipped: false, exponent: exponent + 1, good: 0 };
  return { skipped: false, exponent, good: good + 1 };
}

function said(then, exponent) {
  if (then.skipped) return `The scaler leaves this step out and halves the scale to 2^${then.exponent}.`;
  if (then.exponent > exponent) return `The step is taken; it was the ${commas(GROWTH_INTERVAL)}th in a row, so the scale doubles to 2^${then.exponent}.`;
  return `The step is taken; ${commas(then.good)} in a row.`;
}

const model = ({ gradients, dtype, exponent, good, at }) => {
  const form = FORMATS[dtype],
    rows = gradientsOf(gradients).map((gradient) => rowOf(gradient, form, 2 ** exponent)),
    counts = OUTCOMES.map((kind) => rows.filter((row) => row.kind === kind).length),
    then = decision(rows, exponent, good);
  return {
    rows,
    at: Math.min(at, rows.length) - 1,
    lowest: form.lowest,
    highest: form.highest,
    fraction: form.fraction,
    then,
    say:
      `Times 2^${exponent}, ${dtype} holds ${counts[0]} of ${rows.length} as normal numbers, ${counts[1]} as subnormal ones; ${counts[2]} become 0, ` +
      `${counts[3]} infinite. ${said(then, exponent)}`,
  };
};
