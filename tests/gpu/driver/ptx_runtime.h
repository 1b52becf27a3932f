// What the driver and the C code made from PTX share: a thread, and instructions that C has no operator for.
#pragma once
#include <math.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;

typedef enum { SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_XOR, SHUFFLE_INDEX } ShuffleMode;
typedef enum { VOTE_BALLOT, VOTE_ANY, VOTE_ALL, VOTE_UNIFORM, VOTE_SYNC_ONLY, VOTE_MATCH } VoteMode;

typedef struct Thread Thread;
typedef struct {  // what the driver does for a thread (threads.c)
  void *(*resolve)(Thread *, u64 address, unsigned bytes);
  void (*bad_shared)(Thread *, u64 address, unsigned bytes);
  void (*bad_local)(Thread *, u64 address);
  void (*barrier)(Thread *, u32 id, u32 count);
  u32 (*shuffle)(Thread *, ShuffleMode mode, u32 value, u32 b, u32 c, u32 mask, u8 *inside, int site);
  u32 (*vote)(Thread *, VoteMode mode, u32 value, u32 mask, int site);
  const u32 (*(*gather)(Thread *, const u32 *words, int count, int site))[32];  // word -> its value in each lane
  void (*trap)(Thread *);
  void (*failed_assert)(Thread *, const char *message, const char *file, u32 line, const char *function);
} Services;

struct Thread {
  u64 low, span, delta;  // this device's addresses, and how far from them the bytes are
  const u8 *parameters;
  u8 *shared;
  u64 shared_size;
  u32 tid[3], ctaid[3], ntid[3], nctaid[3];
  u32 linear;  // the number of the thread in its block
  int done;
  void *stack;
  const Services *services;
};

// ------------------------------------------------------------------------------------------------------------ memory
// A generic address says in its highest byte which memory it is in, where that is not global memory.
#define TAG(n) ((u64)(n) << 56)
enum { SHARED_TAG = 1, LOCAL_TAG = 2, DATA_TAG = 3 };

static inline void *G(Thread *t, u64 address, unsigned bytes) {  // global
  if (__builtin_expect(address - t->low >= t->span || (address & (bytes - 1)), 0))
    return t->services->resolve(t, address, bytes);
  return (void *)(address + t->delta);
}

static inline void *S(Thread *t, u64 address, unsigned bytes) {  // shared
  if (__builtin_expect(address + bytes > t->shared_size || (address & (bytes - 1)), 0))
    t->services->bad_shared(t, address, bytes);
  return t->shared + address;
}

static inline void *L(Thread *t, u64 address, unsigned bytes) {  // local
  if (__builtin_expect(address & (bytes - 1), 0)) t->services->bad_local(t, address);
  return (void *)address;
}

static inline void assert_failed(Thread *t, const u8 *message, const u8 *file, const u8 *line, const u8 *function) {
  u64 texts[3];
  u32 number;
  memcpy(&texts[0], message, 8), memcpy(&texts[1], file, 8), memcpy(&texts[2], function, 8), memcpy(&number, line, 4);
  const char *said[3];
  for (int i = 0; i < 3; i++) said[i] = t->services->resolve(t, texts[i], 1);
  t->services->failed_assert(t, said[0], said[1], number, said[2]);
}

