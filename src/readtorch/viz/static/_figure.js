// The figure kit: fields for declared inputs, undo, the sentence, the steps. See figure_kit.py.
//
//   const model = (inputs) => ({ …, say: "a sentence" });       in models/NAME.js, and in Python
//   const draw = ({ result, inputs, step, set, go, focus, extra }) => h(…);    in NAME.js
//   export default { render: figure(model, draw) };

// ---- refusing: one sentence for the reader; the figure keeps its last result, or draws the inputs with `instead`

class Refusal extends Error {
  constructor(sentence, instead = null) {
    super(sentence);
    this.instead = instead;
  }
}
const refuse = (sentence, instead) => {
  throw new Refusal(sentence, instead);
};

// ---- reading what somebody typed, as inputs.py does

const GROUPED = /^[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]*)?$/;
function plainNumber(value) {
  const text = String(value).trim().replaceAll("_", "");
  return GROUPED.test(text) ? text.replaceAll(",", "") : text;
}
const INTEGER = /^[+-]?[0-9]+$/;
const NUMBER = /^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?$/i;
const within = ({ low, high }, number) => low <= number && number <= high;

const READ = {
  number(spec, value) {
    const typed = plainNumber(value),
      text = String(spec.named[typed] ?? typed);
    return NUMBER.test(text) && within(spec, Number(text)) ? Number(text) : refuse(spec.wanted);
  },
  integer(spec, value) {
    const text = plainNumber(value);
    return INTEGER.test(text) && within(spec, Number(text)) ? Number(text) + 0 : refuse(spec.wanted);
  },
  integers(spec, value) {
    const text = Array.isArray(value) ? value.join(",") : String(value).trim().replace(/^[()[\]]+|[()[\]]+$/g, "");
    const parts = text.split(/[,\s]+/).filter(Boolean);
    const right = spec.shortest <= parts.length && parts.length <= spec.longest;
    const good = right && parts.every((part) => INTEGER.test(part) && within(spec, Number(part)));
    return good ? parts.map((part) => Number(part) + 0) : refuse(spec.wanted);
  },
  choice(spec, value) {
    return spec.options.some(([option]) => option === value) ? value : refuse(spec.wanted);
  },
  switch(spec, value) {
    const text = String(value).trim().toLowerCase();
    if (["true", "on", "yes", "1"].includes(text)) return true;
    return ["false", "off", "no", "0"].includes(text) ? false : refuse(spec.wanted);
  },
  text(spec, value) {
    const text = String(value).trim();
    return [...text].length <= spec.longest ? text : refuse(spec.wanted);
  },
};
READ.expression = READ.text;

const readInput = (spec, value) => READ[spec.kind](spec, value);
const readInputs = (specs, values) =>
  Object.fromEntries(specs.map((spec) => [spec.name, readInput(spec, values[spec.name])]));

const commas = (number) => number.toLocaleString("en-US", { maximumFractionDigits: 12 });
const equal = (one, other) => JSON.stringify(one) === JSON.stringify(other);
const inputText = (value) => (Array.isArray(value) ? value.join(", ") : String(value));

// ---- fields: { part, show(value), text(), input } each

const TYPING = /^(text|number|search|textarea)$/;
const isTyping = (el) => el.matches("input, textarea") && TYPING.test(el.type);

// Arrow up and down change the number at the caret.
function turnNumber(input, by) {
  const at = input.selectionStart;
  const found = [...input.value.matchAll(/-?[0-9]+(\.[0-9]+)?/g)];
  const one = found.find((match) => at <= match.index + match[0].length) ?? found.at(-1);
  if (!one) return false;
  const digits = (one[1]?.length ?? 1) - 1;
  const next = (Number(one[0]) + by).toFixed(Math.max(digits, String(by).split(".")[1]?.length ?? 0));
  input.value = input.value.slice(0, one.index) + next + input.value.slice(one.index + one[0].length);
  input.setSelectionRange(one.index, one.index + next.length);
  input.dispatchEvent(new Event("input", { bubbles: true }));
  return true;
}

