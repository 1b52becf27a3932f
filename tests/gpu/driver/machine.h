// What the files of the fake driver share. README.md says what each of them does.
#pragma once
#define _GNU_SOURCE
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_types.h"
#include "ptx_runtime.h"

// ------------------------------------------------------------------------------------------------ an entry point
// A function that programs call. ENTER counts the call, and holds the driver's one lock until the function returns.
#define API __attribute__((visibility("default"))) CUresult
#define ENTER __attribute__((cleanup(leave))) int entered_ = enter(__func__); (void)entered_
// ... and `device` is the one of this thread's current context, which must be without a sticky error.
#define ENTER_CONTEXT                              \
  ENTER;                                           \
  int device = current_device();                   \
  if (device < 0) FAIL(CUDA_ERROR_INVALID_CONTEXT); \
  if (sticky[device]) return sticky[device]
#define FAIL(error) return failed(__func__, error)

int enter(const char *function);
void leave(int *entered);
CUresult failed(const char *function, CUresult error);

// -------------------------------------------------------------------------------------- settings.c, devices.c
enum { MOST_DEVICES = 8 };
typedef enum { IN_ORDER, REVERSED, SHUFFLED } Order;
typedef struct {
  int devices, hold, poison, driver_version;
  u64 memory;         // bytes of each device
  Order order;        // of threads, and of a graph's nodes
  const char *kernels;  // the folder of the kernels' machine code; empty: kernels do nothing
} Settings;
extern Settings settings;
void note(const char *form, ...);      // a line in the log
void complain(const char *form, ...);  // a line on stderr: what a chip would not say so plainly
double milliseconds(void);

struct Context {
  int device, references;
  unsigned flags;
};
extern struct Context contexts[MOST_DEVICES];
extern CUresult sticky[MOST_DEVICES];  // the error that ended a device's context
extern u64 used[MOST_DEVICES];         // bytes of its memory
int current_device(void);
int is_device(int device);

// ------------------------------------------------------------------------------------------------ addresses.c
#define WINDOW (4ull << 40)   // addresses of one device
#define GRANULE (2ull << 20)  // of large allocations, and of virtual memory
#define PAGE 4096ull
typedef enum { DEVICE_MEMORY, HOST_MEMORY, REGISTERED_MEMORY } MemoryKind;
typedef struct {
  u64 address, size, room;
  int device;
  MemoryKind kind;
  u64 id;
} Allocation;
extern u64 device_base;  // where the addresses of devices begin
extern u64 host_delta;   // what is added to one to find its bytes
u64 round_up(u64 value, u64 to);
u64 virtual_base(void);
int is_device_address(u64 address);
u64 take_addresses(int window, u64 bytes, u64 alignment);
Allocation *allocation_at(u64 address);
void add_allocation(Allocation allocation);
void drop_allocation(Allocation *allocation);
void *bytes_at(u64 address, u64 bytes);  // 0: they are not all there
void lay(u64 address, u64 bytes);        // memory comes to be at an address
void lift(u64 address, u64 bytes);       // and goes
int may_access(int device, u64 virtual_address);

// -------------------------------------------------------------------------------------------------- streams.c
typedef enum { COPY, SET, LAUNCH, RECORD, WAIT, HOST_CALL, GRAPH } WorkKind;
typedef struct Work {
  WorkKind kind;
  struct Work *next;
  u64 mark;                   // the work's number
  u64 to, from, count;        // COPY, SET
  u8 *staged;                 // COPY: pageable bytes, copied when the call was made
  u32 width, value;           // SET
  struct Launch *launch;      // LAUNCH
  struct Event *event;        // RECORD, WAIT
  u64 until;                  // WAIT: the mark that the event had
  CUhostFn function;          // HOST_CALL
  void *user;
  struct Executable *graph;   // GRAPH
} Work;
struct Stream {
  int device, priority, destroyed;
  unsigned flags;
  Work *first, **last;
  struct Stream *next;
  struct Capture *capture;    // graphs.c
  CUgraphNode *tails;         // what the next node of a capture depends on
  size_t tail_count;
};
struct Event {
  int device, destroyed;
  unsigned flags;
  struct Stream *stream;      // where it was recorded last
  u64 recorded, done;         // marks
  double at;
  struct Capture *capture;    // ... or in which capture
  CUgraphNode *tails;
  size_t tail_count;
};
CUresult put(struct Stream *stream, Work work);
void finish(struct Stream *stream);
void finish_device(int device);
void do_work(int device, Work *work);
struct Stream *stream_of(CUstream handle, int device);
CUresult meet_default_stream(struct Stream *stream);
int is_stream(CUstream handle);
int is_blocking(const struct Stream *stream);
struct Stream *next_stream(struct Stream *stream);  // 0: the first

// ---------------------------------------------------------------------------------------------------- graphs.c
CUresult capture_work(struct Stream *stream, Work work);
CUresult capture_record(struct Stream *stream, struct Event *event);
CUresult capture_wait(struct Stream *stream, struct Event *event);
CUresult unsafe_in_capture(void);                        // an error where a capture forbids such calls
CUresult waiting_in_capture(struct Stream *stream);      // and where somebody waits for a stream that captures
CUresult waiting_for_captured(struct Event *event);
CUresult waiting_for_device(int device);
CUresult implicit_in_capture(int device);
void run_graph(int device, struct Executable *graph);

// -------------------------------------------------------------------------------------- modules.c, launches.c
typedef struct {
  void (*run)(Thread *);  // 0: the kernel does nothing
  int meets;              // it has barriers or shuffles
  u32 shared, local;      // bytes
} Code;
enum { MOST_PARAMETERS = 4096 };
struct Kernel {
  char *name;
  int registers, local, constant, shared, most_threads, parameters;
  int dynamic[MOST_DEVICES];  // the bytes of dynamic shared memory that were asked for
  u32 offset[MOST_PARAMETERS], size[MOST_PARAMETERS];
  Code code;
  struct Library *library;
  struct Kernel *next;
};
int most_threads(const struct Kernel *kernel);
typedef struct Launch {
  struct Kernel *kernel;
  u32 grid[3], block[3], shared;
  int device;
  u64 bytes;  // of all this
  u8 parameters[];
} Launch;

// --------------------------------------------------------------------------------------------------- threads.c
void run_launch(Launch *launch);
extern u64 launches_run, launches_empty;
