//===- Parts.cpp - which block and phase a run computes -------------------===//

#include "dsopt/Analysis/Exec/Parts.h"
#include "dsopt/Dialect/Graph/Graph.h"

using namespace mlir;
using namespace dsopt;

exec::PartAttr dsopt::getPart(Operation *segment) {
  auto block = segment->getAttrOfType<IntegerAttr>(graph::kBlockAttr);
  std::optional<Phase> phase = graph::getPhase(segment);
  if (!block || !phase)
    return {};
  auto part = segment->getAttrOfType<IntegerAttr>(graph::kPartAttr);
  return exec::PartAttr::get(segment->getContext(), block.getInt(), *phase, part ? part.getInt() : 0);
}

exec::PartAttr dsopt::getPart(exec::RunOp run, Operation *segment) {
  return run.getPartAttr() || !segment ? run.getPartAttr() : getPart(segment);
}
