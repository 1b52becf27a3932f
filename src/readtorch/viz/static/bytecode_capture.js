// Bytecode, stack, graph, guards: the calls as buttons, the function and its instructions, and what the interpreter holds.

const outcomeOf = ({ made, fitted, written }) => [made && plural(made, "new graph"), fitted && `${fitted} reused`, written && "as written"].filter(Boolean).join(", ");

function callStrip({ result, inputs, step, go }) {
  const reads = READS[inputs.program];
  const now = result.steps[step].call;
  const isOver = step === result.steps.length - 1 || result.steps[step + 1].call > now; // what a call does is shown when it has done it
  const one = (call, i) => {
    const [rows, fill, scale, offset] = call.values;
    const words = [...(reads.includes("scale") ? [`scale ${scale}`] : []), plural(rows, "row"), ...(reads.includes("fill") ? [`of ${fill}`] : [])];
    const isNow = i === now && step < result.steps.length - 1;
    const isKnown = i < now || (i === now && isOver);
    const color = isNow ? "rt-is-pick" : isKnown && call.made ? "rt-is-gold" : "rt-is-pale";
    return h("li", {},
      h("button", { type: "button", class: `rt-bc-call ${color}`, "data-focus": `call-${i}`, "aria-current": isNow ? "step" : null,
        title: reads.includes("offset") ? `OFFSET is ${offset}` : null, onclick: () => go(result.steps.findIndex((each) => each.call === i)) },
        h("b", {}, `${i + 1} `), `${words.join(", ").replace(", of", " of")}: `, h("span", { class: "rt-bc-made" }, isKnown ? outcomeOf(call) : "?"))); // prettier-ignore
  };
  const calls = result.calls.map(one),
    strip = h("ol", { class: "rt-bc-calls", "aria-label": "calls" }, calls);
  requestAnimationFrame(() => reveal(strip, calls[now])); // a phone shows a few of ten
  return strip;
}

function program({ result, step }) {
  const { at } = result.steps[step],
    line = at < 0 ? -1 : result.code[at][1];
  return h("pre", { class: "rt-bc-source", "aria-label": "the function" },
    result.source.map((words, i) => h("span", { class: i === line ? "rt-bc-line rt-bc-now" : "rt-bc-line" }, `${words}\n`))); // prettier-ignore
}

// A phone shows five instructions: those before and behind this one.
function center(box, row) {
  const top = row.getBoundingClientRect().top - box.getBoundingClientRect().top + box.scrollTop;
  box.scrollTop = top - (box.clientHeight - row.offsetHeight) / 2;
}

function instructions({ result, step }) {
  const { at, prologue, in_prologue: inPrologue } = result.steps[step];
  const before = prologue.map((words) => h("li", { class: inPrologue ? "rt-bc-prologue rt-is-pick" : "rt-bc-prologue" }, words));
  const rows = result.code.map(([offset, , name, argument], i) =>
    h("li", { class: i === at ? "rt-is-pick" : null, "aria-current": i === at ? "step" : null },
      h("span", { class: "rt-bc-offset" }, String(offset)), name.replace("POP_JUMP_FORWARD_IF_FALSE", "POP_JUMP_IF_FALSE"), argument ? ` ${argument}` : "")); // prettier-ignore
  const box = h("div", { class: "rt-bc-code", tabindex: 0, role: "group", "aria-label": "instructions" }, h("ol", {}, before, rows));
  if (inPrologue) requestAnimationFrame(() => center(box, before[0]));
  if (at >= 0) requestAnimationFrame(() => center(box, rows[at]));
  return box;
}

function part(title, empty, items, kind) {
  const rows = items.length ? items : [h("li", { class: "rt-dim" }, empty)];
  return h("div", { class: `rt-bc-part rt-bc-${kind}` }, h("p", { class: "rt-bc-head" }, title), h("ol", {}, rows));
}

const MARKS = { ok: "✓ ", fails: "✗ ", "": "" };

// In the end: all entries side by side. Guards that an entry does not share with its frame's others stand out.
function whatIsLeft({ left }) {
  const isShared = (words, frame) => left.every((other) => other.frame !== frame || other.guards.includes(words));
  const one = ({ frame, number, guards, graph, unused }) =>
    h("li", { class: "rt-bc-entry" },
      h("p", { class: "rt-bc-head" }, `entry ${number} of ${frame}${unused ? ": never used again" : ""}`),
      h("ol", { "aria-label": "guards" }, guards.map((words) => h("li", { class: isShared(words, frame) ? null : "rt-is-pale" }, words))),
      h("ol", { "aria-label": "graph", class: "rt-bc-lines" }, graph.map((words) => h("li", {}, words)))); // prettier-ignore
  const rows = left.length ? left.map(one) : [h("li", { class: "rt-dim" }, "none")];
  return h("div", { class: "rt-bc-part rt-bc-left-behind", tabindex: 0, role: "group", "aria-label": "all entries: guards and graphs" },
    h("p", { class: "rt-bc-frame" }, "what is left: guards and graphs"), h("ol", { class: "rt-bc-entries" }, rows)); // prettier-ignore
}

function draw(parts) {
  const { result, step } = parts,
    one = result.steps[step];
  const before = step ? result.steps[step - 1] : { graph: [], guards: [] };
  const isSame = before.entry === one.entry && before.frame === one.frame;
  const fresh = (list, old) => list.map((_, i) => isSame && i >= old.length);
  const isNew = { graph: fresh(one.graph, before.graph), guards: fresh(one.guards, before.guards) };
  const stack = one.stack.toReversed().map((words) => h("li", { class: words === "NULL" ? "rt-is-free" : "rt-is-pale" }, words));
  const locals = one.locals.map((words) => h("li", { class: "rt-is-pale" }, words));
  const graph = one.graph.map((line, i) => h("li", { class: isNew.graph[i] ? "rt-bc-new" : null }, line));
  const guards = one.guards.map(({ words, state }, i) =>
    h("li", { class: state === "fails" ? "rt-bc-fails" : isNew.guards[i] ? "rt-bc-new" : null }, MARKS[state], words)); // prettier-ignore
  const entry = one.entry < 0 ? "" : ` of entry ${one.entry}`;
  const isOver = step === result.steps.length - 1;
  if (isOver) return h("div", { class: "rt-bc" }, callStrip(parts), program(parts), whatIsLeft(result));
  return h("div", { class: "rt-bc" },
    callStrip(parts),
    h("div", { class: "rt-bc-panes" },
      h("div", { class: "rt-bc-left" }, program(parts), instructions(parts)),
      h("div", { class: "rt-bc-right" },
        h("p", { class: "rt-bc-frame" }, one.frame),
        h("div", { class: "rt-bc-held" }, part("stack, top first", "empty", stack, "stack"), part("variables", "none", locals, "stack")),
        part(`graph${entry}`, "empty", graph, "graph"), part(`guards${entry}`, "none", guards, "guards")))); // prettier-ignore
}

export default { render: figure(model, draw) };
