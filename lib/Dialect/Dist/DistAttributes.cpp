//===- DistAttributes.cpp - the dist dialect's attributes on others -------===//

#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Interfaces/AttributeTable.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::dist;

static const AttributeRow kAttributes[] = {
    {kStageAttr, AttributePlace::Function, kCountKind},
};

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
