// Devices, their contexts, and the driver's errors.
#include "machine.h"

struct Context contexts[MOST_DEVICES] = {{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}};
CUresult sticky[MOST_DEVICES];
u64 used[MOST_DEVICES];
static const u64 CONTEXT_BYTES = 520ull << 20;  // what a context itself takes

enum { DEEPEST = 64 };
static __thread CUcontext stack[DEEPEST];  // this thread's contexts, the current one last
static __thread int depth;

int current_device(void) { return depth && stack[depth - 1] ? stack[depth - 1]->device : -1; }
int is_device(int device) { return device >= 0 && device < settings.devices; }

// ------------------------------------------------------------------------------------------------------- errors
#define ERROR(name, text) {CUDA_##name, "CUDA_" #name, text}
static const struct {
  CUresult code;
  const char *name, *text;
} errors[] = {
    ERROR(SUCCESS, "no error"),
    ERROR(ERROR_INVALID_VALUE, "invalid argument"),
    ERROR(ERROR_OUT_OF_MEMORY, "out of memory"),
    ERROR(ERROR_NOT_INITIALIZED, "initialization error"),
    ERROR(ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    ERROR(ERROR_INVALID_DEVICE, "invalid device ordinal"),
    ERROR(ERROR_INVALID_IMAGE, "device kernel image is invalid"),
    ERROR(ERROR_INVALID_CONTEXT, "invalid device context"),
    ERROR(ERROR_NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device"),
    ERROR(ERROR_UNSUPPORTED_PTX_VERSION, "the provided PTX was compiled with an unsupported toolchain."),
    ERROR(ERROR_INVALID_HANDLE, "invalid resource handle"),
    ERROR(ERROR_ILLEGAL_STATE, "the operation cannot be performed in the present state"),
    ERROR(ERROR_NOT_FOUND, "named symbol not found"),
    ERROR(ERROR_NOT_READY, "device not ready"),
    ERROR(ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    ERROR(ERROR_LAUNCH_OUT_OF_RESOURCES, "too many resources requested for launch"),
    ERROR(ERROR_LAUNCH_TIMEOUT, "the launch timed out and was terminated"),
    ERROR(ERROR_ASSERT, "device-side assert triggered"),
    ERROR(ERROR_HOST_MEMORY_ALREADY_REGISTERED, "part or all of the requested memory range is already mapped"),
    ERROR(ERROR_HOST_MEMORY_NOT_REGISTERED, "pointer does not correspond to a registered memory region"),
    ERROR(ERROR_MISALIGNED_ADDRESS, "misaligned address"),
    ERROR(ERROR_LAUNCH_FAILED, "unspecified launch failure"),
    ERROR(ERROR_NOT_SUPPORTED, "operation not supported"),
    ERROR(ERROR_STREAM_CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing"),
    ERROR(ERROR_STREAM_CAPTURE_INVALIDATED, "operation failed due to a previous error during capture"),
    ERROR(ERROR_STREAM_CAPTURE_MERGE, "operation would result in a merge of separate capture sequences"),
    ERROR(ERROR_STREAM_CAPTURE_UNMATCHED, "capture was not ended in the same stream as it began"),
    ERROR(ERROR_STREAM_CAPTURE_UNJOINED, "capturing stream has unjoined work"),
    ERROR(ERROR_STREAM_CAPTURE_ISOLATION, "dependency created on uncaptured work in another stream"),
    ERROR(ERROR_STREAM_CAPTURE_IMPLICIT, "operation would make the legacy stream depend on a capturing blocking stream"),
    ERROR(ERROR_CAPTURED_EVENT, "operation not permitted on an event last recorded in a capturing stream"),
    ERROR(ERROR_STREAM_CAPTURE_WRONG_THREAD,
          "attempt to terminate a thread-local capture sequence from another thread"),
};
enum { ERRORS = sizeof errors / sizeof *errors };

API cuGetErrorString(CUresult error, const char **text) {
  *text = "unknown error";
  for (int i = 0; i < ERRORS; i++)
    if (errors[i].code == error) *text = errors[i].text;
  return CUDA_SUCCESS;
}

API cuGetErrorName(CUresult error, const char **name) {
  *name = "CUDA_ERROR_UNKNOWN";
  for (int i = 0; i < ERRORS; i++)
    if (errors[i].code == error) *name = errors[i].name;
  return CUDA_SUCCESS;
}

// ------------------------------------------------------------------------------------------------------ devices
API cuInit(unsigned flags) {
  ENTER;
  if (flags) FAIL(CUDA_ERROR_INVALID_VALUE);
  if (!settings.devices) FAIL(CUDA_ERROR_NO_DEVICE);
  return CUDA_SUCCESS;
}

API cuDriverGetVersion(int *version) {
  ENTER;
  *version = settings.driver_version;
  return CUDA_SUCCESS;
}

API cuDeviceGetCount(int *devices) {
  ENTER;
  *devices = settings.devices;
  return CUDA_SUCCESS;
}

API cuDeviceGet(CUdevice *device, int number) {
  ENTER;
  if (!is_device(number)) FAIL(CUDA_ERROR_INVALID_DEVICE);
  *device = number;
  return CUDA_SUCCESS;
}

API cuDeviceGetName(char *name, int room, CUdevice device) {
  ENTER;
  if (!is_device(device)) FAIL(CUDA_ERROR_INVALID_DEVICE);
  snprintf(name, room, "NVIDIA H100 80GB HBM3");
  return CUDA_SUCCESS;
}

API cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
  ENTER;
  for (int i = 0; i < 16; i++) uuid->bytes[i] = 16 * device + i;
  return CUDA_SUCCESS;
}

API cuDeviceGetPCIBusId(char *text, int room, CUdevice device) {
  ENTER;
  snprintf(text, room, "0000:%02x:00.0", 0x18 + device);
  return CUDA_SUCCESS;
}

API cuDeviceTotalMem(size_t *bytes, CUdevice device) {
  ENTER;
  if (!is_device(device)) FAIL(CUDA_ERROR_INVALID_DEVICE);
  *bytes = settings.memory;
  return CUDA_SUCCESS;
}

// An H100 SXM5: CU_DEVICE_ATTRIBUTE's number -> value. What is not here is 0.
static const int attributes[][2] = {
    {1, 1024},        // MAX_THREADS_PER_BLOCK
    {2, 1024},        // MAX_BLOCK_DIM_X
    {3, 1024},        // MAX_BLOCK_DIM_Y
    {4, 64},          // MAX_BLOCK_DIM_Z
    {5, 2147483647},  // MAX_GRID_DIM_X
    {6, 65535},       // MAX_GRID_DIM_Y
    {7, 65535},       // MAX_GRID_DIM_Z
    {8, 49152},       // MAX_SHARED_MEMORY_PER_BLOCK
    {9, 65536},       // TOTAL_CONSTANT_MEMORY
    {10, 32},         // WARP_SIZE
    {11, 2147483647}, // MAX_PITCH
    {12, 65536},      // MAX_REGISTERS_PER_BLOCK
    {13, 1980000},    // CLOCK_RATE, kHz
    {14, 512},        // TEXTURE_ALIGNMENT
    {15, 1},          // GPU_OVERLAP
    {16, 132},        // MULTIPROCESSOR_COUNT
    {19, 1},          // CAN_MAP_HOST_MEMORY
    {31, 1},          // CONCURRENT_KERNELS
    {32, 1},          // ECC_ENABLED
    {36, 2619000},    // MEMORY_CLOCK_RATE, kHz
    {37, 5120},       // GLOBAL_MEMORY_BUS_WIDTH, bits
    {38, 52428800},   // L2_CACHE_SIZE
    {39, 2048},       // MAX_THREADS_PER_MULTIPROCESSOR
    {40, 3},          // ASYNC_ENGINE_COUNT
    {41, 1},          // UNIFIED_ADDRESSING
    {75, 9},          // COMPUTE_CAPABILITY_MAJOR
    {78, 1},          // STREAM_PRIORITIES_SUPPORTED
    {79, 1},          // GLOBAL_L1_CACHE_SUPPORTED
    {80, 1},          // LOCAL_L1_CACHE_SUPPORTED
    {81, 233472},     // MAX_SHARED_MEMORY_PER_MULTIPROCESSOR
    {82, 65536},      // MAX_REGISTERS_PER_MULTIPROCESSOR
    {83, 1},          // MANAGED_MEMORY
    {86, 1},          // HOST_NATIVE_ATOMIC_SUPPORTED
    {87, 32},         // SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO
    {88, 1},          // PAGEABLE_MEMORY_ACCESS
    {89, 1},          // CONCURRENT_MANAGED_ACCESS
    {90, 1},          // COMPUTE_PREEMPTION_SUPPORTED
    {91, 1},          // CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM
    {95, 1},          // COOPERATIVE_LAUNCH
    {97, 232448},     // MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    {99, 1},          // HOST_REGISTER_SUPPORTED
    {102, 1},         // VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
    {103, 1},         // HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED
    {106, 32},        // MAX_BLOCKS_PER_MULTIPROCESSOR
    {108, 134217728}, // MAX_PERSISTING_L2_CACHE_SIZE
    {111, 1024},      // RESERVED_SHARED_MEMORY_PER_BLOCK
    {115, 1},         // MEMORY_POOLS_SUPPORTED
    {120, 1},         // CLUSTER_LAUNCH
};

API cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
  ENTER;
  enum { PCI_BUS_ID = 33 };
  if (!is_device(device)) FAIL(CUDA_ERROR_INVALID_DEVICE);
  *value = attribute == PCI_BUS_ID ? 0x18 + device : 0;
  for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
    if (attributes[i][0] == attribute) *value = attributes[i][1];
  return CUDA_SUCCESS;
}

API cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) {
  ENTER;
  *can = device != peer;
  return CUDA_SUCCESS;
}

// ----------------------------------------------------------------------------------------------------- contexts
API cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  ENTER;
  if (!is_device(device)) FAIL(CUDA_ERROR_INVALID_DEVICE);
  if (!contexts[device].references++) used[device] += CONTEXT_BYTES;
  *context = &contexts[device];
  return CUDA_SUCCESS;
}

