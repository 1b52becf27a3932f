// A training loop under a profiler: as figures/profiled_steps.py.

const FLOPS_A_US = 50_000,
  BYTES_A_US = 10_000;
const GPU = { flopsAUs: 10_000_000, bytesAUs: 1_000_000, kernel: 2, launch: 4, arrival: 3 }; // microseconds

// ---- the schedule

function actionOf(step, [wait, warmup, active, repeat]) {
  const length = wait + warmup + active;
  if (repeat && step >= repeat * length) return "none";
  const place = step % length;
  if (place < wait) return "none";
  if (place < wait + warmup) return "warmup";
  return place < length - 1 ? "record" : "save";
}

function runLoop({ schedule, iterations, stepping }) {
  const actions = [],
    traces = [],
    isActive = (action) => action === "record" || action === "save";
  let left = null,
    recording = false,
    before = "none";
  const change = (step, action) => {
    if (before === "save" || (isActive(before) && action === null)) {
      recording = false;
      traces.push([step, [...left]]);
    }
    if ((action === "warmup" && before !== "warmup") || (isActive(action) && (before === "none" || before === "save"))) left = [];
    if (isActive(action)) recording = true;
  };
  const last = stepping ? iterations : 0;
  for (let step = 0; step <= last; step++) {
    const action = actionOf(step, schedule);
    actions.push(action);
    change(step, action);
    if (recording) left.push(step);
    before = action;
  }
  change(last, null);
  return { actions, traces, left };
}

// ---- what a step calls

const NOTHING = (count) => Array.from({ length: count }, () => []);
const sizeOf = (shape) => shape.reduce((product, length) => product * length, 1);

class Machine {
  constructor({ widths, batch, overhead, python, average, blocks, device, item }) {
    Object.assign(this, { widths, batch, overhead, python, average, blocks, hasGpu: device === "gpu", asks: item });
    this.parameters = widths.slice(1).flatMap((out, i) => [[out, widths[i]], [out]]);
  }

  op(name, shapes, inside = [], { flops = 0, elements = 0 } = {}) {
    if (this.hasGpu && (flops || elements)) {
      const kernel = GPU.kernel + flops / GPU.flopsAUs + (4 * elements) / GPU.bytesAUs;
      return { name, shapes, inside: [...inside, this.ofCuda("cudaLaunchKernel", GPU.launch, { kernel })], flops, own: this.overhead, isBlock: false };
    }
    return { name, shapes, inside, flops, own: this.overhead + flops / FLOPS_A_US + (4 * elements) / BYTES_A_US, isBlock: false };
  }
  ofCuda = (name, own, more) => ({ name, shapes: [], inside: [], flops: 0, own, isBlock: false, ...more });
  block = (name, inside = []) => ({ name, shapes: [], inside, flops: 0, own: this.python, isBlock: true });
  named = (name, inside) => (this.blocks ? [this.block(name, inside)] : inside);

  step(number, iterations) {
    const one = () => [
      this.block("Optimizer.zero_grad#SGD.zero_grad"),
      ...this.named("forward", this.forward()),
      ...this.named("backward", this.backward()),
      this.block("Optimizer.step#SGD.step", this.parameters.map((p) => this.op("aten::add_", [p, p, []], [], { elements: 3 * sizeOf(p) }))),
      ...(this.asks ? [this.item()] : []),
      ...(this.average === "none" ? [] : this.named("average", this.averaged())),
    ];
    return this.block(`ProfilerStep#${number}`, Array.from({ length: iterations }, one).flat());
  }

  // ---- operators
  strided = (name, shape, more) => this.op(name, [shape, ...NOTHING(more)], [this.op("aten::as_strided", [shape, [], [], []])]);
  t = (shape) => this.op("aten::t", [shape], [this.strided("aten::transpose", shape, 2)]);
  copy_ = (shape) => this.op("aten::copy_", [shape, shape, []], [], { elements: 2 * sizeOf(shape) });
  conj = (shape) => this.op("aten::resolve_conj", [shape]);
  empty = (shape, kind) => this.op("aten::empty_like", [shape, ...NOTHING(5)], [this.op(kind, NOTHING(6))]);
  expanded = (shape) => this.op("aten::clone", [shape, []], [this.empty(shape, "aten::empty"), this.copy_(shape)]);

