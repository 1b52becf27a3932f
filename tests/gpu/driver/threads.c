// Running a kernel: one block after the other, and the threads of a block by turns.
//
// Note [ Threads that take turns ]
// A kernel is a C function of one thread (ptx/ writes it). Without barriers and shuffles it is called for each thread, one after
// the other. With them each thread of the block has a stack of its own and runs until it has to wait: then it gives its turn
// back (`wait_a_turn`), and the next one runs. So all threads of a block are under way at once, in an order that we choose: as
// they are numbered, reversed, or shuffled (FAKE_GPU_ORDER). What depends on the order is a missing barrier.
//
// A fault leaves the kernel by siglongjmp; its device has a sticky error from then on, as on a chip.
#include "machine.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

enum { MOST_THREADS = 1024, WARP = 32, MOST_WARPS = MOST_THREADS / WARP, BARRIERS = 16, WORDS = 8 };

typedef struct {
  u32 words[2][WORDS][WARP], mask[2];  // of the meeting under way and of the last one, which some lanes may still have to read
  int site[2];
  u32 arrived, meeting;
} Warp;
typedef struct {
  Launch *launch;
  Thread *threads;
  u32 count, alive;
  struct {
    u32 arrived, round;
  } barriers[BARRIERS];
  Warp warps[MOST_WARPS];
  u64 progress;  // grows with whatever brings a thread on
} Block;

static Thread threads[MOST_THREADS];
static Block block;
static Thread *running;
static void *scheduler;  // where the scheduler's stack was left
static u8 *stacks;
static u64 stack_bytes;

static sigjmp_buf escape;
static volatile int in_kernel;
static char fault_text[400];

// ---------------------------------------------------------------------------------------------------------- faults
static _Noreturn void fault(Thread *t, CUresult error, const char *what, u64 address) {
  snprintf(fault_text, sizeof fault_text, "%s at %#llx by thread (%u,%u,%u) of block (%u,%u,%u)", what,
           (unsigned long long)address, t->tid[0], t->tid[1], t->tid[2], t->ctaid[0], t->ctaid[1], t->ctaid[2]);
  siglongjmp(escape, error);
}

static void failed_assert(Thread *t, const char *message, const char *file, u32 line, const char *function) {
  fprintf(stderr, "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n", file, line, function,
          t->ctaid[0], t->ctaid[1], t->ctaid[2], t->tid[0], t->tid[1], t->tid[2], message);
  fault(t, CUDA_ERROR_ASSERT, "a failed assertion", 0);
}

static struct sigaction segv_before, bus_before;

static void on_signal(int signal, siginfo_t *info, void *context) {
  (void)context;
  u64 address = (u64)info->si_addr;
  if (in_kernel && running) {
    if (is_device_address(address - host_delta)) address -= host_delta;
    fault(running, CUDA_ERROR_ILLEGAL_ADDRESS, is_device_address(address) ? "illegal address" : "illegal host address",
          address);
  }
  sigaction(signal, signal == SIGSEGV ? &segv_before : &bus_before, 0);  // not ours: it happens again, without us
}

static void watch_signals(void) {
  struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_NODEFER};
  sigaction(SIGSEGV, &action, &segv_before);
  sigaction(SIGBUS, &action, &bus_before);
  in_kernel = 1;
}

static void unwatch_signals(void) {
  in_kernel = 0;
  sigaction(SIGSEGV, &segv_before, 0);
  sigaction(SIGBUS, &bus_before, 0);
}

