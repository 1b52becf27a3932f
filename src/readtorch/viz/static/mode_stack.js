// What each mode sees: a row for each thing that happens, in the column of the place where it happens.
const PLACES = ["function modes", "Autograd", "dispatch modes", "kernel"];
const ROWS_SHOWN = 12;

const short = (name) => name.replace("torch.nn.functional", "F").replace("torch.Tensor", "Tensor");

function eventRow(event, i, step, go) {
  const who = event.who && h("b", {}, `${event.who}: `);
  const button = h("button", {
    type: "button", class: `rt-event rt-${event.who || (event.place === 3 ? "kernel" : "autograd")} ${i === step ? "rt-is-pick" : ""}`,
    "data-focus": `event-${i}`, "aria-current": i === step ? "step" : null, onclick: () => go(i),
  }, who, short(event.what)); // prettier-ignore
  const cells = PLACES.map((place, column) => h("td", {}, column === event.place ? button : null));
  return h("tr", {}, cells);
}

function eventTable({ events }, step, go) {
  const first = Math.max(0, Math.min(step - ROWS_SHOWN + 4, events.length - ROWS_SHOWN));
  const rows = events.slice(first, first + ROWS_SHOWN).map((event, i) => eventRow(event, first + i, step, go));
  const head = h("tr", {}, PLACES.map((place) => h("th", { scope: "col" }, place)));
  const label = `events ${first + 1} to ${Math.min(events.length, first + ROWS_SHOWN)} of ${events.length}`;
  return h("div", { class: "rt-scrollx", tabindex: 0, role: "region", "aria-label": label, "data-focus": "events" },
    h("table", { class: "rt-mode-events" }, h("caption", { class: "rt-dim" }, label), h("thead", {}, head), h("tbody", {}, rows))); // prettier-ignore
}

// Who saw how many calls.
function counts({ events, wrong }) {
  const seen = (test) => events.filter(test).length;
  const parts = ["outer", "middle", "inner"]
    .map((who) => [who, seen((e) => e.who === who)])
    .filter(([, n]) => n)
    .map(([who, n]) => `the ${who} mode saw ${plural(n, "call")}`);
  const kernels = plural(seen((e) => e.place === 3), "kernel");
  const sentence = `${[...parts, `${kernels} ran`].join("; ")}.`;
  return h("p", { class: "rt-mode-counts" }, sentence[0].toUpperCase() + sentence.slice(1),
    wrong ? h("span", { class: "rt-is-gold" }, " Wrong gradient: gelu's values, relu's node.") : null); // prettier-ignore
}

const draw = ({ result, step, go }) => [counts(result), eventTable(result, step, go)];

export default { render: figure(model, draw) };
