// Hooks of the reader's on three modules: who is called, with what, and what each changes: as figures/hook_order.py.
const MODULES = ["net", "a", "b"];
const HOOK_KINDS = ["forward_pre", "forward", "full_backward_pre", "full_backward"];
const ACTIONS = ["look", "+1", "*2", "*0", "raise"];
const OPTIONS = ["prepend", "once", "always"];
const W = 3;
const MOST = 6;
const MUTATED = "OrderedDict mutated during iteration";
const HOW =
  "A hook is written as a.forward *2: on which module (net, a, b or all), of which kind (forward_pre, forward, full_backward_pre, full_backward), " +
  "what it does (look, +1, *2, *0 or raise), and then perhaps prepend, once or always.";
const FACTORS = { "+1": 1, "*2": 2, "*0": 0 };
const REPLACED = { forward_pre: "the argument", forward: "the output", full_backward_pre: "grad_output", full_backward: "grad_input" };

class HookRaised extends Error {}

const said = (value) => (value === null ? "None" : String(value));

function readHooks(program) {
  const entries = program.split(";").map((entry) => entry.replace(/^ +| +$/g, "")).filter(Boolean); // prettier-ignore
  if (entries.length > MOST) refuse(`At most ${MOST} hooks, please.`);
  return entries.map((entry, i) => readHook(i + 1, entry));
}

function readHook(number, entry) {
  const [place, action = "look", ...options] = entry.split(" ").filter(Boolean),
    dot = place.indexOf("."),
    where = dot < 0 ? place : place.slice(0, dot),
    kind = dot < 0 ? "" : place.slice(dot + 1);
  const known = ["all", ...MODULES].includes(where) && HOOK_KINDS.includes(kind) && ACTIONS.includes(action);
  if (!known || !options.every((option) => OPTIONS.includes(option)) || new Set(options).size < options.length)
    refuse(`Not known here: ${[...entry].slice(0, 30).join("")}. ${HOW}`);
  if (options.includes("always") && kind !== "forward") refuse("Only a forward hook can be called always.");
  if (options.includes("prepend") && where === "all") refuse("A hook of all modules cannot be prepended.");
  return { number, where, kind, action, options };
}

function changed(value, action) {
  if (value === null || action === "look") return null;
  return action === "+1" ? value + 1 : value * FACTORS[action];
}

class HookRun {
  constructor(hooks, x, requiresGrad) {
    this.registered = {};
    for (const hook of hooks) {
      const place = (this.registered[`${hook.where}.${hook.kind}`] ??= []);
      place.splice(hook.options.includes("prepend") ? 0 : place.length, 0, hook);
    }
    Object.assign(this, { x, requiresGrad, events: [], say: [], tape: [], journey: [] });
  }
  event(kind, module, hook, got, gave, sentence) {
    this.events.push({ kind, module, hook: hook ? hook.number : 0, got, gave });
    this.say.push(sentence);
  }
  more(sentence) {
    this.say.push(this.say.pop() + sentence);
  }
  hooks(module, kind) {
    return ["all", module].flatMap((where) => this.registered[`${where}.${kind}`] ?? []);
  }
  travel(by, value) {
    this.journey.push([by, String(value)]);
  }
  callHook(module, hook, kind, got, value) {
    const once = hook.options.includes("once"),
      name = `Hook ${hook.number} (${hook.where}.${hook.kind})`,
      removed = once ? " It removes itself." : "",
      of = hook.where === "all" ? ` for ${module}` : "";
    if (once) {
      const place = `${hook.where}.${hook.kind}`;
      this.registered[place] = this.registered[place].filter((other) => other !== hook);
    }
    if (hook.action === "raise") {
      this.event(kind, module, hook, got, "raises", `${name} gets ${got}${of}, and raises an error.${removed}`);
      throw new HookRaised(`hook ${hook.number}`);
    }
    const returned = changed(value, hook.action),
      effect = returned === null ? "nothing changes" : `that replaces ${REPLACED[kind]}`;
    this.event(kind, module, hook, got, said(returned), `${name} gets ${got}${of}, and returns ${said(returned)}: ${effect}.${removed}`);
    return returned;
  }

