// Helpers of all figures; they stand in front of each module (see front_end in _base.py).

// ---- elements

// JupyterLab takes arrows and letters in command mode. It looks for this mark on the focused element itself,
// so every element that can have the focus carries it, not the figure's root.
const KEEPS_ITS_KEYS = "data-lm-suppress-shortcuts";
const FOCUSABLE = /^(input|button|select|summary)$/i;

function build(el, attributes, children) {
  if (FOCUSABLE.test(el.tagName) || "tabindex" in attributes) el.setAttribute(KEEPS_ITS_KEYS, "true");
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) el.addEventListener(name.slice(2), value);
    else el.setAttribute(name, value === true ? "" : value);
  }
  el.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return el;
}
const h = (tag, attributes = {}, ...children) => build(document.createElement(tag), attributes, children);
const s = (tag, attributes = {}, ...children) =>
  build(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

let serial = 0;
const uniqueId = (prefix) => `rt-${prefix}-${Date.now().toString(36)}-${++serial}`;
const shapeText = (shape) => `[${shape.join(", ")}]`;
const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

// ---- keys

// Call the handler of a key, and keep the key from the page and from Jupyter when there is one.
function onKeys(el, handlers) {
  el.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || !(event.key in handlers)) return;
    if (handlers[event.key](event) === false) return;
    event.preventDefault();
    event.stopPropagation();
  });
}

// Note [ A mouse at rest ]
// Rows and bars say more about themselves while the mouse is on them. When a figure steps, or a list scrolls, other
// elements come to lie under a mouse that nobody moves, and browsers send them pointerenter and mouseenter. They must
// not take the place of what a key has just chosen, so figures listen to pointermove, which comes of moving alone.

// ---- scrolling: the element's own box only, never the page

function revealIn(box, left, top, right, bottom, padX = 8, padY = 8) {
  if (left - padX < box.scrollLeft) box.scrollLeft = left - padX;
  else if (right + padX > box.scrollLeft + box.clientWidth) box.scrollLeft = right + padX - box.clientWidth;
  if (top - padY < box.scrollTop) box.scrollTop = top - padY;
  else if (bottom + padY > box.scrollTop + box.clientHeight) box.scrollTop = bottom + padY - box.clientHeight;
}

// `stuck`: the width of a column that stays at the left and covers what scrolls below it
function reveal(box, el, stuck = 0) {
  const outer = box.getBoundingClientRect(),
    inner = el.getBoundingClientRect();
  const left = inner.left - outer.left + box.scrollLeft,
    top = inner.top - outer.top + box.scrollTop;
  revealIn(box, left - stuck, top, left + inner.width, top + inner.height);
}

// ---- the player: buttons and a slider that move through steps

