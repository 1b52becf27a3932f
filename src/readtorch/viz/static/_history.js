// The allocator explorer's data: unpacking it, moving through it, searching it. Nothing here draws.

const UNIT = 512; // addresses and sizes of blocks are counted in it
const FREE = 0,
  ACTIVE = 1,
  WAITING = 2;
const KEYFRAME = 1000; // events between two lists of all that lives

const ARRAYS = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, f8: Float64Array };

function sizeText(n) {
  for (const [power, unit] of [[30, "GiB"], [20, "MiB"], [10, "KiB"]])
    if (n >= 2 ** power) return `${Number((n / 2 ** power).toPrecision(4))} ${unit}`;
  return `${n} B`;
}
const addressText = (n) => `0x${n.toString(16)}`;
const numberWithCommas = (n) => n.toLocaleString("en-US");

// ---- unpacking: see allocator_history.py

async function inflate(text) {
  const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

function unshuffle(bytes, Type, length) {
  const width = Type.BYTES_PER_ELEMENT,
    plain = new Uint8Array(bytes.length);
  for (let at = 0, b = 0; b < width; b++) for (let i = 0; i < length; i++) plain[i * width + b] = bytes[at++];
  return new Type(plain.buffer);
}

async function unpack(data) {
  const [bytes, tables] = await Promise.all([inflate(data.numbers), inflate(data.tables)]);
  const columns = {};
  let at = 0;
  for (const [name, type, length] of data.columns) {
    const Type = ARRAYS[type],
      end = at + length * Type.BYTES_PER_ELEMENT;
    columns[name] = unshuffle(bytes.subarray(at, end), Type, length);
    at = end;
  }
  return { ...columns, ...JSON.parse(new TextDecoder().decode(tables)) };
}

// ---- the moments: moment t is what there is after t events

function makeHistory(h, last) {
  const lives = h.lifeRow.length;
  const born = new Uint32Array(lives),
    died = new Uint32Array(lives);
  for (let i = 0, t = 0; i < lives; i++) {
    born[i] = t += h.lifeBirth[i];
    died[i] = t + h.lifeLength[i];
  }
  // lives are sorted by birth; those that end at t are byDeath[endsAt[t] … endsAt[t + 1])
  const beginsAt = firstOf(born, last + 2),
    endsAt = firstOf(died, last + 2);
  const byDeath = new Uint32Array(lives),
    next = endsAt.slice();
  for (let i = 0; i < lives; i++) byDeath[next[died[i]]++] = i;

  function firstOf(times, length) {
    const first = new Uint32Array(length + 1);
    for (const t of times) first[t + 1]++;
    for (let t = 0; t < length; t++) first[t + 1] += first[t];
    return first;
  }

  const base = h.rows.map(([address]) => Number(address));
  const startOf = (life) => base[h.lifeRow[life]] + h.lifeOffset[life] * UNIT;
  const sizeOf = (life) => h.lifeSize[life] * UNIT;

  // ---- what lives now: a dense list, and everybody's place in it
  const live = new Uint32Array(lives),
    place = new Int32Array(lives).fill(-1),
    inRow = new Uint32Array(h.rows.length);
  let count = 0,
    now = 0;
  function add(life) {
    place[life] = count;
    live[count++] = life;
    inRow[h.lifeRow[life]]++;
  }
  function remove(life) {
    const hole = place[life],
      moved = live[--count];
    live[hole] = moved;
    place[moved] = hole;
    place[life] = -1;
    inRow[h.lifeRow[life]]--;
  }
  function forward() {
    now++;
    for (let k = endsAt[now]; k < endsAt[now + 1]; k++) remove(byDeath[k]);
    for (let i = beginsAt[now]; i < beginsAt[now + 1]; i++) add(i);
  }
  function backward() {
    for (let i = beginsAt[now]; i < beginsAt[now + 1]; i++) remove(i);
    for (let k = endsAt[now]; k < endsAt[now + 1]; k++) add(byDeath[k]);
    now--;
  }
  function load(keyframe) {
    while (count) remove(live[count - 1]);
    keyframe.forEach(add);
  }

  // ---- one walk through everything: keyframes and totals
  const series = () => new Float64Array(last + 1);
  const totals = { allocated: series(), active: series(), reserved: series() };
  const keyframes = [];
  const balance = (life, sign) => {
    const size = sign * sizeOf(life),
      state = h.lifeState[life];
    totals.reserved[now] += size;
    if (state !== FREE) totals.active[now] += size;
    if (state === ACTIVE) totals.allocated[now] += size;
  };
  for (let i = 0; i < beginsAt[1]; i++) {
    add(i);
    balance(i, 1);
  }
  keyframes.push(live.slice(0, count));
  while (now < last) {
    forward();
    for (const values of Object.values(totals)) values[now] = values[now - 1];
    for (let k = endsAt[now]; k < endsAt[now + 1]; k++) balance(byDeath[k], -1);
    for (let i = beginsAt[now]; i < beginsAt[now + 1]; i++) balance(i, 1);
    if (now % KEYFRAME === 0) keyframes.push(live.slice(0, count));
  }

  function goTo(t) {
    if (Math.abs(t - now) > KEYFRAME) {
      const k = Math.min(Math.round(t / KEYFRAME), keyframes.length - 1);
      load(keyframes[k]);
      now = k * KEYFRAME;
    }
    while (now < t) forward();
    while (now > t) backward();
  }

  // The block in whose bytes the address lies, or -1.
  function at(address) {
    for (let k = 0; k < count; k++) {
      const start = startOf(live[k]);
      if (start <= address && address < start + sizeOf(live[k])) return live[k];
    }
    return -1;
  }

  // What is in the block beyond what was asked for; 0 if nobody has it.
  const wasteOf = (life) => (h.lifeOwner[life] ? sizeOf(life) - h.allocSize[h.lifeOwner[life] - 1] : 0);

  // ---- when an allocation ended
  const freed = new Uint32Array(h.allocBirth.length);
  for (let i = 0; i < lives; i++) {
    const owner = h.lifeOwner[i];
    if (owner && died[i] <= last && died[i] > freed[owner - 1]) freed[owner - 1] = died[i];
    if (owner && died[i] > last) freed[owner - 1] = last + 1; // alive at the end
  }

  const driver = new Set(h.actions.map((name, i) => (/^segment|^oom/.test(name) ? i : -1)));
  const driverEvents = [...h.action.keys()].filter((i) => driver.has(h.action[i])).map((i) => i + 1);
  const outOfMemory = driverEvents.filter((t) => h.actions[h.action[t - 1]] === "oom");

  return {
    goTo, at, startOf, sizeOf, wasteOf, totals, last, inRow, driverEvents, outOfMemory, born, died, freed,
    live: () => live.subarray(0, count),
  };
}

// ---- search: numbers of the events that match, ascending

function readSize(text) {
  const match = text.match(/^([\d,.]+)\s*(b|bytes|kib|mib|gib|k|m|g|kb|mb|gb)?$/i);
  if (!match) return null;
  const power = { k: 10, m: 20, g: 30 }[(match[2] || "b")[0].toLowerCase()] ?? 0;
  return { bytes: Number(match[1].replace(/,/g, "")) * 2 ** power };
}

const isAddress = (text) => /^\s*0x[0-9a-f]+\s*$/i.test(text);

function search(h, query) {
  const text = query.trim().toLowerCase();
  if (!text) return [];
  const address = isAddress(text) ? Number(text) : null;
  const size = readSize(text);
  const named = (table) => new Set([...table.keys()].filter((i) => table[i].toLowerCase().includes(text)));
  const frames = named(h.frames);
  const stacks = new Set([...h.stacks.keys()].filter((i) => h.stacks[i].some((frame) => frames.has(frame))));
  const actions = named(h.actions),
    reasons = named(h.reasons);
  const oom = h.actions.indexOf("oom");
  const found = [];
  for (let i = 0; i < h.action.length; i++) {
    const matches =
      address !== null
        ? h.action[i] !== oom && h.address[i] <= address && address < h.address[i] + Math.max(1, h.size[i])
        : size !== null
          ? h.size[i] === size.bytes || sizeText(h.size[i]) === sizeText(size.bytes)
          : actions.has(h.action[i]) || stacks.has(h.stack[i]) || reasons.has(h.reason[i]);
    if (matches) found.push(i + 1);
  }
  return found;
}
