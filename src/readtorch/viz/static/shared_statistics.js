// Which numbers of a batch share statistics: three samples of channels by places, of which one number is chosen.
const range = (count) => Array.from({ length: count }, (_, i) => i);
const cellOf = (sample, channel, place) => (sample * CHANNELS + channel) * PLACES + place;

function draw({ result, inputs, set, focus }) {
  const choose = (cell) => {
    set({ cell });
    focus(`cell-${cell}`);
  };
  const square = (cell) => {
    const picked = cell === inputs.cell;
    return h("td", {
      role: "gridcell", class: picked ? "rt-is-pick" : result.shared[cell] ? "rt-is-pale" : "rt-is-plain", tabindex: picked ? 0 : -1,
      "data-focus": `cell-${cell}`, "aria-selected": String(picked), onclick: () => choose(cell),
    }, picked ? "x" : result.shared[cell] ? "■" : "·"); // prettier-ignore
  };
  const sample = (n) =>
    h("div", {}, h("p", { class: "rt-dhead" }, `sample ${n}`),
      h("table", { class: "rt-grid", role: "grid", "aria-label": `sample ${n}: a row is a channel` },
        h("tbody", { role: "rowgroup" }, range(CHANNELS).map((channel) =>
          h("tr", { role: "row" }, range(PLACES).map((place) => square(cellOf(n, channel, place)))))))); // prettier-ignore
  const samples = h("div", { class: "rt-ss-samples" }, range(SAMPLES).map(sample));
  const by = (step) => () => {
    const to = inputs.cell + step;
    if (to >= 0 && to < result.shared.length) choose(to);
  };
  onKeys(samples, { ArrowRight: by(1), ArrowLeft: by(-1), ArrowDown: by(PLACES), ArrowUp: by(-PLACES) });
  return [samples, factList(result.facts)];
}

export default { render: figure(model, draw) };
