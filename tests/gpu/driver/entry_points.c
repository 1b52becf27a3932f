// cuGetProcAddress: how NVIDIA's bindings find every other function.
//
// A function is asked for by its name and the CUDA version whose form of it is meant. Where we have a later form (…_v2, …_v3), it
// is that, but for the functions named here: their forms differ in what they take.
#include "machine.h"

#include <dlfcn.h>

static const struct {
  const char *name, *form;
  int since;
} forms[] = {
    {"cuStreamGetCtx", "cuStreamGetCtx_v2", 12050},
    {"cuStreamGetCtx", "cuStreamGetCtx", 0},
    {"cuStreamGetCaptureInfo", "cuStreamGetCaptureInfo_v3", 12030},
    {"cuStreamGetCaptureInfo", "cuStreamGetCaptureInfo_v2", 11030},
};

static void *symbol(const char *name) {
  static void *self;
  Dl_info info;
  if (!self && dladdr((void *)symbol, &info)) self = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  return dlsym(self, name);
}

static void *find(const char *name, int version) {
  static const char *endings[] = {"_v3", "_v2", ""};
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
    if (!strcmp(name, forms[i].name) && version >= forms[i].since) return symbol(forms[i].form);
  void *found = 0;
  for (int i = 0; i < 3 && !found; i++) {
    char full[200];
    snprintf(full, sizeof full, "%s%s", name, endings[i]);
    found = symbol(full);
  }
  return found;
}

API cuGetProcAddress_v2(const char *name, void **function, int version, u64 flags, int *status) {
  enum { FOUND, SYMBOL_NOT_FOUND };
  (void)flags;
  *function = version <= settings.driver_version ? find(name, version) : 0;
  if (status) *status = *function ? FOUND : SYMBOL_NOT_FOUND;
  if (!*function) note("no %s of version %d", name, version);
  return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

API cuGetProcAddress(const char *name, void **function, int version, u64 flags) {
  return cuGetProcAddress_v2(name, function, version, flags, 0);
}
