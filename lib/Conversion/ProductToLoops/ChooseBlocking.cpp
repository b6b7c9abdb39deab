//===- ChooseBlocking.cpp - the model that cuts products' kernels ---------===//
//
// What a processor's registers and caches decide; a table (-gemm-table) goes before it.
// What each rule gained, and what others did not, is in docs/Performance.md.
//
//===----------------------------------------------------------------------===//

#include "Blocking.h"

#include "dsopt/Interfaces/CompiledProducts.h"
#include <numeric>

using namespace mlir;
using namespace dsopt;

using exec::ProductPacking;

constexpr int64_t kCacheLine = 64;
/// What of a all panels of columns read should stay in a cache: the second for a band that is copied. Else
/// the last one will do, whose rows are read in order, and a copy of b serves more of them.
constexpr int64_t kLastCache = 8 << 20;
/// Rows of a band whose sums are kept.
constexpr int64_t kKeptRows = 256;

/// Most rows of a block, by its vectors: sums, a line of b and one broadcast fit the registers. More than 24
/// sums gain nothing.
static int64_t mostRows(int64_t vectors, int64_t registers) {
  return std::min<int64_t>({(registers - 1 - vectors) / vectors, 24 / vectors, 16});
}

/// Bytes that a row of a has of a run of the contraction.
static int64_t bytesOfRun(exec::ProductAttr product) {
  return std::min(product.getK(), Blocking::kDepth) * bytesOf(product);
}

/// Two tiles of rows by two of columns with what they are products of take all eight; of one row of tiles so
/// many hide how long each waits for its last sum.
static exec::BlockingAttr chooseTiles(exec::ProductAttr product, TargetAttr target) {
  int64_t m = product.getM(), lanes = Registers(target).lanes;
  Panels columns((product.getN() + lanes - 1) / lanes, m > Blocking::kTileRows ? 2 : 6);
  Panels rows(m, 2 * Blocking::kTileRows);
  // What all panels of columns read of a stays in the second cache, as its copy does.
  bool copiesA = product.getTransposeA();
  int64_t inBand = columns.count > 1 || copiesA ? kSecondCache / bytesOfRun(product) : m;
  if (keepsSums(product))
    inBand = std::min(inBand, kKeptRows);
  Panels bands(rows.count, std::max<int64_t>(inBand / rows.largest(), 1));
  return exec::BlockingAttr::get(product.getContext(), rows.largest(), columns.largest(), bands.largest(),
                                 product.getTransposeB() ? ProductPacking::Transpose : ProductPacking::Fused,
                                 copiesA, /*resultAhead=*/-1, /*swaps=*/false);
}

namespace {
/// Rows and vectors of a block, and why.
struct BlockShape {
  Panels columns, rows;
  bool isShort = false; ///< what stores of a short contraction wait for decides
  bool isFew = false;   ///< squares of b are turned in registers
};
} // namespace

/// Three vectors by eight rows of 32 registers, by four of 16: six by two would read a more often, and leave
/// gaps in its copy. Four make a whole of what would be two and two, unless rows are copied a cache line at a
/// time. Few rows need more vectors, or they would wait for their own sums; those that would be cut need
/// fewer.
static int64_t mostVectors(int64_t m, int64_t vectors, int64_t registers, bool copiesLines) {
  if (registers == 32)
    return (vectors != 4 || copiesLines) && m > 6 ? 3 : m <= 2 ? 8 : m <= 4 ? 6 : 4;
  return m == 1 ? 6 : m == 2 ? 4 : m == 5 || m == 6 ? 2 : 3;
}

/// Of few rows and a b that lies transposed the copy would be most of the work, and what is to be copied of b
/// fits the registers beside the rows' sums. It is read once, at the rate of memory if few lines are streams.
static bool isFewRows(exec::ProductAttr product, const Registers &registers) {
  return product.getTransposeB() && !product.getPacked() &&
         product.getM() <= std::min<int64_t>(registers.besideSquare(), 13);
}

