// The allocator explorer's chart: what is reserved, active and allocated over all events.

const CHART = { height: 118, top: 16, bottom: 8, left: 74, right: 6 };
const SERIES = ["reserved", "active", "allocated"];
const LINES = {
  reserved: { colour: "plum", dash: [6, 3] },
  active: { colour: "gold", dash: [2, 2] },
  allocated: { colour: "blue", dash: [] },
};
const COLOURS = ["fg", "dim", "bg", "line", "strong", "blue", "gold", "plum", "green", "focus"];

// Canvases know no custom properties: hidden elements tell what the colours are now.
function makeInk(root) {
  const probes = COLOURS.map((name) => h("span", { class: `rt-probe rt-probe-${name}` }));
  root.append(...probes);
  const ink = {};
  ink.read = () => COLOURS.forEach((name, i) => (ink[name] = getComputedStyle(probes[i]).color));
  return ink;
}

// Size a canvas for the screen's pixels; the drawing counts in those of the page.
function sharp(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const g = canvas.getContext("2d");
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.font = "11px system-ui, sans-serif";
  return g;
}

function makeChart(history, ink, jump) {
  const { last, totals } = history;
  const canvas = h("canvas", { class: "rt-canvas rt-memorychart", role: "img" });
  const box = h("div", { class: "rt-chartbox" }, canvas);
  const most = totals.reserved.reduce((a, b) => Math.max(a, b), 1);
  const lines = document.createElement("canvas"); // drawn once; the cursor comes on top at every step
  let width = 0;
  const across = () => width - CHART.left - CHART.right;
  const floor = CHART.height - CHART.bottom;
  const xOf = (t) => CHART.left + (t / last) * across();
  const yOf = (bytes) => floor - (bytes / most) * (floor - CHART.top);

  function drawLines(matches) {
    width = Math.max(240, Math.round(box.clientWidth));
    const g = sharp(lines, width, CHART.height);
    g.fillStyle = ink.dim;
    for (const level of [0, most]) {
      g.fillText(sizeText(level), 2, yOf(level) + 4);
      drawPath(g, ink.line, 1, [], () => {
        g.moveTo(CHART.left, yOf(level) + 0.5);
        g.lineTo(width - CHART.right, yOf(level) + 0.5);
      });
    }
    for (const name of SERIES)
      drawPath(g, ink[LINES[name].colour], 1.5, LINES[name].dash, () => trace(g, totals[name]));
    g.fillStyle = ink.fg;
    for (const t of history.outOfMemory) g.fillText("▼", xOf(t) - 5, 10);
    g.fillStyle = ink.focus;
    for (const t of matches) g.fillRect(xOf(t), CHART.height - 6, 1, 6);
  }
  function drawPath(g, colour, lineWidth, dash, path) {
    g.strokeStyle = colour;
    g.lineWidth = lineWidth;
    g.setLineDash(dash);
    g.beginPath();
    path();
    g.stroke();
  }
  function trace(g, series) {
    const each = (last + 1) / Math.max(1, across()); // events in one pixel
    if (each > 1) {
      for (let x = 0; x < across(); x++) traceSpan(g, CHART.left + x, series, x * each, (x + 1) * each);
    } else
      series.forEach((value, t) => {
        g.lineTo(xOf(t), yOf(series[Math.max(0, t - 1)]));
        g.lineTo(xOf(t), yOf(value));
      });
  }
  // The least and the greatest value of all events in a pixel, so that no peak is lost.
  function traceSpan(g, x, series, from, to) {
    let low = Infinity,
      high = 0;
    for (let t = Math.floor(from); t === Math.floor(from) || t < Math.floor(to); t++) {
      low = Math.min(low, series[t]);
      high = Math.max(high, series[t]);
    }
    g.lineTo(x, yOf(low));
    if (high > low) g.lineTo(x, yOf(high));
  }

  function draw(step) {
    const g = sharp(canvas, width, CHART.height);
    g.drawImage(lines, 0, 0, width, CHART.height);
    g.fillStyle = ink.fg;
    g.fillRect(Math.round(xOf(step)), CHART.top - 4, 1, CHART.height - CHART.top);
    const now = SERIES.map((name) => `${name} ${sizeText(totals[name][step])}`).join(", ");
    const all = `Memory over ${plural(last, "event")}, at most ${sizeText(most)}.`;
    canvas.setAttribute("aria-label", `${all} Now ${now}.`);
  }
  const drag = ({ buttons, offsetX }) => {
    if (buttons & 1) jump(Math.round(((offsetX - CHART.left) / Math.max(1, across())) * last));
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    drag(event);
  });
  canvas.addEventListener("pointermove", drag);
  return { box, drawLines, draw, outgrown: () => Math.round(box.clientWidth) !== width };
}
