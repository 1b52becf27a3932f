// Addresses and memory apart: cuMemAddressReserve, cuMemCreate, cuMemMap, cuMemSetAccess.
//
// All memory that cuMemCreate makes lies in one file without a name, each piece at an offset of its own; to map a piece is to
// map that part of the file. So a piece can be mapped at several addresses and outlive each of them.
#include "machine.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct {
  int device, mapped, released;
  u64 size, offset;
} Piece;
enum { MOST_PIECES = 1 << 20 };
static Piece *pieces[MOST_PIECES];
static int piece_count = 1;
static int file;
static u64 file_end;

static struct {
  u64 address, size;
} *ranges;
static int range_count;

static u8 *access_of;  // for each granule of the window a bit for each device
static int *piece_of;  // and the number of the piece; 0: none

static void *table(u64 bytes) {
  return mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

__attribute__((constructor)) static void make_tables(void) {
  file = memfd_create("fake GPU", MFD_CLOEXEC);
  access_of = table(WINDOW / GRANULE);
  piece_of = table(WINDOW / GRANULE * sizeof *piece_of);
}

static u64 granule(u64 address) { return (address - virtual_base()) / GRANULE; }

// May a kernel of the device, or anybody (-1), use this address?
int may_access(int device, u64 address) {
  return device < 0 ? access_of[granule(address)] : access_of[granule(address)] >> device & 1;
}

static int range_with(u64 address, u64 bytes) {
  for (int i = 0; i < range_count; i++)
    if (address >= ranges[i].address && address + bytes <= ranges[i].address + ranges[i].size) return i;
  return -1;
}

static int all_mapped(u64 address, u64 bytes) {
  for (u64 at = address; at < address + bytes; at += GRANULE)
    if (!piece_of[granule(at)]) return 0;
  return 1;
}

static int none_mapped(u64 address, u64 bytes) {
  for (u64 at = address; at < address + bytes; at += GRANULE)
    if (piece_of[granule(at)]) return 0;
  return 1;
}

API cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *properties, int which) {
  ENTER;
  (void)properties, (void)which;
  *bytes = GRANULE;
  return CUDA_SUCCESS;
}

API cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment, CUdeviceptr wish, u64 flags) {
  ENTER;
  (void)wish;
  if (!bytes || bytes % GRANULE || flags || (alignment & (alignment - 1))) FAIL(CUDA_ERROR_INVALID_VALUE);
  u64 at = take_addresses(MOST_DEVICES, bytes, alignment > GRANULE ? alignment : GRANULE);
  if (!at) FAIL(CUDA_ERROR_OUT_OF_MEMORY);
  ranges = realloc(ranges, (range_count + 1) * sizeof *ranges);
  ranges[range_count].address = at;
  ranges[range_count++].size = bytes;
  *address = at;
  note("cuMemAddressReserve %zu -> %#llx", bytes, (unsigned long long)at);
  return CUDA_SUCCESS;
}

API cuMemAddressFree(CUdeviceptr address, size_t bytes) {
  ENTER;
  int i = range_with(address, bytes);
  if (i < 0 || ranges[i].address != address || ranges[i].size != bytes) FAIL(CUDA_ERROR_INVALID_VALUE);
  if (!none_mapped(address, bytes)) FAIL(CUDA_ERROR_INVALID_VALUE);
  ranges[i] = ranges[--range_count];
  return CUDA_SUCCESS;
}

static int is_possible(const CUmemAllocationProp *properties, size_t bytes, u64 flags) {
  return bytes && bytes % GRANULE == 0 && !flags && properties->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
         properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE && is_device(properties->location.id);
}

API cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes, const CUmemAllocationProp *properties, u64 flags) {
  ENTER;
  CUresult error = unsafe_in_capture();
  if (error) FAIL(error);
  if (!is_possible(properties, bytes, flags)) FAIL(CUDA_ERROR_INVALID_VALUE);
  int device = properties->location.id;
  if (used[device] + bytes > settings.memory || piece_count == MOST_PIECES) FAIL(CUDA_ERROR_OUT_OF_MEMORY);
  if (ftruncate(file, file_end + bytes)) FAIL(CUDA_ERROR_OUT_OF_MEMORY);
  Piece *piece = calloc(1, sizeof *piece);
  piece->device = device;
  piece->size = bytes;
  piece->offset = file_end;
  file_end += bytes;
  used[device] += bytes;
  pieces[piece_count] = piece;
  *handle = piece_count++;
  return CUDA_SUCCESS;
}

// A piece that nobody holds and nobody has mapped is gone.
static void perhaps_gone(int number) {
  Piece *piece = pieces[number];
  if (!piece->released || piece->mapped) return;
  fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, piece->offset, piece->size);
  used[piece->device] -= piece->size;
  free(piece);
  pieces[number] = 0;
}

static Piece *piece_with(CUmemGenericAllocationHandle handle) { return handle < (u64)piece_count ? pieces[handle] : 0; }

API cuMemRelease(CUmemGenericAllocationHandle handle) {
  ENTER;
  Piece *piece = piece_with(handle);
  if (!piece || piece->released) FAIL(CUDA_ERROR_INVALID_VALUE);
  piece->released = 1;
  perhaps_gone(handle);
  return CUDA_SUCCESS;
}

API cuMemMap(CUdeviceptr address, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle, u64 flags) {
  ENTER;
  Piece *piece = piece_with(handle);
  if (!piece || offset || flags || bytes != piece->size || address % GRANULE) FAIL(CUDA_ERROR_INVALID_VALUE);
  if (range_with(address, bytes) < 0 || !none_mapped(address, bytes)) FAIL(CUDA_ERROR_INVALID_VALUE);
  void *at = (void *)(address + host_delta);
  if (mmap(at, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, file, piece->offset) == MAP_FAILED)
    FAIL(CUDA_ERROR_OUT_OF_MEMORY);
  for (u64 place = address; place < address + bytes; place += GRANULE) piece_of[granule(place)] = handle;
  piece->mapped++;
  return CUDA_SUCCESS;
}

API cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *descriptions, size_t count) {
  ENTER;
  if (!all_mapped(address, bytes)) FAIL(CUDA_ERROR_INVALID_VALUE);
  for (size_t i = 0; i < count; i++) {
    if (descriptions[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE) FAIL(CUDA_ERROR_INVALID_VALUE);
    if (descriptions[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) continue;
    for (u64 at = address; at < address + bytes; at += GRANULE) access_of[granule(at)] |= 1 << descriptions[i].location.id;
  }
  void *at = (void *)(address + host_delta);
  mprotect(at, bytes, PROT_READ | PROT_WRITE);
  if (settings.poison) memset(at, 0xff, bytes);
  return CUDA_SUCCESS;
}

API cuMemUnmap(CUdeviceptr address, size_t bytes) {
  ENTER;
  if (!all_mapped(address, bytes)) FAIL(CUDA_ERROR_INVALID_VALUE);
  int last = 0;
  for (u64 at = address; at < address + bytes; at += GRANULE) {
    int number = piece_of[granule(at)];
    piece_of[granule(at)] = access_of[granule(at)] = 0;
    if (number == last) continue;
    pieces[number]->mapped--;
    perhaps_gone(number);
    last = number;
  }
  int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  mmap((void *)(address + host_delta), bytes, PROT_NONE, how, -1, 0);
  return CUDA_SUCCESS;
}
