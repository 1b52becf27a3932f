// Which element each thread of a launch works on: as figures/thread_index.py.
const ACROSS = 32,
  FARTHEST = 256,
  LARGEST = 1e9;
const NAMES = ["threadIdx.x", "blockIdx.x", "blockDim.x", "gridDim.x", "x.size", "n"];
const IN_GRID = "blockIdx.x * blockDim.x + threadIdx.x"; // what cuda.grid(1) is
const NAMED = NAMES.map((name) => name.replace(".", "\\."));
const TOKEN = new RegExp(`\\s*([0-9]+|//|<<|>>|[-+*%()&^|]|(?:${NAMED.join("|")})(?!\\w))`, "y");
const NAME = new RegExp(NAMED.map((name) => `\\b${name}\\b`).join("|"), "g");
const PASSES = { none: () => true, less: (i, n) => i < n, both: (i, n) => 0 <= i && i < n, most: (i, n) => i <= n };

function model({ index: text, guard, n, grid, block, at }) {
  const written = text.replaceAll("cuda.grid(1)", `(${IN_GRID})`).replaceAll("cuda.", "").trim(),
    valueOf = parsedIndex(written),
    threads = grid * block;
  const namesOf = (number) => {
    const values = [number % block, Math.floor(number / block), block, grid, n, n];
    return Object.fromEntries(NAMES.map((name, place) => [name, values[place]]));
  };
  const index = Array.from({ length: threads }, (_, number) => valueOf(namesOf(number)) + 0);
  const states = index.map((i) => (!PASSES[guard](i, n) ? "idle" : 0 <= i && i < n ? "works" : "outside"));
  const counts = Array(n).fill(0);
  index.forEach((i, number) => states[number] === "works" && counts[i]++);
  const isOutside = (i, number) => states[number] === "outside" && n <= i && i < n + FARTHEST;
  at = Math.min(at, threads - 1);
  const result = {
    at, index, states, counts,
    behind: [...new Set(index.filter(isOutside))].sort((a, b) => a - b),
    outside: states.filter((state) => state === "outside").length,
    raced: counts.filter((count) => count > 1).length,
    left: counts.filter((count) => count === 0).length,
  }; // prettier-ignore
  const numbers = written.replace(NAME, (name) => namesOf(at)[name]);
  const steps = [...new Set(["i", numbers, String(index[at])])]; // each once: a number is its own value
  const one = `Block ${Math.floor(at / block)}, thread ${at % block}: ${steps.join(" = ")}, ${whatItDoes(index[at], states[at])}. `;
  return { ...result, say: one + verdictOf(result) };
}

// ---- expressions: numbers, names, + - * // % << >> & ^ |, parentheses

function parsedIndex(written) {
  const tokens = tokensOf(written),
    valueOf = bitsOf(tokens);
  if (tokens.length) refuse(`I did not expect ${tokens[0]} here.`);
  return valueOf;
}

function tokensOf(written) {
  const tokens = [];
  TOKEN.lastIndex = 0;
  for (let at = 0; written.slice(at).trim(); at = TOKEN.lastIndex) {
    TOKEN.lastIndex = at;
    const found = TOKEN.exec(written);
    if (!found) refuse(`I cannot read ${written.slice(at).trim()}: an index has numbers, ${NAMES.join(", ")}, + - * // % << >> & ^ | and parentheses.`);
    tokens.push(found[1]);
  }
  return tokens;
}

// Of these signs, the last binds strongest.
const bitsOf = (tokens, [first, ...others] = ["|", "^", "&"]) =>
  first ? chainOf(tokens, [first], (rest) => bitsOf(rest, others)) : chainOf(tokens, ["<<", ">>"], sumOf);
const sumOf = (tokens) => chainOf(tokens, ["+", "-"], productOf);
const productOf = (tokens) => chainOf(tokens, ["*", "//", "%"], factorOf);

function chainOf(tokens, signs, part) {
  let left = part(tokens);
  while (signs.includes(tokens[0])) {
    const sign = tokens.shift(),
      [one, other] = [left, part(tokens)];
    left = (names) => computedOf(sign, one(names), other(names));
  }
  return left;
}

function factorOf(tokens) {
  const token = tokens.shift() ?? "the end";
  if (token === "-") {
    const negated = factorOf(tokens);
    return (names) => -negated(names);
  }
  if (token === "(") {
    const inside = bitsOf(tokens);
    if (tokens.shift() !== ")") refuse("A parenthesis is not closed.");
    return inside;
  }
  if (NAMES.includes(token)) return (names) => names[token];
  if (!/^[0-9]+$/.test(token)) refuse(`I did not expect ${token} here.`);
  return () => smallEnough(Number(token));
}

const COMPUTES = {
  "+": (one, other) => one + other,
  "-": (one, other) => one - other,
  "*": (one, other) => one * other,
  "//": (one, other) => Math.floor(one / other),
  "%": (one, other) => one - Math.floor(one / other) * other,
  "<<": (one, other) => one * 2 ** other,
  ">>": (one, other) => one >> other,
  "&": (one, other) => one & other,
  "^": (one, other) => one ^ other,
  "|": (one, other) => one | other,
};

function computedOf(sign, one, other) {
  if ((sign === "//" || sign === "%") && other === 0) refuse("That divides by 0.");
  if ((sign === "<<" || sign === ">>") && !(0 <= other && other < 32)) refuse("Shift by 0 to 31 bits.");
  return smallEnough(COMPUTES[sign](one, other));
}

const smallEnough = (value) => (Math.abs(value) > LARGEST ? refuse("That is a very large number.") : value);

// ---- words

const whatItDoes = (i, state) =>
  ({ idle: "and the test keeps it from working", works: `it writes out[${i}]`, outside: "out of bounds" })[state];

const several = (n, word) => `${commas(n)} ${word}${n === 1 ? "" : "s"}`;

function verdictOf({ outside, raced, left }) {
  const faults = [
    outside && `${several(outside, "thread")} out of bounds`,
    raced && `${several(raced, "element")} written by several threads, a race`,
    left && `${several(left, "element")} written by none`,
  ].filter(Boolean);
  return faults.length ? `In all: ${faults.join("; ")}.` : "Each element is written once: right.";
}
