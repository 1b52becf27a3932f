// Half made: the lines of modules that import one another, sys.modules, and the dictionaries that grow.

const STATE_CLASSES = { absent: "rt-is-free", "half made": "rt-is-gold", done: "rt-is-pale", failed: "rt-is-free" };
const PROGRAM = "__main__";

// The fields of a figure live as long as it does: an unfinished text stays in them, and the caret in its place.
const fieldsOf = new WeakMap();
function keptField(set, key, make) {
  if (!fieldsOf.has(set)) fieldsOf.set(set, new Map());
  const fields = fieldsOf.get(set);
  if (!fields.has(key)) fields.set(key, make());
  return fields.get(key);
}

// Everything that is shown, as inputs of the reader's own, with some of it exchanged.
function own({ result, inputs }, changes) {
  const texts = Object.fromEntries(SLOTS.map((slot, i) => [slot, result.texts[i] ?? inputs[slot]]));
  return { example: "", program: result.program, names: result.names.join(", "), ...texts, ...changes };
}

// Ctrl+Z and Ctrl+Y are the figure's: a line that was moved is nothing that the browser could take back.
const undoes = (event) => (event.ctrlKey || event.metaKey) && ["z", "y"].includes(event.key.toLowerCase());

// A field whose text goes into the input `key`. now: the figure as it was drawn last.
function textInput(parts, key, value, attributes, tag = "input") {
  const field = keptField(parts.set, key, () => {
    const made = { now: null, refusedOver: null };
    made.edit = () => {
      const { now } = made;
      const problem = now.set(own(now, { [key]: made.el.value }));
      made.refusedOver = problem ? made.shown : null;
      made.el.toggleAttribute("aria-invalid", Boolean(problem));
      if (!problem) now.go(Infinity);
    };
    made.el = h(tag, {
      class: "rt-input", spellcheck: "false", autocomplete: "off", autocapitalize: "off", tabindex: 0, "data-focus": `text-${key}`,
      oninput: () => made.edit(),
      onkeydown: (event) => {
        if (event.key === "Escape") {
          made.el.value = made.shown;
          made.edit();
        } else if (event.altKey && ["ArrowUp", "ArrowDown"].includes(event.key) && tag === "textarea") {
          event.preventDefault();
          moveLine(made, event.key === "ArrowUp" ? -1 : 1);
        }
        if (!undoes(event) || made.refusedOver !== null) event.stopPropagation(); // letters and , . p are written
      },
      ...attributes,
    }); // prettier-ignore
    return made;
  });
  Object.assign(field, { now: parts, shown: value });
  for (const [name, text] of Object.entries(attributes)) field.el.setAttribute(name, text);
  const unfinished = field.refusedOver === value;
  if (!unfinished && field.el.value.trim() !== value) field.el.value = value;
  if (!unfinished) field.el.removeAttribute("aria-invalid");
  return field;
}

// The line at the caret goes up or down.
function moveLine(field, by) {
  const { el } = field,
    lines = el.value.split("\n");
  const before = el.value.slice(0, el.selectionStart).split("\n"),
    at = before.length - 1,
    to = at + by;
  if (to < 0 || to >= lines.length) return;
  [lines[at], lines[to]] = [lines[to], lines[at]];
  el.value = lines.join("\n");
  const caret = lines.slice(0, to).join("\n").length + (to ? 1 : 0) + before.at(-1).length;
  field.edit();
  el.focus({ preventScroll: true });
  el.setSelectionRange(caret, caret);
}

// ---- what runs

const placeText = ({ module, line, function: name }) =>
  `${module === PROGRAM ? "program" : module} ${line}${name ? ` (${name})` : ""}`;

function stackOf({ result, step }) {
  const { stack } = result.steps[step];
  const one = (frame, i) => h("li", { class: i === stack.length - 1 ? "rt-is-pick" : "rt-is-gold" }, placeText(frame));
  return h("div", { class: "rt-hm-row" }, h("span", { class: "rt-dim" }, "lines that run:"),
    h("ol", { class: "rt-hm-stack", "aria-label": "lines that run, the last one on top" },
      stack.length ? stack.map(one) : h("li", { class: "rt-dim" }, "none"))); // prettier-ignore
}