const ICON = {
  first: "M3 3h2v10H3zM13 3v10L6 8z",
  back: "M11 2l2 2-4 4 4 4-2 2-6-6z",
  play: "M4 3l9 5-9 5z",
  pause: "M4 3h3v10H4zM9 3h3v10H9z",
  next: "M5 2l6 6-6 6-2-2 4-4-4-4z",
  last: "M11 3h2v10h-2zM3 3l7 5-7 5z",
};
function icon(name) {
  return s(
    "svg",
    { viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true", focusable: "false" },
    s("path", { d: ICON[name], fill: "currentColor" }),
  );
}
function iconButton(label, name, onclick) {
  return h(
    "button",
    { type: "button", class: "rt-btn", "aria-label": label, title: label, onclick },
    icon(name),
  );
}

// What is said of a step, as a voice reads it: each part that stands on a line of its own is a sentence.
function spoken(now) {
  const lines = [""];
  for (const part of now.childNodes) {
    if (part.classList?.contains("rt-why")) lines.push("");
    lines[lines.length - 1] += part.textContent;
  }
  const sentences = lines.map((line) => line.trim()).filter(Boolean);
  return sentences.map((text) => (/[.:;?!…]$/.test(text) ? text : `${text}.`)).join(" ");
}

// `what` plays ("the backward pass"). `last`: the number of its last step, or, where several runs can be shown, a
// function that gives that of the run shown; get, set: the step now.
function player({ last, what, get, set, milliseconds = 900 }) {
  const end = typeof last === "function" ? last : () => last;
  let timer = null;
  const go = (step) => set(Math.max(0, Math.min(end(), step)));
  const slider = h("input", {
    type: "range",
    min: 0,
    max: end(),
    step: 1,
    class: "rt-slider",
    "aria-label": `Step of ${what}`,
    oninput: () => {
      stop();
      go(+slider.value);
    },
  });
  const count = h("span", { class: "rt-count" });
  const now = h("p", { class: "rt-now", "aria-live": "polite" });
  const toggle = iconButton(`Play ${what}`, "play", () => (timer ? stop() : start()));
  const move = (step) => {
    stop();
    go(step);
  };

  function face(label, name) {
    toggle.setAttribute("aria-label", label);
    toggle.title = label;
    toggle.replaceChildren(icon(name));
  }
  function start() {
    if (get() >= end()) go(0);
    if (end() < 1) return; // nothing to play
    now.setAttribute("aria-live", "off"); // nobody wants a voice for every frame
    face("Pause", "pause");
    timer = setInterval(() => {
      go(get() + 1);
      if (get() >= end()) stop();
    }, milliseconds);
  }
  function stop() {
    if (!timer) return;
    clearInterval(timer);
    timer = null;
    now.setAttribute("aria-live", "polite");
    face(`Play ${what}`, "play");
  }
  const buttons = [
    iconButton("First step", "first", () => move(0)),
    iconButton("Back one step", "back", () => move(get() - 1)),
    toggle,
    iconButton("Forward one step", "next", () => move(get() + 1)),
    iconButton("Last step", "last", () => move(end())),
    count,
  ];
  function show(...sentence) {
    slider.max = end();
    slider.value = get();
    count.textContent = `step ${get()} of ${end()}`;
    now.replaceChildren(...sentence);
    slider.setAttribute("aria-valuetext", `${count.textContent}: ${spoken(now)}`);
  }
  // , and . step from anywhere in the figure; p plays
  const keys = {
    ",": () => move(get() - 1),
    ".": () => move(get() + 1),
    p: () => (timer ? stop() : start()),
  };
  return { buttons, slider, now, show, stop, keys };
}
// A select with its label; options: [number, text] each.
const labelledSelect = (label, options, chosen, choose) =>
  h(
    "label",
    { class: "rt-check" },
    label,
    h(
      "select",
      { class: "rt-select", onchange: (event) => choose(+event.target.value) },
      options.map(([value, text]) => h("option", { value, selected: chosen === value }, text)),
    ),
  );

// Which of several runs is shown; nothing where there is only one.
function runChoice(runs, model, choose, what = "run") {
  if (runs.length < 2) return false;
  const choice = labelledSelect(what, runs.map(({ label }, i) => [i, label]), model.get("run"), choose);
  model.on("change:run", () => (choice.querySelector("select").value = model.get("run"))); // a link may choose, too
  return choice;
}

function bytesText(n) {
  const [power, unit] = [[30, "GiB"], [20, "MiB"], [10, "KiB"]].find(([p]) => n >= 2 ** p) ?? [0, "B"];
  return `${Number((n / 2 ** power).toPrecision(3))} ${unit}`;
}

// The same in both languages; in Python: `size_text` of `viz/wording.py`.
function sizeInTenths(n) {
  const [power, unit] = [[30, "GiB"], [20, "MiB"], [10, "KiB"]].find(([p]) => n >= 2 ** p) ?? [0, "B"];
  return `${Math.floor((n / 2 ** power) * 10 + 0.5) / 10} ${unit}`;
}

const KEY_HINT = "Keys: , and . step, p plays.";

// ---- pieces that several figures show

function tensorItem(t) {
  const kind = t.shape ? `${t.dtype} ${shapeText(t.shape)}` : (t.value ?? "");
  const numbers = t.shape && t.value ? h("pre", { tabindex: 0 }, t.value) : null;
  return h("li", {}, h("code", {}, t.name), " ", h("span", { class: "rt-dim" }, kind), numbers);
}
function tensorList(notes, ifNone) {
  return notes.length ? h("ul", {}, notes.map(tensorItem)) : h("p", { class: "rt-dim" }, ifNone);
}
function factList(facts) {
  const known = facts.filter(([, value]) => value !== null && value !== undefined);
  return h(
    "dl",
    {},
    known.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]),
  );
}
// scrolls when it is long, so it can have the focus
const detailBox = () => h("div", { class: "rt-detail", tabindex: 0, role: "group", "aria-label": "Details" });
const heading = (text) => h("p", { class: "rt-dhead" }, text);
const linkButton = (text, onclick) => h("button", { type: "button", class: "rt-link", onclick }, text);
function legend(entries) {
  return h(
    "div",
    { class: "rt-legend", "aria-hidden": "true" },
    entries.map(([cls, text]) => h("span", {}, h("i", { class: `rt-key ${cls}` }), text)),
  );
}
// Lines of source with their numbers; `mark` is a line number to point at.
function codeBlock(lines, first, mark = null) {
  const rows = lines.map((line, i) =>
    h(
      "span",
      { class: first + i === mark ? "rt-cl rt-mark" : "rt-cl" },
      h("i", { "data-n": first + i }),
      `${line}\n`,
    ),
  );
  return h("pre", { class: "rt-code", tabindex: 0 }, rows);
}

