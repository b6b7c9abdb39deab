//===- Recompute.cpp - less kept between forward and backward -------------===//

#include "dsopt/Interfaces/Options.h"
#include "dsopt/Transforms/Memory/Passes.h"
#include "dsopt/Transforms/Memory/RecomputeScale.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace dsopt {
#define GEN_PASS_DEF_RECOMPUTE
#include "dsopt/Transforms/Memory/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

namespace {
struct Recompute : dsopt::impl::RecomputeBase<Recompute> {
  using RecomputeBase::RecomputeBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    giveOption(module, "recompute", StringRef(this->mode));
    StringRef mode = options::recompute(module);
    int64_t budget = options::device_memory(module);
    if (mode == "none" || (mode == "auto" && budget == 0))
      return;
    FailureOr<RecomputeScale> scale = RecomputeScale::create(module);
    if (failed(scale))
      return signalPassFailure();
    RecomputeScale::Places places;
    for (size_t stage = 0; stage < scale->stages(); ++stage)
      places.push_back(scale->last(stage));
    if (mode == "auto") {
      FailureOr<RecomputeScale::Places> fewest = scale->search().fewest(module, budget);
      if (failed(fewest))
        return signalPassFailure();
      places = *fewest;
    }
    if (failed(scale->apply(module, places)))
      signalPassFailure();
  }
};
} // namespace
