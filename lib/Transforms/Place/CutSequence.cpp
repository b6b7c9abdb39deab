//===- CutSequence.cpp - what is computed for each position in shards -----===//

#include "SequenceRegion.h"
#include "SequenceWriter.h"
#include "ShardParts.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Transforms/Place/Passes.h"

namespace dsopt {
#define GEN_PASS_DEF_CUTSEQUENCE
#include "dsopt/Transforms/Place/Passes.h.inc"
} // namespace dsopt

using namespace mlir;
using namespace dsopt;

namespace {
struct CutSequence : public dsopt::impl::CutSequenceBase<CutSequence> {
  using CutSequenceBase::CutSequenceBase;
  void runOnOperation() override;
};
} // namespace

void CutSequence::runOnOperation() {
  ModuleOp module = getOperation();
  giveOption(module, "sp", ranks, /*unset=*/0);
  giveOption(module, "sequence_shards", shards, /*unset=*/0);
  giveOption(module, "sp_method", method);
  int64_t degree = options::sp(module);
  shards = options::sequence_shards(module).value_or(degree);
  if (shards < 2)
    return;
  FailureOr<func::FuncOp> forward = forwardOf(module, "cut-sequence", "sequence", shards, degree);
  if (failed(forward))
    return signalPassFailure();
  SequenceRegion region(shards);
  if (failed(region.find(*forward)))
    return signalPassFailure();
  SequenceWriter writer(*forward, region, shards, degree);
  StringRef asked = options::sp_method(module);
  if (asked == "ring") {
    writer.exchangeIn(1);
  } else if (asked.consume_front("ulysses")) {
    int64_t group = degree;
    if (asked.consume_front("*") && (asked.getAsInteger(10, group) || group < 1 || degree % group)) {
      module.emitError("-sp-method=ulysses*")
          << asked << " with -sp=" << degree << ": expected a divisor of -sp";
      return signalPassFailure();
    }
    writer.exchangeIn(group);
  }
  writer.write();
}
