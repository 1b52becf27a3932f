// Rounding a request: a block, and the part of it that was asked for.
const draw = ({ result }) =>
  s(
    "svg",
    { viewBox: "0 0 400 30", preserveAspectRatio: "none", width: "100%", height: 30, role: "img", "aria-label": "the block, and what is used of it" },
    s("rect", { class: "rt-is-free", width: 400, height: 30 }),
    s("rect", { class: "rt-is-pale", width: 400 * result.used, height: 30 }),
  );

export default { render: figure(model, draw) };
