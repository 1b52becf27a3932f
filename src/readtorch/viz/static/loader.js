// Worker timeline: a lane for the consumer, one for each worker, and how many batches lie ready, over time.

const LANE = { name: 17, bar: 20, gap: 9 };
const MARGIN = { side: 8, foot: 36, depth: 70 };

const milliseconds = (t) => `${t >= 100 ? Math.round(t) : Number(t.toPrecision(3))} ms`;
const between = (from, to) => (from === null || to === null ? null : milliseconds(Math.max(0, to - from)));

// Keys of the samples, as far as they fit.
function samplesText(samples) {
  if (!samples.length) return null;
  if (samples.every((key) => key === null)) return `the next ${samples.length} of the stream`;
  const some = samples.slice(0, 24).join(", ");
  return samples.length > 24 ? `${some}, … (${samples.length})` : some;
}

// What the consumer did: it waits inside of the loader and works between two waits.
function spansOfConsumer({ waits, total }) {
  const spans = waits.map(([from, to, task]) => ({ from, to, task, what: "wait" }));
  waits.forEach(([, from, task], i) => {
    if (task !== null) spans.push({ from, to: waits[i + 1]?.[0] ?? total, task, what: "work" });
  });
  return spans;
}
const waited = ({ waits }) => waits.reduce((sum, [from, to]) => sum + to - from, 0);

