// The device's memory as one bar, and below it a row for each segment with its blocks.

const WIDE = { width: 700, left: 84, row: 24, height: 18, class: "rt-wide-chart" },
  NARROW = { ...WIDE, width: 340, class: "rt-narrow-chart" }; // for a phone: nothing to scroll sideways
const EARLY = "handed out too early";
const STATES = { allocated: "a tensor has it", pending: "freed, waits for a stream", free: "free, kept by the allocator", driver: "the driver has it" };

const bar = (x, y, width, state, title) =>
  s("rect", { class: `rt-${state}`, x, y, width: Math.max(width, 0.7), height: WIDE.height }, s("title", {}, title));

function memoryBar(step, y, frame) {
  const parts = Object.keys(STATES).map((state) => [state, step[state]]),
    all = parts.reduce((sum, [, size]) => sum + size, 0);
  let x = frame.left;
  return [
    s("text", { class: "rt-axis", x: frame.left - 6, y: y + 13, "text-anchor": "end" }, "the device"),
    parts.map(([state, size]) => {
      const width = ((frame.width - frame.left - 8) * size) / all,
        at = x;
      x += width;
      return size ? bar(at, y, width, state, `${STATES[state]}: ${amount(size)}`) : "";
    }),
  ];
}

function segmentRow(segment, y, scale, frame) {
  const { address, size, stream, small, expandable, blocks } = segment,
    kind = `${small ? "small" : "large"}${expandable ? ", expandable" : ""}${stream ? `, stream ${stream}` : ""}`;
  return [
    s("text", { class: "rt-axis", x: frame.left - 6, y: y + 13, "text-anchor": "end" }, amount(size) + (stream ? ` @${stream}` : ""), s("title", {}, kind)),
    blocks.map((block) => {
      const x = frame.left + (block.address - address) * scale,
        width = block.size * scale,
        title = `${block.name ? `${block.name}: ` : ""}${amount(block.size)} at 0x${block.address.toString(16)}, ${block.early ? EARLY : STATES[block.state]}`;
      const label = block.name || (block.state === "pending" ? "…" : "");
      return [
        bar(x, y, width, block.early ? "early" : block.state, title),
        label && width > 9 * label.length ? s("text", { class: "rt-name", x: x + width / 2, y: y + 13, "text-anchor": "middle" }, label) : "",
      ];
    }),
  ];
}

function program({ result, step, go }) {
  const { steps } = result;
  const list = h("ol", { class: "rt-program", "aria-label": "steps" },
    steps.map(({ code, failed }, i) => h("li", {}, h("button", {
      type: "button", class: `rt-step ${failed ? "rt-failed" : ""} ${i === step ? "rt-is-pick" : ""}`, "data-focus": `step-${i}`,
      "aria-current": i === step ? "step" : null, onclick: () => go(i),
    }, code))),
  ); // prettier-ignore
  requestAnimationFrame(() => reveal(list, list.children[step])); // on a phone the list scrolls
  return list;
}

function segmentsIn(frame, { segments, ...now }, words) {
  const longest = segments.reduce((most, { size }) => Math.max(most, size), 1),
    scale = (frame.width - frame.left - 8) / longest,
    height = 34 + frame.row * Math.max(segments.length, 1);
  return s("svg", { class: frame.class, viewBox: `0 0 ${frame.width} ${height}`, width: "100%", role: "img", "aria-label": words },
    memoryBar(now, 4, frame),
    segments.length ? segments.map((segment, i) => segmentRow(segment, 32 + frame.row * i, scale, frame)) : s("text", { class: "rt-axis", x: frame.left, y: 46 }, "no segments"),
  ); // prettier-ignore
}

function chart({ result, step }) {
  const now = result.steps[step];
  const parts = now.segments.map(({ size, blocks }) => `segment of ${amount(size)}: ${blocks.map((block) => `${block.name || block.state} ${amount(block.size)}${block.early ? `, ${EARLY}` : ""}`).join(", ")}`);
  const words = `${parts.join("; ") || "No segments"}.`;
  return h("div", { class: "rt-scrolly", tabindex: 0, role: "group", "aria-label": "segments" }, segmentsIn(WIDE, now, words), segmentsIn(NARROW, now, words));
}

function facts({ result, step }) {
  const now = result.steps[step],
    reserved = now.allocated + now.pending + now.free,
    early = now.segments.some(({ blocks }) => blocks.some((block) => block.early)),
    key = (state, words) => h("li", {}, h("span", { class: `rt-key rt-${state}`, "aria-hidden": "true" }), words);
  return h("div", { class: "rt-values" },
    h("ul", {}, Object.keys(STATES).filter((state) => now[state]).map((state) => key(state, `${STATES[state]}: ${amount(now[state])}`)), early && key("early", EARLY)),
    h("span", { class: "rt-dim" }, `memory_allocated ${amount(now.allocated)}, memory_reserved ${amount(reserved)}`),
  ); // prettier-ignore
}

const draw = (parts) => [program(parts), chart(parts), facts(parts)];

export default { render: figure(model, draw, { typing: "goes to the last step" }) };