static BlockShape chooseShape(exec::ProductAttr product, const Registers &registers) {
  int64_t m = product.getM(), n = product.getN(), k = product.getK();
  int64_t vectors = (n + registers.lanes - 1) / registers.lanes, bytes = bytesOf(product);
  bool turnsA = product.getTransposeA();
  BlockShape block;
  block.columns =
      Panels(vectors, mostVectors(m, vectors, registers.count, /*copiesLines=*/turnsA && bytes < 4));
  block.rows = Panels(m, mostRows(block.columns.largest(), registers.count));
  block.isFew = isFewRows(product, registers);
  // What no cache holds until its neighbours are stored waits for memory. Of a short contraction a block's
  // stores come soon after the last one's: fewer at a time, more of a row side by side. Vectors that are not
  // halved need b from the first cache then.
  int64_t ofResult = product.getResult().getIntOrFloatBitWidth() / 8;
  // Bytes of a row of a: no more than three times as many as are stored, or to read them is what takes time.
  int64_t mostShort = std::min<int64_t>(1024, 3 * n * ofResult);
  bool isWritten = product.count() * m * n * ofResult > kSecondCache && k <= Blocking::kDepth && m > 6;
  // From a far cache a transposed a comes in time only for many multiplications of each line.
  block.isShort =
      registers.count == 32 && isWritten && k * bytes <= mostShort && !(registers.isFar && turnsA);
  bool isNarrowResult = ofResult < 4;
  auto cutShort = [&](int64_t mostOfRows, int64_t mostVectors) {
    block.columns = Panels(vectors, mostVectors);
    // Fewer sums would wait for each other: one takes four cycles.
    int64_t fewest = registers.isHalved ? 4 : 8;
    block.rows = Panels(m, std::max(mostOfRows, fewest / block.columns.largest()));
  };
  // One block of thirteen rows by two vectors, two cache lines, reads b once, where it lies. A packed one is
  // read fast enough for two blocks by three.
  bool isOneBlock = registers.lanes * 4 == kCacheLine && m > 8 && m <= 13 && vectors > 4 && !turnsA &&
                    !product.getPacked() && (bytes == 4 || bytesOfB(product) > kSecondCache);
  if (block.isFew || isOneBlock) {
    block.columns = Panels(vectors, block.isFew ? 1 : 2);
    block.rows = Panels(m, m);
  } else if (block.isShort && registers.isHalved)
    turnsA ? cutShort(4, 4) : cutShort(3, isNarrowResult ? 6 : 5);
  else if (block.isShort && turnsA)
    cutShort(8, bytes < 4 ? 3 : 2);
  else if (block.isShort && k * bytes * registers.lanes * 4 <= kFirstCache)
    cutShort(5, isNarrowResult ? 4 : 5);
  else if (registers.isHalved && isWritten && isNarrowResult && m * k * bytes > kSecondCache) {
    // Whole lines of a narrow result.
    block.columns = Panels(vectors, 4);
    block.rows = Panels(m, mostRows(block.columns.largest(), registers.count));
  }
  return block;
}

/// Whether a is copied. Rows of a that lie as columns are one element of each line. Lines that are a multiple
/// of a large power of two apart share a few sets of the second cache, which then hold those of a run no
/// longer than it takes to read them. In 16 bits neighbours along the contraction have to be side by side.
static bool copiesRows(exec::ProductAttr product, const Registers &registers, const BlockShape &block) {
  int64_t run = std::min(product.getK(), Blocking::kDepth), bytes = bytesOf(product);
  if (!product.getTransposeA())
    return false;
  if (bytes < 4)
    return true;
  constexpr int64_t kSets = 1024, kWays = 16, kFewPanels = 4;
  int64_t ofRun = product.getM() * bytesOfRun(product), panels = block.columns.count;
  int64_t spread = kSets * kCacheLine / std::gcd(product.getLda() * bytes, kSets * kCacheLine);
  bool collides = spread * kWays <= run, isLarge = ofRun > kLastCache;
  // Blocks of few rows read a part of each line, which the first cache keeps for the next block if a run has
  // few.
  bool isKept = run * kCacheLine <= kFirstCache;
  if (registers.count == 16 && panels > (isKept ? 2 * kFewPanels : kFewPanels))
    return true;
  // Blocks wait for their lines in each panel, and longer where a run is larger; to copy takes a quarter of a
  // panel. Few rows are few blocks to share what the first of a panel waits for.
  bool isWhole = registers.count == 32 && !registers.isHalved;
  bool isLong = isWhole && product.getK() > Blocking::kDepth && ofRun <= kSecondCache;
  int64_t fewPanels = !isWhole || ofRun > 2 * kSecondCache ? 2
                      : ofRun > kSecondCache               ? kFewPanels
                                                           : 2 * kFewPanels;
  return panels > fewPanels && (collides || isLarge || isLong);
}

