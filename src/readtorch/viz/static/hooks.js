// Hook timeline: a row for each module, a column for each hook or forward, in the order in which they ran.

const HOOK_KINDS = {
  pre: ["pre", "forward pre-hook"],
  begin: ["forward", "forward begins"],
  end: ["return", "forward returns"],
  hook: ["hook", "forward hook"],
  bpre: ["back pre", "backward pre-hook"],
  back: ["back", "backward hook"],
};
const GOT = {
  pre: "arguments",
  begin: "arguments",
  hook: "arguments, result",
  bpre: "grad_output",
  back: "grad_input, grad_output",
};
const REPLACES = { pre: "the arguments", hook: "the result", bpre: "grad_output", back: "grad_input" };
const changes = ({ kind, gave }) => kind in REPLACES && gave !== null;
const isBackward = ({ kind }) => kind === "bpre" || kind === "back";

function render({ model, el }) {
  const data = model.get("data"),
    { lanes, events, spans } = data;
  const step = () => model.get("step");
  const goTo = (to) => assign(model, "step", to);

  const play = player({ last: events.length - 1, what: "the call", get: step, set: goTo, milliseconds: 1100 });
  const go = (i) => () => {
    play.stop();
    goTo(i);
  };

  // ---- the table; its cells answer to the mouse, the slider and the keys to everybody
  const inForward = (lane, i) => spans.some(([of, first, last]) => of === lane && first < i && i < last);
  function cell(lane, event, i) {
    if (event.lane !== lane) return h("td", { class: inForward(lane, i) ? "rt-h-in" : null, onclick: go(i) });
    const cls = `rt-h-${event.kind}`;
    return h("td", { class: cls, onclick: go(i) }, HOOK_KINDS[event.kind][0], event.is_global ? " (all)" : null, changes(event) ? h("b", {}, " *") : null);
  }
  const forwards = events.filter((event) => !isBackward(event)).length;
  const phase = (text, n) => (n ? h("th", { scope: "colgroup", colspan: n }, text) : null);
  const rows = lanes.map(({ path, type }, lane) => ({
    cells: events.map((event, i) => cell(lane, event, i)),
    name: h("th", { scope: "row" }, h("code", {}, path), h("span", { class: "rt-dim" }, ` ${type}`)),
  }));
  const table = h(
    "table",
    { class: "rt-hooks" },
    h("thead", {}, h("tr", {}, h("td"), phase("forward", forwards), phase("backward", events.length - forwards))),
    h("tbody", {}, rows.map(({ name, cells }) => h("tr", {}, name, cells))),
  );
  const box = h("div", { class: "rt-scrollx", tabindex: 0, role: "group", "aria-label": "What ran, by module" }, table);
  const stage = h("div", { class: "rt-hookstage" });
  const root = h(
    "div",
    { class: "rt-w rt-hooktimeline", role: "group", "aria-label": data.title },
    h("p", { class: "rt-title" }, data.title),
    h("div", { class: "rt-bar" }, play.buttons),
    play.slider,
    play.now,
    box,
    stage,
    events.some(changes) ? h("p", { class: "rt-dim" }, "* changes what flows on") : null,
    data.left_out ? h("p", { class: "rt-dim" }, `${plural(data.left_out, "further event")} left out.`) : null,
    data.error ? h("p", { class: "rt-note" }, "The call raised ", h("code", {}, data.error)) : null,
    h("p", { class: "rt-hint" }, KEY_HINT),
  );
  el.append(root);
  onKeys(root, play.keys);

  function update() {
    const i = step(),
      event = events[i];
    rows.forEach(({ cells }) => cells.forEach((td, at) => td.classList.toggle("rt-h-now", at === i)));
    reveal(box, rows[event.lane].cells[i], rows[event.lane].name.offsetWidth);
    const who = ["forward", "<lambda>"].includes(event.name) ? [] : [" ", h("code", {}, event.name)];
    const all = event.is_global ? ", registered for all modules" : "";
    play.show(h("b", {}, HOOK_KINDS[event.kind][1]), ...who, ` of ${lanes[event.lane].path}${all}`);
    const nothing = event.kind === "end" || event.kind === "begin" ? null : "None: nothing changes";
    stage.replaceChildren(
      factList([
        [GOT[event.kind], GOT[event.kind] ? event.got || "nothing" : null],
        [changes(event) ? `replaces ${REPLACES[event.kind]} by` : "returns", event.gave ?? nothing],
      ]),
    );
  }
  const unbind = bind(model, ["step"], update);
  return () => {
    play.stop();
    unbind();
  };
}

export default { render };
