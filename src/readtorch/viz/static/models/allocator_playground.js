// A program of tensors that come and go on a device of the reader's: as figures/allocator_playground.py, with the twin of the
// allocator in models/caching_allocator.js.

const MOST_STEPS = 60,
  STREAMS = 4,
  UNITS = { "": MIB, B: 1, K: 1024, M: MIB, G: 1024 ** 3 };

function amount(nbytes) {
  const [unit, name] = [[1024 ** 3, "GiB"], [MIB, "MiB"], [1024, "KiB"]].find(([one]) => nbytes >= one) ?? [1, "B"]; // prettier-ignore
  return `${Number(((nbytes / unit) * (1 + 1e-12)).toFixed(2))} ${name}`;
}

// ---- reading the program

const NAMES = "([a-z]\\w{0,3}(?:\\s*,\\s*[a-z]\\w{0,3})*)";
const FORMS = {
  make: new RegExp(`^${NAMES}\\s*=\\s*(\\d+(?:\\.\\d+)?|\\.\\d+)\\s*([BKMG]?)\\s*(?:@\\s*([0-9]))?$`),
  del: new RegExp(`^del\\s+${NAMES}$`),
  read: new RegExp(`^read\\s+${NAMES}\\s*@\\s*([0-9])$`),
  use: new RegExp(`^use\\s+${NAMES}\\s*@\\s*([0-9])$`),
  wait: /^wait\s*@\s*([0-9])$/,
  empty: /^empty$/,
};
const splitNames = (names) => names.split(",").map((name) => name.trim());

function readStream(piece, text) {
  if (Number(text) >= STREAMS) refuse(`“${piece}”: there are streams 0 to ${STREAMS - 1}.`);
  return Number(text);
}

const onAStream = (piece, names, stream) => splitNames(names).map((name) => ({ name, stream: readStream(piece, stream) }));

const READ_STATEMENT = {
  make: (piece, names, number, unit, stream) => {
    const size = Math.trunc(Number(number) * UNITS[unit]);
    if (size < 1) refuse(`“${piece}”: an empty tensor asks for no memory; here one has 1 byte to 64 GiB.`);
    if (!(size <= 64 * 1024 ** 3)) refuse(`“${piece}”: a tensor has at most 64 GiB here; a number without a unit is in MiB.`);
    return splitNames(names).map((name) => ({ name, size, stream: readStream(piece, stream ?? 0) }));
  },
  del: (piece, names) => splitNames(names).map((name) => ({ name })),
  read: onAStream,
  use: onAStream,
  wait: (piece, stream) => [{ stream: readStream(piece, stream) }],
  empty: () => [{}],
};

function readStatement(piece, statement) {
  for (const [kind, form] of Object.entries(FORMS)) {
    const match = form.exec(piece);
    if (match) return READ_STATEMENT[kind](piece, ...match.slice(1)).map((action) => ({ kind, statement, ...action }));
  }
  refuse(`“${piece}” is none of: a = 5, a,b = 512K @1, del a,b, read a @1, use a @1, wait @1, empty. Sizes are in MiB.`);
}

function readActions(code) {
  const statements = code.split(";").map((piece) => piece.trim()).filter(Boolean), // prettier-ignore
    actions = statements.flatMap(readStatement),
    there = new Set();
  if (actions.length < 1 || actions.length > MOST_STEPS)
    refuse(`The program makes and deletes, statement by statement: 1 to ${MOST_STEPS} steps. This one has ${actions.length}.`);
  for (const { kind, name, statement } of actions) {
    if (kind === "make") there.add(name);
    else if (["del", "read", "use"].includes(kind) && !there.has(name)) refuse(`“${statements[statement]}”: there is no ${name} at that point.`);
    if (kind === "del") there.delete(name);
  }
  return actions;
}

function written({ kind, name, size, stream }) {
  const at = stream ? ` @${stream}` : "";
  return { make: `${name} = ${amount(size ?? 0)}${at}`, del: `del ${name}`, read: `read ${name} @${stream}`, use: `use ${name} @${stream}`, wait: `wait @${stream}`, empty: "empty" }[kind];
}

// ---- running it

/** Whether a reading concerns a byte of these. */
const meets = (reading, address, size) => reading.address < address + size && address < reading.address + reading.size;

function act(allocator, blocks, readings, { kind, name, size, stream }) {
  const old = blocks.get(name);
  if (kind === "make") {
    const block = allocator.malloc(size, stream);
    if (!block) return true;
    blocks.set(name, block);
    if (old) allocator.free(old);
  } else if (["del", "read", "use"].includes(kind)) {
    if (!old) return true;
    if (kind === "use") allocator.recordStream(old, stream);
    else if (kind === "read") readings.push({ name, stream, address: old.address, size: old.size, event: allocator.device.record(stream), overwrittenBy: "" });
    else {
      blocks.delete(name);
      allocator.free(old);
    }
  } else if (kind === "wait") allocator.device.complete(stream);
  else allocator.emptyCache();
  return false;
}

/** The readings whose memory this action hands out, though they are not done. */
function handedOutTooEarly({ trace }, blocks, readings, { kind, name, stream }, failed) {
  const waited = trace.some(({ action }) => action === "segment_free"); // the driver has waited for the device
  readings.splice(0, Infinity, ...readings.filter(({ event }) => !waited && !event.done));
  if (kind !== "make" || failed) return [];
  const { address, size } = blocks.get(name),
    met = readings.filter((one) => one.stream !== stream && meets(one, address, size));
  met.forEach((one) => (one.overwrittenBy = name));
  return met;
}

