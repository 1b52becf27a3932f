// Import timeline: a bar for each module over the time that its import took; below it what it imported itself.

const BAR = { high: 20, gap: 2, side: 6, axis: 22 };
const DEEPEST = 40; // rows
const SLIVER = 1.2; // narrower bars are drawn together, as one that stands for several
const MODULE = ["name", "importer", "begin", "total", "kind", "file"];
const KIND_CLASSES = ["rt-im-own", "rt-im-extension", "rt-im-other", "rt-im-standard", "rt-im-absent"];

const took = (us) =>
  us >= 1e6 ? `${Number((us / 1e6).toPrecision(3))} s` : us >= 1000 ? `${Number((us / 1000).toPrecision(3))} ms` : `${us} µs`;
const share = (part, whole) => `${Number(((100 * part) / Math.max(1, whole)).toPrecision(2))} %`;
const byTotal = (a, b) => b.total - a.total;

// The modules of a run as objects that know one another; the first is the program.
function familyOf(run) {
  const all = run.modules.map((values, at) => ({ at, imports: [], ...Object.fromEntries(MODULE.map((k, i) => [k, values[i]])) }));
  for (const module of all) {
    module.end = module.begin + module.total;
    module.importer = module.importer === null ? null : all[module.importer];
    module.depth = module.importer ? module.importer.depth + 1 : 0;
    module.importer?.imports.push(module);
  }
  for (const module of all) module.own = module.total - module.imports.reduce((sum, { total }) => sum + total, 0);
  const named = new Map([...all].reverse().map((module) => [module.name, module]));
  const loaded = all.filter(({ at, kind }) => at && KIND_CLASSES[kind] !== "rt-im-absent").length;
  return { ...run, all, named, loaded, first: all[0] };
}
const fileOf = ({ name, file }) => {
  const path = name.replaceAll(".", "/");
  return file === "" ? `${path}.py` : file === "/" ? `${path}/__init__.py` : file;
};
const isWithin = (module, outer) => {
  while (module && module !== outer) module = module.importer;
  return Boolean(module);
};

