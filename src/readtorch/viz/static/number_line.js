// What is left of gradients: a line of powers of two, the neighbours of one gradient, a table, and the scaler's decision.
const WIDE = 640,
  FIRST = -48,
  LAST = 32,
  LOWEST_SCALE = -20, // exponents that the input takes
  HIGHEST_SCALE = 40;
const SIGNS = { normal: "●", subnormal: "◐", zero: "○", inf: "✕" };
const WORDS = { normal: "normal", subnormal: "subnormal", zero: "becomes 0", inf: "infinite" };

const across = (e) => 8 + ((WIDE - 16) * (Math.min(LAST, Math.max(FIRST, e)) - FIRST)) / (LAST - FIRST);
const place = (x) => across(x === 0 ? FIRST : Math.log2(Math.abs(x)));
const outside = (x) => (x === 0 || Math.abs(x) < 2 ** FIRST ? "◂" : Math.abs(x) > 2 ** LAST ? "▸" : "");
const words = (x, y, text, anchor = "middle", kind = "") => s("text", { x, y, "text-anchor": anchor, class: kind }, text);
const superscript = (n) => [...String(n)].map((c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c])).join("");
const power = (n) => `2${superscript(n)}`;

function shown(x, digits = 3) {
  const size = Math.abs(x);
  if (x === 0) return "0";
  return size >= 1e5 || size < 1e-3 ? x.toExponential(digits - 1).replace(/\.?0*e\+?/, "e") : String(Number(x.toPrecision(digits)));
}

// More digits where three would make neighbours of float16 look equal.
const scaledShown = (x) => shown(x, 1e3 <= Math.abs(x) && Math.abs(x) < 1e5 ? 5 : 3);

const largestOf = ({ fraction, highest }) => (2 - 2 ** -fraction) * 2 ** highest;

// Where the format has 0, subnormal numbers, normal ones, and infinity.
function zones({ lowest, highest, fraction }) {
  const tiny = lowest - fraction - 1;
  return [
    ["zero", FIRST, tiny, "0"],
    ["subnormal", tiny, lowest, "subnormal"],
    ["normal", lowest, highest + 1, lowest < FIRST ? `normal, down to ${power(lowest)}` : "normal"],
    ["inf", highest + 1, LAST, "infinite"],
  ]
    .map(([kind, from, to, name]) => [kind, across(from), across(to), name])
    .filter(([, from, to]) => to > from);
}

function line({ result, set }) {
  const bands = zones(result).map(([kind, from, to, name]) => [
    s("rect", { x: from, y: 74, width: to - from, height: 26, class: `rt-nl-${kind}` }),
    to - from > 40 ? words((from + to) / 2, 114, name) : null,
  ]);
  const ticks = [-40, -30, -20, -10, 0, 10, 20, 30].map((e) => [
    s("line", { x1: across(e), x2: across(e), y1: 24, y2: 100, class: "rt-nl-grid" }),
    words(across(e), 11, power(e)),
  ]);
  const dots = result.rows.map(({ gradient, scaled, kind }, i) => {
    const chosen = i === result.at ? " rt-nl-chosen" : "";
    return s("g", { class: `rt-nl-gradient${chosen}`, onclick: () => set({ at: i + 1 }) },
      s("line", { x1: place(gradient), y1: 36, x2: place(scaled), y2: 82, class: "rt-nl-way" }),
      outside(gradient) ? words(place(gradient), 36, outside(gradient)) : s("circle", { cx: place(gradient), cy: 32, r: 4, class: "rt-nl-dot" }),
      words(place(scaled), 92, SIGNS[kind], "middle", "rt-nl-sign")); // prettier-ignore
  });
  const label = `gradients above, what is stored of them below: ${result.rows.map(({ gradient, kind }) => `${shown(gradient)} ${WORDS[kind]}`).join("; ")}`;
  return s("svg", { viewBox: `0 -8 ${WIDE} 132`, class: "rt-nl-line", role: "img", "aria-label": label }, bands, ticks, dots);
}

