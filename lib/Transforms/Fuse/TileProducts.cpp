//===- TileProducts.cpp - large weights in tiles, a block for each --------===//

#include "ProductTiler.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Interfaces/OverlapRemarks.h"
#include "dsopt/Transforms/Fuse/Passes.h"
#include "mlir/IR/Remarks.h"

namespace dsopt {
#define GEN_PASS_DEF_TILEPRODUCTS
#include "dsopt/Transforms/Fuse/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

namespace {
struct TileProducts : dsopt::impl::TileProductsBase<TileProducts> {
  using TileProductsBase::TileProductsBase;
  void runOnOperation() override;
};
} // namespace

void TileProducts::runOnOperation() {
  ModuleOp module = getOperation();
  giveOption(module, "tile_products", elements, /*unset=*/0);
  int64_t most = getOption(module, "tile_products", 0);
  if (most == 0)
    return;
  ConcatKernels kernels;
  for (auto parameter : llvm::to_vector(module.getOps<graph::ParameterOp>())) {
    if (graph::numElements(parameter.getType()) <= most)
      continue;
    Tiling tiling = findTiling(parameter, most);
    BlockCut cut(tiling.product);
    if (tiling.why.empty())
      tiling.why = cut.find();
    if (!tiling.why.empty()) {
      remark::missed(parameter.getLoc(), remark::RemarkOpts::name("tile-products").category(kOverlapRemarks))
          << ("@" + parameter.getModelName() + " has " + Twine(graph::numElements(parameter.getType())) +
              " elements and is not cut into tiles: " + tiling.why)
                 .str();
      continue;
    }
    cut.apply();
    SymbolTable symbols(module);
    ProductTiler(tiling.product, cut, symbols, kernels).run();
  }
}
