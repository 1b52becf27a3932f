// Streams and events.
//
// Note [ Work waits on its stream ]
// What is put on a stream is done at once, unless FAKE_GPU_HOLD is set: then it is kept until somebody waits for it, and where
// a whole device is waited for, the newest stream goes first and the default one last. Both are orders that a chip may choose,
// and they are far apart: a program that forgot to let one stream wait for another is right in the first and wrong in the second.
// The work of all streams is numbered (`mark`); an event keeps the number of its record, and to wait for it is to do its
// stream's work up to there.
#include "machine.h"

static struct Stream defaults[MOST_DEVICES];
static struct Stream *newest;
static u64 marks;

__attribute__((constructor)) static void make_defaults(void) {
  for (int device = 0; device < MOST_DEVICES; device++) {
    defaults[device].device = device;
    defaults[device].last = &defaults[device].first;
  }
}

static int is_default(CUstream handle) { return (u64)handle <= 2; }
struct Stream *stream_of(CUstream handle, int device) { return is_default(handle) ? &defaults[device] : handle; }
struct Stream *next_stream(struct Stream *stream) { return stream ? stream->next : newest; }

int is_stream(CUstream handle) {
  if (is_default(handle)) return 1;
  for (struct Stream *stream = newest; stream; stream = stream->next)
    if (stream == handle) return !stream->destroyed;
  return 0;
}

int is_blocking(const struct Stream *stream) { return !(stream->flags & CU_STREAM_NON_BLOCKING); }

// ------------------------------------------------------------------------------------------------------ doing work
static void finish_until(struct Stream *stream, u64 mark) {
  while (stream->first && stream->first->mark <= mark) {
    Work *work = stream->first;
    stream->first = work->next;
    if (!stream->first) stream->last = &stream->first;
    do_work(stream->device, work);
    free(work->staged);
    free(work->launch);
    free(work);
  }
}

void finish(struct Stream *stream) { finish_until(stream, ~0ull); }

void finish_device(int device) {
  for (struct Stream *stream = newest; stream; stream = stream->next)
    if (stream->device == device) finish(stream);
  finish(&defaults[device]);
}

static void do_copy(int device, Work *work) {
  void *to = bytes_at(work->to, work->count), *from = work->staged ? work->staged : bytes_at(work->from, work->count);
  if (to && from) {
    memmove(to, from, work->count);
    return;
  }
  complain("a copy from or to memory that has gone: %#llx <- %#llx, %llu bytes", (unsigned long long)work->to,
           (unsigned long long)work->from, (unsigned long long)work->count);
  sticky[device] = CUDA_ERROR_ILLEGAL_ADDRESS;
}

static void do_fill(Work *work) {
  u8 *to = bytes_at(work->to, work->count * work->width);
  for (u64 i = 0; to && i < work->count; i++) memcpy(to + i * work->width, &work->value, work->width);
}

void do_work(int device, Work *work) {
  struct Event *event = work->event;
  switch (work->kind) {
    case COPY: do_copy(device, work); break;
    case SET: do_fill(work); break;
    case LAUNCH: run_launch(work->launch); break;
    case RECORD:
      if (work->mark > event->done) event->done = work->mark;
      event->at = milliseconds();
      break;
    case WAIT:
      if (event->stream) finish_until(event->stream, work->until);
      break;
    case HOST_CALL: work->function(work->user); break;
    case GRAPH: run_graph(device, work->graph); break;
  }
}

CUresult put(struct Stream *stream, Work work) {
  if (stream->capture) return capture_work(stream, work);
  Work *mine = malloc(sizeof work);
  *mine = work;
  mine->mark = ++marks;
  mine->next = 0;
  *stream->last = mine;
  stream->last = &mine->next;
  if (work.kind == RECORD) {
    work.event->recorded = mine->mark;
    work.event->stream = stream;
    work.event->capture = 0;
  }
  if (!settings.hold) finish(stream);
  return CUDA_SUCCESS;
}

// The legacy default stream waits for all blocking streams of its device, and they for it.
CUresult meet_default_stream(struct Stream *stream) {
  if (stream == &defaults[stream->device]) {
    CUresult error = implicit_in_capture(stream->device);
    if (error) return error;
    for (struct Stream *other = newest; other; other = other->next)
      if (other->device == stream->device && is_blocking(other)) finish(other);
  } else if (is_blocking(stream) && !stream->capture) {
    finish(&defaults[stream->device]);
  }
  return CUDA_SUCCESS;
}

// ---------------------------------------------------------------------------------------------------------- streams
#define STREAM                                                 \
  ENTER_CONTEXT;                                               \
  if (!is_stream(handle)) FAIL(CUDA_ERROR_INVALID_HANDLE);     \
  struct Stream *stream = stream_of(handle, device)

API cuStreamCreateWithPriority(CUstream *handle, unsigned flags, int priority) {
  ENTER_CONTEXT;
  struct Stream *stream = calloc(1, sizeof *stream);
  stream->device = device;
  stream->flags = flags;
  stream->priority = priority;
  stream->last = &stream->first;
  stream->next = newest;
  *handle = newest = stream;
  return CUDA_SUCCESS;
}

API cuStreamCreate(CUstream *handle, unsigned flags) { return cuStreamCreateWithPriority(handle, flags, 0); }

