// Device timeline: a lane for the host and one for each stream of each device; pieces are kernels, coloured by phase.

const ROW = { name: 17, bar: 22, gap: 9 };
const BORDER = { side: 8, foot: 30 };
const ZOOMS = [1, 4, 16, 64];
const PIECE = ["device", "stream", "operator", "phase", "start", "end", "asked", "bytes"];

const micro = (t) => (t >= 1000 ? `${Number((t / 1000).toPrecision(3))} ms` : `${Number(t.toPrecision(3))} µs`);
const percent = (part, whole) => `${Math.round((100 * part) / whole)} %`;
const phaseClass = (name) => `rt-p-${name}`;

function render({ model, el }) {
  const { runs, phases, title } = model.get("data");
  const pieces = runs.map((run) => run.pieces.map((values) => Object.fromEntries(PIECE.map((k, i) => [k, values[i]]))));
  const longest = Math.max(...runs.map((run) => run.total));
  const run = () => runs[model.get("run")];
  const own = () => pieces[model.get("run")];
  const last = () => Math.max(0, own().length - 1);
  const step = () => Math.min(model.get("step"), last());
  function goTo(to) {
    pointed = null;
    assign(model, "step", Math.max(0, Math.min(last(), to)));
  }
  const play = player({ last, what: "the kernels", get: step, set: goTo, milliseconds: 250 });
  let pointed = null; // the piece under the mouse
  const current = () => own()[pointed ?? step()];

  // ---- controls
  function choose(trait, value) {
    play.stop();
    pointed = null;
    assign(model, trait, value);
  }
  const zoomChoice = labelledSelect(
    "shows",
    ZOOMS.map((zoom) => [zoom, zoom === 1 ? "all" : `${zoom} times larger`]),
    model.get("zoom"),
    (zoom) => choose("zoom", zoom),
  );
  const choice = runChoice(runs, model, (i) => choose("run", i));
  const summary = h("p", { class: "rt-loadersum" });
  const chart = s("svg", { class: "rt-chart rt-lanes", role: "img" });
  const chartBox = h("div", { class: "rt-chartbox" }, chart);
  const stage = h("div", { class: "rt-piecestage" });
  const numbers = h("div", { class: "rt-scrollx", tabindex: 0, role: "group", "aria-label": "Busy times" });
  const used = phases.filter((_, p) => pieces.some((of) => of.some(({ phase }) => phase === p)));
  const root = h(
    "div",
    { class: "rt-w rt-devices", role: "group", "aria-label": title },
    h("p", { class: "rt-title" }, title),
    h("div", { class: "rt-bar" }, play.buttons, choice, zoomChoice),
    summary,
    chartBox,
    legend(used.map((name) => [phaseClass(name), name])),
    play.slider,
    play.now,
    stage,
    numbers,
    h("p", { class: "rt-hint" }, KEY_HINT, " A step is a kernel or a copy; point at one to see it. + and - zoom."),
  );
  onKeys(root, { ...play.keys, "+": () => zoomBy(1), "-": () => zoomBy(-1) });
  el.append(root);
  function zoomBy(by) {
    const at = ZOOMS.indexOf(model.get("zoom")) + by;
    if (at in ZOOMS) choose("zoom", ZOOMS[at]);
  }

  // ---- the picture; drawn anew when its width changes, so that letters keep their size
  let width = 0;
  let from = 0; // the moment at the left end
  const span = () => longest / model.get("zoom");
  const x = (t) => BORDER.side + ((t - from) / span()) * (width - 2 * BORDER.side);

  // keeps what is looked at in view, and stays where it is as long as it is
  function scrollTime() {
    const piece = own()[step()];
    if (piece && (piece.start < from || piece.end > from + span())) from = piece.start - span() / 4;
    from = Math.max(0, Math.min(longest - span(), from));
  }

  function drawChart() {
    width = Math.max(240, Math.round(chartBox.clientWidth));
    scrollTime();
    const lanes = lanesOf();
    lanes.forEach((lane, i) => (lane.top = i * (ROW.name + ROW.bar + ROW.gap) + ROW.name));
    const foot = lanes.at(-1).top + ROW.bar + ROW.gap;
    chart.setAttribute("viewBox", `0 0 ${width} ${foot + BORDER.foot}`);
    chart.setAttribute("height", foot + BORDER.foot);
    chart.setAttribute("aria-label", `Timeline of ${plural(run().devices.length, "device")}. ${sumUp()}`);
    chart.replaceChildren(...timeAxis(foot), ...lanes.flatMap(drawLane), ...drawLink(lanes));
  }

  function lanesOf() {
    const { devices, launch, total } = run();
    const all = own().map((piece, at) => ({ ...piece, at }));
    const launches = all.map((piece) => ({ ...piece, start: piece.asked - launch, end: piece.asked }));
    const host = { name: `host: launches for ${percent(launch * all.length, total)} of the time`, pieces: launches };
    const ofDevices = devices.flatMap(({ name, busy }, device) => {
      const here = all.filter((piece) => piece.device === device);
      const streams = [...new Set([0, ...here.map(({ stream }) => stream)])].sort((a, b) => a - b);
      return streams.map((stream) => ({
        device,
        stream,
        name: stream ? `${name}, stream ${stream}` : `${name}: busy for ${percent(busy, total)} of the time`,
        pieces: here.filter((piece) => piece.stream === stream),
      }));
    });
    return [host, ...ofDevices];
  }

  function drawLane({ name, top, pieces: drawn }) {
    const floor = { class: "rt-gridline", d: `M${BORDER.side} ${top + ROW.bar}H${width - BORDER.side}` };
    const bars = drawn.filter(({ start, end }) => end >= from && start <= from + span());
    return [s("path", floor), ...bars.flatMap((piece) => drawPiece(piece, top)), s("text", { x: BORDER.side, y: top - 5 }, name)];
  }
  function drawPiece({ start, end, at, phase, operator }, top) {
    const left = Math.max(x(start), BORDER.side),
      long = Math.max(1, Math.min(x(end), width - BORDER.side) - left);
    const now = at === (pointed ?? step());
    const bar = s("rect", {
      class: `rt-p ${phaseClass(phases[phase])}${now ? " rt-p-now" : ""}`,
      x: left.toFixed(1),
      y: top,
      width: long.toFixed(1),
      height: ROW.bar,
    });
    bar.addEventListener("pointermove", () => point(at)); // see Note [ A mouse at rest ]
    bar.addEventListener("click", () => {
      play.stop();
      goTo(at);
    });
    const label = { class: "rt-p-label", x: (left + long / 2).toFixed(1), y: top + 15, "text-anchor": "middle" };
    return long > 7 * operator.length + 4 ? [bar, s("text", label, operator)] : [bar];
  }
  function point(at) {
    if (pointed === at) return;
    pointed = at;
    update();
  }
  chart.addEventListener("pointerleave", () => point(null));

  // From the host's launch to the kernel.
  function drawLink(lanes) {
    const piece = current();
    const lane = piece && lanes.find(({ device, stream }) => device === piece.device && stream === piece.stream);
    const inside = (t) => x(t) >= 0 && x(t) <= width;
    if (!lane || !inside(piece.asked) || !inside(piece.start)) return [];
    const way = `M${x(piece.asked).toFixed(1)} ${lanes[0].top + ROW.bar}L${x(piece.start).toFixed(1)} ${lane.top}`;
    return [s("path", { class: "rt-t-link", d: way })];
  }

  function timeAxis(foot) {
    const every = timeTicks(span(), Math.max(3, width / 100))[1] ?? span();
    const first = Math.ceil(from / every - 1e-9);
    const count = Math.floor((from + span()) / every + 1e-9) - first + 1;
    const anchor = (t) => (x(t) < 20 ? "start" : x(t) > width - 30 ? "end" : "middle");
    return Array.from({ length: count }, (_, k) => (first + k) * every).flatMap((t) => [
      s("path", { class: "rt-gridline", d: `M${x(t).toFixed(1)} ${ROW.name}V${foot}` }),
      s("text", { x: x(t).toFixed(1), y: foot + 16, "text-anchor": anchor(t) }, micro(t)),
    ]);
  }

  // ---- words and numbers
  function sumUp() {
    const { devices, total, left_out } = run();
    const shares = devices.map(({ name, busy }) => `${name} ${percent(busy, total)}`).join(", ");
    const rest = left_out ? ` ${plural(left_out, "further piece")} not drawn.` : "";
    return `${plural(own().length, "kernel")} in ${micro(total)}. Busy: ${shares}.${rest}`;
  }
  function facts({ start, end, asked, bytes, operator }) {
    const copies = ["_to_copy", "copy_"].includes(operator);
    return factList([
      ["launched at", micro(asked)],
      ["waited", micro(Math.max(0, start - asked))],
      ["ran", `from ${micro(start)} to ${micro(end)}: ${micro(end - start)}`],
      [copies ? "copied" : "read and written", bytesText(bytes)],
    ]);
  }
  function table() {
    const { devices, total } = run();
    const cell = (t) => h("td", {}, t ? micro(t) : "–");
    return h(
      "table",
      { class: "rt-busy" },
      h("thead", {}, h("tr", {}, h("td"), h("th", { scope: "col" }, "busy"), used.map((p) => h("th", { scope: "col" }, p)))),
      h(
        "tbody",
        {},
        devices.map(({ name, busy, phases: times }) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, name),
            h("td", {}, percent(busy, total)),
            used.map((p) => cell(times[phases.indexOf(p)])),
          ),
        ),
      ),
    );
  }

  // ---- drawing
  function update() {
    summary.textContent = sumUp();
    zoomChoice.querySelector("select").value = model.get("zoom");
    if (choice) choice.querySelector("select").value = model.get("run");
    const piece = current();
    if (piece) {
      const where = `cuda:${piece.device}${piece.stream ? `, stream ${piece.stream}` : ""}`;
      play.show(h("b", {}, piece.operator), ` on ${where}, for `, h("b", {}, phases[piece.phase]), ".");
      stage.replaceChildren(facts(piece));
    } else {
      play.show("Nothing ran on a device.");
      stage.replaceChildren();
    }
    numbers.replaceChildren(table());
    drawChart();
  }
  const watcher = new ResizeObserver(() => {
    if (Math.round(chartBox.clientWidth) !== width) drawChart();
  });
  watcher.observe(chartBox);
  const unbind = bind(model, ["step", "run", "zoom"], update);
  return () => {
    play.stop();
    watcher.disconnect();
    unbind();
  };
}

export default { render };
