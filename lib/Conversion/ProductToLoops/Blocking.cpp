//===- Blocking.cpp - how a product's kernel is cut -----------------------===//

#include "Blocking.h"

#include "llvm/TargetParser/Triple.h"
#include <numeric>

using namespace mlir;
using namespace dsopt;

/// Most rows of a block, by its vectors: sums, a line of b and one broadcast fit the registers. More than 24
/// sums gain nothing.
static int64_t mostRows(int64_t vectors, int64_t registers) {
  return std::min<int64_t>({(registers - 1 - vectors) / vectors, 24 / vectors, 16});
}

Blocking dsopt::chooseBlocking(exec::ProductAttr product, TargetAttr target) {
  Blocking blocking;
  blocking.lanes = target.getVectorBits() / 32;
  // AVX-512 and Arm have 32 registers, what is before AVX-512 has 16.
  bool isX86 = llvm::Triple(target.getTriple()).isX86();
  int64_t registers = isX86 && target.getVectorBits() < 512 ? 16 : 32;
  int64_t m = product.getM(), n = product.getN(), k = product.getK();
  int64_t vectors = (n + blocking.lanes - 1) / blocking.lanes;
  // Three vectors by eight rows of 32 registers, two by six of 16. Four make a whole of what would be two and
  // two; few rows need more vectors, or they would wait for their own sums.
  int64_t most = registers == 32 ? 3 : 2;
  if (registers == 32 && (vectors == 4 || m <= 6))
    most = m <= 2 ? 8 : m <= 4 ? 6 : 4;
  blocking.columns = Panels(vectors, most);
  blocking.rows = Panels(m, mostRows(blocking.columns.largest(), registers));
  // Of few rows and a b that lies transposed the copy would be most of the work, and what is to be copied of
  // b fits the registers beside the rows' sums. It is read once, at the rate of memory if few lines are
  // streams.
  bool isFew = product.getTransposeB() && m <= std::min<int64_t>(registers - blocking.lanes - 3, 13);
  if (isFew) {
    blocking.columns = Panels(vectors, 1);
    blocking.rows = Panels(m, m);
  }
  // Rows of a that lie as columns are one element of each line. Lines that are a multiple of a large power of
  // two apart share a few sets of the second cache, which then hold those of a run no longer than it takes to
  // read them. In 16 bits neighbours along the contraction have to be side by side.
  constexpr int64_t kSets = 1024, kWays = 16, kCacheLine = 64;
  int64_t bytes = product.getOperands().getIntOrFloatBitWidth() / 8, run = std::min(k, Blocking::kDepth);
  int64_t spread = kSets * kCacheLine / std::gcd(product.getLda() * bytes, kSets * kCacheLine);
  bool isNarrow = bytes < 4, collides = spread * kWays <= run;
  // What of a all panels of columns read should stay in a cache: the second for a band that is copied. Else
  // the last one will do, whose rows are read in order, and a copy of b serves more of them.
  constexpr int64_t kSecondCache = 1 << 20, kLastCache = 8 << 20;
  bool isLarge = m * run * bytes > kLastCache, isRead = blocking.columns.count > 2;
  blocking.copiesA = product.getTransposeA() && (isNarrow || (isRead && (collides || isLarge)));
  bool keepsSums = k > Blocking::kDepth && !product.getResult().isF32();
  int64_t rows = blocking.copiesA    ? kSecondCache / (run * bytes)
                 : isRead && isLarge ? kLastCache / (run * bytes)
                                     : m;
  // Sums that are kept take as much.
  constexpr int64_t kKeptRows = 256, kKept = kSecondCache / 2;
  if (keepsSums)
    rows = std::min(rows, kKeptRows);
  blocking.bands = Panels(blocking.rows.count, std::max<int64_t>(rows / blocking.rows.largest(), 1));
  if (keepsSums) {
    int64_t panel =
        blocking.bands.largest() * blocking.rows.largest() * blocking.columns.largest() * blocking.lanes * 4;
    blocking.panelsApart = std::clamp<int64_t>(kKept / panel, 1, blocking.columns.count);
  }
  // A copy pays where several blocks of rows read it, unless the panel is all of b or b fits the first cache.
  // In 16 bits it also pairs neighbours.
  constexpr int64_t kFirstCache = 32 * 1024;
  bool isFar = blocking.columns.count > 1 && n * k * bytes > kFirstCache;
  if (product.getTransposeB())
    blocking.packing = isFew ? Packing::Registers : Packing::Transpose;
  else if (blocking.rows.count > 2 && (isFar || isNarrow))
    blocking.packing = Packing::Fused;
  // A store to a line that no cache has waits for it. Where blocks are short their lines are asked for blocks
  // before. Lines that blocks share would be asked for twice.
  constexpr int64_t kSteps = 64;
  bool isWhole = n % blocking.lanes == 0 && product.getLdc() % blocking.lanes == 0;
  if (isWhole && k <= Blocking::kDepth && product.count() * m * n * bytes > kSecondCache)
    blocking.resultAhead = (kSteps - 1) * 4 / (k * bytes);
  return blocking;
}
