// All code that comes from one entry of the operator list: as figures/schema.py, and as readtorch/mini/schema.py, which
// writes the code.
const BASES = ("Tensor Scalar int float bool str SymInt SymBool Layout ScalarType Device DeviceIndex Generator " +
  "MemoryFormat QScheme Storage Stream DimVector GraphModule").split(" "); // prettier-ignore
const ALIAS = /^[a-z](\|[a-z])*!?( -> (\*|[a-z](\|[a-z])*))?$/;
const refuseIf = (wrong, sentence) => wrong && refuse(sentence);
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
function parseType(text) {
  let alias = "";
  const match = /^Tensor\((.+)\)(.*)/.exec(text);
  if (match) {
    alias = match[1];
    refuseIf(!["", "?", "[]"].includes(match[2]), `unrecognized alias analysis form with Tensor: ${match[2]}`);
    refuseIf(!ALIAS.test(alias), `unrecognized alias annotation ${alias}`);
    text = "Tensor" + match[2];
  }
  const base = text.replace(/(?<=.)(\?|\[[0-9]*\])+$/, "");
  refuseIf(!BASES.includes(base), `unrecognized type ${base}`);
  return [text, alias];
}
const argument = (type, alias, name, value = "", keyword = false) => ({ type, alias, name, value, keyword });
function parseArgument(text, keyword = false) {
  refuseIf(!text.includes(" "), `illegal argument '${text}'`);
  const [declared, , value] = cut(text, "=");
  refuseIf(value.includes("="), `illegal argument with default value: '${text}'`);
  const [kind, , name] = cutLast(declared, " ");
  return argument(...parseType(kind), name, value, keyword);
}
function parseReturn(text) {
  let [kind, , name] = cutLast(text, " ");
  if (!kind) [kind, name] = [name, ""];
  return argument(...parseType(kind), name);
}
function parseSchema(text) {
  const match = /^([^(]+)\((.*)\) -> (.+)$/.exec(text);
  refuseIf(!match, `Invalid function schema: ${text}`);
  let [, whole, inside, returns] = match;
  const [name, , overload] = cut(whole, ".");
  const parts = inside ? inside.split(", ") : [];
  const at = parts.includes("*") ? parts.indexOf("*") : parts.length;
  const taken = parts.slice(0, at).map((part) => parseArgument(part));
  taken.push(...parts.slice(at + 1).map((part) => parseArgument(part, true)));
  if (returns[0] === "(" && returns.at(-1) === ")") returns = returns.slice(1, -1);
  return { name, overload, arguments: taken, returns: (returns ? returns.split(", ") : []).map(parseReturn) };
}

// ---- as text

const argumentText = ({ type, alias, name, value }) =>
  type.replaceAll("Tensor", "Tensor" + (alias && `(${alias})`)) + (name && ` ${name}`) + (value && `=${value}`);
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

const writes = ({ alias }) => alias.includes("!");
function checkedSchema(line) {
  refuseIf(!PLAIN.test(line), "A schema is one line of plain letters, without accents.");
  const [before, arrow] = cut(line, ") -> ");
  const [name, , inside] = cut(before, "(");
  refuseIf(arrow && cut(name, ".")[0].endsWith("_out"),
    "_out suffix is reserved and not permitted for operator names; did you mean to specify an out overload name instead?"); // prettier-ignore
  refuseIf(arrow && inside.split(", ").filter((part) => part === "*").length > 1,
    "invalid syntax: kwarg-only specifier * can only occur once"); // prettier-ignore
  const schema = parseSchema(line);
  checkLetters(schema);
  checkInplace(schema);
  return schema;
}
function checkLetters(schema) {
  const outs = schema.arguments.filter((a) => a.keyword && writes(a));
  const first = schema.arguments.findIndex((a) => outs.includes(a));
  for (const a of first < 0 ? [] : schema.arguments.slice(first))
    refuseIf(!writes(a), `non-mutable argument '${a.name}' cannot follow mutable out arguments`);
  const returned = schema.returns.map(({ alias }) => alias);
  outs.slice(0, returned.length).forEach(({ alias }, i) =>
    refuseIf(alias !== returned[i],
      "Out arguments must have matching return Tensor; furthermore, the ith-argument needs to correspond to the ith " +
      `return. arg.annotation=${alias}, ret.annotation=${returned[i] || "None"}`)); // prettier-ignore
  const positional = schema.arguments.filter((a) => !a.keyword);
  const me = positional.findIndex((a) => a.name === "self");
  refuseIf(positional.slice(me + 1).some((a) => writes(a) && returned.includes(a.alias)),
    `If you have a schema with mutable positional args, we expect them to not be returned. schema: ${schemaText(schema)}`); // prettier-ignore
  const written = schema.returns.filter(writes).map(({ alias }) => alias);
  refuseIf(written.length !== 0 && written.length !== returned.length,
    `NativeFunctions must have either only mutable returns, or only immutable returns. Found: ${schemaText(schema)}`); // prettier-ignore
  const known = [...outs, ...positional.filter((a) => a.name === "self")].map(({ alias }) => alias);
  refuseIf(written.some((alias) => !known.includes(alias)),
    'All mutable returns must be aliased either to a keyword argument, or to "self". Did you forget to mark an out ' +
    "argument as keyword-only?"); // prettier-ignore
  checkOuts(outs, returned);
}
function checkOuts(outs, returned) {
  if (outs.some(({ type }) => type !== "Tensor")) {
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
  if (!schema.name.endsWith("_") || schema.name.endsWith("__")) return;
  const me = schema.arguments.find((a) => a.name === "self" && !a.keyword);
  const start = `Inplace op ${fullName(schema)}`;
  refuseIf(!me || !writes(me), `${start} must have a self argument with a mutable annotation`);
  const returned = schema.returns.map(({ alias }) => alias);
  if (me.type === "Tensor") refuseIf(!equal(returned, [me.alias]), `${start} with Tensor self must return self`);
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
    formulas.set(name, formula);
  }
  return known.filter((name) => formulas.has(name)).map((name) => [name, formulas.get(name)]);
}

// ---- writing: the reader's generator

const given = (schema) => schema.arguments.map(({ name }) => name).join(", ");
const parameters = (schema) =>
  starred(schema.arguments, schema.arguments.map(({ name, value }) => name + (value && `=${value}`)));
const calling = (schema, more = "", name = fullName(schema)) => `call("${name}", ${given(schema)}${more})`;
function functionSource(schema, withOut) {
  let head = parameters(schema);
  const lines = [];
  if (withOut) {
    head = `${head}, ${head.includes("*") ? "" : "*, "}out=None`;
    lines.push("if out is not None:", `    return ${calling(schema, ", out", `${schema.name}.out`)}`);
  }
  const all = [`def ${schema.name}(${head}):`, ...lines, `return ${calling(schema)}`];
  return all.join("\n    ").replace(/\bself\b/g, "input");
}
const methodSource = (schema) => `def ${schema.name}(${parameters(schema)}):\n    return ${calling(schema)}`;
const writtenTensor = (name, keyword = false) => argument("Tensor", "a!", name, "", keyword);
const inplaceForm = (schema) => ({
  name: `${schema.name}_`, overload: schema.overload,
  arguments: [writtenTensor("self"), ...schema.arguments.slice(1)], returns: [writtenTensor("")],
}); // prettier-ignore
const outForm = (schema) => ({
  name: schema.name, overload: "out",
  arguments: [...schema.arguments, writtenTensor("out", true)], returns: [writtenTensor("")],
}); // prettier-ignore
function kernelsSource(schema) {
  const { name } = schema, args = given(schema); // prettier-ignore
  return [
    ["functional", args, "out = empty(", "out"],
    ["inplace", args, "check_inplace(self, ", "self"],
    ["out", `${args}, out`, "resize_out(out, ", "out"],
  ].map(([form, taken, prepare, target]) =>
    `def ${name}_${form}(${taken}):\n    ${prepare}*${name}_meta(${args}))\n` +
    `    ${name}_impl(${args}, ${target})\n    return ${target}`).join("\n\n"); // prettier-ignore
}
function savedBy(formula, schema) {
  const text = formula.replace(/\b(\w+)\.(shape|dtype)\b/g, "$1_$2");
  const known = new Map([["result", "result"]]);
  for (const { name } of schema.arguments) {
    known.set(name, name);
    known.set(`${name}_shape`, `${name}.shape`);
    known.set(`${name}_dtype`, `${name}.dtype`);
  }
  const used = text.match(/\w+/g) ?? [];
  return [text, [...known].filter(([name]) => used.includes(name))];
}
const title = (word) => word.replace(/[A-Za-z]+/g, (run) => run[0].toUpperCase() + run.slice(1).toLowerCase());
const nodeName = (schema) => schema.name.split("_").map(title).join("") + "Backward0";
function allSaved(formulas, schema) {
  return new Map(formulas.flatMap(([, formula]) => savedBy(formula, schema)[1]));
}
function nodeSource(schema, formulas) {
  return [
    `class ${nodeName(schema)}(Node):\n    def apply(node, grad):`,
    ...[...allSaved(formulas, schema).keys()].map((name) => `${name} = node.saved_${name}`),
    `return [${formulas.map(([, formula]) => savedBy(formula, schema)[0]).join(", ")}]`,
  ].join("\n        ");
}
function autogradSource(schema, formulas) {
  const inputs = formulas.map(([name]) => name).join(", ");
  const save = [...allSaved(formulas, schema)].map(([name, what]) => `        node.saved_${name} = ${what}`);
  return [
    `def ${schema.name}_autograd(${given(schema)}):`,
    "    node = None",
    `    if requires_grad(${inputs}):`,
    `        node = ${nodeName(schema)}(${inputs})`,
    ...save.filter((line) => !line.includes("_result")),
    `    result = ${calling(schema, ', below="Autograd"')}`,
    "    if node is not None:",
    ...save.filter((line) => line.includes("_result")),
    "        set_history(result, node)",
    "    return result",
  ].join("\n");
}
function generate(schema, variants, structured, formulas) {
  const { name } = schema;
  const forms = [["functional", schema]];
  if (structured) forms.push(["inplace", inplaceForm(schema)], ["out", outForm(schema)]);
  const pieces = { schemas: forms.map(([, form]) => `define("${schemaText(form)}")`).join("\n") };
  if (variants.includes("function")) pieces.function = functionSource(schema, structured);
  if (variants.includes("method"))
    pieces.methods = [schema, ...(structured ? [forms[1][1]] : [])].map(methodSource).join("\n\n");
  let rows = [`impl("${fullName(schema)}", "CPU", ${name}_cpu)`];
  if (structured) {
    pieces.kernels = kernelsSource(schema);
    rows = forms.map(([kind, form]) => `impl("${fullName(form)}", "CPU", ${name}_${kind})`);
  }
  if (formulas.length) {
    pieces.node = nodeSource(schema, formulas);
    pieces.autograd = autogradSource(schema, formulas);
    rows.push(`impl("${fullName(schema)}", "Autograd", ${name}_autograd)`);
  }
  return { ...pieces, registrations: rows.join("\n") };
}

// ---- the model

function schemaSentence(schema, pieces, formulas, saved) {
  const written = schema.arguments.filter(writes).map(({ name }) => name);
  const shared = schema.returns.some((back) => back.alias && !writes(back));
  const lines = Object.values(pieces).reduce((sum, piece) => sum + piece.split("\n").length, 0);
  const effect = written.length ? `writes to ${written.join(" and ")}` : shared ? "returns a view" : "writes to nothing";
  const graph = formulas.length
    ? `${nodeName(schema)} saves ${saved.join(" and ") || "nothing"}.`
    : "It has no formula, so it makes no node.";
  return `The operator ${fullName(schema)} ${effect}. ${graph} Your generator writes ${lines} lines for it.`;
}
const model = ({ schema: line, variants, structured, formulas: formulaLine }) => {
  const schema = checkedSchema(line);
  const formulas = readFormulas(formulaLine, schema);
  const names = schema.arguments.map(({ name }) => name);
  refuseIf(variants.includes("method") && !names.includes("self"), "A method needs an argument called self.");
  if (structured) {
    const plain = equal(schema.returns.map((back) => back.type + back.alias), ["Tensor"]);
    refuseIf(!plain || names[0] !== "self" || schema.arguments.some(writes) || schema.name.endsWith("_"),
      "In-place and out= forms follow from an entry that takes self first, writes to nothing and returns one new Tensor."); // prettier-ignore
  }
  const pieces = generate(schema, variants, structured, formulas);
  const saved = [...allSaved(formulas, schema).keys()].sort();
  return { name: fullName(schema), pieces, saved, say: schemaSentence(schema, pieces, formulas, saved) };
};
