//===- ActionInterfaces.cpp - what each action reads, writes and is called -===//

#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Interfaces/Optimizers.h"
#include "dsopt/Interfaces/Target.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

#include "dsopt/Dialect/Exec/ActionInterfaces.cpp.inc"

static auto refsOf(ArrayAttr array) { return array.getAsRange<RefAttr>(); }
static constexpr int64_t kNormBytes = kNormWords * sizeof(int64_t);

static std::string on(int64_t microBatch) { return ".m" + std::to_string(microBatch); }
static std::string named(StringRef what, RefAttr ref) {
  return (what + "." + ref.getBuffer().getValue()).str();
}
static std::string into(StringRef what, RefAttr ref) {
  return (what + " into @" + ref.getBuffer().getValue()).str();
}
/// A tag ends in its micro-batch.
static std::string tagged(StringRef what, StringRef tag) {
  auto [value, microBatch] = tag.rsplit(':');
  return (what + "." + value + (microBatch.empty() ? "" : ".m") + microBatch).str();
}

//===----------------------------------------------------------------------===//
// Input, run
//===----------------------------------------------------------------------===//

LogicalResult InputOp::collectAccesses(ActionContext &context) {
  std::optional<int64_t> bytes = context.slotBytes(*this, getTarget().getBuffer().getAttr());
  if (!bytes)
    return emitOpError("names ") << getTarget().getBuffer() << ", which is no buffer of its program";
  context.add(getTarget(), *bytes, false, true);
  return success();
}
FlatSymbolRefAttr InputOp::getCalledSegment() { return {}; }
std::optional<MovedBytes> InputOp::getMoved() { return std::nullopt; }
bool InputOp::readsPadding() { return false; }
std::string InputOp::describeAction() {
  return ("input \"" + getInput() + "\" of micro-batch " + Twine(getMicroBatch())).str();
}
std::string InputOp::getEventName() { return getTarget().getBuffer().getValue().str() + on(getMicroBatch()); }

/// What a call of a segment touches. Without `accumulates` it stores what it would add to.
template <typename Op>
static LogicalResult collectSegmentAccesses(Op op, ActionContext &context, bool accumulates) {
  const SegmentUse *segment = context.segment(op.getSegmentAttr().getAttr());
  if (!segment)
    return op.emitOpError("runs ") << op.getSegmentAttr() << ", which is no segment of this module";
  if (segment->arguments.size() != op.getBuffers().size())
    return op.emitOpError("passes ") << op.getBuffers().size() << " buffers, expected "
                                     << segment->arguments.size();
  for (auto [ref, use] : llvm::zip(refsOf(op.getBuffers()), segment->arguments)) {
    bool updates = use.reads && use.writes && !use.always;
    context.add(ref, use.bytes, use.reads && (!updates || accumulates), use.writes);
  }
  if (segment->temp && !op.getTemp())
    return op.emitOpError("has no temp, expected ") << segment->temp << " bytes of scratch";
  if (op.getTemp())
    context.add(*op.getTemp(), segment->temp, false, true);
  return success();
}

LogicalResult RunOp::collectAccesses(ActionContext &context) {
  return collectSegmentAccesses(*this, context, getAccumulate());
}
FlatSymbolRefAttr RunOp::getCalledSegment() { return getSegmentAttr(); }
std::optional<MovedBytes> RunOp::getMoved() { return std::nullopt; }
bool RunOp::readsPadding() { return false; }
std::string RunOp::describeAction() {
  std::string part = getPartAttr() ? " for " + describe(getPartAttr()) : "";
  return ("run of @" + getSegment() + part + " on micro-batch " + Twine(getMicroBatch())).str();
}
std::string RunOp::getEventName() {
  PartAttr part = getPartAttr();
  if (!part)
    return getSegment().str() + on(getMicroBatch());
  return "block" + std::to_string(part.getBlock()) + "." + stringifyPhase(part.getPhase()).str() +
         (part.getPart() ? "." + std::to_string(part.getPart()) : "") + on(getMicroBatch());
}

//===----------------------------------------------------------------------===//
// Between ranks
//===----------------------------------------------------------------------===//

