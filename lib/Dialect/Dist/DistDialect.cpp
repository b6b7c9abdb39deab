//===- DistDialect.cpp - the dist dialect: registration and verifiers -----===//

#include "Axes.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::dist;

//===----------------------------------------------------------------------===//
// Sizes of axes
//===----------------------------------------------------------------------===//

static ParseResult parseSizes(OpAsmParser &parser, DenseI64ArrayAttr &attr) {
  SmallVector<int64_t> sizes;
  auto parseSize = [&]() -> ParseResult {
    SMLoc location = parser.getCurrentLocation();
    StringRef name;
    if (parser.parseKeyword(&name))
      return failure();
    if (sizes.size() >= kAxes || name != kAxisNames[sizes.size()])
      return parser.emitError(location, "got axis '")
             << name << "', expected pp, edp, ep, sp and tp in this order";
    return failure(parser.parseEqual() || parser.parseInteger(sizes.emplace_back()));
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseSize))
    return failure();
  attr = parser.getBuilder().getDenseI64ArrayAttr(sizes);
  return success();
}

static void printSizes(OpAsmPrinter &printer, Operation *, DenseI64ArrayAttr sizes) {
  printer << '[';
  for (auto [axis, size] : llvm::enumerate(sizes.asArrayRef()))
    printer << (axis ? ", " : "") << kAxisNames[axis] << " = " << size;
  printer << ']';
}

#include "dsopt/Dialect/Dist/DistDialect.cpp.inc"
#include "dsopt/Dialect/Dist/DistEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dsopt/Dialect/Dist/DistAttrs.cpp.inc"
#include "dsopt/Dialect/Dist/ValueCollectiveOpInterface.cpp.inc"
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

int64_t BucketOp::getRanks() { return getGrid(*this).count(getAxes().getParts()); }

/// What checkpoints and the runtime call the copy of parameters that is updated.
static constexpr llvm::StringLiteral kMaster = "master";

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
  if (getElements() % kGranule || static_cast<int64_t>(getElements()) < end ||
      static_cast<int64_t>(getElements()) >= end + kGranule)
    return emitOpError("has ") << getElements() << " elements, expected " << end
                               << " rounded up to a multiple of " << kGranule;
  if (auto states = getStates())
    for (auto state : states->getAsRange<StateAttr>())
      if (state.getRole() == kMaster)
        return emitOpError("keeps ") << state << ", expected another name: " << kMaster
                                     << " is the copy of the parameters";
  if (getZero() < 0 || getZero() > 3)
    return emitOpError("has zero stage ") << getZero() << ", expected 0 to 3";
  for (const AxisPart &part : getAxes().getParts())
    if (part.axis == Axis::pp)
      return emitOpError("is cut over the axes ")
             << textOf(getAxes()) << ", expected none of them to be pp: a position has its own buckets";
  if (AxesAttr distinct = getDistinctAttr())
    for (const AxisPart &part : distinct.getParts())
      if (part.axis != Axis::tp || part.part != AxisPart::Whole)
        return emitOpError("is distinct over ") << textOf(distinct) << ", expected [tp]";
  return success();
}

