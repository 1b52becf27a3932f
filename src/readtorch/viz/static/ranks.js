// Rank timeline: two lanes for each rank, what it computes or waits for, and its collectives.

const LANE = { name: 17, bar: 20, ticks: 7, wires: 16, gap: 12 };
const EDGE = { side: 8, foot: 30 };
const COMPUTE = 0,
  COMMUNICATION = 1,
  WAIT = 2;
const KNOWN = { forward: "rt-p rt-p-forward", backward: "rt-p rt-p-backward", step: "rt-p rt-p-optimizer" };

const ms = (t) => `${t >= 100 ? Math.round(t) : Number(t.toPrecision(3))} ms`;
const percent = (share) => (share === null ? "–" : `${Math.round(100 * share)} %`);
const colourOf = ({ lane, name }) => (lane === WAIT ? "rt-t-wait" : (KNOWN[name] ?? "rt-t-work"));

function render({ model, el }) {
  const { runs, title } = model.get("data");
  const longest = Math.max(...runs.map((run) => run.total));
  const run = () => runs[model.get("run")];
  const last = () => run().spans.length - 1;
  const step = () => Math.min(model.get("step"), last());
  function goTo(to) {
    pointed = null;
    assign(model, "step", Math.max(0, Math.min(last(), to)));
  }
  const play = player({ last, what: "the spans", get: step, set: goTo, milliseconds: 400 });
  let pointed = null; // the span under the mouse
  const current = () => run().spans[pointed ?? step()];

  // ---- controls
  const choice = runChoice(runs, model, choose);
  function choose(i) {
    play.stop();
    pointed = null;
    assign(model, "run", i);
  }
  const summary = h("p", { class: "rt-loadersum" });
  const chart = s("svg", { class: "rt-chart rt-lanes", role: "img" });
  const chartBox = h("div", { class: "rt-chartbox" }, chart);
  const stage = h("div", { class: "rt-spanstage" });
  const numbers = h("div", { class: "rt-scrollx", tabindex: 0, role: "group", "aria-label": "Times of the ranks" });
  const others = runs.some(({ spans }) => spans.some((span) => span.lane === COMPUTE && !(span.name in KNOWN)));
  const root = h(
    "div",
    { class: "rt-w rt-devices", role: "group", "aria-label": title },
    h("p", { class: "rt-title" }, title),
    h("div", { class: "rt-bar" }, play.buttons, choice),
    summary,
    chartBox,
    legend([
      ["rt-p-forward", "forward"],
      ["rt-p-backward", "backward"],
      ["rt-p-optimizer", "step"],
      ...(others ? [["rt-t-work", "other work"]] : []),
      ["rt-p-broadcast", "all-reduce waits for other ranks, or for the line"],
      ["rt-p-reduce-add", "its data move"],
      ["rt-t-wait", "rank waits for its result"],
    ]),
    play.slider,
    play.now,
    h("div", { class: "rt-spanfoot" }, stage, numbers),
    h("p", { class: "rt-hint" }, KEY_HINT, " A step is a span; point at one to see it. Ticks: a gradient is complete."),
  );
  onKeys(root, play.keys);
  el.append(root);

  // ---- the picture; drawn anew when its width changes, so that letters keep their size
  let width = 0;
  const x = (t) => EDGE.side + (t / longest) * (width - 2 * EDGE.side);
  const high = LANE.name + LANE.bar + LANE.ticks + LANE.wires + LANE.gap;

  function drawChart() {
    width = Math.max(240, Math.round(chartBox.clientWidth));
    const foot = run().ranks.length * high;
    chart.setAttribute("viewBox", `0 0 ${width} ${foot + EDGE.foot}`);
    chart.setAttribute("height", foot + EDGE.foot);
    chart.setAttribute("aria-label", `Timeline of ${plural(run().ranks.length, "rank")}. ${sumUp()}`);
    chart.replaceChildren(...timeAxis(foot), ...run().ranks.flatMap((rank, i) => drawRank(rank, i * high + LANE.name)));
  }

  function drawRank({ rank, hidden }, top) {
    const own = run().spans.map((span, at) => ({ ...span, at })).filter((span) => span.rank === rank);
    const collectives = own.filter(({ lane }) => lane === COMMUNICATION);
    const wires = top + LANE.bar + LANE.ticks;
    const share = hidden === null ? "" : `: ${percent(hidden)} of its communication behind computing`;
    const line = (y) => s("path", { class: "rt-gridline", d: `M${EDGE.side} ${y}H${width - EDGE.side}` });
    return [
      line(top + LANE.bar),
      line(wires + LANE.wires),
      ...own.filter(({ lane }) => lane !== COMMUNICATION).flatMap((span) => drawBar(span, top)),
      ...collectives.map((span) => bar(span, "rt-p rt-p-broadcast", span.begin, span.moving, wires + LANE.wires - 6, 6)),
      ...collectives.flatMap((span) => drawMoving(span, wires)),
      ...run().gradients.filter(([of]) => of === rank).map((gradient) => drawTick(gradient, top)),
      s("text", { class: "rt-halo", x: EDGE.side, y: top - 5 }, `rank ${rank}${share}`),
    ];
  }

  function drawBar(span, top) {
    const drawn = bar(span, colourOf(span), span.begin, span.end, top, LANE.bar);
    return [drawn, ...label(span.name, span.begin, span.end, top + 14)];
  }
  function drawMoving(span, top) {
    const drawn = bar(span, "rt-p rt-p-reduce-add", span.moving, span.end, top, LANE.wires);
    return [drawn, ...label(span.bucket ?? span.name, span.moving, span.end, top + 12.5)];
  }
  function bar({ at }, colour, from, to, top, height) {
    const now = at === (pointed ?? step());
    const rect = s("rect", {
      class: `${colour}${now ? " rt-p-now" : ""}`,
      x: x(from).toFixed(1),
      y: top,
      width: Math.max(1, x(to) - x(from)).toFixed(1),
      height,
    });
    rect.addEventListener("pointermove", () => point(at)); // see Note [ A mouse at rest ]
    rect.addEventListener("click", () => {
      play.stop();
      goTo(at);
    });
    return rect;
  }
  function label(text, from, to, y) {
    const fits = x(to) - x(from) > 6.5 * String(text).length + 6;
    const place = { class: "rt-p-label", x: ((x(from) + x(to)) / 2).toFixed(1), y, "text-anchor": "middle" };
    return fits ? [s("text", place, text)] : [];
  }
  // A gradient that is complete; those of the bucket that is looked at stand out.
  function drawTick([rank, at, bucket], top) {
    const span = current();
    const its = span && span.lane === COMMUNICATION && span.bucket === bucket && span.rank === rank;
    const place = `M${x(at).toFixed(1)} ${top + LANE.bar}v${LANE.ticks}`;
    return s("path", { class: its ? "rt-tick rt-p-now" : "rt-tick", d: place });
  }
  function point(at) {
    if (pointed === at) return;
    pointed = at;
    update();
  }
  chart.addEventListener("pointerleave", () => point(null));

  function timeAxis(foot) {
    const anchor = (t) => (t === 0 ? "start" : x(t) > width - 30 ? "end" : "middle");
    return timeTicks(longest, Math.max(3, width / 100)).flatMap((t) => [
      s("path", { class: "rt-gridline", d: `M${x(t).toFixed(1)} ${LANE.name}V${foot}` }),
      s("text", { x: x(t).toFixed(1), y: foot + 16, "text-anchor": anchor(t) }, ms(t)),
    ]);
  }

  // ---- words and numbers
  function sumUp() {
    const { ranks, spans, total, left_out } = run();
    const moved = spans.filter(({ rank, lane }) => rank === ranks[0].rank && lane === COMMUNICATION);
    const known = ranks.filter(({ hidden }) => hidden !== null);
    const mean = known.reduce((sum, { hidden }) => sum + hidden, 0) / known.length;
    const share = known.length ? `, ${percent(mean)} of it behind computing` : "";
    const rest = left_out ? ` ${plural(left_out, "further span")} not drawn.` : "";
    return `${ms(total)}; communication: ${plural(moved.length, "collective")} on each rank${share}.${rest}`;
  }
  function said({ rank, lane, name, begin, end }) {
    const what = lane === COMMUNICATION ? ": the all-reduce of " : lane === WAIT ? " " : ": ";
    return [`Rank ${rank}${what}`, h("b", {}, name), `, ${ms(end - begin)} from ${ms(begin)} on.`];
  }
  function facts({ lane, begin, moving, end, bytes, parameters }) {
    if (lane !== COMMUNICATION) return factList([["from … to", `${ms(begin)} to ${ms(end)}`]]);
    return factList([
      ["started", ms(begin)],
      ["waited for other ranks, or for the line", ms(moving - begin)],
      ["data moved for", ms(end - moving)],
      ["bytes", bytes === null ? null : bytesText(bytes)],
      ["parameters", parameters.length ? parametersText(parameters) : null],
    ]);
  }
  function parametersText(names) {
    const some = names.slice(0, 8).join(", ");
    return names.length > 8 ? `${some}, … (${names.length})` : some;
  }
  function table() {
    const heads = ["computes", "data move", "waits", "hidden"];
    return h(
      "table",
      { class: "rt-busy" },
      h("thead", {}, h("tr", {}, h("td"), heads.map((head) => h("th", { scope: "col" }, head)))),
      h(
        "tbody",
        {},
        run().ranks.map(({ rank, times, hidden }) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, `rank ${rank}`),
            times.map((t) => h("td", {}, ms(t))),
            h("td", {}, percent(hidden)),
          ),
        ),
      ),
    );
  }

  // ---- drawing
  function update() {
    summary.textContent = sumUp();
    if (choice) choice.querySelector("select").value = model.get("run");
    play.show(...said(current()));
    stage.replaceChildren(facts(current()));
    numbers.replaceChildren(table());
    drawChart();
  }
  const watcher = new ResizeObserver(() => {
    if (Math.round(chartBox.clientWidth) !== width) drawChart();
  });
  watcher.observe(chartBox);
  const unbind = bind(model, ["step", "run"], update);
  return () => {
    play.stop();
    watcher.disconnect();
    unbind();
  };
}

export default { render };
