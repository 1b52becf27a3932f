// Allocator explorer: what the caching allocator holds after each event, and why.

const WAITS = "waits for other streams";
const STATES = ["free", "allocated", WAITS];

async function render({ model, el }) {
  const data = model.get("data"),
    last = data.events;
  const H = await unpack(data);
  const history = makeHistory(H, last);
  const step = () => Math.max(0, Math.min(last, model.get("step")));
  function goTo(to) {
    hovered = null;
    assign(model, "step", Math.max(0, Math.min(last, to)));
  }
  const picked = () => (model.get("address") ? Number(model.get("address")) : null);
  const pick = (address) => assign(model, "address", address === null ? "" : addressText(address));
  let hovered = null; // an address

  // ---- moving
  const play = player({ last, what: "the history", get: step, set: goTo, milliseconds: 150 });
  const page = last > 2000 ? 100 : 10;
  const jump = (to) => {
    play.stop();
    if (to !== undefined) goTo(to);
  };
  const next = (events) => events.find((event) => event > step());
  const previous = (events) => events.findLast((event) => event < step());
  const toNextSegment = () => jump(next(history.driverEvents));
  const toLastSegment = () => jump(previous(history.driverEvents));

  // ---- search
  let matches = [];
  const query = h("input", {
    type: "search",
    class: "rt-select rt-query",
    "aria-label": "Search the events for an address, a size, or words of a stack or reason",
    placeholder: "0x…, 20 MiB, or words",
    oninput: () => find(query.value),
  });
  const found = h("span", { class: "rt-count", role: "status" });
  const toNextMatch = () => jump(next(matches) ?? matches[0]);
  const toLastMatch = () => jump(previous(matches) ?? matches.at(-1));
  function find(text) {
    matches = search(H, text);
    if (isAddress(text)) pick(Number(text));
    sayFound();
    chart.drawLines(matches);
    chart.draw(step());
  }
  function sayFound() {
    const at = matches.indexOf(step()) + 1;
    const number = `${at ? `${numberWithCommas(at)} of ` : ""}${numberWithCommas(matches.length)} found`;
    found.textContent = !query.value.trim() ? "" : matches.length ? number : "nothing found";
  }
  query.addEventListener("keydown", (event) => {
    event.stopPropagation(); // letters and commas are for the query
    if (event.key === "Enter") event.shiftKey ? toLastMatch() : toNextMatch();
    if (event.key === "Escape") find((query.value = ""));
  });

  // ---- the figure
  const button = (text, label, onclick) =>
    h("button", { type: "button", class: "rt-btn", "aria-label": label, title: label, onclick }, text);
  function selector(label, trait, options) {
    const select = h(
      "select",
      { class: "rt-select", onchange: () => assign(model, trait, select.value) },
      options.map((value) => h("option", { value }, value)),
    );
    const show = () => (select.value = model.get(trait));
    return { show, label: h("label", { class: "rt-check" }, label, select) };
  }
  const colours = selector("colours", "colour", ["state", "stream"]);
  const widths = selector("rows", "scale", ["full width", "to scale"]);
  const totals = h("p", { class: "rt-totals" });
  const legends = h("div", {});
  const detail = detailBox();
  const root = h("div", { class: "rt-w rt-allocator", role: "group", "aria-label": data.title });
  const ink = makeInk(root);
  const chart = makeChart(history, ink, jump);
  const look = () => ({
    byStream: model.get("colour") === "stream",
    toScale: model.get("scale") === "to scale",
    picked: picked(),
    event: blockOfEvent(step()),
  });
  const rows = makeRows(H, history, ink, look, hover, pick);
  function hover(address) {
    if (address === hovered) return;
    hovered = address;
    showDetail();
  }
  const end = data.differing
    ? `The end differs in ${data.differing} of ${plural(data.segments, "segment")}, so some may be wrong.`
    : "The end that they lead to is the snapshot's, block for block.";
  const origin = `This snapshot has no reasons: they are worked out from its events by PyTorch's rules. ${end}`;
  const spring = () => h("span", { class: "rt-spring" });
  root.append(
    h("p", { class: "rt-title" }, data.title),
    h(
      "div",
      { class: "rt-bar" },
      play.buttons,
      spring(),
      button("[", "Back to where a segment came or went", toLastSegment),
      button("]", "Forward to where a segment comes or goes", toNextSegment),
    ),
    chart.box,
    play.slider,
    totals,
    play.now,
    h(
      "div",
      { class: "rt-bar" },
      query,
      button("‹", "Last match", toLastMatch),
      button("›", "Next match", toNextMatch),
      found,
      spring(),
      colours.label,
      widths.label,
    ),
    h("div", { class: "rt-cols" }, h("div", { class: "rt-chartbox" }, rows.box, legends), detail),
    data.reasons === "derived" ? h("p", { class: "rt-hint" }, origin) : "",
    h(
      "p",
      { class: "rt-hint" },
      KEY_HINT,
      ` [ and ] go to where segments come and go; on the slider Page Up and Page Down go ${page} events. `,
      "In the picture arrows go from block to block, Escape lets go. ▼ marks out of memory.",
    ),
  );
  el.append(root);
  onKeys(root, {
    ...play.keys,
    "[": toLastSegment,
    "]": toNextSegment,
    Escape: () => (picked() === null ? false : pick(null)),
  });
  onKeys(play.slider, { PageUp: () => jump(step() + page), PageDown: () => jump(step() - page) });

  // ---- the event in words
  // PyTorch writes down a stream's handle, which is an address
  const streamText = (stream) => `stream ${stream < 1e6 ? stream : addressText(stream)}`;
  function sentence(t) {
    if (t === 0) return [h("b", {}, "Before the first event"), "."];
    const i = t - 1,
      action = H.actions[H.action[i]];
    const where = action === "oom" ? "" : ` at ${addressText(H.address[i])}`;
    const stream = H.streams.length > 1 ? `, ${streamText(H.streams[H.stream[i]])}` : "";
    const time = H.time[last - 1] ? ` after ${numberText(H.time[i] / 1000)} ms` : "";
    const why = H.reasons[H.reason[i]];
    return [
      h("b", {}, action),
      action === "snapshot" ? "" : ` ${sizeText(H.size[i])}${where}${stream}`,
      h("span", { class: "rt-dim" }, time),
      why ? h("span", { class: "rt-why" }, `${why}.`) : "",
    ];
  }
  // the block that event t is about, as it is after the event
  function blockOfEvent(t) {
    return t === 0 || H.actions[H.action[t - 1]] === "oom" ? -1 : history.at(H.address[t - 1]);
  }
  function totalOf(name) {
    const size = h("b", {}, sizeText(history.totals[name][step()]));
    return h("span", { class: `rt-total rt-total-${name}` }, `${name} `, size);
  }

  // ---- the block in words
  function frameList(title, stack) {
    const frames = H.stacks[stack].map((frame) => H.frames[frame].split("\n"));
    const item = ([name, where]) =>
      h("li", {}, h("code", {}, name), h("span", { class: "rt-dim" }, ` ${where.split("/").at(-1)}`));
    return frames.length ? [heading(title), h("ol", { class: "rt-frames" }, frames.map(item))] : [];
  }
  const stackOfEvent = () => (step() ? frameList("Where the event comes from", H.stack[step() - 1]) : []);
  const eventLink = (t, otherwise) =>
    t > 0 && t <= last ? linkButton(`event ${numberWithCommas(t)}`, () => jump(t)) : otherwise;
  function showDetail() {
    const address = hovered ?? picked();
    const life = address === null ? blockOfEvent(step()) : history.at(address);
    detail.replaceChildren(...(life < 0 ? nothingThere(address) : blockFacts(life, address === null)));
  }
  function nothingThere(address) {
    const facts = H.outOfMemory[step()];
    if (address === null && facts) return [...shortage(facts), ...stackOfEvent()];
    const title = h("p", { class: "rt-dtitle" }, address === null ? "No block" : addressText(address));
    return address === null ? [title, ...stackOfEvent()] : [title, h("p", {}, "Nothing lies there now.")];
  }
  // What a request is too large for, one bar below the other.
  function shortage(facts) {
    const one = facts.free_blocks === 1;
    const amounts = [
      ["wanted, in one piece", facts.rounded_size, "wanted"],
      ["largest free block", facts.largest_free, "largest"],
      [one ? "all free, in 1 block" : `all free, in ${facts.free_blocks} blocks`, facts.free, "free"],
      ["free in other pools or on other streams", facts.free_elsewhere || null, "free"],
      ["the driver has left", facts.device_free, "driver"],
      ["allowed by the memory fraction", facts.limit, "driver"],
    ].filter(([, bytes]) => bytes !== null && bytes !== undefined);
    const most = Math.max(...amounts.map(([, bytes]) => bytes), 1);
    const bar = (bytes, kind) =>
      h("span", { class: `rt-measure rt-measure-${kind}`, style: `width:${(100 * bytes) / most}%`, "aria-hidden": "true" });
    const asked = facts.requested_size;
    return [
      h("p", { class: "rt-dtitle" }, "Out of memory"),
      factList([["asked for", asked === null || asked === undefined ? null : `${numberWithCommas(asked)} B`]]),
      h(
        "dl",
        { class: "rt-measures" },
        amounts.flatMap(([name, bytes, kind]) => [h("dt", {}, name), h("dd", {}, sizeText(bytes), bar(bytes, kind))]),
      ),
    ];
  }
  // A plain free is two events, too: the block is back in its pool with the second.
  function stateOf(life, owner) {
    const goesBack = STATES[H.lifeState[life]] === WAITS && history.freed[owner] === step() + 1;
    return goesBack ? "freed, back in its pool with the next event" : STATES[H.lifeState[life]];
  }
  function blockFacts(life, ofEvent) {
    const [address, size, stream, kind, pool, expandable] = H.rows[H.lifeRow[life]];
    const owner = H.lifeOwner[life] - 1,
      used = owner >= 0;
    const stack = used ? frameList("Allocated by", H.allocStack[owner]) : ofEvent ? stackOfEvent() : [];
    return [
      h("p", { class: "rt-dtitle" }, addressText(history.startOf(life))),
      factList([
        ["block", `${sizeText(history.sizeOf(life))}, ${stateOf(life, owner)}`],
        ["asked for", used ? `${numberWithCommas(H.allocSize[owner])} B` : null],
        ["lost", used ? `${sizeText(history.wasteOf(life))} to rounding` : null],
        ["segment", `${sizeText(size)} at ${address}${expandable ? ", expandable" : ""}`],
        ["pool", `${pool ? `private pool ${pool.join(", ")}, ` : ""}${kind} blocks`],
        ["stream", stream ? streamText(stream).slice(7) : "0, the default stream"],
        ["allocated", used ? eventLink(H.allocBirth[owner], "before the history") : null],
        ["free again", used ? eventLink(history.freed[owner], "not within the history") : null],
      ]),
      ...stack,
    ];
  }
  function streamLegend() {
    const entry = (stream) => [`rt-m-${rows.streamColour.get(stream)}`, streamText(stream)];
    return H.streams.slice(0, 12).map(entry);
  }

  // ---- drawing
  function update() {
    history.goTo(step());
    play.show(...sentence(step()));
    totals.replaceChildren(...SERIES.map(totalOf));
    rows.layOut();
    const life = blockOfEvent(step());
    if (life >= 0 && picked() === null) rows.reach(life);
    rows.draw();
    chart.draw(step());
    showDetail();
    if (matches.length) sayFound();
  }
  function redraw() {
    ink.read();
    colours.show();
    widths.show();
    const used = look().byStream ? streamLegend() : [["rt-m-blue", "allocated"]];
    const others = [
      ["rt-m-wait", "freed, not yet in its pool: often it waits for other streams"],
      ["rt-m-free", "free"],
      ["rt-m-lost", "lost to rounding"],
    ];
    legends.replaceChildren(legend([...used, ...others]));
    chart.drawLines(matches);
    update();
  }
  const watcher = new ResizeObserver(() => {
    if (chart.outgrown() || rows.outgrown()) redraw();
  });
  watcher.observe(chart.box);
  watcher.observe(rows.box);
  const theme = new MutationObserver(redraw);
  const themes = { attributes: true, attributeFilter: ["data-theme", "data-jp-theme-light", "class"] };
  for (const element of [document.documentElement, document.body]) theme.observe(element, themes);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", redraw);
  const unbindLook = bind(model, ["colour", "scale"], redraw);
  const unbind = bind(model, ["step", "address"], update);
  return () => {
    play.stop();
    watcher.disconnect();
    theme.disconnect();
    dark.removeEventListener("change", redraw);
    unbind();
    unbindLook();
  };
}

export default { render };
