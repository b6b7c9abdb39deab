//===- Gathered.cpp - what gathers keep whole, in elements ----------------===//

#include "Gathered.h"

#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Interfaces/OverlapRemarks.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

GatheredElements::GatheredElements(ProgramOp program) {
  for (auto buffer : program.getBody().front().getOps<BufferOp>()) {
    auto type = dyn_cast<MemRefType>(buffer.getType());
    if (!type)
      continue;
    std::optional<int64_t> payload = buffer.getPayload();
    // Padding is no parameter.
    elements[buffer.getSymNameAttr()] =
        payload ? *payload * type.getNumElements() / bytesOf(type) : type.getNumElements();
  }
}

void GatherRemarks::add(GatherOp gather, const Twine &reason) {
  // Nobody listens, or nobody waits for it in a step.
  if (!gather.getContext()->getRemarkEngine() ||
      gather->getParentOfType<ProgramOp>().getKind() == ProgramKind::Evaluation)
    return;
  Missed &entry =
      missed.try_emplace({gather.getTarget().getBuffer(), StringAttr::get(gather.getContext(), reason)})
          .first->second;
  if (entry.gathers++ == 0)
    entry.first = gather;
}

void GatherRemarks::emit(StringRef what) {
  for (auto &[key, entry] : missed) {
    auto buffer = cast<FlatSymbolRefAttr>(key.first).getValue();
    std::string times = entry.gathers == 1 ? "" : " (" + std::to_string(entry.gathers) + " gathers a step)";
    remark::missed(entry.first.getLoc(), remark::RemarkOpts::name(name).category(kOverlapRemarks))
        << ("stage " + Twine(entry.first->getParentOfType<ProgramOp>().getPosition()) + ": @" + buffer + " " +
            what + times + ": " + key.second.getValue())
               .str();
  }
}
