// A snapshot as bands over time: as allocation_bands.py. And where each band lies.

const CATEGORIES = ["parameters", "optimizer", "forward", "backward", "elsewhere"];
const [PARAMETERS, OPTIMIZER, FORWARD, BACKWARD, ELSEWHERE] = CATEGORIES.keys();
const MAKES_PARAMETERS = ["_apply", "__init__", "reset_parameters", "empty_like", "convert"];
const MOST_BANDS = 1000; // the largest get a band each; the rest is one band on top

function noSnapshot(what) {
  throw new Error(`This file is no snapshot of the allocator: ${what}.`);
}
// A dictionary's value, which must be of that kind; `otherwise` where there is none.
function field(map, name, kind, otherwise) {
  if (!(map instanceof Map)) noSnapshot(`${name} is asked of what is no dictionary`);
  const value = map.get(name) ?? otherwise;
  if (kind === "list" ? !Array.isArray(value) : typeof value !== kind || Number.isNaN(value)) noSnapshot(`${name} must be a ${kind}`);
  return value;
}

const nameAndPlace = (frame) => [field(frame, "name", "string"), field(frame, "filename", "string")];
function categoryOf(frames) {
  for (const [name, file] of frames.map(nameAndPlace)) {
    if (file.includes("/optim/")) return OPTIMIZER;
    if (name === "forward") return FORWARD;
    if (MAKES_PARAMETERS.includes(name) && file.includes("/nn/")) return PARAMETERS;
    if (file.includes("/autograd/") || name.includes("torch::autograd::")) return BACKWARD;
  }
  return frames.length && nameAndPlace(frames.at(-1))[1].endsWith("threading.py") ? BACKWARD : ELSEWHERE;
}

// Each text and each stack once, by its number.
function makeTables() {
  const frames = new Map(),
    stacks = new Map(),
    read = new Map();
  const number = (table, key, value = key) => {
    if (!table.has(key)) table.set(key, [table.size, value]);
    return table.get(key)[0];
  };
  function stack(list) {
    if (read.has(list)) return read.get(list);
    const own = [];
    for (const frame of list) {
      const [name, file] = nameAndPlace(frame);
      if (file.endsWith("IPython/core/interactiveshell.py")) break;
      own.push(number(frames, `${name}\n${file.includes("ipykernel_") ? "cell" : file}:${field(frame, "line", "number")}`));
    }
    read.set(list, number(stacks, own.join(), own));
    return read.get(list);
  }
  const values = (table) => [...table.values()].map(([, value]) => value);
  return { stack, lists: () => ({ stacks: values(stacks), frames: values(frames) }) };
}

function bandsOf(snapshot, device = null) {
  const traces = field(snapshot, "device_traces", "list");
  if (!traces.some((trace) => trace.length))
    throw new Error("There is no history in this snapshot: call _record_memory_history() before the run.");
  device ??= traces.reduce((most, trace, i) => (trace.length > traces[most].length ? i : most), 0);
  const events = traces[device],
    tables = makeTables(),
    categories = new Map();
  function allocation(born, freed, size, entry) {
    const frames = field(entry, "frames", "list", []);
    if (!categories.has(frames)) categories.set(frames, categoryOf(frames));
    return [born, freed, size, tables.stack(frames), categories.get(frames)];
  }
  const end = events.length + 1,
    made = [],
    before = [],
    there = new Map();
  events.forEach((event, i) => {
    const action = field(event, "action", "string");
    if (action === "alloc") {
      there.set(field(event, "addr", "number"), made.length);
      made.push(allocation(i + 1, end, field(event, "size", "number"), event));
    } else if (action === "free_requested" || action === "free") {
      const address = field(event, "addr", "number"),
        place = there.get(address);
      if (place === undefined) before.push(allocation(0, i + 1, field(event, "size", "number"), event));
      else made[place][1] = i + 1;
      there.delete(address);
    }
  });
  for (const segment of field(snapshot, "segments", "list", []))
    for (const block of field(segment, "device", "number", 0) === device ? field(segment, "blocks", "list") : [])
      if (field(block, "state", "string") === "active_allocated" && !there.has(field(block, "address", "number")))
        before.push(allocation(0, end, field(block, "requested_size", "number"), block));
  return { device, events: events.length, allocations: [...before, ...made], ...tables.lists() };
}

// ---- where the bands lie

// What is in use after each event; the most, and when.
function totalsOf({ allocations, events }) {
  const total = new Float64Array(events + 2);
  for (const [born, freed, size] of allocations) {
    total[born] += size;
    total[freed] -= size;
  }
  for (let t = 1; t < total.length; t++) total[t] += total[t - 1];
  const most = total.reduce((a, b) => Math.max(a, b), 0);
  return { total, most: Math.max(most, 1), peak: total.indexOf(most) };
}

// Of the largest allocations between two events the pieces of their bands, [allocation, from, to, bytes below], and after each
// event how high they are together. A new band lies on top of all; where one ends, those above come down.
function layOutBands({ allocations, events }, first = 0, last = events) {
  const there = [...allocations.keys()].filter((i) => allocations[i][0] <= last && allocations[i][1] > first);
  const drawn = there.sort((a, b) => allocations[b][2] - allocations[a][2] || a - b).slice(0, MOST_BANDS).sort((a, b) => a - b);
  const changes = drawn.flatMap((i) => [[Math.max(allocations[i][0], first), 1, i], [Math.min(allocations[i][1], last + 1), 0, i]]); // prettier-ignore
  changes.sort((a, b) => a[0] - b[0] || a[1] - b[1] || a[2] - b[2]);
  const stack = [],
    from = new Map(),
    below = new Map(),
    pieces = [],
    covered = new Float64Array(events + 2);
  let height = 0,
    now = first;
  const close = (i, t) => {
    if (t > from.get(i)) pieces.push([i, from.get(i), t, below.get(i)]);
    from.set(i, t);
  };
  for (const [t, born, i] of changes) {
    covered.fill(height, now, t);
    now = t;
    const size = allocations[i][2];
    if (born) {
      stack.push(i);
      from.set(i, t);
      below.set(i, height);
      height += size;
      continue;
    }
    const place = stack.lastIndexOf(i);
    close(i, t);
    stack.splice(place, 1);
    for (const above of stack.slice(place)) {
      close(above, t);
      below.set(above, below.get(above) - size);
    }
    height -= size;
  }
  return { covered, pieces };
}
