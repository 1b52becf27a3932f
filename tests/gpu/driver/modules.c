// Modules, libraries, kernels, functions: what a program loads, and what is known of its kernels.
//
// Note [ Machine code that the host can run ]
// A cubin holds code for the chip, which we cannot run. Whoever links one from PTX (hook/sitecustomize.py sees to it) leaves in
// the folder FAKE_GPU_KERNELS a file that is named by the cubin's hash, `fake_gpu_hash`. It says, a line for each kernel: the
// kernel's name, a shared object made from the same PTX, the symbol there, and what has to be known of it to run it. A cubin that
// comes from a cache on disk is found in that way, too. Without such a file a kernel does nothing, and a line on stderr says so.
//
// From the cubin itself, an ELF file, come the registers, shared and local memory, launch bounds and the places of parameters:
// what a driver looks at to accept or refuse a launch.
#include "machine.h"

#include <dlfcn.h>
#include <elf.h>

struct Library {
  struct Kernel *kernels;
  int unloaded;
};

// --------------------------------------------------------------------------------------------------------- the cubin
typedef struct {
  const u8 *bytes;
  const Elf64_Shdr *sections;
  int section_count;
  const char *section_names, *symbol_names;
  const Elf64_Sym *symbols;
  u64 symbol_count;
} Elf;

static Elf open_elf(const u8 *bytes) {
  const Elf64_Ehdr *head = (const void *)bytes;
  Elf elf = {bytes, (const void *)(bytes + head->e_shoff), head->e_shnum};
  elf.section_names = (const char *)bytes + elf.sections[head->e_shstrndx].sh_offset;
  for (int i = 0; i < elf.section_count; i++) {
    const Elf64_Shdr *section = &elf.sections[i];
    if (section->sh_type != SHT_SYMTAB) continue;
    elf.symbols = (const void *)(bytes + section->sh_offset);
    elf.symbol_count = section->sh_size / sizeof *elf.symbols;
    elf.symbol_names = (const char *)bytes + elf.sections[section->sh_link].sh_offset;
  }
  return elf;
}

static u64 elf_size(const u8 *bytes) {
  const Elf64_Ehdr *head = (const void *)bytes;
  const Elf64_Shdr *sections = (const void *)(bytes + head->e_shoff);
  u64 end = head->e_shoff + head->e_shnum * sizeof *sections;
  if (head->e_phnum && head->e_phoff + head->e_phnum * sizeof(Elf64_Phdr) > end)
    end = head->e_phoff + head->e_phnum * sizeof(Elf64_Phdr);
  for (int i = 0; i < head->e_shnum; i++) {
    u64 last = sections[i].sh_offset + (sections[i].sh_type == SHT_NOBITS ? 0 : sections[i].sh_size);
    if (last > end) end = last;
  }
  return end;
}

// FNV-1a.
__attribute__((visibility("default"))) u64 fake_gpu_hash(const u8 *cubin) {
  u64 hash = 0xcbf29ce484222325ull;
  for (const u8 *end = cubin + elf_size(cubin); cubin < end; cubin++) hash = (hash ^ *cubin) * 0x100000001b3ull;
  return hash;
}

static int is_symbol(const Elf *elf, u32 number, const char *name) {
  return number < elf->symbol_count && !strcmp(elf->symbol_names + elf->symbols[number].st_name, name);
}

static int is_entry(const Elf *elf, const char *name) {
  enum { STO_CUDA_ENTRY = 0x10 };
  for (u32 i = 0; i < elf->symbol_count; i++)
    if (is_symbol(elf, i, name) && (elf->symbols[i].st_other & STO_CUDA_ENTRY)) return 1;
  return 0;
}

static void set_parameter(struct Kernel *kernel, u32 ordinal, u32 offset, u32 size) {
  if (ordinal >= MOST_PARAMETERS) return;
  kernel->offset[ordinal] = offset;
  kernel->size[ordinal] = size;
  if ((int)ordinal >= kernel->parameters) kernel->parameters = ordinal + 1;
}