// A field of one line takes a program of several: its lines, with semicolons between them.
function pasteLines(input, event) {
  const lines = (event.clipboardData?.getData("text") ?? "").split(/[\r\n]+/).map((line) => line.trim()).filter(Boolean); // prettier-ignore
  if (lines.length < 2) return;
  event.preventDefault();
  input.setRangeText(lines.join("; "), input.selectionStart, input.selectionEnd, "end");
  input.dispatchEvent(new Event("input", { bubbles: true }));
}

// edit(value, final): what was typed so far, or in the end
function textField(spec, edit) {
  const list = spec.examples?.length ? uniqueId("list") : null;
  const input = h("input", {
    type: "text", class: `rt-input rt-in-${spec.kind}`, spellcheck: "false", autocomplete: "off",
    autocapitalize: "off", list, "data-focus": `input-${spec.name}`,
    inputmode: { number: "decimal", integer: "numeric" }[spec.kind] ?? "text",
    oninput: () => edit(input.value, false),
    onchange: () => edit(input.value, true),
    onpaste: (event) => spec.kind === "expression" && pasteLines(input, event),
  });
  const step = spec.step ?? 1;
  const turn = (by) => () => spec.kind !== "text" && spec.kind !== "expression" && turnNumber(input, by);
  onKeys(input, { ArrowUp: turn(step), ArrowDown: turn(-step) });
  const examples =
    list && h("datalist", { id: list }, spec.examples.map((value) => h("option", { value })));
  return { input, extra: examples, show: (value) => (input.value = inputText(value)) };
}

// A program as one is used to write it; its value has semicolons between the statements.
function statementsField(spec, edit) {
  const parts = (text) => text.split(/[;\r\n]/).map((part) => part.trim()).filter(Boolean); // prettier-ignore
  const text = () => parts(input.value).join("; ");
  const fit = () => (input.rows = Math.max(3, Math.min(8, input.value.split("\n").length)));
  const input = h("textarea", {
    class: `rt-input rt-in-${spec.kind}`, spellcheck: "false", autocomplete: "off", autocapitalize: "off",
    "data-focus": `input-${spec.name}`, oninput: () => (fit(), edit(text(), false)), onchange: () => edit(text(), true),
  });
  const show = (value) => {
    input.value = parts(value).join("\n");
    fit();
  };
  return { input, text, show };
}
const expressionField = (spec, edit) => (spec.statements ? statementsField : textField)(spec, edit);

function numberField(spec, edit) {
  const field = textField(spec, edit);
  if (!spec.slider) return field;
  const slider = h("input", {
    type: "range", min: spec.low, max: spec.high, step: spec.step, class: "rt-inslider",
    "aria-label": spec.label, "data-focus": `slider-${spec.name}`,
    oninput: () => edit(slider.value, false),
    onchange: () => edit(slider.value, true),
  });
  const show = (value) => {
    field.show(value);
    slider.value = value;
    slider.setAttribute("aria-valuetext", `${commas(value)} ${spec.unit}`.trim());
  };
  return { ...field, extra: slider, show };
}
function choiceField(spec, edit) {
  const input = h(
    "select",
    { class: "rt-select", "data-focus": `input-${spec.name}`, onchange: () => edit(input.value, true) },
    spec.options.map(([value, text]) => h("option", { value }, text)),
  );
  return { input, show: (value) => (input.value = value) };
}
function switchField(spec, edit) {
  const input = h("input", {
    type: "checkbox", "data-focus": `input-${spec.name}`, onchange: () => edit(input.checked, true),
  });
  return { input, show: (value) => (input.checked = value) };
}
const FIELDS = {
  number: numberField, integer: numberField, choice: choiceField, switch: switchField,
  integers: textField, text: textField, expression: expressionField,
};

function makeField(spec, edit) {
  const { input, extra, show, text = () => input.value } = FIELDS[spec.kind](spec, (value, final) => edit(spec, value, final));
  const unit = spec.unit ? h("span", { class: "rt-dim" }, spec.unit) : null;
  const label = h("label", { class: `rt-field rt-f-${spec.kind}`, title: spec.hint || null }, [
    spec.kind === "switch" ? [input, spec.label] : [h("span", {}, spec.label), input, unit],
  ]);
  return { spec, input, show, text, part: extra ? h("span", { class: "rt-fields1" }, label, extra) : label };
}

