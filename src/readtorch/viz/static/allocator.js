// Allocator explorer: what the caching allocator holds after each event, and why.

const ROW = { height: 26, bar: 18, top: 4, label: 74, right: 6 };
const CHART = { height: 118, top: 16, bottom: 8, left: 74, right: 6 };
const STATES = ["free", "allocated", "waits for other streams"];
const STREAMS = ["blue", "gold", "plum", "green", "strong"]; // colours of streams, in order of appearance
const SERIES = ["reserved", "active", "allocated"];
const DASHES = { reserved: [6, 3], active: [2, 2], allocated: [] };
const SERIES_COLOUR = { reserved: "plum", active: "gold", allocated: "blue" };
const COLOURS = ["fg", "dim", "bg", "soft", "line", "strong", "blue", "gold", "plum", "green", "focus"];

async function render({ model, el }) {
  const data = model.get("data"),
    last = data.events;
  const H = await unpack(data);
  const history = makeHistory(H, last);
  const step = () => Math.max(0, Math.min(last, model.get("step")));
  const goTo = (to) => assign(model, "step", Math.max(0, Math.min(last, to)));
  const page = last > 2000 ? 100 : 10;
  let hovered = null, // an address
    matches = [];
  const picked = () => (model.get("address") ? Number(model.get("address")) : null);
  const pick = (address) => assign(model, "address", address === null ? "" : addressText(address));

  // ---- the frame around the pictures
  const play = player({ last, what: "the history", get: step, set: goTo, milliseconds: 150 });
  const jump = (to) => {
    play.stop();
    goTo(to);
  };
  const nextOf = (events, t) => events.find((event) => event > t);
  const lastOf = (events, t) => events.findLast((event) => event < t);
  const toDriver = (find) => () => {
    const to = find(history.driverEvents, step());
    if (to !== undefined) jump(to);
  };
  const textButton = (text, label, onclick) =>
    h("button", { type: "button", class: "rt-btn", "aria-label": label, title: label, onclick }, text);
  const colours = selector("colours", ["state", "stream"], "colour");
  const scale = selector("rows", ["full width", "to scale"], "scale");
  function selector(label, options, trait) {
    const select = h(
      "select",
      { class: "rt-select", onchange: () => assign(model, trait, select.value) },
      options.map((option) => h("option", { value: option }, option)),
    );
    return { select, label: h("label", { class: "rt-check" }, label, select) };
  }
  const query = h("input", {
    type: "search",
    class: "rt-select rt-query",
    "aria-label": "Search the events for an address, a size, or words of a stack or reason",
    placeholder: "0x…, 20 MiB, or words",
    oninput: () => find(query.value),
  });
  const foundText = h("span", { class: "rt-count", role: "status" });
  const toMatch = (pickOne) => {
    const to = pickOne(matches, step()) ?? (pickOne === nextOf ? matches[0] : matches.at(-1));
    if (to !== undefined) jump(to);
    sayFound();
  };
  const chart = h("canvas", { class: "rt-canvas rt-memorychart", role: "img" });
  const chartBox = h("div", { class: "rt-chartbox" }, chart);
  const rowsCanvas = h("canvas", { class: "rt-canvas rt-rowscanvas", "aria-hidden": "true" });
  const spacer = h("div", { class: "rt-spacer" }, rowsCanvas);
  const box = h(
    "div",
    { class: "rt-segments", tabindex: 0, role: "group", "aria-roledescription": "picture of memory" },
    spacer,
  );
  const totals = h("p", { class: "rt-totals" });
  const detail = detailBox();
  detail.setAttribute("aria-live", "polite");
  const legends = h("div", {});
  const end = data.differing
    ? `The end differs in ${data.differing} of ${plural(data.segments, "segment")}, so some may be wrong.`
    : "The end that they lead to is the snapshot's, block for block.";
  const origin =
    data.reasons === "derived"
      ? `This snapshot has no reasons: they are worked out from its events by PyTorch's rules. ${end}`
      : null;
  const root = h(
    "div",
    { class: "rt-w rt-allocator", role: "group", "aria-label": data.title },
    h("p", { class: "rt-title" }, data.title),
    h(
      "div",
      { class: "rt-bar" },
      play.buttons,
      h("span", { class: "rt-spring" }),
      textButton("[", "Back to the last segment that came or went", toDriver(lastOf)),
      textButton("]", "Forward to the next segment that comes or goes", toDriver(nextOf)),
    ),
    chartBox,
    play.slider,
    totals,
    play.now,
    h(
      "div",
      { class: "rt-bar" },
      query,
      textButton("‹", "Last match", () => toMatch(lastOf)),
      textButton("›", "Next match", () => toMatch(nextOf)),
      foundText,
      h("span", { class: "rt-spring" }),
      colours.label,
      scale.label,
    ),
    h("div", { class: "rt-cols" }, h("div", { class: "rt-chartbox" }, box, legends), detail),
    origin && h("p", { class: "rt-hint" }, origin),
    h(
      "p",
      { class: "rt-hint" },
      KEY_HINT,
      ` [ and ] go to where segments come and go; on the slider Page Up and Page Down go ${page} events. `,
      "In the picture arrows go from block to block, Escape lets go.",
    ),
  );
  el.append(root);
  onKeys(root, {
    ...play.keys,
    "[": toDriver(lastOf),
    "]": toDriver(nextOf),
    Escape: () => (picked() === null ? false : pick(null)),
  });
  onKeys(play.slider, { PageUp: () => jump(step() + page), PageDown: () => jump(step() - page) });
  query.addEventListener("keydown", (event) => {
    event.stopPropagation(); // letters and commas are for the query
    if (event.key === "Enter") toMatch(event.shiftKey ? lastOf : nextOf);
    if (event.key === "Escape") find((query.value = ""));
  });

  // ---- colours: canvases know no custom properties, so elements tell what these are now
  const probes = COLOURS.map((name) => {
    const probe = h("span", { class: `rt-probe rt-probe-${name}` });
    root.append(probe);
    return [name, probe];
  });
  let ink = {},
    hatch = null;
  function readColours() {
    ink = Object.fromEntries(probes.map(([name, probe]) => [name, getComputedStyle(probe).color]));
    const tile = h("canvas", { width: 6, height: 6 }),
      g = tile.getContext("2d");
    g.strokeStyle = ink.bg;
    g.lineWidth = 2;
    for (const x of [-6, 0, 6]) {
      g.beginPath();
      g.moveTo(x, 6);
      g.lineTo(x + 6, 0);
      g.stroke();
    }
    hatch = g.createPattern(tile, "repeat");
  }
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

  // ---- the chart: lines are drawn once, the cursor at every step
  let width = 0,
    most = 1;
  const lines = document.createElement("canvas");
  const across = () => width - CHART.left - CHART.right;
  const xOf = (t) => CHART.left + (last ? t / last : 0) * across();
  const floor = CHART.height - CHART.bottom;
  const yOf = (bytes) => floor - (bytes / most) * (floor - CHART.top);
  function drawLines() {
    most = history.totals.reserved.reduce((a, b) => Math.max(a, b), 1);
    const g = sharp(lines, width, CHART.height);
    g.fillStyle = ink.dim;
    g.strokeStyle = ink.line;
    for (const level of [0, most]) {
      g.fillText(sizeText(level), 2, yOf(level) + 4);
      g.beginPath();
      g.moveTo(CHART.left, yOf(level) + 0.5);
      g.lineTo(width - CHART.right, yOf(level) + 0.5);
      g.stroke();
    }
    for (const name of SERIES) drawSeries(g, name);
    g.fillStyle = ink.fg;
    for (const t of history.outOfMemory) g.fillText("▼", xOf(t) - 5, 10);
    g.fillStyle = ink.focus;
    for (const t of matches) g.fillRect(xOf(t), CHART.height - 6, 1, 6);
  }
  // One pixel stands for many events: its least and its greatest value are drawn, so that no peak is lost.
  function drawSeries(g, name) {
    const series = history.totals[name];
    g.strokeStyle = ink[SERIES_COLOUR[name]];
    g.lineWidth = 1.5;
    g.setLineDash(DASHES[name]);
    g.beginPath();
    const each = (last + 1) / Math.max(1, across());
    if (each <= 1)
      series.forEach((value, t) => {
        g.lineTo(xOf(t), yOf(series[Math.max(0, t - 1)]));
        g.lineTo(xOf(t), yOf(value));
      });
    else for (let x = 0; x < across(); x++) drawSpan(g, CHART.left + x, series, x * each, (x + 1) * each);
    g.stroke();
    g.setLineDash([]);
  }
  function drawSpan(g, x, series, from, to) {
    let low = Infinity,
      high = 0;
    for (let t = Math.floor(from); t === Math.floor(from) || t < Math.floor(to); t++) {
      low = Math.min(low, series[t]);
      high = Math.max(high, series[t]);
    }
    g.lineTo(x, yOf(low));
    if (high > low) g.lineTo(x, yOf(high));
  }
  function drawChart() {
    const g = sharp(chart, width, CHART.height);
    g.drawImage(lines, 0, 0, width, CHART.height);
    g.fillStyle = ink.fg;
    g.fillRect(Math.round(xOf(step())), CHART.top - 4, 1, CHART.height - CHART.top);
    const now = SERIES.map((name) => `${name} ${sizeText(history.totals[name][step()])}`).join(", ");
    const all = `Memory over ${plural(last, "event")}, at most ${sizeText(most)}.`;
    chart.setAttribute("aria-label", `${all} Now ${now}.`);
  }
  const eventAt = (x) => Math.round(((x - CHART.left) / Math.max(1, across())) * last);
  const drag = (event) => {
    if (event.buttons & 1) jump(eventAt(event.offsetX));
  };
  chart.addEventListener("pointerdown", (event) => {
    chart.setPointerCapture(event.pointerId);
    drag(event);
  });
  chart.addEventListener("pointermove", drag);

  // ---- segments as rows; only those in view are drawn
  const ranks = H.rows.map(([address, , stream, kind, pool]) => [+!!pool, +(kind === "large"), stream, +address]);
  const compare = (a, b) => a.reduce((found, value, i) => found || value - b[i], 0);
  const order = [...H.rows.keys()].sort((a, b) => compare(ranks[a], ranks[b]));
  const streamColour = new Map(H.streams.map((stream, i) => [stream, STREAMS[i % STREAMS.length]]));
  let shown = [], // row numbers from top to bottom
    placeOf = new Int32Array(H.rows.length),
    rowsWidth = 0;
  function layRows() {
    shown = order.filter((row) => history.inRow[row]);
    placeOf.fill(-1);
    shown.forEach((row, i) => (placeOf[row] = i));
    const height = Math.max(1, shown.length) * ROW.height + ROW.top;
    if (spacer.dataset.height !== String(height)) {
      spacer.style.height = `${height}px`;
      spacer.dataset.height = height;
    }
  }
  function bytesPerPixel(row) {
    const largest = () => shown.reduce((most, i) => Math.max(most, H.rows[i][1]), 1);
    const size = model.get("scale") === "to scale" ? largest() : H.rows[row][1];
    return size / (rowsWidth - ROW.label - ROW.right);
  }
  const labelOf = ([, size, , kind, pool, expandable]) =>
    `${pool ? "private " : ""}${expandable ? `${kind}, exp.` : sizeText(size)}`;
  function drawRows() {
    const height = Math.max(box.clientHeight, 1),
      g = sharp(rowsCanvas, rowsWidth, height);
    const first = Math.floor(box.scrollTop / ROW.height),
      end = Math.min(shown.length, Math.ceil((box.scrollTop + height) / ROW.height));
    const top = (row) => ROW.top + placeOf[row] * ROW.height - box.scrollTop;
    const perPixel = new Float64Array(H.rows.length);
    g.fillStyle = ink.dim;
    for (const row of shown.slice(first, end)) {
      perPixel[row] = bytesPerPixel(row);
      g.fillText(labelOf(H.rows[row]), 2, top(row) + 13, ROW.label - 6);
    }
    if (!shown.length) g.fillText("no segment", 2, 20);
    const byStream = model.get("colour") === "stream";
    const colourOf = (life) => {
      if (byStream) return streamColour.get(H.rows[H.lifeRow[life]][2]) ?? "strong";
      return H.lifeState[life] === WAITING ? "plum" : "blue";
    };
    const place = (life) => {
      const row = H.lifeRow[life],
        x = ROW.label + (H.lifeOffset[life] * UNIT) / perPixel[row];
      return [x, top(row), Math.max(1, history.sizeOf(life) / perPixel[row] - 1)];
    };
    const visible = history.live().filter((life) => {
      const at = placeOf[H.lifeRow[life]];
      return first <= at && at < end;
    });
    for (const life of visible) {
      const [x, y, w] = place(life),
        state = H.lifeState[life];
      if (state === FREE) {
        g.fillStyle = ink.line;
        g.fillRect(x, y, w, 1);
        g.fillRect(x, y + ROW.bar - 1, w, 1);
        g.fillRect(x, y, 1, ROW.bar);
        g.fillRect(x + w - 1, y, 1, ROW.bar);
        continue;
      }
      g.fillStyle = ink[colourOf(life)];
      g.fillRect(x, y, w, ROW.bar);
      if (state === WAITING) {
        g.fillStyle = hatch;
        g.fillRect(x, y, w, ROW.bar);
      }
      const lost = wasteOf(life) / perPixel[H.lifeRow[life]];
      if (lost >= 1) {
        g.fillStyle = ink.strong;
        g.fillRect(x + w - lost, y + ROW.bar / 2, lost, ROW.bar / 2);
      }
    }
    const frame = (life, colour, wide) => {
      if (life < 0 || !visible.includes(life)) return;
      const [x, y, w] = place(life);
      g.strokeStyle = colour;
      g.lineWidth = wide;
      g.strokeRect(x - wide / 2, y - wide / 2, w + wide, ROW.bar + wide);
    };
    frame(blockOfEvent(step()), ink.fg, 2);
    if (picked() !== null) frame(history.at(picked()), ink.focus, 3);
  }
  const requestedOf = (life) => (H.lifeOwner[life] ? H.allocSize[H.lifeOwner[life] - 1] : null);
  const wasteOf = (life) => (H.lifeOwner[life] ? history.sizeOf(life) - requestedOf(life) : 0);
  // the block that event t is about, as it is after the event
  function blockOfEvent(t) {
    return t === 0 || H.actions[H.action[t - 1]] === "oom" ? -1 : history.at(H.address[t - 1]);
  }
  function blockUnder(x, y) {
    const row = shown[Math.floor((y + box.scrollTop - ROW.top) / ROW.height)];
    if (row === undefined || x < ROW.label) return -1;
    const address = Number(H.rows[row][0]) + (x - ROW.label) * bytesPerPixel(row);
    return history.at(address);
  }
  function reach(life) {
    const at = ROW.top + placeOf[H.lifeRow[life]] * ROW.height;
    revealIn(box, 0, at, 0, at + ROW.height, 0, 4);
  }
  rowsCanvas.addEventListener("pointermove", (event) => {
    const life = blockUnder(event.offsetX, event.offsetY);
    const to = life < 0 ? null : history.startOf(life);
    if (to === hovered) return;
    hovered = to;
    showDetail();
  });
  rowsCanvas.addEventListener("pointerleave", () => {
    hovered = null;
    showDetail();
  });
  rowsCanvas.addEventListener("click", (event) => {
    const life = blockUnder(event.offsetX, event.offsetY);
    pick(life < 0 ? null : history.startOf(life));
  });
  box.addEventListener("scroll", () => drawRows());

  // ---- from block to block by keys
  const byPlace = (a, b) => H.lifeOffset[a] - H.lifeOffset[b];
  const rowBlocks = (row) => [...history.live().filter((life) => H.lifeRow[life] === row)].sort(byPlace);
  const chosen = () => (picked() === null ? blockOfEvent(step()) : history.at(picked()));
  function walk(find) {
    const life = chosen() >= 0 ? chosen() : (rowBlocks(shown[0])[0] ?? -1);
    if (life < 0) return;
    const to = picked() === null && chosen() < 0 ? life : find(life);
    if (to === undefined) return;
    pick(history.startOf(to));
    reach(to);
    drawRows();
  }
  const along = (d) => () => walk((life) => {
    const blocks = rowBlocks(H.lifeRow[life]);
    return blocks[blocks.indexOf(life) + d];
  });
  const toRow = (d) => () => walk((life) => {
    const row = shown[placeOf[H.lifeRow[life]] + d];
    if (row === undefined) return undefined;
    const part = (l) => (H.lifeOffset[l] * UNIT) / H.rows[H.lifeRow[l]][1];
    return rowBlocks(row).findLast((other) => part(other) <= part(life)) ?? rowBlocks(row)[0];
  });
  onKeys(box, {
    ArrowLeft: along(-1),
    ArrowRight: along(1),
    ArrowUp: toRow(-1),
    ArrowDown: toRow(1),
    Home: () => walk((life) => rowBlocks(H.lifeRow[life])[0]),
    End: () => walk((life) => rowBlocks(H.lifeRow[life]).at(-1)),
  });

  // ---- words
  function frameList(title, stack) {
    const frames = H.stacks[stack];
    if (!frames.length) return [];
    return [
      heading(title),
      h(
        "ol",
        { class: "rt-frames" },
        frames.map((frame) => {
          const [name, where] = H.frames[frame].split("\n");
          const file = h("span", { class: "rt-dim" }, ` ${where.split("/").at(-1)}`);
          return h("li", {}, h("code", {}, name), file);
        }),
      ),
    ];
  }
  const eventLink = (t, none) =>
    t > 0 && t <= last ? linkButton(`event ${number(t)}`, () => jump(t)) : none;
  // PyTorch writes down a stream's handle, which is an address
  const streamText = (stream) => `stream ${stream < 1e6 ? stream : addressText(stream)}`;
  function showDetail() {
    const pointed = hovered !== null || picked() !== null;
    const life = hovered !== null ? history.at(hovered) : chosen();
    if (life < 0) {
      const away = picked() !== null && h("p", {}, `Nothing lies at ${addressText(picked())} now.`);
      detail.replaceChildren(h("p", { class: "rt-dtitle" }, "No block"), away || "", ...stackOfEvent());
      return;
    }
    const [address, rowSize, stream, kind, pool, expandable] = H.rows[H.lifeRow[life]];
    const owner = H.lifeOwner[life] - 1,
      state = H.lifeState[life];
    const asked = requestedOf(life),
      lost = wasteOf(life);
    detail.replaceChildren(
      h("p", { class: "rt-dtitle" }, addressText(history.startOf(life))),
      factList([
        ["block", `${sizeText(history.sizeOf(life))}, ${STATES[state]}`],
        ["asked for", asked === null ? null : `${number(asked)} B`],
        ["lost", asked === null ? null : `${sizeText(lost)} to rounding`],
        ["segment", `${sizeText(rowSize)} at ${address}${expandable ? ", expandable" : ""}`],
        ["pool", `${pool ? `private pool ${pool.join(", ")}, ` : ""}${kind} blocks`],
        ["stream", stream ? streamText(stream) : "0, the default stream"],
        ["allocated", owner < 0 ? null : eventLink(H.allocBirth[owner], "before the history")],
        ["free again", owner < 0 ? null : eventLink(history.freed[owner], "not within the history")],
      ]),
      ...(owner >= 0 ? frameList("Allocated by", H.allocStack[owner]) : pointed ? [] : stackOfEvent()),
    );
  }
  const stackOfEvent = () => (step() ? frameList("Where the event comes from", H.stack[step() - 1]) : []);
  function sentence(t) {
    if (t === 0) return [h("b", {}, "Before the first event"), "."];
    const i = t - 1,
      action = H.actions[H.action[i]];
    const where = action === "oom" ? "" : ` at ${addressText(H.address[i])}`;
    const stream = H.streams.length > 1 ? `, ${streamText(H.streams[H.stream[i]])}` : "";
    const why = H.reasons[H.reason[i]];
    const after = ` after ${numberText(H.time[i] / 1000)} ms`;
    const time = H.time[last - 1] ? h("span", { class: "rt-dim" }, after) : null;
    return [
      h("b", {}, action),
      action === "snapshot" ? "" : ` ${sizeText(H.size[i])}${where}${stream}`,
      time,
      why && h("span", { class: "rt-why" }, `${why}.`),
    ].filter(Boolean);
  }
  const bold = (text) => h("b", {}, text);
  function showTotals() {
    const t = step();
    totals.replaceChildren(
      ...SERIES.map((name) =>
        h("span", { class: `rt-total rt-total-${name}` }, `${name} `, bold(sizeText(history.totals[name][t]))),
      ),
    );
  }
  function showLegend() {
    const byStream = model.get("colour") === "stream";
    const entries = byStream
      ? H.streams.slice(0, 12).map((stream) => [`rt-m-${streamColour.get(stream)}`, streamText(stream)])
      : [["rt-m-blue", "allocated"]];
    entries.push(["rt-m-wait", "freed, waits for other streams"], ["rt-m-free", "free"]);
    legends.replaceChildren(legend([...entries, ["rt-m-lost", "lost to rounding"]]));
  }

  // ---- search
  function find(text) {
    matches = search(H, history, text);
    sayFound();
    const address = text.trim().toLowerCase();
    if (/^0x[0-9a-f]+$/.test(address)) pick(Number(address));
    drawLines();
    drawChart();
  }
  function sayFound() {
    const at = matches.indexOf(step()) + 1;
    foundText.textContent = !query.value.trim()
      ? ""
      : matches.length
        ? `${at ? `${number(at)} of ` : ""}${number(matches.length)} found`
        : "nothing found";
  }

  // ---- drawing
  function update() {
    history.goTo(step());
    play.show(...sentence(step()));
    layRows();
    const life = blockOfEvent(step());
    if (life >= 0 && picked() === null) reach(life);
    drawRows();
    drawChart();
    showTotals();
    showDetail();
    if (matches.length) sayFound();
  }
  function redraw() {
    readColours();
    width = Math.max(240, Math.round(chartBox.clientWidth));
    rowsWidth = Math.max(200, box.clientWidth);
    colours.select.value = model.get("colour");
    scale.select.value = model.get("scale");
    box.setAttribute("aria-label", `Segments and their blocks on device ${data.device}`);
    drawLines();
    showLegend();
    update();
  }
  const watcher = new ResizeObserver(() => {
    if (Math.round(chartBox.clientWidth) !== width || box.clientWidth !== rowsWidth) redraw();
  });
  watcher.observe(chartBox);
  watcher.observe(box);
  const theme = new MutationObserver(redraw);
  const themes = { attributes: true, attributeFilter: ["data-theme", "data-jp-theme-light", "class"] };
  for (const element of [document.documentElement, document.body]) theme.observe(element, themes);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", redraw);
  const unbindLook = bind(model, ["colour", "scale"], redraw);
  const unbind = bind(model, ["step", "address"], update);
  return () => {
    play.stop();
    watcher.disconnect();
    theme.disconnect();
    dark.removeEventListener("change", redraw);
    unbind();
    unbindLook();
  };
}

export default { render };