// Behind the text of a module, a bar for each line: the one that runs, those that wait for it, those that have run.
function lineBars(name, text, seen, stack) {
  const frames = stack.map((frame, i) => ({ ...frame, top: i === stack.length - 1 })).filter(({ module }) => module === name);
  const body = frames.find((frame) => !frame.function);
  const bar = (_, i) => {
    const here = frames.filter(({ line }) => line === i + 1);
    const kind = here.some(({ top }) => top) ? "now" : here.length ? "wait" : "";
    const past = body ? i + 1 < body.line : seen.state === "done";
    return h("li", { class: kind ? `rt-hm-${kind}` : past ? "rt-hm-past" : null }, { now: "▶", wait: "▷" }[kind] ?? String(i + 1));
  };
  return h("ol", { class: "rt-hm-bars", "aria-hidden": "true" }, text.split("\n").map(bar));
}

// ---- dictionaries

function setBy({ module, line, value, by }) {
  const place = `line ${line} of ${module === PROGRAM ? "the program" : module}`;
  return `to ${value}, by ${by ? `the import that ${place} asked for` : place}`;
}

function dictionary(parts, owner, names, before) {
  const { inputs, set, focus } = parts;
  const chip = ({ name, value, history }) => {
    const key = `${owner}:${name}`,
      old = before.find((one) => one.name === name);
    const fresh = !old || old.history.length !== history.length;
    const look = () => {
      set({ entry: inputs.entry === key ? "" : key });
      focus(`entry-${key}`);
    };
    const kind = `rt-hm-entry${fresh ? " rt-is-gold" : ""}${inputs.entry === key ? " rt-sel" : ""}`;
    return h("li", {}, h("button", { type: "button", class: kind, "data-focus": `entry-${key}`, "aria-pressed": String(inputs.entry === key), onclick: look },
      h("b", {}, name), " ", h("span", {}, value), history.length > 1 && h("i", { title: "set again" }, ` ×${history.length}`))); // prettier-ignore
  };
  return h("ul", { class: "rt-hm-names", "aria-label": `the dictionary of ${owner === PROGRAM ? "the program" : owner}` },
    names.length ? names.map(chip) : h("li", { class: "rt-dim" }, "no name yet")); // prettier-ignore
}

function looked({ inputs, result, step }) {
  const [owner, name] = inputs.entry.split(":");
  const { modules, names } = result.steps[step];
  const found = (owner === PROGRAM ? names : (modules[result.names.indexOf(owner)]?.names ?? [])).find((one) => one.name === name);
  if (!found) return h("p", { class: "rt-hm-who rt-dim" }, "Click a name in a dictionary: who set it?");
  const [first, ...others] = found.history;
  const again = (one, i) => (one.value === found.history[i].value ? ["set again", setBy(one)] : ["replaced", setBy(one).replace(/^to/, "with")]);
  return h("p", { class: "rt-hm-who" }, h("b", {}, `${owner === PROGRAM ? "" : `${owner}.`}${name}`), ` was set ${setBy(first)}`,
    others.map(again).map(([what, how]) => [", then ", h("b", {}, what), ` ${how}`]), "."); // prettier-ignore
}

// ---- the modules

// The module that is shown where there is room for one: the one that was chosen, or the one that runs.
function shownIn({ inputs, result, step }) {
  const running = result.steps[step].stack.map(({ module }) => module).filter((name) => result.names.includes(name));
  return result.names.includes(inputs.shown) ? inputs.shown : (running.at(-1) ?? result.names[0]);
}