LogicalResult GatherOp::collectAccesses(ActionContext &context) {
  FailureOr<int64_t> members = context.countMembers(*this);
  if (failed(members))
    return failure();
  int64_t bytes = getBytes();
  // In place, the rank's own slice is kept: the target is read as well.
  bool inPlace = getSlice().getBuffer() == getTarget().getBuffer();
  if (!inPlace)
    context.add(getSlice(), bytes, true, false);
  context.add(getTarget(), bytes * *members, inPlace, true);
  return success();
}
FlatSymbolRefAttr GatherOp::getCalledSegment() { return {}; }
std::optional<MovedBytes> GatherOp::getMoved() {
  return MovedBytes{getTarget(), int64_t(getBytes()), getTraffic(), getLogical()};
}
bool GatherOp::readsPadding() { return true; }
std::string GatherOp::describeAction() { return into("gather", getTarget()); }
std::string GatherOp::getEventName() { return named("gather", getTarget()); }

LogicalResult ReduceOp::collectAccesses(ActionContext &context) {
  FailureOr<int64_t> members = context.countMembers(*this);
  if (failed(members))
    return failure();
  int64_t bytes = bytesOf(getElements(), getType());
  context.add(getWhole(), bytes * *members, true, false);
  context.add(getTarget(), bytes, getAccumulate(), true);
  return success();
}
FlatSymbolRefAttr ReduceOp::getCalledSegment() { return {}; }
std::optional<MovedBytes> ReduceOp::getMoved() {
  return MovedBytes{getWhole(), bytesOf(getElements(), getType()), Traffic::ReduceScatter};
}
bool ReduceOp::readsPadding() { return true; }
std::string ReduceOp::describeAction() { return into("reduce", getTarget()); }
std::string ReduceOp::getEventName() { return named("reduce", getTarget()); }

LogicalResult AllToAllOp::collectAccesses(ActionContext &context) {
  FailureOr<int64_t> members = context.countMembers(*this);
  if (failed(members))
    return failure();
  context.add(getSource(), (int64_t)getBytes() * *members, true, false);
  context.add(getTarget(), (int64_t)getBytes() * *members, false, true);
  return success();
}
FlatSymbolRefAttr AllToAllOp::getCalledSegment() { return {}; }
std::optional<MovedBytes> AllToAllOp::getMoved() {
  return MovedBytes{getTarget(), int64_t(getBytes()), getTraffic(), getLogical(), /*apart=*/true};
}
bool AllToAllOp::readsPadding() { return true; }
std::string AllToAllOp::describeAction() { return into("all-to-all", getTarget()); }
std::string AllToAllOp::getEventName() { return named("all_to_all", getTarget()); }

LogicalResult ShiftOp::collectAccesses(ActionContext &context) {
  if (failed(context.countMembers(*this)))
    return failure();
  context.add(getSource(), getBytes(), true, false);
  context.add(getTarget(), getBytes(), false, true);
  return success();
}
FlatSymbolRefAttr ShiftOp::getCalledSegment() { return {}; }
std::optional<MovedBytes> ShiftOp::getMoved() {
  return MovedBytes{getTarget(), int64_t(getBytes()), getTraffic(), {}, /*apart=*/false, /*toNext=*/true};
}
bool ShiftOp::readsPadding() { return true; }
std::string ShiftOp::describeAction() { return into("shift", getTarget()); }
std::string ShiftOp::getEventName() { return named("shift", getTarget()); }

LogicalResult SendOp::collectAccesses(ActionContext &context) {
  if (failed(context.countMembers(*this)))
    return failure();
  context.add(getSource(), getBytes(), true, false);
  return success();
}
FlatSymbolRefAttr SendOp::getCalledSegment() { return {}; }
std::optional<MovedBytes> SendOp::getMoved() {
  return MovedBytes{getSource(), int64_t(getBytes()), getTraffic()};
}
bool SendOp::readsPadding() { return getTraffic() == Traffic::Tied; }
std::string SendOp::describeAction() {
  return ("send of \"" + getLabel() + "\" to position " + Twine(getPeer())).str();
}
std::string SendOp::getEventName() { return tagged("send", getLabel()); }

LogicalResult RecvOp::collectAccesses(ActionContext &context) {
  if (failed(context.countMembers(*this)))
    return failure();
  context.add(getTarget(), getBytes(), false, true);
  return success();
}
FlatSymbolRefAttr RecvOp::getCalledSegment() { return {}; }
std::optional<MovedBytes> RecvOp::getMoved() { return MovedBytes{getTarget(), int64_t(getBytes())}; }
bool RecvOp::readsPadding() { return false; }
std::string RecvOp::describeAction() {
  return ("recv of \"" + getLabel() + "\" from position " + Twine(getPeer())).str();
}
std::string RecvOp::getEventName() { return tagged("recv", getLabel()); }

