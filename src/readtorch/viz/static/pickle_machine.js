// The pickle machine: the instructions, the stack with its top above, the memo, and the bytes where the machine is.
const [ROWS_OF_BYTES, BYTES_A_ROW, INSTRUCTIONS_SHOWN, STACK_IF_NARROW, MEMO_IF_NARROW] = [6, 8, 9, 4, 2];
const VERDICTS = {
  ok: "", done: "the result", runs: "runs code that is not on the list", refused: "refused", error: "stops with an error",
}; // prettier-ignore

const hexByte = (byte) => byte.toString(16).padStart(2, "0");
const seenByte = (byte) => (byte > 32 && byte < 127 ? String.fromCharCode(byte) : "·");

// The instructions around this step; those behind a refusal are there to be read, and not chosen.
function instructionList({ steps, unrun }, step, go, focus) {
  const all = [...steps, ...unrun];
  const first = Math.max(0, Math.min(step - 4, all.length - INSTRUCTIONS_SHOWN));
  const near = Math.max(1, Math.min(step, all.length - 2)); // the middle of those that a narrow window shows
  const rows = all.slice(first, first + INSTRUCTIONS_SHOWN).map((one, i) => {
    const number = first + i;
    const words = [h("span", { class: "rt-pm-at" }, one.at), " ", h("b", {}, one.name || "end"), " ", one.argument];
    return h("li", { class: Math.abs(number - near) > 1 ? "rt-wide-only" : null },
      number >= steps.length ? h("span", { class: "rt-pm-step rt-pm-unrun rt-dim" }, words) : h("button", {
        type: "button", class: `rt-pm-step rt-pm-${one.state} ${number === step ? "rt-is-pick" : ""}`, "data-focus": `step-${number}`,
        "aria-current": number === step ? "step" : null, onclick: () => go(number),
      }, words)); // prettier-ignore
  });
  const list = h("ol", { class: "rt-pm-list" }, rows);
  const along = (by) => () => {
    go(step + by);
    focus(`step-${Math.max(0, Math.min(steps.length - 1, step + by))}`);
  };
  onKeys(list, { ArrowDown: along(1), ArrowUp: along(-1) });
  const behind = unrun.length > 0 && h("span", { class: "rt-dim" }, "; what stands behind the stop is grey");
  return h("div", {}, h("p", { class: "rt-pm-head" }, "instructions", behind), list);
}

function stackOf(one) {
  const verdict = VERDICTS[one.state];
  const rows = one.stack.toReversed().map((value, i) =>
    h("li", { class: `${value.mark ? "rt-is-free" : "rt-is-pale"} ${i >= STACK_IF_NARROW ? "rt-wide-only" : ""}`.trim() }, value.words),
  );
  const below = (n, when) => n > 0 && rows.push(h("li", { class: `rt-dim ${when}` }, `${plural(n, "value")} below`));
  below(one.deeper, "rt-wide-only");
  below(one.deeper + one.stack.length - STACK_IF_NARROW, "rt-narrow-only");
  if (!rows.length) rows.push(h("li", { class: "rt-dim" }, "empty"));
  return h("div", {},
    h("p", { class: "rt-pm-head" }, "stack after it, top first", verdict && h("span", { class: `rt-pm-verdict rt-pm-${one.state}` }, verdict)),
    h("ol", { class: "rt-pm-list rt-pm-stack" }, rows)); // prettier-ignore
}

function memoOf(one) {
  const rows = one.memo.map(([place, words], i) =>
    h("li", { class: i < one.memo.length - MEMO_IF_NARROW ? "rt-wide-only" : null }, h("b", {}, place), ` ${words}`),
  );
  const others = (shown, when) => one.kept > shown && h("span", { class: when }, ` (and ${commas(one.kept - shown)} more)`);
  return h("div", { class: "rt-pm-memo" },
    h("p", { class: "rt-pm-head" }, "memo", others(one.memo.length, "rt-wide-only"), others(Math.min(one.memo.length, MEMO_IF_NARROW), "rt-narrow-only")),
    h("ul", { class: "rt-pm-list" }, rows.length ? rows : h("li", { class: "rt-dim" }, "empty"))); // prettier-ignore
}

function bytesTable({ bytes }, one) {
  const rows = Math.ceil(bytes.length / BYTES_A_ROW);
  const first = Math.max(0, Math.min(Math.floor(one.at / BYTES_A_ROW) - 1, rows - ROWS_OF_BYTES));
  const cell = (i, words) => {
    const here = i >= one.at && i < Math.max(one.end, one.at + 1);
    return h("td", { class: here ? (i === one.at ? "rt-is-pick" : "rt-is-pale") : null }, words);
  };
  const row = (number) => {
    const start = number * BYTES_A_ROW;
    const places = Array.from({ length: BYTES_A_ROW }, (_, i) => start + i);
    const cells = (words) => places.map((i) => (i < bytes.length ? cell(i, words(bytes[i])) : h("td", {})));
    return h("tr", { class: Math.abs(number - Math.floor(one.at / BYTES_A_ROW)) > 1 ? "rt-wide-only" : null }, h("th", { scope: "row" }, start), cells(hexByte), h("td", { class: "rt-pm-gap" }), cells(seenByte));
  };
  const shown = Array.from({ length: Math.min(rows, ROWS_OF_BYTES) }, (_, i) => row(first + i));
  return h("div", {}, h("p", { class: "rt-pm-head" }, `${plural(bytes.length, "byte")}`),
    h("table", { class: "rt-pm-bytes", "aria-label": "the bytes around this instruction" }, h("tbody", {}, shown))); // prettier-ignore
}

function changer(written, { set, go }) {
  const note = h("p", { class: "rt-pm-note", role: "status" });
  const run = (text) => {
    note.textContent = "";
    if (!set({ program: "own", bytes: text })) go(0);
  };
  const open = async (file) => {
    if (!file) return;
    try {
      run(writtenBytes(await programOf(file)));
    } catch (error) {
      note.textContent = error.message;
    }
  };
  const id = uniqueId("bytes");
  const area = h("textarea", { id, rows: 3, spellcheck: "false", "data-focus": "bytes", onchange: () => run(area.value) });
  area.value = written;
  area.addEventListener("keydown", (event) => event.stopPropagation());
  const picker = h("input", { type: "file", class: "rt-pm-file", "data-focus": "file", onchange: () => open(picker.files[0]) });
  const part = h("div", { class: "rt-pm-change" },
    h("label", { for: id }, "The bytes, as Python writes them. Change them, or drop a .pt file on the figure: it stays in your browser."), area,
    h("label", { class: "rt-pm-pick" }, "Open a file ", picker), note); // prettier-ignore
  return { part, open };
}

function draw({ result, step, set, go, focus }) {
  const one = result.steps[step];
  const { part, open } = changer(result.written, { set, go });
  return h("div", {
    class: "rt-pm",
    ondragover: (event) => event.preventDefault(),
    ondrop: (event) => {
      event.preventDefault();
      open(event.dataTransfer.files[0]);
    },
  }, instructionList(result, step, go, focus), stackOf(one), bytesTable(result, one), memoOf(one), part); // prettier-ignore
}

export default { render: figure(model, draw) };