function playStep(allocator, blocks, readings, action) {
  const replaced = action.kind === "make" && blocks.has(action.name),
    seen = action.kind === "wait" ? readings.filter((one) => one.overwrittenBy && one.stream === action.stream) : [];
  allocator.trace = [];
  const failed = act(allocator, blocks, readings, action),
    tooEarly = handedOutTooEarly(allocator, blocks, readings, action, failed),
    spoilt = readings.filter((one) => one.overwrittenBy),
    names = new Map([...blocks].map(([name, { address }]) => [address, name]));
  const segments = allocator.segments().map(({ blocks: parts, ...segment }) => ({
    ...segment,
    blocks: parts.map(({ address, size, state }) => ({
      address, size, state,
      name: state === "allocated" ? (names.get(address) ?? "") : "",
      early: state === "allocated" && spoilt.some((one) => meets(one, address, size)),
    })), // prettier-ignore
  }));
  const all = segments.flatMap((segment) => segment.blocks),
    sum = (state) => all.reduce((total, block) => total + (block.state === state ? block.size : 0), 0),
    driver = allocator.device.capacity - allocator.device.used;
  const step = {
    code: written(action), statement: action.statement, failed, segments, allocated: sum("allocated"), pending: sum("pending"), free: sum("free"), driver,
  }; // prettier-ignore
  const early = tooEarly.map((one) => ` Stream ${one.stream} may still read ${one.name} there: nobody told the allocator.`),
    late = seen.map((one) => ` It read ${one.overwrittenBy} where ${one.name} had been.`);
  return { step, say: said(action, allocator, failed, replaced, step) + early.join("") + late.join("") };
}

// ---- in words

const total = (trace, ...actions) => trace.reduce((sum, { action, size }) => sum + (actions.includes(action) ? size : 0), 0);

function said(action, { trace, config }, failed, replaced, step) {
  const { kind, name, stream } = action;
  if (failed && kind !== "make") return `There is no ${name}: it was not made.`;
  const back = total(trace, "segment_free", "segment_unmap");
  if (kind === "make") return ofMake(action, trace, failed, replaced, back, config, step);
  if (kind === "del") return ofDel(name, trace);
  if (kind === "use") return `The memory of ${name} is used on stream ${stream}, too. Once it is freed, it waits for that stream.`;
  if (kind === "read") return `Stream ${stream} will read ${name}, and the allocator does not know.`;
  if (kind === "wait") return `Stream ${stream} has caught up. The allocator will see that at the next request.`;
  return back ? `${amount(back)} go back to the driver.` : "No segment is free as a whole: nothing goes back to the driver.";
}

function whatIsMissing(size, config, driver) {
  if (!config.expandable) return `the request needs a segment of ${amount(segmentSize(size, config))}, and the driver has ${amount(driver)}.`;
  const page = size <= SMALL_SIZE ? SMALL_SEGMENT : config.largeSegment;
  return `memory comes in pages of ${amount(page)}, and the driver has room for ${Math.floor(driver / page)}: too few for ${amount(size)}.`;
}

function ofMake({ name, size }, trace, failed, replaced, back, config, { segments, free, driver }) {
  const begins = back ? `Memory is short: ${amount(back)} go back to the driver. ` : "";
  if (failed) {
    const wanted = trace.find(({ action }) => action === "oom").size,
      largest = segments.flatMap(({ blocks }) => blocks).reduce((most, block) => (block.state === "free" ? Math.max(most, block.size) : most), 0);
    return (
      `${begins}Out of memory: ${whatIsMissing(wanted, config, driver)} ` +
      `The free blocks have ${amount(free)} together, the largest ${amount(largest)}.`
    );
  }
  const { found, rounded, split } = trace.find(({ action }) => action === "alloc");
  let words = begins + whereFrom(trace, found);
  if (found > rounded) words += split ? `; a remainder of ${amount(found - rounded)} stays free` : `; it is not cut: ${amount(found - rounded)} unused`;
  if (rounded !== size) words += `. The block of ${name} has ${amount(split ? rounded : found)}`;
  return replaced ? `${words}. Only then is the old ${name} freed.` : `${words}.`;
}

function whereFrom(trace, found) {
  const made = total(trace, "segment_alloc"),
    pages = total(trace, "segment_map");
  if (made) return `No free block fits, so the driver gives a segment of ${amount(made)}`;
  return pages ? `No free block fits, so ${amount(pages)} of pages are mapped` : `The best of the free blocks has ${amount(found)}`;
}

function ofDel(name, trace) {
  const done = trace.filter(({ action }) => action === "free_completed").at(-1);
  if (!done) return `Another stream may still use the memory of ${name}: it waits.`;
  const { merged, freed } = done;
  return merged ? `${amount(freed)} are free, and with the neighbors one block of ${amount(freed + merged)}.` : `${amount(freed)} are free.`;
}

const model = (inputs) => {
  if (inputs.max_split > 0 && inputs.max_split < 20) refuse("CachingAllocator option max_split_size_mb too small, must be >= 20 (or 0 here: off).");
  const actions = readActions(inputs.code),
    allocator = new Allocator(new Device(inputs.memory * MIB), {
      maxSplit: inputs.max_split ? inputs.max_split * MIB : Infinity,
      divisions: inputs.divisions === "off" ? [] : Array(16).fill(Number(inputs.divisions)),
      expandable: inputs.expandable,
    }),
    blocks = new Map(),
    readings = [],
    played = actions.map((action) => playStep(allocator, blocks, readings, action));
  return { steps: played.map(({ step }) => step), say: played.map(({ say }) => say) };
};
