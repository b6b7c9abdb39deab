//===- Parts.cpp - which block and phase a run computes -------------------===//

#include "dsopt/Analysis/Exec/Parts.h"
#include "dsopt/Dialect/Graph/Graph.h"

using namespace mlir;
using namespace dsopt;

exec::PartAttr dsopt::getPart(Operation *segment) {
  auto block = segment->getAttrOfType<IntegerAttr>(graph::kBlockAttr);
  std::optional<Phase> phase = graph::getPhase(segment);
  return block && phase ? exec::PartAttr::get(segment->getContext(), block.getInt(), *phase)
                        : exec::PartAttr();
}

exec::PartAttr dsopt::getPart(exec::RunOp run, Operation *segment) {
  return run.getPartAttr() || !segment ? run.getPartAttr() : getPart(segment);
}
