// Which words of the generator make which number: as figures/words_to_numbers.py.
const MOST = 40;
const DIGITS = { float16: 11, bfloat16: 8, float32: 24, float64: 53 };
const ALIASES = { half: "float16", float: "float32", double: "float64" };
const KNOWN = [
  "rand(5)", "randn(4, 4, dtype=float64)", "randint(10, (5,))", "randperm(6)", "empty(4, 8).t().normal_()", "empty(5).uniform_(-1, 1)",
  "empty(5).bernoulli_(0.3)", "empty(5).exponential_()", "bernoulli(full((5,), 0.3))", "dropout(ones(8), 0.3)", "nn.Linear(4, 2)",
]; // prettier-ignore

// ---- the generator

// The first 624 words that a seed gives.
function wordsOf(seed) {
  const w = new Uint32Array(624);
  w[0] = seed;
  for (let i = 1; i < 624; i++) w[i] = Math.imul(1812433253, w[i - 1] ^ (w[i - 1] >>> 30)) + i;
  return Array.from(w, (_, i) => {
    const joined = (w[i] & 0x80000000) | (w[(i + 1) % 624] & 0x7fffffff);
    w[i] = w[(i + 397) % 624] ^ (joined >>> 1) ^ (joined & 1 ? 0x9908b0df : 0);
    let y = w[i] ^ (w[i] >>> 11);
    y ^= (y << 7) & 0x9d2c5680;
    y ^= (y << 15) & 0xefc60000;
    return (y ^ (y >>> 18)) >>> 0;
  });
}

const sourceOf = (seed) => ({ words: wordsOf(seed), gone: 0, spare: null });
const nextWord = (source) => ++source.gone;

// A number in [0, 1), and its words: the low 24 bits of one, or 53 of two.
function fractionOf(source, bits) {
  if (bits === 24) {
    const word = nextWord(source);
    return [(source.words[word - 1] & 0xffffff) / 2 ** 24, [word]];
  }
  const high = nextWord(source),
    low = nextWord(source);
  return [((source.words[high - 1] & 0x1fffff) * 2 ** 32 + source.words[low - 1]) / 2 ** 53, [high, low]];
}

// ---- numbers in the order of memory: value, text, words, how

// To so many binary digits, half to even.
function roundedTo(x, dtype) {
  if (dtype === "float64" || x === 0) return x;
  if (dtype === "float32") return Math.fround(x);
  const unit = 2 ** (Math.floor(Math.log2(Math.abs(x))) - DIGITS[dtype] + 1),
    low = Math.floor(x / unit),
    rest = x / unit - low;
  return (rest > 0.5 || (rest === 0.5 && low % 2) ? low + 1 : low) * unit;
}

function four(x) {
  const whole = Math.floor(Math.abs(x) * 10000 + 0.5);
  return `${x < 0 && whole ? "-" : ""}${Math.floor(whole / 10000)}.${String(whole % 10000).padStart(4, "0")}`;
}

