// Four modules that import one another, line by line: as figures/imports_half_made.py.
const SLOTS = ["one", "two", "three", "four"];
const LONGEST = 14;
const DEEPEST = 20;
const MOST = 400;

// ---- values

const newValue = (kind, name = "", data = null, module = null) => ({
  kind, name, data, module, names: new Map(), history: new Map(), state: "", package: false, loading: [],
}); // prettier-ignore
const NONE = newValue("NoneType");

class Raised extends Error {
  constructor(kind, words, missing = "") {
    super(words ? `${kind}: ${words}` : kind);
    this.missing = missing;
    this.told = false;
  }
}

const lastPart = (name) => name.split(".").at(-1);
const parentOf = (name) => name.split(".").slice(0, -1).join(".");
const isC = (name) => lastPart(name) === "_C";
const quoted = (words) => `'${words}'`;

function fileOf(module) {
  const path = module.name.replaceAll(".", "/");
  return module.package ? `…/${path}/__init__.py` : isC(module.name) ? `…/${path}.so` : `…/${path}.py`;
}
function reprOf(value) {
  if (value.kind === "int") return value.data;
  if (value.kind === "str") {
    const quote = value.data.includes("'") && !value.data.includes('"') ? '"' : "'";
    return quote + (quote === "'" ? value.data.replaceAll("'", "\\'") : value.data) + quote;
  }
  if (value.kind === "list") return `[${value.data.map(reprOf).join(", ")}]`;
  if (value.kind === "NoneType") return "None";
  if (value.kind === "function") return `<function ${value.name}>`;
  if (value.kind === "module") return `<module '${value.name}' from '${fileOf(value)}'>`;
  const full = `${value.module.name}.${value.name}`;
  return value.kind === "class" ? `<class '${full}'>` : `<${full} object>`;
}
function short(value) {
  if (value.kind === "module") return `module ${value.name}`;
  return value.kind === "function" || value.kind === "class" ? `${value.kind} ${value.name}` : reprOf(value);
}
function held(value, name) {
  while (value) {
    if (value.names.has(name)) return value.names.get(name);
    value = value.kind === "class" || value.kind === "instance" ? value.data : null;
  }
  return null;
}
const entries = (module) =>
  [...module.names].map(([name, value]) => ({ name, value: short(value), history: [...(module.history.get(name) ?? [])] }));

// The names that a statement in a function makes local.
function boundBy([kind, ...rest]) {
  if (kind === "set") return rest[0][0] === "name" ? [rest[0][1]] : [];
  if (kind === "import") return rest[0].map(([name, other]) => other || rootOf(name));
  return kind === "from" ? rest[2].map(([name, other]) => other || name) : [];
}

// ---- running

const newFrame = (module, more = {}) => ({ module, line: 0, function: "", names: null, own: [], body: false, ...more });

class Imports {
  constructor(texts, early, removed) {
    Object.assign(this, { texts, early, removed });
    this.modules = new Map();
    this.newest = new Map();
    const main = newValue("module", "__main__");
    main.state = "done";
    this.frames = [newFrame(main)];
    this.output = [];
    this.steps = [];
    this.say = [];
  }

  // ---- what there is to see
  see(sentence, error = false) {
    if (this.steps.length === MOST) refuse(`These modules take more than ${MOST} steps.`);
    this.say.push(sentence);
    const stack = this.frames
      .filter((f) => f.line || f.module.name !== "__main__")
      .map((f) => ({ module: f.module.name, line: f.line, function: f.function }));
    this.steps.push({
      stack,
      modules: [...this.texts.keys()].map((name) => this.seen(name)),
      names: entries(this.frames[0].module),
      output: [...this.output],
      error,
    });
  }
  seen(name) {
    const module = this.modules.get(name);
    const shown = module ?? this.newest.get(name);
    return { state: module ? module.state : "absent", names: shown ? entries(shown) : [] };
  }
  get frame() {
    return this.frames.at(-1);
  }
  where() {
    const { module, line, function: name } = this.frame;
    return `${module.name === "__main__" ? "the program" : module.name}, line ${line}${name ? `, in ${name}` : ""}`;
  }
  tell(words, error = false) {
    const sentence = `${this.where()}: ${words}`;
    this.see(sentence.startsWith("the ") ? `T${sentence.slice(1)}` : sentence, error);
  }