static Panels chooseBands(exec::ProductAttr product, const Registers &registers, const BlockShape &block,
                          bool copiesA) {
  int64_t m = product.getM(), ofRow = bytesOfRun(product);
  bool isRead = block.columns.count > 2;
  int64_t inBand = copiesA ? kSecondCache / ofRow : isRead && m * ofRow > kLastCache ? kLastCache / ofRow : m;
  // The last cache would lose much of it to a result that is stored, and from a far one it comes too late. Of
  // short runs b is copied soon.
  constexpr int64_t kShortRun = 2048;
  bool isSoonCopied = registers.isFar ? ofRow <= kShortRun : block.isShort && !registers.isHalved;
  int64_t mostOfA = registers.isFar ? kSecondCache : 2 * kSecondCache;
  if (isSoonCopied && isRead && !product.getTransposeA() && m * ofRow > mostOfA)
    inBand =
        std::min(inBand, std::max<int64_t>(kSecondCache / 2 / ofRow, product.getTransposeB() ? 512 : 256));
  if (keepsSums(product))
    inBand = std::min(inBand, kKeptRows);
  const Panels &rows = block.rows;
  Panels bands(rows.count, std::max<int64_t>(inBand / rows.largest(), 1));
  // Threads share a product by bands first: what one of them has alone no other copies. Each band copies b.
  constexpr int64_t kFewestBlocks = 8;
  for (int64_t count : {4, 2})
    if (copiesA && product.count() == 1 && m >= 2 * product.getN() && bands.count < count &&
        rows.count / count >= kFewestBlocks)
      return Panels(rows.count, (rows.count + count - 1) / count);
  return bands;
}

/// Whether rows are so few that a b from memory takes longer than they do, and read by lines.
static bool readsLines(exec::ProductAttr product, const Panels &columns) {
  constexpr int64_t kShort = 16; // vectors of a line
  int64_t m = product.getM();
  bool isNarrow = bytesOf(product) < 4;
  return !product.getTransposeB() && !product.getPacked() && columns.extent() >= kShort &&
         m <= (isNarrow ? 2 : 4) && bytesOfB(product) > (isNarrow || m > 2 ? kLastCache : kSecondCache);
}

/// As what the model goes by: what is copied in fp32 is as if it were.
static exec::ProductAttr asMultiplied(exec::ProductAttr product, TargetAttr target) {
  bool isWidened = widensOperands(target, product.getOperands());
  return isWidened ? product.withOperands(Float32Type::get(product.getContext())) : product;
}

static exec::BlockingAttr chooseAsItIs(exec::ProductAttr product, TargetAttr target) {
  if (multipliesTiles(target, product.getOperands()))
    return chooseTiles(product, target);
  bool isWidened = widensOperands(target, product.getOperands());
  product = asMultiplied(product, target);
  Registers registers(target);
  int64_t m = product.getM(), n = product.getN(), k = product.getK(), bytes = bytesOf(product);
  BlockShape block = chooseShape(product, registers);
  bool copiesA = isWidened || copiesRows(product, registers, block);
  // Eight rows or sixteen are turned whole.
  if (copiesA && product.getTransposeA() && block.rows.largest() > 8 && block.rows.largest() < 16)
    block.rows = Panels(m, 8);
  if (readsLines(product, block.columns)) {
    // As long as can be, and panels enough to be shared.
    constexpr int64_t kLongest = 128;
    int64_t all = block.columns.extent(), panels = all >= 128 ? 8 : all >= 48 ? 4 : 2;
    int64_t vectors = std::min((all + panels - 1) / panels, kLongest);
    return exec::BlockingAttr::get(product.getContext(), m, vectors, /*band=*/1, ProductPacking::Lines,
                                   copiesA, /*resultAhead=*/-1, /*swaps=*/false);
  }
  Panels bands = chooseBands(product, registers, block, copiesA);
  // A copy pays where several blocks of rows read it, unless the panel is all of b or b fits the first cache.
  // In 16 bits it also pairs neighbours, or widens them.
  bool isLarge = block.columns.count > 1 && n * k * bytes > kFirstCache;
  ProductPacking packing = ProductPacking::None;
  if (product.getTransposeB())
    packing = block.isFew ? ProductPacking::Registers : ProductPacking::Transpose;
  else if (product.getPacked() || (block.rows.count > 1 && isLarge) ||
           (block.rows.count > 2 && (bytes < 4 || isWidened)))
    packing = ProductPacking::Fused;
  // A store to a line that no cache has waits for it. Where blocks are short their lines are asked for blocks
  // before. Lines that blocks share would be asked for twice, which pays for far ones.
  constexpr int64_t kSteps = 64;
  bool isWhole = n % registers.lanes == 0 && product.getLdc() % registers.lanes == 0;
  int64_t resultAhead = -1;
  if ((isWhole || registers.isFar) && k <= Blocking::kDepth && product.count() * m * n * bytes > kSecondCache)
    resultAhead = (kSteps - 1) * 4 / (k * bytes);
  return exec::BlockingAttr::get(product.getContext(), block.rows.largest(), block.columns.largest(),
                                 bands.largest(), packing, copiesA, resultAhead, /*swaps=*/false);
}

