// Device memory, pinned host memory, and what is known of a pointer.
#include "machine.h"

#include <sys/mman.h>

API cuMemGetInfo(size_t *free, size_t *total) {
  ENTER_CONTEXT;
  *total = settings.memory;
  *free = settings.memory - used[device];
  return CUDA_SUCCESS;
}

API cuMemAlloc(CUdeviceptr *address, size_t bytes) {
  ENTER_CONTEXT;
  CUresult error = unsafe_in_capture();
  if (error) FAIL(error);
  if (!bytes) FAIL(CUDA_ERROR_INVALID_VALUE);
  u64 taken = round_up(bytes, GRANULE);
  if (used[device] + taken > settings.memory) FAIL(CUDA_ERROR_OUT_OF_MEMORY);
  u64 at = take_addresses(device, round_up(bytes, PAGE), bytes >= GRANULE ? GRANULE : PAGE);
  if (!at) FAIL(CUDA_ERROR_OUT_OF_MEMORY);
  lay(at, round_up(bytes, PAGE));
  add_allocation((Allocation){at, bytes, taken, device, DEVICE_MEMORY});
  used[device] += taken;
  *address = at;
  note("cuMemAlloc %zu -> %#llx", bytes, (unsigned long long)at);
  return CUDA_SUCCESS;
}

API cuMemFree(CUdeviceptr address) {
  ENTER_CONTEXT;
  if (!address) return CUDA_SUCCESS;
  CUresult error = unsafe_in_capture();
  if (error) FAIL(error);
  Allocation *found = allocation_at(address);
  if (!found || found->address != address || found->kind != DEVICE_MEMORY) FAIL(CUDA_ERROR_INVALID_VALUE);
  finish_device(found->device);
  used[found->device] -= found->room;
  lift(address, round_up(found->size, PAGE));
  drop_allocation(found);
  note("cuMemFree %#llx", (unsigned long long)address);
  return CUDA_SUCCESS;
}

// ----------------------------------------------------------------------------------------- pinned host memory
API cuMemHostAlloc(void **address, size_t bytes, unsigned flags) {
  ENTER_CONTEXT;
  CUresult error = unsafe_in_capture();
  if (error) FAIL(error);
  (void)flags;
  if (!bytes) FAIL(CUDA_ERROR_INVALID_VALUE);
  u64 room = round_up(bytes, PAGE);
  void *at = mmap(0, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) FAIL(CUDA_ERROR_OUT_OF_MEMORY);
  add_allocation((Allocation){(u64)at, bytes, room, device, HOST_MEMORY});
  *address = at;
  note("cuMemHostAlloc %zu -> %p", bytes, at);
  return CUDA_SUCCESS;
}

API cuMemAllocHost(void **address, size_t bytes) { return cuMemHostAlloc(address, bytes, 0); }

API cuMemFreeHost(void *address) {
  ENTER_CONTEXT;
  CUresult error = unsafe_in_capture();
  if (error) FAIL(error);
  Allocation *found = allocation_at((u64)address);
  if (!found || found->address != (u64)address || found->kind != HOST_MEMORY) FAIL(CUDA_ERROR_INVALID_VALUE);
  for (int other = 0; other < settings.devices; other++) finish_device(other);
  munmap(address, found->room);
  drop_allocation(found);
  note("cuMemFreeHost %p", address);
  return CUDA_SUCCESS;
}

static int any_allocation_in(u64 address, u64 bytes) {
  for (u64 at = address; at < address + bytes; at += PAGE)
    if (allocation_at(at)) return 1;
  return allocation_at(address + bytes - 1) != 0;
}