  // ---- names
  bind(name, value) {
    const { names, module } = this.frame;
    if (!names) return this.put(module, name, value);
    names.set(name, value);
    return name;
  }
  put(module, name, value, by = "") {
    const before = module.names.get(name);
    module.names.set(name, value);
    const note = { module: this.frame.module.name, line: this.frame.line, value: short(value), by };
    module.history.set(name, [...(module.history.get(name) ?? []), note]);
    return before && before !== value ? `${name} again` : name;
  }
  lookUp(name) {
    const { function: inside, body, own, names, module } = this.frame;
    if (inside && !body && own.includes(name)) {
      if (!names.has(name))
        throw new Raised("UnboundLocalError", `cannot access local variable ${quoted(name)} where it is not associated with a value`);
      return names.get(name);
    }
    for (const space of [body ? names : null, module.names]) if (space?.has(name)) return space.get(name);
    throw new Raised("NameError", `name ${quoted(name)} is not defined`);
  }
  attribute(value, name) {
    const found = held(value, name);
    if (found) return found;
    const { kind, state } = value;
    if (kind === "module" && state !== "half made" && value.loading.includes(name))
      throw new Raised("AttributeError", `cannot access submodule ${quoted(name)} of module ${quoted(value.name)} (most likely due to a circular import)`);
    if (kind === "module") {
      const begun = state === "half made" ? "partially initialized module" : "module";
      const reason = state === "half made" ? " (most likely due to a circular import)" : "";
      throw new Raised("AttributeError", `${begun} ${quoted(value.name)} has no attribute ${quoted(name)}${reason}`);
    }
    if (kind === "class") throw new Raised("AttributeError", `type object ${quoted(value.name)} has no attribute ${quoted(name)}`);
    if (kind === "instance") throw new Raised("AttributeError", `${quoted(value.name)} object has no attribute ${quoted(name)}`);
    refuse(`The attributes of a ${kind}, such as ${name}, are not known here.`);
  }

  // ---- expressions
  value([kind, ...rest]) {
    if (kind === "name") return this.lookUp(rest[0]);
    if (kind === "attribute") return this.attribute(this.value(rest[0]), rest[1]);
    if (kind === "call") return this.call(this.value(rest[0]));
    if (kind === "list") return newValue("list", "", rest[0].map((one) => this.value(one))); // prettier-ignore
    return newValue(kind, "", rest[0]);
  }
  call(called) {
    if (called.kind === "class") return newValue("instance", called.name, called, called.module);
    if (called.kind !== "function")
      throw new Raised("TypeError", `${quoted(called.kind === "instance" ? called.name : called.kind)} object is not callable`);
    const [body, line] = called.data;
    this.enter(newFrame(called.module, { line, function: called.name, names: new Map(), own: body.flatMap(boundBy) }));
    let result = NONE;
    for (const statement of body) {
      if (statement[0] === "return") {
        result = this.value(statement[1]);
        break;
      }
      this.run(statement);
    }
    this.frames.pop();
    return result;
  }
  enter(frame) {
    if (this.frames.length >= DEEPEST) throw new Raised("RecursionError", "maximum recursion depth exceeded");
    this.frames.push(frame);
  }