function render({ model, el }) {
  const { runs: recorded, kinds, title } = model.get("data");
  const runs = recorded.map(familyOf);
  const run = () => runs[model.get("run")];
  const named = (name) => run().named.get(name) ?? run().first;
  const chosen = () => named(model.get("selected"));
  const zoomed = () => named(model.get("zoom"));
  const nameOf = (module) => module.name || run().program;

  // ---- what can be done
  const choose = (module) => module && assign(model, "selected", module.name);
  function zoomTo(module) {
    model.set("selected", module.name);
    assign(model, "zoom", (module.imports.length ? module : module.importer ?? module).name);
  }
  function outward() {
    const outer = zoomed().importer;
    if (outer) assign(model, "zoom", outer.name);
  }
  const beside = (by) => {
    const { importer } = chosen();
    return importer?.imports[importer.imports.indexOf(chosen()) + by];
  };
  const longestImport = () => [...chosen().imports].sort(byTotal)[0];

  // ---- controls
  const choice = runChoice(runs, model, (i) => assign(model, "run", i));
  const query = h("input", {
    type: "search",
    class: "rt-select rt-im-query",
    "aria-label": "Find modules by a part of their name",
    placeholder: "find a module",
    oninput: () => update(),
  });
  const found = h("span", { class: "rt-count", role: "status" });
  const whole = h("button", { type: "button", class: "rt-btn", onclick: () => assign(model, "zoom", "") }, "Show all");
  const summary = h("p", { class: "rt-loadersum" });
  const chart = s("svg", { class: "rt-chart rt-icicle", "aria-hidden": "true" });
  const chartBox = h(
    "div",
    {
      class: "rt-im-box",
      tabindex: 0,
      role: "group",
      "aria-label": "Timeline of imports; arrows choose a module, Enter zooms to it, Escape back",
    },
    chart,
  );
  const now = h("p", { class: "rt-now", "aria-live": "polite" });
  const detail = detailBox();
  const numbers = h("div", { class: "rt-scrollx", tabindex: 0, role: "group", "aria-label": "Modules and times by kind" });
  const root = h(
    "div",
    { class: "rt-w rt-imports", role: "group", "aria-label": title },
    h("p", { class: "rt-title" }, title),
    h("div", { class: "rt-bar" }, choice, query, found, h("span", { class: "rt-spring" }), whole),
    summary,
    legend(kinds.map((kind, i) => [KIND_CLASSES[i], kind])),
    h("div", { class: "rt-cols" }, h("div", {}, chartBox, now), detail),
    numbers,
    h(
      "p",
      { class: "rt-hint" },
      "A click chooses a module and zooms to it; a click on a bar above it zooms out. In the picture: arrow keys choose ",
      "(down: what took longest in it), Enter zooms, Escape zooms out, Home shows all. Enter in the search goes to the next match.",
    ),
  );
  onKeys(chartBox, {
    ArrowLeft: () => choose(beside(-1)),
    ArrowRight: () => choose(beside(1)),
    ArrowUp: () => choose(chosen().importer),
    ArrowDown: () => choose(longestImport()),
    Enter: () => zoomTo(chosen()),
    Escape: outward,
    Home: () => assign(model, "zoom", ""),
  });
  onKeys(query, { Enter: () => choose(nextMatch()) });
  el.append(root);

  // ---- search
  function matches() {
    const text = query.value.trim().toLowerCase();
    return text ? run().all.filter(({ name }) => name.toLowerCase().includes(text)) : [];
  }
  // The module of this very name comes before those whose names contain it.
  function nextMatch() {
    const all = matches();
    const exact = all.find(({ name }) => name === query.value.trim());
    return exact && exact !== chosen() ? exact : all.find(({ at }) => at > chosen().at) ?? all[0];
  }
  function sayFound() {
    const all = matches();
    const own = all.reduce((sum, module) => sum + module.own, 0);
    const count = all.length ? `${plural(all.length, "module")}, ${took(own)} of their own` : "no such module";
    found.textContent = query.value.trim() ? count : "";
    return new Set(all);
  }

  // ---- the picture; drawn anew when its width changes, so that letters keep their size
  let width = 0;
  const from = () => zoomed().begin;
  const span = () => Math.max(1, zoomed().total);
  const x = (t) => BAR.side + Math.max(0, Math.min(1, (t - from()) / span())) * (width - 2 * BAR.side);
  const y = (depth) => BAR.axis + depth * (BAR.high + BAR.gap);

  function drawChart() {
    width = Math.max(240, Math.round(chartBox.clientWidth));
    const marked = sayFound();
    const bars = [];
    for (let outer = zoomed().importer; outer; outer = outer.importer) bars.push(...drawBar(outer, marked));
    const deepest = drawFamily(zoomed(), marked, bars);
    const high = y(Math.min(DEEPEST, deepest) + 1);
    chart.setAttribute("viewBox", `0 0 ${width} ${high}`);
    chart.setAttribute("height", high);
    chart.replaceChildren(...timeAxis(high), ...bars);
    const place = y(chosen().depth);
    revealIn(chartBox, 0, place, 0, place + BAR.high, 8, 30);
  }
  // Draws a module and what it imported; returns the depth of the lowest row.
  function drawFamily(module, marked, bars) {
    bars.push(...drawBar(module, marked));
    let deepest = module.depth,
      crowd = [];
    const endCrowd = () => {
      bars.push(...drawCrowd(crowd, marked));
      crowd = [];
    };
    for (const inner of module.imports) {
      if (x(inner.end) - x(inner.begin) >= SLIVER || inner === chosen()) {
        endCrowd();
        deepest = Math.max(deepest, drawFamily(inner, marked, bars));
      } else crowd.push(inner);
    }
    endCrowd();
    return deepest;
  }
  function drawBar(module, marked) {
    const left = x(module.begin),
      long = Math.max(SLIVER, x(module.end) - left - 0.5);
    const is = [KIND_CLASSES[module.kind], module === chosen() && "rt-im-now", marked.has(module) && "rt-im-found", long < 4 && "rt-im-thin"];
    const bar = s("rect", {
      class: is.filter(Boolean).join(" "),
      x: left.toFixed(1),
      y: y(module.depth),
      width: long.toFixed(1),
      height: BAR.high,
    });
    bar.addEventListener("click", () => zoomTo(module));
    const label = labelFor(module, long);
    const at = { class: "rt-im-label", x: (left + 4).toFixed(1), y: y(module.depth) + 14 };
    return label ? [bar, s("text", at, label)] : [bar];
  }
  function labelFor(module, long) {
    const fits = (text) => text.length * 6.7 + 8 <= long;
    const name = nameOf(module);
    return [name, `.${name.split(".").at(-1)}`].find(fits);
  }
  // Neighbours that are too narrow to be told apart.
  function drawCrowd(crowd, marked) {
    if (!crowd.length) return [];
    const left = x(crowd[0].begin),
      long = x(crowd.at(-1).end) - left;
    const is = crowd.some((module) => marked.has(module)) ? "rt-im-crowd rt-im-found" : "rt-im-crowd";
    return long < 0.5 && is === "rt-im-crowd"
      ? []
      : [s("rect", { class: is, x: left.toFixed(1), y: y(crowd[0].depth), width: Math.max(1, long).toFixed(1), height: BAR.high })];
  }
  function timeAxis(high) {
    const every = timeTicks(span(), Math.max(3, width / 110))[1] ?? span();
    const first = Math.ceil(from() / every - 1e-9),
      last = Math.floor((from() + span()) / every + 1e-9);
    const anchor = (t) => (x(t) < 24 ? "start" : x(t) > width - 30 ? "end" : "middle");
    return Array.from({ length: last - first + 1 }, (_, k) => (first + k) * every).flatMap((t) => [
      s("path", { class: "rt-gridline", d: `M${x(t).toFixed(1)} ${BAR.axis - 5}V${high}` }),
      s("text", { x: x(t).toFixed(1), y: 12, "text-anchor": anchor(t) }, took(Math.round(t))),
    ]);
  }

  // ---- words and numbers
  const linkTo = (module) => linkButton(nameOf(module), () => zoomTo(module));
  function describe(module) {
    const total = run().first.total;
    const longest = [...module.imports].sort(byTotal).slice(0, 8);
    const rest = module.imports.length - longest.length;
    return [
      h("p", { class: "rt-dtitle" }, nameOf(module)),
      factList([
        ["takes", `${took(module.total)}, ${share(module.total, total)} of all`],
        ["of its own", took(module.own)],
        ["begins at", took(module.begin)],
        ["kind", module.name ? kinds[module.kind] : null],
        ["file", module.name && fileOf(module) ? h("code", {}, fileOf(module)) : null],
        ["first asked for by", module.importer ? linkTo(module.importer) : null],
      ]),
      module.imports.length ? heading(`first to import ${plural(module.imports.length, "module")}`) : null,
      h("ul", {}, longest.map((inner) => h("li", {}, linkTo(inner), ` ${took(inner.total)}`)), rest > 0 && h("li", {}, `and ${rest} more`)),
    ].filter(Boolean);
  }
  function sumOf(of, kind) {
    const those = of.all.filter((module) => module.name && module.kind === kind);
    return [those.length, those.reduce((sum, { own }) => sum + own, 0)];
  }
  function table() {
    const cells = (of, kind) => {
      const [count, own] = sumOf(of, kind);
      return [h("td", {}, count || "–"), h("td", {}, count ? took(own) : "–")];
    };
    const total = (of) => [h("td", {}, of.loaded), h("td", {}, took(of.first.total))];
    const row = (name, of) => h("tr", {}, h("th", { scope: "row" }, name), runs.map(of));
    return h(
      "table",
      { class: "rt-busy" },
      h("thead", {}, h("tr", {}, h("td"), runs.flatMap(({ label }) => [h("th", { scope: "col" }, `${label}: modules`), h("th", { scope: "col" }, "own time")]))),
      h("tbody", {}, kinds.map((kind, i) => row(kind, (of) => cells(of, i))), row("all that were found", total)),
    );
  }

  // ---- drawing
  function update() {
    const module = chosen();
    const { program, loaded, all, first } = run();
    const absent = all.length - 1 - loaded;
    summary.textContent = `${program}: ${plural(loaded, "module")} in ${took(first.total)}${absent ? `; ${plural(absent, "name")} looked for and not found` : ""}.`;
    if (choice) choice.querySelector("select").value = model.get("run");
    whole.disabled = !zoomed().importer;
    const asked = module.importer ? `, asked for by ${nameOf(module.importer)}` : "";
    now.replaceChildren(h("b", {}, nameOf(module)), `: ${took(module.total)}${asked}; ${plural(module.imports.length, "import")} of its own.`);
    detail.replaceChildren(...describe(module));
    drawChart();
  }
  // What is chosen is looked at: zoom out until it can be seen.
  function follow() {
    if (!isWithin(chosen(), zoomed()) && !isWithin(zoomed(), chosen())) {
      let outer = zoomed();
      while (!isWithin(chosen(), outer)) outer = outer.importer;
      assign(model, "zoom", outer.name);
    }
    update();
  }
  const watcher = new ResizeObserver(() => {
    if (Math.round(chartBox.clientWidth) !== width) drawChart();
  });
  watcher.observe(chartBox);
  numbers.append(table());
  const unbind = bind(model, ["selected", "zoom", "run"], follow);
  return () => {
    watcher.disconnect();
    unbind();
  };
}

export default { render };