API cuMemHostRegister(void *address, size_t bytes, unsigned flags) {
  ENTER_CONTEXT;
  CUresult error = unsafe_in_capture();
  if (error) FAIL(error);
  (void)flags;
  if (!address || !bytes) FAIL(CUDA_ERROR_INVALID_VALUE);
  if (any_allocation_in((u64)address, bytes)) FAIL(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  add_allocation((Allocation){(u64)address, bytes, bytes, device, REGISTERED_MEMORY});
  note("cuMemHostRegister %p %zu", address, bytes);
  return CUDA_SUCCESS;
}

API cuMemHostUnregister(void *address) {
  ENTER_CONTEXT;
  Allocation *found = allocation_at((u64)address);
  if (!found || found->address != (u64)address || found->kind != REGISTERED_MEMORY)
    FAIL(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  for (int other = 0; other < settings.devices; other++) finish_device(other);
  drop_allocation(found);
  note("cuMemHostUnregister %p", address);
  return CUDA_SUCCESS;
}

API cuMemHostGetDevicePointer(CUdeviceptr *there, void *address, unsigned flags) {
  ENTER_CONTEXT;
  Allocation *found = allocation_at((u64)address);
  if (flags || !found || found->kind == DEVICE_MEMORY) FAIL(CUDA_ERROR_INVALID_VALUE);
  *there = (u64)address;  // one address for both, as on every 64-bit system
  return CUDA_SUCCESS;
}

API cuMemHostGetFlags(unsigned *flags, void *address) {
  ENTER_CONTEXT;
  Allocation *found = allocation_at((u64)address);
  if (!found || found->kind == DEVICE_MEMORY) FAIL(CUDA_ERROR_INVALID_VALUE);
  *flags = 0;
  return CUDA_SUCCESS;
}

// ---------------------------------------------------------------------------------------- what a pointer points to
API cuMemGetAddressRange(CUdeviceptr *start, size_t *bytes, CUdeviceptr address) {
  ENTER;
  Allocation *found = allocation_at(address);
  if (!found) FAIL(CUDA_ERROR_NOT_FOUND);
  if (start) *start = found->address;
  if (bytes) *bytes = found->size;
  return CUDA_SUCCESS;
}

static int pointer_attribute(void *value, int attribute, u64 address) {
  Allocation *found = allocation_at(address);
  int on_host = found && found->kind != DEVICE_MEMORY, device = found ? found->device : 0;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: *(CUcontext *)value = &contexts[device]; return 1;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *(unsigned *)value = on_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
      return 1;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *(u64 *)value = address; return 1;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER: *(u64 *)value = address; return on_host;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: *(u64 *)value = found ? found->id : 0; return 1;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: *(u8 *)value = 0; return 1;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)value = device; return 1;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: *(u64 *)value = found ? found->address : address; return 1;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *(u64 *)value = found ? found->size : 0; return 1;
    case CU_POINTER_ATTRIBUTE_MAPPED: *(u8 *)value = 1; return 1;
    default: return 0;
  }
}

static int is_known_pointer(u64 address) {
  return allocation_at(address) || (is_device_address(address) && bytes_at(address, 1));
}

API cuPointerGetAttribute(void *value, int attribute, CUdeviceptr address) {
  ENTER;
  if (!is_known_pointer(address) || !pointer_attribute(value, attribute, address)) FAIL(CUDA_ERROR_INVALID_VALUE);
  return CUDA_SUCCESS;
}

// Several at once; of a pointer that the driver does not know they are all zero.
API cuPointerGetAttributes(unsigned count, int *attributes, void **values, CUdeviceptr address) {
  ENTER;
  for (unsigned i = 0; i < count; i++) {
    int is_int = attributes[i] == CU_POINTER_ATTRIBUTE_MEMORY_TYPE || attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL;
    int is_bool = attributes[i] == CU_POINTER_ATTRIBUTE_IS_MANAGED || attributes[i] == CU_POINTER_ATTRIBUTE_MAPPED;
    memset(values[i], 0, is_int ? 4 : is_bool ? 1 : 8);
    if (is_known_pointer(address)) pointer_attribute(values[i], attributes[i], address);
  }
  return CUDA_SUCCESS;
}

// ---------------------------------------------------------------------- pools: one for each device, over plain calls
API cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice device) {
  ENTER;
  *pool = &contexts[device];
  return CUDA_SUCCESS;
}

API cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice device) { return cuDeviceGetMemPool(pool, device); }

API cuMemPoolGetAttribute(CUmemoryPool pool, int attribute, void *value) {
  ENTER;
  (void)pool, (void)attribute;
  *(u64 *)value = 0;
  return CUDA_SUCCESS;
}

API cuMemPoolSetAttribute(CUmemoryPool pool, int attribute, void *value) {
  ENTER;
  (void)pool, (void)attribute, (void)value;
  return CUDA_SUCCESS;
}

API cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream) {
  (void)stream;
  return cuMemAlloc(address, bytes);
}

API cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool pool, CUstream stream) {
  (void)pool, (void)stream;
  return cuMemAlloc(address, bytes);
}

API cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  (void)stream;
  return cuMemFree(address);
}
