// Where an assignment to a module puts its value: as figures/attributes.py.

const MOST = 12;
const FILES = ["__dict__", "_parameters", "_buffers", "_modules"];
const TRIED = ["train", "eval", "forward"];
const TAKEN =
  `T_destination add_module apply bfloat16 buffers call_super_init children compile cpu cuda double dump_patches
  extra_repr float get_buffer get_extra_state get_parameter get_submodule half ipu load_state_dict modules mtia
  named_buffers named_children named_modules named_parameters parameters register_backward_hook register_buffer
  register_forward_hook register_forward_pre_hook register_full_backward_hook register_full_backward_pre_hook
  register_load_state_dict_post_hook register_load_state_dict_pre_hook register_module register_parameter
  register_state_dict_post_hook register_state_dict_pre_hook requires_grad_ set_extra_state set_submodule
  share_memory state_dict to to_empty type xpu zero_grad`.split(/\s+/);
const NAME_LIKE = /^[A-Za-z0-9_.]{0,12}$/;
const MOST_VISITS = 200;
const NOT_FLOAT = "RuntimeError: Only Tensors of floating point and complex dtype can require gradients";
const LEAF = "RuntimeError: a leaf Variable that requires grad is being used in an in-place operation.";

const noAttribute = (name) => `AttributeError: 'Module' object has no attribute '${name}'`;

const explicitly = (name) =>
  `Model parameters must be created explicitly. To express '${name}' as a function of another Tensor, compute the value in the forward() method.`;

class Raised extends Error {}
class Endless extends Error {}

class Machine {
  constructor() {
    this.numbers = 0;
    this.rows = [];
    this.create(true);
  }
  get files() {
    return this.m.files;
  }
  text(value) {
    if (value === this.m) return "m itself";
    if (value.text) return value.text;
    if (!value.number) {
      this.numbers += 1;
      value.number = this.numbers;
    }
    return `${value.kind} ${value.number}${value.gradFn ? ", with a grad_fn" : ""}`;
  }
  row(line, code, answer) {
    this.rows.push({ line, code, answer });
  }
  ask(line, code, answer) {
    this.row(line, code, answer ? "yes" : "no");
    return answer;
  }
  fail(line, error, code = "raise") {
    this.row(line, code, error);
    throw new Raised(error);
  }

  // ---- Python's part

  create(initialized) {
    this.m = valueOf("Module", "torch.nn.modules.module.Module", { files: { __dict__: new Map() } });
    this.unsaved = [];
    if (initialized) this.initialize();
  }
  initialize() {
    this.row(505, 'super().__setattr__("training", True)', "__dict__");
    this.files.__dict__.set("training", plainValue("bool", "True"));
    for (const [line, name] of [[506, "_parameters"], [507, "_buffers"], [521, "_modules"]]) { // prettier-ignore
      const had = this.files[name]?.size ?? 0;
      this.row(line, `super().__setattr__("${name}", {})`, had ? `${had} forgotten` : "");
      this.files[name] = new Map();
    }
    this.unsaved = [];
  }
  lookUp(name) {
    if (this.files.__dict__.has(name)) return [this.files.__dict__.get(name), "__dict__"];
    if (TRIED.includes(name)) return [null, "the class"];
    const file = FILES.slice(1).find((one) => this.files[one]?.has(name));
    return file ? [this.files[file].get(name), file] : [null, ""];
  }
  has(name) {
    return this.lookUp(name)[1] !== "";
  }
  get(name) {
    const [value, where] = this.lookUp(name);
    if (this.ask(0, `"${name}" in m.__dict__`, where === "__dict__")) return [value, where];
    if (this.ask(0, `"${name}" in the class`, where === "the class")) return [value, where];
    for (const [line, file] of [[1955, "_parameters"], [1959, "_buffers"], [1963, "_modules"]]) { // prettier-ignore
      if (!this.ask(line, `"${file}" in self.__dict__`, file in this.files)) continue;
      if (this.ask(line + 2, `name in ${file === "_modules" ? "modules" : file}`, where === file)) return [value, where];
    }
    return this.fail(1967, noAttribute(name));
  }

  // ---- Module's part

