// Copies and fills.
//
// Bytes of the host that are not pinned ("pageable") are copied when the call is made, so that their owner may change them
// afterwards; pinned ones are read when the stream comes to it. A copy to pageable memory has happened when the call returns.
#include "machine.h"

static int is_pageable(u64 address) { return !is_device_address(address) && !allocation_at(address); }

static CUresult copy(const char *function, int device, u64 to, u64 from, u64 bytes, CUstream handle, int wait) {
  if (!is_stream(handle)) return failed(function, CUDA_ERROR_INVALID_HANDLE);
  if (!bytes) return CUDA_SUCCESS;
  void *destination = bytes_at(to, bytes), *source = bytes_at(from, bytes);
  if (!destination || !source) return failed(function, CUDA_ERROR_INVALID_VALUE);
  struct Stream *stream = stream_of(handle, device);
  CUresult error = wait ? unsafe_in_capture() : CUDA_SUCCESS;
  if (!error) error = meet_default_stream(stream);
  if (error) return failed(function, error);
  Work work = {.kind = COPY, .to = to, .from = from, .count = bytes};
  if (is_pageable(from) && !stream->capture) {
    work.staged = malloc(bytes);
    memcpy(work.staged, source, bytes);
  }
  note("%s %#llx <- %#llx %llu stream %p%s%s", function, (unsigned long long)to, (unsigned long long)from,
       (unsigned long long)bytes, (void *)handle, is_pageable(from) ? " from pageable" : "",
       is_pageable(to) ? " to pageable" : "");
  error = put(stream, work);
  if (error) return failed(function, error);
  if ((wait || is_pageable(to)) && !stream->capture) finish(stream);
  return sticky[device];
}

#define COPY_FUNCTION(name, stream_parameter, stream, wait, to_type, from_type)          \
  API name(to_type to, from_type from, size_t bytes stream_parameter) {                  \
    ENTER_CONTEXT;                                                                       \
    return copy(__func__, device, (u64)to, (u64)from, bytes, stream, wait);              \
  }
#define COPY_FUNCTIONS(name, to_type, from_type)              \
  COPY_FUNCTION(name, , 0, 1, to_type, from_type)             \
  COPY_FUNCTION(name##Async, STREAM_PARAMETER, stream, 0, to_type, from_type)
#define STREAM_PARAMETER , CUstream stream

COPY_FUNCTIONS(cuMemcpy, CUdeviceptr, CUdeviceptr)
COPY_FUNCTIONS(cuMemcpyHtoD, CUdeviceptr, const void *)
COPY_FUNCTIONS(cuMemcpyDtoH, void *, CUdeviceptr)
COPY_FUNCTIONS(cuMemcpyDtoD, CUdeviceptr, CUdeviceptr)

API cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t bytes,
                      CUstream stream) {
  ENTER_CONTEXT;
  (void)to_context, (void)from_context;
  return copy(__func__, device, to, from, bytes, stream, 0);
}

// ------------------------------------------------------------------------------------------------------------ fills
static CUresult fill(const char *function, int device, u64 to, u32 value, u32 width, u64 count, CUstream handle) {
  if (!is_stream(handle)) return failed(function, CUDA_ERROR_INVALID_HANDLE);
  if (!bytes_at(to, count * width) || to % width) return failed(function, CUDA_ERROR_INVALID_VALUE);
  struct Stream *stream = stream_of(handle, device);
  CUresult error = meet_default_stream(stream);
  if (!error) error = put(stream, (Work){.kind = SET, .to = to, .count = count, .width = width, .value = value});
  return error ? failed(function, error) : CUDA_SUCCESS;
}

#define FILL_FUNCTIONS(name, type)                                           \
  API name(CUdeviceptr to, type value, size_t count) {                       \
    ENTER_CONTEXT;                                                           \
    return fill(__func__, device, to, value, sizeof(type), count, 0);        \
  }                                                                          \
  API name##Async(CUdeviceptr to, type value, size_t count, CUstream stream) { \
    ENTER_CONTEXT;                                                           \
    return fill(__func__, device, to, value, sizeof(type), count, stream);   \
  }

FILL_FUNCTIONS(cuMemsetD8, u8)
FILL_FUNCTIONS(cuMemsetD16, u16)
FILL_FUNCTIONS(cuMemsetD32, u32)