LogicalResult AgreeOp::collectAccesses(ActionContext &context) {
  if (failed(context.countMembers(*this)))
    return failure();
  for (RefAttr ref : refsOf(getNorms()))
    context.add(ref, kNormBytes, true, false);
  for (RefAttr ref : refsOf(getLosses()))
    context.add(ref, sizeof(float), true, false);
  if (ArrayAttr measures = getMeasuresAttr())
    for (auto [i, ref] : llvm::enumerate(refsOf(measures)))
      context.add(ref, getLengths()[i * getLengths().size() / measures.size()] * sizeof(float), true, false);
  if (ArrayAttr outputs = getOutputsAttr())
    for (auto [i, ref] : llvm::enumerate(refsOf(outputs)))
      context.add(ref, getBytes()[i * getBytes().size() / outputs.size()], true, false);
  context.addScalars(*this, /*reads=*/false, /*writes=*/true);
  return success();
}
FlatSymbolRefAttr AgreeOp::getCalledSegment() { return {}; }
std::optional<MovedBytes> AgreeOp::getMoved() { return std::nullopt; }
bool AgreeOp::readsPadding() { return false; }
std::string AgreeOp::describeAction() { return "agree"; }
std::string AgreeOp::getEventName() { return "agree"; }

//===----------------------------------------------------------------------===//
// Gradients, parameters, statistics
//===----------------------------------------------------------------------===//

LogicalResult AddOp::collectAccesses(ActionContext &context) {
  int64_t bytes = bytesOf(getElements(), getType());
  context.add(getSource(), bytes, true, false);
  context.add(getTarget(), bytes, true, true);
  return success();
}
FlatSymbolRefAttr AddOp::getCalledSegment() { return {}; }
std::optional<MovedBytes> AddOp::getMoved() { return std::nullopt; }
bool AddOp::readsPadding() { return true; }
std::string AddOp::describeAction() { return into("add", getTarget()); }
std::string AddOp::getEventName() { return named("add", getTarget()); }

LogicalResult CopyOp::collectAccesses(ActionContext &context) {
  context.add(getSource(), getBytes(), true, false);
  context.add(getTarget(), getBytes(), false, true);
  return success();
}
FlatSymbolRefAttr CopyOp::getCalledSegment() { return {}; }
std::optional<MovedBytes> CopyOp::getMoved() { return MovedBytes{getTarget(), int64_t(getBytes())}; }
bool CopyOp::readsPadding() { return true; }
std::string CopyOp::describeAction() { return into("copy to", getTarget()); }
std::string CopyOp::getEventName() { return named("copy", getTarget()); }

LogicalResult NormOp::collectAccesses(ActionContext &context) {
  const BucketUse *bucket = context.bucketUse(getBucketAttr().getAttr());
  if (!bucket)
    return emitOpError("names ") << getBucketAttr() << ", which is no bucket of this module";
  context.add(getGradient(), (getWhole() ? bucket->padded : bucket->slice) * bucket->gradientBytes, true,
              false);
  context.add(getRecord(), kNormBytes, false, true);
  return success();
}
FlatSymbolRefAttr NormOp::getCalledSegment() { return {}; }
std::optional<MovedBytes> NormOp::getMoved() { return std::nullopt; }
bool NormOp::readsPadding() { return true; }
std::string NormOp::describeAction() { return ("norm of @" + getGradient().getBuffer().getValue()).str(); }
std::string NormOp::getEventName() { return ("norm." + getBucket()).str(); }

