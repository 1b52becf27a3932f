// Which calls of a short program pass the two places where modes stand: as figures/mode_stack.py.
const SLOTS = ["outer", "middle", "inner"];
const [FUNCTION, AUTOGRAD, PYTHON, KERNEL] = [0, 1, 2, 3];
const LONGEST = 8;
const NO_GRAPH = "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn";
const NO_SCALAR = "RuntimeError: grad can be implicitly created only for scalar outputs";

const call = (name, operator, part, node, savesResult, ...backward) => ({ name, operator, part, node, savesResult, backward });
const CALLS = {
  "relu()": call("torch.Tensor.relu", "relu.default", "", "ReluBackward0", true, "threshold_backward.default"),
  "exp()": call("torch.Tensor.exp", "exp.default", "", "ExpBackward0", true, "mul.Tensor"),
  "tanh()": call("torch.Tensor.tanh", "tanh.default", "", "TanhBackward0", true, "tanh_backward.default"),
  "sigmoid()": call("torch.Tensor.sigmoid", "sigmoid.default", "", "SigmoidBackward0", true, "sigmoid_backward.default"),
  "abs()": call("torch.Tensor.abs", "abs.default", "", "AbsBackward0", false, "sgn.default", "mul.Tensor"),
  "neg()": call("torch.Tensor.neg", "neg.default", "", "NegBackward0", false, "neg.default"),
  "square()": call("torch.Tensor.square", "square.default", "pow.Tensor_Scalar", "PowBackward0", false, "pow.Tensor_Scalar", "mul.Scalar", "mul.Tensor"),
  "softmax(-1)": call("torch.Tensor.softmax", "softmax.int", "_softmax.default", "SoftmaxBackward0", true, "_softmax_backward_data.default"),
  "log_softmax(-1)": call("torch.Tensor.log_softmax", "log_softmax.int", "_log_softmax.default", "LogSoftmaxBackward0", true, "_log_softmax_backward_data.default"),
  "t()": call("torch.Tensor.t", "t.default", "", "TBackward0", false, "t.default"),
  "clone()": call("torch.Tensor.clone", "clone.default", "", "CloneBackward0", false),
  "detach()": call("torch.Tensor.detach", "detach.default", "", "", false),
  "sum(0)": call("torch.Tensor.sum", "sum.dim_IntList", "", "SumBackward1", false, "unsqueeze.default", "expand.default"),
  "sum()": call("torch.Tensor.sum", "sum.default", "", "SumBackward0", false, "expand.default"),
  "mean()": call("torch.Tensor.mean", "mean.default", "", "MeanBackward0", false, "expand.default", "div.Scalar"),
}; // prettier-ignore
const BINARY = {
  add: call("torch.Tensor.add", "add.Tensor", "", "AddBackward0", false),
  sub: call("torch.Tensor.sub", "sub.Tensor", "", "SubBackward0", false),
  mul: call("torch.Tensor.mul", "mul.Tensor", "", "MulBackward0", false, "mul.Tensor"),
  div: call("torch.Tensor.div", "div.Tensor", "", "DivBackward0", false, "div.Tensor"),
};
const SIGNS = { "+": "add", "-": "sub", "*": "mul", "/": "div" };
const ONES = { "torch.ones(2)": 1, "torch.ones(2,2)": 2 };
const LESS = { "sum()": 2, "mean()": 2, "sum(0)": 1 };
const GELU = call("torch.nn.functional.gelu", "gelu.default", "", "GeluBackward0", false, "gelu_backward.default");
const ACCUMULATE = ["AccumulateGrad", ["detach.default"]];

const linearBackward = (xRequiresGrad) => [
  ["AddmmBackward0", [...(xRequiresGrad ? ["t.default", "mm.default"] : []), "t.default", "mm.default", "t.default", "sum.dim_IntList", "view.default"]],
  ...(xRequiresGrad ? [ACCUMULATE, ACCUMULATE] : [ACCUMULATE]),
  ["TBackward0", ["t.default"]],
  ACCUMULATE,
]; // prettier-ignore

const an = (name) => `${"AEIOU".includes(name[0]) ? "an" : "a"} ${name}`;