  // ---- forward
  forward() {
    const { widths, batch } = this,
      calls = [],
      out = [batch, widths.at(-1)];
    for (let layer = 0; layer < widths.length - 1; layer++) {
      const given = [batch, widths[layer]];
      if (layer) calls.push(this.op("aten::tanh", [given], [], { elements: 2 * sizeOf(given) }));
      calls.push(this.linear(given, widths[layer + 1]));
    }
    const begin = [this.op("aten::as_strided", NOTHING(4)), this.op("aten::fill_", [[1, 1], []])];
    return [...calls, this.op("aten::sum", [out, []], begin, { elements: sizeOf(out) })];
  }
  linear(given, out) {
    const [batch, size] = given,
      made = [batch, out],
      inside = [this.strided("aten::expand", [out], 2), this.copy_(made), this.conj(made), this.conj(given)],
      addmm = this.op("aten::addmm", [[out], given, [size, out], [], []], inside, { flops: 2 * batch * size * out });
    return this.op("aten::linear", [given, [out, size], [out]], [this.t([out, size]), addmm]);
  }

  // ---- backward
  node(name, shape, inside, after = []) {
    const ran = this.op(name, [shape], inside);
    return { ...this.op(`autograd::engine::evaluate_function: ${name}`, [], [ran, ...after]), isEngines: true };
  }
  accumulate = (shape) =>
    this.node("torch::autograd::AccumulateGrad", shape, [this.op("aten::detach", [shape], [this.op("detach", [shape])])]);
  backward() {
    const calls = [
        this.op("aten::ones_like", NOTHING(6), [this.empty([], "aten::empty_strided"), this.op("aten::fill_", NOTHING(2))]),
        this.node("SumBackward0", [], [this.strided("aten::expand", [], 2)]),
      ],
      last = this.widths.length - 2;
    for (let layer = last; layer >= 0; layer--) {
      const [size, out] = this.widths.slice(layer, layer + 2),
        hidden = [this.batch, size];
      calls.push(
        this.addmmBackward(size, out, layer === 0, layer === last),
        this.accumulate([out]),
        this.node("TBackward0", [size, out], [this.t([size, out])]),
        this.accumulate([out, size]),
      );
      if (layer) calls.push(this.node("TanhBackward0", hidden, [this.op("aten::tanh_backward", [hidden, hidden], [], { elements: 3 * sizeOf(hidden) })])); // prettier-ignore
    }
    return calls;
  }
  addmmBackward(size, out, isFirst, isLast) {
    const came = [this.batch, out],
      given = [this.batch, size],
      flops = 2 * this.batch * size * out;
    const product = (one, other, made, isTransposed) => {
      const again = isLast ? [this.expanded(one)] : isTransposed ? [] : [this.conj(one)];
      return this.op("aten::mm", [one, other], [this.conj(made), this.conj(other), ...again], { flops });
    };
    const calls = [
      ...(isFirst ? [] : [this.t([size, out]), product(came, [out, size], given, false)]),
      this.t(came),
      product([out, this.batch], given, [out, size], true),
      this.t([out, size]),
    ];
    const total = this.op("aten::sum", [came, [], [], []], [this.op("aten::fill_", [[1, out], []])], { elements: sizeOf(came) });
    return this.node("AddmmBackward0", came, calls, [total, this.op("aten::view", [[1, out], []])]);
  }

  item() {
    const copied = [this.ofCuda("cudaMemcpyAsync", GPU.launch, { kernel: GPU.kernel }), this.ofCuda("cudaStreamSynchronize", 1, { waits: true })];
    return this.op("aten::item", [[]], [this.op("aten::_local_scalar_dense", [[]], this.hasGpu ? copied : [])]);
  }
  averaged() {
    if (this.hasGpu && this.average === "foreach") {
      const elements = 3 * this.parameters.reduce((sum, p) => sum + sizeOf(p), 0); // one kernel for all
      return [this.op("aten::_foreach_lerp_", NOTHING(3), [], { elements })];
    }
    const each = this.parameters.map((p) => this.op("aten::lerp_", [p, p, []], [], { elements: 3 * sizeOf(p) }));
    return this.average === "loop" ? each : [this.op("aten::_foreach_lerp_", NOTHING(3), each)];
  }
}

// ---- the trace

// Into `events`: [name, start, end, parent, depth, shapes, flops, self]; into `kernels`: [name, start, end, the number of the launch].
// Returns when the call is over.
function placeCall(call, start, parent, events, kernels) {
  const number = events.length,
    depth = parent >= 0 ? events[parent][4] + 1 : 0,
    event = [call.name, start, 0, parent, depth, call.shapes, call.flops, 0];
  events.push(event);
  let now = start + (call.isBlock ? 0 : call.own / 2),
    inside = 0;
  for (const child of call.inside) {
    const begin = call.isBlock && !child.isEngines ? now + call.own : now;
    now = placeCall(child, begin, number, events, kernels);
    inside += now - begin;
  }
  now += call.isBlock ? call.own : call.own / 2;
  const free = kernels.at(-1)?.[2] ?? 0;
  if (call.waits) now = Math.max(now, free);
  if (call.kernel) {
    const begin = Math.max(now + GPU.arrival, free);
    kernels.push([events[parent][0], begin, begin + call.kernel, number]);
  }
  event[2] = now;
  event[7] = now - start - inside;
  return now;
}

