// What bench_products.py measures with: the peak of multiplications on registers, a kernel by some threads,
// and the serial or threaded calls of a library. All return seconds of one call, but for the peak (operations
// a second).
#define _GNU_SOURCE
#include <immintrin.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <time.h>

typedef void (*kernel_t)(int64_t, int64_t, void *const *);
typedef struct {
  int threads, arrived, phase;
} barrier_t;
typedef struct {
  kernel_t kernel;
  int64_t begin, end, repeats;
  void *const *args;
  barrier_t *barrier;
  int thread;
  double start;
} work_t;

// Without sleeping: who is woken may be put beside who woke it, on one processor.
static void wait_for_all(barrier_t *barrier) {
  int phase = __atomic_load_n(&barrier->phase, __ATOMIC_ACQUIRE);
  if (__atomic_add_fetch(&barrier->arrived, 1, __ATOMIC_ACQ_REL) == barrier->threads) {
    barrier->arrived = 0;
    __atomic_store_n(&barrier->phase, phase + 1, __ATOMIC_RELEASE);
  }
  while (__atomic_load_n(&barrier->phase, __ATOMIC_ACQUIRE) == phase)
    _mm_pause();
}

// A thread for each of the processors that the process may run on.
static cpu_set_t allowed;
static void place(int thread) {
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0, seen = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed) && seen++ == thread % CPU_COUNT(&allowed))
      CPU_SET(cpu, &one);
  sched_setaffinity(0, sizeof one, &one);
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

#ifdef __AVX512F__
enum { kSums = 24, kLanes = 16 };
typedef __m512 vector_t;
#define SET _mm512_set1_ps
#define FMA _mm512_fmadd_ps
#else
enum { kSums = 12, kLanes = 8 };
typedef __m256 vector_t;
#define SET _mm256_set1_ps
#define FMA _mm256_fmadd_ps
#endif

static void chains(int64_t rounds) {
  vector_t sums[kSums], x = SET(0.5f), y = SET(0.25f);
  for (int i = 0; i < kSums; ++i)
    sums[i] = SET(i); // equal chains would be one
  for (int64_t round = 0; round < rounds; ++round) {
#pragma clang loop unroll(full)
    for (int i = 0; i < kSums; ++i)
      sums[i] = FMA(sums[i], x, y);
  }
  __asm__ volatile("" : : "m"(sums));
}
#ifdef __AVX512BF16__
static void narrow_chains(int64_t rounds) {
  __m512 sums[kSums];
  __m512bh x = (__m512bh)_mm512_setzero_si512();
  for (int i = 0; i < kSums; ++i)
    sums[i] = SET(i);
  for (int64_t round = 0; round < rounds; ++round) {
#pragma clang loop unroll(full)
    for (int i = 0; i < kSums; ++i)
      sums[i] = _mm512_dpbf16_ps(sums[i], x, x);
  }
  __asm__ volatile("" : : "m"(sums));
}
enum { kPair = 2 };
#else
#define narrow_chains chains
enum { kPair = 1 };
#endif

static void *work(void *given) {
  work_t *w = given;
  place(w->thread);
  // A new thread's stack has no pages yet.
  if (w->kernel)
    w->kernel(w->begin, w->end, w->args);
  wait_for_all(w->barrier);
  w->start = now();
  for (int64_t i = 0; i < w->repeats; ++i) {
    if (w->kernel)
      w->kernel(w->begin, w->end, w->args);
    else if (w->begin)
      narrow_chains(w->end);
    else
      chains(w->end);
    // The calls of a step wait for each other.
    wait_for_all(w->barrier);
  }
  return 0;
}

static double together(int threads, work_t *works) {
  pthread_t others[64];
  barrier_t barrier = {threads, 0, 0};
  sched_getaffinity(0, sizeof allowed, &allowed);
  for (int i = 0; i < threads; ++i) {
    works[i].barrier = &barrier;
    works[i].thread = i;
    if (i)
      pthread_create(&others[i], 0, work, &works[i]);
  }
  work(&works[0]);
  double seconds = now() - works[0].start;
  for (int i = 1; i < threads; ++i)
    pthread_join(others[i], 0);
  sched_setaffinity(0, sizeof allowed, &allowed);
  return seconds;
}

double peak(int threads, int narrow) {
  enum { kRepeats = 20 };
  const int64_t rounds = 20000;
  work_t works[64];
  for (int i = 0; i < threads; ++i)
    works[i] = (work_t){0, narrow, rounds, kRepeats, 0, 0, 0, 0};
  return (double)kRepeats * threads * rounds * kSums * kLanes * 2 * (narrow ? kPair : 1) /
         together(threads, works);
}

double time_kernel(int threads, kernel_t kernel, int64_t range, void *const *args, int64_t repeats) {
  work_t works[64];
  for (int i = 0; i < threads; ++i)
    works[i] = (work_t){kernel, range * i / threads, range * (i + 1) / threads, repeats, args, 0, 0, 0};
  return together(threads, works) / repeats;
}

typedef int (*dnnl_t)(char, char, int64_t, int64_t, int64_t, float, const void *, int64_t, const void *,
                      int64_t, float, float *, int64_t);
double time_dnnl(dnnl_t f, int ta, int tb, int64_t m, int64_t n, int64_t k, const char *a, const char *b,
                 float *c, int64_t batch, int64_t bytes, int64_t repeats) {
  double start = now();
  for (int64_t i = 0; i < repeats; ++i)
    for (int64_t j = 0; j < batch; ++j)
      f(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, 1, a + j * m * k * bytes, ta ? m : k, b + j * k * n * bytes,
        tb ? k : n, 0, c + j * m * n, n);
  return (now() - start) / repeats;
}

typedef void (*cblas_t)(int, int, int, int64_t, int64_t, int64_t, float, const float *, int64_t,
                        const float *, int64_t, float, float *, int64_t);
double time_cblas(cblas_t f, int ta, int tb, int64_t m, int64_t n, int64_t k, const float *a, const float *b,
                  float *c, int64_t batch, int64_t repeats) {
  double start = now();
  for (int64_t i = 0; i < repeats; ++i)
    for (int64_t j = 0; j < batch; ++j)
      f(101, ta ? 112 : 111, tb ? 112 : 111, m, n, k, 1, a + j * m * k, ta ? m : k, b + j * k * n, tb ? k : n,
        0, c + j * m * n, n);
  return (now() - start) / repeats;
}
