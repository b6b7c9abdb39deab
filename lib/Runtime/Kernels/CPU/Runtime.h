//===- Runtime.h - what dsopt_rt is -----------------------------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_KERNELS_CPU_RUNTIME_H
#define DSOPT_LIB_RUNTIME_KERNELS_CPU_RUNTIME_H

#include "Core/Profile.h"
#include "Core/ThreadPool.h"
#include "Kernels/DeviceCalls.h"
#include "dsopt/Runtime/ABI.h"

#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

/// Nanoseconds for one element of a kernel's range, as last seen: decides only
/// whether a launch is worth waking the workers, never what it computes.
struct dsopt_launch_cost {
  dsopt_kernel kernel = nullptr;
  float nanoseconds = 0;
};

namespace dsopt::runtime {
/// Whether the library's products of a type are of operands in fp32: of f16, and of bf16 where the program's
/// features have no instruction for it.
bool extendsOperands(int64_t type);
} // namespace dsopt::runtime

struct dsopt_rt {
  static constexpr int kCosts = 512;
  dsopt::runtime::ThreadPool *pool = nullptr;
  dsopt::runtime::Profile *profile = nullptr;    ///< measures calls if somebody wants to know
  int64_t sequenceRank = 0;                      ///< this rank's coordinate along sp
  dsopt::runtime::DeviceCalls *device = nullptr; ///< does what segments call, where buffers are a device's
  dsopt_launch_cost costs[kCosts];

  /// Space for tiles in f32 for each thread, made before the library's first product of operands of the type:
  /// of a result that is stored in less, behind it of operands that are extended.
  void prepareTiles(int64_t type) {
    int64_t count = dsopt::runtime::extendsOperands(type) ? 3 : type == DSOPT_BF16 ? 1 : 0;
    if (count <= tilesOfThread)
      return;
    tilesOfThread = count;
    // Not initialized: what no product of the library writes takes no memory.
    tiles.reset(new float[pool->threads() * count * kTile + 16]);
  }
  float *tileOf(int thread) {
    auto start = (reinterpret_cast<uintptr_t>(tiles.get()) + 63) & ~uintptr_t(63);
    return tiles ? reinterpret_cast<float *>(start) + thread * tilesOfThread * kTile : nullptr;
  }
  static constexpr int64_t kTile = 512 * 512; ///< elements of the largest tile

private:
  int64_t tilesOfThread = 0;
  std::unique_ptr<float[]> tiles;
};

namespace dsopt::runtime {

/// The version of the choice of library, algorithm and tiles for matrix products and attention, and of their
/// kernels' order of additions and what they add beside (compile-products, raise-epilogues).
inline constexpr int kKernelTable = 8;

/// To be called first in every thread that computes: libraries run serially in it.
void prepareThread();

/// Sets the libraries' instruction set from the CPU features the program is compiled for, so that
/// products have the same bits on every machine that runs it; before the first product.
void limitLibraries(const std::vector<std::string> &features);

/// Whether a processor with these features has all of those named.
bool hasAll(const std::vector<std::string> &features, std::initializer_list<const char *> names);

/// Chooses whether the library multiplies bf16 from the same features; limitLibraries calls it.
void selectProducts(const std::vector<std::string> &features);

/// Chooses attention's instruction set from the same features; limitLibraries calls it.
void selectAttention(const std::vector<std::string> &features);

/// Asks Linux to let this process use AMX's tiles where the same features have them; limitLibraries calls it.
/// Throws where it does not.
void allowTiles(const std::vector<std::string> &features);

/// Chooses what measurePeak measures from the same features; limitLibraries calls it.
void selectPeak(const std::vector<std::string> &features);

/// How a product is cut (DESIGN 2.1 rule 2).
struct GemmTiles {
  int64_t tile = 512; ///< rows and columns of a result tile
  int64_t chunk = 0;  ///< of the contraction; 0: whole
  int64_t rows = 1, columns = 1;
};
GemmTiles gemmTiles(int64_t batch, int64_t m, int64_t n, int64_t k);
/// What dsopt_rt_gemm does, for routines that contain products.
void multiply(dsopt_rt &rt, const dsopt_gemm &product, const void *a, const void *b, void *c,
              bool accumulate);

/// The same by a kernel that is compiled for it, if there is one.
void multiply(dsopt_rt &rt, const dsopt_product_kernel &compiled, const dsopt_gemm &product, const void *a,
              const void *b, void *c, bool accumulate);
/// What dsopt_rt_launch does.
void launch(dsopt_rt &rt, dsopt_kernel kernel, int64_t range, int64_t grain, void *const *args);

/// Bytes a second of a triad over arrays that no cache holds.
double measureBandwidth(ThreadPool &pool);
/// Floating-point operations a second of fused multiplications and additions on elements of a type (DSOPT_F32
/// ...), by all threads.
double measurePeak(ThreadPool &pool, int64_t type);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_KERNELS_CPU_RUNTIME_H
