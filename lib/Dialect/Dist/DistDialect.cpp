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

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

static LogicalResult verifyAxes(Operation *op, ArrayAttr axes) {
  if (axes.size() != 1 || cast<StringAttr>(axes[0]).getValue() != "dp")
    return op->emitOpError("is over the axes ") << axes << R"(, expected ["dp"])";
  return success();
}

LogicalResult GatherOp::verify() {
  if (getParameters().empty() || getParameters().size() != getNumResults())
    return emitOpError("names ") << getParameters().size() << " parameters for " << getNumResults()
                                 << " values, expected one or more, and a value of each";
  return verifyAxes(*this, getAxes());
}

LogicalResult ReleaseOp::verify() {
  auto gather = getValues().empty() ? GatherOp() : getGather();
  if (!gather || !llvm::equal(getValues(), gather.getValues()))
    return emitOpError("takes values that are not all those of one dist.gather, in their order");
  return success();
}

LogicalResult ReduceOp::verify() {
  if (getGradients().empty())
    return emitOpError("names no gradients, expected those of the block");
  return verifyAxes(*this, getAxes());
}

/// The bucket that `op` names; null with an error where there is none.
static BucketOp findBucket(Operation *op, FlatSymbolRefAttr name, SymbolTableCollection &symbols) {
  auto bucket = symbols.lookupNearestSymbolFrom<BucketOp>(op, name);
  if (!bucket)
    op->emitOpError("names ") << name << ", which is no bucket of this module";
  return bucket;
}

/// Reports what does not fit a bucket.
static InFlightDiagnostic misfit(Operation *op, BucketOp bucket) {
  InFlightDiagnostic diag = op->emitOpError();
  diag.attachNote(bucket.getLoc()) << "the bucket is here";
  return diag;
}

LogicalResult GatherOp::verifySymbolUses(SymbolTableCollection &symbols) {
  BucketOp bucket = findBucket(*this, getBucketAttr(), symbols);
  if (!bucket)
    return failure();
  llvm::DenseMap<Attribute, int64_t> elements;
  for (auto range : bucket.getRanges().getAsRange<RangeAttr>())
    elements[range.getParameter()] = range.getElements();
  for (auto [parameter, value] : llvm::zip(getParameters(), getValues())) {
    auto range = elements.find(parameter);
    if (range == elements.end())
      return misfit(*this, bucket) << "gathers " << parameter << ", which does not lie in the bucket";
    auto type = cast<RankedTensorType>(value.getType());
    if (type.getElementType() != bucket.getType() || type.getNumElements() != range->second)
      return misfit(*this, bucket) << "yields " << parameter << " as " << type << ", expected "
                                   << range->second << " elements of " << bucket.getType();
  }
  return success();
}

LogicalResult ReduceOp::verifySymbolUses(SymbolTableCollection &symbols) {
  BucketOp bucket = findBucket(*this, getBucketAttr(), symbols);
  if (!bucket)
    return failure();
  if (getUse() < 0 || getUse() >= (int64_t)bucket.getBlocks().size())
    return misfit(*this, bucket) << "reduces use " << getUse() << ", but the bucket has "
                                 << bucket.getBlocks().size();
  if (getType() != bucket.getGradientType())
    return misfit(*this, bucket) << "sends " << getType() << ", but the bucket's gradients are "
                                 << bucket.getGradientType();
  return success();
}
