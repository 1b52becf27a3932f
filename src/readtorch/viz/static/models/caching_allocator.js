// PyTorch's caching allocator of one device: as c10/cuda/cuda_caching_allocator, without private pools and statistics, and
// the memory and the events of a device that there is not: as c10/cuda/simulated_memory.py. A model of figures, and a twin
// that tests replay recorded traces of PyTorch's allocator with.

const MIB = 2 ** 20,
  MIN_BLOCK = 512,
  SMALL_SIZE = MIB,
  SMALL_SEGMENT = 2 * MIB,
  MIN_LARGE_ALLOC = 10 * MIB,
  ROUND_LARGE = 2 * MIB,
  DRIVER_PAGE = 2 * MIB;
const FIRST_ADDRESS = 0x700000000000,
  DEVICE_SPAN = 2 ** 42,
  FIRST_RESERVED = 0x500000000000;

const DEFAULTS = {
  maxSplit: Infinity, maxNonSplitRounding: 20 * MIB, largeSegment: 20 * MIB, gcThreshold: 0, divisions: [], expandable: false, rejectEarly: false,
}; // prettier-ignore

const roundUp = (size, multiple) => Math.ceil(size / multiple) * multiple;

function roundSize(size, { divisions }) {
  if (size < MIN_BLOCK) return MIN_BLOCK;
  const power = 2 ** Math.floor(Math.log2(size)),
    steps = divisions[Math.min(Math.max(Math.log2(power) - 20, 0), 15)] ?? 0;
  if (steps > 1 && size > MIN_BLOCK * steps) return roundUp(size, Math.max(Math.floor(power / steps), 1));
  return roundUp(size, MIN_BLOCK);
}

function segmentSize(size, { largeSegment }) {
  if (size <= SMALL_SIZE) return SMALL_SEGMENT;
  return size < MIN_LARGE_ALLOC ? largeSegment : roundUp(size, ROUND_LARGE);
}

// ---- the device

class Device {
  constructor(capacity, downwards = false) {
    Object.assign(this, { capacity, downwards, used: 0, handedOut: 0, reserved: 0, sizes: new Map(), pending: new Map() });
  }
  take(nbytes) {
    const fits = this.used + nbytes <= this.capacity;
    if (fits) this.used += nbytes;
    return fits;
  }
  /** An address, or null. */
  malloc(nbytes) {
    const size = roundUp(nbytes, DRIVER_PAGE);
    if (!this.take(size)) return null;
    const before = this.handedOut;
    this.handedOut += size;
    const address = FIRST_ADDRESS + (this.downwards ? DEVICE_SPAN - before - size : before);
    this.sizes.set(address, size);
    return address;
  }
  free(address) {
    this.used -= this.sizes.get(address);
    this.sizes.delete(address);
  }
  reserve(nbytes) {
    const address = FIRST_RESERVED + this.reserved;
    this.reserved += roundUp(nbytes, DRIVER_PAGE);
    return address;
  }
  record(stream) {
    const event = { done: false };
    if (!this.pending.has(stream)) this.pending.set(stream, []);
    this.pending.get(stream).push(event);
    return event;
  }
  /** The oldest `count` events of a stream have been passed. */
  complete(stream, count = Infinity) {
    (this.pending.get(stream) ?? []).splice(0, count).forEach((event) => (event.done = true));
  }
}

// ---- blocks and pools

const blockOf = (fields) => ({
  requested: 0, isFree: true, allocated: false, uses: new Set(), events: 0, prev: null, next: null, mapped: true, segment: null, freeSince: 0, ...fields,
}); // prettier-ignore

function insertBetween(block, before, after) {
  block.prev = before;
  block.next = after;
  if (before) before.next = block;
  if (after) after.prev = block;
}

const isSegment = ({ segment, prev, next }) => !segment && !prev && !next;
const byAddress = (one, other) => one.address - other.address;
const byFit = (one, other) => one.size - other.size || one.counter - other.counter || one.address - other.address;