  // ---- statements
  run([kind, ...rest]) {
    this[`run_${kind}`](...rest);
  }
  run_pass() {
    this.tell("nothing.");
  }
  run_expression(expression) {
    const value = this.value(expression);
    const { module, function: inside } = this.frame;
    if (module.name === "__main__" && !inside && value.kind !== "NoneType") this.output.push(reprOf(value));
    this.tell("it is evaluated.");
  }
  run_print(expressions) {
    const values = expressions.map((one) => this.value(one));
    this.output.push(values.map((one) => (one.kind === "str" ? one.data : reprOf(one))).join(" "));
    this.tell("prints.");
  }
  run_set(target, expression) {
    const value = this.value(expression);
    if (target[0] === "name") {
      this.tell(`sets ${this.bind(target[1], value)}.`);
      return;
    }
    const owner = this.value(target[1]);
    if (owner.kind === "module") this.tell(`sets ${this.put(owner, target[2], value)} in ${owner.name}.`);
    else if (owner.kind === "class" || owner.kind === "instance") {
      owner.names.set(target[2], value);
      this.tell(`sets ${target[2]} in ${owner.name}.`);
    } else refuse(`The attributes of a ${owner.kind}, such as ${target[2]}, are not known here.`);
  }
  run_del(names) {
    for (const name of names)
      if (!this.frame.module.names.delete(name)) throw new Raised("NameError", `name ${quoted(name)} is not defined`);
    this.tell(`takes ${names.join(", ")} away.`);
  }
  run_def(name, body) {
    const made = newValue("function", name, [body, this.frame.line], this.frame.module);
    this.tell(`sets ${this.bind(name, made)}.`);
  }
  run_class(name, baseOf, body) {
    const base = baseOf ? this.value(baseOf) : null;
    if (base && base.kind !== "class") refuse(`The base of ${name} is a ${base.kind}; here it is a class.`);
    const { module, line } = this.frame;
    const made = newValue("class", name, base, module);
    this.enter(newFrame(module, { line, function: name, names: made.names, body: true }));
    for (const [kind, target, expression] of body) if (kind === "set") made.names.set(target[1], this.value(expression));
    this.frames.pop();
    this.tell(`sets ${this.bind(name, made)}.`);
  }
  run_import(wanted) {
    for (const [name, other] of wanted) {
      let module = this.importModule(name);
      const parts = name.split(".");
      if (other) {
        module = this.importModule(parts[0], true);
        for (const part of parts.slice(1)) module = this.importFrom(module, part);
      } else if (parts.length > 1) module = this.importModule(parts[0], true);
      this.tell(`sets ${this.bind(other || parts[0], module)}.`);
    }
  }
  run_from(level, name, wanted) {
    const module = this.importModule(this.absolute(level, name));
    if (wanted === "*") {
      const names = this.allOf(module);
      if (module.package && names) this.submodules(module, names);
      const told = this.star(module).map((one) => this.bind(one, this.attribute(module, one)));
      this.tell(told.length ? `sets ${told.join(", ")}.` : `${module.name} has no name to give: nothing is set.`);
      return;
    }
    if (module.package) this.submodules(module, wanted.map(([one]) => one)); // prettier-ignore
    const told = wanted.map(([one, other]) => this.bind(other || one, this.importFrom(module, one)));
    this.tell(`sets ${told.join(", ")}.`);
  }