API cuDevicePrimaryCtxRelease(CUdevice device) {
  ENTER;
  if (!is_device(device) || !contexts[device].references) FAIL(CUDA_ERROR_INVALID_CONTEXT);
  if (!--contexts[device].references) used[device] -= CONTEXT_BYTES;
  return CUDA_SUCCESS;
}

API cuDevicePrimaryCtxReset(CUdevice device) {
  ENTER;
  if (!is_device(device)) FAIL(CUDA_ERROR_INVALID_DEVICE);
  return CUDA_SUCCESS;
}

API cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active) {
  ENTER;
  *flags = contexts[device].flags;
  *active = contexts[device].references > 0;
  return CUDA_SUCCESS;
}

API cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) {
  ENTER;
  contexts[device].flags = flags;
  return CUDA_SUCCESS;
}

API cuCtxGetCurrent(CUcontext *context) {
  ENTER;
  *context = depth ? stack[depth - 1] : 0;
  return CUDA_SUCCESS;
}

API cuCtxPushCurrent(CUcontext context) {
  ENTER;
  if (!context) FAIL(CUDA_ERROR_INVALID_CONTEXT);
  if (depth == DEEPEST) {
    complain("%d contexts were pushed and not popped", DEEPEST);
    FAIL(CUDA_ERROR_INVALID_VALUE);
  }
  stack[depth++] = context;
  return CUDA_SUCCESS;
}

