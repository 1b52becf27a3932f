// An all-reduce, message by message: rounds of [source, target, first part, how many parts, whether it is added]: as
// figures/all_reduce.py.
const NAMES = { ring: "ring", tree: "tree", doubling: "recursive doubling", halving: "halving and doubling" };
const LEAST = 3,
  MOST = 30;

const model = (inputs) => {
  const n = inputs.ranks,
    name = inputs.algorithm,
    size = Number(inputs.size),
    rounds = ROUNDS[name](n),
    parts = partsOf(name, n);
  const held = [upTo(n).map((rank) => Array(parts).fill(1 << rank))],
    done = [0];
  for (const one of rounds) {
    held.push(after(held.at(-1), one));
    done.push(done.at(-1) + seconds(one, parts, size, inputs));
  }
  const powers = upTo(MOST - LEAST + 1).map((i) => 2 ** (LEAST + i));
  const ofEach = (value) => Object.fromEntries(Object.keys(NAMES).map((other) => [other, value(other)]));
  const result = {
    parts, rounds, held, done,
    sent: upTo(n).map((rank) => bytesSent(rounds, rank, parts, size)),
    curves: ofEach((other) => powers.map((bytes) => totalTime(other, n, bytes, inputs))),
    totals: ofEach((other) => totalTime(other, n, size, inputs)),
  }; // prettier-ignore
  return { ...result, say: reduceSentences(result, inputs) };
};

// ---- who sends what to whom

const upTo = (n) => Array.from({ length: n }, (_, i) => i);
const powerBelow = (n) => 1 << Math.floor(Math.log2(n));
const partsOf = (name, n) => ({ ring: n, halving: powerBelow(n) })[name] ?? 1;

const ROUNDS = {
  ring(n) {
    const around = (step, shift, added) =>
      upTo(n).map((r) => [r, (r + 1) % n, (((r + shift - step) % n) + n) % n, 1, added]);
    const steps = upTo(n - 1);
    return [...steps.map((step) => around(step, 0, true)), ...steps.map((step) => around(step, 1, false))];
  },
  tree(n) {
    const up = [],
      down = [];
    for (let bit = 1; bit < n; bit *= 2) {
      up.push(upTo(n).filter((r) => (r & (2 * bit - 1)) === bit).map((r) => [r, r - bit, 0, 1, true])); // prettier-ignore
      down.unshift(upTo(n).filter((r) => r % (2 * bit) === 0 && r + bit < n).map((r) => [r, r + bit, 0, 1, false])); // prettier-ignore
    }
    return [...up, ...down];
  },
  doubling(n) {
    const power = powerBelow(n),
      rounds = [];
    for (let bit = 1; bit < power; bit *= 2) rounds.push(upTo(power).map((r) => [r, r ^ bit, 0, 1, true]));
    return folded(rounds, n, 1);
  },
  halving(n) {
    const power = powerBelow(n),
      rounds = [];
    const exchange = (bit, added, sends) =>
      upTo(power).map((r) => [r, r ^ bit, (sends ? r ^ bit : r) & ~(bit - 1), bit, added]);
    for (let bit = power / 2; bit >= 1; bit /= 2) rounds.push(exchange(bit, true, true));
    for (let bit = 1; bit < power; bit *= 2) rounds.push(exchange(bit, false, false));
    return folded(rounds, n, power);
  },
};

// Ranks beyond the largest power of two give their numbers away first, and get the sums at the end.
function folded(rounds, n, parts) {
  const power = powerBelow(n),
    rest = upTo(n).slice(power);
  if (!rest.length) return rounds;
  return [
    rest.map((r) => [r, r - power, 0, parts, true]),
    ...rounds,
    rest.map((r) => [r - power, r, 0, parts, false]),
  ];
}

function after(held, messages) {
  const next = held.map((row) => [...row]);
  for (const [source, target, first, count, added] of messages)
    for (let part = first; part < first + count; part++)
      next[target][part] = held[source][part] | (added ? held[target][part] : 0);
  return next;
}

// ---- what it costs

function seconds(messages, parts, size, inputs) {
  const most = Math.max(...messages.map(([, , , count]) => count));
  return inputs.latency + (size * most) / parts / (inputs.bandwidth * 1000);
}
function totalTime(name, n, size, inputs) {
  return ROUNDS[name](n).reduce((sum, one) => sum + seconds(one, partsOf(name, n), size, inputs), 0);
}
function bytesSent(rounds, rank, parts, size) {
  let sum = 0;
  for (const one of rounds) for (const [source, , , count] of one) if (source === rank) sum += (size * count) / parts;
  return sum;
}

// ---- words

function reduceSentences(result, inputs) {
  const { rounds } = result,
    n = inputs.ranks;
  const said = [
    `${n} ranks, ${volume(Number(inputs.size))} each; every rank holds its own numbers. ${plural(rounds.length, "round")} to come.`,
    ...rounds.map((one, i) => roundText(i, one, result, n)),
  ];
  said.push(`${said.pop()} ${verdict(result, inputs)}`);
  return said;
}

function roundText(i, messages, result, n) {
  const cut = result.parts > 1,
    [, , , count, added] = messages[0],
    complete = result.held[i + 1].filter((row) => row.every((mask) => mask === 2 ** n - 1)).length;
  const pairs = messages.map(([source, target]) => `${source} → ${target}`).join(", ");
  const what = cut ? `${count} of ${result.parts} parts` : "everything";
  const does = added ? "the receiver adds it to its own" : `the receiver takes the sums${cut ? " of a part" : ""}`;
  return (
    `Round ${i + 1} of ${result.rounds.length}: ${pairs}. Each message is ${what}; ${does}. ` +
    `${complete} of ${n} ranks have all sums. ${tookText(result.done[i + 1])} so far.`
  );
}

function verdict({ totals, sent }, inputs) {
  const best = Object.keys(NAMES).reduce((least, name) => (totals[name] < totals[least] ? name : least));
  const other =
    totals[inputs.algorithm] <= totals[best]
      ? "Nothing here is quicker"
      : `By ${NAMES[best]} it takes ${tookText(totals[best])}`;
  return `The busiest rank has sent ${volume(Math.max(...sent))}. ${other}.`;
}

function digitsOf(x) {
  if (x >= 100) return commas(Math.floor(x + 0.5));
  const [unit, places] = x >= 10 ? [10, 1] : [100, 2],
    parts = Math.floor(unit * x + 0.5);
  return `${Math.floor(parts / unit)}.${String(parts % unit).padStart(places, "0")}`.replace(/0+$/, "").replace(/\.$/, "");
}
const tookText = (us) => (us >= 1000 ? `${digitsOf(us / 1000)} ms` : `${digitsOf(us)} µs`);
function volume(count) {
  for (const [unit, name] of [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]]) // prettier-ignore
    if (count >= unit) return `${digitsOf(count / unit)} ${name}`;
  return `${digitsOf(count)} B`;
}
