// Where memory lies.
//
// Note [ Where device memory lies ]
// Two ranges of addresses of the same size are set aside: no byte of either can be touched at first. An address of the
// first range is what programs hold; it stays untouchable, so that the host's access to device memory is a segmentation
// fault, as with a chip. Its bytes are as far into the second range (`host_delta`), where kernels and copies find them.
// Each device has a window of the range, and so the device is known from the address; the last window belongs to virtual
// memory (cuMemAddressReserve), which any device may have mapped.
#include "machine.h"

#include <sys/mman.h>

u64 device_base, host_delta;
static u64 next_address[MOST_DEVICES + 1];
static Allocation *allocations;  // sorted by address
static size_t count, room;
static u64 ids;

u64 round_up(u64 value, u64 to) { return (value + to - 1) & ~(to - 1); }
u64 virtual_base(void) { return device_base + MOST_DEVICES * WINDOW; }
int is_device_address(u64 address) { return address - device_base < (MOST_DEVICES + 1) * WINDOW; }

static u64 untouchable(u64 bytes) {
  void *at = mmap(0, bytes + GRANULE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return round_up((u64)at, GRANULE);
}

__attribute__((constructor)) static void set_addresses_aside(void) {
  u64 bytes = (MOST_DEVICES + 1) * WINDOW;
  device_base = untouchable(bytes);
  host_delta = untouchable(bytes) - device_base;
  for (int window = 0; window <= MOST_DEVICES; window++) next_address[window] = device_base + window * WINDOW + GRANULE;
}

// Addresses that nobody has had before, and behind them some that nobody will have: an access past the end is found.
u64 take_addresses(int window, u64 bytes, u64 alignment) {
  u64 address = round_up(next_address[window], alignment);
  u64 end = address + bytes + PAGE;
  if (end > device_base + (window + 1) * WINDOW) return 0;
  next_address[window] = end;
  return address;
}

Allocation *allocation_at(u64 address) {
  size_t low = 0, high = count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (allocations[middle].address <= address) low = middle + 1;
    else high = middle;
  }
  if (!low || address >= allocations[low - 1].address + allocations[low - 1].size) return 0;
  return &allocations[low - 1];
}

void add_allocation(Allocation allocation) {
  if (count == room) allocations = realloc(allocations, (room = 2 * room + 64) * sizeof *allocations);
  size_t i = count++;
  for (; i && allocations[i - 1].address > allocation.address; i--) allocations[i] = allocations[i - 1];
  allocation.id = ++ids;
  allocations[i] = allocation;
}

void drop_allocation(Allocation *allocation) {
  size_t i = allocation - allocations;
  memmove(allocation, allocation + 1, (--count - i) * sizeof *allocation);
}

void *bytes_at(u64 address, u64 bytes) {
  if (!is_device_address(address)) return (void *)address;
  if (address >= virtual_base()) {
    for (u64 at = address & ~(GRANULE - 1); at < address + (bytes ? bytes : 1); at += GRANULE)
      if (!may_access(-1, at)) return 0;
    return (void *)(address + host_delta);
  }
  Allocation *found = allocation_at(address);
  return found && address + bytes <= found->address + found->size ? (void *)(address + host_delta) : 0;
}

void lay(u64 address, u64 bytes) {
  static const u64 MOST_POISONED = 64ull << 20;  // what is larger would take too long
  void *at = (void *)(address + host_delta);
  mprotect(at, bytes, PROT_READ | PROT_WRITE);
  if (settings.poison && bytes <= MOST_POISONED) memset(at, 0xff, bytes);
}

void lift(u64 address, u64 bytes) {
  void *at = (void *)(address + host_delta);
  madvise(at, bytes, MADV_DONTNEED);
  mprotect(at, bytes, PROT_NONE);
}
