// What the environment sets, the log, and the count of calls.
#include "machine.h"

#include <time.h>

Settings settings;
u64 launches_run, launches_empty;
static FILE *log_file, *calls_file;
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

enum { MOST_FUNCTIONS = 512 };
static struct {
  const char *name;
  u64 calls;
} functions[MOST_FUNCTIONS];

static void count(const char *name) {
  int i = 0;
  while (functions[i].name && functions[i].name != name && i < MOST_FUNCTIONS - 1) i++;
  functions[i].name = name;
  functions[i].calls++;
}

int enter(const char *function) {
  pthread_mutex_lock(&lock);
  if (calls_file) count(function);
  return 1;
}

void leave(int *entered) {
  (void)entered;
  pthread_mutex_unlock(&lock);
}

CUresult failed(const char *function, CUresult error) {
  note("%s -> error %d", function, error);
  return error;
}

static void write_line(FILE *file, const char *before, const char *form, va_list values) {
  fputs(before, file);
  vfprintf(file, form, values);
  fputc('\n', file);
  fflush(file);
}

void note(const char *form, ...) {
  if (!log_file) return;
  va_list values;
  va_start(values, form);
  write_line(log_file, "", form, values);
  va_end(values);
}

void complain(const char *form, ...) {
  va_list values;
  va_start(values, form);
  write_line(stderr, "fake GPU: ", form, values);
  va_end(values);
}

double milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

static const char *text(const char *name, const char *otherwise) {
  const char *value = getenv(name);
  return value && *value ? value : otherwise;
}

static long number(const char *name, long otherwise) {
  const char *value = text(name, 0);
  return value ? strtol(value, 0, 0) : otherwise;
}

static FILE *file(const char *name) {
  const char *path = text(name, 0);
  return path ? fopen(path, "a") : 0;
}

static void write_calls(void) {
  fprintf(calls_file, "%10llu launches executed\n", (unsigned long long)launches_run);
  fprintf(calls_file, "%10llu launches without code\n", (unsigned long long)launches_empty);
  for (int i = 0; i < MOST_FUNCTIONS && functions[i].name; i++)
    fprintf(calls_file, "%10llu %s\n", (unsigned long long)functions[i].calls, functions[i].name);
  fflush(calls_file);
}

__attribute__((constructor)) static void read_settings(void) {
  const char *order = text("FAKE_GPU_ORDER", "");
  settings.devices = number("FAKE_GPU_DEVICES", 1);
  if (settings.devices > MOST_DEVICES) settings.devices = MOST_DEVICES;
  settings.memory = (u64)number("FAKE_GPU_MEMORY_MIB", 81079) << 20;
  settings.driver_version = number("FAKE_GPU_DRIVER_VERSION", 13000);
  settings.hold = number("FAKE_GPU_HOLD", 0);
  settings.poison = number("FAKE_GPU_POISON", 1);
  settings.order = !strcmp(order, "reversed") ? REVERSED : !strcmp(order, "shuffled") ? SHUFFLED : IN_ORDER;
  settings.kernels = number("FAKE_GPU_RUN", 1) ? text("FAKE_GPU_KERNELS", "") : "";
  log_file = file("FAKE_GPU_LOG");
  calls_file = file("FAKE_GPU_CALLS");
  if (calls_file) atexit(write_calls);
}
