// An event file, bit by bit: its bytes, coloured by what they are for, and what a reader says of each record.
const BYTES_A_ROW = 16;
const LOOKS = { length: "rt-is-plain", data: "rt-is-pale", "sum of the length": "rt-is-gold", "sum of the data": "rt-is-gold" };
const STATES = { read: "read", wrong: "never written", stops: "stops", waits: "waits" };

const hexByte = (byte) => byte.toString(16).padStart(2, "0");
const seenByte = (byte) => (byte > 32 && byte < 127 ? String.fromCharCode(byte) : "·");

function bytesTable({ bytes, parts, byte, changed }, { set, inputs }) {
  const choose = (to) => () => set({ byte: Math.max(0, Math.min(bytes.length - 1, to)), bit: inputs.bit === "none" ? "6" : inputs.bit });
  const look = (i) => (i === byte && changed ? "rt-is-pick" : LOOKS[parts[i][1]]);
  const row = (start) => {
    const places = Array.from({ length: BYTES_A_ROW }, (_, i) => start + i).filter((i) => i < bytes.length);
    const text = places.map((i) => seenByte(bytes[i])).join("");
    return h("tr", {}, h("th", { scope: "row" }, start),
      places.map((i) => h("td", { class: look(i), title: `byte ${i}: ${parts[i][1]} of record ${parts[i][0]}`, onclick: choose(i) }, hexByte(bytes[i]))),
      h("td", { class: "rt-ef-text", colspan: 1 + BYTES_A_ROW - places.length }, text)); // prettier-ignore
  };
  const rows = Array.from({ length: Math.ceil(bytes.length / BYTES_A_ROW) }, (_, i) => row(i * BYTES_A_ROW));
  const box = h("div", {
    tabindex: 0, role: "slider", "data-focus": "bytes", "aria-label": "byte", "aria-valuemin": 0, "aria-valuemax": bytes.length - 1, "aria-valuenow": byte,
    "aria-valuetext": `byte ${byte}, ${parts[byte][1]} of record ${parts[byte][0]}: ${hexByte(bytes[byte])}`,
  }, h("table", { class: "rt-ef-bytes", "aria-hidden": "true" }, h("tbody", {}, rows))); // prettier-ignore
  onKeys(box, {
    ArrowLeft: choose(byte - 1), ArrowRight: choose(byte + 1), ArrowUp: choose(byte - BYTES_A_ROW), ArrowDown: choose(byte + BYTES_A_ROW),
    Home: choose(0), End: choose(bytes.length - 1),
  }); // prettier-ignore
  return box;
}

function said({ rows }) {
  const line = ({ text, state }) => h("li", { class: state === "read" ? "rt-is-pale" : "rt-is-gold" }, h("b", {}, `${STATES[state]}: `), text);
  return h("ol", { class: "rt-ef-said" }, rows.map(line));
}

const key = () =>
  h("p", { class: "rt-ef-key" }, [["length", "length"], ["checksum", "sum of the data"], ["data", "data"]].map(([words, part]) => h("span", { class: LOOKS[part] }, words))); // prettier-ignore

const draw = (parts) => h("div", { class: "rt-ef" }, bytesTable(parts.result, parts), key(), said(parts.result));

export default { render: figure(model, draw) };
