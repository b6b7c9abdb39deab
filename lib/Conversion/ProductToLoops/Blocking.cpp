//===- Blocking.cpp - how a product's kernel is cut -----------------------===//

#include "Blocking.h"

#include "dsopt/Interfaces/CompiledProducts.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/TargetParser/Triple.h"

using namespace mlir;
using namespace dsopt;

using exec::ProductPacking;

Registers::Registers(TargetAttr target)
    : lanes(productLanes(target)),
      count(llvm::Triple(target.getTriple()).isX86() && target.getVectorBits() < 512 ? 16 : 32),
      isHalved(target.getArch() == "znver4"),
      isFar(llvm::Triple(target.getTriple()).isX86() && target.getVectorBits() == 512 &&
            !target.getArch().starts_with("znver")) {}

int64_t dsopt::bytesOf(exec::ProductAttr product) {
  return product.getOperands().getIntOrFloatBitWidth() / 8;
}

int64_t dsopt::bytesOfB(exec::ProductAttr product) {
  return product.count() * product.getN() * product.getK() * bytesOf(product);
}

bool dsopt::keepsSums(exec::ProductAttr product) {
  return product.getK() > Blocking::kDepth && !product.getResult().isF32();
}

/// Lines of b, of pairs in 16 bits, whose factors fit the registers beside sums and a vector of a line. More
/// than eight lines gain nothing.
static int64_t linesAtATime(int64_t rows, int64_t registers, int64_t group) {
  return std::min((registers - 1 - rows) / rows, 8 / group);
}

Blocking::Blocking(exec::ProductAttr given, TargetAttr target, exec::BlockingAttr choice)
    : product(choice.getSwaps() ? given.transposed() : given), swaps(choice.getSwaps()),
      lanes(Registers(target).lanes), rows(product.getM(), choice.getRows()),
      columns((product.getN() + lanes - 1) / lanes, choice.getVectors()), bands(rows.count, choice.getBand()),
      copiesA(choice.getCopiesA()), packing(choice.getPacking()) {
  if (choice.getResultAhead() >= 0)
    resultAhead = choice.getResultAhead();
  inTiles = multipliesTiles(target, product.getOperands());
  isWidened = widensOperands(target, product.getOperands());
  Registers registers(target);
  int64_t bytes = bytesOf(product), depth = std::min(product.getK(), kDepth);
  bytesOfCopy = isWidened ? 4 : bytes;
  int64_t group = 4 / bytesOfCopy;
  // What fills a tile up is zero.
  int64_t link = inTiles ? kTileDepth : group, groups = (depth + link - 1) / link * (link / group);
  if (product.getPacked())
    packedDepth = llvm::alignTo(product.getK(), group);
  else if (copiesB())
    copyElements = groups * columns.largest() * lanes * group;
  if (copiesA) {
    // Blocks would else begin in one set of the first cache.
    constexpr int64_t kBetween = 64;
    if (product.getTransposeA()) {
      widthOfCopyA = inTiles ? tilesOf(rows.largest()) * kTileRows : llvm::PowerOf2Ceil(rows.largest());
      blockOfCopyA = groups * widthOfCopyA * group + kBetween / bytesOfCopy;
    } else {
      depthOfCopyA = depth + kBetween / bytesOfCopy;
      blockOfCopyA = rows.largest() * depthOfCopyA;
    }
    copyOfAElements = bands.largest() * blockOfCopyA;
  }
  if (inTiles && !copiesA && product.getK() % kTileDepth)
    restElements = rows.largest() * kTileDepth;
  if (packing == ProductPacking::Lines)
    lines = linesAtATime(rows.largest(), registers.count, group);
  if (inTiles || packing == ProductPacking::Lines)
    sumElements = rows.largest() * columns.largest() * lanes;
  // Where few panels of columns read them they come from memory, each time at places that it does not
  // foresee. From a far cache that takes time of every panel.
  constexpr int64_t kFewPanels = 4;
  int64_t ofRows = product.getM() * bytes, ofA = product.count() * ofRows * product.getK();
  bool isStreamed = columns.count <= kFewPanels && ofA > kSecondCache;
  asksForRows = !copiesA && !inTiles && (isStreamed || (registers.isFar && ofRows * depth > kSecondCache));
  asksInSteps = registers.isFar && !inTiles && packing != ProductPacking::Registers;
  asksForCopy = asksInSteps && copyElements * bytesOfCopy > kFirstCache;
  asksForColumns = asksInSteps && product.getTransposeA() && !copiesA;
  // What is copied is asked for. Where one block of rows reads all of b, once, a panel has a part of lines
  // that are far apart; for a single row to ask would be most of the work.
  bool isReadOnce = packing == ProductPacking::None && rows.count == 1 && product.getM() * group > 1 &&
                    bytesOfB(product) > kSecondCache;
  asksForLines = columns.count > 1 && !inTiles && !product.getPacked() && (copiesB() || isReadOnce);
  if (!keepsSums(product))
    return;
  // In half the second cache.
  int64_t panel = bands.largest() * rows.largest() * columns.largest() * lanes;
  panelsApart = std::clamp<int64_t>(kSecondCache / 2 / (panel * 4), 1, columns.count);
  apartElements = panelsApart * panel;
}

