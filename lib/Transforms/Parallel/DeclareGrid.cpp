//===- DeclareGrid.cpp - the axes that ranks lie along --------------------===//

#include "dsopt/Dialect/Graph/Symbols.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Transforms/Parallel/Passes.h"

namespace dsopt {
#define GEN_PASS_DEF_DECLAREGRID
#include "dsopt/Transforms/Parallel/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

namespace {
struct DeclareGridPass : dsopt::impl::DeclareGridBase<DeclareGridPass> {
  using DeclareGridBase::DeclareGridBase;
  void runOnOperation() override;
};
} // namespace

void DeclareGridPass::runOnOperation() {
  ModuleOp module = getOperation();
  giveOption(module, "pp", positions, /*unset=*/0);
  giveOption(module, "dp", ranks, /*unset=*/0);
  int64_t pp = options::pp(module), dp = options::dp(module).value_or(1), sp = options::sp(module),
          tp = options::tp(module);
  if (!module.getOps<dist::GridOp>().empty())
    return;
  SymbolTable symbols(module);
  graph::makeWay(symbols, dist::kGrid);
  // In front of all else: many look for it.
  OpBuilder builder = OpBuilder::atBlockBegin(module.getBody());
  auto grid = dist::GridOp::create(builder, module.getLoc(), dist::kGrid,
                                   builder.getDenseI64ArrayAttr({pp, dp, 1, sp, tp}));
  if (failed(grid.verify()))
    signalPassFailure();
}