LogicalResult BucketOp::verifySymbolUses(SymbolTableCollection &) {
  if (failed(verifyAxes(*this, getAxes())))
    return failure();
  if (AxesAttr distinct = getDistinctAttr())
    for (const AxisPart &part : getAxes().getParts())
      if (llvm::any_of(distinct.getParts(), [&](const AxisPart &other) { return other.axis == part.axis; }))
        return emitOpError("is cut over ") << textOf(getAxes()) << " and distinct over " << textOf(distinct)
                                           << ", expected no axis in both";
  int64_t ranks = getRanks(), unit = ranks * kGranule;
  if (ranks < 1 || getPadded() % unit || getPadded() < getElements() || getPadded() >= getElements() + unit)
    return emitOpError("is padded to ")
           << getPadded() << " elements, expected " << getElements() << " rounded up to a multiple of "
           << unit << " (" << ranks << " ranks x " << kGranule << ")";
  return success();
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

LogicalResult GatherOp::verify() {
  if (getParameters().empty() || getParameters().size() != getNumResults())
    return emitOpError("names ") << getParameters().size() << " parameters for " << getNumResults()
                                 << " values, expected one or more, and a value of each";
  return success();
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
  if (getOrder() == ReductionOrder::Fast && getMethod() != ReductionMethod::ReduceScatter)
    return emitOpError("asks for the order fast by ")
           << stringifyReductionMethod(getMethod()) << ", where owners add along the canonical tree";
  return success();
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

/// Those who have a slice of the bucket take part in its collectives.
static LogicalResult verifyGroup(Operation *op, AxesAttr axes, BucketOp bucket) {
  if (axes != bucket.getAxes())
    return misfit(op, bucket) << "is over the axes " << textOf(axes) << ", but the bucket is cut over "
                              << textOf(bucket.getAxes());
  return success();
}

/// Values are placed before there is a grid.
static bool hasGrid(Operation *op) { return !op->getParentOfType<ModuleOp>().getOps<GridOp>().empty(); }
static LogicalResult verifyPlaced(Operation *op, AxesAttr axes) {
  return hasGrid(op) ? verifyAxes(op, axes) : success();
}

/// Of `whole` each rank has a slice along the first dimension, `slice` if there is a value of it.
static LogicalResult verifySlices(Operation *op, AxesAttr axes, Value slice, Value whole) {
  if (!hasGrid(op))
    return success();
  if (failed(verifyAxes(op, axes)))
    return failure();
  int64_t ranks = getGrid(op).count(axes.getParts()),
          rows = cast<RankedTensorType>(whole.getType()).getDimSize(0);
  if (rows % ranks || (slice && cast<RankedTensorType>(slice.getType()).getDimSize(0) * ranks != rows))
    return op->emitOpError("has ") << rows << " rows for " << ranks << " ranks along " << textOf(axes)
                                   << ", expected an equal slice for each";
  return success();
}

LogicalResult SharedOp::verifySymbolUses(SymbolTableCollection &) { return verifyPlaced(*this, getAxes()); }
LogicalResult AllReduceOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyPlaced(*this, getAxes());
}
LogicalResult AllGatherOp::verifySymbolUses(SymbolTableCollection &) {
  return verifySlices(*this, getAxes(), getValue(), getResult());
}
LogicalResult ReduceScatterOp::verifySymbolUses(SymbolTableCollection &) {
  return verifySlices(*this, getAxes(), getResult(), getValue());
}
LogicalResult AllToAllOp::verifySymbolUses(SymbolTableCollection &) {
  return verifySlices(*this, getAxes(), {}, getValue());
}

LogicalResult ShiftOp::verifySymbolUses(SymbolTableCollection &) { return verifyPlaced(*this, getAxes()); }

/// Some of the shards on each rank along a ring, or all of them here.
template <typename Op> static LogicalResult verifyShards(Op op) {
  if (failed(verifyPlaced(op, op.getAxes())))
    return failure();
  int64_t own = op.getEntries(), shards = op.getShards();
  ArrayRef<AxisPart> ring = op.getAxes().getParts();
  int64_t ranks = own > 0 && shards > 0 ? shards / own : 0;
  if (ranks < 1 || ranks * own != shards || ring.size() > 1 || ring.empty() != (ranks == 1) ||
      (!ring.empty() && ring[0].part == AxisPart::Inner) || (hasGrid(op) && getGrid(op).count(ring) != ranks))
    return op.emitOpError("has ") << own << " of " << shards << " shards over " << textOf(op.getAxes())
                                  << ", expected equally many on each rank of a ring, or all of them";
  if (int64_t masks = op.getMasks().size(); masks && masks != shards)
    return op.emitOpError("has ") << masks << " masks, expected one for each of " << shards
                                  << " meetings, or none";
  return success();
}
LogicalResult AttentionOp::verifySymbolUses(SymbolTableCollection &) { return verifyShards(*this); }
LogicalResult AttentionGradOp::verifySymbolUses(SymbolTableCollection &) { return verifyShards(*this); }

/// Each shard has the same entries.
template <typename Op> static LogicalResult verifyEntries(Op op) {
  for (Value rows : {op.getQ(), op.getK(), op.getV()})
    if (auto type = cast<RankedTensorType>(rows.getType());
        type.getRank() != 4 || type.getDimSize(0) % std::max<int64_t>(op.getEntries(), 1))
      return op.emitOpError("has rows of type ") << type << ", expected four dimensions, the first of which "
                                                 << op.getEntries() << " shards divide";
  return success();
}
LogicalResult AttentionOp::verify() { return verifyEntries(*this); }
LogicalResult AttentionGradOp::verify() {
  if (getQ().getType() != getQGrad().getType() || getK().getType() != getKGrad().getType() ||
      getV().getType() != getVGrad().getType() || getResult().getType() != getGrad().getType())
    return emitOpError("expected gradients of the types of what they are of");
  return verifyEntries(*this);
}

/// Results of another shape have all but the first dimension of the operand.
static LogicalResult verifyRows(Operation *op, Value slice, Value whole) {
  auto part = cast<RankedTensorType>(slice.getType()), all = cast<RankedTensorType>(whole.getType());
  if (part.getRank() == 0 || all.getRank() == 0 || part.getElementType() != all.getElementType() ||
      part.getShape().drop_front() != all.getShape().drop_front() ||
      all.getDimSize(0) % part.getDimSize(0) != 0)
    return op->emitOpError("makes ") << op->getResult(0).getType() << " of " << op->getOperand(0).getType()
                                     << ", expected types that differ in the first dimension alone";
  return success();
}
LogicalResult AllGatherOp::verify() { return verifyRows(*this, getValue(), getResult()); }
LogicalResult ReduceScatterOp::verify() {
  if (int64_t elements = cast<RankedTensorType>(getResult().getType()).getNumElements(); elements % kGranule)
    return emitOpError("adds slices of ") << elements << " elements, expected a multiple of " << kGranule;
  return verifyRows(*this, getResult(), getValue());
}
LogicalResult AllToAllOp::verify() { return verifyRows(*this, getValue(), getValue()); }

LogicalResult SharedOp::verify() {
  if (getShards().empty() ||
      llvm::any_of(getShards().getTypes(), [&](Type type) { return type != getValue().getType(); }))
    return emitOpError("has results ")
           << getShards().getTypes() << ", expected one or more of " << getValue().getType();
  return success();
}

ParseResult SharedOp::parse(OpAsmParser &parser, OperationState &result) {
  OpAsmParser::UnresolvedOperand value;
  Attribute axes;
  Type type;
  int64_t shards = 0;
  if (parser.parseOperand(value) || parser.parseKeyword("over") ||
      !(axes = AxesAttr::parse(parser, Type())) || parser.parseOptionalAttrDict(result.attributes) ||
      parser.parseColonType(type) || parser.parseInteger(shards) ||
      parser.resolveOperand(value, type, result.operands))
    return failure();
  result.addAttribute(getAxesAttrName(result.name), axes);
  result.types.assign(std::max<int64_t>(shards, 0), type);
  return success();
}

void SharedOp::print(OpAsmPrinter &printer) {
  printer << ' ' << getValue() << " over ";
  getAxes().print(printer);
  printer.printOptionalAttrDict((*this)->getAttrs(), {getAxesAttrName()});
  printer << " : " << getValue().getType() << ' ' << getNumResults();
}

void GatherOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  for (auto [parameter, value] : llvm::zip(getParameters().getAsRange<FlatSymbolRefAttr>(), getValues()))
    setName(value, parameter.getValue());
}