class Pool {
  constructor(isSmall) {
    Object.assign(this, { isSmall, free: new Map(), unmapped: new Map(), requests: 0 });
  }
  static list(lists, stream) {
    if (!lists.has(stream)) lists.set(stream, []);
    return lists.get(stream);
  }
  static put(list, block, order) {
    let low = 0,
      high = list.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (order(list[middle], block) < 0) low = middle + 1;
      else high = middle;
    }
    list.splice(low, 0, block);
  }
  insert(block) {
    block.freeSince = this.requests;
    Pool.put(Pool.list(this.free, block.stream), block, byFit);
  }
  remove(block) {
    const list = this.free.get(block.stream);
    list.splice(list.indexOf(block), 1);
  }
  insertUnmapped(block) {
    Pool.put(Pool.list(this.unmapped, block.stream), block, byAddress);
  }
  removeUnmapped(block) {
    const list = this.unmapped.get(block.stream);
    list.splice(list.indexOf(block), 1);
  }
  blocks() {
    return [...this.free.keys()].sort((a, b) => a - b).flatMap((stream) => this.free.get(stream));
  }
  age(block) {
    return this.requests - block.freeSince;
  }
}

// ---- the allocator

class Allocator {
  constructor(device, settings = {}) {
    Object.assign(this, {
      device, config: { ...DEFAULTS, ...settings }, small: new Pool(true), large: new Pool(false), active: new Map(), held: 0, counter: 0, limit: null,
      fraction: 1, streamEvents: new Map(), trace: [],
    }); // prettier-ignore
  }

  log(action, address, size, stream, rest = {}) {
    this.trace.push({ action, address, size, stream, ...rest });
  }

  /** The block, or null when there is no memory. */
  malloc(requested, stream) {
    this.processEvents();
    const { config } = this,
      size = roundSize(requested, config),
      pool = size <= SMALL_SIZE ? this.small : this.large,
      params = { size, requested, stream, pool, expandable: config.expandable, block: null };
    if (!this.getFreeBlock(params) && !this.findMemory(params)) {
      this.log("oom", 0, size, stream);
      return null;
    }
    return this.handOut(params);
  }

  findMemory(params) {
    if (this.config.gcThreshold && this.limit !== null) this.collectGarbage();
    if (this.allocBlock(params)) return true;
    if (params.rejected) return false;
    if (this.releaseAvailable(params) && this.allocBlock(params)) return true;
    this.releaseCached();
    return this.allocBlock(params);
  }

  handOut(params) {
    const { pool, size, requested } = params,
      found = params.block.size,
      split = found - size >= this.minRemainder(params),
      block = split ? this.split(params.block, params) : params.block;
    Object.assign(block, { isFree: false, allocated: true, requested });
    this.active.set(block.address, block);
    this.log("alloc", block.address, requested, block.stream, { found, split, rounded: size, pool });
    return block;
  }

  split(remainder, { pool, size }) {
    const { stream, address, counter, segment } = remainder,
      block = blockOf({ stream, size, pool, address, counter, segment });
    insertBetween(block, remainder.prev, remainder);
    remainder.address += size;
    remainder.size -= size;
    pool.insert(remainder);
    return block;
  }

  minRemainder({ pool, size, expandable }) {
    if (pool.isSmall || expandable) return MIN_BLOCK;
    return size < this.config.maxSplit ? SMALL_SIZE + 1 : Infinity;
  }

  free(block) {
    block.allocated = false;
    this.log("free_requested", block.address, block.requested, block.stream);
    if (block.uses.size) this.insertEvents(block);
    else this.freeBlock(block);
  }

  recordStream(block, stream) {
    if (stream !== block.stream) block.uses.add(stream);
  }

  setMemoryFraction(fraction) {
    this.fraction = fraction;
    this.limit = fraction === 1 ? null : Math.floor(fraction * this.device.capacity + 0.5);
  }

  emptyCache() {
    this.releaseCached();
  }

  // -- finding a free block

  getFreeBlock(params) {
    const { pool, size, stream, expandable } = params,
      { maxSplit, maxNonSplitRounding, gcThreshold } = this.config;
    if (gcThreshold && this.limit !== null) pool.requests += 1;
    const blocks = Pool.list(pool.free, stream);
    let found = blocks.findIndex((block) => block.size >= size);
    if (found < 0) return false;
    if (blocks[found].segment) found = expandable ? Allocator.bestExpandable(blocks, found) : blocks.findIndex((block, i) => i >= found && !block.segment);
    if (found < 0) return false;
    const large = blocks[found].size;
    if (size < maxSplit ? large >= maxSplit : large >= size + maxNonSplitRounding) return false;
    params.block = blocks.splice(found, 1)[0];
    return true;
  }

  static bestExpandable(blocks, first) {
    const canBecome = ({ size, next }) => size + (next && !next.mapped ? next.size : 0);
    let found = first;
    while (blocks[found].segment && found + 1 < blocks.length && canBecome(blocks[found + 1]) < canBecome(blocks[found])) found += 1;
    return found;
  }

