// Memory over time: a band for each allocation, by who asked for it. A snapshot.pickle of the reader's can be dropped on it:
// it is read here, in the page, and goes nowhere.

const BAND_INKS = ["blue", "gold", "green", "plum", "strong"]; // of CATEGORIES
const WORDS = ["made by modules: parameters", "by the optimizer: its state", "in forward: activations", "in backward: gradients", "elsewhere"];
const SHORT = ["parameters", "optimizer", "activations", "gradients", "elsewhere"]; // where it is narrow
const MARGIN = { top: 8, bottom: 18, left: 66, right: 6 };
const NARROW = 460; // under this width the chart is lower, so that it and what it says fit one screen
const LARGEST = 8;

async function render({ model, el }) {
  const data = model.get("data"),
    own = { ...data, ...JSON.parse(new TextDecoder().decode(await inflate(data.numbers))) };
  let shown = own,
    bands = { ...totalsOf(own), pieces: [] };
  const step = () => Math.max(0, Math.min(shown.events, model.get("step")));
  const span = () => {
    const first = Math.max(0, Math.min(shown.events - 1, model.get("first"))),
      last = model.get("last") > first ? Math.min(shown.events, model.get("last")) : shown.events;
    return [first, Math.max(last, first + 1)];
  };
  const isThere = (i, t) => i >= 0 && i < shown.allocations.length && shown.allocations[i][0] <= t && t < shown.allocations[i][1];
  function assignAll(values) {
    for (const [name, value] of Object.entries(values)) model.set(name, value);
    model.save_changes();
    update();
  }
  const goTo = (t) => assignAll({ step: Math.max(0, Math.min(shown.events, Math.round(t))) });
  const play = player({ last: () => shown.events, what: "the history", get: step, set: goTo, milliseconds: 150 });

  // ---- zooming
  function zoom(factor, around = step()) {
    const [first, last] = span(),
      wide = Math.max(10, Math.min(shown.events, (last - first) * factor));
    const from = Math.max(0, Math.min(shown.events - wide, around - ((around - first) / (last - first)) * wide));
    assignAll({ first: Math.round(from), last: wide >= shown.events ? 0 : Math.round(from + wide) });
  }
  function pan(part) {
    const [first, last] = span(),
      by = Math.round(Math.max(-first, Math.min(shown.events - last, part * (last - first))));
    if (by) assignAll({ first: first + by, last: last + by });
  }
  const peak = () => goTo(bands.peak);

  // ---- the figure
  const button = (text, label, onclick) => h("button", { type: "button", class: "rt-btn", "aria-label": label, title: label, onclick }, text);
  const file = h("input", { type: "file", class: "rt-file", accept: ".pickle,.pkl", "aria-label": "Open a snapshot.pickle", onchange: () => open(file.files[0]) });
  const devices = h("span", {});
  const origin = h("p", { class: "rt-hint rt-origin", role: "status" });
  const title = h("p", { class: "rt-title" }, data.title);
  const canvas = h("canvas", { class: "rt-canvas rt-bandchart", role: "img" }),
    box = h("div", { class: "rt-chartbox" }, canvas);
  const legendBox = h("div", {}),
    list = h("div", { class: "rt-chartbox rt-largest" }),
    detail = detailBox();
  const root = h("div", { class: "rt-w rt-allocator rt-bands", role: "group", "aria-label": data.title },
    title,
    h("div", { class: "rt-bar" }, play.buttons, h("span", { class: "rt-spring" }), button("peak", "To the peak", peak),
      button("−", "Zoom out", () => zoom(2)), button("+", "Zoom in", () => zoom(0.5)), button("◂", "Earlier", () => pan(-0.5)), button("▸", "Later", () => pan(0.5))),
    box, play.slider, play.now, legendBox,
    h("div", { class: "rt-cols" }, list, detail),
    h("div", { class: "rt-bar" }, h("span", {}, "your own ", h("code", {}, "snapshot.pickle")), file, devices, button("the page's", "The page's own snapshot again", () => show(own, data.title, ""))),
    origin,
    h("p", { class: "rt-hint" }, h("span", { class: "rt-keys" }, KEY_HINT, " + and − zoom, < and > move; click a band. "), "A file that is opened, or dropped here, is read in this page and sent nowhere."),
  ); // prettier-ignore
  el.append(root);
  const ink = makeInk(root);
  onKeys(root, { ...play.keys, "+": () => zoom(0.5), "-": () => zoom(2), "<": () => pan(-0.5), ">": () => pan(0.5) });

  // ---- a file of the reader's
  async function open(chosen) {
    if (!chosen) return;
    play.stop();
    try {
      const snapshot = readPlainPickle(new Uint8Array(await chosen.arrayBuffer()));
      showDevice(snapshot, chosen.name, null);
    } catch (error) {
      origin.textContent = error.message;
    }
  }
  function showDevice(snapshot, name, device) {
    const read = bandsOf(snapshot, device);
    show(read, name, `${name}: device ${read.device}, ${plural(read.events, "event")}, ${plural(read.allocations.length, "allocation")}.`);
    const others = snapshot.get("device_traces").flatMap((trace, i) => (trace.length ? [[i, `${i}`]] : []));
    if (others.length > 1) devices.replaceChildren(labelledSelect("device", others, read.device, (i) => showDevice(snapshot, name, i)));
  }
  root.addEventListener("dragover", (event) => event.preventDefault());
  root.addEventListener("drop", (event) => {
    event.preventDefault();
    open(event.dataTransfer.files[0]);
  });
  function show(bandData, name, said) {
    shown = bandData;
    bands = { ...totalsOf(shown), pieces: [] };
    drawnFor = "";
    devices.replaceChildren();
    title.textContent = name;
    origin.textContent = said;
    assignAll({ first: 0, last: 0, chosen: -1, step: bands.peak });
  }

  // ---- drawing
  const lines = document.createElement("canvas"); // drawn once a zoom; the cursor comes on top
  let width = 0,
    drawnFor = "";
  const across = () => width - MARGIN.left - MARGIN.right,
    tall = () => (width < NARROW ? 180 : 300),
    floor = () => tall() - MARGIN.bottom;
  const xOf = (t) => MARGIN.left + ((t - span()[0]) / (span()[1] - span()[0])) * across();
  const tOf = (x) => span()[0] + ((x - MARGIN.left) / across()) * (span()[1] - span()[0]);
  const yOf = (nbytes) => floor() - (nbytes / bands.most) * (floor() - MARGIN.top);
  function drawBands() {
    const [first, last] = span(),
      g = sharp(lines, width, tall()),
      scale = across() / (last - first);
    Object.assign(bands, layOutBands(shown, first, last));
    g.fillStyle = ink.dim;
    for (const level of [0, bands.most / 2, bands.most]) g.fillText(sizeText(level), 2, yOf(level) + 4);
    for (const [i, from, to, below] of bands.pieces) {
      const [, , size, , category] = shown.allocations[i],
        x = MARGIN.left + (from - first) * scale,
        right = MARGIN.left + (Math.min(to, last) - first) * scale,
        y = yOf(below + size),
        high = yOf(below) - y;
      g.fillStyle = ink[BAND_INKS[category]];
      g.fillRect(x, y, Math.max(right - x, 0.5), high > 2.5 ? high - 0.7 : Math.max(high, 0.3));
    }
    g.fillStyle = ink.dim;
    for (let x = 0; x < across(); x++) {
      const t = Math.round(tOf(MARGIN.left + x)),
        y = yOf(bands.total[t]);
      g.fillRect(MARGIN.left + x, y, 1, yOf(bands.covered[t]) - y);
    }
    g.fillText(`event ${numberWithCommas(first)}`, MARGIN.left, tall() - 4);
    g.textAlign = "right";
    g.fillText(numberWithCommas(last), width - MARGIN.right, tall() - 4);
  }
  function draw() {
    const key = [width, shown.events, ...span(), ink.bg].join();
    if (key !== drawnFor) drawBands();
    drawnFor = key;
    const g = sharp(canvas, width, tall());
    g.drawImage(lines, 0, 0, width, tall());
    const [first, last] = span(),
      picked = model.get("chosen");
    g.save();
    g.rect(MARGIN.left, 0, across(), floor() + 1);
    g.clip();
    g.fillStyle = ink.focus;
    for (const [i, from, to, below] of bands.pieces)
      if (i === picked) g.fillRect(xOf(from), yOf(below + shown.allocations[i][2]), Math.max(1, xOf(to) - xOf(from)), Math.max(1.5, yOf(below) - yOf(below + shown.allocations[i][2])));
    g.restore();
    g.fillStyle = ink.fg;
    if (first <= step() && step() <= last) g.fillRect(Math.round(xOf(step())), MARGIN.top - 4, 1, floor() - MARGIN.top + 4);
    canvas.setAttribute("aria-label", `Memory over ${plural(shown.events, "event")}, at most ${sizeText(bands.most)}, as bands. ${play.now.textContent}`);
  }
  const bandAt = (t, nbytes) => bands.pieces.find(([i, from, to, below]) => from <= t && t < to && below <= nbytes && nbytes < below + shown.allocations[i][2]);
  canvas.addEventListener("pointerdown", ({ offsetX, offsetY }) => {
    play.stop();
    const t = Math.max(0, Math.min(shown.events, Math.floor(tOf(offsetX)))),
      found = bandAt(t, ((floor() - offsetY) / (floor() - MARGIN.top)) * bands.most);
    assignAll({ step: t, chosen: found ? found[0] : -1 });
  });
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return; // the page scrolls
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, tOf(event.offsetX));
  }, { passive: false }); // prettier-ignore

  // ---- in words
  function share(i) {
    const [, , size, stack, category] = shown.allocations[i],
      innermost = shown.stacks[stack][0];
    return `${sizeText(size)}, ${CATEGORIES[category]}${innermost === undefined ? "" : `: ${shown.frames[innermost].split("\n")[1].split("/").at(-1)}`}`;
  }
  function factsOf(i) {
    if (i < 0 || i >= shown.allocations.length) return [h("p", { class: "rt-dtitle" }, "No band chosen"), h("p", {}, "Click one, or take one of the list.")];
    const [born, freed, size, stack, category] = shown.allocations[i];
    const frames = shown.stacks[stack].map((frame) => shown.frames[frame].split("\n"));
    const at = (t, otherwise) => (t > 0 && t <= shown.events ? linkButton(`event ${numberWithCommas(t)}`, () => goTo(t)) : otherwise);
    const item = ([name, where]) => h("li", {}, h("code", {}, name), h("span", { class: "rt-dim" }, ` ${where.split("/").at(-1)}`));
    return [
      h("p", { class: "rt-dtitle" }, sizeText(size)),
      factList([["asked for", `${numberWithCommas(size)} B`], ["asked", WORDS[category]], ["made", at(born, "before the history")], ["freed", at(freed, "not within the history")]]),
      frames.length ? [heading("Allocated by"), h("ol", { class: "rt-frames" }, frames.map(item))] : h("p", { class: "rt-dim" }, "Without a stack."),
    ].flat(); // prettier-ignore
  }
  function update() {
    const t = step(),
      there = [...shown.allocations.keys()].filter((i) => isThere(i, t)),
      sums = CATEGORIES.map(() => 0);
    for (const i of there) sums[shown.allocations[i][4]] += shown.allocations[i][2];
    play.show(h("b", {}, sizeText(bands.total[t])), ` in ${plural(there.length, "allocation")}${t === bands.peak ? ", the peak" : ""}`);
    legendBox.replaceChildren(h("div", { class: "rt-legend" }, CATEGORIES.map((_, c) => h("span", {}, h("i", { class: `rt-key rt-m-${BAND_INKS[c]}`, "aria-hidden": "true" }), `${(width < NARROW ? SHORT : WORDS)[c]} ${sizeText(sums[c])}`))));
    const largest = there.sort((a, b) => shown.allocations[b][2] - shown.allocations[a][2]).slice(0, LARGEST);
    list.replaceChildren(heading(largest.length ? "The largest now" : "Nothing is allocated now"), h("ol", { class: "rt-frames" }, largest.map((i) => h("li", {}, linkButton(share(i), () => assignAll({ chosen: i }))))));
    detail.replaceChildren(...factsOf(model.get("chosen")));
    draw();
  }
  function redraw() {
    ink.read();
    width = Math.max(240, Math.round(box.clientWidth));
    update();
  }
  redraw();
  const watcher = new ResizeObserver(() => Math.round(box.clientWidth) !== width && redraw());
  watcher.observe(box);
  const theme = new MutationObserver(redraw);
  for (const element of [document.documentElement, document.body]) theme.observe(element, { attributes: true, attributeFilter: ["data-theme", "data-jp-theme-light", "class"] });
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", redraw);
  const unbind = bind(model, ["step", "first", "last", "chosen"], update);
  return () => {
    play.stop();
    watcher.disconnect();
    theme.disconnect();
    dark.removeEventListener("change", redraw);
    unbind();
  };
}

export default { render };
