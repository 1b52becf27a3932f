// A training loop under a profiler: a box for each step, the flame of the recorded ones, one event, and the table of sums.

const FLAME = { width: 720, row: 24, top: 4 };
const ACTIONS = { none: "nothing", warmup: "warm up", record: "record", save: "record, then hand over" };

const shortName = (name) => name.replace("autograd::engine::evaluate_function: ", "evaluate: ").replace("torch::autograd::", "").replace("aten::", ""); // prettier-ignore

// In the table `detach` and `aten::detach` are two rows.
const fullName = (name) => name.replace("autograd::engine::", "").replace("torch::autograd::", "");

function strip({ result }) {
  const { actions, traces } = result,
    ready = new Set(traces.map(([step]) => step));
  const box = (action, step) =>
    h("li", { class: `rt-step rt-${action}${ready.has(step) ? " rt-ready" : ""}`, title: `step ${step}: ${ACTIONS[action]}${ready.has(step) ? "; on_trace_ready is called before it" : ""}` }, // prettier-ignore
      h("span", { class: "rt-n" }, String(step)), h("span", { class: "rt-a" }, action === "none" ? "–" : action === "warmup" ? "warm" : action === "save" ? "save" : "rec")); // prettier-ignore
  return h("ol", { class: "rt-steps", "aria-label": `What the profiler does in each step: ${actions.map((a, i) => `${i} ${ACTIONS[a]}`).join(", ")}` }, actions.map(box));
}

// Whether event `i` is `outer` or inside it.
function isInside(events, i, outer) {
  while (i > outer) i = events[i][3];
  return i === outer;
}

const kindOf = (name) => (/^cuda/.test(name) ? "launch" : /^(aten::|detach$)/.test(name) ? "op" : /Backward0$|AccumulateGrad$/.test(name) ? "node" : "block");

function flame({ result, set }) {
  const { events, kernels, at, zoom } = result,
    { width, row, top } = FLAME,
    depth = Math.max(...events.map((event) => event[4])) + 1,
    [from, to] = zoom ? events[zoom - 1].slice(1, 3) : [0, Math.max(...[...events, ...kernels].map((one) => one[2]))];
  const x = (time) => ((Math.min(to, Math.max(from, time)) - from) / (to - from)) * width;
  const look = (place) => {
    const next = Math.max(1, Math.min(events.length, place));
    set({ at: next, zoom: zoom && isInside(events, next - 1, zoom - 1) ? zoom : 0 });
  };
  const zoomTo = (place) => set({ at, zoom: place });
  const bar = ([name, start, end, , level], i) => {
    if (end <= from || start >= to) return "";
    const left = x(start),
      room = x(end) - left,
      words = shortName(name),
      y = top + row * level;
    const rect = s("rect", { class: `rt-bar-${kindOf(name)}${i === at - 1 ? " rt-on" : room < 4 ? " rt-thin" : ""}`, x: left.toFixed(2), y, width: Math.max(room, 0.6).toFixed(2), height: row - 2 });
    rect.addEventListener("click", () => (i === at - 1 ? zoomTo(i + 1) : look(i + 1)));
    const fits = words.length * 7.6 + 6 < room,
      wide = words.length * 13 + 8 < room;
    return [rect, fits ? s("text", { class: wide ? "rt-wide" : "", x: left + 4, y: y + 15 }, words) : ""];
  };
  // The stream of the device: below the calls, an arrow from each launch to its kernel.
  const lane = top + row * (depth + 1);
  const kernel = ([name, start, end, launch]) => {
    if (end <= from || start >= to) return "";
    const chosen = launch === at - 1 || events[launch][3] === at - 1,
      room = x(end) - x(start),
      words = shortName(name);
    const arrow = s("line", { class: `rt-arrow${chosen ? " rt-on" : ""}`, x1: x(events[launch][2]).toFixed(2), y1: top + row * (events[launch][4] + 1) - 2, x2: x(start).toFixed(2), y2: lane });
    const rect = s("rect", { class: `rt-bar-kernel${chosen ? " rt-on" : ""}`, x: x(start).toFixed(2), y: lane, width: Math.max(room, 0.6).toFixed(2), height: row - 2 });
    rect.addEventListener("click", () => look(launch + 1));
    return [arrow, rect, words.length * 7.6 + 6 < room ? s("text", { class: words.length * 13 + 8 < room ? "rt-wide" : "", x: x(start) + 4, y: lane + 15 }, words) : ""];
  };
  const about = kernels.length ? "Events over time, what they call below them, and the kernels of the GPU in the last row" : "Events over time, what they call below them";
  const svg = s("svg", { viewBox: `0 0 ${width} ${kernels.length ? lane + row : top + row * depth}`, width: "100%", role: "img", "aria-label": about },
    events.map(bar), kernels.map(kernel)); // prettier-ignore
  const [name, start, end] = events[at - 1];
  const chart = placeSlider(svg, { label: "event", at, count: events.length, text: `event ${at}: ${name}, ${duration(end - start)}`, choose: look });
  onKeys(chart, { Enter: () => zoomTo(at), Escape: () => zoomTo(0) });
  return chart;
}

function event({ result, set }) {
  const { events, kernels, at, zoom } = result,
    [name, start, end, parent, , shapes, flops, own] = events[at - 1],
    launched = kernels.find((one) => one[3] === at - 1),
    given = shapes.filter((shape) => shape.length).map(shapeText).join(" ");
  return h("div", { class: "rt-event" },
    h("code", {}, name),
    h("span", {}, h("b", {}, duration(end - start)), ` in all, ${duration(own)} of its own`),
    parent >= 0 ? h("span", {}, "in ", linkButton(shortName(events[parent][0]), () => set({ at: parent + 1, zoom: 0 }))) : "",
    given ? h("span", {}, `shapes ${given}`) : "",
    launched ? h("span", {}, `its kernel begins ${duration(launched[1] - end)} later and takes ${duration(launched[2] - launched[1])}`) : "",
    flops ? h("span", {}, `${flops.toLocaleString("en")} FLOPs`) : "",
    zoom === at ? "" : linkButton("zoom in", () => set({ at, zoom: at })),
    zoom ? linkButton("zoom out", () => set({ at, zoom: 0 })) : "",
  ); // prettier-ignore
}

function table({ result, set }) {
  const { rows, total, events, at } = result,
    chosen = rowName(events[at - 1][0]),
    share = (us) => `${((100 * us) / total).toFixed(1)} %`;
  const first = (name) => events.findIndex((one) => rowName(one[0]) === name) + 1;
  const line = ([name, own, all, calls, flops]) =>
    h("tr", { class: name === chosen ? "rt-on" : "" },
      h("th", { scope: "row" }, linkButton(fullName(name), () => set({ at: first(name), zoom: 0 }))),
      [share(own), duration(own), share(all), duration(all), String(calls), flops ? flops.toLocaleString("en") : ""].map((text) => h("td", {}, text))); // prettier-ignore
  return h("div", { class: "rt-scrollx rt-sums", tabindex: 0, role: "group", "aria-label": "Sums by name" },
    h("table", {},
      h("thead", {}, h("tr", {}, ["Name", "Self %", "Self", "Total %", "Total", "Calls", "FLOPs"].map((title) => h("th", { scope: "col" }, title)))),
      h("tbody", {}, rows.map(line))),
  ); // prettier-ignore
}

const draw = (parts) => (parts.result.events.length ? [strip(parts), flame(parts), event(parts), table(parts)] : [strip(parts)]);

export default { render: figure(model, draw) };
