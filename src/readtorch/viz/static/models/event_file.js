// The bytes of an event file, and what a reader makes of them: as figures/event_file.py.
const LETTERS = /^[A-Za-z0-9_./-]+$/;
const FILE_VERSION = "brain.Event:2";

// ---- writing

const REMAINDERS = Array.from({ length: 256 }, (_, byte) => {
  for (let i = 0; i < 8; i++) byte = (byte >>> 1) ^ (byte & 1 ? 0x82f63b78 : 0);
  return byte >>> 0;
});
function maskedCrc(data) {
  let crc = 0xffffffff;
  for (const byte of data) crc = REMAINDERS[(crc ^ byte) & 255] ^ (crc >>> 8);
  crc = ~crc;
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0;
}

const letters = (text) => [...text].map((letter) => letter.charCodeAt(0));
const littleEndian = (number, size) => Array.from({ length: size }, (_, i) => Math.floor(number / 256 ** i) % 256);
const numberOf = (bytes) => bytes.reduceRight((sum, byte) => sum * 256 + byte, 0);
const varintOf = (number) => (number < 128 ? [number] : [(number % 128) + 128, ...varintOf(Math.floor(number / 128))]);
const nested = (number, content) => [number * 8 + 2, content.length, ...content]; // a field of kind 2
const floatBytes = (value) => [...new Uint8Array(new Float32Array([value]).buffer)];

function scalarEvent(tag, value, step) {
  const summary = nested(1, [...nested(1, letters(tag)), 0x15, ...floatBytes(value)]);
  return [...(step ? [0x10, ...varintOf(step)] : []), ...nested(5, summary)];
}
const PARTS = (size) => [[8, "length"], [4, "sum of the length"], [size, "data"], [4, "sum of the data"]]; // prettier-ignore
function recordOf(body) {
  const length = littleEndian(body.length, 8);
  return [...length, ...littleEndian(maskedCrc(length), 4), ...body, ...littleEndian(maskedCrc(body), 4)];
}

// ---- reading

// [number, where it ends], or null.
function readVarint(data, at) {
  let number = 0;
  for (let i = 0; i < 5 && at + i < data.length; i++) {
    number += (data[at + i] & 127) * 128 ** i;
    if (data[at + i] < 128) return [number, at + i + 1];
  }
  return null;
}

// A map from "number, kind" to the value, or null where the bytes are no list of fields.
function fieldsOf(data) {
  const found = new Map();
  for (let at = 0; at < data.length; ) {
    const key = readVarint(data, at);
    if (!key) return null;
    const kind = key[0] % 8,
      name = `${Math.floor(key[0] / 8)}, ${kind}`;
    at = key[1];
    if (kind === 0) {
      const value = readVarint(data, at);
      if (!value) return null;
      found.set(name, value[0]);
      at = value[1];
      continue;
    }
    const size = (kind === 2 ? readVarint(data, at) : { 1: [8, at], 5: [4, at] }[kind]) ?? [data.length, at];
    const end = size[0] + size[1];
    if (end > data.length) return null;
    found.set(name, data.slice(size[1], end));
    at = end;
  }
  return found;
}

function valueText(x) {
  if (Number.isNaN(x)) return "nan";
  const sign = x < 0 ? "-" : "";
  x = Math.abs(x);
  if (x >= 1e7) return `${sign}10,000,000 or more`;
  const units = Math.floor(x * 10000 + 0.5);
  if (units === 0 && x > 0) return "almost 0";
  const places = String(units % 10000).padStart(4, "0").replace(/0+$/, ""); // prettier-ignore
  const about = Math.fround(units / 10000) === x ? "" : "about ";
  return `${about}${sign}${Math.floor(units / 10000)}${places && `.${places}`}`;
}
const seenText = (data) => data.map((byte) => (byte > 32 && byte < 127 ? String.fromCharCode(byte) : "·")).join("");

function eventText(body) {
  const event = fieldsOf(body);
  if (!event) return "no list of fields";
  if (event.has("3, 2")) return `version ${seenText(event.get("3, 2"))}`;
  const summary = fieldsOf(event.get("5, 2") ?? []),
    value = summary?.size ? fieldsOf(summary.get("1, 2") ?? []) : null;
  if (!value?.has("2, 5")) return "no number";
  const number = valueText(new Float32Array(new Uint8Array(value.get("2, 5")).buffer)[0]);
  return `${seenText(value.get("1, 2") ?? [])} = ${number} at step ${event.get("0, 0") ?? event.get("2, 0") ?? 0}`;
}

const hex = (number) => number.toString(16).padStart(8, "0");
function sumDiffers(name, data, stored) {
  const [computed, found] = [maskedCrc(data), numberOf(stored)];
  if (computed === found) return null;
  return { text: `the ${name}: ${hex(computed)} computed, ${hex(found)} in the file: the reader stops`, state: "stops" };
}
function recordsOf(data, check) {
  const rows = [];
  const last = (text, state) => [...rows, { text, state }];
  for (let at = 0; at < data.length; ) {
    const rest = data.length - at,
      part = (from, to) => data.slice(at + from, at + to);
    if (rest < 12) return last("too few bytes for a length: the reader waits for more", "waits");
    const lengthBroken = check && sumDiffers("length", part(0, 8), part(8, 12));
    if (lengthBroken) return [...rows, lengthBroken];
    const size = numberOf(part(0, 8));
    if (12 + size + 4 > rest) return last("longer than the rest of the file: the reader waits for more", "waits");
    const dataBroken = check && sumDiffers("data", part(12, 12 + size), part(12 + size, 16 + size));
    if (dataBroken) return [...rows, dataBroken];
    rows.push({ text: eventText(part(12, 12 + size)), state: "read" });
    at += 16 + size;
  }
  return rows;
}

// ---- the figure

const model = ({ tag, value, global_step: step, bit, byte: asked, check }) => {
  if (!LETTERS.test(tag)) refuse("A tag has letters of the alphabet, digits and _ - . / here.");
  const bodies = [nested(3, letters(FILE_VERSION)), scalarEvent(tag, value, step), scalarEvent(tag, value / 2, step + 1)];
  const clean = bodies.flatMap(recordOf);
  const parts = bodies.flatMap((body, i) => PARTS(body.length).flatMap(([size, part]) => Array.from({ length: size }, () => [i + 1, part])));
  const data = [...clean],
    byte = Math.min(asked, clean.length - 1),
    changed = bit !== "none";
  if (changed) data[byte] ^= 1 << Number(bit);
  const right = recordsOf(clean, true).map(({ text }) => text);
  const rows = recordsOf(data, check);
  const [number, part] = parts[byte];
  rows.forEach((one, i) => {
    const hit = changed && part === "data" && i + 1 === number; // wrong even where the text is the same
    if (one.state === "read" && (hit || !right.includes(one.text))) one.state = "wrong";
  });
  const intact = rows.filter(({ state }) => state === "read").length;
  const what = changed ? `Bit ${bit} of byte ${byte} is flipped, in the ${part} of record ${number}.` : "Nothing is changed.";
  const wrong = rows.some(({ state }) => state === "wrong") ? " What else is read was never written." : "";
  const say = `${what} Of the 3 records ${intact} ${intact === 1 ? "is" : "are"} read as written.${wrong}`;
  return { bytes: data, parts, byte, changed, rows, say };
};
