// What a short program does to the objects behind its tensors: as figures/tensor_objects.py.
const MOST = 14;
const ALL_NAMES = ["w", "x", "y", "z"];
const NAME = "([wxyz])";
const GRAMMAR = [
  ["ones", `${NAME} = torch\\.ones\\(2, 3\\)`],
  ["leaf", `${NAME} = torch\\.ones\\(2, 3, requires_grad=True\\)`],
  ["complex", `${NAME} = torch\\.ones\\(2, 3, dtype=torch\\.complex64\\)`],
  ["name", `${NAME} = ${NAME}`],
  ["view", `${NAME} = ${NAME}\\.view\\(6\\)`],
  ["detach", `${NAME} = ${NAME}\\.detach\\(\\)`],
  ["data", `${NAME} = ${NAME}\\.data`],
  ["conj", `${NAME} = ${NAME}\\.conj\\(\\)`],
  ["clone", `${NAME} = ${NAME}\\.clone\\(\\)`],
  ["mul", `${NAME} = ${NAME} \\* ${NAME}`],
  ["exp", `${NAME} = ${NAME}\\.exp\\(\\)`],
  ["backward", `${NAME}\\.backward\\(\\)`],
  ["sum_backward", `${NAME}\\.sum\\(\\)\\.backward\\(\\)`],
  ["result", `${NAME} = ${NAME}\\.grad_fn\\._saved_result`],
  ["saved", `${NAME} = ${NAME}\\.grad_fn\\._saved_self`],
  ["base", `${NAME} = ${NAME}\\._base`],
  ["require", `${NAME}\\.requires_grad_\\((?:True)?\\)`],
  ["forbid", `${NAME}\\.requires_grad_\\(False\\)`],
  ["add", `${NAME}\\.add_\\(1\\)`],
  ["note", `${NAME}\\.note = 'mine'`],
  ["del", `del ${NAME}`],
].map(([kind, pattern]) => [kind, new RegExp(`^${pattern}$`)]);
const MODE = /^with torch\.(no_grad|inference_mode)\(\): (.*)$/;
const HOW = "Statements are those of the buttons, with ; between them.";
const NO_GRAPH = "RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn";
const TWICE =
  "RuntimeError: Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed).";

// A statement with its blanks and quotes as the buttons write them.
function normalStatement(statement) {
  const text = statement.replaceAll('"', "'").trim().replace(/[ \t]+/g, " ").replace(/ ?([().,*:=]) ?/g, "$1"); // prettier-ignore
  const apart = text.replaceAll(",", ", ").replaceAll("*", " * ").replaceAll(":", ": ");
  return apart.replace(/^(with [^:]*: )?([A-Za-z0-9_.]+)=/, "$1$2 = ");
}

const wantsGrad = (t) => t.requiresGrad || t.gradFn !== null || (t.base !== null && wantsGrad(t.base));
const counterText = (t) => (t.counter === null ? "no version counter" : "a version counter");
const shares = (t) => (t.counter === null ? "" : ", the same counter");
const holdsBase = (t) => (t.base ? ` It holds T${t.base.id}, its base.` : "");
// `copy`: of an ExpBackward0, the tensor that it made, of which it holds a copy over the same storage
const makeNode = (number, kind, parts) => ({
  number, kind, next: [], saved: [], variable: null, copy: null, copiedAt: 0, never: [], released: false, isNode: true, ...parts,
}); // prettier-ignore

function metaText(t) {
  if (!t.made) return "null";
  const parts = [t.base && `view of T${t.base.id}`, t.gradFn && t.gradFn.kind, t.requiresGrad && "flag requires_grad", t.grad && ".grad"];
  return parts.filter(Boolean).join(", ") || "empty";
}

class Machine {
  names = new Map();
  tensors = [];
  versions = [];
  storages = 0;
  madeNodes = 0;
  mode = "";

  run(statement) {
    const [, mode, rest] = statement.match(MODE) ?? [null, "", statement];
    for (const [kind, pattern] of GRAMMAR) {
      const found = rest.match(pattern);
      if (!found) continue;
      this.mode = mode;
      return this[`do_${kind}`](...found.slice(1));
    }
    return refuse(`“${statement}” is none of this figure's statements. ${HOW}`);
  }
  get(name) {
    return this.names.get(name) ?? refuse(`NameError: name '${name}' is not defined`);
  }
  get recording() {
    return this.mode === "";
  }
  version(t) {
    return t.counter === null ? null : this.versions[t.counter - 1];
  }
  newCounter() {
    return this.versions.push(0);
  }