const rowName = (name) => (name.startsWith("ProfilerStep#") ? "ProfilerStep*" : name);

function averagesOf(events) {
  const rows = new Map();
  for (const [name, start, end, , , , flops, own] of events) {
    const key = rowName(name),
      row = rows.get(key) ?? [key, 0, 0, 0, 0];
    rows.set(key, row);
    [own, end - start, 1, flops].forEach((value, i) => (row[i + 1] += value));
  }
  const rounded = (us) => Math.round(us * 1e6);
  return [...rows.values()].sort((one, other) => rounded(other[1]) - rounded(one[1]));
}

// ---- words

const duration = (us) => {
  const [number, unit] = us >= 1e6 ? [us / 1e6, "s"] : us >= 1000 ? [us / 1000, "ms"] : [us, "µs"];
  return `${(number * (1 + 1e-12)).toFixed(2)} ${unit}`;
};
const stepsText = (steps) => (steps.length === 1 ? `step ${steps[0]}` : `steps ${steps[0]} to ${steps.at(-1)}`);

function recordedText({ stepping }, { traces }, shown, events, rows) {
  if (!traces.length) {
    const why = stepping ? "the loop ends too early" : "without prof.step() the whole loop is step 0, which is not recorded";
    return `No trace: on_trace_ready is never called, for ${why}.`;
  }
  const total = rows.reduce((sum, row) => sum + row[1], 0);
  return (
    `The trace of ${stepsText(shown)} has ${plural(events.length, "event")} in ${duration(total)}; on_trace_ready is called ${plural(traces.length, "time")}. ` +
    `Most self time has ${rows[0][0]}, ${(((100 * rows[0][1]) / total) * (1 + 1e-12)).toFixed(0)} %.`
  );
}

function deviceText(events, kernels) {
  if (!kernels.length) return "";
  const sum = (numbers) => numbers.reduce((total, number) => total + number, 0),
    busy = sum(kernels.map(([, start, end]) => end - start)) / (kernels.at(-1)[2] - kernels[0][1]),
    arrow = Math.max(...kernels.map(([, start, , launch]) => start - events[launch][2])),
    waited = sum(events.filter((event) => event[0] === "cudaStreamSynchronize").map((event) => event[2] - event[1]));
  return (
    ` The GPU is busy ${(100 * busy * (1 + 1e-12)).toFixed(0)} % of the time from its first kernel to its last; the longest arrow is ${duration(arrow)}.` +
    (waited ? ` The CPU waits ${duration(waited)}.` : "")
  );
}

function afterwardsText({ traces, left }, worked) {
  if (left === null) return "After the block prof.events() raises AssertionError: no profiler was ever made.";
  if (!left.length || !worked(left))
    return traces.length
      ? "After the block prof.events() has no iteration: the next cycle was prepared, and that cleared them."
      : "After the block prof.events() is empty.";
  return `After the block prof.events() has ${stepsText(left)}.`;
}

const model = (inputs) => {
  const [wait, warmup, active, repeat] = inputs.schedule;
  if (!active)
    refuse(
      `PyTorch raises AssertionError: Invalid profiler schedule arguments. Got wait=${wait} (need >= 0), warmup=${warmup} (need >= 0), ` +
        `active=0 (need > 0), repeat=${repeat} (need >= 0), skip_first=0 (need >= 0).`,
    );
  const run = runLoop(inputs),
    { iterations, stepping } = inputs,
    iterationsIn = (step) => (stepping ? Number(step < iterations) : iterations),
    worked = (steps) => (stepping ? steps.filter((step) => step < iterations).length : iterations);
  let shown = [];
  run.traces.forEach(([, steps], i) => (i === 0 || worked(steps) > worked(shown)) && (shown = steps));
  const machine = new Machine(inputs),
    events = [],
    kernels = [];
  shown.reduce((now, step) => placeCall(machine.step(step, iterationsIn(step)), now, -1, events, kernels), 0);
  const rows = averagesOf(events);
  return {
    actions: run.actions, traces: run.traces, left: run.left, shown, events, kernels, rows,
    total: rows.reduce((sum, row) => sum + row[1], 0),
    at: Math.max(Math.min(inputs.at, events.length), 1),
    zoom: inputs.zoom <= events.length ? inputs.zoom : 0,
    say: `${recordedText(inputs, run, shown, events, rows)}${deviceText(events, kernels)} ${afterwardsText(run, worked)}`,
  }; // prettier-ignore
};
