// Loss-surface paths: contours of a function of two numbers, and where optimizers have gone after some steps.

const EDGE = { left: 44, right: 10, top: 10, bottom: 38 };

function ticksBetween(low, high) {
  const rough = (high - low) / 6,
    power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((x) => x >= rough);
  const first = Math.ceil(low / step - 1e-9),
    last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, k) => (first + k) * step);
}

function render({ model, el }) {
  const data = model.get("data"),
    { paths, contours, steps } = data;
  const step = () => model.get("step");
  const hidden = () => new Set(model.get("hidden"));
  const shown = () => paths.map((_, i) => i).filter((i) => !hidden().has(i));
  const goTo = (to) => assign(model, "step", Math.max(0, Math.min(steps, to)));
  const pace = Math.max(30, Math.min(120, 12_000 / steps)); // all of it in twelve seconds at most, if the screen can
  const play = player({ last: steps, what: "the optimizers", get: step, set: goTo, milliseconds: pace });
  const clip = uniqueId("clip");

  // ---- the optimizers: what is shown, its line, its loss now, what it is
  const rows = paths.map((path, i) => {
    const box = h("input", { type: "checkbox", onchange: () => toggle(i, box.checked) });
    const swatch = s(
      "svg",
      { class: "rt-swatch", viewBox: "0 0 34 8", width: 34, height: 8, "aria-hidden": "true" },
      s("path", { class: lineClass(i), d: "M1 4H33" }),
    );
    const value = h("span", { class: "rt-rate" });
    const asked = ` ${path.about} ${plural(path.evaluations, "evaluation")} in ${plural(steps, "step")}.`;
    const about = h("span", { class: "rt-dim rt-about" }, h("code", {}, path.settings), path.settings && ":", asked);
    const name = h("label", { class: "rt-check" }, box, swatch, h("code", {}, path.label));
    return { box, value, item: h("li", {}, name, value, about) };
  });
  function toggle(i, on) {
    const now = hidden();
    if (on) now.delete(i);
    else now.add(i);
    assign(model, "hidden", [...now]);
  }

  // ---- the picture; drawn anew when its width changes, so that letters keep their size
  const chart = s("svg", { class: "rt-chart", role: "img" });
  const chartBox = h("div", { class: "rt-chartbox" }, chart);
  const root = h(
    "div",
    { class: "rt-w rt-surface", role: "group", "aria-label": data.title },
    h("p", { class: "rt-title" }, data.title),
    h("div", { class: "rt-bar" }, play.buttons),
    chartBox,
    play.slider,
    play.now,
    h(
      "ul",
      { class: "rt-curves", "aria-label": "Optimizers" },
      rows.map((row) => row.item),
    ),
    h(
      "p",
      { class: "rt-hint" },
      KEY_HINT,
      " Grey lines connect points of equal loss; a cross is the minimum. The number is the loss.",
    ),
  );
  onKeys(root, play.keys);
  el.append(root);

  let width = 0;
  const part = (value, [low, high]) => (value - low) / (high - low);
  // Far outside of the picture is far enough: no browser draws a line to 1e30.
  const near = (x) => Math.max(-9, Math.min(10, x));
  function drawChart() {
    width = Math.max(240, Math.round(chartBox.clientWidth));
    const height = Math.round(Math.max(240, Math.min(400, width * 0.7)));
    const across = width - EDGE.left - EDGE.right,
      down = height - EDGE.top - EDGE.bottom;
    const x = (value) => EDGE.left + near(part(value, data.x)) * across;
    const y = (value) => EDGE.top + (1 - near(part(value, data.y))) * down;
    const place = (point) => (point === null ? null : [x(point[0]), y(point[1])]);
    const frame = { x: EDGE.left, y: EDGE.top, width: across, height: down };
    chart.setAttribute("viewBox", `0 0 ${width} ${height}`);
    chart.setAttribute("height", height);
    chart.setAttribute("aria-label", describe());
    chart.replaceChildren(
      s("clipPath", { id: clip }, s("rect", frame)),
      s("rect", { class: "rt-frame", ...frame }),
      ...axes(x, y, height),
      s(
        "g",
        { "clip-path": `url(#${clip})` },
        contours.map(({ lines }) =>
          s("path", { class: "rt-contour", d: lines.map((line) => pathOf(line.map(place))).join("") }),
        ),
        data.minimum && cross(place(data.minimum)),
        shown().map((i) => way(i, place)),
      ),
    );
  }
  function axes(x, y, height) {
    const foot = height - EDGE.bottom + 16;
    const text = (at, value) => s("text", at, numberText(value));
    return [
      ...ticksBetween(...data.y).map((t) => text({ x: EDGE.left - 6, y: y(t) + 4, "text-anchor": "end" }, t)),
      ...ticksBetween(...data.x).map((t) => text({ x: x(t), y: foot, "text-anchor": "middle" }, t)),
      s("text", { x: (EDGE.left + width - EDGE.right) / 2, y: foot + 16, "text-anchor": "middle" }, "x"),
      s("text", { x: 4, y: EDGE.top + 12 }, "y"),
    ];
  }
  const dotsAt = (points) => points.map((point) => point && `M${point[0].toFixed(1)} ${point[1].toFixed(1)}h0`).join("");
  const cross = ([x, y]) =>
    s("path", { class: "rt-minimum", d: `M${x - 6} ${y}H${x + 6}M${x} ${y - 6}V${y + 6}` });
  function way(i, place) {
    const points = paths[i].points.slice(0, step() + 1).map(place);
    const now = points.at(-1),
      colour = `rt-colour${i % KINDS}`;
    return [
      s("path", { class: lineClass(i), d: pathOf(points) }),
      s("path", { class: `rt-trail ${colour}`, d: dotsAt(points.slice(0, -1)) }),
      now && s("circle", { class: `rt-dot ${colour}`, cx: now[0], cy: now[1], r: 5 }),
    ];
  }
  function describe() {
    const where = (i) => {
      const point = paths[i].points[step()];
      const at = point === null ? "is nowhere" : `is at (${point.map(numberText).join(", ")})`;
      return `${paths[i].label} ${at} with a loss of ${numberText(paths[i].losses[step()])}`;
    };
    return `Contours of the loss and paths after ${plural(step(), "step")}. ${shown().map(where).join("; ")}.`;
  }

  // ---- drawing
  function update() {
    rows.forEach((row, i) => {
      row.box.checked = !hidden().has(i);
      row.value.textContent = numberText(paths[i].losses[step()]);
    });
    const said = shown().map((i) => `${numberText(paths[i].losses[step()])} (${paths[i].label})`);
    play.show(said.length ? `After ${plural(step(), "step")}: loss ${said.join(", ")}.` : "Nothing is shown.");
    drawChart();
  }
  const watcher = new ResizeObserver(() => {
    if (Math.round(chartBox.clientWidth) !== width) drawChart();
  });
  watcher.observe(chartBox);
  const unbind = bind(model, ["step", "hidden"], update);
  return () => {
    play.stop();
    watcher.disconnect();
    unbind();
  };
}

export default { render };