// -------------------------------------------------------------------------------------------------- registers and types
// A register is bits; these read it as a float (F), double (D), half (FH), bfloat16 (FB), and write it back (U…).
static inline float F(u32 bits) { float x; memcpy(&x, &bits, 4); return x; }
static inline u32 UF(float x) { u32 bits; memcpy(&bits, &x, 4); return bits; }
static inline double D(u64 bits) { double x; memcpy(&x, &bits, 8); return x; }
static inline u64 UD(double x) { u64 bits; memcpy(&bits, &x, 8); return bits; }
static inline float FH(u16 bits) { _Float16 x; memcpy(&x, &bits, 2); return (float)x; }
static inline u16 UH(float x) { _Float16 h = (_Float16)x; u16 bits; memcpy(&bits, &h, 2); return bits; }
static inline u16 UHD(double x) { _Float16 h = (_Float16)x; u16 bits; memcpy(&bits, &h, 2); return bits; }
static inline float FB(u16 bits) { return F((u32)bits << 16); }
static inline u16 UB(float x) {
  u32 bits = UF(x);
  return x != x ? 0x7fff : (u16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// --------------------------------------------------------------------------------------------------- floating point
static inline float ftz(float x) { return UF(x) & 0x7f800000 ? x : F(UF(x) & 0x80000000); }  // flush denormals to zero
static inline float sat(float x) { return x > 0.f ? (x < 1.f ? x : 1.f) : 0.f; }

// a * b + c rounded down: the product is exact in double; `error` is what the double sum has lost.
static inline float fma_rm(float a, float b, float c) {
  double product = (double)a * b, sum = product + c, back = sum - product;
  double error = (product - (sum - back)) + (c - back);
  float result = (float)sum;
  if (result != result || isinf(sum)) return result;
  return result > sum || (result == sum && error < 0) ? nextafterf(result, -INFINITY) : result;
}
static inline float fma_rp(float a, float b, float c) { return -fma_rm(-a, b, -c); }
static inline float fma_rz(float a, float b, float c) {
  return (double)a * b + c >= 0 ? fma_rm(a, b, c) : fma_rp(a, b, c);
}

// The smaller or larger number: nan only if both are nan, and -0 is smaller than 0.
#define MIN_AND_MAX(type, suffix)                                \
  static inline type max_##suffix(type a, type b) {              \
    if (a != a || b != b) return a != a ? b : a;                 \
    return a == b ? (signbit(a) ? b : a) : a > b ? a : b;        \
  }                                                              \
  static inline type min_##suffix(type a, type b) {              \
    if (a != a || b != b) return a != a ? b : a;                 \
    return a == b ? (signbit(a) ? a : b) : a < b ? a : b;        \
  }
MIN_AND_MAX(float, f)
MIN_AND_MAX(double, d)

// To an integer, held at the ends of its range.
#define TO_INTEGER(type, low, high, nan)            \
  static inline type to_##type(double x) {          \
    if (x != x) return nan;                         \
    if (x <= (double)low) return low;               \
    return x >= (double)high ? high : (type)x;      \
  }
TO_INTEGER(s8, INT8_MIN, INT8_MAX, 0)
TO_INTEGER(u8, 0, UINT8_MAX, 0)
TO_INTEGER(s16, INT16_MIN, INT16_MAX, 0)
TO_INTEGER(u16, 0, UINT16_MAX, 0)
TO_INTEGER(s32, INT32_MIN, INT32_MAX, 0)
TO_INTEGER(u32, 0, UINT32_MAX, 0)
TO_INTEGER(s64, INT64_MIN, INT64_MAX, INT64_MIN)
TO_INTEGER(u64, 0, UINT64_MAX, 0x8000000000000000ull)

// ---------------------------------------------------------------------------------------------------------- integers
// Shifts by more than the width give 0 (or the sign); division by 0 gives all ones, the remainder the dividend.
static inline u32 shl32(u32 a, u32 n) { return n > 31 ? 0 : a << n; }
static inline u64 shl64(u64 a, u32 n) { return n > 63 ? 0 : a << n; }
static inline u32 shr32(u32 a, u32 n) { return n > 31 ? 0 : a >> n; }
static inline u64 shr64(u64 a, u32 n) { return n > 63 ? 0 : a >> n; }
static inline s32 sar32(s32 a, u32 n) { return a >> (n > 31 ? 31 : n); }
static inline s64 sar64(s64 a, u32 n) { return a >> (n > 63 ? 63 : n); }
static inline s32 div_s32(s32 a, s32 b) { return b == 0 ? -1 : b == -1 ? (s32) - (u32)a : a / b; }
static inline s64 div_s64(s64 a, s64 b) { return b == 0 ? -1 : b == -1 ? (s64) - (u64)a : a / b; }
static inline u32 div_u32(u32 a, u32 b) { return b == 0 ? ~0u : a / b; }
static inline u64 div_u64(u64 a, u64 b) { return b == 0 ? ~0ull : a / b; }
static inline s32 rem_s32(s32 a, s32 b) { return b == 0 ? a : b == -1 ? 0 : a % b; }
static inline s64 rem_s64(s64 a, s64 b) { return b == 0 ? a : b == -1 ? 0 : a % b; }
static inline u32 rem_u32(u32 a, u32 b) { return b == 0 ? a : a % b; }
static inline u64 rem_u64(u64 a, u64 b) { return b == 0 ? a : a % b; }

