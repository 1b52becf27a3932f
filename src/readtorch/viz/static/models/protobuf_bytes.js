// The bytes of a small ONNX file, decoded: as figures/protobuf_bytes.py. Numbers of 64 bits are BigInt.
const MOST = 160;
const SCHEMA = {
  Model: { 1: ["ir_version", "int"], 2: ["producer_name", "text"], 3: ["producer_version", "text"], 7: ["graph", "Graph"], 8: ["opset_import", "OperatorSetId"] },
  OperatorSetId: { 1: ["domain", "text"], 2: ["version", "int"] },
  Graph: { 1: ["node", "Node"], 2: ["name", "text"], 5: ["initializer", "Tensor"], 11: ["input", "ValueInfo"], 12: ["output", "ValueInfo"] },
  Node: { 1: ["input", "text"], 2: ["output", "text"], 3: ["name", "text"], 4: ["op_type", "text"], 5: ["attribute", "Attribute"] },
  Attribute: { 1: ["name", "text"], 2: ["f", "float"], 3: ["i", "int"], 4: ["s", "bytes"], 20: ["type", "int"] },
  Tensor: { 1: ["dims", "int"], 2: ["data_type", "int"], 8: ["name", "text"], 9: ["raw_data", "bytes"] },
  ValueInfo: { 1: ["name", "text"], 2: ["type", "Type"] },
  Type: { 1: ["tensor_type", "TensorType"] },
  TensorType: { 1: ["elem_type", "int"], 2: ["shape", "Shape"] },
  Shape: { 1: ["dim", "Dimension"] },
  Dimension: { 1: ["dim_value", "int"], 2: ["dim_param", "text"] },
}; // prettier-ignore
const WIRES = { int: 0, float: 5 };
const SIZES = { 1: 8, 5: 4 };
const WANTED = `Two hexadecimal digits a byte, 1 to ${MOST} bytes.`;

function bytesOf(words) {
  const digits = words.replace(/\\x|\b0[xX]|[\s,]+/g, "");
  if (!/^([0-9a-fA-F]{2})+$/.test(digits) || digits.length > 2 * MOST) refuse(WANTED);
  return digits.match(/../g).map((pair) => parseInt(pair, 16));
}

function varint(data, at, end) {
  let number = 0n;
  for (let count = 0; count < 10; count++) {
    if (at + count >= end) refuse(`Byte ${at}: a number begins here, and the message ends before it does.`);
    number |= BigInt(data[at + count] & 127) << BigInt(7 * count);
    if (data[at + count] < 128) return [BigInt.asUintN(64, number), at + count + 1];
  }
  return refuse(`Byte ${at}: a number is longer than 10 bytes.`);
}

function field(data, start, end) {
  let [tag, at] = varint(data, start, end);
  const tagged = at,
    number = tag >> 3n,
    wire = Number(tag & 7n);
  if (!(0n < number && number < 2n ** 29n)) refuse(`Byte ${start}: there is no field ${number}.`);
  if (wire === 0) {
    const [value, stop] = varint(data, at, end);
    return { number: Number(number), wire, value, tagged, at, stop };
  }
  let size = BigInt(SIZES[wire] ?? 0);
  if (wire === 2) [size, at] = varint(data, at, end);
  else if (!(wire in SIZES)) refuse(`Byte ${start}: the wire types are 0, 1, 2 and 5, and this tag says ${wire}.`);
  if (BigInt(at) + size > BigInt(end)) refuse(`Byte ${start}: ${size} bytes should follow, and there are ${end - at}.`);
  return { number: Number(number), wire, value: null, tagged, at, stop: at + Number(size) };
}

const twoDigits = (b) => b.toString(16).padStart(2, "0");
const shownByte = (b) => (b >= 32 && b < 127 && b !== 92 ? String.fromCharCode(b) : `\\x${twoDigits(b)}`);

function rowsOf(data, kind, start, end, depth, rows = []) {
  while (start < end) {
    const { number, wire, value, tagged, at, stop } = field(data, start, end);
    let [name, what] = SCHEMA[kind][number] ?? ["", ""];
    if (wire !== (WIRES[what] ?? 2)) [name, what] = ["", ""];
    const content = data.slice(at, stop);
    const row = { from: start, tagged, at, to: stop, depth, number, wire, name, value: "" };
    rows.push(row);
    if (!what) row.value = `${(value === null ? content.map(twoDigits).join(" ") : String(value)) || "empty"} (unknown, skipped)`;
    else if (what in SCHEMA) rowsOf(data, what, at, stop, depth + 1, rows);
    else if (what === "int") row.value = String(BigInt.asIntN(64, value));
    else if (what === "float") row.value = content.map(twoDigits).join(" ");
    else row.value = `"${content.map(shownByte).join("")}"`;
    start = stop;
  }
  return rows;
}

function said(rows) {
  const parts = [];
  rows.forEach((row, i) => {
    if (row.name !== "node" || row.depth !== 1) return;
    const inner = rows.slice(i + 1),
      count = inner.findIndex((other) => other.depth <= 1);
    const values = inner.slice(0, count < 0 ? inner.length : count).filter((other) => other.depth === 2);
    const of = (name) => values.filter((other) => other.name === name).map((other) => other.value.replace(/^"+|"+$/g, ""));
    parts.push(`${of("output").join(", ")} = ${of("op_type").slice(-1).join("")}(${of("input").join(", ")})`);
  });
  return parts.join("; ") || "no node";
}

function role(row, chosen) {
  const named = `field ${row.number}${row.name ? `, ${row.name}` : ""}`;
  if (chosen >= row.at) return `in the value of ${named}`;
  if (chosen >= row.tagged) return `the length of ${named}: ${row.to - row.at}`;
  return `the tag of ${named}: ${8 * row.number + row.wire} = 8 · ${row.number} + ${row.wire}`;
}

const model = (inputs) => {
  const data = bytesOf(inputs.bytes);
  const rows = rowsOf(data, "Model", 0, data.length, 0);
  const chosen = Math.min(inputs.at, data.length - 1);
  const holder = rows.findLastIndex((row) => row.from <= chosen && chosen < row.to);
  return {
    bytes: data.map(twoDigits),
    rows,
    chosen,
    holder,
    say: `${data.length} bytes, ${rows.length} fields: ${said(rows)}. Byte ${chosen}, ${twoDigits(data[chosen])}, is ${role(rows[holder], chosen)}.`,
  };
};