  // ---- making
  make(shape, complex, storage, counter, inference) {
    const made = {
      id: this.tensors.length + 1, shape, complex, storage, counter, inference, conj: false, note: false, grad: false, made: false,
      requiresGrad: false, gradFn: null, base: null, madeAt: 0, captured: null, accumulator: null,
    }; // prettier-ignore
    this.tensors.push(made);
    return made;
  }
  fresh(shape, complex) {
    const inference = this.mode === "inference_mode";
    return this.make(shape, complex, ++this.storages, inference ? null : this.newCounter(), inference);
  }
  alias(t, shape) {
    const made = this.make(shape, t.complex, t.storage, t.inference ? null : t.counter, t.inference);
    made.conj = t.conj;
    return made;
  }
  edge(t) {
    if (t.gradFn || !t.requiresGrad) return t.gradFn;
    t.accumulator = t.accumulator ?? this.node("AccumulateGrad", { variable: t });
    return t.accumulator;
  }
  node(kind, parts) {
    return makeNode(++this.madeNodes, kind, parts);
  }
  edges(...tensors) {
    return tensors.map((t) => this.edge(t)).filter(Boolean);
  }
  followedView(t, shape, kind) {
    if (t.captured || (t.base && kind === "ConjBackward0"))
      refuse("A view of a view, of which one is a conj(), holds more than this figure follows.");
    const made = this.alias(t, shape);
    if (t.inference) return made;
    made.made = true;
    made.base = t.base ?? t;
    made.madeAt = this.version(t);
    if (wantsGrad(t) && this.recording) made.gradFn = this.node(kind, { next: this.edges(t) });
    return made;
  }
  bind(name, t) {
    this.names.set(name, t);
    return t;
  }