// --------------------------------------------------------------------------------------------------------- addresses
// An address that is not plainly memory of the kernel's device.
static void *resolve(Thread *t, u64 address, unsigned bytes) {
  u64 tag = address >> 56, rest = address & ~TAG(255);
  if (tag == DATA_TAG || tag == LOCAL_TAG) return (void *)rest;
  if (tag == SHARED_TAG) return S(t, rest, bytes);
  if (address & (bytes - 1)) fault(t, CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address", address);
  if (address - t->low < t->span) return (void *)(address + host_delta);
  if (is_device_address(address) && address >= virtual_base()) {
    if (may_access(block.launch->device, address)) return (void *)(address + host_delta);
    fault(t, CUDA_ERROR_ILLEGAL_ADDRESS, "memory that is mapped for no kernel of this device", address);
  }
  if (is_device_address(address)) fault(t, CUDA_ERROR_ILLEGAL_ADDRESS, "memory of another device", address);
  Allocation *pinned = allocation_at(address);
  if (pinned && pinned->kind != DEVICE_MEMORY) return (void *)address;
  fault(t, CUDA_ERROR_ILLEGAL_ADDRESS, "illegal address (host memory?)", address);
}

static void bad_shared(Thread *t, u64 address, unsigned bytes) {
  int misaligned = (address & (bytes - 1)) != 0;
  fault(t, misaligned ? CUDA_ERROR_MISALIGNED_ADDRESS : CUDA_ERROR_ILLEGAL_ADDRESS,
        misaligned ? "misaligned address in shared memory" : "shared memory out of bounds", address);
}

static void bad_local(Thread *t, u64 address) {
  fault(t, CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned address in local memory", address);
}

static void trap(Thread *t) { fault(t, CUDA_ERROR_LAUNCH_FAILED, "a trap", 0); }

// ------------------------------------------------------------------------------------------------- turns, and meetings
void switch_stacks(void **from, void *to);
__asm__(
    ".text\n.globl switch_stacks\n.type switch_stacks,@function\nswitch_stacks:\n"
    " push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
    " mov %rsp,(%rdi)\n mov %rsi,%rsp\n"
    " pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n ret\n"
    ".size switch_stacks,.-switch_stacks\n");

static void wait_a_turn(Thread *t) { switch_stacks(&t->stack, scheduler); }

// __syncthreads, or the named barrier `id` of `count` threads (0: all that have not ended).
static void barrier(Thread *t, u32 id, u32 count) {
  u32 round = block.barriers[id].round;
  block.barriers[id].arrived++;
  block.progress++;
  for (;;) {
    if (block.barriers[id].round == round && block.barriers[id].arrived >= (count ? count : block.alive)) {
      block.barriers[id].arrived = 0;
      block.barriers[id].round++;
      if (settings.order == IN_ORDER) return;
    }
    if (block.barriers[id].round != round) return;
    wait_a_turn(t);
  }
}

static u32 living_lanes(u32 first) {
  u32 lanes = 0;
  for (u32 lane = 0; lane < WARP && first + lane < block.count; lane++)
    if (!block.threads[first + lane].done) lanes |= 1u << lane;
  return lanes;
}

// A lane brings words; when all living lanes of the mask have brought theirs, each goes on. Returns who was there.
static u32 meet(Thread *t, const u32 *words, int count, u32 mask, int site, int *slot) {
  Warp *warp = &block.warps[t->linear / WARP];
  u32 lane = t->linear % WARP, meeting = warp->meeting, now = meeting & 1;
  u32 expected = mask & living_lanes(t->linear - lane);
  if (!(mask >> lane & 1)) fault(t, CUDA_ERROR_LAUNCH_FAILED, "a lane that is not in its own mask", 0);
  if (warp->arrived && warp->site[now] != site)
    fault(t, CUDA_ERROR_LAUNCH_FAILED, "lanes of a warp meet at different places", site);
  warp->site[now] = site;
  for (int i = 0; i < count; i++) warp->words[now][i][lane] = words[i];
  warp->arrived |= 1u << lane;
  warp->mask[now] = expected;
  block.progress++;
  *slot = now;
  if ((warp->arrived & expected) == expected) {
    warp->mask[now] = warp->arrived;
    warp->arrived = 0;
    warp->meeting++;
  } else {
    while (warp->meeting == meeting) wait_a_turn(t);
  }
  return warp->mask[now];
}

// shfl.sync: `b` and `c` are the instruction's lane (or distance) and its clamp with the mask of a segment.
static u32 shuffle(Thread *t, ShuffleMode mode, u32 value, u32 b, u32 c, u32 mask, u8 *inside, int site) {
  int slot;
  u32 there = meet(t, &value, 1, mask, site, &slot);
  s32 lane = t->linear % WARP, distance = b & 31, clamp = c & 31, segment = c >> 8 & 31;
  s32 last = (lane & segment) | (clamp & ~segment), first = lane & segment, source;
  switch (mode) {
    case SHUFFLE_UP: source = lane - distance, *inside = source >= last; break;
    case SHUFFLE_DOWN: source = lane + distance, *inside = source <= last; break;
    case SHUFFLE_XOR: source = lane ^ distance, *inside = source <= last; break;
    default: source = first | (distance & ~segment), *inside = source <= last;
  }
  if (!*inside) source = lane;
  if (!(there >> source & 1))
    fault(t, CUDA_ERROR_LAUNCH_FAILED, "a shuffle reads from a lane that does not take part", source);
  return block.warps[t->linear / WARP].words[slot][0][source];
}

static u32 vote(Thread *t, VoteMode mode, u32 value, u32 mask, int site) {
  int slot;
  u32 there = meet(t, &value, 1, mask, site, &slot), yes = 0, same = 0;
  const u32 *values = block.warps[t->linear / WARP].words[slot][0];
  for (int lane = 0; lane < WARP; lane++) {
    if (!(there >> lane & 1)) continue;
    if (values[lane]) yes |= 1u << lane;
    if (values[lane] == value) same |= 1u << lane;
  }
  switch (mode) {
    case VOTE_BALLOT: return yes;
    case VOTE_ANY: return yes != 0;
    case VOTE_ALL: return yes == there;
    case VOTE_UNIFORM: return yes == 0 || yes == there;
    case VOTE_MATCH: return same;
    default: return 0;
  }
}

// All 32 lanes bring words; each may then read those of all.
static const u32 (*gather(Thread *t, const u32 *words, int count, int site))[WARP] {
  int slot;
  u32 there = meet(t, words, count, ~0u, site, &slot);
  if (~there) fault(t, CUDA_ERROR_LAUNCH_FAILED, "an instruction of a whole warp without all of its lanes", there);
  return (const u32(*)[WARP])block.warps[t->linear / WARP].words[slot];
}

static const Services services = {resolve, bad_shared, bad_local, barrier, shuffle, vote, gather, trap, failed_assert};

// --------------------------------------------------------------------------------------------------------- one block
static u32 turn(u32 i, u32 count) {
  static const u32 PRIME = 7919;  // larger than any block: i * PRIME mod count takes each value once
  switch (settings.order) {
    case REVERSED: return count - 1 - i;
    case SHUFFLED: return (u32)(((u64)i * PRIME + 13) % count);
    default: return i;
  }
}

static void prepare_thread(Thread *t, Launch *launch, u32 i, u64 number, u8 *shared, u64 shared_bytes) {
  const u32 *size = launch->block, *grid = launch->grid;
  t->low = device_base + launch->device * WINDOW;
  t->span = WINDOW;
  t->delta = host_delta;
  t->parameters = launch->parameters;
  t->shared = shared;
  t->shared_size = shared_bytes;
  t->tid[0] = i % size[0], t->tid[1] = i / size[0] % size[1], t->tid[2] = i / size[0] / size[1];
  t->ctaid[0] = number % grid[0], t->ctaid[1] = number / grid[0] % grid[1], t->ctaid[2] = number / grid[0] / grid[1];
  memcpy(t->ntid, size, sizeof t->ntid);
  memcpy(t->nctaid, grid, sizeof t->nctaid);
  t->linear = i;
  t->done = 0;
  t->services = &services;
}

static void thread_main(void) {
  Thread *t = running;
  block.launch->kernel->code.run(t);
  t->done = 1;
  block.alive--;
  block.progress++;
  for (;;) wait_a_turn(t);
}

// A stack on which `switch_stacks` finds six registers and the address of thread_main.
static void *fresh_stack(u8 *end) {
  u64 *top = (u64 *)((u64)(end - 64) & ~15ull);
  *--top = 0;
  *--top = (u64)thread_main;
  return top - 6;
}

static void give_turns(int in_order) {
  for (u32 i = 0; i < block.count; i++) {
    Thread *t = &threads[in_order ? i : turn(i, block.count)];
    if (t->done) continue;
    running = t;
    switch_stacks(&scheduler, t->stack);
  }
}

static void run_by_turns(u64 each) {
  memset(block.barriers, 0, sizeof block.barriers);
  memset(block.warps, 0, sizeof block.warps);
  for (u32 i = 0; i < block.count; i++) threads[i].stack = fresh_stack(stacks + (i + 1) * each);
  while (block.alive) {
    u64 before = block.progress;
    give_turns(0);
    if (block.alive && block.progress == before) give_turns(1);  // a thread that ended may have opened a barrier
    if (!block.alive || block.progress != before) continue;
    snprintf(fault_text, sizeof fault_text, "deadlock: %u of %u threads wait for ever", block.alive, block.count);
    siglongjmp(escape, CUDA_ERROR_LAUNCH_TIMEOUT);
  }
}

static void make_stacks(u64 each) {
  if (stack_bytes >= each * MOST_THREADS) return;
  if (stacks) munmap(stacks, stack_bytes);
  stack_bytes = each * MOST_THREADS;
  stacks = mmap(0, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

// ------------------------------------------------------------------------------------------------------------ a launch
static void run_blocks(Launch *launch, u8 *shared, u64 shared_bytes) {
  Code *code = &launch->kernel->code;
  u64 blocks = (u64)launch->grid[0] * launch->grid[1] * launch->grid[2];
  u64 each = round_up(code->local * 2 + 49152, 65536);
  u32 count = launch->block[0] * launch->block[1] * launch->block[2];
  if (code->meets) make_stacks(each);
  for (u64 i = 0; i < blocks; i++) {
    u64 number = settings.order == REVERSED ? blocks - 1 - i : i;
    if (settings.poison) memset(shared, 0xff, shared_bytes);
    for (u32 k = 0; k < count; k++) prepare_thread(&threads[k], launch, k, number, shared, shared_bytes);
    block.launch = launch, block.threads = threads, block.count = block.alive = count;
    if (code->meets) {
      run_by_turns(each);
      continue;
    }
    for (u32 k = 0; k < count; k++) {
      running = &threads[turn(k, count)];
      code->run(running);
    }
  }
}

void run_launch(Launch *launch) {
  static u8 *shared;
  static u64 room;
  Code *code = &launch->kernel->code;
  if (sticky[launch->device]) return;
  if (!code->run) {
    launches_empty++;
    return;
  }
  launches_run++;
  u64 shared_bytes = round_up(code->shared, 16) + launch->shared;
  if (shared_bytes + 64 > room) {
    free(shared);
    shared = aligned_alloc(256, room = round_up(shared_bytes + 4096, 256));
  }
  watch_signals();
  CUresult error = sigsetjmp(escape, 1);
  if (!error) run_blocks(launch, shared, shared_bytes);
  unwatch_signals();
  if (!error) return;
  complain("kernel %.200s: %s", launch->kernel->name, fault_text);
  note("FAULT %s: %s", launch->kernel->name, fault_text);
  sticky[launch->device] = error;
}