API cuStreamDestroy(CUstream handle) {
  ENTER;
  if (is_default(handle) || !is_stream(handle)) FAIL(CUDA_ERROR_INVALID_HANDLE);
  finish(handle);
  handle->destroyed = 1;  // its memory stays: an event may still name it
  return CUDA_SUCCESS;
}

API cuStreamSynchronize(CUstream handle) {
  STREAM;
  CUresult error = waiting_in_capture(stream);
  if (!error) error = meet_default_stream(stream);
  if (error) FAIL(error);
  finish(stream);
  return sticky[device];
}

// Whoever asks finds that one more piece of work is done, so that asking again and again ends.
API cuStreamQuery(CUstream handle) {
  STREAM;
  CUresult error = waiting_in_capture(stream);
  if (error) FAIL(error);
  if (stream->first) finish_until(stream, stream->first->mark);
  return sticky[device] ? sticky[device] : stream->first ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

API cuStreamWaitEvent(CUstream handle, CUevent event, unsigned flags) {
  STREAM;
  if (!event || event->destroyed) FAIL(CUDA_ERROR_INVALID_HANDLE);
  int external = flags & CU_EVENT_WAIT_EXTERNAL;
  if (!external && (stream->capture || event->capture)) {
    CUresult error = capture_wait(stream, event);
    if (error) FAIL(error);
    return CUDA_SUCCESS;
  }
  if (!event->stream) return CUDA_SUCCESS;  // never recorded
  return put(stream, (Work){.kind = WAIT, .event = event, .until = event->recorded});
}

API cuStreamGetFlags(CUstream handle, unsigned *flags) {
  STREAM;
  *flags = stream->flags;
  return CUDA_SUCCESS;
}

API cuStreamGetPriority(CUstream handle, int *priority) {
  STREAM;
  *priority = stream->priority;
  return CUDA_SUCCESS;
}

API cuStreamGetCtx(CUstream handle, CUcontext *context) {
  STREAM;
  *context = &contexts[stream->device];
  return CUDA_SUCCESS;
}

API cuStreamGetCtx_v2(CUstream handle, CUcontext *context, void **green) {
  STREAM;
  *context = &contexts[stream->device];
  if (green) *green = 0;
  return CUDA_SUCCESS;
}

API cuStreamGetDevice(CUstream handle, CUdevice *number) {
  STREAM;
  *number = stream->device;
  return CUDA_SUCCESS;
}

API cuStreamGetId(CUstream handle, u64 *id) {
  STREAM;
  *id = (u64)stream;
  return CUDA_SUCCESS;
}

API cuLaunchHostFunc(CUstream handle, CUhostFn function, void *user) {
  STREAM;
  return put(stream, (Work){.kind = HOST_CALL, .function = function, .user = user});
}

// ----------------------------------------------------------------------------------------------------------- events
API cuEventCreate(CUevent *handle, unsigned flags) {
  ENTER_CONTEXT;
  struct Event *event = calloc(1, sizeof *event);
  event->device = device;
  event->flags = flags;
  *handle = event;
  return CUDA_SUCCESS;
}

API cuEventDestroy(CUevent event) {
  ENTER;
  if (!event || event->destroyed) FAIL(CUDA_ERROR_INVALID_HANDLE);
  event->destroyed = 1;  // its memory stays: work on streams may still name it
  return CUDA_SUCCESS;
}

API cuEventRecordWithFlags(CUevent event, CUstream handle, unsigned flags) {
  STREAM;
  if (!event || event->destroyed || event->device != stream->device) FAIL(CUDA_ERROR_INVALID_HANDLE);
  CUresult error = meet_default_stream(stream);
  if (!error && stream->capture && !(flags & CU_EVENT_RECORD_EXTERNAL)) error = capture_record(stream, event);
  else if (!error) error = put(stream, (Work){.kind = RECORD, .event = event});
  if (error) FAIL(error);
  return CUDA_SUCCESS;
}

API cuEventRecord(CUevent event, CUstream handle) { return cuEventRecordWithFlags(event, handle, 0); }

API cuEventQuery(CUevent event) {
  ENTER;
  if (!event || event->destroyed) FAIL(CUDA_ERROR_INVALID_HANDLE);
  CUresult error = waiting_for_captured(event);
  if (!error) error = unsafe_in_capture();
  if (error) FAIL(error);
  if (!event->stream || event->done >= event->recorded) return sticky[event->device];
  if (event->stream->first) finish_until(event->stream, event->stream->first->mark);
  return event->done < event->recorded ? CUDA_ERROR_NOT_READY : sticky[event->device];
}

API cuEventSynchronize(CUevent event) {
  ENTER;
  if (!event || event->destroyed) FAIL(CUDA_ERROR_INVALID_HANDLE);
  CUresult error = waiting_for_captured(event);
  if (!error) error = unsafe_in_capture();
  if (error) FAIL(error);
  if (event->stream) finish_until(event->stream, event->recorded);
  return sticky[event->device];
}

API cuEventElapsedTime(float *time, CUevent start, CUevent end) {
  ENTER;
  if (!start->stream || !end->stream) FAIL(CUDA_ERROR_INVALID_HANDLE);
  if ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) FAIL(CUDA_ERROR_INVALID_HANDLE);
  if (start->done < start->recorded || end->done < end->recorded) FAIL(CUDA_ERROR_NOT_READY);
  *time = end->at - start->at + 1e-4;
  return CUDA_SUCCESS;
}