  // ---- statements
  do_ones(name, complex = false) {
    const made = this.bind(name, this.fresh([2, 3], complex));
    return `T${made.id} is made, with a storage and ${counterText(made)}.`;
  }
  do_leaf(name) {
    if (this.mode === "inference_mode") refuse("A gradient of an inference tensor is more than this figure follows.");
    const made = this.bind(name, this.fresh([2, 3], false));
    made.made = made.requiresGrad = true;
    return `T${made.id} is made, with a storage, ${counterText(made)} and an AutogradMeta with the flag requires_grad.`;
  }
  do_complex(name) {
    return this.do_ones(name, true);
  }
  do_name(name, other) {
    const t = this.bind(name, this.get(other));
    return `No tensor is made: T${t.id} has one more name.`;
  }
  do_view(name, other) {
    const made = this.bind(name, this.followedView(this.get(other), [6], "ViewBackward0"));
    return `T${made.id} is made: the same storage${shares(made)}.${holdsBase(made)}`;
  }
  do_detach(name, other) {
    const t = this.get(other);
    const made = this.bind(name, this.alias(t, t.shape));
    if (t.inference && this.mode !== "inference_mode") made.counter = this.newCounter();
    const own = made.counter !== t.counter ? `, ${counterText(made)} of its own` : shares(made);
    return `T${made.id} is made: the same storage${own}. Autograd knows nothing of it.`;
  }
  do_data(name, other) {
    const t = this.get(other);
    const made = this.bind(name, this.alias(t, t.shape));
    if (t.inference && this.mode === "inference_mode")
      return `T${made.id} is made: the same storage, and no version counter.`;
    made.counter = this.newCounter();
    return `T${made.id} is made: the same storage, and a version counter of its own: no node notices what is written.`;
  }
  do_conj(name, other) {
    const t = this.get(other);
    if (!t.complex) {
      this.bind(name, t);
      return `T${t.id} is real: conj() returns the tensor itself.`;
    }
    const made = this.bind(name, this.followedView(t, t.shape, "ConjBackward0"));
    made.conj = !t.conj;
    made.captured = made.base;
    const held = made.base ? ` It holds T${t.id} twice: as its base, and in the function that undoes the view.` : "";
    return `T${made.id} is made: the same storage, and the other state of the key Conjugate.${held}`;
  }
  do_clone(name, other) {
    const t = this.get(other);
    const made = this.bind(name, this.fresh(t.shape, t.complex));
    if (wantsGrad(t) && this.recording) {
      made.made = true;
      made.gradFn = this.node("CloneBackward0", { next: this.edges(t) });
    }
    if (t.inference && !made.inference) this.versions[made.counter - 1] = 1;
    return `T${made.id} is made, with a storage and ${counterText(made)}.`;
  }
  do_mul(name, left, right) {
    const a = this.get(left),
      b = this.get(right);
    const recorded = this.recording && (wantsGrad(a) || wantsGrad(b));
    const saved = [];
    if (recorded && this.edge(b)) saved.push(["self", a]);
    if (recorded && this.edge(a)) saved.push(["other", b]);
    if (saved.some(([, t]) => t.inference)) refuse("RuntimeError: Inference tensors cannot be saved for backward.");
    if (!equal(a.shape, b.shape)) {
      const sizes = `The size of tensor a (${a.shape.at(-1)}) must match the size of tensor b (${b.shape.at(-1)})`;
      refuse(`RuntimeError: ${sizes} at non-singleton dimension ${Math.max(a.shape.length, b.shape.length) - 1}`);
    }
    const made = this.fresh(a.shape, a.complex || b.complex);
    if (recorded) {
      const versions = saved.map(([key, t]) => [key, t, this.version(t)]);
      made.made = true;
      const never = saved.some(([key]) => key === "self") ? [] : ["_saved_self"]; // never saved: None for ever
      made.gradFn = this.node("MulBackward0", { next: this.edges(a, b), saved: versions, never });
    }
    this.bind(name, made);
    const kept = saved.map(([key, t]) => `T${t.id} as ${key}`).join(" and ");
    return `T${made.id} is made.` + (kept ? ` Its node MulBackward0 saves ${kept}.` : "");
  }
  do_exp(name, other) {
    const t = this.get(other);
    const made = this.bind(name, this.fresh(t.shape, t.complex));
    if (!(wantsGrad(t) && this.recording)) return `T${made.id} is made, with a storage and ${counterText(made)}.`;
    made.made = true;
    made.gradFn = this.node("ExpBackward0", { next: this.edges(t), copy: made });
    return `T${made.id} is made. Its node ExpBackward0 saves a copy of T${made.id}, over the same storage.`;
  }
  do_backward(name) {
    const t = this.get(name);
    refuse(wantsGrad(t) ? "RuntimeError: grad can be implicitly created only for scalar outputs" : NO_GRAPH);
  }
  do_sum_backward(name) {
    const t = this.get(name);
    if (!(wantsGrad(t) && this.recording)) refuse(NO_GRAPH);
    if (t.complex)
      refuse("RuntimeError: grad can be implicitly created only for real scalar outputs but got torch.complex64");
    const nodes = new Set(),
      waiting = this.edges(t);
    while (waiting.length) {
      const node = waiting.pop();
      if (nodes.has(node)) continue;
      nodes.add(node);
      waiting.push(...node.next);
    }
    const order = [...nodes].sort((one, other) => other.number - one.number);
    const freed = order.reduce((sum, node) => sum + this.backThrough(node), 0);
    const leaves = order.filter((node) => node.variable).map((node) => node.variable.id).sort((a, b) => a - b); // prettier-ignore
    const have = leaves.length > 1 ? "have" : "has";
    const got = leaves.length ? ` ${leaves.map((i) => `T${i}`).join(" and ")} ${have} a .grad.` : "";
    const kept = freed ? ` The nodes let go what they had saved (${freed}).` : "";
    return `The gradient is computed.${got}${kept}`;
  }
  // Run a node. Returns how many tensors it let go.
  backThrough(node) {
    if (node.released) refuse(TWICE);
    for (const [, t, version] of [...node.saved].sort(([one], [other]) => (one < other ? -1 : 1)))
      this.checkVersion(t, version, t.gradFn);
    if (node.copy) this.checkVersion(node.copy, node.copiedAt, node);
    if (node.variable) node.variable.grad = true;
    const freed = node.saved.length + (node.copy ? 1 : 0);
    Object.assign(node, { saved: [], copy: null, released: freed > 0 });
    return freed;
  }
  // What a node asks of a tensor that it has saved.
  checkVersion(t, version, maker) {
    const now = this.version(t);
    if (now === version) return;
    const kind = t.complex ? "torch.ComplexFloatTensor" : "torch.FloatTensor";
    const which = maker ? `, which is output 0 of ${maker.kind.replace("Backward0", "")},` : "";
    refuse(
      "RuntimeError: one of the variables needed for gradient computation has been modified by an inplace operation: " +
        `[${kind} [${t.shape.join(", ")}]]${which} is at version ${now}; expected version ${version} instead.`,
    );
  }
  nodeWith(t, kind, attribute) {
    if (t.gradFn?.kind !== kind)
      refuse(`AttributeError: '${t.gradFn?.kind ?? "NoneType"}' object has no attribute '${attribute}'`);
    if (t.gradFn.released && !t.gradFn.never.includes(attribute)) refuse(TWICE);
    return t.gradFn;
  }
  do_result(name, other) {
    const node = this.nodeWith(this.get(other), "ExpBackward0", "_saved_result");
    this.checkVersion(node.copy, node.copiedAt, node);
    const made = this.bind(name, this.alias(node.copy, node.copy.shape));
    Object.assign(made, { made: true, gradFn: node });
    return `The node makes T${made.id} from its copy: the same storage and counter, and a Python object without a note.`;
  }
  do_saved(name, other) {
    const node = this.nodeWith(this.get(other), "MulBackward0", "_saved_self");
    const found = node.saved.find(([key]) => key === "self");
    if (!found) refuse(`${other}.grad_fn._saved_self is None: the gradient does not need it`);
    const [, back, version] = found;
    this.checkVersion(back, version, back.gradFn);
    this.bind(name, back);
    return `The node returns T${back.id}, and with it the Python object that T${back.id} always had.`;
  }
  do_base(name, other) {
    const t = this.get(other);
    if (!t.base) refuse(`${other}._base is None: autograd knows of no base`);
    this.bind(name, t.base);
    return `The base of T${t.id} is T${t.base.id}.`;
  }
  do_require(name) {
    const t = this.get(name);
    if (t.inference && this.mode !== "inference_mode")
      refuse("RuntimeError: Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
    if (t.inference) refuse("A gradient of an inference tensor is more than this figure follows.");
    if (t.gradFn) return `T${t.id} requires grad already: nothing changes.`;
    if (this.alive().some((view) => view.base === t && view.madeAt !== this.version(t)))
      refuse("A view that was made before the last write would get another node: the chapter Autograd shows it.");
    t.made = t.requiresGrad = true;
    return `T${t.id} has an AutogradMeta, with the flag requires_grad.`;
  }
  do_forbid(name) {
    const t = this.get(name);
    if (t.gradFn) refuse("RuntimeError: you can only change requires_grad flags of leaf variables.");
    const had = t.requiresGrad;
    t.requiresGrad = false;
    if (!t.made) return `T${t.id} has no AutogradMeta, and needs none to say no: nothing changes.`;
    return `${had ? "A flag is cleared" : "Nothing changes"}: the AutogradMeta of T${t.id} stays.`;
  }
  do_add(name) {
    const t = this.get(name);
    if (t.counter === null) {
      if (this.mode !== "inference_mode")
        refuse("RuntimeError: Inplace update to inference tensor outside InferenceMode is not allowed.");
      return "Written, and not counted: there is no counter.";
    }
    if (t.inference && this.mode === "inference_mode")
      return "Written, and not counted: its keys do not lead to the kernel that counts.";
    if (this.recording && t.requiresGrad && !t.base)
      refuse("RuntimeError: a leaf Variable that requires grad is being used in an in-place operation.");
    const kin = this.alive().filter((other) => other.counter === t.counter);
    if ((this.recording && wantsGrad(t)) || kin.some((one) => wantsGrad(one) && one.base))
      refuse("Writing in place to what has a graph changes the graph: the chapter Autograd shows it.");
    this.versions[t.counter - 1] += 1;
    const shared = kin.length > 1 ? ` of ${kin.length} tensors` : "";
    return `Written. The counter V${t.counter}${shared} is at ${this.version(t)}.`;
  }
  do_note(name) {
    const t = this.get(name);
    t.note = true;
    return `The Python object of T${t.id} has an attribute. The TensorImpl is unchanged.`;
  }
  do_del(name) {
    const t = this.get(name);
    this.names.delete(name);
    return `T${t.id} has one name less.`;
  }

  // ---- who is there, and who holds whom
  alive() {
    const found = new Set(),
      nodes = new Set(),
      waiting = [...this.names.values()];
    while (waiting.length) {
      const one = waiting.pop();
      if (found.has(one) || nodes.has(one)) continue;
      if (one.isNode) {
        nodes.add(one);
        waiting.push(...one.next, ...one.saved.map(([, t]) => t));
        if (one.variable) waiting.push(one.variable);
      } else {
        found.add(one);
        waiting.push(...[one.base, one.gradFn].filter(Boolean));
      }
    }
    this.nodes = [...nodes];
    return [...found].sort((one, other) => one.id - other.id);
  }
  owners(t, alive) {
    const maker = (node) => alive.find((other) => other.gradFn === node)?.id ?? 0;
    const held = [];
    for (const node of [...this.nodes].sort((one, other) => maker(one) - maker(other))) {
      const whose = maker(node) ? `${node.kind} of T${maker(node)}` : node.kind;
      held.push(...node.saved.filter(([, saved]) => saved === t).map(([key]) => `${whose} saves ${key}`));
    }
    if (this.nodes.some((node) => node.variable === t)) held.push("AccumulateGrad");
    for (const view of alive) {
      if (view.base === t) held.push(`T${view.id}, its view`);
      if (view.captured === t) held.push(`T${view.id}, to undo conj()`);
    }
    return ["Python object", ...held];
  }
  state() {
    const alive = this.alive();
    return alive.map((t) => this.described(t, alive));
  }
  described(t, alive) {
    const owners = this.owners(t, alive);
    const names = ALL_NAMES.filter((name) => this.names.get(name) === t);
    const conj = t.conj ? ["Conjugate"] : [];
    const copies = this.nodes.map((node) => node.copy).filter(Boolean);
    const functionality = t.inference ? [] : ["ADInplaceOrView", "AutogradCPU"];
    return {
      id: t.id,
      names,
      note: t.note,
      python: names.length + (owners.length > 1 ? 1 : 0),
      strong: owners.length,
      owners,
      storage: t.storage,
      sharers: [...alive, ...copies].filter((one) => one.storage === t.storage).length,
      meta: metaText(t),
      requires_grad: wantsGrad(t),
      counter: t.counter,
      version: this.version(t),
      shape: t.shape,
      strides: t.shape.length === 2 ? [3, 1] : [1],
      keys: ["CPU", ...conj, ...functionality, "AutocastCPU"],
    };
  }
}

// Of tensors that have just lost their last name and live on.
function survivors(before, after) {
  const named = before.filter((t) => t.names.length).map((t) => t.id);
  const kept = after.filter((t) => named.includes(t.id) && !t.names.length);
  return kept.map((t) => ` T${t.id} has no name and lives on, held by ${t.owners[1]}.`).join("");
}

const model = ({ program }) => {
  const statements = program.split(";").map(normalStatement).filter(Boolean);
  if (statements.length > MOST) refuse(`A program has at most ${MOST} statements.`);
  const machine = new Machine();
  const steps = [[]];
  const say = [statements.length ? "Before the first statement: no tensor yet." : "An empty program: press a button."];
  for (const [i, statement] of statements.entries()) {
    let sentence;
    try {
      sentence = machine.run(statement);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      const dot = error.message.endsWith(".") ? "" : ".";
      const rest = i + 1 < statements.length ? " What follows is not run." : "";
      say.push(`${statement}: ${error.message}${dot}${rest}`);
      return { statements: statements.slice(0, i + 1), steps: [...steps, steps.at(-1)], say, failed: true };
    }
    const before = steps.at(-1),
      after = machine.state();
    steps.push(after);
    const gone = before.filter((t) => !after.some((other) => other.id === t.id)).map((t) => `T${t.id}`);
    const freed = gone.length ? ` Nobody holds ${gone.join(" and ")} any more: freed.` : "";
    say.push(`${statement}: ${sentence}${freed}${survivors(before, after)}`);
  }
  return { statements, steps, say, failed: false };
};