// .nv.info is a list of attributes: how the value is laid out, which attribute, and then the value or its size and the value.
static void read_info(const Elf *elf, const Elf64_Shdr *section, struct Kernel *kernel, int of_kernel) {
  enum { WITH_SIZE = 4 };
  enum { MAX_THREADS = 0x05, FRAME_SIZE = 0x11, PARAMETER = 0x17, REGISTER_COUNT = 0x2f, WIDE_PARAMETER = 0x45 };
  const u8 *at = elf->bytes + section->sh_offset, *end = at + section->sh_size;
  while (at + 4 <= end) {
    u8 layout = at[0], attribute = at[1];
    u16 size = at[2] | at[3] << 8;
    const u32 *words = (const u32 *)(at + 4);
    at += layout == WITH_SIZE ? 4 + size : 4;
    if (layout != WITH_SIZE) continue;
    if (of_kernel && attribute == PARAMETER) set_parameter(kernel, words[1] & 0xffff, words[1] >> 16, words[2] >> 18);
    if (of_kernel && attribute == WIDE_PARAMETER) set_parameter(kernel, words[1] & 0xffff, words[1] >> 16, words[2]);
    if (of_kernel && attribute == MAX_THREADS) kernel->most_threads = words[0] * words[1] * words[2];
    if (of_kernel || !is_symbol(elf, words[0], kernel->name)) continue;
    if (attribute == FRAME_SIZE) kernel->local = words[1];
    if (attribute == REGISTER_COUNT) kernel->registers = words[1];
  }
}

static int names(const char *section, const char *prefix, const char *kernel) {
  size_t length = strlen(prefix);
  return !strncmp(section, prefix, length) && !strcmp(section + length, kernel);
}

static struct Kernel *read_kernel(const Elf *elf, const Elf64_Shdr *text, const char *name) {
  struct Kernel *kernel = calloc(1, sizeof *kernel);
  kernel->name = strdup(name);
  kernel->registers = text->sh_info >> 24;
  kernel->most_threads = 1024;
  for (int i = 0; i < elf->section_count; i++) {
    const Elf64_Shdr *section = &elf->sections[i];
    const char *title = elf->section_names + section->sh_name;
    if (names(title, ".nv.shared.", name)) kernel->shared = section->sh_size;
    if (names(title, ".nv.constant0.", name)) kernel->constant = section->sh_size;
    if (names(title, ".nv.info.", name)) read_info(elf, section, kernel, 1);
    if (!strcmp(title, ".nv.info")) read_info(elf, section, kernel, 0);
  }
  return kernel;
}

static void read_kernels(struct Library *library, const u8 *cubin) {
  Elf elf = open_elf(cubin);
  for (int i = 0; i < elf.section_count; i++) {
    const char *title = elf.section_names + elf.sections[i].sh_name;
    if (strncmp(title, ".text.", 6) || !is_entry(&elf, title + 6)) continue;
    struct Kernel *kernel = read_kernel(&elf, &elf.sections[i], title + 6);
    kernel->library = library;
    kernel->next = library->kernels;
    library->kernels = kernel;
  }
}

// ----------------------------------------------------------------------------------------------- the host's code for it
static struct Kernel *kernel_named(struct Library *library, const char *name) {
  for (struct Kernel *kernel = library->kernels; kernel; kernel = kernel->next)
    if (!strcmp(kernel->name, name)) return kernel;
  return 0;
}

static void check_parameters(const struct Kernel *kernel, const char *sizes) {
  int count = 0;
  for (char *end; *sizes && *sizes != '-'; sizes = *end ? end + 1 : end, count++) {
    u32 size = strtoul(sizes, &end, 10);
    if (count < kernel->parameters && size != kernel->size[count])
      complain("%s: parameter %d has %u bytes in PTX, %u in the cubin", kernel->name, count, size, kernel->size[count]);
  }
  if (count != kernel->parameters)
    complain("%s: %d parameters in PTX, %d in the cubin", kernel->name, count, kernel->parameters);
}