// Bit fields: `n` bits from bit `at` on.
static inline u64 bfi_b64(u64 a, u64 b, u32 at, u32 n) {
  at &= 255, n &= 255;
  u64 mask = n > 63 ? ~0ull : (1ull << n) - 1;
  return (b & ~shl64(mask, at)) | (shl64(a, at) & shl64(mask, at));
}
static inline u32 bfi_b32(u32 a, u32 b, u32 at, u32 n) { return (u32)bfi_b64(a, b, at, n); }
static inline u64 bfe_u64(u64 a, u32 at, u32 n) {
  at &= 255, n &= 255;
  return n > 63 ? shr64(a, at) : shr64(a, at) & ((1ull << n) - 1);
}
static inline u32 bfe_u32(u32 a, u32 at, u32 n) { return (u32)bfe_u64(a, at, n); }
static inline s64 bfe_signed(s64 a, u32 at, u32 n, u32 width) {
  s64 result = 0;
  at &= 255, n &= 255;
  for (u32 i = 0; n && i < width; i++) {
    u32 from = i < n ? at + i : at + n - 1;
    if (a >> (from < width ? from : width - 1) & 1) result |= 1ll << i;
  }
  return result;
}
static inline u32 brev32(u32 x) {
  u32 result = 0;
  for (int i = 0; i < 32; i++) result |= (x >> i & 1u) << (31 - i);
  return result;
}
static inline u64 brev64(u64 x) { return (u64)brev32((u32)x) << 32 | brev32((u32)(x >> 32)); }

// Any four of eight bytes, or their signs.
static inline u32 prmt(u32 a, u32 b, u32 selector) {
  u64 bytes = (u64)b << 32 | a;
  u32 result = 0;
  for (int i = 0; i < 4; i++) {
    u32 choice = selector >> 4 * i & 15, byte = bytes >> 8 * (choice & 7) & 255;
    if (choice & 8) byte = byte & 128 ? 255 : 0;
    result |= byte << 8 * i;
  }
  return result;
}

// ------------------------------------------------------------------------------------------------- tensor cores
// mma.sync of 16 × k by k × 8: lane 4 g + l holds of `a` the words (g, l), (g + 8, l), (g, l + 4), (g + 8, l + 4), of `b` the
// words (l, g), (l + 4, g), and of the sums (g, 2 l), (g, 2 l + 1) and the same of row g + 8. A word is one number of TF32 or
// two of 16 bits, which follow each other along k. Products and sums are exact up to double precision, and rounded once.
typedef enum { MMA_TF32, MMA_BF16, MMA_F16 } MmaKind;

static inline double mma_number(MmaKind kind, u32 word, int half) {
  u16 bits = half ? word >> 16 : word;
  return kind == MMA_TF32 ? F(word & 0xffffe000) : kind == MMA_BF16 ? FB(bits) : FH(bits);
}

static inline void mma(Thread *t, MmaKind kind, const u32 *operands, const u32 *sums, u32 *results, int site) {
  const u32(*words)[32] = t->services->gather(t, operands, 6, site);
  int g = (t->linear & 31) / 4, l = t->linear & 3;
  for (int i = 0; i < 4; i++) {
    int below = i / 2, column = 2 * l + i % 2;
    double sum = F(sums[i]);
    for (int k = 0; k < 8; k++)
      for (int half = 0; half < (kind == MMA_TF32 ? 1 : 2); half++)
        sum += mma_number(kind, words[below + 2 * (k / 4)][4 * g + k % 4], half) *
               mma_number(kind, words[4 + k / 4][4 * column + k % 4], half);
    results[i] = UF((float)sum);
  }
}

// ldmatrix: lanes 8 m … 8 m + 7 name the rows of matrix m, 16 bytes each; lane 4 g + l gets word l of row g or, transposed, the
// 16-bit numbers (2 l, g) and (2 l + 1, g).
static inline void ldmatrix(Thread *t, u32 address, int count, int transposed, u32 *results, int site) {
  const u32(*rows)[32] = t->services->gather(t, &address, 1, site);
  u32 named[32];
  memcpy(named, rows[0], sizeof named);
  int g = (t->linear & 31) / 4, l = t->linear & 3;
  for (int m = 0; m < count; m++) {
    u16 low, high;
    if (!transposed) {
      memcpy(&results[m], (u8 *)S(t, named[8 * m + g], 16) + 4 * l, 4);
      continue;
    }
    memcpy(&low, (u8 *)S(t, named[8 * m + 2 * l], 16) + 2 * g, 2);
    memcpy(&high, (u8 *)S(t, named[8 * m + 2 * l + 1], 16) + 2 * g, 2);
    results[m] = low | (u32)high << 16;
  }
}