LogicalResult GatherOp::verifySymbolUses(SymbolTableCollection &symbols) {
  BucketOp bucket = findBucket(*this, getBucketAttr(), symbols);
  if (!bucket || failed(verifyGroup(*this, getAxes(), bucket)))
    return failure();
  if (auto wire = getWire(); wire && !(bucket.getType().isF32() && wire->isBF16()) &&
                             !(isa<FloatType>(bucket.getType()) && wire->isInteger(8)))
    return misfit(*this, bucket) << "sends " << *wire << ", but the bucket's parameters are "
                                 << bucket.getType();
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
  if (!bucket || failed(verifyGroup(*this, getAxes(), bucket)))
    return failure();
  if (getUse() < 0 || static_cast<size_t>(getUse()) >= bucket.getBlocks().size())
    return misfit(*this, bucket) << "reduces use " << getUse() << ", but the bucket has "
                                 << bucket.getBlocks().size();
  Type gradient = bucket.getGradientType();
  bool inParts = getType().isInteger(4) && getMethod() == ReductionMethod::AllToAll;
  if (getType() != gradient && !(gradient.isF32() && (getType().isBF16() || inParts)))
    return misfit(*this, bucket) << "sends " << getType() << ", but the bucket's gradients are " << gradient;
  return success();
}
