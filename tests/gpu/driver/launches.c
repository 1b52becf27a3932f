// Launches: what a driver refuses, and what goes on a stream.
#include "machine.h"

enum { REGISTERS = 65536, REGISTER_UNIT = 256, WARP_UNIT = 4, MOST_STATIC_SHARED = 49152 };

// Registers are given to whole warps, in units, and warps come by fours.
static u64 registers_of(const struct Kernel *kernel, u64 threads) {
  u64 warps = round_up((threads + 31) / 32, WARP_UNIT);
  return round_up(kernel->registers * 32, REGISTER_UNIT) * warps;
}

int most_threads(const struct Kernel *kernel) {
  int threads = 1024;
  while (threads > 32 && registers_of(kernel, threads) > REGISTERS) threads -= 32 * WARP_UNIT;
  return threads < kernel->most_threads ? threads : kernel->most_threads;
}

static CUresult check(const struct Kernel *kernel, const u32 *grid, const u32 *block, u32 shared, int device) {
  u64 threads = (u64)block[0] * block[1] * block[2];
  u32 room = kernel->dynamic[device] ? kernel->dynamic[device] + kernel->shared : MOST_STATIC_SHARED;
  int fits = grid[0] && grid[1] && grid[2] && threads && grid[0] <= 0x7fffffff && grid[1] <= 65535 && grid[2] <= 65535 &&
             threads <= 1024 && block[2] <= 64;
  const char *why = !fits                                       ? "no grid and block that a device has"
                    : threads > (u64)kernel->most_threads       ? "more threads than the launch bounds say"
                    : registers_of(kernel, threads) > REGISTERS ? "more registers than there are"
                    : kernel->shared + shared > room            ? "more shared memory than was asked for"
                                                                : 0;
  if (!why) return CUDA_SUCCESS;
  complain("launch refused, %s: grid %u,%u,%u block %u,%u,%u shared %u: %.120s", why, grid[0], grid[1], grid[2], block[0],
           block[1], block[2], kernel->shared + shared, kernel->name);
  int resources = fits && threads <= (u64)kernel->most_threads && registers_of(kernel, threads) > REGISTERS;
  return resources ? CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES : CUDA_ERROR_INVALID_VALUE;
}

static u64 parameter_bytes(const struct Kernel *kernel) {
  u64 bytes = 0;
  for (int i = 0; i < kernel->parameters; i++)
    if (kernel->offset[i] + kernel->size[i] > bytes) bytes = kernel->offset[i] + kernel->size[i];
  return bytes;
}

// Parameters come as a list of pointers or, in `extra`, as one block of bytes.
static CUresult copy_parameters(Launch *launch, u64 room, void **parameters, void **extra) {
  struct Kernel *kernel = launch->kernel;
  if (!extra) {
    for (int i = 0; i < kernel->parameters; i++)
      memcpy(launch->parameters + kernel->offset[i], parameters[i], kernel->size[i]);
    return CUDA_SUCCESS;
  }
  const void *buffer = 0;
  size_t size = 0;
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = extra[1];
    else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) size = *(size_t *)extra[1];
    else return CUDA_ERROR_INVALID_VALUE;
  }
  if (size != room) complain("%.120s: %zu bytes of parameters were given, it takes %zu", kernel->name, size, (size_t)room);
  if (size < room) return CUDA_ERROR_INVALID_VALUE;
  if (room) memcpy(launch->parameters, buffer, room);
  return CUDA_SUCCESS;
}

static CUresult launch(int device, struct Kernel *kernel, const CUlaunchConfig *config, void **parameters, void **extra) {
  if (!is_stream(config->stream)) return CUDA_ERROR_INVALID_HANDLE;
  struct Stream *stream = stream_of(config->stream, device);
  if (stream->device != device) {
    complain("a launch on a stream of device %d in the context of %d", stream->device, device);
    return CUDA_ERROR_INVALID_HANDLE;
  }
  note("LAUNCH device %d stream %p grid %u,%u,%u block %u,%u,%u shared %u %s", device, (void *)config->stream,
       config->grid[0], config->grid[1], config->grid[2], config->block[0], config->block[1], config->block[2],
       config->shared, kernel->name);
  CUresult error = check(kernel, config->grid, config->block, config->shared, device);
  if (error) return error;
  u64 room = parameter_bytes(kernel);
  Launch *made = calloc(1, sizeof *made + room);
  *made = (Launch){.kernel = kernel, .shared = config->shared, .device = device, .bytes = sizeof *made + room};
  memcpy(made->grid, config->grid, sizeof made->grid);
  memcpy(made->block, config->block, sizeof made->block);
  error = copy_parameters(made, room, parameters, extra);
  if (!error) error = meet_default_stream(stream);
  if (!error) return put(stream, (Work){.kind = LAUNCH, .launch = made});
  free(made);
  return error;
}

API cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, CUstream stream, void **parameters, void **extra) {
  ENTER_CONTEXT;
  CUlaunchConfig config = {{gx, gy, gz}, {bx, by, bz}, shared, stream};
  CUresult error = launch(device, function, &config, parameters, extra);
  if (error) FAIL(error);
  return CUDA_SUCCESS;
}

API cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra) {
  ENTER_CONTEXT;
  CUresult error = launch(device, function, config, parameters, extra);
  if (error) FAIL(error);
  return CUDA_SUCCESS;
}

API cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads, size_t shared) {
  ENTER;
  enum { MOST_WARPS = 64, MOST_BLOCKS = 32, SHARED = 233472, SHARED_OF_SYSTEM = 1024 };
  u64 registers = registers_of(function, threads), bytes = function->shared + shared + SHARED_OF_SYSTEM;
  u64 most = MOST_WARPS / ((threads + 31) / 32);
  if (most > MOST_BLOCKS) most = MOST_BLOCKS;
  if (registers && REGISTERS / registers < most) most = REGISTERS / registers;
  if (SHARED / bytes < most) most = SHARED / bytes;
  *blocks = most;
  return CUDA_SUCCESS;
}

API cuOccupancyMaxPotentialBlockSize(int *blocks, int *threads, CUfunction function, void *shared_of, size_t shared,
                                     int limit) {
  ENTER;
  (void)shared_of, (void)shared;
  *threads = limit && limit < most_threads(function) ? limit : most_threads(function);
  *blocks = 132;
  return CUDA_SUCCESS;
}
