// The program in a file that the reader drops: the record data.pkl of a zip, or the whole of a plain pickle.
// A file may be larger than memory, so only the parts that are needed are read.
const SLICE_OF_END = 65_557 + 76; // the longest end of a zip, with the 64-bit records before it
const MOST_BYTES = 60_000;

const viewOf = async (blob) => new DataView(await blob.arrayBuffer());
const count64 = (view, at) => Number(view.getBigUint64(at, true));

async function programOf(file) {
  const start = await viewOf(file.slice(0, 4));
  if (start.byteLength < 4 || start.getUint32(0, true) !== 0x04034b50) return limited(file.slice(0, MOST_BYTES + 1));
  const record = await recordOf(file, "/data.pkl");
  if (!record) throw new Error("This zip has no record data.pkl.");
  const header = await viewOf(file.slice(record.place, record.place + 30));
  const begin = record.place + 30 + header.getUint16(26, true) + header.getUint16(28, true);
  const data = file.slice(begin, begin + record.packed);
  if (record.method === 0) return limited(data);
  if (record.method !== 8) throw new Error("data.pkl is compressed in a way that browsers do not know.");
  return limited(await new Response(data.stream().pipeThrough(new DecompressionStream("deflate-raw"))).blob());
}

async function limited(blob) {
  if (blob.size > MOST_BYTES) throw new Error(`The program is longer than ${commas(MOST_BYTES)} bytes.`);
  return new Uint8Array(await blob.arrayBuffer());
}

// Where a record stands, by the index at the zip's end: { place, packed, method }.
async function recordOf(file, ending) {
  const offset = Math.max(0, file.size - SLICE_OF_END);
  const tail = await viewOf(file.slice(offset));
  let end = tail.byteLength - 22;
  while (end >= 0 && tail.getUint32(end, true) !== 0x06054b50) end--;
  if (end < 0) throw new Error("This zip has no index: it is cut off.");
  let [size, place] = [tail.getUint32(end + 12, true), tail.getUint32(end + 16, true)];
  if (end >= 20 && tail.getUint32(end - 20, true) === 0x07064b50) {
    const at = count64(tail, end - 12) - offset;
    if (at >= 0) [size, place] = [count64(tail, at + 40), count64(tail, at + 48)];
  }
  return entryOf(await viewOf(file.slice(place, place + size)), ending);
}

function entryOf(index, ending) {
  for (let at = 0; at + 46 <= index.byteLength && index.getUint32(at, true) === 0x02014b50; ) {
    const [name, extra, comment] = [28, 30, 32].map((i) => index.getUint16(at + i, true));
    const letters = new Uint8Array(index.buffer, index.byteOffset + at + 46, name);
    if (new TextDecoder().decode(letters).endsWith(ending))
      return { method: index.getUint16(at + 10, true), packed: index.getUint32(at + 20, true), place: placeOf(index, at, name, extra) };
    at += 46 + name + extra + comment;
  }
  return null;
}

// A place beyond 4 GB stands in the extra field, behind the sizes that are there too.
function placeOf(index, at, name, extra) {
  const place = index.getUint32(at + 42, true);
  if (place !== 0xffffffff) return place;
  const large = [20, 24].filter((i) => index.getUint32(at + i, true) === 0xffffffff).length;
  for (let i = at + 46 + name; i < at + 46 + name + extra; i += 4 + index.getUint16(i + 2, true))
    if (index.getUint16(i, true) === 1) return count64(index, i + 4 + 8 * large);
  throw new Error("The zip's index is damaged.");
}

// Bytes as Python writes them between the quotes of b"…".
const NAMED_BYTES = { 9: "\\t", 10: "\\n", 13: "\\r", 92: "\\\\" };
function writtenBytes(data) {
  const letter = (byte, i) => {
    const atEnd = byte === 32 && (i === 0 || i === data.length - 1);
    if (byte in NAMED_BYTES) return NAMED_BYTES[byte];
    return byte < 32 || byte > 126 || atEnd ? `\\x${byte.toString(16).padStart(2, "0")}` : String.fromCharCode(byte);
  };
  return Array.from(data, letter).join("");
}