int64_t Blocking::scratchBytes() const {
  return (copyElements + copyOfAElements + restElements) * bytesOfCopy + (apartElements + sumElements) * 4;
}

bool dsopt::isCompiled(exec::ProductAttr product, TargetAttr target) {
  return compilesProducts(target, product.getOperands(), product.getResult());
}

/// What of them is no matter of other products too.
static std::string problemOfTiles(exec::ProductAttr product, const Blocking &blocking) {
  if (!blocking.copiesB())
    return "tiles are of copies of b, expected packing fused or transpose";
  int64_t few = std::min(product.getM(), Blocking::kTileRows);
  if (blocking.rows.size < few)
    return llvm::formatv("tiles have {0} rows, got blocks of {1}", few, blocking.rows.size);
  constexpr int64_t kTiles = 8;
  int64_t ofRows = Blocking::tilesOf(blocking.rows.largest());
  if (int64_t needed = ofRows * blocking.columns.largest() + ofRows + 1; needed > kTiles)
    return llvm::formatv("sums, their rows' part of a and one of b take {0} tiles, and there are {1}", needed,
                         kTiles);
  return "";
}

std::string dsopt::problemOf(exec::ProductAttr product, TargetAttr target, exec::BlockingAttr choice) {
  if (choice.getSwaps()) {
    if (product.getPacked() || multipliesTiles(target, product.getOperands()))
      return product.getPacked() ? "b is packed, expected no swaps"
                                 : "blocks of tiles are not turned, expected no swaps";
    std::string problem = problemOf(product.transposed(), target, choice.withSwaps(false));
    return problem.empty() ? "" : "of the transposed product " + problem;
  }
  Registers registers(target);
  Blocking blocking(product, target, choice);
  int64_t rows = blocking.rows.largest(), vectors = blocking.columns.largest();
  bool isNarrow = bytesOf(product) < 4, turnsA = product.getTransposeA(), turnsB = product.getTransposeB();
  bool inRegisters = blocking.packing == ProductPacking::Registers;
  if (turnsB != (inRegisters || blocking.packing == ProductPacking::Transpose))
    return turnsB ? "b lies transposed, expected packing transpose or registers"
                  : "b does not lie transposed, expected packing none, fused or lines";
  bool inLines = blocking.packing == ProductPacking::Lines;
  if (product.getPacked() && (blocking.inTiles || !blocking.copiesB()))
    return "b is packed, expected packing fused or transpose, and no tiles";
  if (blocking.inTiles)
    if (std::string problem = problemOfTiles(product, blocking); !problem.empty())
      return problem;
  if (inRegisters && (vectors > 1 || rows > registers.besideSquare()))
    return llvm::formatv("a square of b in registers leaves room for one vector of at most {0} rows, got "
                         "vectors = {1} and rows = {2}",
                         registers.besideSquare(), vectors, rows);
  if (inLines && (blocking.rows.count > 1 || blocking.lines < 1))
    return llvm::formatv("lines of b are read for one block of at most {0} rows, got {1} of {2}",
                         (registers.count - 1) / 2, blocking.rows.count, rows);
  if (inLines && blocking.resultAhead)
    return llvm::formatv("lines of the result are not asked for beside those of b, got result_ahead = {0}",
                         *blocking.resultAhead);
  if (int64_t needed = rows * vectors + vectors + 1;
      !inRegisters && !inLines && !blocking.inTiles && needed > registers.count)
    return llvm::formatv("sums, a line of b and a factor take {0} registers, and there are {1}", needed,
                         registers.count);
  if (blocking.isWidened && !blocking.copiesA)
    return "a is widened as it is copied, expected copies_a";
  if (blocking.copiesA && !turnsA && !blocking.isWidened)
    return "a does not lie transposed, expected no copies_a";
  if (isNarrow && turnsA && !blocking.copiesA)
    return "a lies transposed in 16 bits, expected copies_a";
  constexpr int64_t kMostScratch = 4 << 20;
  if (int64_t scratch = blocking.scratchBytes(); scratch > kMostScratch)
    return llvm::formatv("copies and sums take {0} bytes of a thread's stack, expected at most {1}", scratch,
                         kMostScratch);
  return "";
}
