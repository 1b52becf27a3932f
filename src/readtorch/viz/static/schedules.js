// Schedule plotter: the learning rates of several schedules over the epochs, and what they are at one of them.

const EDGE = { left: 58, right: 10, top: 10, bottom: 38 };

// A scale as linearScale's. What is not positive has no place on it: null.
function logScale(values) {
  const positive = values.filter((x) => x > 0);
  if (!positive.length) return linearScale([]);
  const top = Math.ceil(Math.log10(Math.max(...positive)) - 1e-9),
    // twelve powers of ten are enough: what is below them is as good as 0
    low = Math.max(top - 12, Math.min(top - 1, Math.floor(Math.log10(Math.min(...positive)))));
  const every = Math.ceil((top - low) / 6);
  const whole = Array.from({ length: top - low + 1 }, (_, k) => low + k);
  const powers = whole.filter((p) => (top - p) % every === 0);
  const place = (x) => (x > 0 && Math.log10(x) >= low ? (Math.log10(x) - low) / (top - low) : null);
  return { ticks: powers.map((p) => 10 ** p), place };
}

function render({ model, el }) {
  const data = model.get("data"),
    { curves } = data,
    last = data.epochs - 1;
  const epoch = () => model.get("epoch");
  const hidden = () => new Set(model.get("hidden"));
  const shown = () => curves.map((_, i) => i).filter((i) => !hidden().has(i));
  const rates = (i) => curves[i].rates;
  const momenta = (i) => curves[i].momenta;
  const cyclesMomentum = curves.some((curve) => curve.momenta.length);
  const numbers = () => (model.get("quantity") === "momentum" ? momenta : rates);
  const goTo = (to) => assign(model, "epoch", Math.max(0, Math.min(last, to)));
  const play = player({ last, what: "the training", get: epoch, set: goTo, milliseconds: 120 });

  // ---- controls
  const select = (label, trait, options) =>
    h(
      "label",
      { class: "rt-check" },
      label,
      h(
        "select",
        { class: "rt-select", onchange: (event) => assign(model, trait, event.target.value) },
        options.map(([value, text]) => h("option", { value, selected: model.get(trait) === value }, text)),
      ),
    );
  const scaleChoice = select("scale", "scale", [
    ["linear", "linear"],
    ["log", "logarithmic"],
  ]);
  const quantityChoice = cyclesMomentum
    ? select("shows", "quantity", [
        ["rate", "learning rate"],
        ["momentum", "momentum"],
      ])
    : null;

  // ---- the schedules: what is shown, its line, its number now, its formula
  const rows = curves.map((curve, i) => {
    const box = h("input", { type: "checkbox", onchange: () => toggle(i, box.checked) });
    const swatch = s(
      "svg",
      { class: "rt-swatch", viewBox: "0 0 34 8", width: 34, height: 8, "aria-hidden": "true" },
      s("path", { class: lineClass(i), d: "M1 4H33" }),
    );
    const value = h("span", { class: "rt-rate" });
    const about = h("span", { class: "rt-dim rt-about" }, curve.about);
    const name = h("label", { class: "rt-check" }, box, swatch, h("code", {}, curve.label));
    return { box, value, item: h("li", {}, name, value, about) };
  });
  function toggle(i, on) {
    const now = hidden();
    if (on) now.delete(i);
    else now.add(i);
    assign(model, "hidden", [...now]);
  }

  // ---- the picture; drawn anew when its width changes, so that letters keep their size
  const chart = s("svg", { class: "rt-chart", role: "img", onpointerdown: pointAt, onpointermove: dragAt });
  const chartBox = h("div", { class: "rt-chartbox" }, chart);
  const root = h(
    "div",
    { class: "rt-w rt-schedules", role: "group", "aria-label": data.title },
    h("p", { class: "rt-title" }, data.title),
    h(
      "div",
      { class: "rt-bar" },
      play.buttons,
      h("span", { class: "rt-spring" }),
      scaleChoice,
      quantityChoice,
    ),
    chartBox,
    play.slider,
    play.now,
    h(
      "ul",
      { class: "rt-curves", "aria-label": "Schedules" },
      rows.map((row) => row.item),
    ),
    h(
      "p",
      { class: "rt-hint" },
      KEY_HINT,
      " A step is an epoch, or a batch where the scheduler steps for each.",
    ),
  );
  onKeys(root, play.keys);
  el.append(root);

  let width = 0;
  function frame() {
    const height = Math.round(Math.max(200, Math.min(320, width * 0.55)));
    const across = width - EDGE.left - EDGE.right,
      down = height - EDGE.top - EDGE.bottom;
    return { height, x: (t) => EDGE.left + (t / last) * across, y: (part) => EDGE.top + (1 - part) * down };
  }
  function pointAt(event) {
    const inside = event.clientX - chart.getBoundingClientRect().left - EDGE.left;
    play.stop();
    goTo(Math.round((inside / (width - EDGE.left - EDGE.right)) * last));
  }
  function dragAt(event) {
    if (event.buttons & 1) pointAt(event);
  }

  function drawChart() {
    width = Math.max(240, Math.round(chartBox.clientWidth));
    const { height, x, y } = frame();
    const of = numbers(),
      drawn = shown().filter((i) => of(i).length);
    const all = drawn.flatMap((i) => of(i)).filter((value) => value !== null);
    const scale = model.get("scale") === "log" ? logScale(all) : linearScale(all);
    chart.setAttribute("viewBox", `0 0 ${width} ${height}`);
    chart.setAttribute("height", height);
    chart.setAttribute("aria-label", describe(drawn, of));
    chart.replaceChildren(
      ...axes(scale, x, y, height),
      ...drawn.map((i) => curveOf(i, of(i), scale, x, y)),
      cursor(drawn, of, scale, x, y),
    );
  }
  function axes(scale, x, y, height) {
    const text = (at, value, attributes) => s("text", { ...at, ...attributes }, numberText(value));
    const levels = scale.ticks.map((tick) => {
      const level = y(scale.place(tick));
      return s(
        "g",
        {},
        s("path", { class: "rt-gridline", d: `M${EDGE.left} ${level}H${width - EDGE.right}` }),
        text({ x: EDGE.left - 8, y: level + 4 }, tick, { "text-anchor": "end" }),
      );
    });
    const foot = height - EDGE.bottom + 16;
    const times = stepTicks(last).map((t) => text({ x: x(t), y: foot }, t, { "text-anchor": "middle" }));
    const name = s("text", { x: x(last / 2), y: foot + 16, "text-anchor": "middle" }, "steps of the scheduler");
    return [...levels, ...times, name];
  }
  function curveOf(i, values, scale, x, y) {
    const points = values.map((value, t) => {
      const part = value === null ? null : scale.place(value);
      return part === null ? null : [x(t), y(part)];
    });
    return s("path", { class: lineClass(i), d: pathOf(points) });
  }
  function cursor(drawn, of, scale, x, y) {
    const t = epoch();
    const dots = drawn.map((i) => {
      const value = of(i)[t],
        part = value === null ? null : scale.place(value);
      const place = { class: `rt-dot rt-colour${i % KINDS}`, cx: x(t), cy: part === null ? 0 : y(part), r: 4 };
      return part === null ? null : s("circle", place);
    });
    return s("g", {}, s("path", { class: "rt-cursor", d: `M${x(t)} ${y(1)}V${y(0)}` }), dots);
  }
  function describe(drawn, of) {
    const name = model.get("quantity") === "momentum" ? "Momentum" : "Learning rate";
    const ranges = drawn.map((i) => {
      const values = of(i).filter((value) => value !== null);
      const [low, high] = [Math.min(...values), Math.max(...values)].map(numberText);
      return `${curves[i].label} begins at ${numberText(of(i)[0])} and stays between ${low} and ${high}`;
    });
    return `${name} over ${plural(last, "step")}. ${ranges.join("; ")}.`;
  }

  // ---- drawing
  function update() {
    const of = numbers(),
      t = epoch();
    rows.forEach((row, i) => {
      row.box.checked = !hidden().has(i);
      row.value.textContent = of(i).length ? numberText(of(i)[t]) : "as it was";
    });
    scaleChoice.querySelector("select").value = model.get("scale");
    if (quantityChoice) quantityChoice.querySelector("select").value = model.get("quantity");
    const now = shown().filter((i) => of(i).length);
    const said = now.map((i) => `${curves[i].label} ${numberText(of(i)[t])}`).join(", ");
    play.show(now.length ? `After ${plural(t, "step")}: ${said}.` : "Nothing is shown.");
    drawChart();
  }
  const watcher = new ResizeObserver(() => {
    if (Math.round(chartBox.clientWidth) !== width) drawChart();
  });
  watcher.observe(chartBox);
  const unbind = bind(model, ["epoch", "hidden", "scale", "quantity"], update);
  return () => {
    play.stop();
    watcher.disconnect();
    unbind();
  };
}

export default { render };