  keepSaved(name) {
    this.unsaved = this.unsaved.filter((other) => other !== name);
  }
  driveOut(line, name, files) {
    const gone = files.filter((file) => this.files[file].has(name));
    for (const file of gone) this.files[file].delete(name);
    this.keepSaved(name);
    this.row(line, "remove_from(…", gone.length ? `out of ${gone[0]}` : "nothing there");
    return gone.length ? `${gone[0]} loses ${name}. ` : "";
  }
  put(line, code, file, name, value) {
    this.files[file].set(name, value);
    this.row(line, code, this.text(value));
  }
  isIn(file, name) {
    return Boolean(this.files[file]?.has(name));
  }
  assign(name, value) {
    if (this.ask(1981, "isinstance(value, Parameter)", value.kind === "Parameter")) {
      if (this.ask(1982, "params is None", !("_parameters" in this.files)))
        this.fail(1983, "AttributeError: cannot assign parameters before Module.__init__() call");
      const lost = this.driveOut(1986, name, ["__dict__", "_buffers", "_modules"]);
      this.row(1992, "self.register_parameter(name, value)", "");
      return lost + this.registerParameter(name, value);
    }
    if (this.ask(1993, "name in params", this.isIn("_parameters", name))) {
      if (this.ask(1994, "value is not None", !isNone(value)))
        this.fail(1995, `TypeError: cannot assign '${value.type}' as parameter '${name}' (torch.nn.Parameter or None expected)`);
      this.row(1999, "self.register_parameter(name, value)", "");
      return this.registerParameter(name, value);
    }
    if (this.ask(2002, "isinstance(value, Module)", isModule(value))) {
      if (this.ask(2003, "modules is None", !("_modules" in this.files)))
        this.fail(2004, "AttributeError: cannot assign module before Module.__init__() call");
      const lost = this.driveOut(2007, name, ["__dict__", "_parameters", "_buffers"]);
      this.put(2017, "modules[name] = value", "_modules", name, value);
      return `${lost}${name} is in _modules.`;
    }
    if (this.ask(2018, "name in modules", this.isIn("_modules", name))) {
      if (this.ask(2019, "value is not None", !isNone(value)))
        this.fail(2020, `TypeError: cannot assign '${value.type}' as child module '${name}' (torch.nn.Module or None expected)`);
      this.put(2028, "modules[name] = value", "_modules", name, value);
      return `${name} stays in _modules, as None.`;
    }
    return this.assignFurther(name, value);
  }
  assignFurther(name, value) {
    if (!this.ask(2031, "isinstance(value, Buffer) or buffers is not None and name in buffers", isBuffer(value) || this.isIn("_buffers", name))) {
      this.put(2074, "super().__setattr__(name, value)", "__dict__", name, value);
      return `${name} is an ordinary attribute, in __dict__.`;
    }
    if (this.ask(2032, "value is not None and not (…", !isNone(value) && !isTensor(value)))
      this.fail(2036, `TypeError: cannot assign '${value.type}' as buffer '${name}' (torch.nn.Buffer, torch.Tensor or None expected)`);
    const persistent = isBuffer(value) ? value.kind === "Buffer" : !this.unsaved.includes(name);
    const source = isBuffer(value) ? "value.persistent" : "name not in self._non_persistent_buffers_set";
    this.row(isBuffer(value) ? 2041 : 2043, `persistent = ${source}`, persistent ? "True" : "False");
    this.row(2056, "self.register_buffer(name, value, persistent)", "");
    return this.registerBuffer(name, value, persistent);
  }
  checkName([dot, empty, taken], kind, file, name) {
    if (this.ask(dot, '"." in name', name.includes("."))) this.fail(dot + 1, `KeyError: ${kind} name can't contain "."`);
    if (this.ask(empty, 'name == ""', name === "")) this.fail(empty + 1, `KeyError: ${kind} name can't be empty string ""`);
    const isTaken = this.has(name) && !this.files[file].has(name);
    if (this.ask(taken, `hasattr(self, name) and name not in self.${file}`, isTaken))
      this.fail(taken + 1, `KeyError: attribute '${name}' already exists`);
  }
  registerParameter(name, value) {
    if (this.ask(605, '"_parameters" not in self.__dict__', !("_parameters" in this.files)))
      this.fail(606, "AttributeError: cannot assign parameter before Module.__init__() call");
    this.checkName([614, 616, 618], "parameter", "_parameters", name);
    if (this.ask(621, "param is None", isNone(value))) {
      this.put(622, "self._parameters[name] = None", "_parameters", name, value);
      return `${name} is in _parameters, as None.`;
    }
    if (this.ask(623, "not isinstance(param, Parameter)", value.kind !== "Parameter"))
      this.fail(624, `TypeError: cannot assign '${value.type}' object to parameter '${name}' (torch.nn.Parameter or None required)`);
    if (this.ask(628, "param.grad_fn", value.gradFn)) this.fail(629, `ValueError: Cannot assign non-leaf Tensor to parameter '${name}'. ${explicitly(name)}`);
    this.put(640, "self._parameters[name] = param", "_parameters", name, value);
    return `${name} is in _parameters.`;
  }
  registerBuffer(name, value, persistent) {
    if (this.ask(562, '"_buffers" not in self.__dict__', !("_buffers" in this.files)))
      this.fail(563, "AttributeError: cannot assign buffer before Module.__init__() call");
    this.checkName([568, 570, 572], "buffer", "_buffers", name);
    if (this.ask(574, "tensor is not None and not (…", !isNone(value) && !isTensor(value)))
      this.fail(577, `TypeError: cannot assign '${value.type}' object to buffer '${name}' (torch Tensor or None required)`);
    this.put(586, "self._buffers[name] = tensor", "_buffers", name, value);
    this.ask(587, "persistent", persistent);
    this.keepSaved(name);
    if (!persistent) this.unsaved.push(name);
    const saved = persistent ? "will be saved" : "will not be saved";
    return `${name} is in _buffers, ${isNone(value) ? "as None; a tensor put there" : "and"} ${saved}.`;
  }
  addModule(name, value) {
    if (this.ask(652, "not isinstance(module, Module) and module is not None", !isModule(value) && !isNone(value)))
      this.fail(653, `TypeError: ${value.type} is not a Module subclass`);
    if (this.has(name) && !("_modules" in this.files)) this.fail(658, noAttribute("_modules"), "name not in self._modules");
    if (this.ask(658, "hasattr(self, name) and name not in self._modules", this.has(name) && !this.isIn("_modules", name)))
      this.fail(659, `KeyError: attribute '${name}' already exists`);
    if (this.ask(660, '"." in name', name.includes("."))) this.fail(661, `KeyError: module name can't contain ".", got: ${name}`);
    if (this.ask(662, 'name == ""', name === "")) this.fail(663, `KeyError: module name can't be empty string ""`);
    if (!("_modules" in this.files)) this.fail(668, noAttribute("_modules"), "self._modules[name] = module");
    this.put(668, "self._modules[name] = module", "_modules", name, value);
    return `${name} is in _modules.`;
  }
  delete(name) {
    if (!("_parameters" in this.files)) this.fail(2077, noAttribute("_parameters"), "name in self._parameters");
    for (const [line, file] of [[2077, "_parameters"], [2079, "_buffers"], [2082, "_modules"]]) // prettier-ignore
      if (this.ask(line, `name in self.${file}`, this.files[file].has(name))) {
        this.files[file].delete(name);
        if (file === "_buffers") this.keepSaved(name);
        return `${name} is gone from ${file}.`;
      }
    if (!this.files.__dict__.has(name)) this.fail(2085, noAttribute(name), "super().__delattr__(name)");
    this.row(2085, "super().__delattr__(name)", "__dict__");
    this.files.__dict__.delete(name);
    return `${name} is gone from __dict__.`;
  }

