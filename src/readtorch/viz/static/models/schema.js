// All code that comes from one entry of the operator list: as figures/schema.py, and as readtorch/mini/schema.py, which
// writes the code.
const BASES = ("Tensor Scalar int float bool str SymInt SymBool Layout ScalarType Device DeviceIndex Generator " +
  "MemoryFormat QScheme Storage Stream DimVector GraphModule").split(" "); // prettier-ignore
const ALIAS = /^[a-z](\|[a-z])*!?( -> (\*|[a-z](\|[a-z])*))?$/;
const refuseIf = (wrong, sentence) => wrong && refuse(sentence);
const SCHEMA = /^([^(]+)\((.*)\) -> (.+)$/;
// __iadd__ and its kind are in-place operators
const AUGMENTED = "add sub mul div mod pow lshift rshift and xor or".split(" ");
const RESERVED = ("False None True and as assert async await break class continue def del elif else except finally for from " +
  "global if import in is lambda nonlocal not or pass raise return try while with yield").split(" "); // prettier-ignore
const PLAIN = /^[\x20-\x7e]*$/;

// ---- reading

function cut(text, at) {
  const i = text.indexOf(at);
  return i < 0 ? [text, "", ""] : [text.slice(0, i), at, text.slice(i + at.length)];
}
function cutLast(text, at) {
  const i = text.lastIndexOf(at);
  return i < 0 ? ["", "", text] : [text.slice(0, i), at, text.slice(i + at.length)];
}
const argument = (type, name, value = "", keyword = false) => ({ type, name, value, keyword });
function parseArgument(text, keyword = false) {
  const [declared, , value] = cut(text, "=");
  const [, kind, name = ""] = /^(.+?)( \w+)?$/.exec(declared);
  return argument(kind, name.trim(), value, keyword);
}
function parseSchema(text) {
  let [, whole, inside, returns] = SCHEMA.exec(text);
  const [name, , overload] = cut(whole, ".");
  const taken = [];
  let keyword = false;
  for (const part of inside ? inside.split(", ") : [])
    if (part === "*") keyword = true;
    else taken.push(parseArgument(part, keyword));
  if (returns[0] === "(" && returns.at(-1) === ")") returns = returns.slice(1, -1);
  return { name, overload, arguments: taken, returns: (returns ? returns.split(", ") : []).map((one) => parseArgument(one)) };
}

// ---- as text

const argumentText = ({ type, name, value }) => `${type} ${name}`.trim() + (value && `=${value}`);
function starred(list, parts) {
  const first = list.findIndex((a) => a.keyword);
  return (first < 0 ? parts : [...parts.slice(0, first), "*", ...parts.slice(first)]).join(", ");
}
const fullName = ({ name, overload }) => name + (overload && `.${overload}`);
function schemaText(schema) {
  const inside = starred(schema.arguments, schema.arguments.map(argumentText));
  const returns = schema.returns.map(argumentText).join(", ");
  return `${fullName(schema)}(${inside}) -> ${schema.returns.length === 1 ? returns : `(${returns})`}`;
}

// ---- what PyTorch's generator refuses besides

const dunder = (name) => /^__([^_]+)__$/.exec(name)?.[1] ?? "";
const alias = ({ type }) => /^Tensor\((.+)\)/.exec(type)?.[1] ?? "";
const plainType = (one) => one.type.replace(`(${alias(one)})`, "");
const writes = (one) => alias(one).includes("!");
function checkedSchema(line) {
  refuseIf(!PLAIN.test(line), "A schema is one line of plain letters, without accents.");
  const match = SCHEMA.exec(line);
  refuseIf(!match, `Invalid function schema: ${line}`);
  const [, whole, inside, returns] = match;
  checkName(whole);
  checkArguments(inside.split(", "));
  if (returns !== "()") checkReturns(returns);
  const kept = inside.split(", ").filter(Boolean).join(", ");
  refuseIf(kept !== inside, `${whole}(${kept}) -> ${returns} != ${line}`);
  const schema = parseSchema(line);
  checkLetters(schema);
  checkInplace(schema);
  refuseIf(schemaText(schema) !== line, `${schemaText(schema)} != ${line}`);
  return schema;
}
function checkName(whole) {
  const [name, dot, overload] = cut(whole, ".");
  refuseIf(!name, "operator name cannot be empty");
  refuseIf(name.endsWith("_out"),
    "_out suffix is reserved and not permitted for operator names; did you mean to specify an out overload name instead?"); // prettier-ignore
  const base = dunder(name);
  refuseIf(base[0] === "i" && !AUGMENTED.includes(base.slice(1)), `unexpected dunder method starting with 'i': ${name}`);
  refuseIf(dot && !overload, `${name} != ${whole}`);
}
function checkArguments(parts) {
  let keywords = false;
  for (const part of parts)
    if (part === "*") {
      refuseIf(keywords, "invalid syntax: kwarg-only specifier * can only occur once");
      keywords = true;
    } else if (part) checkArgument(part);
}
function checkArgument(part) {
  refuseIf(!part.includes(" "), `illegal argument '${part}'`);
  refuseIf(part.split("=").length > 2, `illegal argument with default value: '${part}'`);
  const [declared, equals, value] = cut(part, "=");
  refuseIf(!declared.includes(" "), `illegal argument '${part}'`);
  checkType(cutLast(declared, " ")[0]);
  refuseIf(equals && !value, `${declared} != ${part}`);
}
function checkReturns(returns) {
  if (returns[0] === "(" && returns.at(-1) === ")") returns = returns.slice(1, -1);
  for (const part of returns.split(", ")) checkType(cutLast(part, " ")[0] || part);
}
function checkType(declared) {
  const match = /^Tensor\((.+)\)(.*)/.exec(declared);
  if (match) {
    const [, letters, rest] = match;
    refuseIf(!["", "?", "[]"].includes(rest), `unrecognized alias analysis form with Tensor: ${rest}`);
    refuseIf(!ALIAS.test(letters), `unrecognized alias annotation ${letters}`);
    const [before, , after] = cut(letters, " -> ");
    refuseIf(before.includes("|") && before.includes("!"),
      `alias set larger than 1 is not mutable, got ${letters} instead.`); // prettier-ignore
    refuseIf(before.includes("|") && after.includes("|"),
      `before alias set and after alias set cannot be larger than 1 at the same time, got ${letters} instead.`); // prettier-ignore
    declared = "Tensor" + rest;
  }
  const base = declared.replace(/(?<=.)(\?|\[[0-9]*\])+$/, "");
  refuseIf(!BASES.includes(base), `unrecognized type ${base}`);
}
function checkParameters(schema) {
  const names = schema.arguments.map(({ name }) => name);
  const isName = (name) => /^[A-Za-z_]\w*$/.test(name) && !RESERVED.includes(name);
  refuseIf(!isName(schema.name), `'${schema.name}' cannot be the name of a function in Python.`);
  for (const name of names) {
    refuseIf(!isName(name), `'${name}' cannot be the name of an argument in Python.`);
    refuseIf(names.filter((one) => one === name).length > 1, `There are two arguments called '${name}'.`);
  }
}
function checkLetters(schema) {
  const outs = schema.arguments.filter((a) => a.keyword && writes(a));
  const first = schema.arguments.findIndex((a) => outs.includes(a));
  for (const a of first < 0 ? [] : schema.arguments.slice(first))
    refuseIf(!writes(a), `non-mutable argument '${a.name}' cannot follow mutable out arguments`);
  const returned = schema.returns.map(alias);
  outs.slice(0, returned.length).forEach((out, i) =>
    refuseIf(alias(out) !== returned[i],
      "Out arguments must have matching return Tensor; furthermore, the ith-argument needs to correspond to the ith " +
      `return. arg.annotation=${alias(out)}, ret.annotation=${returned[i] || "None"}`)); // prettier-ignore
  const positional = schema.arguments.filter((a) => !a.keyword);
  const me = positional.findIndex((a) => a.name === "self");
  const early = positional.slice(0, Math.max(me, 0)).filter(writes);
  refuseIf(early.length,
    "mutable pre_self_positional arguments are not currently supported in the schema: " +
    early.map(argumentText).join(", ")); // prettier-ignore
  refuseIf(positional.slice(me + 1).some((a) => writes(a) && returned.includes(alias(a))),
    `If you have a schema with mutable positional args, we expect them to not be returned. schema: ${schemaText(schema)}`); // prettier-ignore
  const written = schema.returns.filter(writes).map(alias);
  refuseIf(written.length !== 0 && written.length !== returned.length,
    `NativeFunctions must have either only mutable returns, or only immutable returns. Found: ${schemaText(schema)}`); // prettier-ignore
  const known = [...outs, ...positional.filter((a) => a.name === "self")].map(alias);
  refuseIf(written.some((letters) => !known.includes(letters)),
    'All mutable returns must be aliased either to a keyword argument, or to "self". Did you forget to mark an out ' +
    "argument as keyword-only?"); // prettier-ignore
  checkOuts(outs, returned);
}
function checkOuts(outs, returned) {
  if (outs.some((out) => plainType(out) !== "Tensor")) {
    refuseIf(returned.length,
      "out= ops that accept tensor lists as out arguments are expected to have no return type (since you can't do " +
      "method chaining on them)"); // prettier-ignore
    return;
  }
  const taken = outs.filter(({ name }) => !name.startsWith("_scratch_"));
  refuseIf(outs.length && taken.length !== returned.length,
    "Must return as many arguments as there are out arguments, or no return at all. Got " +
    `${taken.length} non-scratch out args and ${returned.length} returns`); // prettier-ignore
}
function checkInplace(schema) {
  const special = dunder(schema.name);
  if (special[0] !== "i" && (special || !schema.name.endsWith("_"))) return;
  const me = schema.arguments.find((a) => a.name === "self" && !a.keyword);
  const start = `Inplace op ${fullName(schema)}`;
  refuseIf(!me || !writes(me), `${start} must have a self argument with a mutable annotation`);
  const returned = schema.returns.map(alias);
  if (plainType(me) === "Tensor") refuseIf(!equal(returned, [alias(me)]), `${start} with Tensor self must return self`);
  else refuseIf(returned.length, `${start} with non-Tensor self must have no returns`);
}
function readFormulas(line, schema) {
  refuseIf(!PLAIN.test(line), "A formula is one line of plain letters, without accents.");
  const known = schema.arguments.map(({ name }) => name);
  const formulas = new Map();
  for (const part of line.split(";")) {
    if (!part.trim()) continue;
    const [name, colon, formula] = cut(part, ":").map((piece) => piece.trim());
    refuseIf(!colon || !formula, `A formula is an argument, a colon and an expression; this is '${part.trim()}'.`);
    refuseIf(!known.includes(name), `${fullName(schema)} has no argument '${name}' that a formula could be for.`);
    refuseIf(formulas.has(name), `There are two formulas for '${name}'.`);
    refuseIf(!balanced(formula), `The parentheses of '${formula}' do not match.`);
    refuseIf(!isWhole(formula), `The formula for '${name}' is not a whole expression: ${formula}`);
    formulas.set(name, formula);
  }
  for (const name of formulas.size ? OWN : [])
    refuseIf(known.includes(name), `'${name}' is a name that the generator uses itself; give the argument another.`);
  return known.filter((name) => formulas.has(name)).map((name) => [name, formulas.get(name)]);
}

function balanced(formula) {
  let depth = 0;
  for (const letter of formula) {
    depth += { "(": 1, ")": -1 }[letter] ?? 0;
    if (depth < 0) return false;
  }
  return depth === 0;
}
// What the generated node calls the gradient, itself and the operator's result
const OWN = ["grad", "node", "result"];
const OPERAND = /'[^']*'|"[^"]*"|(?<![\w.])(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?!\w)|[A-Za-z_]\w*/g;
const WORDS = { and: "%", or: "%", if: "%", else: "%", in: "%", is: "%", not: "-", True: "x", False: "x", None: "x" };
// x is an operand; each rule makes one of several
const RULES = [
  [/x\.x/g, "x"],
  [/x(\*\*|\/\/|<<|>>|[<>=!]=|[-+*/%@&|^<>])x/g, "x"],
  [/(^|[^x)\]])[-+~]x/g, "$1x"],
  [/([(,])(x=|\*\*?)x/g, "$1x"],
  [/x?:x?(?=[\],:])/g, "x"],
  [/(x|(?<![x)\]]))[(\[](x(,x)*,?)?[)\]]/g, "x"],
];
function isWhole(formula) {
  const operand = (word) => (Object.hasOwn(WORDS, word) ? WORDS[word] : RESERVED.includes(word) ? "?" : "x");
  let text = formula.replace(OPERAND, operand).replace(/\s/g, ""), before; // prettier-ignore
  while (text !== before) {
    before = text;
    for (const [rule, shorter] of RULES) text = text.replace(rule, shorter);
  }
  return text === "x";
}
function unknownNames(schema, formulas) {
  const known = [...schema.arguments.map(({ name }) => name), "grad", "result", ...RESERVED];
  const text = formulas.map(([, formula]) => formula).join(" ");
  const names = text.match(/(?<![\w.])[A-Za-z_]\w*\b(?!\s*\()/g) ?? [];
  return [...new Set(names.filter((name) => !known.includes(name)))].sort();
}

// ---- writing: the reader's generator

const given = (schema) => schema.arguments.map(({ name }) => name).join(", ");
const parameters = (schema, ...more) => {
  const all = [...schema.arguments, ...more];
  return starred(all, all.map(({ name, value }) => name + (value && `=${value}`)));
}; // prettier-ignore
const calling = (schema, more = "", name = fullName(schema)) => `call("${name}", ${given(schema)}${more})`;
function functionSource(schema, withOut) {
  const out = argument("Tensor", "out", "None", true);
  const lines = [`def ${schema.name}(${parameters(schema, ...(withOut ? [out] : []))}):`];
  if (withOut) lines.push("if out is not None:", `    return ${calling(schema, ", out", `${schema.name}.out`)}`);
  lines.push(`return ${calling(schema)}`);
  return lines.join("\n    ").replace(/\bself\b/g, "input");
}
const methodSource = (schema) => `Tensor.${schema.name} = lambda ${parameters(schema)}: ${calling(schema)}`;
function formsOf(schema) {
  const back = [argument("Tensor(a!)", "")];
  return [
    ["functional", schema],
    ["inplace", { name: `${schema.name}_`, overload: schema.overload,
      arguments: [argument("Tensor(a!)", "self"), ...schema.arguments.slice(1)], returns: back }],
    ["out", { name: schema.name, overload: "out",
      arguments: [...schema.arguments, argument("Tensor(a!)", "out", "", true)], returns: back }],
  ]; // prettier-ignore
}
function kernelsSource(schema) {
  const { name } = schema, args = given(schema); // prettier-ignore
  return [
    ["functional", args, "out = Tensor.empty(", "out"],
    ["inplace", args, "check_inplace(self, ", "self"],
    ["out", `${args}, out`, "resize_out(out, ", "out"],
  ].map(([form, taken, prepare, target]) =>
    `def ${name}_${form}(${taken}):\n    ${prepare}*${name}_meta(${args}))\n` +
    `    ${name}_impl(${args}, ${target})\n    return ${target}`).join("\n\n"); // prettier-ignore
}
function savedBy(formulas, schema) {
  const names = [...schema.arguments.map(({ name }) => name), "result"];
  const facts = new RegExp(`\\b(${names.join("|")})\\.(shape|dtype)\\b`, "g");
  const texts = formulas.map(([, formula]) => formula.replace(facts, "$1_$2"));
  const used = texts.join(" ").match(/\w+/g) ?? [];
  const known = new Map(names.flatMap((name) => ["", ".shape", ".dtype"].map((fact) => [(name + fact).replaceAll(".", "_"), name + fact])));
  return [texts, [...known].filter(([name]) => used.includes(name))];
}
const title = (word) => word.replace(/[A-Za-z]+/g, (run) => run[0].toUpperCase() + run.slice(1).toLowerCase());
const nodeName = (schema) => title(schema.name).replaceAll("_", "") + "Backward0";
function nodeSource(schema, formulas) {
  const [texts, saved] = savedBy(formulas, schema);
  return [
    `class ${nodeName(schema)}(Node):\n    def apply(node, grad):`,
    ...saved.map(([name]) => `${name} = node.saved_${name}`),
    `return [${texts.join(", ")}]`,
  ].join("\n        ");
}
function autogradSource(schema, formulas) {
  const inputs = formulas.map(([name]) => name).join(", ");
  const [, saved] = savedBy(formulas, schema);
  const late = ([, what]) => cut(what, ".")[0] === "result";
  const save = ([name, what]) => `        node.saved_${name} = ${what}`;
  return [
    `def ${schema.name}_autograd(${given(schema)}):`,
    "    node = None",
    `    if requires_grad(${inputs}):`,
    `        node = ${nodeName(schema)}(${inputs})`,
    ...saved.filter((one) => !late(one)).map(save),
    `    result = ${calling(schema, ', below="Autograd"')}`,
    "    if node is not None:",
    ...saved.filter(late).map(save),
    "        set_history(result, node)",
    "    return result",
  ].join("\n");
}
function generate(schema, variants, structured, formulas) {
  const forms = structured ? formsOf(schema) : [["cpu", schema]];
  const pieces = {};
  if (structured) pieces.kernels = kernelsSource(schema);
  if (variants.includes("function")) pieces.function = functionSource(schema, structured);
  if (variants.includes("method"))
    pieces.methods = forms.filter(([kind]) => kind !== "out").map(([, form]) => methodSource(form)).join("\n"); // prettier-ignore
  const rows = forms.map(([, form]) => `define("${schemaText(form)}")`);
  rows.push(...forms.map(([kind, form]) => `impl("${fullName(form)}", "CPU", ${schema.name}_${kind})`));
  if (formulas.length) {
    pieces.node = nodeSource(schema, formulas);
    pieces.autograd = autogradSource(schema, formulas);
    rows.push(`impl("${fullName(schema)}", "Autograd", ${schema.name}_autograd)`);
  }
  return { ...pieces, registrations: rows.join("\n") };
}

// ---- the model

function schemaSentence(schema, pieces, formulas, saved) {
  const written = schema.arguments.filter(writes).map(({ name }) => name);
  const shared = schema.returns.some((back) => alias(back) && !writes(back));
  const lines = Object.values(pieces).reduce((sum, piece) => sum + piece.split("\n").length, 0);
  const effect = written.length ? `writes to ${written.join(" and ")}` : shared ? "may return a view" : "writes to nothing";
  const unknown = unknownNames(schema, formulas).join(" and ");
  const aboutUnknown = unknown && ` Saved for ${unknown}: nothing, for no argument is called that.`;
  const graph = formulas.length
    ? `${nodeName(schema)} saves ${saved.join(" and ") || "nothing"}.` + aboutUnknown
    : "No formula is given here, so your generator makes no node.";
  return `The operator ${fullName(schema)} ${effect}. ${graph} Your generator writes ${lines} lines for it.`;
}
const model = ({ schema: line, variants, structured, formulas: formulaLine }) => {
  const schema = checkedSchema(line);
  checkParameters(schema);
  const formulas = readFormulas(formulaLine, schema);
  const names = schema.arguments.map(({ name }) => name);
  refuseIf(variants.includes("method") && !names.includes("self"), "A method needs an argument called self.");
  if (structured) {
    const plain = equal(schema.returns.map(({ type }) => type), ["Tensor"]);
    refuseIf(!plain || names[0] !== "self" || schema.arguments.some(writes) || schema.name.endsWith("_"),
      "In-place and out= forms follow from an entry that takes self first, writes to nothing and returns one new Tensor. " +
      "Untick that field for other entries."); // prettier-ignore
  }
  const pieces = generate(schema, variants, structured, formulas);
  const saved = savedBy(formulas, schema)[1].map(([name]) => name).sort();
  return { name: fullName(schema), pieces, saved, say: schemaSentence(schema, pieces, formulas, saved) };
};
