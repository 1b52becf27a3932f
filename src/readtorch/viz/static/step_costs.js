// One step, three times: for each implementation its kernels, its bytes, and two bars on one scale of time.
const digits = (x) => (x >= 100 ? commas(Math.round(x)) : String(Number(x.toPrecision(2))));
const timeText = (us) => (us >= 1e6 ? `${digits(us / 1e6)} s` : us >= 1e3 ? `${digits(us / 1e3)} ms` : `${digits(us)} µs`);
const decimalText = (n) => (n === 0 ? "none" : n >= 1e9 ? `${digits(n / 1e9)} GB` : n >= 1e6 ? `${digits(n / 1e6)} MB` : n >= 1e3 ? `${digits(n / 1e3)} kB` : `${n} B`);

const bar = (name, time, most, kind) =>
  h("div", { class: "rt-costbar" },
    h("span", { class: "rt-costtrack", "aria-hidden": "true" }, h("i", { class: kind, style: `width:${((100 * time) / most).toFixed(2)}%` })),
    h("span", {}, `${name} ${timeText(time)}`)); // prettier-ignore

function way(one, most) {
  const longer = one.launching > one.moving;
  return h("section", { class: "rt-costway" },
    h("p", {}, h("b", {}, one.way), ` ${commas(one.kernels)} ${one.kernels === 1 ? "kernel" : "kernels"} · ${decimalText(one.moved)} moved · intermediate results: ${decimalText(one.kept)}`),
    h("div", { class: longer ? "rt-costlong" : "" }, bar("launching", one.launching, most, "rt-launch")),
    h("div", { class: longer ? "" : "rt-costlong" }, bar("moving", one.moving, most, "rt-move"))); // prettier-ignore
}

const draw = ({ result }) => h("div", { class: "rt-costs" }, result.rows.map((one) => way(one, result.most)));

export default { render: figure(model, draw) };
