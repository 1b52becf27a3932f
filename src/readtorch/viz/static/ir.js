// IR viewer: a graph line by line; the chosen line's inputs and uses are marked, passes are stepped through.

const MARKS = { "+": "new", "-": "removed", "~": "changed", "": "" };
const ROLE = { chosen: ["●", "chosen"], def: ["▲", "makes an input"], use: ["▼", "uses a result"], "": [" ", ""] };

// What a line is where nothing is said of it: see short_run in graph_lines.py.
const LINE = { defines: [], uses: [], space: "", node: false, scope: "", place: "", source: "", mark: "", was: "" };
const wholeStage = (stage) => ({ ...stage, lines: stage.lines.map((line) => ({ ...LINE, ...line })) });

// The text with each %name as an element of its own.
const withNames = (text) =>
  text
    .split(/(%[\w.]+)/)
    .map((part, i) => (i % 2 ? h("b", { class: "rt-i-name", "data-name": part.slice(1) }, part) : part));

function render({ model, el }) {
  const data = model.get("data"),
    runs = data.runs.map((run) => ({ ...run, stages: run.stages.map(wholeStage) }));
  const stages = () => runs[model.get("run")].stages;
  const last = () => stages().length - 1;
  const step = () => Math.min(model.get("step"), last());
  const play = player({
    last,
    what: "the passes",
    get: step,
    set: (to) => assign(model, "step", to),
    milliseconds: 2000,
  });
  const several = last() > 0;
  const choice = runChoice(runs, model, chooseRun, several ? "function" : "graph");
  function chooseRun(i) {
    play.stop();
    assign(model, "run", i);
    assign(model, "selected", runs[i].selected);
  }
  const list = h("ol", { class: "rt-i-lines", role: "listbox", "aria-label": "Lines of the graph" });
  const box = h("div", { class: "rt-i-box" }, list),
    detail = detailBox();
  const program = h("ol", { class: "rt-i-program", "aria-label": "The program; the chosen line of the graph comes from the marked one" });
  const cut = h("p", { class: "rt-dim" });
  const root = h(
    "div",
    { class: "rt-w rt-ir", role: "group", "aria-label": data.title },
    h("p", { class: "rt-title" }, data.title),
    several ? [h("div", { class: "rt-bar" }, play.buttons, choice), play.slider, play.now] : choice && h("div", { class: "rt-bar" }, choice),
    runs.some((run) => run.program) ? program : null,
    h("div", { class: "rt-cols rt-i-cols" }, box, detail),
    cut,
    h(
      "div",
      { class: "rt-legend", "aria-hidden": "true" },
      ["chosen", "def", "use"].map((role) => h("span", {}, h("b", {}, ROLE[role][0]), ROLE[role][1])),
      several ? ["+", "~", "-"].map((mark) => h("span", { class: `rt-i-${MARKS[mark]}` }, h("b", {}, mark), MARKS[mark])) : null,
    ),
    h("p", { class: "rt-hint" }, "Arrow keys choose a line. ", several ? KEY_HINT : null),
  );
  el.append(root);

  let lines = [],
    rows = [],
    marked = null; // the line that the marks are about: the chosen one, or that under the mouse
  const chosenRow = () => Math.max(0, rowWith(model.get("selected")));
  const choose = (i) => assign(model, "selected", lines[Math.max(0, Math.min(lines.length - 1, i))].key);
  function choosing(i) {
    return () => {
      play.stop();
      choose(i);
      rows[chosenRow()].focus({ preventScroll: true });
    };
  }
  onKeys(root, several ? play.keys : {});
  onKeys(list, {
    ArrowDown: () => choosing(chosenRow() + 1)(),
    ArrowUp: () => choosing(chosenRow() - 1)(),
    Home: () => choosing(0)(),
    End: () => choosing(lines.length - 1)(),
  });

  // Where the chosen line is not, the node above its place stands for it: in the same block, or the one that owns the block.
  function rowWith(key) {
    const at = lines.findIndex((line) => line.key === key);
    return at >= 0 ? at : lines.findIndex((line) => live(line) && line.key === nodeAbove(key));
  }
  function nodeAbove(key) {
    const behind = stages().slice(step() + 1),
      before = stages().slice(0, step()).reverse();
    const has = (line) => live(line) && line.key === key;
    const known = [...before, ...behind].find((stage) => stage.lines.some(has))?.lines ?? [];
    const left = new Set(lines.filter(live).map((line) => line.key));
    const at = known.findIndex(has);
    return known.slice(0, Math.max(0, at)).findLast((line) => line.node && line.depth <= known[at].depth && left.has(line.key))?.key;
  }

  // ---- who makes and who uses what; a removed line is related to nothing that is left
  const live = (line) => line.mark !== "-";
  const makes = (line, name, space) =>
    live(line) && line.space === space && line.defines.some(([defined]) => defined === name);
  const takes = (line, name, space) => live(line) && line.space === space && line.uses.includes(name);
  function roleOf(line, of) {
    if (line === of) return "chosen";
    if (!live(of)) return "";
    if (of.uses.some((name) => makes(line, name, of.space))) return "def";
    return of.defines.some(([name]) => takes(line, name, of.space)) ? "use" : "";
  }
  const jump = (line) => linkButton(line.text, choosing(lines.indexOf(line)));

  function mark(of) {
    marked = of;
    rows.forEach((row, i) => {
      const role = roleOf(lines[i], of);
      row.classList.remove("rt-i-chosen", "rt-i-def", "rt-i-use");
      if (role) row.classList.add(`rt-i-${role}`);
      row.querySelector(".rt-i-role").textContent = ROLE[role][0];
    });
    const names = new Set([...of.uses, ...of.defines.map(([name]) => name)]);
    list.querySelectorAll(".rt-i-name").forEach((b) => b.classList.toggle("rt-i-on", live(of) && names.has(b.dataset.name)));
  }
  function inputItem(of, name) {
    const from = lines.find((line) => makes(line, name, of.space));
    return h("li", {}, h("code", {}, `%${name}`), from ? [" from ", jump(from)] : null);
  }
  function useItems(of, [name]) {
    return lines.filter((line) => takes(line, name, of.space)).map((line) => h("li", {}, jump(line)));
  }
  function detailsOf(line) {
    const uses = line.defines.flatMap((defined) => useItems(line, defined));
    const related = live(line)
      ? [
          line.uses.length ? [heading("takes"), h("ul", {}, line.uses.map((name) => inputItem(line, name)))] : null,
          line.defines.length ? [heading("is used by"), uses.length ? h("ul", {}, uses) : h("p", { class: "rt-dim" }, "nothing")] : null,
        ]
      : null;
    return [
      h("p", { class: "rt-dtitle" }, line.text),
      line.mark ? h("p", {}, h("span", { class: "rt-badge" }, `${MARKS[line.mark]} by ${stages()[step()].name}`)) : null,
      line.was ? factList([["before", h("code", {}, line.was)]]) : null,
      line.defines.length
        ? [heading("makes"), factList(line.defines.map(([name, type]) => [`%${name}`, h("code", {}, type)]))]
        : null,
      line.scope ? [heading("scope"), h("p", {}, h("code", {}, line.scope))] : null,
      related,
      line.place ? [heading("comes from"), h("p", {}, line.place), line.source ? h("pre", { tabindex: 0 }, line.source) : null] : null,
    ]
      .flat(3)
      .filter(Boolean);
  }

  function rowOf(line, i) {
    return h(
      "li",
      {
        role: "option",
        tabindex: -1,
        class: line.mark ? `rt-i-line rt-i-${MARKS[line.mark]}` : "rt-i-line",
        onclick: choosing(i),
        onpointermove: () => marked === line || mark(line), // see Note [ A mouse at rest ]
        onpointerleave: () => mark(lines[chosenRow()]),
      },
      h("i", { class: "rt-i-mark", "aria-hidden": "true" }, line.mark || " "),
      h("i", { class: "rt-i-role", "aria-hidden": "true" }, " "),
      line.mark ? h("span", { class: "rt-vh" }, `${MARKS[line.mark]}: `) : null,
      h("code", { style: `padding-left:${line.depth * 1.2}em` }, withNames(line.text)),
    );
  }
  function drawStage() {
    const stage = stages()[step()],
      inList = list.contains(list.getRootNode().activeElement);
    lines = stage.lines;
    rows = lines.map(rowOf);
    list.replaceChildren(...rows);
    cut.textContent = stage.left_out ? `${plural(stage.left_out, "further line")} left out.` : "";
    const { "+": plus, "-": minus, "~": changed } = stage.counts;
    const did = step() ? `${plus} new, ${minus} removed, ${changed} changed; ` : "";
    play.show(h("b", {}, stage.name), `: ${did}${plural(stage.left, "line")}`);
    drawChoice();
    if (inList) rows[chosenRow()].focus({ preventScroll: true }); // the row that had the focus is gone
  }
  function drawChoice() {
    const at = chosenRow();
    rows.forEach((row, i) => {
      row.setAttribute("aria-selected", String(i === at));
      row.tabIndex = i === at ? 0 : -1;
    });
    mark(lines[at]);
    reveal(box, rows[at]);
    detail.replaceChildren(...detailsOf(lines[at]));
    drawProgram(lines[at]);
  }
  // The program that the graph was made from, with the line that the chosen node comes from.
  function drawProgram({ place }) {
    const { first, lines: texts } = runs[model.get("run")].program ?? { lines: [] };
    const from = Number(/:(\d+)(?=, in |$)/.exec(place)?.[1]);
    const mark = (i) => (first + i === from ? { class: "rt-i-from", "aria-current": "true" } : {});
    program.replaceChildren(...texts.map((text, i) => h("li", mark(i), h("code", {}, text))));
  }
  const unbindStep = bind(model, ["step", "run"], drawStage);
  const unbindChoice = bind(model, ["selected"], drawChoice);
  return () => {
    play.stop();
    unbindStep();
    unbindChoice();
  };
}

export default { render };