function render({ model, el }) {
  const { runs, title } = model.get("data");
  const longest = Math.max(...runs.map((run) => run.total));
  const run = () => runs[model.get("run")];
  const last = () => Math.max(0, run().tasks.length - 1);
  const step = () => Math.min(model.get("step"), last());
  function goTo(to) {
    pointed = null;
    assign(model, "step", Math.max(0, Math.min(last(), to)));
  }
  const play = player({ last, what: "the batches", get: step, set: goTo });
  let pointed = null; // the task under the mouse
  const current = () => run().tasks[pointed ?? step()];

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
  const stage = h("div", { class: "rt-loaderstage" });
  const root = h(
    "div",
    { class: "rt-w rt-loader", role: "group", "aria-label": title },
    h("p", { class: "rt-title" }, title),
    h("div", { class: "rt-bar" }, play.buttons, choice),
    summary,
    chartBox,
    legend([
      ["rt-t-fetch", "fetches"],
      ["rt-t-wait", "waits for a batch"],
      ["rt-t-work", "works with it"],
      ["rt-t-start", "process starts"],
    ]),
    play.slider,
    play.now,
    stage,
    h("p", { class: "rt-hint" }, KEY_HINT, " A step is a batch; point at one to see it."),
  );
  onKeys(root, play.keys);
  el.append(root);

  // ---- the picture; drawn anew when its width changes, so that letters keep their size
  let width = 0;
  function drawChart() {
    width = Math.max(240, Math.round(chartBox.clientWidth));
    const across = width - 2 * MARGIN.side;
    const x = (t) => MARGIN.side + (t / longest) * across;
    const lanes = lanesOf(run());
    lanes.forEach((lane, i) => (lane.top = i * (LANE.name + LANE.bar + LANE.gap) + LANE.name));
    const foot = lanes.at(-1).top + LANE.bar + LANE.gap;
    const depth = run().workers ? MARGIN.depth + LANE.name : 0;
    const height = foot + depth + MARGIN.foot;
    chart.setAttribute("viewBox", `0 0 ${width} ${height}`);
    chart.setAttribute("height", height);
    chart.setAttribute("aria-label", describe());
    chart.replaceChildren(
      ...timeAxis(x, height, across),
      ...lanes.flatMap((lane) => drawLane(lane, x)),
      ...(depth ? drawDepth(x, foot + LANE.name) : []),
      ...drawLinks(lanes, x),
    );
  }

  function lanesOf({ workers, tasks, starts, total }) {
    const fetched = (worker) =>
      tasks
        .filter((task) => task.worker === worker && task.begun !== null)
        .map((task) => ({ from: task.begun, to: task.fetched ?? total, task: task.number, what: "fetch" }));
    const begun = Object.fromEntries(starts);
    const startup = (worker) =>
      worker in begun ? [{ from: 0, to: begun[worker], task: null, what: "start" }] : [];
    const own = workers ? [] : fetched(null);
    const consumer = { name: "main process", spans: [...spansOfConsumer(run()), ...own] };
    const pins = tasks.filter((task) => task.pin_begun !== null);
    const pinned = pins.map((task) => ({
      from: task.pin_begun,
      to: task.pinned ?? total,
      task: task.number,
      what: "fetch",
    }));
    const pinLane = workers && pins.length ? [{ name: "pin-memory thread", spans: pinned }] : [];
    const ofWorkers = Array.from({ length: workers }, (_, worker) => ({
      name: `worker ${worker}`,
      worker,
      spans: [...startup(worker), ...fetched(worker)],
    }));
    return [consumer, ...pinLane, ...ofWorkers];
  }

  function drawLane({ name, spans, top }, x) {
    const line = { class: "rt-gridline", d: `M${MARGIN.side} ${top + LANE.bar}H${width - MARGIN.side}` };
    const label = s("text", { x: MARGIN.side, y: top - 5 }, name);
    return [s("path", line), ...spans.flatMap((span) => drawSpan(span, top, x)), label];
  }
  function drawSpan({ from, to, task, what }, top, x) {
    const long = Math.max(1, x(to) - x(from));
    const place = { x: x(from).toFixed(1), y: top, width: long.toFixed(1), height: LANE.bar };
    const now = task !== null && task === current()?.number;
    const bar = s("rect", { class: `rt-t-${what}${now ? " rt-t-now" : ""}`, ...place });
    if (task === null) return [bar];
    const at = run().tasks.findIndex((one) => one.number === task);
    bar.addEventListener("pointermove", () => point(at)); // see Note [ A mouse at rest ]
    bar.addEventListener("click", () => {
      play.stop();
      goTo(at);
    });
    const fits = what === "fetch" && long > 9 * String(task).length + 2;
    const label = {
      class: now ? "rt-t-label rt-t-now" : "rt-t-label",
      x: (x(from) + long / 2).toFixed(1),
      y: top + 14.5,
      "text-anchor": "middle",
    };
    return fits ? [bar, s("text", label, task)] : [bar];
  }
  function point(at) {
    if (pointed === at) return;
    pointed = at;
    update();
  }
  chart.addEventListener("pointerleave", () => point(null));

  // From the moment when its indices are sent, to its fetching; from there to the moment when it is handed over.
  function drawLinks(lanes, x) {
    const task = current();
    const lane = task && task.worker !== null && lanes.find(({ worker }) => worker === task.worker);
    if (!lane || task.begun === null) return [];
    const floor = lanes[0].top + LANE.bar,
      way = (from, to) => `M${x(from).toFixed(1)} ${floor}L${x(to).toFixed(1)} ${lane.top}`;
    return [
      task.sent !== null && s("path", { class: "rt-t-link", d: way(task.sent, task.begun) }),
      task.yielded !== null && s("path", { class: "rt-t-link rt-t-home", d: way(task.yielded, task.fetched) }),
    ].filter(Boolean);
  }

  function drawDepth(x, top) {
    const { ready, total } = run();
    const high = Math.max(1, ...runs.flatMap((one) => one.ready.map(([, n]) => n)));
    const y = (n) => top + MARGIN.depth - (n / high) * (MARGIN.depth - 4);
    const right = width - MARGIN.side;
    const stairs = ready.map(([t, n]) => `H${x(t).toFixed(1)}V${y(n).toFixed(1)}`).join("");
    const path = `M${x(0)} ${y(0)}${stairs}H${x(total).toFixed(1)}V${y(0)}Z`;
    const ticks = [...new Set([0, Math.ceil(high / 2), high])];
    return [
      ...ticks.map((n) => s("path", { class: "rt-gridline", d: `M${MARGIN.side} ${y(n)}H${right}` })),
      s("path", { class: "rt-t-depth", d: path }),
      ...ticks.map((n) => s("text", { x: right, y: y(n) - 2, "text-anchor": "end" }, n)),
      s("text", { x: MARGIN.side, y: top - 5 }, "batches that lie ready"),
    ];
  }

  function timeAxis(x, height, across) {
    const foot = height - MARGIN.foot + 4;
    const anchor = (t) => (t === 0 ? "start" : x(t) > width - 40 ? "end" : "middle");
    const at = (t) => ({ x: x(t).toFixed(1), y: foot + 15, "text-anchor": anchor(t) });
    return timeTicks(longest, Math.max(3, across / 90)).flatMap((t) => [
      s("path", { class: "rt-gridline", d: `M${x(t).toFixed(1)} ${LANE.name}V${foot}` }),
      s("text", at(t), milliseconds(t)),
    ]);
  }

  function sumUp() {
    const { tasks, total, error } = run();
    const got = tasks.filter((task) => task.yielded !== null).length;
    const share = Math.round((100 * waited(run())) / total);
    const end = error ? ` It ended with ${error}.` : "";
    const count = got === 1 ? "1 batch" : `${got} batches`;
    const lost = milliseconds(waited(run()));
    return `${count} in ${milliseconds(total)}; the main process waited for ${lost} of them, ${share} %.${end}`;
  }
  const describe = () => `Timeline of ${plural(run().workers, "worker")}. ${sumUp()}`;

  // ---- one batch
  function said(task) {
    const who = task.worker === null ? "the main process" : `worker ${task.worker}`;
    if (task.begun === null) return `its indices were sent to ${who}; the pass ended before it came back.`;
    const fate = task.yielded === null ? "no data came of it" : `handed over at ${milliseconds(task.yielded)}`;
    return `${who} fetched it in ${between(task.begun, task.fetched) ?? "an unknown time"}; ${fate}.`;
  }
  function facts(task) {
    const wait = run().waits.find(([, , number]) => number === task.number);
    return factList([
      ["samples", samplesText(task.samples)],
      ["indices sent at", task.sent === null ? null : milliseconds(task.sent)],
      ["lay in the worker's queue", between(task.sent, task.begun)],
      ["fetched in", between(task.begun, task.fetched)],
      ["handed over by the worker in", between(task.fetched, task.put)],
      ["pinned in", between(task.pin_begun, task.pinned)],
      ["lay ready", task.worker === null ? null : between(task.pinned ?? task.put, task.yielded)],
      ["the main process waited", wait ? between(wait[0], wait[1]) : null],
    ]);
  }

  // ---- drawing
  function update() {
    summary.textContent = sumUp();
    const task = current();
    if (task) {
      play.show(h("b", {}, `Batch ${task.number}`), ": ", said(task));
      stage.replaceChildren(facts(task));
    } else {
      play.show("No batch was asked for.");
      stage.replaceChildren();
    }
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
