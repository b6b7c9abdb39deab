//===- Streams.cpp - the streams of a module, counted ---------------------===//

#include "dsopt/Dialect/Exec/Streams.h"

using namespace mlir;
using namespace dsopt::exec;

Streams::Streams(ModuleOp module) {
  if (!module)
    return;
  for (auto stream : module.getOps<StreamOp>()) {
    streams.push_back(stream);
    names.push_back(stream.getSymNameAttr());
  }
}

/// Whether a stream can run the action.
static bool fits(StreamKind kind, ActionOpInterface action) {
  StreamKind needed = action.getStreamKind();
  return kind == needed ||
         (kind == StreamKind::Host && needed == StreamKind::Compute && !action.getCalledSegment()) ||
         (kind == StreamKind::Disk && needed == StreamKind::Copy);
}

/// Actions are on streams of the module that can run them.
LogicalResult ScheduleOp::verifySymbolUses(SymbolTableCollection &) {
  Streams streams(getOperation()->getParentOfType<ModuleOp>());
  SmallVector<TypeID> fitting(streams.size()); ///< the last kind of action that each was right for
  for (Operation &op : getBody().front()) {
    if (isa<ReleaseOp>(op))
      continue;
    int index = streams.of(&op);
    if (index < 0)
      return op.emitOpError("is on ") << getStream(&op) << ", which is no stream of this module";
    if (isa<WaitOp>(op) || op.getName().getTypeID() == fitting[index])
      continue;
    StreamOp stream = streams[index];
    auto action = cast<ActionOpInterface>(op);
    if (fits(stream.getKind(), action)) {
      fitting[index] = op.getName().getTypeID();
      continue;
    }
    InFlightDiagnostic diag = op.emitOpError("is on ") << getStream(&op) << ", expected a stream of kind "
                                                       << stringifyStreamKind(action.getStreamKind());
    diag.attachNote(stream.getLoc()) << "the stream is here, of kind "
                                     << stringifyStreamKind(stream.getKind());
    return diag;
  }
  return success();
}
