// Which element a thread gets: the threads, a row a block, and the elements, each with the number of threads that write it.
const SIDE = 14;

function square(place, across, kind, words, title, act) {
  const x = 1 + SIDE * (place % across),
    y = 1 + SIDE * Math.floor(place / across);
  return s("g", { class: kind, onclick: act ?? null },
    s("title", {}, title),
    s("rect", { x, y, width: SIDE - 1, height: SIDE - 1 }),
    words && s("text", { x: x + SIDE / 2 - 0.5, y: y + SIDE - 4 }, words)); // prettier-ignore
}

const squares = (label, across, count, cells) =>
  s("svg", { class: "rt-ti-squares", viewBox: `0 0 ${SIDE * across + 1} ${SIDE * Math.ceil(count / across) + 1}`, role: "img", "aria-label": label }, cells); // prettier-ignore

const THREAD_KINDS = { idle: "rt-ti-none", works: "rt-ti-one", outside: "rt-ti-bad" };

function threadSquares({ index, states, at }, block, set) {
  const cells = index.map((i, number) =>
    square(number, block, number === at ? "rt-ti-own" : THREAD_KINDS[states[number]], states[number] === "outside" ? "×" : "",
      `block ${Math.floor(number / block)}, thread ${number % block}: i = ${i}`, () => set({ at: number }))); // prettier-ignore
  return squares("the threads, a row a block", block, index.length, cells);
}

function elementSquares({ index, states, at, counts, behind }) {
  const own = states[at] === "idle" ? null : index[at];
  const kind = (i, count) => (i === own ? "rt-ti-own" : count > 1 ? "rt-ti-bad" : count ? "rt-ti-one" : "rt-ti-none");
  const cells = [
    counts.map((count, i) => square(i, ACROSS, kind(i, count), count > 1 ? count : "", `element ${i}: ${several(count, "thread")}`)),
    behind.map((i) => square(i, ACROSS, i === own ? "rt-ti-own" : "rt-ti-bad", "×", `${i}: out of bounds`)),
  ];
  return squares("the elements", ACROSS, Math.max(counts.length, (behind.at(-1) ?? 0) + 1), cells);
}

const draw = ({ result, inputs, set }) => [
  h("div", { class: "rt-ti" },
    h("section", { class: "rt-ti-part" }, h("p", {}, "Threads, a row a block"), threadSquares(result, inputs.block, set)),
    h("section", { class: "rt-ti-part" }, h("p", {}, `Elements, ${ACROSS} a row`), elementSquares(result))),
  h("p", { class: "rt-dim" }, "Each thread runs out[i] = 2 * x[i] if its i passes the test. Filled: the chosen thread and its element. × out of bounds; a number: so many threads write this element; dashed: a thread that does nothing, an element that nobody writes."),
]; // prettier-ignore

export default { render: figure(model, draw) };