class ModeRun {
  constructor(inputs) {
    const modes = SLOTS.filter((slot) => inputs[slot]).map((slot) => [slot, inputs[slot]]);
    this.functions = modes.filter(([, mode]) => mode.startsWith("function"));
    this.dispatches = modes.filter(([, mode]) => mode.startsWith("dispatch"));
    this.around = inputs.around;
    this.x = inputs.x;
    this.kind = "";
    this.requiresGrad = false;
    this.dimensions = 2;
    this.leaves = [];
    this.nodes = [];
    this.events = [];
    this.say = [];
    this.swappedBelow = false;
    this.hasGradient = false;
  }
  event(place, who, what, sentence) {
    this.events.push({ place, who, what });
    this.say.push(sentence);
  }
  function(name, kind = this.kind, modes = this.functions) {
    if (!modes.length) {
      if (kind === "subclass")
        this.event(FUNCTION, "class", name, `Named inherits Tensor.__torch_function__: this calls ${name} with the methods of subclasses disabled, and makes a Named of a tensor that comes back.`);
      return name;
    } // prettier-ignore
    const [slot, mode] = modes.at(-1);
    if (mode === "function swap" && name === "torch.Tensor.relu") {
      this.event(FUNCTION, slot, name, `The ${slot} mode sees ${name} and calls ${GELU.name} instead.`);
      return this.function(GELU.name, kind, modes.slice(0, -1));
    }
    this.event(FUNCTION, slot, name, `The ${slot} mode sees ${name} and calls it.`);
    return this.function(name, kind, modes.slice(0, -1));
  }
  dispatch(operator, kind = this.kind, modes = this.dispatches) {
    if (!modes.length) {
      if (kind === "wrapper")
        this.event(PYTHON, "class", operator, `The wrapper's class sees aten.${operator} and calls it with the tensors inside the wrappers.`);
      this.event(KERNEL, "", operator, `The kernel of aten.${operator} for the CPU runs.`);
      return;
    } // prettier-ignore
    const [slot, mode] = modes.at(-1),
      rest = modes.slice(0, -1);
    if (mode === "dispatch swap" && operator === "relu.default") {
      this.swappedBelow = true;
      this.event(PYTHON, slot, operator, `The ${slot} mode sees aten.${operator} and calls aten.${GELU.operator} instead.`);
      this.dispatch(GELU.operator, kind, rest);
      return;
    }
    this.event(PYTHON, slot, operator, `The ${slot} mode sees aten.${operator} and calls it.`);
    this.dispatch(operator, kind, rest);
    if (mode === "dispatch zero") this.dispatch("add.Tensor", kind, rest);
  }
  composite(operator, parts) {
    this.event(AUTOGRAD, "", operator, `aten.${operator} is composite: its kernel here calls ${parts}.`);
  }
  makes(operator, node) {
    this.event(AUTOGRAD, "", node, `Autograd's kernel of aten.${operator} makes ${an(node)}.`);
  }
  begin(tensor) {
    if (tensor in ONES) {
      this.ones();
      this.dimensions = ONES[tensor];
      return;
    }
    this.kind = ["subclass", "wrapper"].includes(this.x) ? this.x : "";
    this.requiresGrad = this.x === "grad";
    if (this.requiresGrad) this.leaves = [ACCUMULATE];
    if (tensor === "net(x)") this.linear();
  }
  ones() {
    this.function("torch.ones", "");
    this.dispatch("ones.default", "");
  }
  linear() {
    this.function("torch.nn.functional.linear");
    if (this.around === "inference_mode") {
      this.requiresGrad = false;
      this.dispatch("linear.default");
      return;
    }
    this.composite("linear.default", "aten.t and aten.addmm");
    this.leaves = linearBackward(this.requiresGrad);
    this.requiresGrad = !this.around;
    for (const [operator, node, kind] of [["t.default", "TBackward0", ""], ["addmm.default", "AddmmBackward0", this.kind]]) {
      if (this.requiresGrad) this.makes(operator, node);
      this.dispatch(operator, kind);
    } // prettier-ignore
    this.asNamed();
  }
  asNamed() {
    if (this.kind !== "subclass" || !this.requiresGrad) return;
    this.event(AUTOGRAD, "", "AliasBackward0", "Tensor.__torch_function__ makes a Named of the result. It shares its elements, and this makes an AliasBackward0.");
    this.nodes.push(["AliasBackward0", []]);
  } // prettier-ignore
  operate(one, dimensions) {
    const before = this.dimensions;
    this.dimensions = dimensions;
    if (this.around === "inference_mode") {
      this.requiresGrad = false;
      this.dispatch(one.operator);
      return;
    }
    const operator = one.part || one.operator;
    if (one.part) this.composite(one.operator, `aten.${one.part}`);
    this.requiresGrad = this.requiresGrad && !this.around && one.node !== "";
    if (!this.requiresGrad) {
      this.dispatch(operator);
      return;
    }
    this.makes(operator, one.node);
    this.dispatch(operator);
    const saved = one.savesResult ? ["detach.default"] : [];
    this.nodes.push([one.node, [...saved, ...derivativeOf(one, before, dimensions)]]);
    if (saved.length) this.dispatch("detach.default");
    this.asNamed();
  }
  backward() {
    this.function("torch.Tensor.backward");
    if (!this.requiresGrad || this.dimensions) {
      this.event(AUTOGRAD, "", "RuntimeError", `${this.requiresGrad ? NO_SCALAR : NO_GRAPH}.`);
      return;
    }
    this.dispatch("ones_like.default");
    for (const [name, operators] of [...[...this.nodes].reverse(), ...this.leaves]) {
      this.event(AUTOGRAD, "", name, `${name} runs.`);
      for (const operator of operators) this.dispatch(operator);
    }
    this.hasGradient = true;
  }
  step(name, other) {
    if (name === "backward()") this.backward();
    else if (name in BINARY) {
      if (other in ONES) this.ones();
      this.function(BINARY[name].name);
      this.operate(BINARY[name], Math.max(this.dimensions, ONES[other] ?? 0));
    } else {
      const ran = this.function(CALLS[name].name);
      this.operate(ran === GELU.name ? GELU : CALLS[name], Math.max(0, this.dimensions - (LESS[name] ?? 0)));
    }
  }
}