  // ---- expressions

  evaluate(tree) {
    const [kind, ...parts] = tree;
    if (kind === "plain") return plainValue(...parts);
    if (kind === "m") return this.m;
    if (kind === "items") {
      const items = parts[1].map((one) => this.evaluate(one));
      return valueOf(parts[0], parts[0], { items: parts[0] === "set" ? null : items, keys: parts[2] });
    }
    if (kind === "call") {
      const values = parts[1].map((one) => this.evaluate(one));
      return this.call(parts[0], values, new Map([...parts[2]].map(([name, one]) => [name, this.evaluate(one)])));
    }
    const value = this.evaluate(parts[0]);
    if (kind === "attribute") return this.attribute(value, parts[1]);
    if (kind === "item") return itemOf(value, parts[1]);
    if (kind === "in place" && !isTensor(value)) refuse("mul_ and add_ are methods of tensors.");
    const other = this.evaluate(parts[1]);
    return kind === "computed" ? computed(value, other) : this.inPlace(value, other);
  }
  attribute(value, name) {
    if (value === this.m) {
      const [found, where] = this.get(allowedName(name));
      if (where === "the class") refuse(`m.${name} is a method here: no value of this figure.`);
      return found;
    }
    const file = isModule(value) && FILES.slice(1).find((one) => value.files[one].has(name));
    if (!file) refuse(`This figure finds no ${name} there: it knows parameters, buffers and modules only.`);
    return value.files[file].get(name);
  }
  inPlace(value, other) {
    const requires = computed(value, other).requiresGrad;
    if (value.requiresGrad && !value.gradFn) this.fail(0, LEAF, "mul_ or add_");
    if (requires) value.requiresGrad = value.gradFn = true;
    return value;
  }
  call(called, values, named) {
    const [library, name] = called.split(".");
    if (library === "torch") return this.tensor(called, values, named);
    if (Object.hasOwn(LAYERS, name)) return layerOf(name, values, named);
    if (CONTAINERS.includes(name)) {
      noMore(called, named);
      return this.container(name, values);
    }
    return name === "Parameter" ? this.parameter(values, named) : this.buffer(values, named);
  }
  tensor(called, values, named) {
    const requires = optionOf(called, named, "requires_grad", false);
    noMore(called, named);
    const made = called === "torch.tensor" ? tensorOf(called, values) : valueOf("tensor", "torch.FloatTensor", { sizes: sizesOf(called, values) });
    return this.requiring(made, requires);
  }
  requiring(value, requires) {
    if (requires && value.type !== "torch.FloatTensor") this.fail(0, NOT_FLOAT, "requires_grad=True");
    value.requiresGrad = requires;
    return value;
  }
  parameter(values, named) {
    if (values.length === 2 && !named.has("requires_grad")) named.set("requires_grad", values.pop());
    const requires = optionOf("nn.Parameter", named, "requires_grad", true);
    noMore("nn.Parameter", named);
    if (values.length !== 1 || !isTensor(values[0])) refuseCall("nn.Parameter", "a tensor");
    return this.requiring(valueOf("Parameter", values[0].type, { sizes: values[0].sizes }), requires);
  }
  buffer(values, named) {
    const persistent = optionOf("nn.Buffer", named, "persistent", true);
    noMore("nn.Buffer", named);
    if (values.length !== 1 || !isTensor(values[0])) refuseCall("nn.Buffer", "a tensor");
    const { type, sizes, requiresGrad } = values[0];
    return valueOf(persistent ? "Buffer" : "Buffer, not saved", type, { sizes, requiresGrad });
  }
  container(kind, values) {
    const made = moduleValue(kind, "container");
    if (kind !== "Sequential" && values.length) {
      const right = kind === "ModuleDict" ? ["dict"] : ["list", "tuple"];
      if (values.length > 1 || !right.includes(values[0].kind)) refuseCall(`nn.${kind}`, `a ${right[0]}`);
    }
    const entries = kind === "Sequential" || !values.length ? values : values[0].items;
    const names = kind === "ModuleDict" && values.length ? values[0].keys : entries.map((_, i) => `"${i}"`);
    for (const [name, value] of new Map(names.map((written, i) => [keyOf(written), entries[i]]))) {
      this.checkEntry(kind, name, value);
      made.files._modules.set(name, value);
    }
    return made;
  }
  checkEntry(kind, name, value) {
    if (!isModule(value) && !isNone(value)) this.fail(653, `TypeError: ${value.type} is not a Module subclass`);
    if (kind === "ModuleDict" && [...TAKEN, ...TRIED, "training", ...DICT_METHODS].includes(name)) this.fail(659, `KeyError: attribute '${name}' already exists`);
    if (name.includes(".")) this.fail(661, `KeyError: module name can't contain ".", got: ${name}`);
    if (name === "") this.fail(663, 'KeyError: module name can\'t be empty string ""');
  }