  // ---- import
  absolute(level, name) {
    if (!level) return name;
    const own = this.frame.module;
    let base = own.package ? own.name : parentOf(own.name);
    if (!base) throw new Raised("ImportError", "attempted relative import with no known parent package");
    for (let up = 1; up < level; up++) {
      base = parentOf(base);
      if (!base) throw new Raised("ImportError", "attempted relative import beyond top-level package");
    }
    return name ? `${base}.${name}` : base;
  }
  importModule(name, quiet = false) {
    const module = this.modules.get(name);
    if (!module) return this.findAndLoad(name);
    if (!quiet) {
      const ends = { "half made": ", half made: the import gets it as it is.", failed: ", as its failure left it: no error." };
      this.tell(`${name} is in sys.modules${ends[module.state] ?? "."}`);
    }
    return module;
  }
  findAndLoad(name) {
    const parent = parentOf(name),
      child = lastPart(name);
    if (parent) {
      if (!this.modules.has(parent)) this.findAndLoad(parent);
      if (this.modules.has(name)) return this.modules.get(name);
      if (!this.modules.get(parent).package)
        throw new Raised("ModuleNotFoundError", `No module named ${quoted(name)}; ${quoted(parent)} is not a package`, name);
    }
    if (!this.texts.has(name)) throw new Raised("ModuleNotFoundError", `No module named ${quoted(name)}`, name);
    const above = this.modules.get(parent);
    above?.loading.push(child);
    let module;
    try {
      module = this.load(name);
    } finally {
      above?.loading.pop();
    }
    let ends = "";
    if (parent) {
      this.put(this.modules.get(parent), child, module, "the import");
      ends = ` It becomes the name ${child} of ${parent}.`;
    }
    this.tell(`${name} has run to its end.${ends}`);
    return module;
  }
  load(name) {
    const module = newValue("module", name);
    module.package = [...this.texts.keys()].some((other) => other.startsWith(`${name}.`));
    module.state = "half made";
    this.newest.set(name, module);
    const early = this.early && !isC(name);
    const ends = isC(name)
      ? "it is an extension. C code makes the module; it is entered when that has run."
      : early
        ? "an empty module is entered."
        : "an empty module is made, but not entered before its code has run.";
    if (early) this.modules.set(name, module);
    this.tell(`${name} is not in sys.modules. A finder finds ${fileOf(module)}; ${ends}`);
    const depth = this.frames.length;
    try {
      this.enter(newFrame(module));
      for (const [line, statements] of this.texts.get(name)) {
        this.frame.line = line;
        for (const statement of statements) this.run(statement);
      }
    } catch (raised) {
      if (raised instanceof Raised) this.fail(module, raised, depth);
      throw raised;
    }
    this.frames.pop();
    module.state = "done";
    this.modules.set(name, module);
    return module;
  }
  fail(module, raised, depth) {
    this.tellError(raised);
    this.frames.length = depth;
    module.state = "failed";
    let words = "its entry stays.";
    if (this.modules.get(module.name) !== module) words = "it was not entered.";
    else if (this.removed) {
      this.modules.delete(module.name);
      words = "its entry is removed.";
    }
    this.tell(`${module.name} has failed; ${words}`, true);
  }
  tellError(raised) {
    if (!raised.told) this.tell(`${raised.message}${raised.message.endsWith(".") ? "" : "."}`, true);
    raised.told = true;
  }
  submodules(module, names) {
    for (const name of names) {
      const full = `${module.name}.${name}`;
      if (module.names.has(name)) continue;
      try {
        if (!this.modules.has(full)) this.findAndLoad(full);
      } catch (raised) {
        if (!(raised instanceof Raised) || raised.missing !== full) throw raised;
      }
    }
  }
  allOf(module) {
    const listed = module.names.get("__all__");
    if (!listed) return null;
    if (listed.kind !== "list" || listed.data.some((one) => one.kind !== "str")) refuse("__all__ is a list of strings here.");
    return listed.data.map((one) => one.data);
  }
  star(module) {
    return this.allOf(module) ?? [...module.names.keys()].filter((name) => !name.startsWith("_"));
  }
  importFrom(module, name) {
    const found = module.names.get(name) ?? this.modules.get(`${module.name}.${name}`);
    if (found) return found;
    const half = module.state === "half made";
    const words = `cannot import name ${quoted(name)} from ${half ? "partially initialized module " : ""}${quoted(module.name)}`;
    throw new Raised("ImportError", `${words}${half ? " (most likely due to a circular import)" : ""} (${fileOf(module)})`);
  }

  // ---- the program
  runProgram(lines) {
    this.see("Nothing has run yet: none of these modules is in sys.modules.");
    for (const [line, statements] of lines) {
      this.frame.line = line;
      try {
        for (const statement of statements) this.run(statement);
      } catch (raised) {
        if (!(raised instanceof Raised)) throw raised;
        this.tellError(raised);
        this.output.push(raised.message);
        this.frames.length = 1;
        this.tell("the error ends the line.", true);
      }
    }
  }
}

// ---- examples

const TINY = [
  "from tiny._C import *",
  "from tiny import _C",
  "del TensorBase",
  "from tiny._tensor import Tensor",
  "_C._initExtension()",
  "split = _C._VariableFunctions.split",
  "from tiny.functional import *",
];
const PARTS = {
  "tiny._C": [
    "class TensorBase: dim = 0",
    'class _VariableFunctions: split = "C\'s"',
    "def _initExtension(): import tiny; tiny.float32 = 32",
  ],
  "tiny._tensor": ["import tiny", "class Tensor(tiny._C.TensorBase): pass"],
  "tiny.functional": ["import tiny", "default = tiny.float32", 'split = "Python\'s"'],
};
const example = (title, program, texts) => ({ title, program, texts });
const tiny = (title, ...order) =>
  example(title, "import tiny; tiny.split", { tiny: order.map((at) => TINY[at]), ...PARTS }); // prettier-ignore