function modulePanel(parts, i) {
  const { result, step } = parts;
  const name = result.names[i],
    text = result.texts[i];
  const { stack, modules } = result.steps[step];
  const before = step ? result.steps[step - 1].modules[i].names : [];
  const rows = Math.max(3, text.split("\n").length);
  const field = textInput(parts, SLOTS[i], text, { "aria-label": `the text of ${name}`, rows: String(rows), wrap: "off" }, "textarea");
  const button = (face, by, words) => h("button", {
    type: "button", class: "rt-stmt", "aria-label": `${words} in ${name}`, title: `${words} (Alt and an arrow key)`, "data-focus": `${SLOTS[i]}-${by}`,
    onclick: () => moveLine(field, by),
  }, face); // prettier-ignore
  return h("section", { class: `rt-hm-module${shownIn(parts) === name ? " rt-shown" : ""}`, "aria-label": name },
    h("p", { class: "rt-hm-head" }, h("b", {}, name), isC(name) && h("span", { class: "rt-dim" }, " (C)"), " ", stateOf(modules[i].state),
      h("span", { class: "rt-spring" }), button("↑", -1, "Move the line at the caret up"), button("↓", 1, "Move the line at the caret down")),
    h("div", { class: "rt-hm-text" }, h("div", { class: "rt-hm-paper" }, lineBars(name, text, modules[i], stack), field.el)),
    dictionary(parts, name, modules[i].names, before)); // prettier-ignore
}
// Whether this step has changed a dictionary, which may be one that is not shown.
const changed = ({ result, step }, i) =>
  step > 0 && JSON.stringify(result.steps[step].modules[i].names) !== JSON.stringify(result.steps[step - 1].modules[i].names);
const markOf = () => h("span", { class: "rt-hm-mark", role: "img", "aria-label": "its dictionary has changed", title: "its dictionary has changed" }, "● ");
const stateOf = (state) => h("span", { class: `rt-hm-state ${STATE_CLASSES[state]}` }, state);

function tabs(parts) {
  const { result, step, set, focus } = parts;
  const look = (name) => () => {
    set({ shown: name });
    focus(`tab-${name}`);
  };
  return h("div", { class: "rt-hm-tabs", role: "group", "aria-label": "sys.modules" }, result.names.map((name, i) =>
    h("button", { type: "button", class: "rt-hm-tab", "aria-pressed": String(shownIn(parts) === name), "data-focus": `tab-${name}`, onclick: look(name) },
      changed(parts, i) && markOf(), name, " ", stateOf(result.steps[step].modules[i].state)))); // prettier-ignore
}

// ---- the program

function programOf(parts) {
  const { result, step, inputs, set, go } = parts;
  const choice = h("select", {
    class: "rt-select", "data-focus": "example",
    onchange: () => (choice.value ? set({ example: choice.value, shown: "", entry: "" }) : set(own(parts, {}))) || go(0),
  }, [["", "your own"], ...Object.entries(EXAMPLES).map(([key, { title }]) => [key, title])].map(([key, title]) =>
    h("option", { value: key, selected: key === inputs.example }, title))); // prettier-ignore
  const rows = String(Math.max(2, result.program.split("\n").length));
  const program = textInput(parts, "program", result.program, { "aria-label": "the program", rows, wrap: "off" }, "textarea");
  const names = textInput(parts, "names", result.names.join(", "), { "aria-label": "the names of the modules" });
  const label = (words, field) => h("label", { class: "rt-field" }, h("span", {}, words), field);
  return h("div", { class: "rt-hm-row rt-hm-top" }, label("example", choice), label(">>>", program.el), label("modules", names.el));
}

function outputOf(parts) {
  const { result, step } = parts,
    now = result.steps[step];
  const lines = now.output.length ? now.output.map((line) => h("div", { class: /^\w+Error: /.test(line) ? "rt-hm-error" : null }, line)) : h("div", { class: "rt-dim" }, step < result.steps.length - 1 ? "no output yet" : "no output");
  return h("div", { class: "rt-hm-out", tabindex: 0, role: "region", "aria-label": "what the program shows", "data-focus": "output" }, lines); // prettier-ignore
}

const draw = (parts) => {
  const { result, step } = parts;
  const before = step ? result.steps[step - 1].names : [];
  return h("div", { class: "rt-hm" }, programOf(parts), stackOf(parts), tabs(parts),
    h("div", { class: "rt-hm-modules" }, result.names.map((_, i) => modulePanel(parts, i))),
    h("div", { class: "rt-hm-row" }, h("span", { class: "rt-dim" }, "the program's names:"), dictionary(parts, PROGRAM, result.steps[step].names, before)),
    looked(parts), outputOf(parts)); // prettier-ignore
};

export default { render: figure(model, draw) };
