//===- DistDialect.cpp - the dist dialect: registration and verifiers -----===//

#include "dsopt/Dialect/Dist/Dist.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dsopt::dist;

#include "dsopt/Dialect/Dist/DistDialect.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dsopt/Dialect/Dist/DistAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "dsopt/Dialect/Dist/DistOps.cpp.inc"

void DistDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dsopt/Dialect/Dist/DistAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dsopt/Dialect/Dist/DistOps.cpp.inc"
      >();
}

LogicalResult BucketOp::verify() {
  int64_t end = 0;
  for (auto range : getRanges().getAsRange<RangeAttr>()) {
    if (range.getOffset() % kGranule)
      return emitOpError("parameter ") << range.getParameter() << " starts at element " << range.getOffset()
                                       << ", expected a multiple of " << kGranule;
    if (range.getOffset() < end)
      return emitOpError("parameter ") << range.getParameter() << " starts at element " << range.getOffset()
                                       << ", before the end of the one in front of it (" << end << ")";
    end = range.getOffset() + range.getElements();
  }
  if (getElements() % kGranule || getElements() < end || (int64_t)getElements() >= end + kGranule)
    return emitOpError("has ") << getElements() << " elements, expected " << end
                               << " rounded up to a multiple of " << kGranule;
  int64_t unit = getRanks() * kGranule;
  if (getRanks() < 1 || getPadded() % unit || getPadded() < getElements() ||
      getPadded() >= getElements() + unit)
    return emitOpError("is padded to ")
           << getPadded() << " elements, expected " << getElements() << " rounded up to a multiple of "
           << unit << " (" << getRanks() << " ranks x " << kGranule << ")";
  if (getZero() < 0 || getZero() > 3)
    return emitOpError("has zero stage ") << getZero() << ", expected 0 to 3";
  return success();
}

/// Checks that `op` names a bucket of its module.
static LogicalResult verifyBucket(Operation *op, FlatSymbolRefAttr name, SymbolTableCollection &symbols) {
  if (!symbols.lookupNearestSymbolFrom<BucketOp>(op, name))
    return op->emitOpError("names ") << name << ", which is no bucket of this module";
  return success();
}
LogicalResult GatherOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyBucket(*this, getBucketAttr(), symbols);
}
LogicalResult ReleaseOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyBucket(*this, getBucketAttr(), symbols);
}
LogicalResult ReduceOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (failed(verifyBucket(*this, getBucketAttr(), symbols)))
    return failure();
  auto bucket = symbols.lookupNearestSymbolFrom<BucketOp>(*this, getBucketAttr());
  if (getUse() < 0 || getUse() >= (int64_t)bucket.getBlocks().size()) {
    InFlightDiagnostic diag = emitOpError("reduces use ")
                              << getUse() << ", but the bucket has " << bucket.getBlocks().size();
    diag.attachNote(bucket.getLoc()) << "the bucket is here";
    return diag;
  }
  return success();
}