  collectGarbage() {
    const pool = this.large;
    let tooMuch = this.held - Math.floor(this.config.gcThreshold * this.limit);
    if (tooMuch <= 0) return;
    let candidates = pool.blocks().filter(isSegment),
      ages = candidates.reduce((sum, block) => sum + pool.age(block), 0);
    while (candidates.length && tooMuch > 0) {
      const average = ages / candidates.length,
        old = candidates.filter((block) => pool.age(block) >= average);
      candidates = candidates.filter((block) => pool.age(block) < average);
      for (const block of old) {
        tooMuch -= block.size;
        ages -= pool.age(block);
        this.releaseBlock(block);
      }
    }
  }

  // -- memory from the driver

  allocBlock(params) {
    const size = segmentSize(params.size, this.config);
    if (this.limit !== null && this.held + size > this.limit) return false;
    params.rejected = this.config.rejectEarly && this.held + size > this.device.capacity;
    if (params.rejected) return false;
    params.block = params.expandable ? this.mapPages(params) : this.newSegment(params, size);
    return params.block !== null;
  }

  newSegment({ stream, pool }, size) {
    const address = this.device.malloc(size);
    if (address === null) return null;
    this.held += size;
    this.log("segment_alloc", address, size, stream);
    return blockOf({ stream, size, pool, address, counter: this.counter++ });
  }

  // -- expandable segments

  mapPages(params) {
    let block = this.findExpandable(params);
    if (!block.mapped && !this.mapBlock(block, Math.min(block.size, params.size))) return null;
    while (block.size < params.size) {
      const { next } = block;
      if (!this.mapBlock(next, Math.min(params.size - block.size, next.size))) return null;
      block = next;
    }
    params.pool.remove(block);
    return block;
  }

  findExpandable(params) {
    for (const one of Pool.list(params.pool.unmapped, params.stream)) {
      const block = one.prev?.isFree ? one.prev : one;
      let room = 0;
      for (let next = block; next?.isFree && room < params.size; next = next.next) room += next.size;
      if (room >= params.size) return block;
    }
    return this.newExpandable(params);
  }

  newExpandable({ stream, pool }) {
    const { capacity } = this.device,
      pageSize = pool.isSmall ? SMALL_SEGMENT : this.config.largeSegment,
      size = roundUp(capacity + Math.floor(capacity / 8), pageSize),
      address = this.device.reserve(size),
      block = blockOf({ stream, size, pool, address, counter: this.counter++, mapped: false, segment: { address, size, pageSize, stream } });
    pool.insertUnmapped(block);
    return block;
  }

  partOf(block, address, size, mapped) {
    const { stream, pool, counter, segment } = block;
    return blockOf({ stream, size, pool, address, counter, segment, mapped });
  }

  mapBlock(block, size) {
    const { segment, pool, address, stream } = block,
      mapped = roundUp(size, segment.pageSize);
    if (!this.device.take(mapped)) return false;
    pool.removeUnmapped(block);
    block.mapped = true;
    if (mapped < block.size) {
      const rest = this.partOf(block, address + mapped, block.size - mapped, false);
      insertBetween(rest, block, block.next);
      pool.insertUnmapped(rest);
      block.size = mapped;
    }
    this.mergeNeighbours(block);
    pool.insert(block);
    this.held += mapped;
    this.log("segment_map", address, mapped, stream);
    return true;
  }

  unmapBlock(block) {
    const { pool, segment, address, size, stream } = block,
      { pageSize } = segment,
      begin = Math.ceil((address - segment.address) / pageSize),
      end = Math.floor((address + size - segment.address) / pageSize);
    if (begin >= end) return;
    this.device.complete(segment.stream);
    const first = segment.address + begin * pageSize,
      nbytes = (end - begin) * pageSize,
      after = address + size - first - nbytes;
    this.device.used -= nbytes;
    pool.remove(block);
    if (first > address) {
      const rest = this.partOf(block, address, first - address, true);
      insertBetween(rest, block.prev, block);
      pool.insert(rest);
    }
    if (after > 0) {
      const rest = this.partOf(block, first + nbytes, after, true);
      insertBetween(rest, block, block.next);
      pool.insert(rest);
    }
    Object.assign(block, { address: first, size: nbytes, mapped: false });
    this.mergeNeighbours(block);
    pool.insertUnmapped(block);
    this.held -= nbytes;
    this.log("segment_unmap", first, nbytes, stream);
  }