// A chart in which the arrow keys choose a place from 1 to `count`. choose(place): may be outside. text: of the place.
function placeSlider(svg, { label, at, count, text, choose }) {
  const slider = h("div", {
    class: "rt-chart", tabindex: 0, role: "slider", "data-focus": "chart", "aria-label": label,
    "aria-valuemin": 1, "aria-valuemax": count, "aria-valuenow": at, "aria-valuetext": text,
  }, svg); // prettier-ignore
  const moves = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, Home: -count, End: count };
  onKeys(slider, Object.fromEntries(Object.entries(moves).map(([key, by]) => [key, () => choose(at + by)])));
  return slider;
}

// ---- the figure

ICON.undo = "M7 2v3h2a5 5 0 0 1 0 10H5v-2h4a3 3 0 0 0 0-6H7v3L2 6z";
ICON.redo = "M9 2v3H7a5 5 0 0 0 0 10h4v-2H7a3 3 0 0 1 0-6h2v3l5-4z";
ICON.reset = "M8 2a6 6 0 1 1-5.7 4.1l1.9.6A4 4 0 1 0 8 4v3L3.5 3.5 8 0z";
ICON.link = "M7 5H4a3 3 0 0 0 0 6h3V9.5H4a1.5 1.5 0 0 1 0-3h3zM9 5h3a3 3 0 0 1 0 6H9V9.5h3a1.5 1.5 0 0 0 0-3H9zM5 7.3h6v1.4H5z";

const TAKES_ARROWS = "input, select, textarea, .rt-scrollx";
const SOON = 600; // milliseconds without a key until an unfinished text is refused