const real = (value, words, how) => ({ value, text: four(value), words, how });
const listedWords = (words) =>
  words.length === 1 ? `word ${words[0]}` : `words ${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
const bitsOf = (words) =>
  words.length === 1 ? `the low 24 bits of word ${words[0]}, over 2²⁴,` : `53 bits of ${listedWords(words)}, over 2⁵³,`;
const times = (count, make) => Array.from({ length: count }, make);

function uniform(source, count, from, to, dtype) {
  const wide = dtype === "float64" ? dtype : "float32",
    low = roundedTo(from, wide),
    high = roundedTo(to, wide),
    span = roundedTo(high - low, wide);
  return times(count, () => {
    const [u, words] = fractionOf(source, wide === "float64" ? 53 : 24);
    let value = roundedTo(roundedTo(u * span + low, wide), dtype);
    if (value === roundedTo(high, dtype)) value = roundedTo(low, dtype);
    const stretched = low === 0 && high === 1 ? "" : `; times ${four(span)}, plus ${four(low)}`;
    return real(value, words, `${bitsOf(words)} are ${four(u)}${stretched}`);
  });
}

function pairOf(source, mean, std, dtype) {
  let spare = source.spare;
  source.spare = null;
  if (!spare) {
    const [v, angle] = fractionOf(source, 53),
      [u, radius] = fractionOf(source, 53),
      r = Math.sqrt(-2 * Math.log1p(-u)),
      words = [...angle, ...radius],
      made = `${listedWords(angle)} make the angle, ${listedWords(radius)} the radius`;
    source.spare = [r * Math.sin(2 * Math.PI * v), words, `${made}; the sine waited in the generator`];
    spare = [r * Math.cos(2 * Math.PI * v), words, `${made}; this is the cosine`];
  }
  const [value, words, how] = spare;
  return real(roundedTo(value * std + mean, dtype), words, how);
}

// Of 8 radii and 8 angles, 16 numbers.
function blockOf(fractions, mean, std, dtype) {
  const numbers = times(16, () => null);
  for (let i = 0; i < 8; i++) {
    const [u, radius] = fractions[i],
      [v, angle] = fractions[i + 8],
      r = Math.sqrt(-2 * Math.log(1 - u)),
      how = `${listedWords(radius)} ${radius.length === 1 ? "makes" : "make"} the radius, ${listedWords(angle)} the angle; this is the `;
    for (const [place, turn, name] of [[i, Math.cos, "cosine"], [i + 8, Math.sin, "sine"]])
      numbers[place] = real(roundedTo(r * turn(2 * Math.PI * v) * std + mean, dtype), [...radius, ...angle], how + name);
  }
  return numbers;
} // prettier-ignore

function normal(source, count, mean, std, dtype, contiguous) {
  if (count < 16 || !contiguous) return times(count, () => pairOf(source, mean, std, dtype));
  const bits = dtype === "float64" ? 53 : 24,
    whole = Math.floor(count / 16) * 16;
  // float16 and bfloat16 draw a block at a time, the others all numbers first: also those that are drawn anew.
  const first = times(dtype === "float32" || dtype === "float64" ? count : whole, () => fractionOf(source, bits));
  const numbers = times(count, () => null);
  const put = (at, fractions) => numbers.splice(at, 16, ...blockOf(fractions, mean, std, dtype));
  for (let i = 0; i < whole; i += 16) put(i, first.slice(i, i + 16));
  if (count % 16) put(count - 16, times(16, () => fractionOf(source, bits)));
  return numbers;
}

const exponential = (source, count, rate, dtype) =>
  times(count, () => {
    const [u, words] = fractionOf(source, 53),
      value = roundedTo((-1 / rate) * Math.log1p(-u), dtype);
    return real(value, words, `${bitsOf(words)} are ${four(u)}; −ln(1 − that)${rate === 1 ? "" : `, over ${four(rate)}`}`);
  });

function integerOf(source, low, high) {
  const span = high - low,
    words = times(span >= 2n ** 28n ? 2 : 1, () => nextWord(source));
  const number = words.reduce((sum, word) => (sum << 32n) | BigInt(source.words[word - 1]), 0n);
  const value = (number % span) + low,
    grouped = (n) => n.toLocaleString("en-US");
  const how = `${listedWords(words)}, modulo ${grouped(span)}${low ? `, plus ${grouped(low)}` : ""}`;
  return { value: Number(value), text: String(value), words, how };
}

function permutation(source, count) {
  const order = times(count, (_, i) => i);
  return order.map((_, i) => {
    const left = count - i;
    if (left === 1) return { value: order[i], text: String(order[i]), words: [], how: "the one that is left" };
    const word = nextWord(source),
      j = i + (source.words[word - 1] % left);
    [order[i], order[j]] = [order[j], order[i]];
    const how = `word ${word}, modulo ${left}, chooses one of the ${left} that are left`;
    return { value: order[i], text: String(order[i]), words: [word], how };
  });
}

const yesOrNo = (source, count, p, bits, value) =>
  times(count, () => {
    const [u, words] = fractionOf(source, bits);
    return real(u < p ? value : 0, words, `${bitsOf(words)} are ${four(u)}, ${u < p ? "less" : "not less"} than ${four(p)}`);
  });

// ---- calls

const SIZES = String.raw`[(\[]?([0-9]{1,9}(?:,[0-9]{1,9})*),?[)\]]?`;
const REAL = String.raw`(-?(?:[0-9]{1,4}\.?[0-9]{0,8}|\.[0-9]{1,8}))`;
const WHOLE = String.raw`(-?[0-9]{1,15}|2\*\*[0-9]{1,2}(?:[+-][0-9]{1,15})?)`;
const DTYPE = String.raw`(?:,dtype=([a-z0-9]+))?`;
const SHAPES = {
  fill: String.raw`(rand|randn)\(${SIZES}${DTYPE}\)`,
  method: String.raw`empty\(${SIZES}${DTYPE}\)(\.t\(\))?\.(uniform|normal|bernoulli|exponential)_\((?:${REAL}(?:,${REAL})?)?\)`,
  integers: String.raw`randint\((?:${WHOLE},)?${WHOLE},[(\[]${SIZES}[)\]]\)`,
  permutation: String.raw`randperm\(([0-9]{1,9})\)`,
  tensor: String.raw`bernoulli\(full\([(\[]?([0-9]{1,9}(?:,[0-9]{1,9})*),?[)\]]?,${REAL}\)\)`,
  dropout: String.raw`(?:nn\.functional\.|F\.)?dropout\(ones\(${SIZES}\)(?:,${REAL})?\)`,
  linear: String.raw`nn\.Linear\(([0-9]{1,9}),([0-9]{1,9})(?:,(?:bias=)?(True|False))?\)`,
};
const KEYWORDS = /\b(low|high|size|p|mean|std|lambd|n|from|to|in_features|out_features|fill_value)=/g;

function callsOf(program) {
  const calls = [];
  for (const line of program.split(";").map((text) => text.trim()).filter(Boolean)) {
    const bare = line.replace(/\s/g, "").replace(/^[A-Za-z_][A-Za-z_0-9]*=/, "").replaceAll("torch.", "").replace(KEYWORDS, "");
    if (bare.startsWith("manual_seed(")) refuse("The seed has a field of its own.");
    const found = Object.entries(SHAPES).map(([kind, shape]) => [kind, bare.match(new RegExp(`^(?:${shape})$`))]);
    const [kind, match] = found.find(([, one]) => one) ?? [];
    if (!match) refuse(`“${line}” is none of the calls that the figure knows: ${KNOWN.join(", ")}.`);
    calls.push([kind, match.slice(1)]);
  }
  if (!calls.length) refuse(`A program draws, such as ${KNOWN[0]}.`);
  return calls;
} // prettier-ignore

const product = (sizes) => sizes.reduce((a, b) => a * b, 1);
function sizesOf(written) {
  const sizes = written.split(",").map(Number);
  return product(sizes) > MOST ? refuse(`A program makes at most ${MOST} numbers.`) : sizes;
}
function dtypeOf(written) {
  const dtype = Object.hasOwn(ALIASES, written) ? ALIASES[written] : (written ?? "float32");
  return Object.hasOwn(DIGITS, dtype) ? dtype : refuse(`${dtype} is none of ${Object.keys(DIGITS).join(", ")}.`);
}
function wholeOf(written) {
  const [, power, rest] = written.match(/^(2\*\*[0-9]+)?(.*)$/);
  const number = (power ? 2n ** BigInt(power.slice(3)) : 0n) + BigInt(rest.replace("+", ""));
  return number < 2n ** 63n ? number : refuse("Overflow when unpacking long long.");
}
function probabilityOf(written, otherwise) {
  const p = written === undefined ? otherwise : Number(written);
  return p >= 0 && p <= 1 ? p : refuse(`A probability lies between 0 and 1, and ${written} does not.`);
}

function method(source, written, ofType, transposed, name, one, two) {
  const sizes = sizesOf(written),
    dtype = dtypeOf(ofType);
  if (transposed && sizes.length > 2) refuse("t() expects a tensor with <= 2 dimensions.");
  const count = product(sizes),
    contiguous = !transposed || sizes.length < 2 || Math.min(...sizes) < 2,
    low = Number(one ?? 0),
    high = Number(two ?? 1);
  let numbers;
  if (name === "uniform") {
    if (low > high) refuse(`uniform_ expects to return a [from, to) range, but found from=${low} > to=${high}.`);
    numbers = uniform(source, count, low, high, dtype);
  } else if (name === "normal") {
    if (high < 0) refuse(`normal expects std >= 0.0, but found std ${high}.`);
    numbers = normal(source, count, low, high, dtype, contiguous);
  } else if (name === "exponential") {
    const rate = Number(one ?? 1);
    if (rate <= 0) refuse(`exponential_ expects lambda > 0.0, but found lambda=${rate}.`);
    numbers = exponential(source, count, rate, dtype);
  } else {
    const p = Number(one ?? 0.5);
    if (p < 0 || p > 1) refuse(`bernoulli_ expects p to be in [0, 1], but got p=${p}.`);
    numbers = yesOrNo(source, count, p, 53, 1);
  }
  if (contiguous) return numbers;
  const [rows, columns] = sizes; // in memory; the tensor is read column by column
  return times(columns, (_, column) => times(rows, (_, row) => numbers[row * columns + column])).flat();
}

const CALLS = {
  fill: (source, name, sizes, dtype) => method(source, sizes, dtype, undefined, { rand: "uniform", randn: "normal" }[name]),
  method,
  integers(source, from, to, sizes) {
    const low = wholeOf(from ?? "0"),
      high = wholeOf(to),
      count = product(sizesOf(sizes));
    if (low >= high) refuse(`random_ expects 'from' to be less than 'to', but got from=${low} >= to=${high}.`);
    return times(count, () => integerOf(source, low, high));
  },
  permutation: (source, count) => permutation(source, ...sizesOf(count)),
  tensor: (source, sizes, p) => {
    const count = product(sizesOf(sizes));
    return yesOrNo(source, count, roundedTo(probabilityOf(p), "float32"), 24, 1);
  },
  dropout(source, sizes, written) {
    const count = product(sizesOf(sizes)),
      p = probabilityOf(written, 0.5);
    if (p === 0 || p === 1) return times(count, () => real(1 - p, [], "no word: every element has the same fate"));
    return yesOrNo(source, count, 1 - p, 53, Math.fround(1 / Math.fround(1 - p)));
  },
  linear(source, written, outputs, bias) {
    const n = Number(written),
      m = Number(outputs),
      bound = 1 / Math.sqrt(n);
    if (!n || !m) refuse("A layer has at least one input and one output.");
    sizesOf(`${n},${m}`);
    const weight = uniform(source, n * m, -bound, bound, "float32");
    return [...weight, ...(bias === "False" ? [] : uniform(source, m, -bound, bound, "float32"))];
  },
};

// What a program draws: its numbers in the order in which one reads them, and what became of each word.
function drawnBy(program, seed) {
  const source = sourceOf(seed),
    numbers = [];
  for (const [kind, given] of callsOf(program)) {
    numbers.push(...CALLS[kind](source, ...given));
    if (numbers.length > MOST) refuse(`A program makes at most ${MOST} numbers.`);
  }
  const users = times(source.gone, () => []);
  numbers.forEach(({ words }, k) => words.forEach((word) => users[word - 1].push(k + 1)));
  const waits = source.spare?.[1] ?? [];
  const lost = users.flatMap((those, i) => (those.length || waits.includes(i + 1) ? [] : [i + 1]));
  return { numbers, users, waits, lost };
}

function aboutProgram({ numbers, users, lost, waits }) {
  let said = `${plural(numbers.length, "number")} from ${plural(users.length, "word")}`;
  if (lost.length) said += `; ${plural(lost.length, "word")} (dashed) made numbers that were drawn anew`;
  return said + (waits.length ? "; the sine of the last pair waits in the generator" : "");
}

// Of each number of the first program: whether the second has it, too, made of the same words; and how many more
// have the same words there without being equal.
function sharedWith(one, two) {
  const whole = ({ words, text, value }) => `${words} ${text} ${value}`,
    all = new Set(two.map(whole)),
    words = new Set(two.filter((number) => number.words.length).map((number) => String(number.words))),
    same = one.map((number) => all.has(whole(number)));
  return { same, related: one.filter((number, k) => !same[k] && words.has(String(number.words))).length };
}

// The numbers of the second program that are made of the words of number `at` of the first.
function twinsOf(one, two, at) {
  const words = String(one[at - 1]?.words ?? []);
  return two.flatMap((number, k) => (words && String(number.words) === words ? [k + 1] : []));
}

const model = ({ one: first, two: second, seed, at: asked }) => {
  const one = drawnBy(first, seed),
    two = drawnBy(second, seed),
    at = Math.max(1, Math.min(asked, Math.max(one.numbers.length, two.numbers.length)));
  for (const [each, other] of [[one, two], [two, one]]) {
    each.about = aboutProgram(each);
    Object.assign(each, sharedWith(each.numbers, other.numbers));
    each.twins = twinsOf(other.numbers, each.numbers, at);
    each.how = each.numbers[at - 1]?.how ?? "there is none";
  }
  const words = wordsOf(seed).slice(0, Math.max(one.users.length, two.users.length)).map((word) => word.toString(16).padStart(8, "0")); // prettier-ignore
  const madeOf = ({ numbers }) =>
    at > numbers.length ? "not there" : numbers[at - 1].words.length ? listedWords(numbers[at - 1].words) : "no word";
  const equal = one.same.filter(Boolean).length,
    more = one.related;
  const say =
    `${equal || "None"} of the ${plural(one.same.length, "number")} of the first program ${equal > 1 ? "are" : "is"} in the second${equal ? ", too" : ""}.` +
    (more ? ` ${more} ${more === 1 ? "is" : "are"} made of the same words there, with another value.` : "") +
    ` Number ${at}: ${madeOf(one)} in the first program, ${madeOf(two)} in the second.`;
  return { one, two, at, words, say };
};
