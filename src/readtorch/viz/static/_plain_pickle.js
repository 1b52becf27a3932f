// Reads a pickle that may be anybody's: dictionaries, lists, numbers and texts, as viz/memory_snapshot.py does. No
// instruction that names, makes or calls anything else is known here, so no file can ask for it. A dictionary becomes a Map.

const MARK = Symbol("mark");
const MOST_TEXT = 1 << 28;

function readPlainPickle(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const stack = [],
    memo = new Map();
  let at = 0;
  const damaged = (why) => new Error(`This file is no snapshot: ${why} (at byte ${at}).`);
  function take(count) {
    if (count > MOST_TEXT || at + count > bytes.length) throw damaged("it ends too early");
    at += count;
    return at - count;
  }
  const byte = () => bytes[take(1)];
  const text = (count) => {
    const from = take(count);
    return new TextDecoder().decode(bytes.subarray(from, from + count));
  };
  const push = (value) => stack.push(value);
  function pop() {
    if (!stack.length || stack.at(-1) === MARK) throw damaged("a value is missing");
    return stack.pop();
  }
  function toMark() {
    const from = stack.lastIndexOf(MARK);
    if (from < 0) throw damaged("a mark is missing");
    const values = stack.splice(from);
    return values.slice(1);
  }
  function top(isRight) {
    if (!stack.length || !isRight(stack.at(-1))) throw damaged("an instruction finds a value of another kind");
    return stack.at(-1);
  }
  const isMap = (value) => value instanceof Map;
  function put(pairs) {
    const map = top(isMap);
    if (pairs.length % 2) throw damaged("a key has no value");
    for (let i = 0; i < pairs.length; i += 2) map.set(pairs[i], pairs[i + 1]);
  }
  function whole(count) {
    let value = 0n;
    const from = take(count);
    for (let i = count - 1; i >= 0; i--) value = value * 256n + BigInt(bytes[from + i]);
    return Number(count && bytes[from + count - 1] > 127 ? value - (1n << BigInt(8 * count)) : value);
  }
  const remember = (place) => memo.set(place, top((value) => value !== MARK));
  function recall(place) {
    if (!memo.has(place)) throw damaged("it refers to a value that is not there");
    push(memo.get(place));
  }
  const tuple = (count) => push(Array.from({ length: count }, pop).reverse());
  const longText = () => text(Number(view.getBigUint64(take(8), true)));
  const instructions = {
    0x80: () => {
      if (![2, 3, 4, 5].includes(byte())) throw damaged("a protocol of pickle that snapshots are not written in");
    },
    0x95: () => take(8),
    0x94: () => remember(memo.size),
    0x88: () => push(true),
    0x89: () => push(false),
    0x8a: () => push(whole(byte())),
    0x8c: () => push(text(byte())),
    0x8d: () => push(longText()),
    0x85: () => tuple(1),
    0x86: () => tuple(2),
    0x87: () => tuple(3),
    "(": () => push(MARK),
    ")": () => push([]),
    "]": () => push([]),
    "}": () => push(new Map()),
    N: () => push(null),
    J: () => push(view.getInt32(take(4), true)),
    K: () => push(byte()),
    M: () => push(view.getUint16(take(2), true)),
    G: () => push(view.getFloat64(take(8), false)),
    X: () => push(text(view.getUint32(take(4), true))),
    q: () => remember(byte()),
    r: () => remember(view.getUint32(take(4), true)),
    h: () => recall(byte()),
    j: () => recall(view.getUint32(take(4), true)),
    t: () => push(toMark()),
    a: () => {
      const value = pop();
      top(Array.isArray).push(value);
    },
    e: () => {
      const values = toMark(),
        list = top(Array.isArray);
      for (const value of values) list.push(value);
    },
    s: () => {
      const value = pop(),
        key = pop();
      put([key, value]);
    },
    u: () => put(toMark()),
  };
  const known = new Map(Object.entries(instructions).map(([code, run]) => [/^\d+$/.test(code) ? +code : code.charCodeAt(0), run]));
  for (;;) {
    const code = byte();
    if (code === 0x2e) return pop();
    const run = known.get(code);
    if (!run) throw damaged(`instruction 0x${code.toString(16)} makes more than plain data, and is refused`);
    run();
  }
}
