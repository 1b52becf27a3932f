// Activation statistics: for each training, deviation or mean of every layer's output over the steps, and histograms.

const PAD = { left: 44, right: 8, top: 8, bottom: 24 };
const HISTOGRAM = { width: 150, height: 34 };
const QUANTITIES = { deviations: "standard deviation", means: "mean" };

function render({ model, el }) {
  const { runs, steps, edges, title } = model.get("data");
  const step = () => model.get("step");
  const goTo = (to) => assign(model, "step", Math.max(0, Math.min(steps - 1, to)));
  const play = player({ last: steps - 1, what: "the training", get: step, set: goTo, milliseconds: 120 });
  const quantity = () => model.get("quantity");
  const highest = Math.max(...runs.flatMap((run) => run.histograms.flat(2)), 1);
  const choice = h(
    "select",
    { class: "rt-select", onchange: (event) => assign(model, "quantity", event.target.value) },
    Object.entries(QUANTITIES).map(([value, text]) => h("option", { value, selected: quantity() === value }, text)),
  );

  const panels = runs.map((run) => panelOf(run));
  const ends = `The histograms go from ${numberText(edges[0])} to ${numberText(edges.at(-1))}; the outermost bars hold what lies beyond. A bar's height is the square root of its share.`;
  const root = h(
    "div",
    { class: "rt-w rt-activations", role: "group", "aria-label": title },
    h("p", { class: "rt-title" }, title),
    h(
      "div",
      { class: "rt-bar" },
      play.buttons,
      h("span", { class: "rt-spring" }),
      h("label", { class: "rt-check" }, "shows", choice),
    ),
    play.slider,
    play.now,
    h(
      "div",
      { class: "rt-panels" },
      panels.map((panel) => panel.root),
    ),
    h("p", { class: "rt-hint" }, KEY_HINT, " A step is a training step. ", ends),
  );
  onKeys(root, play.keys);
  el.append(root);

  // ---- one training: its lines over the steps, and a row for each layer
  function panelOf(run) {
    const chart = s("svg", { class: "rt-chart", role: "img", onpointerdown: pointAt, onpointermove: dragAt });
    const box = h("div", { class: "rt-chartbox" }, chart);
    const rows = run.layers.map((name, i) => {
      const swatch = s(
        "svg",
        { class: "rt-swatch", viewBox: "0 0 34 8", width: 34, height: 8, "aria-hidden": "true" },
        s("path", { class: lineClass(i), d: "M1 4H33" }),
      );
      const bars = s("path", { class: `rt-bars rt-colour${i % KINDS}` });
      const floor = s("path", { class: "rt-gridline", d: `M0 ${HISTOGRAM.height}H${HISTOGRAM.width}` });
      const view = `0 0 ${HISTOGRAM.width} ${HISTOGRAM.height + 1}`;
      const picture = s("svg", { class: "rt-histogram", viewBox: view, preserveAspectRatio: "none", role: "img" }, floor, bars);
      const value = h("span", { class: "rt-dim rt-moments" });
      return { bars, picture, value, item: h("li", {}, swatch, h("code", {}, name), value, picture) };
    });
    const loss = h("span", { class: "rt-dim" });
    return {
      run,
      chart,
      box,
      rows,
      loss,
      root: h(
        "div",
        { class: "rt-panel" },
        h("p", { class: "rt-dhead" }, run.label, " ", loss),
        box,
        h(
          "ul",
          { class: "rt-layers", "aria-label": `Layers of ${run.label}` },
          rows.map((row) => row.item),
        ),
      ),
    };
  }
  function pointAt(event) {
    const place = event.currentTarget.getBoundingClientRect();
    const across = place.width - PAD.left - PAD.right;
    play.stop();
    goTo(Math.round(((event.clientX - place.left - PAD.left) / across) * (steps - 1)));
  }
  function dragAt(event) {
    if (event.buttons & 1) pointAt(event);
  }

  function drawChart({ run, chart, box }) {
    const width = Math.max(200, Math.round(box.clientWidth)),
      height = 150;
    const numbers = runs.flatMap((one) => one[quantity()].flat()).filter((value) => value !== null);
    const scale = linearScale(numbers);
    const x = (t) => PAD.left + (t / Math.max(1, steps - 1)) * (width - PAD.left - PAD.right);
    const y = (part) => PAD.top + (1 - part) * (height - PAD.top - PAD.bottom);
    const lines = run.layers.map((_, i) => {
      const values = run[quantity()].map((of) => of[i] ?? null);
      const points = values.map((value, t) => (value === null ? null : [x(t), y(scale.place(value))]));
      return s("path", { class: lineClass(i), d: pathOf(points) });
    });
    const levels = scale.ticks.flatMap((tick) => [
      s("path", { class: "rt-gridline", d: `M${PAD.left} ${y(scale.place(tick))}H${width - PAD.right}` }),
      s("text", { x: PAD.left - 6, y: y(scale.place(tick)) + 4, "text-anchor": "end" }, numberText(tick)),
    ]);
    const times = stepTicks(steps - 1).map((t) =>
      s("text", { x: x(t), y: height - 6, "text-anchor": t > 0.9 * steps ? "end" : "middle" }, t),
    );
    chart.setAttribute("viewBox", `0 0 ${width} ${height}`);
    chart.setAttribute("height", height);
    chart.setAttribute("aria-label", `${run.label}: ${QUANTITIES[quantity()]} of each layer's output. ${said(run, steps - 1)}`);
    const cursor = s("path", { class: "rt-cursor", d: `M${x(step())} ${y(1)}V${y(0)}` });
    chart.replaceChildren(...levels, ...times, ...lines, cursor);
  }
  function drawRows({ run, rows, loss }) {
    const t = step();
    loss.textContent = run.losses[t] === null ? "" : `loss ${numberText(run.losses[t])}`;
    rows.forEach(({ bars, picture, value }, i) => {
      const counts = run.histograms[t][i] ?? [];
      const wide = HISTOGRAM.width / Math.max(1, counts.length);
      // square roots: a full bar would make all others too small to be seen
      const tall = (n) => HISTOGRAM.height * Math.sqrt(n / highest);
      bars.setAttribute("d", counts.map((n, k) => `M${k * wide} ${HISTOGRAM.height}v${-tall(n)}h${wide * 0.9}v${tall(n)}z`).join(""));
      const moments = `mean ${numberText(run.means[t][i] ?? null)}, deviation ${numberText(run.deviations[t][i] ?? null)}`;
      value.textContent = moments;
      picture.setAttribute("aria-label", `Histogram of ${run.layers[i]} at step ${t}: ${moments}`);
    });
  }
  const said = (run, t) =>
    `At step ${t}: ${run.layers.map((name, i) => `${name} ${numberText(run[quantity()][t][i] ?? null)}`).join(", ")}.`;

  // ---- drawing
  function update() {
    choice.value = quantity();
    const name = QUANTITIES[quantity()];
    const last = runs.map((run) => `${run.label} ${numberText(run[quantity()][step()].at(-1) ?? null)}`);
    play.show(`After ${plural(step(), "step")}, ${name} of the last layer: ${last.join("; ")}.`);
    panels.forEach(drawChart);
    panels.forEach(drawRows);
  }
  const watcher = new ResizeObserver(() => panels.forEach(drawChart));
  watcher.observe(root);
  const unbind = bind(model, ["step", "quantity"], update);
  return () => {
    play.stop();
    watcher.disconnect();
    unbind();
  };
}

export default { render };