  // ---- forward
  call(module, value, tracked) {
    const state = { value, result: null, called: new Set() };
    try {
      return this.inner(module, state, tracked);
    } catch (error) {
      if (error instanceof HookRaised) this.always(module, state);
      throw error;
    }
  }
  inner(module, state, tracked) {
    const preHooks = this.hooks(module, "full_backward_pre"),
      hooks = this.hooks(module, "full_backward");
    for (const hook of this.hooks(module, "forward_pre")) {
      const returned = this.callHook(module, hook, "forward_pre", `(${state.value},)`, state.value);
      state.value = this.replaced(state.value, returned, hook);
    }
    const fence = { module, preHooks, hooks, first: tracked, gradOutput: null },
      hasFence = preHooks.length > 0 || hooks.length > 0;
    if (hasFence && tracked) this.tape.push(["first fence", fence]);
    state.result = this.forward(module, state.value, tracked);
    for (const hook of this.hooks(module, "forward")) {
      if (hook.options.includes("always")) state.called.add(hook);
      const returned = this.callHook(module, hook, "forward", `(${state.value},) and ${state.result}`, state.result);
      state.result = this.replaced(state.result, returned, hook);
    }
    if (hasFence) this.tape.push(["second fence", fence]);
    return state.result;
  }
  replaced(value, returned, hook) {
    if (returned === null) return value;
    this.tape.push(["times", [FACTORS[hook.action], `hook ${hook.number}`]]);
    this.travel(`hook ${hook.number}`, returned);
    return returned;
  }
  forward(module, value, tracked) {
    if (module === "net") {
      this.event("begin", "net", null, String(value), "", `net.forward(${value}) calls a, and then b.`);
      const result = this.call("b", this.call("a", value, tracked), true);
      this.event("end", "net", null, "", String(result), `net.forward returns ${result}.`);
      return result;
    }
    const result = module === "a" ? W * value : value * value,
      does = module === "a" ? `multiplies by its parameter w, ${W}` : "squares";
    this.tape.push(module === "a" ? ["times w", value] : ["times", [2 * value, "b"]]);
    this.event("inside", module, null, String(value), String(result), `${module}.forward(${value}) ${does}: ${result}.`);
    this.travel(module, result);
    return result;
  }
  always(module, state) {
    for (const where of ["all", module]) {
      const hooks = [...(this.registered[`${where}.forward`] ?? [])];
      for (const hook of hooks) {
        if (!hook.options.includes("always") || state.called.has(hook)) continue;
        this.callAlways(module, hook, state);
        if (hook.options.includes("once") && hook !== hooks.at(-1)) {
          this.more(` The loop finds it gone: ${MUTATED}, in the place of the first error.`);
          throw new HookRaised(MUTATED);
        }
      }
    }
  }
  callAlways(module, hook, state) {
    let returned;
    try {
      returned = this.callHook(module, hook, "forward", `(${state.value},) and ${said(state.result)}`, state.result);
    } catch (error) {
      if (!(error instanceof HookRaised)) throw error;
      this.more(" Another error is on its way: this one becomes a warning.");
      return;
    }
    this.more(" It is always called; the error goes on.");
    state.result = returned === null ? state.result : returned;
  }

  // ---- backward
  backward() {
    let grad = 1,
      ofW = null;
    this.travel("backward", grad);
    for (const [what, about] of [...this.tape].reverse()) {
      if (what === "times") grad = this.multiplied(grad, ...about);
      else if (what === "times w") {
        ofW = grad * about;
        if (!this.requiresGrad) return [null, ofW];
        grad = this.multiplied(grad, W, "a");
      } else if (what === "second fence") grad = this.atOutputs(about, grad);
      else grad = this.atInputs(about, grad);
    }
    return [grad, ofW];
  }
  multiplied(grad, factor, who) {
    if (factor !== 1) this.travel(`${who}'s ×${factor}`, grad * factor);
    return grad * factor;
  }
  atOutputs(fence, grad) {
    for (const hook of fence.preHooks) {
      const returned = this.callHook(fence.module, hook, "full_backward_pre", `(${grad},)`, grad);
      grad = this.took(grad, returned, hook);
    }
    fence.gradOutput = grad;
    if (!fence.first) this.atInputs(fence, null);
    return grad;
  }
  atInputs(fence, grad) {
    for (const hook of fence.hooks) {
      const returned = this.callHook(fence.module, hook, "full_backward", `(${said(grad)},) and (${fence.gradOutput},)`, grad);
      grad = this.took(grad, returned, hook);
    }
    return grad;
  }
  took(grad, returned, hook) {
    if (returned === null) return grad;
    this.travel(`hook ${hook.number}`, returned);
    return returned;
  }

  // ---- all of it
  whole() {
    let where = "the call: there is no result, and no backward";
    this.travel("x", this.x);
    try {
      const result = this.call("net", this.x, this.requiresGrad);
      this.event("start", "", null, "", "", `net(x) is ${result}. Its backward begins with the gradient 1.`);
      where = "backward";
      const [ofX, ofW] = this.backward(),
        x = ofX === null ? "x requires no gradient, and gets none" : `x.grad is ${ofX}`;
      this.event("done", "", null, "", "", `${x}; w.grad is ${ofW}.`);
      return { result: String(result), x: said(ofX), w: String(ofW), error: "" };
    } catch (error) {
      if (!(error instanceof HookRaised)) throw error;
      const what = error.message === MUTATED ? `The RuntimeError "${MUTATED}"` : `The error of ${error.message}`;
      this.event("error", "", null, "", "", `${what} leaves ${where}.`);
      return { result: "", x: "", w: "", error: error.message };
    }
  }
}

const model = (inputs) => {
  const hooks = readHooks(inputs.hooks),
    run = new HookRun(hooks, inputs.x, inputs.grad),
    end = run.whole(),
    texts = hooks.map(({ where, kind, action, options }) => [`${where}.${kind}`, action, ...options].join(" "));
  return { hooks: texts, events: run.events, journey: run.journey, ...end, say: run.say };
};