// Whether there is any, or none is wanted. A module of a cubin without code is refused, so that whoever kept the cubin on disk
// compiles its kernel anew and hands over the PTX.
static int find_code(struct Library *library, const u8 *cubin, int must) {
  static char name[8192], sizes[32768];
  char path[4096], symbol[64];
  Code code;
  if (!*settings.kernels) return 1;
  snprintf(path, sizeof path, "%s/%016llx.code", settings.kernels, (unsigned long long)fake_gpu_hash(cubin));
  FILE *file = fopen(path, "r");
  if (!file) {
    if (!must) complain("a cubin whose PTX nobody has seen (%s): its kernels do nothing", path);
    return !must;
  }
  while (fscanf(file, "%8191s %4095s %63s %d %u %u %32767s", name, path, symbol, &code.meets, &code.shared, &code.local,
                sizes) == 7) {
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    struct Kernel *kernel = kernel_named(library, name);
    if (!object) complain("%s", dlerror());
    if (!object || !kernel) continue;
    code.run = (void (*)(Thread *))dlsym(object, symbol);
    kernel->code = code;
    check_parameters(kernel, sizes);
  }
  fclose(file);
  return 1;
}

// ------------------------------------------------------------------------------------------------- modules and libraries
static CUresult load(struct Library **library, const void *image, int must_run) {
  enum { ABI_OF_CUDA_13 = 8 };
  const u8 *bytes = image;
  if (memcmp(bytes, ELFMAG, SELFMAG))
    return strstr(image, ".version") ? CUDA_ERROR_UNSUPPORTED_PTX_VERSION : CUDA_ERROR_INVALID_IMAGE;
  if (settings.driver_version < 13000 && bytes[EI_ABIVERSION] >= ABI_OF_CUDA_13) {
    complain("a cubin of ELF ABI %d for a driver of CUDA %d", bytes[EI_ABIVERSION], settings.driver_version);
    return CUDA_ERROR_INVALID_IMAGE;
  }
  *library = calloc(1, sizeof **library);
  read_kernels(*library, bytes);
  return find_code(*library, bytes, must_run) ? CUDA_SUCCESS : CUDA_ERROR_NO_BINARY_FOR_GPU;
}

API cuLibraryLoadData(CUlibrary *library, const void *image, void *options, void **values, unsigned count,
                      void *library_options, void **library_values, unsigned library_count) {
  ENTER;
  (void)options, (void)values, (void)count, (void)library_options, (void)library_values, (void)library_count;
  CUresult error = load(library, image, 0);
  if (error) FAIL(error);
  return CUDA_SUCCESS;
}

API cuLibraryUnload(CUlibrary library) {
  ENTER;
  if (!library || library->unloaded) FAIL(CUDA_ERROR_INVALID_HANDLE);
  library->unloaded = 1;
  return CUDA_SUCCESS;
}

API cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name) {
  ENTER;
  *kernel = kernel_named(library, name);
  if (!*kernel) FAIL(CUDA_ERROR_NOT_FOUND);
  note("KERNEL %s registers %d local %d shared %d threads %d parameters %d code %s", name, (*kernel)->registers,
       (*kernel)->local, (*kernel)->shared, (*kernel)->most_threads, (*kernel)->parameters,
       (*kernel)->code.run ? "yes" : "no");
  return CUDA_SUCCESS;
}

API cuLibraryGetKernelCount(unsigned *count, CUlibrary library) {
  ENTER;
  *count = 0;
  for (struct Kernel *kernel = library->kernels; kernel; kernel = kernel->next) ++*count;
  return CUDA_SUCCESS;
}

