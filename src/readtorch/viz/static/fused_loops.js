// The kernels of a program, a card each: what it loops over, which operators it computes, and what goes to memory.
const WHERE = {
  memory: "stored in memory", row: "kept for one row, in the cache", register: "in a register",
}; // prettier-ignore

const stepChip = ([name, times]) => h("span", { class: "rt-fl-step" }, times > 1 ? `${name} ×${times}` : name);

function valueLine({ name, steps, where, pass }, passes) {
  return h("li", { class: `rt-fl-value rt-fl-${where}` },
    passes > 1 ? h("span", { class: "rt-fl-pass" }, `pass ${pass}`) : null,
    h("span", { class: "rt-fl-name" }, name, h("span", { class: "rt-vh" }, `, ${WHERE[where]}:`)),
    steps.map(stepChip)); // prettier-ignore
}

const listedNames = (names) => (names.length ? names.join(", ") : "nothing");

function kernelCard(kernel, k) {
  const { call, ranges, reads, writes, values, apart, bytes, time } = kernel;
  const passes = Math.max(...values.map(({ pass }) => pass));
  const what = call ? "a call of the library" : `loops over ${ranges.join(" × ")}`;
  return h("li", { class: `rt-fl-kernel${call ? " rt-fl-call" : ""}` },
    h("p", { class: "rt-fl-head" }, h("b", {}, `kernel ${k + 1}`), ` ${what}`),
    h("ul", {}, values.map((value) => valueLine(value, passes))),
    h("p", { class: "rt-fl-foot" }, `reads ${listedNames(reads)}, writes ${listedNames(writes)}: ${sizeInTenths(bytes)}, ${digitsText(time)} µs`),
    apart.map(([other, why]) => h("p", { class: "rt-fl-why" }, why ? `not with kernel ${other}: ${why}` : `could be one with kernel ${other}`))); // prettier-ignore
}

function costBars(rows) {
  const bar = (value, most, text) =>
    h("td", {}, h("span", { class: "rt-fl-bar", style: `width: ${(100 * value) / most}%` }), h("span", { class: "rt-fl-amount" }, text));
  const most = (key) => Math.max(...rows.map((row) => row[key]));
  const head = ["what runs", "kernels", "bytes", "time"].map((word) => h("th", { scope: "col" }, word));
  const line = ({ title, kernels, bytes, time }) =>
    h("tr", {}, h("th", { scope: "row" }, title), h("td", { class: "rt-fl-count" }, String(kernels)),
      bar(bytes, most("bytes"), sizeInTenths(bytes)), bar(time, most("time"), `${digitsText(time)} µs`)); // prettier-ignore
  return h("table", { class: "rt-gtable" }, h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows.map(line)));
}

const draw = ({ result }) =>
  h("div", { class: "rt-fl" }, costBars(result.rows),
    h("ol", { class: "rt-fl-kernels", tabindex: 0, "aria-label": "the kernels" }, result.kernels.map(kernelCard)),
    legend([["rt-fl-lmemory", "stored in memory"], ["rt-fl-lrow", "kept for a row"], ["rt-fl-lregister", "in a register"]])); // prettier-ignore

export default { render: figure(model, draw) };
