// Viewer of threads and memory accesses: which thread of a block touches which cell when, warp by warp.

function render({ model, el }) {
  const { runs, title } = model.get("data");
  const run = () => runs[model.get("run")];
  const last = () => run().steps.length;
  const step = () => Math.max(0, Math.min(last(), model.get("step")));
  const current = () => (step() ? run().steps[step() - 1] : null);
  const goTo = (to) => assign(model, "step", Math.max(0, Math.min(last(), to)));
  const threads = () => run().block.reduce((a, b) => a * b);
  const picked = () => (model.get("thread") < threads() ? model.get("thread") : -1);
  const pick = (thread) => assign(model, "thread", thread);
  const play = player({ last, what: "the kernel", get: step, set: goTo, milliseconds: 350 });
  const jump = (to) => {
    play.stop();
    goTo(to);
  };

  // ---- the parts of the figure
  const choice = runChoice(runs, model, choose);
  function choose(i) {
    play.stop();
    assign(model, "run", i);
    goTo(step());
  }
  const warnings = h("div", {});
  const strip = s("svg", { class: "rt-chart rt-kstrip", role: "img" });
  const stripBox = h("div", { class: "rt-chartbox" }, strip);
  const threadPicture = s("svg", { class: "rt-cellspicture", role: "img" });
  const threadName = h("p", { class: "rt-dhead" });
  const threadBox = h(
    "div",
    { class: "rt-panel rt-threads", tabindex: 0, role: "group", "aria-label": "Threads; arrows pick one" },
    threadName,
    threadPicture,
  );
  const above = h("div", { class: "rt-panels rt-k-above" }),
    arrays = h("div", { class: "rt-panels rt-k-arrays" });
  const panels = h("div", {}, above, arrays);
  const about = h("div", { class: "rt-aboutthread" });
  const source = h("div", {});
  const tables = h("div", {});
  const root = h(
    "div",
    { class: "rt-w rt-accesses", role: "group", "aria-label": title },
    h("p", { class: "rt-title" }, title),
    h("div", { class: "rt-bar" }, play.buttons, choice),
    warnings,
    stripBox,
    play.slider,
    play.now,
    panels,
    legend([
      ["rt-k-now-read", "reads now"],
      ["rt-k-now-write rt-k-ring", "writes now"],
      ["rt-k-was-read", "was read"],
      ["rt-k-was-written", "was written"],
      ["rt-k-sector", "sector that moves"],
      ["rt-k-raced", "race"],
    ]),
    about,
    h("details", { class: "rt-k-whole" }, h("summary", {}, "The whole launch, line by line"), tables),
    h(
      "p",
      { class: "rt-hint" },
      h("span", { class: "rt-k-keys" }, KEY_HINT, " b goes to the next barrier; arrows pick a thread, Escape lets go. "),
      "A row of threads is a warp. A step is what one warp asks of memory with one instruction. Columns of shared memory are banks; the bars under them count words.",
    ),
  );
  const toBarrier = () => {
    const at = run().steps.findIndex((one, i) => i >= step() && !isAccess(one));
    jump(at < 0 ? last() : at + 1);
  };
  onKeys(root, { ...play.keys, b: toBarrier, Escape: () => (picked() < 0 ? false : pick(-1)) });
  const walk = (by) => () => pick(Math.max(0, Math.min(threads() - 1, picked() < 0 ? 0 : picked() + by)));
  onKeys(threadBox, {
    ArrowLeft: walk(-1),
    ArrowRight: walk(1),
    ArrowUp: walk(-LANES),
    ArrowDown: walk(LANES),
    Home: () => pick(0),
    End: () => pick(threads() - 1),
  });
  el.append(root);

  // ---- names
  const coordinates = (thread) => {
    const [x, y] = run().block;
    return [thread % x, Math.floor(thread / x) % y, Math.floor(thread / (x * y))];
  };
  const threadText = (index) => `thread (${indexText(index)})`;
  const lineOf = (place) => run().places[place][1];
  const warps = () => Math.ceil(threads() / LANES);

  // ---- races and errors, above everything
  function raceEnd(end) {
    const who = `${threadText(end.thread)}${end.step === null ? ` of block (${indexText(end.block)})` : ""}`;
    const text = `${who} ${DONE[end.kind]}, line ${lineOf(end.place)}`;
    return end.step === null ? text : linkButton(`${text}, step ${end.step + 1}`, () => jump(end.step + 1));
  }
  function raceNote({ array, index, cells, ends }) {
    const { name, space } = run().arrays[array];
    const others = cells.length > 1 ? ` (and on ${cells.length - 1} more elements)` : "";
    return h(
      "p",
      { class: "rt-note rt-k-racenote" },
      h("b", {}, "Race"),
      ` on ${name}[${indexText(index)}]${others}, ${space} memory: no barrier between `,
      raceEnd(ends[0]),
      " and ",
      raceEnd(ends[1]),
      ".",
    );
  }
  function showWarnings() {
    const { races, error } = run();
    const stopped = error && h("p", { class: "rt-note" }, h("b", {}, "The run ended with an error: "), error);
    warnings.replaceChildren(...races.map(raceNote), ...(stopped ? [stopped] : []));
  }

  // ---- the strip: steps from left to right, warps from top to bottom
  let stripWidth = 0;
  function drawStrip() {
    stripWidth = Math.max(240, Math.round(stripBox.clientWidth));
    const top = 12,
      high = Math.max(2, Math.min(8, Math.floor(64 / warps()))),
      foot = top + warps() * high;
    const x = (at) => (at / Math.max(1, last())) * (stripWidth - 2) + 1;
    const wide = Math.max(1, x(1) - x(0)).toFixed(1);
    const bars = { read: "", write: "", atomic: "" };
    let lines = "";
    run().steps.forEach((one, i) => {
      const [from, to] = one[1] < 0 ? [top - 4, foot + 4] : [top + one[1] * high, top + (one[1] + 1) * high];
      if (isAccess(one)) bars[one[0]] += `M${x(i).toFixed(1)} ${from}h${wide}v${high - 1}h-${wide}z`;
      else lines += `M${x(i + 0.5).toFixed(1)} ${from}V${to}`;
    });
    const raced = run().races.flatMap(({ ends }) => ends.filter((end) => end.step !== null));
    const flags = raced.map(({ step }) => `M${x(step + 0.5).toFixed(1)} ${top}l-5 -10h10z`).join("");
    strip.setAttribute("viewBox", `0 0 ${stripWidth} ${foot + 6}`);
    strip.setAttribute("height", foot + 6);
    strip.setAttribute("aria-label", describe());
    strip.replaceChildren(
      ...Object.entries(bars).map(([kind, d]) => s("path", { class: `rt-k-bar-${kind}`, d })),
      s("path", { class: "rt-k-barrier", d: lines }),
      s("path", { class: "rt-k-flag", d: flags }),
      step() ? s("path", { class: "rt-k-cursor", d: `M${x(step() - 0.5)} ${top - 6}V${foot + 6}` }) : "",
    );
  }
  const describe = () => {
    const barriers = run().steps.filter((one) => !isAccess(one)).length;
    const found = run().races.length ? plural(run().races.length, "race") : "no race";
    const size = `${plural(last(), "step")} of ${plural(warps(), "warp")}`;
    return `${run().kernel}: ${size}, ${plural(barriers, "barrier")}, ${found}.`;
  };
  strip.addEventListener("click", ({ offsetX }) => jump(Math.ceil((offsetX / stripWidth) * last())));

  // ---- pictures of cells
  function measure(columns, box) {
    const width = Math.max(100, box.clientWidth || panels.clientWidth);
    const size = Math.min(14, (width - 2) / columns);
    return { size, at: (i) => [1 + (i % columns) * size, 1 + Math.floor(i / columns) * size] };
  }
  function fit(picture, columns, rows, size, extra = 0) {
    const width = columns * size + 2,
      height = rows * size + 2 + extra;
    picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    picture.setAttribute("width", width);
    picture.setAttribute("height", height);
  }

  function drawThreads() {
    const { size, at } = measure(LANES, threadBox);
    const all = range(0, threads());
    const now = current();
    const barrier = now && !isAccess(now);
    const arrived = all.filter((i) => waits(Math.floor(i / LANES)));
    const active = now && !barrier ? lanesOf(now).map(([lane]) => now[1] * LANES + lane) : [];
    const gate = range(0, barrier ? warps() + 1 : 0)
      .filter((row) => now[1] < 0 || row === now[1] || row === now[1] + 1)
      .map((row) => `M0 ${1 + row * size}H${LANES * size + 2}`);
    const extent = `${plural(threads(), "thread")}, ${plural(warps(), "warp")}`;
    threadName.textContent = `block (${indexText(run().shown)}): ${extent}`;
    fit(threadPicture, LANES, warps(), size);
    threadPicture.setAttribute("aria-label", threadsText(active));
    threadPicture.replaceChildren(
      layer("empty", all.map(at), size),
      layer("waits", arrived.map(at), size, size / 3),
      ...(active.length ? marks(now[0], active.map(at), size) : []),
      s("path", { class: "rt-k-gate", d: gate.join("") }),
      picked() >= 0 ? layer("picked", [at(picked())], size, 0) : "",
    );
    threadPicture.onclick = ({ offsetX, offsetY }) => {
      const thread = Math.floor((offsetY - 1) / size) * LANES + Math.floor((offsetX - 1) / size);
      if (thread >= 0 && thread < threads()) pick(thread);
    };
  }
  const threadsText = ({ length }) =>
    length ? `${plural(length, "thread")} of warp ${current()[1]} at work` : "No thread at work";
  // Has this warp done all that it does before the next barrier of the block, or to the end?
  function waits(warp) {
    const rest = run().steps.slice(step());
    const end = rest.findIndex((one) => !isAccess(one) && one[1] < 0);
    return step() > 0 && !rest.slice(0, end < 0 ? rest.length : end).some((one) => one[1] === warp);
  }

  function drawArray(array, number, past, picture, box) {
    const { columns, margin, low, high } = array;
    const first = low > 0 ? low - ((low + margin) % columns) : -margin;
    const { size, at } = measure(columns, box);
    const place = (cell) => at(cell - first);
    const rows = Math.ceil((high - first) / columns);
    const inside = (cells) => [...cells].filter((cell) => cell >= low && cell < high).map(place);
    const now = current();
    const here = now && isAccess(now) && now[3] === number ? lanesOf(now) : [];
    const cells = here.map(([, cell]) => cell);
    const races = run().races.filter((race) => race.array === number);
    const one = here.find(([lane]) => now[1] * LANES + lane === picked());
    const banks = array.space === "shared";
    fit(picture, columns, rows, size, banks ? 30 : 0);
    picture.setAttribute("aria-label", `${array.name}: ${cells.length || "none"} of its elements in use now`);
    picture.replaceChildren(
      layer("empty", inside(range(low, high)), size),
      layer("was-written", inside(past.write), size),
      layer("was-read", inside(past.read), size, size / 3.2),
      ...(cells.length ? marks(now[0], inside(new Set(cells)), size) : []),
      array.space === "global" && cells.length ? sectors(array, cells, first, columns, size) : "",
      layer("raced", inside(races.flatMap((race) => race.cells)), size),
      one ? layer("picked", inside([one[1]]), size, 0) : "",
      ...(banks ? bankBars(array, cells, rows * size + 4, columns * size) : []),
    );
  }
  const pictures = new Map();
  function layOut() {
    pictures.clear();
    const boxes = run().arrays.map((array, i) => {
      const { name, space, dtype, shape } = array;
      const picture = s("svg", { class: "rt-cellspicture", role: "img" });
      const text = `${space} ${dtype} ${shapeText(shape)}`;
      const caption = [h("code", {}, name), h("span", { class: "rt-dim" }, ` ${text}`)];
      const box = h("div", { class: "rt-panel" }, h("p", { class: "rt-dhead" }, caption), picture);
      pictures.set(i, [picture, box]);
      return box;
    });
    above.replaceChildren(threadBox, source);
    arrays.style.setProperty("--side-by-side", Math.min(3, boxes.length));
    arrays.replaceChildren(...boxes);
  }
  function drawAll() {
    const past = pastOf(run(), Math.max(0, step() - 1));
    drawThreads();
    pictures.forEach(([picture, box], i) => drawArray(run().arrays[i], i, past[i], picture, box));
    drawStrip();
  }

  // ---- words
  function cost([kind, warp, place, array, , cost, least]) {
    if (run().arrays[array].space === "shared")
      return cost > least ? `${cost} turns: a bank conflict` : `${plural(cost, "turn")}, no bank conflict`;
    const fewest = cost > least ? `; ${least} would do` : ", as few as can be";
    return `${plural(cost, "sector")} of 32 bytes${fewest}`;
  }
  function sentence() {
    const now = current();
    if (!now) return [h("b", {}, "Before the first access"), `. ${describe()}`];
    const line = `line ${lineOf(now[2])}`;
    if (!isAccess(now)) return [h("b", {}, `Barrier, ${line}`), `: ${whoCame(now)} come.`];
    const [kind, warp, , array] = now;
    const { name, space, itemsize } = run().arrays[array];
    const lanes = lanesOf(now);
    const size = cellBytes(lanes.length * itemsize);
    return [
      h("b", {}, `Warp ${warp} ${DONE[kind]} ${name}`),
      `, ${line}: ${plural(lanes.length, "thread")}, ${size} of ${space} memory, ${cost(now)}.`,
      racing(now, lanes) ? h("span", { class: "rt-why" }, "This access takes part in a race.") : "",
    ];
  }
  function whoCame([scope, warp]) {
    if (scope === "grid") return "every thread of the grid has";
    return warp < 0 ? `all ${threads()} threads have` : `the lanes of warp ${warp} have`;
  }
  function racing(now, lanes) {
    const here = ({ array, ends }) => array === now[3] && ends.some((end) => end.place === now[2]);
    return run().races.filter(here).some(({ cells }) => lanes.some(([, cell]) => cells.includes(cell)));
  }

  function showThread() {
    const thread = picked();
    if (thread < 0) return about.replaceChildren();
    const now = current(),
      warp = Math.floor(thread / LANES);
    const own = now && isAccess(now) && now[1] === warp;
    const one = own && lanesOf(now).find(([lane]) => lane === thread % LANES);
    const traffic = {};
    for (const past of run().steps.slice(0, step()).filter((p) => isAccess(p) && p[1] === warp)) {
      if (!lanesOf(past).some(([lane]) => lane === thread % LANES)) continue;
      const { space, itemsize } = run().arrays[past[3]];
      traffic[`${space}, ${past[0]}`] = (traffic[`${space}, ${past[0]}`] ?? 0) + itemsize;
    }
    const array = one && run().arrays[now[3]];
    const where = one && wordsOfPlace(array, one[1]);
    about.replaceChildren(
      h("p", { class: "rt-dtitle" }, threadText(coordinates(thread))),
      factList([
        ["place", `lane ${thread % LANES} of warp ${warp}`],
        ["now", one ? `${DONE[now[0]]} ${cellName(array, one[1])}, ${where}` : "no access"],
        ["so far", listText(Object.entries(traffic).map(([what, n]) => `${what} ${cellBytes(n)}`))],
      ]),
    );
  }
  function showSource() {
    const now = current() ?? run().steps[0];
    if (!now) return source.replaceChildren();
    const [text, line] = run().places[now[2]];
    const { name, first, lines } = run().sources[text];
    const places = run().races.flatMap(({ ends }) => ends.map(({ place }) => run().places[place]));
    const raced = new Set(places.filter(([at]) => at === text).map(([, number]) => number));
    const rows = lines.map((content, i) => {
      const n = first + i;
      const marks = [step() && n === line ? "rt-mark" : "", raced.has(n) ? "rt-k-raceline" : ""];
      const tag = raced.has(n) ? h("b", { class: "rt-k-racetag" }, "  race") : "";
      return h("span", { class: `rt-cl ${marks.join(" ")}` }, h("i", { "data-n": n }), content, tag, "\n");
    });
    const box = { class: "rt-code rt-kcode", tabindex: 0, role: "group", "aria-label": `Source of ${name}` };
    source.replaceChildren(h("p", { class: "rt-dhead" }, h("code", {}, name)), h("pre", box, rows));
    revealLine(source.lastChild, source.querySelector(".rt-mark"));
  }
  function showTables() {
    const blocks = run().grid.reduce((a, b) => a * b);
    const now = current();
    const lines = run().lines.map(([place, array, kind, space, times, bytes, cost, least]) => {
      const here = now && isAccess(now) && now[2] === place;
      const unit = space === "global" ? `${cost} sectors` : `${cost} turns`;
      const cells = [array, `${space} ${kind}`, times, cellBytes(bytes), unit, least];
      return h(
        "tr",
        { class: cost > least ? "rt-k-dear" : null },
        h("th", { scope: "row" }, here ? h("b", {}, lineOf(place)) : lineOf(place)),
        cells.map((cell) => h("td", {}, cell)),
      );
    });
    const sums = run().totals.map(([space, kind, all, few, many]) =>
      h(
        "tr",
        {},
        h("th", { scope: "row" }, `${space} ${kind}`),
        h("td", {}, cellBytes(all)),
        h("td", {}, few === many ? cellBytes(few) : `${cellBytes(few)} to ${cellBytes(many)}`),
      ),
    );
    tables.replaceChildren(
      heading(`The whole launch, ${plural(blocks, "block")} of ${plural(threads(), "thread")}`),
      table(["line", "array", "access", "by warps", "bytes", "cost", "least"], lines, "Cost of each line"),
      table(["traffic", "in total", "of a thread"], sums, "Traffic"),
    );
  }

  // ---- drawing
  function update() {
    play.show(...sentence());
    showThread();
    showSource();
    showTables();
    drawAll();
  }
  function changeRun() {
    layOut();
    showWarnings();
    update();
  }
  let panelsWidth = 0;
  const watcher = new ResizeObserver(() => {
    if (Math.round(panels.clientWidth) === panelsWidth) return;
    panelsWidth = Math.round(panels.clientWidth);
    drawAll();
  });
  watcher.observe(panels);
  const unbindRun = bind(model, ["run"], changeRun);
  const unbind = bind(model, ["step", "thread"], update);
  return () => {
    play.stop();
    watcher.disconnect();
    unbindRun();
    unbind();
  };
}

export default { render };