  // ---- who finds what

  parameters() {
    const seen = new Set(),
      found = [];
    const visit = (one, prefix) => {
      seen.add(one);
      for (const [name, value] of one.files._parameters) {
        if (isNone(value) || seen.has(value)) continue;
        seen.add(value);
        found.push(joined(prefix, name));
      }
      for (const [name, child] of one.files._modules) if (!isNone(child) && !seen.has(child)) visit(child, joined(prefix, name));
    };
    visit(this.m, "");
    return found;
  }
  saved() {
    const found = [];
    let visits = 0;
    const visit = (one, prefix, above) => {
      if (above.includes(one)) throw new Endless();
      visits += 1;
      if (visits > MOST_VISITS) refuse(`state_dict() visits more than ${MOST_VISITS} modules: too many for this figure.`);
      const isSaved = (name) => one !== this.m || !this.unsaved.includes(name);
      for (const [name, value] of one.files._parameters) if (!isNone(value)) found.push(prefix + name);
      for (const [name, value] of one.files._buffers) if (!isNone(value) && isSaved(name)) found.push(prefix + name);
      for (const [name, child] of one.files._modules) if (!isNone(child)) visit(child, `${prefix}${name}.`, [...above, one]);
    };
    visit(this.m, "", []);
    return found;
  }
  savedOrError() {
    try {
      return this.saved();
    } catch (raised) {
      if (raised instanceof Endless) return "RecursionError";
      throw raised;
    }
  }
  state() {
    const there = "_parameters" in this.files;
    const entries = (file) => (file in this.files ? [...this.files[file]].map(([name, value]) => [name, this.text(value)]) : null);
    return {
      files: FILES.map(entries),
      unsaved: [...this.unsaved],
      parameters: there ? this.parameters() : null,
      saved: there ? this.savedOrError() : null,
    };
  }
}

