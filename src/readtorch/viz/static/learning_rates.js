// The rate that each step uses: stairs over the epochs, what the constructors left, and one epoch's numbers.

const CHART = { width: 640, height: 230, left: 56, right: 10, top: 14, bottom: 26 };

function ladder(result, log) {
  const all = [...result.rates, ...(result.broken ?? [])],
    room = CHART.height - CHART.top - CHART.bottom;
  const high = Math.max(...all, 1e-9);
  if (!log) {
    const low = Math.min(0, ...all),
      place = (x) => CHART.top + (room * (high - x)) / (high - low);
    return { ticks: [...(low < 0 ? [low] : []), 0, high / 2, high].map((x) => [x, threeDigits(x)]), place };
  }
  const top = Math.ceil(Math.log10(high) - 1e-9),
    least = Math.min(...all.filter((x) => x > 1e-12), high),
    low = Math.max(top - 8, Math.min(top - 1, Math.floor(Math.log10(least))));
  const place = (x) => CHART.top + room * (x > 0 ? Math.min(1, (top - Math.log10(x)) / (top - low)) : 1);
  const powers = Array.from({ length: top - low + 1 }, (_, i) => top - i).filter((p) => (top - p) % Math.ceil((top - low) / 5) === 0);
  return { ticks: powers.map((p) => [10 ** p, `1e${p}`]), place };
}

function chart({ result, inputs, set }) {
  const { width, height, left, right, top, bottom } = CHART,
    count = result.rates.length,
    wide = (width - left - right) / count,
    { ticks, place } = ladder(result, inputs.log);
  const choose = (at) => set({ at: Math.max(1, Math.min(count, at)) });
  const stairs = (values, name) =>
    s("path", {
      class: `rt-line-${name}`,
      d: values.map((v, i) => `${i ? "L" : "M"}${(left + wide * i).toFixed(1)} ${place(v).toFixed(1)}H${(left + wide * (i + 1)).toFixed(1)}`).join(""),
    }); // prettier-ignore
  const upright = (epoch, name) => s("path", { class: name, d: `M${left + wide * epoch} ${top}V${height - bottom}` });
  const milestones = inputs.how === "sequential" && result.made.length > 1 ? inputs.milestones.filter((m) => m < count) : [];
  const every = Math.ceil(count / 12);
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, width: "100%", role: "img", "aria-label": `The rates of ${count} epochs. ${result.say}` },
    ticks.map(([value, words]) => [
      s("path", { class: "rt-gridline", d: `M${left} ${place(value)}H${width - right}` }),
      s("text", { class: "rt-axis", x: left - 5, y: place(value) + 4, "text-anchor": "end" }, words),
    ]),
    s("rect", { class: "rt-now", x: left + wide * (result.at - 1), y: top, width: wide, height: height - top - bottom }),
    milestones.map((epoch) => upright(epoch, "rt-milestone")),
    inputs.stop ? upright(inputs.stop, "rt-break") : "",
    stairs(result.rates, "rates"),
    result.broken ? stairs(result.broken, "broken") : "",
    result.rates.map((_, i) => (i % every ? "" : s("text", { class: "rt-axis", x: left + wide * (i + 0.5), y: height - 9, "text-anchor": "middle" }, String(i + 1)))),
  ); // prettier-ignore
  svg.addEventListener("click", (event) => {
    const box = svg.getBoundingClientRect();
    choose(Math.floor((((event.clientX - box.left) / box.width) * width - left) / wide) + 1);
  });
  const words = `epoch ${result.at}: ${threeDigits(result.rates[result.at - 1])}${result.broken ? `, after the break ${threeDigits(result.broken[result.at - 1])}` : ""}`;
  return placeSlider(svg, { label: "epoch", at: result.at, count, text: words, choose });
}

const swatch = (name) =>
  s("svg", { viewBox: "0 0 30 10", width: 30, height: 10, "aria-hidden": "true" }, s("path", { class: `rt-line-${name}`, d: "M1 5H29" }));

function values({ result, inputs }) {
  const at = result.at - 1;
  const row = (name, words, rates) => h("li", {}, swatch(name), h("span", {}, words), h("b", {}, threeDigits(rates[at])));
  return h("div", { class: "rt-values" },
    h("span", { class: "rt-dim" }, `epoch ${result.at}`),
    h("ul", {}, row("rates", "the step uses", result.rates), result.broken ? row("broken", `with the break after ${inputs.stop}`, result.broken) : ""),
  ); // prettier-ignore
}

function trail(words, items) {
  return h("div", { class: "rt-made" },
    h("span", { class: "rt-dim" }, words),
    h("ol", {}, items.map(([name, rate], i) => h("li", { class: i && rate !== items[i - 1][1] ? "rt-wrote" : "" }, h("code", {}, name), ` ${threeDigits(rate)}`))),
  ); // prettier-ignore
}

function constructors({ result, inputs }) {
  const start = ["SGD", inputs.lr];
  return [
    trail("each constructor leaves the rate at", [start, ...result.made]),
    result.broken ? trail("and after the break", [start, ...result.again]) : "",
  ]; // prettier-ignore
}

const draw = (parts) => [chart(parts), values(parts), constructors(parts)];

export default { render: figure(model, draw) };