LogicalResult UpdateOp::collectAccesses(ActionContext &context) {
  const BucketUse *bucket = context.bucketUse(getBucketAttr().getAttr());
  if (!bucket)
    return emitOpError("names ") << getBucketAttr() << ", which is no bucket of this module";
  if (bucket->operands.size() != getBuffers().size())
    return emitOpError("has ") << getBuffers().size() << " buffers, expected " << bucket->operands.size()
                               << ": the parameter, its gradient and what @" << getBucket()
                               << " names as states";
  if (!context.kernel(getKernelAttr()))
    return emitOpError("runs ") << getKernelAttr() << ", which is no flat kernel of this module";
  // Of two updates the first leaves the parameter as it is, the second the states.
  bool twice = getRecord() || getDirection() || getUnpadded();
  for (auto [i, ref, use] : llvm::enumerate(refsOf(getBuffers()), bucket->operands)) {
    bool isParameter = i == kUpdatedParameter || (i == kFirstUpdateState && bucket->hasMaster);
    bool isState = i >= kFirstUpdateState && !isParameter;
    bool reads = use.reads && !(twice && isState && !getDirection());
    bool writes = !twice ? use.writes : getDirection() ? !isParameter : isParameter;
    context.add(ref, (int64_t)getElements() * use.bytes, reads, writes);
  }
  if (getRecord()) {
    // Of a bucket that is updated part by part each part adds to the record.
    auto whole = context.slotBytes(*this, getRecord()->getBuffer().getAttr());
    int64_t bytes = bucket->parameters * kTrustWords * sizeof(int64_t);
    if (!whole)
      return emitOpError("has its record in ") << getRecord()->getBuffer() << ", which is no buffer";
    context.add(*getRecord(), getDirection() ? bytes : *whole, !getDirection() || getFrom(), getDirection());
  }
  if (getCoefficients()) {
    auto whole = context.slotBytes(*this, getCoefficients()->getBuffer().getAttr());
    if (!whole)
      return emitOpError("has its coefficients in ")
             << getCoefficients()->getBuffer() << ", which is no buffer";
    context.add(*getCoefficients(), *whole, /*reads=*/true, /*writes=*/true);
  }
  // On a device its own ratios are among the scalars.
  bool makesRatios = getRecord() && !getDirection() && isForDevice(*this);
  context.addScalars(*this, /*reads=*/true, /*writes=*/makesRatios);
  return success();
}
FlatSymbolRefAttr UpdateOp::getCalledSegment() { return {}; }
std::optional<MovedBytes> UpdateOp::getMoved() { return std::nullopt; }
bool UpdateOp::readsPadding() { return true; }
std::string UpdateOp::describeAction() { return ("update of @" + getBucket()).str(); }
std::string UpdateOp::getEventName() { return ("update." + getBucket()).str(); }

LogicalResult TransformOp::collectAccesses(ActionContext &context) {
  return collectSegmentAccesses(*this, context, /*accumulates=*/true);
}
FlatSymbolRefAttr TransformOp::getCalledSegment() { return getSegmentAttr(); }
std::optional<MovedBytes> TransformOp::getMoved() { return std::nullopt; }
bool TransformOp::readsPadding() { return false; }
std::string TransformOp::describeAction() {
  return ("transform by @" + getSegment() + " of @" + getBucket()).str();
}
std::string TransformOp::getEventName() { return (getBucket() + "." + getSegment()).str(); }

LogicalResult MapOp::collectAccesses(ActionContext &context) {
  const SegmentUse *kernel = context.kernel(getKernelAttr());
  if (!kernel)
    return emitOpError("runs ") << getKernelAttr() << ", which is no kernel of this module";
  if (kernel->arguments.size() != getBuffers().size())
    return emitOpError("has ") << getBuffers().size() << " buffers, expected " << kernel->arguments.size()
                               << ", as " << getKernelAttr() << " takes";
  for (auto [ref, use] : llvm::zip(refsOf(getBuffers()), kernel->arguments))
    context.add(ref, use.whole ? use.bytes : (int64_t)getElements() * use.bytes, use.reads, use.writes);
  return success();
}
FlatSymbolRefAttr MapOp::getCalledSegment() { return {}; }
std::optional<MovedBytes> MapOp::getMoved() { return std::nullopt; }
bool MapOp::readsPadding() { return true; }
std::string MapOp::describeAction() { return ("map by @" + getKernel().getLeafReference().getValue()).str(); }
std::string MapOp::getEventName() { return ("map." + getKernel().getLeafReference().getValue()).str(); }

LogicalResult FoldOp::collectAccesses(ActionContext &context) {
  std::optional<int64_t> bytes = context.slotBytes(*this, getStatistics().getBuffer().getAttr());
  if (!bytes)
    return emitOpError("names ") << getStatistics().getBuffer() << ", which is no buffer of its program";
  if (getElements().size() != getTargets().size() || getPlaces().size() != getTargets().size() ||
      getMomenta().size() != getTargets().size())
    return emitOpError("has ") << getTargets().size()
                               << " targets, expected as many places, elements and momenta";
  context.add(getStatistics(), *bytes, true, false);
  for (auto [ref, elements] : llvm::zip(refsOf(getTargets()), getElements()))
    context.add(ref, elements * (int64_t)sizeof(float), true, true);
  // It follows what the agreement decides.
  context.addScalars(*this, /*reads=*/true, /*writes=*/false);
  return success();
}
FlatSymbolRefAttr FoldOp::getCalledSegment() { return {}; }
std::optional<MovedBytes> FoldOp::getMoved() { return std::nullopt; }
bool FoldOp::readsPadding() { return false; }
std::string FoldOp::describeAction() { return "fold of running statistics"; }
std::string FoldOp::getEventName() { return "fold"; }
