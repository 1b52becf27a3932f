// Hooks of the reader's: a list of them, to which one is added and from which one is taken; the way of the value; and a row for
// each thing that happens, in the column of its module. In a narrow window the rows are one list, and the module is a tag.
const ROWS_WIDE = 11;
const ROWS_NARROW = 7;

const firstShown = (step, shown, count) => Math.max(0, Math.min(step - shown + 4, count - shown));

function hookList({ hooks }, { where, kind, action, option }, set) {
  const write = (list, key) => set({ hooks: list.join("; ") }) || key;
  const chip = (text, i) =>
    h("button", {
      type: "button", class: "rt-hook-chip", "data-focus": `hook-${i}`, title: "remove this hook", "aria-label": `remove hook ${i + 1}, ${text}`,
      onclick: () => write(hooks.filter((_, at) => at !== i)),
    }, h("b", {}, `${i + 1} `), text, " ×"); // prettier-ignore
  const added = [`${where}.${kind}`, action, option].filter(Boolean).join(" ");
  const add = h("button", { type: "button", class: "rt-hook-add", "data-focus": "add", onclick: () => write([...hooks, added]) }, `+ register ${added}`);
  return h("div", { class: "rt-hook-list" }, hooks.map(chip), add);
}

// Who made which value: forward, and behind it backward.
function journey({ journey: steps, error, x, w, result }) {
  const part = ([by, value], i) => {
    const own = by.startsWith("hook ");
    const label = by === "x" || by === "backward" ? null : h("span", { class: own ? "rt-hook-by" : "rt-dim" }, ` → ${by} → `);
    if (by === "backward") return [h("br"), h("span", { class: "rt-dim" }, "backward: "), h("b", {}, value)];
    return [i === 0 ? h("span", { class: "rt-dim" }, "x: ") : null, label, h("b", {}, value)];
  };
  const raised = error === MUTATED ? `RuntimeError: ${MUTATED}` : `${error} raises an error.`;
  const ends = error ? ` ${raised}` : ` x.grad ${x}, w.grad ${w}, net(x) ${result}.`;
  return h("p", { class: "rt-hook-journey" }, steps.map(part), h("br"), h("span", {}, ends));
}

function eventWords({ kind, hook, got, gave }) {
  if (kind === "begin") return `forward(${got}) begins`;
  if (kind === "end") return `forward returns ${gave}`;
  if (kind === "inside") return `forward(${got}) → ${gave}`;
  if (kind === "start") return "backward begins";
  if (kind === "done") return "done";
  if (kind === "error") return "the error leaves";
  return `${hook} ${kind.replace("full_backward", "backward")}: ${got} → ${gave}`;
}

const rowClass = ({ kind, hook, gave }) =>
  !hook ? "rt-by-kernel" : gave === "raises" ? "rt-by-inner" : kind.startsWith("full_") ? "rt-by-middle" : "rt-by-outer";

function eventRow(event, i, { step, go, narrow }) {
  const column = Math.max(0, ["net", "a", "b"].indexOf(event.module)),
    changes = event.hook && event.gave !== "None";
  const button = h("button", {
    type: "button", class: `rt-event ${rowClass(event)} ${i === step ? "rt-is-pick" : ""}`, "data-focus": `event-${i}`,
    "aria-current": i === step ? "step" : null, onclick: () => go(i), title: eventWords(event),
  }, h("span", { class: "rt-event-tag" }, event.module), changes ? h("b", {}, eventWords(event)) : eventWords(event)); // prettier-ignore
  const cells = [0, 1, 2].map((at) => h("td", { class: `rt-at-${at}` }, at === column ? button : null));
  return h("tr", { class: i < narrow || i >= narrow + ROWS_NARROW ? "rt-wide-only" : null }, cells);
}

function eventTable({ events }, step, go) {
  const first = firstShown(step, ROWS_WIDE, events.length),
    narrow = Math.max(first, firstShown(step, ROWS_NARROW, events.length)),
    last = Math.min(events.length, first + ROWS_WIDE);
  const rows = events.slice(first, last).map((event, i) => eventRow(event, first + i, { step, go, narrow }));
  const head = h("tr", {}, ["net", "a: times w, which is 3", "b: squares"].map((name) => h("th", { scope: "col" }, name)));
  const range = (from, shown) => `events ${from + 1} to ${Math.min(events.length, from + shown)} of ${events.length}`;
  const caption = h("caption", { class: "rt-dim" }, h("span", { class: "rt-wide-only" }, range(first, ROWS_WIDE)),
    h("span", { class: "rt-narrow-only" }, range(narrow, ROWS_NARROW))); // prettier-ignore
  return h("div", { class: "rt-mode-box", tabindex: 0, role: "region", "aria-label": "what happens, in order", "data-focus": "events" },
    h("table", { class: "rt-mode-events rt-hook-events" }, caption, h("thead", {}, head), h("tbody", {}, rows))); // prettier-ignore
}

const draw = ({ result, inputs, step, set, go }) => [hookList(result, inputs, set), journey(result), eventTable(result, step, go)];

export default { render: figure(model, draw, { typing: "goes to the last step" }) };