API cuLibraryEnumerateKernels(CUkernel *kernels, unsigned count, CUlibrary library) {
  ENTER;
  for (struct Kernel *kernel = library->kernels; kernel && count; kernel = kernel->next, count--) *kernels++ = kernel;
  return CUDA_SUCCESS;
}

API cuLibraryGetModule(CUmodule *module, CUlibrary library) {
  ENTER;
  *module = library;
  return CUDA_SUCCESS;
}

API cuLibraryGetGlobal(CUdeviceptr *address, size_t *bytes, CUlibrary library, const char *name) {
  ENTER;
  (void)address, (void)bytes, (void)library, (void)name;
  FAIL(CUDA_ERROR_NOT_FOUND);
}

API cuModuleLoadData(CUmodule *module, const void *image) {
  ENTER_CONTEXT;
  CUresult error = load(module, image, 1);
  if (error) FAIL(error);
  return CUDA_SUCCESS;
}

API cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned count, void *options, void **values) {
  (void)count, (void)options, (void)values;
  return cuModuleLoadData(module, image);
}

API cuModuleUnload(CUmodule module) { return cuLibraryUnload(module); }
API cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  return cuLibraryGetKernel(function, module, name);
}

// ---------------------------------------------------------------------------------------------- kernels and functions
API cuKernelGetFunction(CUfunction *function, CUkernel kernel) {
  ENTER;
  *function = kernel;
  return CUDA_SUCCESS;
}

API cuKernelGetLibrary(CUlibrary *library, CUkernel kernel) {
  ENTER;
  *library = kernel->library;
  return CUDA_SUCCESS;
}

API cuKernelGetName(const char **name, CUkernel kernel) {
  ENTER;
  *name = kernel->name;
  return CUDA_SUCCESS;
}

API cuFuncGetModule(CUmodule *module, CUfunction function) { return cuKernelGetLibrary(module, function); }
API cuFuncGetName(const char **name, CUfunction function) { return cuKernelGetName(name, function); }

API cuKernelGetParamInfo(CUkernel kernel, size_t i, size_t *offset, size_t *size) {
  ENTER;
  if (i >= (size_t)kernel->parameters) FAIL(CUDA_ERROR_INVALID_VALUE);
  *offset = kernel->offset[i];
  if (size) *size = kernel->size[i];
  return CUDA_SUCCESS;
}

API cuFuncGetParamInfo(CUfunction function, size_t i, size_t *offset, size_t *size) {
  return cuKernelGetParamInfo(function, i, offset, size);
}

API cuKernelGetAttribute(int *value, int attribute, CUkernel kernel, CUdevice device) {
  ENTER;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = most_threads(kernel); break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = kernel->shared; break;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: *value = kernel->constant; break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *value = kernel->local; break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = kernel->registers; break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = 90; break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = kernel->dynamic[device] ? kernel->dynamic[device] : 49152 - kernel->shared;
      break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *value = -1; break;
    default: *value = 0;
  }
  return CUDA_SUCCESS;
}

API cuKernelSetAttribute(int attribute, int value, CUkernel kernel, CUdevice device) {
  ENTER;
  enum { MOST_SHARED = 232448 };
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) return CUDA_SUCCESS;
  if (value < 0 || value + kernel->shared > MOST_SHARED) FAIL(CUDA_ERROR_INVALID_VALUE);
  kernel->dynamic[device] = value;
  return CUDA_SUCCESS;
}

API cuKernelSetCacheConfig(CUkernel kernel, int config, CUdevice device) {
  ENTER;
  (void)kernel, (void)config, (void)device;
  return CUDA_SUCCESS;
}

API cuFuncGetAttribute(int *value, int attribute, CUfunction function) {
  ENTER_CONTEXT;
  return cuKernelGetAttribute(value, attribute, function, device);
}

API cuFuncSetAttribute(CUfunction function, int attribute, int value) {
  ENTER_CONTEXT;
  return cuKernelSetAttribute(attribute, value, function, device);
}
