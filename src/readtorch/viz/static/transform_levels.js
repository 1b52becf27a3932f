// Nested transforms: a column for each level of the stack, the last one at the left, and a row for each thing that happens.
// In a narrow window the rows are one list: the level is a tag, and the indent shows how far down the call is.
const ROWS_SHOWN = 11;
const ROWS_NARROW = 7;

const firstRow = (at, shown, count) => Math.max(0, Math.min(at - Math.floor(shown / 2), count - shown));
const WHAT = { begin: "begins", end: "ends", node: "runs", call: "" };
const whatOf = (event) => `${event.what} ${WHAT[event.type]}`.trim();
const levelName = (kinds, level) => (level ? `level ${level}: ${kinds[level - 1]}` : "kernel");

function callRow(event, i, { result, step, go, narrow }) {
  const { kinds } = result,
    column = kinds.length - event.level;
  const arrow = event.result && event.type === "call" ? ` → ${event.result}` : "";
  const button = h("button", {
    type: "button", "data-focus": `event-${i}`, "aria-current": i + 1 === step ? "step" : null, onclick: () => go(i + 1),
    class: `rt-event rt-lv-${event.kind}${event.type === "call" ? "" : " rt-lv-mark"}${i + 1 === step ? " rt-is-pick" : ""}`,
    style: `--down: ${column}`, title: `${whatOf(event)} ${event.given.join(", ")}${arrow}`,
  }, h("span", { class: "rt-event-tag" }, event.level ? `${event.level} ${event.kind}` : "kernel"),
    h("b", {}, whatOf(event)), ` ${event.given.join(", ")}${arrow}`); // prettier-ignore
  const cells = [...kinds, "kernel"].map((_, c) => h("td", {}, c === column ? button : null));
  return h("tr", { class: i < narrow || i >= narrow + ROWS_NARROW ? "rt-wide-only" : null }, cells);
}

function callTable(parts) {
  const { events, kinds } = parts.result,
    at = Math.min(events.length - 1, Math.max(0, parts.step - 1));
  const first = firstRow(at, ROWS_SHOWN, events.length),
    narrow = Math.max(first, Math.min(firstRow(at, ROWS_NARROW, events.length), first + ROWS_SHOWN - ROWS_NARROW));
  const rows = events.slice(first, first + ROWS_SHOWN).map((event, i) => callRow(event, first + i, { ...parts, narrow }));
  const now = events[at]?.level;
  const head = [...kinds.map((_, i) => kinds.length - i), 0].map((level) =>
    h("th", { scope: "col", class: level === now && parts.step ? "rt-is-gold" : null }, levelName(kinds, level)),
  );
  const label = (from, count, kind) =>
    h("span", { class: kind }, `events ${from + 1} to ${Math.min(events.length, from + count)} of ${events.length}`);
  const labels = [label(first, ROWS_SHOWN, "rt-wide-only"), label(narrow, ROWS_NARROW, "rt-narrow-only")];
  return h("table", { class: "rt-mode-events rt-levels" },
    h("caption", {}, events.length ? labels : "no operator is called"), h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows)); // prettier-ignore
}

// The levels that are on the stack at this step, the last one first.
function stackOf({ result, step }) {
  const { events, kinds } = result,
    event = events[Math.min(events.length, step) - 1];
  const count = !step || step > events.length || !event ? 0 : event.layers;
  const layer = (kind, i) =>
    h("span", { class: `rt-layer${event && event.level === i + 1 ? " rt-is-pick" : " rt-is-pale"}` }, `${i + 1} ${kind}`);
  const layers = kinds.slice(0, count).map(layer).reverse();
  return h("p", { class: "rt-stack" }, "stack: ", layers.length ? layers : h("span", { class: "rt-dim" }, "empty"));
}

function printedValues({ result, step }) {
  const { events } = result,
    event = events[step - 1];
  const block = (label, text, tangent = "") =>
    h("div", {}, h("p", { class: "rt-dhead" }, label), h("pre", { tabindex: 0 }, text, tangent && `\ntangent: ${tangent}`));
  if (!event)
    return h("div", { class: "rt-printed" }, step ? block("result", result.result || result.error) : block("the call", result.code));
  const given = event.values.map((text, i) => block(event.values.length > 1 ? `operand ${i + 1}` : event.type === "node" ? "gradient" : "x", text, event.tangents[i]));
  const labels = { call: "result", begin: "what f sees", end: "what comes out", node: "" };
  return h("div", { class: "rt-printed" },
    event.type === "call" && given.length === 1 ? block("operand", event.values[0], event.tangents[0]) : given,
    event.value && block(labels[event.type], event.value, event.tangent)); // prettier-ignore
} // prettier-ignore

const draw = (parts) => [stackOf(parts), h("div", { class: "rt-lv" }, callTable(parts), printedValues(parts))];

export default { render: figure(model, draw) };
