//===- DistAttributes.cpp - the dist dialect's attributes on others -------===//

#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Interfaces/AttributeTable.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::dist;

/// Where tensor shards meet.
static constexpr llvm::StringLiteral kMeetings[] = {"dist.shared", "dist.all_reduce", "graph.tree_add"};

static const AttributeRow kAttributes[] = {
    {kStageAttr, AttributePlace::Function, kCountKind},
    {kChunkAttr, AttributePlace::Function, kCountKind},
    {kTensorAttr, AttributePlace::Operation, kUnitKind, kMeetings},
};

std::optional<int64_t> dist::getChunk(Operation *function) {
  for (StringRef name : {kChunkAttr, kStageAttr})
    if (auto number = function->getAttrOfType<IntegerAttr>(name))
      return number.getInt();
  return std::nullopt;
}

LogicalResult DistDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  return verifyAttribute(kAttributes, op, attribute);
}

LogicalResult DistDialect::verifyRegionArgAttribute(Operation *op, unsigned, unsigned argument,
                                                    NamedAttribute attribute) {
  return verifyArgumentAttribute(kAttributes, op, argument, attribute);
}

LogicalResult DistDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned result,
                                                       NamedAttribute attribute) {
  return verifyResultAttribute(kAttributes, op, result, attribute);
}