const circle = (title, first, second) => example(title, "import tiny_a", { tiny_a: first, tiny_b: second });
const FIRST = ["import tiny_b", "x = 1"];
const EXAMPLES = {
  order: tiny("PyTorch's order", 0, 1, 2, 3, 4, 5, 6),
  too_early: tiny("too early", 0, 1, 2, 3, 6, 4, 5),
  too_late: tiny("too late", 0, 1, 2, 3, 4, 6, 5),
  torch_py: example("a file torch.py", "import torch", { torch: ["import torch", "print(torch.ones)"] }),
  A: circle("circle A", FIRST, ["import tiny_a", "y = tiny_a.x"]),
  B: circle("circle B", ["x = 1", "import tiny_b"], ["import tiny_a", "y = tiny_a.x"]),
  C: circle("circle C", FIRST, ["import tiny_a", "def y(): return tiny_a.x"]),
  D: circle("circle D", FIRST, ["from tiny_a import x"]),
  E: circle("circle E", FIRST, ["from tiny_a import *", "y = 2"]),
  twice: example("fails, and is asked for again", "import a\nimport a\na.x", { a: ["x = 1", "y = missing"] }),
};

// Of CPython 3.11 as its own Makefile builds it.
const BUILT_IN = (
  "_abc _ast _codecs _collections _functools _imp _io _locale _operator _signal _sre _stat _string _symtable _thread _tokenize " +
  "_tracemalloc _warnings _weakref atexit builtins errno faulthandler gc itertools marshal ntpath posix pwd runpy sys " +
  "time xxsubtype"
).split(" ");
const LOADED = (
  "__main__ _collections_abc _frozen_importlib _frozen_importlib_external _sitebuiltins abc codecs encodings genericpath io os " +
  "posixpath site stat zipimport"
).split(" ");

function moduleNames(words) {
  const names = words.split(",").map((name) => name.replace(/^ +| +$/g, "")).filter(Boolean); // prettier-ignore
  if (!names.length || names.length > SLOTS.length) refuse("Name one to four modules, separated by commas.");
  for (const name of names) {
    if (!name.split(".").every((part) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(part)))
      refuse(`${name} is not a name, or names joined by dots, such as tiny.functional.`);
    const root = rootOf(name);
    if (BUILT_IN.includes(root)) refuse(`${root} is built into Python, which looks for no file of that name.`);
    if (LOADED.includes(root)) refuse(`${root} is in sys.modules when Python starts: no file of that name is looked for.`);
    const parent = parentOf(name);
    if (parent && !names.includes(parent)) refuse(`${name} needs a module ${parent}.`);
    if (isC(parent)) refuse(`${parent} stands for an extension, which is no package.`);
  }
  if (new Set(names).size < names.length) refuse("Two modules have the same name.");
  return names;
}
// The program, and name -> text of each module: of an example, or the reader's own.
function resolved(inputs) {
  if (inputs.example) {
    const { program, texts } = EXAMPLES[inputs.example];
    return [program, new Map(Object.entries(texts).map(([name, lines]) => [name, lines.join("\n")]))];
  }
  return [inputs.program, new Map(moduleNames(inputs.names).map((name, i) => [name, inputs[SLOTS[i]]]))];
}

const model = (inputs) => {
  const [words, texts] = resolved(inputs);
  const imports = new Imports(new Map(), inputs.early, inputs.removed);
  for (const [name, text] of texts) imports.texts.set(name, parsed(name, text, LONGEST));
  imports.runProgram(parsed("The program", words, LONGEST));
  const { steps, say } = imports;
  return { program: words, names: [...texts.keys()], texts: [...texts.values()], steps, say };
};