  // -- freeing and merging

  freeBlock(block) {
    this.log("free_completed", block.address, block.requested, block.stream);
    this.active.delete(block.address);
    block.isFree = true;
    const { size } = block,
      done = this.trace.at(-1);
    this.mergeNeighbours(block);
    block.pool.insert(block);
    Object.assign(done, { freed: size, merged: block.size - size });
  }

  mergeNeighbours(block) {
    for (const neighbour of [block.prev, block.next]) {
      if (!neighbour?.isFree || neighbour.mapped !== block.mapped) continue;
      if (neighbour.mapped) block.pool.remove(neighbour);
      else block.pool.removeUnmapped(neighbour);
      if (neighbour === block.prev) {
        block.address = neighbour.address;
        insertBetween(block, neighbour.prev, block.next);
      } else insertBetween(block, block.prev, neighbour.next);
      block.size += neighbour.size;
    }
  }

  // -- memory to the driver

  releaseBlock(block) {
    this.log("segment_free", block.address, block.size, block.stream);
    this.device.free(block.address);
    this.held -= block.size;
    block.pool.remove(block);
  }

  releaseAvailable({ pool, size, stream }) {
    const { maxSplit } = this.config;
    if (maxSplit === Infinity) return false;
    const wanted = Math.max(size, maxSplit),
      blocks = [...Pool.list(pool.free, stream)],
      first = blocks.findIndex((block) => block.size >= wanted),
      found = blocks.findIndex((block, i) => first >= 0 && i >= first && (block.segment || isSegment(block)));
    if (found >= 0 && isSegment(blocks[found])) {
      this.releaseBlock(blocks[found]);
      return true;
    }
    let released = 0;
    for (const block of blocks.slice(0, found >= 0 ? found : blocks.length).reverse()) {
      if (released >= wanted || block.size < maxSplit) break;
      if (!isSegment(block)) continue;
      released += block.size;
      this.releaseBlock(block);
    }
    return released >= wanted;
  }

  releaseCached() {
    for (const stream of this.waitedFor()) {
      const events = this.streamEvents.get(stream);
      this.streamEvents.delete(stream);
      for (const [event, block] of events) {
        while (!event.done) this.device.complete(stream, 1);
        this.passed(block);
      }
    }
    this.releasePool(this.large);
    this.releasePool(this.small);
  }

  releasePool(pool) {
    const blocks = pool.blocks();
    for (const block of blocks) if (isSegment(block)) this.releaseBlock(block);
    for (const block of blocks) {
      if (!block.segment) continue;
      this.unmapBlock(block);
      if (!block.mapped && block.size === block.segment.size) pool.removeUnmapped(block);
    }
  }

  // -- other streams

  waitedFor() {
    return [...this.streamEvents.keys()].sort((a, b) => a - b);
  }

  insertEvents(block) {
    for (const stream of [...block.uses].sort((a, b) => a - b)) {
      block.events += 1;
      if (!this.streamEvents.has(stream)) this.streamEvents.set(stream, []);
      this.streamEvents.get(stream).push([this.device.record(stream), block]);
    }
    block.uses = new Set();
  }

  processEvents() {
    for (const stream of this.waitedFor()) {
      const events = this.streamEvents.get(stream);
      while (events.length && events[0][0].done) this.passed(events.shift()[1]);
      if (!events.length) this.streamEvents.delete(stream);
    }
  }

  passed(block) {
    block.events -= 1;
    if (block.events === 0) this.freeBlock(block);
  }

  // -- what it holds

  /** [{ address, size, stream, small, expandable, blocks: [{ address, size, requested, state }] }], by address. */
  segments() {
    const blocks = [...this.large.blocks(), ...this.small.blocks(), ...this.active.values()],
      heads = blocks.filter(({ prev }) => !prev?.mapped).sort(byAddress);
    return heads.map((head) => {
      const run = [];
      for (let block = head; block?.mapped; block = block.next) run.push(block);
      return {
        address: head.address, size: run.reduce((sum, { size }) => sum + size, 0), stream: head.stream, small: head.pool.isSmall,
        expandable: head.segment !== null,
        blocks: run.map(({ address, size, requested, allocated, isFree }) => ({
          address, size, requested: isFree ? 0 : requested, state: allocated ? "allocated" : isFree ? "free" : "pending",
        })),
      }; // prettier-ignore
    });
  }
}