const joined = (prefix, name) => (prefix ? `${prefix}.${name}` : name);
function itemOf(value, index) {
  const entries = isListed(value) ? value.items : ["ModuleList", "Sequential"].includes(value.kind) ? [...value.files._modules.values()] : [];
  if (index >= entries.length) refuse(`This figure finds no [${index}] there.`);
  return entries[index];
}
function computed(value, other) {
  const both = [value, other],
    tensors = both.filter((one) => isTensor(one) && one.type === "torch.FloatTensor"),
    numbers = both.filter((one) => ["int", "float"].includes(one.kind));
  if (!tensors.length || tensors.length + numbers.length < 2) refuse("This figure computes with float tensors and numbers only.");
  const { sizes } = tensors[0];
  if (tensors.length === 2 && (sizes === null || !equal(sizes, tensors[1].sizes))) refuse("This figure computes with tensors of equal sizes only.");
  const requires = tensors.some((one) => one.requiresGrad);
  return valueOf("tensor", "torch.FloatTensor", { sizes, requiresGrad: requires, gradFn: requires });
}
function keyOf(written) {
  const name = written.slice(1, -1);
  if (!["'", '"'].includes(written[0]) || !NAME_LIKE.test(name) || name.startsWith("_"))
    refuse("nn.ModuleDict takes names of at most 12 letters, digits and underscores here.");
  return name;
}

// ---- the program

function allowedName(name) {
  if (TAKEN.includes(name))
    refuse(`Module needs its own ${name}. Methods whose names this figure lets you use: ${TRIED.join(", ")}.`);
  if (name.startsWith("_")) refuse("Names that begin with _ are Module's own.");
  if (!NAME_LIKE.test(name)) refuse("A name has at most 12 letters, digits, underscores and dots here.");
  return name;
}

function runStatement(machine, statement) {
  const [kind, ...parts] = new Parser(statement).parse();
  if (kind === "new") {
    machine.create(parts[0]);
    return parts[0] ? "A new module." : "A new object, without the call of __init__.";
  }
  if (kind === "initialize") {
    machine.initialize();
    return "The dictionaries are made anew, and empty.";
  }
  if (kind === "delete") return machine.delete(allowedName(parts[0]));
  if (kind === "assign") {
    const name = allowedName(parts[0]);
    return machine.assign(name, machine.evaluate(parts[1]));
  }
  return kind === "register" ? registerNamed(machine, ...parts) : shown(machine, parts[0]);
}

function registerNamed(machine, method, asked, tree, persistent) {
  const name = allowedName(asked),
    value = machine.evaluate(tree);
  if (method === "register_buffer") return machine.registerBuffer(name, value, persistent);
  return method === "register_parameter" ? machine.registerParameter(name, value) : machine.addModule(name, value);
}

function shown(machine, tree) {
  if (!isOfM(tree)) return `Its value: ${machine.text(machine.evaluate(tree))}.`;
  const [value, where] = machine.get(allowedName(tree[2]));
  return `Found in ${where}: ${value ? machine.text(value) : "a method"}.`;
}

const model = ({ program }) => {
  const statements = statementsOf(program);
  if (statements.length > MOST) refuse(`A program has at most ${MOST} statements.`);
  const machine = new Machine();
  const steps = [{ rows: [], error: "", ...machine.state() }];
  const say = [statements.length ? "At first, m = nn.Module(): three dictionaries, all empty." : "An empty program: press a button."];
  for (const statement of statements) {
    machine.rows = [];
    let error = "",
      sentence;
    try {
      sentence = runStatement(machine, statement);
    } catch (raised) {
      if (!(raised instanceof Raised)) throw raised;
      error = raised.message;
      sentence = error.endsWith(".") ? error : `${error}.`;
    }
    steps.push({ rows: machine.rows, error, ...machine.state() });
    say.push(`${statement}: ${sentence}`);
  }
  return { statements, steps, say };
};