API cuCtxPopCurrent(CUcontext *context) {
  ENTER;
  if (!depth) FAIL(CUDA_ERROR_INVALID_CONTEXT);
  depth--;
  if (context) *context = stack[depth];
  return CUDA_SUCCESS;
}

API cuCtxSetCurrent(CUcontext context) {
  ENTER;
  if (depth) depth--;
  if (context) stack[depth++] = context;
  return CUDA_SUCCESS;
}

API cuCtxGetDevice(CUdevice *number) {
  ENTER_CONTEXT;
  *number = device;
  return CUDA_SUCCESS;
}

API cuCtxGetFlags(unsigned *flags) {
  ENTER_CONTEXT;
  *flags = contexts[device].flags;
  return CUDA_SUCCESS;
}

API cuCtxGetId(CUcontext context, u64 *id) {
  ENTER;
  int device = context ? context->device : current_device();
  if (device < 0) FAIL(CUDA_ERROR_INVALID_CONTEXT);
  *id = device + 1;
  return CUDA_SUCCESS;
}

API cuCtxGetApiVersion(CUcontext context, unsigned *version) {
  ENTER;
  (void)context;
  *version = 3020;
  return CUDA_SUCCESS;
}

API cuCtxSynchronize(void) {
  ENTER_CONTEXT;
  CUresult error = waiting_for_device(device);
  if (error) FAIL(error);
  finish_device(device);
  return sticky[device];
}

API cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  ENTER;
  *least = 0;
  *greatest = -5;
  return CUDA_SUCCESS;
}

API cuCtxEnablePeerAccess(CUcontext context, unsigned flags) {
  ENTER;
  (void)context, (void)flags;
  return CUDA_SUCCESS;
}

API cuCtxGetLimit(size_t *value, int limit) {
  ENTER;
  (void)limit;
  *value = 1024;
  return CUDA_SUCCESS;
}

API cuCtxSetLimit(int limit, size_t value) {
  ENTER;
  (void)limit, (void)value;
  return CUDA_SUCCESS;
}

API cuProfilerStart(void) { return CUDA_SUCCESS; }
API cuProfilerStop(void) { return CUDA_SUCCESS; }