// The numbers of the format around one scaled gradient, evenly spaced; around the end of the format if it is beyond.
function neighbours({ result }) {
  const { scaled, step, below, stored } = result.rows[result.at],
    largest = largestOf(result),
    first = stored !== null ? below : scaled > 0 ? largest : -largest - step;
  const at = (x) => Math.min(WIDE - 40, Math.max(40, WIDE / 2 + ((x - first) / step - 0.5) * 170));
  const marks = [-1, 0, 1, 2].map((k) => first + k * step).map((x) => {
    const beyond = Math.abs(x) > largest;
    return [
      s("line", { x1: at(x), x2: at(x), y1: 22, y2: 38, class: beyond ? "rt-nl-mark rt-nl-beyond" : "rt-nl-mark" }),
      words(at(x), 52, beyond ? `${x < 0 ? "−" : ""}∞` : shown(x, 6)),
    ];
  }); // prettier-ignore
  const arrow = stored === null ? null : s("line", { x1: at(scaled), x2: at(stored), y1: 17, y2: 17, class: "rt-nl-arrow" });
  const label = stored === null ? `${shown(scaled, 6)} is rounded to infinity; the largest number is ${shown(largest, 6)}`
    : `${shown(scaled, 6)} lies between ${shown(below, 6)} and ${shown(below + step, 6)}`; // prettier-ignore
  return s("svg", { viewBox: `0 -9 ${WIDE} 69`, class: "rt-nl-line", role: "img", "aria-label": label },
    s("line", { x1: 0, x2: WIDE, y1: 30, y2: 30, class: "rt-nl-grid" }), marks, arrow,
    s("circle", { cx: at(scaled), cy: 17, r: 4, class: "rt-nl-dot" }), words(at(scaled), 9, shown(scaled, 6))); // prettier-ignore
}

function table({ result, set }) {
  const head = ["outcome", "gradient", "× scale", "stored", "÷ scale", "error"].map((name) => h("th", { scope: "col" }, name));
  const percent = (error) => (error === null ? "–" : error === 0 ? "0" : error < 0.0005 ? "<0.1 %" : `${(100 * error).toFixed(1)} %`);
  const rows = result.rows.map(({ gradient, scaled, stored, back, error, kind }, i) =>
    h("tr", { class: i === result.at ? "rt-nl-chosen" : "", onclick: () => set({ at: i + 1 }) },
      h("td", {}, h("button", { type: "button", class: "rt-stmt", "data-focus": `gradient-${i}`, "aria-pressed": String(i === result.at), onclick: () => set({ at: i + 1 }) },
        gradient === 0 ? `${SIGNS.zero} is 0` : `${SIGNS[kind]} ${WORDS[kind]}`)),
      [shown(gradient, 5), scaledShown(scaled), stored === null ? "inf" : shown(stored, 5), back === null ? "inf" : shown(back, 5), percent(error)].map((cell) => h("td", {}, cell)))); // prettier-ignore
  return h("table", { class: "rt-gtable" }, h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows));
}

function decided({ result, set }) {
  const { skipped, exponent, good } = result.then;
  const ends = exponent < LOWEST_SCALE || exponent > HIGHEST_SCALE;
  const next = h("button", { type: "button", class: "rt-stmt", "data-focus": "next", disabled: ends, onclick: () => set({ exponent, good }) }, "step and update");
  const skip = h("button", { type: "button", class: "rt-stmt", "data-focus": "skip", onclick: () => set({ good: GROWTH_INTERVAL - 1 }) }, "to the 2,000th");
  return h("p", { class: "rt-nl-then" }, next, " ", skipped ? null : [skip, " "],
    skipped ? h("b", {}, "left out") : "taken", `; next scale ${power(exponent)}, good steps ${commas(good)}`, ends ? " (the figure ends here)" : ""); // prettier-ignore
}

function headOf({ result }) {
  const { step, stored } = result.rows[result.at];
  return stored === null ? `Beyond the largest number, ${shown(largestOf(result), 6)}` : `Around the chosen one: neighbours ${shown(step)} apart`;
}

const draw = (parts) => h("div", { class: "rt-nl" }, line(parts), h("p", { class: "rt-dhead" }, headOf(parts)), neighbours(parts), decided(parts), table(parts));

export default { render: figure(model, draw) };
