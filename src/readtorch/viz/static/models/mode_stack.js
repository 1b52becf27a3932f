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
  "neg()": call("torch.Tensor.neg", "neg.default", "", "NegBackward0", false, "neg.default"),
  "mul(2)": call("torch.Tensor.mul", "mul.Tensor", "", "MulBackward0", false, "mul.Tensor"),
  "t()": call("torch.Tensor.t", "t.default", "", "TBackward0", false, "t.default"),
  "clone()": call("torch.Tensor.clone", "clone.default", "", "CloneBackward0", false),
  "sum()": call("torch.Tensor.sum", "sum.default", "", "SumBackward0", false, "expand.default"),
  "square()": call("torch.Tensor.square", "square.default", "pow.Tensor_Scalar", "PowBackward0", false, "pow.Tensor_Scalar", "mul.Scalar", "mul.Tensor"),
  "softmax(-1)": call("torch.Tensor.softmax", "softmax.int", "_softmax.default", "SoftmaxBackward0", true, "_softmax_backward_data.default"),
}; // prettier-ignore
const GELU = call("torch.nn.functional.gelu", "gelu.default", "", "GeluBackward0", false, "gelu_backward.default");
const LINEAR_BACKWARD = [
  ["AddmmBackward0", ["t.default", "mm.default", "t.default", "sum.dim_IntList", "view.default"]],
  ["AccumulateGrad", ["detach.default"]],
  ["TBackward0", ["t.default"]],
  ["AccumulateGrad", ["detach.default"]],
];

class ModeRun {
  constructor(inputs) {
    const modes = SLOTS.filter((slot) => inputs[slot]).map((slot) => [slot, inputs[slot]]);
    this.functions = modes.filter(([, mode]) => mode.startsWith("function"));
    this.dispatches = modes.filter(([, mode]) => mode.startsWith("dispatch"));
    this.around = inputs.around;
    this.events = [];
    this.say = [];
    this.nodes = [];
    this.isScalar = false;
    this.swappedBelow = false;
    this.hasGradient = false;
  }
  event(place, who, what, sentence) {
    this.events.push({ place, who, what });
    this.say.push(sentence);
  }
  function(name, modes = this.functions) {
    if (!modes.length) return name;
    const [slot, mode] = modes.at(-1);
    if (mode === "function swap" && name === "torch.Tensor.relu") {
      this.event(FUNCTION, slot, name, `The ${slot} mode sees ${name} and calls ${GELU.name} instead.`);
      return this.function(GELU.name, modes.slice(0, -1));
    }
    this.event(FUNCTION, slot, name, `The ${slot} mode sees ${name} and calls it.`);
    return this.function(name, modes.slice(0, -1));
  }
  dispatch(operator, modes = this.dispatches) {
    if (!modes.length) {
      this.event(KERNEL, "", operator, `The kernel of aten.${operator} for the CPU runs.`);
      return;
    }
    const [slot, mode] = modes.at(-1),
      rest = modes.slice(0, -1);
    if (mode === "dispatch swap" && operator === "relu.default") {
      this.swappedBelow = true;
      this.event(PYTHON, slot, operator, `The ${slot} mode sees aten.${operator} and calls aten.${GELU.operator} instead.`);
      this.dispatch(GELU.operator, rest);
      return;
    }
    this.event(PYTHON, slot, operator, `The ${slot} mode sees aten.${operator} and calls it.`);
    this.dispatch(operator, rest);
    if (mode === "dispatch zero") this.dispatch("add.Tensor", rest);
  }
  operate(one) {
    if (this.around === "inference_mode") {
      this.dispatch(one.operator);
      return;
    }
    const operator = one.part || one.operator;
    if (one.part) this.event(AUTOGRAD, "", one.operator, `aten.${one.operator} is composite: its kernel here calls aten.${one.part}.`);
    if (!this.around) this.event(AUTOGRAD, "", one.node, `Autograd's kernel of aten.${operator} makes a ${one.node}.`);
    this.dispatch(operator);
    if (this.around) return;
    this.nodes.push(one);
    if (one.savesResult) this.dispatch("detach.default");
  }
  linear() {
    this.function("torch.nn.functional.linear");
    if (this.around === "inference_mode") {
      this.dispatch("linear.default");
      return;
    }
    this.event(AUTOGRAD, "", "linear.default", "aten.linear.default is composite: its kernel here calls aten.t and aten.addmm.");
    for (const [operator, node] of [["t.default", "TBackward0"], ["addmm.default", "AddmmBackward0"]]) {
      if (!this.around) this.event(AUTOGRAD, "", node, `Autograd's kernel of aten.${operator} makes a ${node}.`);
      this.dispatch(operator);
    } // prettier-ignore
  }
  backward() {
    this.function("torch.Tensor.backward");
    if (this.around || !this.isScalar) {
      this.event(AUTOGRAD, "", "RuntimeError", `${this.around ? NO_GRAPH : NO_SCALAR}.`);
      return;
    }
    this.dispatch("ones_like.default");
    for (const one of [...this.nodes].reverse())
      this.node(one.node, [...(one.savesResult ? ["detach.default"] : []), ...one.backward]);
    for (const [node, operators] of LINEAR_BACKWARD) this.node(node, operators);
    this.hasGradient = true;
  }
  node(name, operators) {
    this.event(AUTOGRAD, "", name, `${name} runs.`);
    for (const operator of operators) this.dispatch(operator);
  }
}

function parseCalls(program) {
  const match = /^net\(x\)((?:\.\w+\(-?\d*\))*)$/.exec(program.replace(/\s/g, ""));
  const calls = match ? match[1].split(".").slice(1) : [];
  const known = [...Object.keys(CALLS), "backward()"];
  if (!match || calls.some((name) => !known.includes(name)))
    refuse(`Write net(x) and calls behind it: ${known.map((name) => "." + name).join(", ")}.`);
  if (calls.slice(0, -1).includes("backward()")) refuse("Nothing can be called on what backward() returns: it is None.");
  if (calls.length > LONGEST) refuse(`At most ${LONGEST} calls behind net(x), please.`);
  return calls;
}

const model = (inputs) => {
  const calls = parseCalls(inputs.program);
  const run = new ModeRun(inputs);
  run.linear();
  for (const name of calls) {
    if (name === "backward()") {
      run.backward();
      break;
    }
    const ran = run.function(CALLS[name].name);
    run.operate(ran === GELU.name ? GELU : CALLS[name]);
    run.isScalar = run.isScalar || name === "sum()";
  }
  const wrong = run.hasGradient && run.swappedBelow && run.nodes.some((one) => one.node === "ReluBackward0");
  if (wrong) run.say.push(run.say.pop() + " The values are gelu's, and the graph has a ReluBackward0: the gradient is wrong.");
  return { events: run.events, wrong, say: run.say };
};