// ---- lines of a chart

// As many colours as a chart has lines at most; five dash patterns besides, for those who do not tell colours apart.
const KINDS = 10;
const DASHES = 5; // the sixth line begins anew with the patterns shifted by one
const lineClass = (i) => `rt-line rt-colour${i % KINDS} rt-dash${(i + Math.floor(i / DASHES)) % DASHES}`;

function numberText(x) {
  if (x === null) return "not finite";
  const rounded = Number(x.toPrecision(4));
  return x !== 0 && Math.abs(x) < 1e-3 ? rounded.toExponential() : String(rounded);
}

// The path through the points; a point without a place interrupts it.
function pathOf(points) {
  let down = false;
  return points
    .map((point) => {
      const move = down ? "L" : "M";
      down = point !== null;
      return down ? `${move}${point[0].toFixed(1)} ${point[1].toFixed(1)}` : "";
    })
    .join("");
}

// A scale: from numbers to places between 0 and 1, and the numbers that are written beside it.
function linearScale(values) {
  const top = Math.max(...values, 1e-12),
    low = Math.min(...values, 0);
  const rough = (top - low) / 5,
    power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
  const first = Math.floor(low / step),
    last = Math.ceil(top / step - 1e-9);
  const ticks = Array.from({ length: last - first + 1 }, (_, k) => (first + k) * step);
  return { ticks, place: (x) => (x - ticks[0]) / (ticks.at(-1) - ticks[0]) };
}

// Round numbers from 0 to `last`.
function stepTicks(last) {
  const step = [1, 2, 5, 10, 20, 25, 50, 100, 200, 250].find((s) => last / s <= 6) ?? 500;
  return Array.from({ length: Math.floor(last / step) + 1 }, (_, k) => k * step);
}

// Round moments from 0 to `total`, about `most` of them.
function timeTicks(total, most) {
  const rough = total / most,
    power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((x) => x >= rough);
  return Array.from({ length: Math.floor(total / step + 1e-9) + 1 }, (_, k) => k * step);
}

// Redraw whenever one of the traits changes; the returned function ends it.
function bind(model, names, update) {
  const events = names.map((name) => `change:${name}`);
  events.forEach((event) => model.on(event, update));
  update();
  return () => events.forEach((event) => model.off(event, update));
}
function assign(model, name, value) {
  model.set(name, value);
  model.save_changes();
}