// `typing`: whether typing goes to the last step, as in a program that grows at its end.
// `together`: whether the fields make sense together only, so that while one is refused no other is taken.
const figure =
  (model, draw, { typing = "", together = false } = {}) =>
  ({ model: state, el }) => {
    const { title, inputs: specs, start, hint, name, extra } = state.get("data");
    const firstStep = state.get("step"),
      past = [],
      future = [];
    const pending = {}; // what stands in fields and was refused
    let edited = null; // the field whose keystrokes make one entry of undo
    let timer = null;
    let behind = false; // whether the last change was refused and left the drawing as it was

    // ---- changing
    const compute = (values) => {
      const inputs = readInputs(specs, values);
      return { inputs, result: model(inputs) };
    };
    let good = compute(start); // the last inputs that the model took, and their result
    const isUnread = ({ only }, inputs) => {
      const [chosen, ...values] = only ?? [];
      return values.length > 0 && !values.some((value) => equal(inputs[chosen], value));
    };
    // What undo goes back over: not what the drawing alone sets, such as the element that is looked at.
    const seen = (inputs) => specs.filter((spec) => !spec.hidden || spec.undone).map((spec) => inputs[spec.name]);
    // The sentence of a refusal, or "" when the change was made. `field`: the input that is being typed.
    // `kept`: what stands in other fields and is left out for now.
    function change(changes, field = null, kept = null) {
      const wanted = { ...good.inputs, ...(kept ? {} : pending), ...changes };
      // A refused text goes with its field: nothing would say later what is wrong with it.
      for (const spec of specs) if (spec.name in pending && isUnread(spec, wanted)) wanted[spec.name] = good.inputs[spec.name];
      let next,
        problem = "";
      try {
        next = compute(wanted);
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        behind = !error.instead;
        if (behind) return error.message;
        problem = error.message;
        next = compute({ ...wanted, ...error.instead });
        kept = Object.fromEntries(Object.keys(error.instead).map((name) => [name, wanted[name]]));
        Object.assign(pending, kept);
      }
      if (!problem) behind = false;
      // A click outside ends the typing; nothing may be drawn anew between its press and its release.
      if (equal(next.inputs, good.inputs) && !Object.keys(pending).length) return "";
      if (!equal(seen(next.inputs), seen(good.inputs))) {
        if (field === null || field !== edited) past.push(here());
        future.length = 0;
        edited = field;
      }
      accept(next, kept);
      if (problem) fields.forEach(({ input }) => input.removeAttribute("aria-invalid"));
      if (problem) showRefused(kept);
      return problem;
    }
    function accept(next, kept = null) {
      good = next;
      for (const key of Object.keys(pending)) if (!kept || !(key in kept)) delete pending[key];
      if (!kept) tell("");
      state.set("inputs", good.inputs);
      state.set("step", stepNow());
      state.save_changes();
    }
    const here = () => ({ inputs: good.inputs, step: stepNow() });
    const lastStep = () => (Array.isArray(good.result.say) ? good.result.say.length - 1 : 0);
    // An address may name a step that there is not.
    const stepNow = () => Math.max(0, Math.min(lastStep(), Math.trunc(state.get("step")) || 0));
    function edit(spec, value, final) {
      clearTimeout(timer);
      const problem = change({ [spec.name]: value }, final ? null : spec.name);
      const { input } = fields.find((field) => field.spec === spec);
      if (!problem) {
        if (typing && !final) go(lastStep());
        if (final) edited = null;
        return;
      }
      const stale = behind; // before another try: what the other fields say is not drawn
      const { [spec.name]: _, ...others } = pending;
      if (!together && Object.keys(others).length && !change({ [spec.name]: value }, final ? null : spec.name, others)) {
        input.removeAttribute("aria-invalid"); // not this field's fault: it is taken, and the others stay as they are
        tell(problem, stale);
        return;
      }
      pending[spec.name] = value;
      const say = () => {
        input.setAttribute("aria-invalid", "true");
        tell(problem, stale);
      };
      if (final) say();
      else timer = setTimeout(say, SOON);
    }
    function move(from, to) {
      if (!from.length) return;
      to.push(here());
      edited = null;
      const { inputs, step } = from.pop();
      accept(compute(inputs));
      go(step);
    }
    const undo = () => move(past, future);
    const redo = () => move(future, past);
    function reset() {
      for (const key of Object.keys(pending)) delete pending[key];
      tell(change(start)); // also where only a refusal is to go
      go(firstStep);
      update();
    }
    function go(step) {
      assign(state, "step", Math.max(0, Math.min(lastStep(), step)));
    }
    const set = (changes) => {
      for (const key of Object.keys(pending)) delete pending[key];
      const problem = change(changes);
      tell(problem);
      return problem;
    };

    // ---- the parts
    const refusal = h("p", { class: "rt-refusal", id: uniqueId("refusal"), role: "status" });
    const tell = (sentence, stale = false) => {
      clearTimeout(timer);
      stage.classList.toggle("rt-stale", stale);
      refusal.textContent = sentence;
      if (!sentence) fields.forEach(({ input }) => input.removeAttribute("aria-invalid"));
    };
    const fields = specs.filter((spec) => !spec.hidden).map((spec) => makeField(spec, edit));
    for (const { input, spec, show, text } of fields) {
      input.setAttribute("aria-describedby", refusal.id);
      onKeys(input, {
        Escape: () => {
          if (!isTyping(input)) return false;
          delete pending[spec.name];
          show(good.inputs[spec.name]);
          tell("");
        },
        Enter: () => {
          if (!isTyping(input) || spec.statements) return false;
          edit(spec, text(), true);
        },
      });
    }
    const play = player({ last: () => lastStep(), what: title, get: stepNow, set: go });
    const buttons = [
      ["Undo", "undo", undo],
      ["Redo", "redo", redo],
      ["Reset", "reset", reset],
    ].map(([label, face, act]) => iconButton(label, face, act));
    const link = state.link && iconButton("Copy a link to this state", "link", copyLink);
    async function copyLink() {
      const address = state.link();
      if (!address) {
        tell("This state is too long for an address.");
        return;
      }
      try {
        await navigator.clipboard.writeText(address);
        tell("The link is copied.");
      } catch {
        tell("The address of this page now leads here.");
      }
    }
    const playing = h("div", { class: "rt-bar" }, play.buttons);
    const stage = h("div", { class: "rt-drawing" });
    const root = h(
      "div",
      { class: `rt-w rt-fig rt-fig-${name}`, role: "group", "aria-label": title, tabindex: -1 },
      h("div", { class: "rt-fighead" }, h("p", { class: "rt-title" }, title), h("div", { class: "rt-bar" }, buttons, link)),
      h("div", { class: "rt-inputs" }, fields.map(({ part }) => part)),
      refusal,
      playing,
      play.slider,
      play.now,
      stage,
      hint && h("p", { class: "rt-hint" }, hint),
    );
    const unlessTyping = (act) => (event) => (isTyping(event.target) ? false : act());
    onKeys(root, Object.fromEntries(Object.entries(play.keys).map(([key, act]) => [key, unlessTyping(act)])));
    // So do arrows, but for those elements that have a use for them.
    const unlessTaken = (act) => ({ target }) => lastStep() && !target.closest(TAKES_ARROWS) ? act() : false;
    onKeys(root, { ArrowLeft: unlessTaken(play.keys[","]), ArrowRight: unlessTaken(play.keys["."]) });
    root.addEventListener("keydown", (event) => {
      if (!(event.ctrlKey || event.metaKey) || event.altKey) return;
      const key = event.key.toLowerCase();
      if (key !== "z" && key !== "y") return;
      if (isTyping(event.target) && Object.keys(pending).length) return; // the browser's own undo, of letters
      event.preventDefault();
      event.stopPropagation();
      (key === "y" || event.shiftKey ? redo : undo)();
    });
    el.append(root);

    const focus = (key) => stage.querySelector(`[data-focus="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });

    // ---- drawing: all anew; what had the focus gets it back by its data-focus
    function update() {
      const { inputs, result } = good,
        step = stepNow(),
        inside = stage.contains(document.activeElement);
      const held = inside && document.activeElement.dataset.focus;
      stage.replaceChildren(...[draw({ result, inputs, step, set, go, focus, extra })].flat(Infinity).filter(Boolean));
      if (held) focus(held);
      if (inside && !stage.contains(document.activeElement)) root.focus({ preventScroll: true }); // keys go on
      for (const { spec, input, show, text } of fields)
        if (!(spec.name in pending) && !(input === document.activeElement && isTyping(input) && same(spec, text())))
          show(inputs[spec.name]);
      for (const { spec, input, part } of fields) {
        const unread = isUnread(spec, inputs);
        [input, ...part.querySelectorAll("input")].forEach((one) => (one.disabled = unread));
      }
      playing.hidden = play.slider.hidden = !lastStep();
      play.show([result.say].flat()[step]);
      // not `disabled`: a button that goes away takes the focus with it
      [past, future].forEach((list, i) => buttons[i].setAttribute("aria-disabled", String(!list.length)));
    }
    // Whether the field already means what it should: "3,4" is not rewritten to "3, 4" below the caret.
    function same(spec, typed) {
      try {
        return equal(readInput(spec, typed), good.inputs[spec.name]);
      } catch {
        return false;
      }
    }
    // What was refused stands in its fields, as if it had been typed there.
    function showRefused(given) {
      for (const { spec, input, show } of fields) {
        if (!(spec.name in given) || equal(given[spec.name], good.inputs[spec.name])) continue;
        pending[spec.name] = given[spec.name];
        show(given[spec.name]);
        input.setAttribute("aria-invalid", "true");
      }
    }
    // Inputs that come from elsewhere: an address, a kernel, another display of this figure.
    function arrive() {
      const given = state.get("inputs");
      if (!equal(given, good.inputs)) {
        const problem = change(given);
        if (problem) state.set("inputs", good.inputs);
        tell(problem, problem !== "" && behind);
        if (problem) showRefused(given);
      }
      update();
    }

    return bind(state, ["inputs", "step"], arrive);
  };