function derivativeOf(one, before, after) {
  if (one.node === "SumBackward1" && before === 0) return ["expand.default"];
  if (after <= before) return one.backward;
  return [...one.backward, ...(before ? ["sum.dim_IntList", "view.default"] : ["sum.default"])];
}

// ---- the program

const DIGITS = "(?:0|[1-9][0-9]{0,3})(?:\\.[0-9]{1,4})?";
const TENSOR = "net\\(x\\)|x|torch\\.ones\\(2(?:,2)?\\)";
const TOKEN = new RegExp(`^(?:(?:${TENSOR})(?![A-Za-z0-9_(])|\\.[a-z_]+\\([^()]*\\)|${DIGITS}(?![0-9A-Za-z_])|[-+*/()])`);
const METHOD = new RegExp(`^\\.(add|sub|mul|div)\\((${DIGITS})\\)$`);
const known = [...Object.keys(CALLS), "backward()"].map((name) => "." + name).join(", ");
const ALLOWED = `Allowed: x, net(x), torch.ones(2) and torch.ones(2, 2); behind them ${known}; + - * / with a number or torch.ones on the right; and parentheses.`;

function modeTokens(program) {
  let words = program.replace(/^ +| +$/g, "").replace(/ *([^A-Za-z0-9_ ]) */gu, "$1");
  const found = [];
  while (words) {
    const match = TOKEN.exec(words);
    if (!match) refuse(`Not known here: ${[...words].slice(0, 20).join("")}. ${ALLOWED}`);
    found.push(match[0]);
    words = words.slice(match[0].length);
  }
  return found;
}

class ModeParser {
  constructor(program) {
    this.left = modeTokens(program);
  }
  nextIs(signs) {
    return this.left.length > 0 && signs.includes(this.left[0]);
  }
  whole() {
    const steps = this.operation("+-");
    if (this.left.length) refuse(`Not known here: ${this.left.join("").slice(0, 20)}. ${ALLOWED}`);
    return steps;
  }
  operation(signs) {
    const part = () => (signs === "+-" ? this.operation("*/") : this.chain());
    let steps = part();
    while (this.nextIs(signs)) {
      const sign = this.left.shift(),
        right = part();
      if (right.length > 1 || ["x", "net(x)"].includes(right[0][0]))
        refuse(`On the right of ${sign} stands a number, torch.ones(2) or torch.ones(2, 2).`);
      steps = this.grown(steps, [SIGNS[sign], right[0][0]]);
    }
    return steps;
  }
  chain() {
    const first = this.left.shift() ?? "";
    let steps;
    if (first === "(") {
      steps = this.operation("+-");
      if (!this.nextIs(")")) refuse(`A parenthesis is not closed. ${ALLOWED}`);
      this.left.shift();
    } else if (first && !".+-*/)".includes(first[0])) steps = [[first, ""]];
    else refuse(`A tensor is missing${first ? " before " + first : " at the end"}. ${ALLOWED}`);
    while (this.left.length && this.left[0][0] === ".") {
      const name = this.left.shift(),
        binary = METHOD.exec(name);
      if (!binary && !Object.hasOwn(CALLS, name.slice(1)) && name !== ".backward()") refuse(`Not known here: ${name}. ${ALLOWED}`);
      steps = this.grown(steps, binary ? [binary[1], binary[2]] : [name.slice(1), ""]);
    }
    return steps;
  }
  grown(steps, step) {
    if (steps.at(-1)[0] === "backward()") refuse("Nothing can be called on what backward() returns: it is None.");
    if (/^[0-9]/.test(steps[0][0])) refuse(`A number stands on the right of a sign: write net(x) * 2. ${ALLOWED}`);
    if (steps.length > LONGEST) refuse(`At most ${LONGEST} calls, please.`);
    return [...steps, step];
  }
}

const model = (inputs) => {
  const [[first], ...steps] = new ModeParser(inputs.program).whole();
  if (!steps.length && (first === "x" || /^[0-9]/.test(first))) refuse(`${first} alone calls nothing. ${ALLOWED}`);
  const run = new ModeRun(inputs);
  run.begin(first);
  for (const [name, other] of steps) run.step(name, other);
  const wrong = run.hasGradient && run.swappedBelow && run.nodes.some(([node]) => node === "ReluBackward0");
  if (wrong) run.say.push(run.say.pop() + " The values are gelu's, and the graph has a ReluBackward0: the gradient is wrong.");
  return { events: run.events, wrong, say: run.say };
};