exec::BlockingAttr dsopt::chooseBlocking(exec::ProductAttr product, TargetAttr target, bool swaps) {
  if (!swaps)
    return chooseAsItIs(product, target);
  // Lines of the result are asked for by no block: the last one's stores are long done.
  exec::BlockingAttr choice = chooseAsItIs(product.transposed(), target);
  return exec::BlockingAttr::get(product.getContext(), choice.getRows(), choice.getVectors(),
                                 choice.getBand(), choice.getPacking(), choice.getCopiesA(),
                                 /*resultAhead=*/-1, /*swaps=*/true);
}

/// Multiplications that an element of the result takes, with lanes that are empty and what it takes to turn b
/// and to copy a or, with `swaps`, to turn the result (docs/Performance.md); 1: none but its own.
static double costOfLanes(exec::ProductAttr computed, const Registers &registers, bool swaps) {
  int64_t m = computed.getM(), n = computed.getN(), lanes = registers.lanes;
  constexpr double kCopy = 10, kTurnInRegisters = 2; // for each of the rows or columns that share it
  double cost = double(llvm::alignTo(n, lanes)) / n;
  if (computed.getTransposeB())
    cost *= 1 + (isFewRows(computed, registers) ? kTurnInRegisters : kCopy) / m;
  if (computed.getTransposeA() && bytesOf(computed) < 4)
    cost *= 1 + kCopy / n;
  constexpr int64_t kRows = 8; // of a block
  int64_t steps = bytesOfRun(computed) / 4;
  if (swaps)
    cost += double(lanes * llvm::Log2_64(lanes)) / (std::min(m, kRows) * std::max<int64_t>(steps, 1));
  return cost;
}

/// Whether vectors are of the result's rows.
static bool swapsOperands(exec::ProductAttr product, TargetAttr target) {
  int64_t m = product.getM(), n = product.getN(), k = product.getK();
  if (multipliesTiles(target, product.getOperands()) || product.getPacked() || m <= kMostRowsOfPacked)
    return false;
  Registers registers(target);
  constexpr double kClearly = 1.05;
  exec::ProductAttr multiplied = asMultiplied(product, target);
  if (kClearly * costOfLanes(multiplied.transposed(), registers, /*swaps=*/true) <
      costOfLanes(multiplied, registers, /*swaps=*/false))
    return true;
  // What rows that lie as columns have of a line is read by one block of them after the other, and by vectors
  // at once: where it comes from memory, and is little, that is faster.
  return registers.count == 32 && !registers.isFar && product.getOperands().isF32() &&
         product.getTransposeA() && !product.getTransposeB() && m <= 4 * registers.lanes &&
         m % registers.lanes == 0 && n >= 2 * m && (m + n) * k * bytesOf(product) > 2 * kLastCache;
}

exec::BlockingAttr dsopt::chooseBlocking(exec::ProductAttr product, TargetAttr target) {
  return chooseBlocking(product, target, swapsOperands(product, target));
}

exec::BlockingAttr dsopt::blockingOf(Operation *kernel, exec::ProductAttr product, TargetAttr target) {
  auto said = kernel->getAttrOfType<exec::BlockingAttr>(exec::kBlockingAttr);
  return said ? said : chooseBlocking(product, target);
}
