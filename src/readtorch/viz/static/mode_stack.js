// What each mode and class sees: a row for each thing that happens, in the column of the place where it happens.
// In a narrow window the rows are one list: the place is a tag, and the indent shows how far below the program it is.
const PLACES = ["function modes, classes", "Autograd", "dispatch modes, classes", "kernel"];
const TAGS = ["function", "Autograd", "dispatch", "kernel"];
const ROWS_SHOWN = 12;
const ROWS_NARROW = 8;

const short = (name) => name.replace("torch.nn.functional", "F").replace("torch.Tensor", "Tensor");

// The number of the first of `shown` rows of which row `step` is one.
const firstShown = (step, shown, count) => Math.max(0, Math.min(step - shown + 4, count - shown));

function eventRow(event, i, { step, go, narrow }) {
  const who = event.who && h("b", {}, `${event.who}: `);
  const button = h("button", {
    type: "button", class: `rt-event rt-by-${event.who || TAGS[event.place]} ${i === step ? "rt-is-pick" : ""}`,
    "data-focus": `event-${i}`, "aria-current": i === step ? "step" : null, onclick: () => go(i),
  }, h("span", { class: "rt-event-tag" }, TAGS[event.place]), who, short(event.what)); // prettier-ignore
  const cells = PLACES.map((place, column) => h("td", { class: `rt-at-${column}` }, column === event.place ? button : null));
  return h("tr", { class: i < narrow || i >= narrow + ROWS_NARROW ? "rt-wide-only" : null }, cells);
}

function eventTable({ events }, step, go) {
  const first = firstShown(step, ROWS_SHOWN, events.length),
    narrow = Math.max(first, firstShown(step, ROWS_NARROW, events.length));
  const rows = events.slice(first, first + ROWS_SHOWN).map((event, i) => eventRow(event, first + i, { step, go, narrow }));
  const head = h("tr", {}, PLACES.map((place) => h("th", { scope: "col" }, place)));
  const last = Math.min(events.length, first + ROWS_SHOWN);
  const label = `events ${first + 1} to ${last} of ${events.length}`;
  const near = `events ${narrow + 1} to ${Math.min(events.length, narrow + ROWS_NARROW)} of ${events.length}`;
  const caption = h("caption", { class: "rt-dim" }, h("span", { class: "rt-wide-only" }, label), h("span", { class: "rt-narrow-only" }, near));
  return h("div", { class: "rt-mode-box", tabindex: 0, role: "region", "aria-label": "what happens, in order", "data-focus": "events" },
    h("table", { class: "rt-mode-events" }, caption, h("thead", {}, head), h("tbody", {}, rows))); // prettier-ignore
}

// Who saw how many calls.
function counts({ events, wrong }) {
  const seen = (test) => events.filter(test).length;
  const parts = ["outer", "middle", "inner", "class"]
    .map((who) => [who, seen((e) => e.who === who)])
    .filter(([, n]) => n)
    .map(([who, n]) => `the ${who}${who === "class" ? "" : " mode"} saw ${plural(n, "call")}`);
  const kernels = plural(seen((e) => e.place === 3), "kernel");
  const sentence = `${[...parts, `${kernels} ran`].join("; ")}.`;
  return h("p", { class: "rt-mode-counts" }, sentence[0].toUpperCase() + sentence.slice(1),
    wrong ? h("span", { class: "rt-is-gold" }, " Wrong gradient: gelu's values, relu's node.") : null); // prettier-ignore
}

const draw = ({ result, step, go }) => [counts(result), eventTable(result, step, go)];

export default { render: figure(model, draw) };
