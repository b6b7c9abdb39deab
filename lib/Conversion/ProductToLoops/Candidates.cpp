//===- Candidates.cpp - ways to cut a product's kernel --------------------===//

#include "Blocking.h"
#include "dsopt/Interfaces/CompiledProducts.h"

using namespace mlir;
using namespace dsopt;
using exec::ProductPacking;

/// Those that are possible and differ from `choice`, as the kernel would be cut: even panels.
static SmallVector<exec::BlockingAttr> possible(exec::ProductAttr product, TargetAttr target,
                                                exec::BlockingAttr choice,
                                                ArrayRef<exec::BlockingAttr> asked) {
  llvm::SetVector<exec::BlockingAttr> found;
  for (exec::BlockingAttr one : asked) {
    Blocking blocking(product, target, one);
    auto even = exec::BlockingAttr::get(
        product.getContext(), blocking.rows.largest(), blocking.columns.largest(), blocking.bands.largest(),
        one.getPacking(), one.getCopiesA(), one.getResultAhead(), one.getSwaps());
    if (even != choice && problemOf(product, target, even).empty())
      found.insert(even);
  }
  return found.takeVector();
}

SmallVector<exec::BlockingAttr> dsopt::otherShapes(exec::ProductAttr product, TargetAttr target,
                                                   exec::BlockingAttr choice) {
  // Sums that are too few wait for each other, unless there are no more.
  constexpr int64_t kMostVectors = 8;
  bool inTiles = multipliesTiles(target, product.getOperands());
  int64_t oneTile = inTiles ? Blocking::kTileRows : 1, mostRows = inTiles ? 3 * oneTile : 16;
  int64_t fewest = target.getVectorBits() == 512 ? 12 : 8;
  exec::ProductAttr computed = Blocking(product, target, choice).product;
  SmallVector<exec::BlockingAttr> asked;
  // Bands keep their rows.
  int64_t inBand = choice.getBand() * choice.getRows();
  auto ask = [&](int64_t rows, int64_t vectors, ProductPacking packing) {
    asked.push_back(exec::BlockingAttr::get(product.getContext(), rows, vectors,
                                            std::max<int64_t>(inBand / rows, 1), packing, choice.getCopiesA(),
                                            choice.getResultAhead(), choice.getSwaps()));
  };
  ProductPacking inBlocks = choice.getPacking() == ProductPacking::Registers ? ProductPacking::Transpose
                            : choice.getPacking() == ProductPacking::Lines   ? ProductPacking::None
                                                                             : choice.getPacking();
  for (int64_t vectors = 1; vectors <= kMostVectors; ++vectors)
    for (int64_t rows = oneTile; rows <= mostRows; rows += oneTile) {
      if (rows * vectors >= fewest || rows >= computed.getM())
        ask(rows, vectors, inBlocks);
      if (computed.getTransposeB() && vectors == 1 && rows > 4)
        ask(rows, vectors, ProductPacking::Registers);
    }
  // Panels of lines as long as there is room for.
  if (!computed.getTransposeB() && computed.getM() <= 4)
    for (int64_t vectors : {8, 16, 32, 64, 128})
      asked.push_back(exec::BlockingAttr::get(product.getContext(), computed.getM(), vectors, /*band=*/1,
                                              ProductPacking::Lines, choice.getCopiesA(), /*resultAhead=*/-1,
                                              choice.getSwaps()));
  // With a and b in the other places one will do: what the model has for them.
  asked.push_back(chooseBlocking(product, target, !choice.getSwaps()));
  return possible(product, target, choice, asked);
}

SmallVector<exec::BlockingAttr> dsopt::otherCopies(exec::ProductAttr product, TargetAttr target,
                                                   exec::BlockingAttr choice) {
  SmallVector<exec::BlockingAttr> asked;
  auto ask = [&](int64_t band, ProductPacking packing, bool copiesA, int64_t ahead) {
    asked.push_back(exec::BlockingAttr::get(product.getContext(), choice.getRows(), choice.getVectors(),
                                            std::max<int64_t>(band, 1), packing, copiesA, ahead,
                                            choice.getSwaps()));
  };
  int64_t band = choice.getBand(), ahead = choice.getResultAhead();
  ProductPacking packing = choice.getPacking();
  bool copiesA = choice.getCopiesA();
  for (ProductPacking other :
       {ProductPacking::None, ProductPacking::Fused, ProductPacking::Transpose, ProductPacking::Registers})
    ask(band, other, copiesA, ahead);
  for (int64_t other : {band / 4, band / 2, band * 2, band * 4})
    ask(other, packing, copiesA, ahead);
  for (int64_t other : {-1, 0, 1, 2, 4})
    ask(band, packing, copiesA, other);
  // A band that is copied stays in the second cache.
  for (int64_t other : {band, band / 2, band / 4, band / 8})
    ask(other, packing, !copiesA, ahead);
  return possible(product, target, choice, asked);
}
