// What schedulers write into an optimizer's group: as figures/learning_rates.py, with formulas of its own.
const MOST = 3;

// ---- the program

const argument = (name, low, high, given, kind = "") => ({ name, low, high, given, whole: kind.includes("whole"), many: kind.includes("many") });
const count = (name, given) => argument(name, 1, 1000, given, "whole");
const GAMMA = argument("gamma", 0, 2, 0.1),
  FLOOR = argument("eta_min", 0, 10, 0);
const ARGUMENTS = {
  StepLR: [count("step_size"), GAMMA],
  MultiStepLR: [argument("milestones", 1, 1000, undefined, "whole many"), GAMMA],
  ConstantLR: [argument("factor", 0, 10, 1 / 3), count("total_iters", 5)],
  LinearLR: [argument("start_factor", 0, 10, 1 / 3), argument("end_factor", 0, 10, 1), count("total_iters", 5)],
  ExponentialLR: [argument("gamma", 0, 2)],
  PolynomialLR: [count("total_iters", 5), argument("power", 0, 10, 1)],
  CosineAnnealingLR: [count("T_max"), FLOOR],
  CosineAnnealingWarmRestarts: [count("T_0"), count("T_mult", 1), FLOOR],
};

const ONE_NUMBER = /^[+-]?([0-9][0-9_]*\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?$/i;

function readProgram(code) {
  const pieces = code.split(";").map((piece) => piece.trim()).filter(Boolean); // prettier-ignore
  if (!pieces.length || pieces.length > MOST) refuse(`The program is one to ${MOST} schedulers, with semicolons between them.`);
  return pieces.map(readCall);
}

function readCall(piece) {
  const call = /^([A-Za-z_]\w*)\s*\((.*)\)$/.exec(piece) ?? refuse(`“${piece}” is no call such as StepLR(5, gamma=0.5): leave out the module and the optimizer.`);
  const name = call[1],
    known = ARGUMENTS[name] ?? refuse(`There is no ${name} here. There are ${Object.keys(ARGUMENTS).join(", ")}.`);
  const parts = call[2].trim() === "" ? [] : splitArguments(call[2].replace(/,\s*$/, ""));
  const values = {};
  const plain = parts.filter((part) => !/^[A-Za-z_]\w*\s*=/.test(part));
  if (plain.length > known.length) refuse(`${name} takes at most ${known.length} arguments here.`);
  parts.forEach((part, i) => {
    const named = /^([A-Za-z_]\w*)\s*=(.*)$/.exec(part),
      key = named ? named[1] : known[i].name;
    if (!known.some((one) => one.name === key)) refuse(`${name} has no argument ${key} here.`);
    if (key in values) refuse(`${name} got ${key} twice.`);
    values[key] = readValue(piece, (named ? named[2] : part).trim());
  });
  for (const one of known) {
    if (!(one.name in values) && one.given === undefined) refuse(`${name} needs ${one.name}.`);
    values[one.name] = one.name in values ? checked(name, one, values[one.name]) : one.given;
  }
  return { name, values };
}

// At the commas that stand in no list.
const splitArguments = (text) => text.split(/,(?![^[]*\])/).map((part) => part.trim());

// Texts of numbers: whether one is whole can be seen in its text alone.
function readValue(piece, text) {
  const list = /^\[(.*)\]$/.exec(text),
    parts = list ? list[1].replace(/,\s*$/, "").split(",").map((part) => part.trim()) : [text]; // prettier-ignore
  if (!parts.every((part) => ONE_NUMBER.test(part))) refuse(`The arguments in “${piece}” are numbers, or a list of numbers.`);
  return list ? parts : text;
}

function checked(scheduler, { name, low, high, whole, many }, value) {
  const texts = Array.isArray(value) ? value : [value],
    numbers = texts.map((text) => Number(text.replaceAll("_", "")));
  const good = numbers.every((x, i) => low <= x && x <= high && (!whole || /^[+-]?[0-9_]+$/.test(texts[i])));
  const kind = whole ? "whole number" : "number";
  if (Array.isArray(value) !== many || !good)
    refuse(`${name} of ${scheduler} takes ${many ? `a list of ${kind}s` : `a ${kind}`} from ${low} to ${high.toLocaleString("en-US")} here.`);
  return many ? numbers : numbers[0];
}

// ---- the schedules: `ratio` to the last rate (null: it stays), `factor` of the first one

const raise = (error) => refuse(`PyTorch raises ${error}`);
const over = (a, b, what = "float division by zero") => (b === 0 ? raise(`ZeroDivisionError: ${what}`) : a / b);

const FACTORS = {
  StepLR: {
    ratio: ({ step_size, gamma }, t) => (t !== 0 && t % step_size === 0 ? gamma : null),
    factor: ({ step_size, gamma }, t) => gamma ** Math.floor(t / step_size),
  },
  MultiStepLR: {
    ratio: ({ milestones, gamma }, t) => (milestones.includes(t) ? gamma ** milestones.filter((m) => m === t).length : null),
    factor: ({ milestones, gamma }, t) => gamma ** milestones.filter((m) => m <= t).length,
  },
  ConstantLR: {
    check: ({ factor }) => (factor > 1 || factor < 0) && raise("ValueError: Constant multiplicative factor expected to be between 0 and 1."),
    ratio: ({ factor, total_iters }, t) => (t === 0 ? factor : t === total_iters ? over(1, factor) : null),
    factor: ({ factor, total_iters }, t) => (t >= total_iters ? 1 : factor),
  },
  LinearLR: {
    check({ start_factor, end_factor }) {
      if (start_factor > 1 || start_factor <= 0) raise("ValueError: Starting multiplicative factor expected to be greater than 0 and less or equal to 1.");
      if (end_factor > 1) raise("ValueError: Ending multiplicative factor expected to be between 0 and 1.");
    },
    ratio({ start_factor, end_factor, total_iters }, t, initial) {
      if (t === 0) return start_factor;
      if (initial || t > total_iters) return null;
      return 1 + over(end_factor - start_factor, total_iters * start_factor + (t - 1) * (end_factor - start_factor));
    },
    factor: ({ start_factor, end_factor, total_iters }, t) => start_factor + ((end_factor - start_factor) * Math.min(total_iters, t)) / total_iters,
  },
  ExponentialLR: { ratio: ({ gamma }, t, initial) => (initial ? null : gamma), factor: ({ gamma }, t) => gamma ** t },
  PolynomialLR: {
    ratio({ total_iters, power }, t, initial) {
      if (initial || t > total_iters) return null;
      return over(1 - t / total_iters, 1 - (t - 1) / total_iters) ** power;
    },
    factor: ({ total_iters, power }, t) => (1 - Math.min(total_iters, t) / total_iters) ** power,
  },
}; // prettier-ignore

class Scheduler {
  constructor(group, values, lastEpoch) {
    this.values = values;
    this.constructor.formulas?.check?.(values);
    this.begin(group, lastEpoch);
  }
  begin(group, lastEpoch) {
    this.group = group;
    group.initial_lr ??= group.lr;
    this.base = group.initial_lr;
    this.lastEpoch = lastEpoch;
    this.initialStep();
  }
  initialStep() {
    this.stepCount = 0;
    this.initial = true;
    this.step();
    this.initial = false;
  }
  step() {
    this.stepCount += 1;
    this.lastEpoch += 1;
    this.group.lr = this.chained();
  }
  jumpToStart() {
    this.lastEpoch = 0;
    this.group.lr = this.closed();
  }
  undo() {
    this.lastEpoch -= 1;
  }
  state() {
    const { group, ...rest } = this;
    return { ...rest };
  }
  load(state) {
    Object.assign(this, state);
  }
}

class Factor extends Scheduler {
  chained() {
    const ratio = this.constructor.formulas.ratio(this.values, this.lastEpoch, this.initial);
    return ratio === null ? this.group.lr : this.group.lr * ratio;
  }
  closed() {
    return this.base * this.constructor.formulas.factor(this.values, this.lastEpoch);
  }
}

class CosineAnnealingLR extends Scheduler {
  height(t) {
    return 1 + Math.cos((Math.PI * t) / this.values.T_max);
  }
  chained() {
    const { T_max, eta_min } = this.values,
      t = this.lastEpoch,
      lr = this.group.lr;
    if (this.initial) return lr;
    if (this.stepCount === 1 && t > 0) return this.closed();
    if ((t - 1 - T_max) % (2 * T_max) === 0) return lr + ((this.base - eta_min) * (1 - Math.cos(Math.PI / T_max))) / 2;
    return over(this.height(t), this.height(t - 1)) * (lr - eta_min) + eta_min;
  }
  closed() {
    const { eta_min } = this.values;
    return eta_min + ((this.base - eta_min) * this.height(this.lastEpoch)) / 2;
  }
}

class CosineAnnealingWarmRestarts extends Scheduler {
  begin(group, lastEpoch) {
    this.length = this.values.T_0;
    this.since = lastEpoch;
    super.begin(group, lastEpoch);
  }
  step() {
    if (this.lastEpoch < 0) {
      this.length = this.values.T_0;
      this.since = 0;
      this.lastEpoch = 0;
    } else {
      this.lastEpoch += 1;
      this.since += 1;
      if (this.since >= this.length) {
        this.since %= this.length;
        this.length *= this.values.T_mult;
      }
    }
    this.group.lr = this.closed();
  }
  closed() {
    const { eta_min } = this.values;
    return eta_min + ((this.base - eta_min) * (1 + Math.cos((Math.PI * this.since) / this.length))) / 2;
  }
}

const CLASSES = { CosineAnnealingLR, CosineAnnealingWarmRestarts };
for (const [name, formulas] of Object.entries(FACTORS))
  CLASSES[name] = class extends Factor {
    static formulas = formulas;
  };

class Together {
  constructor(schedulers) {
    this.schedulers = schedulers;
  }
  state() {
    return { lastEpoch: this.lastEpoch, schedulers: this.schedulers.map((one) => one.state()) };
  }
  load({ lastEpoch, schedulers }) {
    this.lastEpoch = lastEpoch;
    this.schedulers.forEach((one, i) => one.load(schedulers[i]));
  }
}
class ChainedScheduler extends Together {
  step() {
    this.schedulers.forEach((one) => one.step());
  }
}
class SequentialLR extends Together {
  constructor(group, schedulers, milestones, lastEpoch) {
    super(schedulers);
    if (milestones.length !== schedulers.length - 1)
      raise(
        "ValueError: Sequential Schedulers expects number of schedulers provided to be one more than the number " +
          `of milestone points, but got number of schedulers ${schedulers.length} and the number of milestones to be equal to ${milestones.length}`,
      );
    this.milestones = milestones;
    this.lastEpoch = lastEpoch + 1;
    group.lr = group.initial_lr;
    schedulers.forEach((one) => one.undo());
    schedulers[this.turn(0)].initialStep();
  }
  turn(epoch) {
    return this.milestones.filter((m) => m <= epoch).length;
  }
  step() {
    this.lastEpoch += 1;
    const i = this.turn(this.lastEpoch);
    if (i > 0 && this.milestones[i - 1] === this.lastEpoch) this.schedulers[i].jumpToStart();
    else this.schedulers[i].step();
  }
}

// ---- running it

function makeSchedulers(program, { how, milestones }, group, lastEpoch = -1) {
  const trail = [];
  const schedulers = program.map(({ name, values }) => {
    const one = new CLASSES[name](group, values, lastEpoch);
    trail.push([name, group.lr]);
    return one;
  });
  if (schedulers.length === 1) return [schedulers[0], trail];
  const together = how === "sequential" ? new SequentialLR(group, schedulers, milestones, lastEpoch) : new ChainedScheduler(schedulers);
  return [together, [...trail, [how === "sequential" ? "SequentialLR" : "ChainedScheduler", group.lr]]];
}

function runEpochs(group, scheduler, epochs, early) {
  return Array.from({ length: epochs }, () => {
    if (early) scheduler.step();
    const used = group.lr;
    if (!early) scheduler.step();
    return used;
  });
}

function resumedRates(program, inputs) {
  const { lr, stop, way, early, epochs } = inputs;
  let group = { lr };
  let [scheduler] = makeSchedulers(program, inputs, group);
  const used = runEpochs(group, scheduler, stop, early);
  const saved = { ...group },
    state = scheduler.state();
  group = { lr };
  const load = () => {
    Object.assign(group, saved);
    return [["optimizer loaded", group.lr]];
  };
  const before = ["before", "unloaded", "last_epoch"].includes(way) ? load() : [];
  let made;
  [scheduler, made] = makeSchedulers(program, inputs, group, way === "last_epoch" ? stop - 1 : -1);
  const again = [...before, ...made, ...(way === "both" ? load() : [])];
  if (["both", "before", "forgotten"].includes(way)) scheduler.load(state);
  return [[...used, ...runEpochs(group, scheduler, epochs - stop, early)], again];
}

// As Python's .3g: three digits, and an exponent below 1e-4 and from 1000 on.
function threeDigits(exact) {
  if (Math.abs(exact) < 1e-12) return "0";
  const x = exact * (1 + 1e-9);
  const [mantissa, exponent] = x.toExponential(2).split("e"),
    power = Number(exponent);
  const bare = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
  if (power >= -4 && power < 3) return bare(x.toFixed(2 - power));
  return `${bare(mantissa)}e${power < 0 ? "-" : "+"}${String(Math.abs(power)).padStart(2, "0")}`;
}

function sentenceOf({ how, early, epochs, stop }, program, rates, broken, wrong) {
  const names = program.map(({ name }) => name).join(how === "sequential" ? ", then " : " and ");
  let top = 0;
  rates.forEach((rate, t) => rate.toFixed(9) - rates[top].toFixed(9) > 0 && (top = t));
  const last = rates.length - 1,
    peak = top === 0 || top === last ? "" : `, at its highest, ${threeDigits(rates[top])}, in epoch ${top + 1},`;
  let say = `${names}: the rate is ${threeDigits(rates[0])} in epoch 1${top === 0 ? ", its highest," : ""}${peak} and ${threeDigits(rates[last])} in epoch ${last + 1}${top === last && top > 0 ? ", its highest" : ""}.`;
  if (early) say += " The scheduler steps before the optimizer: PyTorch warns once, and the first rate is never used.";
  const below = rates.findIndex((rate) => rate < -1e-12);
  if (below >= 0) say += ` It is negative for the first time in epoch ${below + 1}: such a step climbs.`;
  if (broken) say += ` After the break ${wrong.length ? `${wrong.length} of ${epochs - stop} rates ${wrong.length === 1 ? "is" : "are"} wrong` : "every rate is right"}.`;
  return say;
}

const model = (inputs) => {
  const program = readProgram(inputs.program),
    { epochs, stop, milestones, lr, early } = inputs;
  if (epochs <= stop) refuse("The break comes before the last epoch, or there is none: 0.");
  if (program.length > 1 && inputs.how === "sequential" && milestones.some((m, i) => i && m <= milestones[i - 1]))
    refuse("Milestones go up: each is a later epoch than the one before.");
  const group = { lr },
    [scheduler, made] = makeSchedulers(program, inputs, group);
  const rates = runEpochs(group, scheduler, epochs, early),
    [broken, again] = stop ? resumedRates(program, inputs) : [null, []];
  const wrong = rates.map((_, t) => t).filter((t) => Math.abs((broken ?? rates)[t] - rates[t]) > 1e-9);
  return { rates, broken, wrong, made, again, at: Math.min(inputs.at, epochs), say: sentenceOf(inputs, program, rates, broken, wrong) };
};
