// The machine of scripted functions: the instructions of the frame that runs, the frames, and what the next instruction finds.
function smListing({ result, step }) {
  const { frames } = result.steps[step];
  const [name, pc] = frames.at(-1) ?? [Object.keys(result.listings)[0], -1];
  const rows = result.listings[name].map((line, i) =>
    h("li", { class: i === pc ? "rt-is-pick" : null, "aria-current": i === pc ? "step" : null },
      h("span", { class: "rt-bc-offset" }, String(i)), line)); // prettier-ignore
  const box = h("div", { class: "rt-bc-code", tabindex: 0, role: "group", "aria-label": `instructions of ${name}` }, h("ol", {}, rows));
  if (pc >= 0) requestAnimationFrame(() => reveal(box, rows[pc]));
  return [h("p", { class: "rt-bc-head" }, `instructions of ${name}`), box];
}

function smPart(title, empty, items) {
  const rows = items.map((one) => h("li", { class: "rt-is-pale" }, one));
  return h("div", { class: "rt-bc-part rt-bc-stack" }, h("p", { class: "rt-bc-head" }, title), h("ol", {}, rows.length ? rows : h("li", { class: "rt-dim" }, empty)));
}

function draw(parts) {
  const { result, step } = parts,
    one = result.steps[step];
  const [name] = one.frames.at(-1) ?? Object.keys(result.listings);
  const frames = one.frames.map(([of, pc]) => `${of}, at ${pc}`);
  return h("div", { class: "rt-bc" },
    h("div", { class: "rt-bc-panes" },
      h("div", { class: "rt-bc-left" }, h("div", {}, smListing(parts))),
      h("div", { class: "rt-bc-right" },
        smPart("frames, the running one last", "none", frames),
        smPart("stack, top last", "empty", one.stack),
        smPart("registers of the running frame", "all empty", one.registers.map(([number, value]) => `${number}: ${value}`)),
        smPart(`constants of ${name}`, "none", result.constants[name]),
        h("pre", { class: "rt-bc-source", "aria-label": "the program" }, result.source.join("\n"))))); // prettier-ignore
}

export default { render: figure(model, draw) };
