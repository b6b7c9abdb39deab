//===- VerifyPositions.cpp - programs against each other ------------------===//

#include "Verify.h"
#include "dsopt/Transforms/Schedule/Simulation.h"

#include <map>

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

/// Positions are 0, 1, 2 ... and peers are among them.
static LogicalResult verifyPeers(ArrayRef<ProgramOp> programs) {
  for (auto [i, program] : llvm::enumerate(programs)) {
    if (ProgramOp(program).getPosition() != i)
      return ProgramOp(program).emitOpError("is position ")
             << ProgramOp(program).getPosition() << ", expected position " << i;
    for (Operation &op : getSchedule(program).getBody().front()) {
      int64_t peer = isa<SendOp>(op)   ? cast<SendOp>(op).getPeer()
                     : isa<RecvOp>(op) ? cast<RecvOp>(op).getPeer()
                                       : -1;
      if (isa<SendOp, RecvOp>(op) && (peer < 0 || peer >= (int64_t)programs.size() || peer == (int64_t)i))
        return op.emitOpError("names position ") << peer << ", expected another of " << programs.size();
    }
  }
  return success();
}

/// Between two positions the k-th send meets the k-th receive.
static LogicalResult verifyTransfers(ArrayRef<ProgramOp> programs) {
  std::map<std::pair<int64_t, int64_t>, std::pair<std::vector<SendOp>, std::vector<RecvOp>>> pairs;
  for (auto [i, program] : llvm::enumerate(programs))
    for (Operation &op : getSchedule(program).getBody().front()) {
      if (auto send = dyn_cast<SendOp>(op))
        pairs[{i, send.getPeer()}].first.push_back(send);
      else if (auto recv = dyn_cast<RecvOp>(op))
        pairs[{recv.getPeer(), i}].second.push_back(recv);
    }
  for (auto &[key, transfers] : pairs) {
    auto &[sends, recvs] = transfers;
    for (size_t k = 0; k < std::min(sends.size(), recvs.size()); ++k) {
      SendOp send = sends[k];
      RecvOp recv = recvs[k];
      auto differ = [recv, send, k](StringRef what, auto got, auto expected) mutable -> LogicalResult {
        InFlightDiagnostic diag = recv.emitOpError("is transfer ")
                                  << k << " from position " << recv.getPeer() << " and has " << what << " "
                                  << got << ", but " << expected << " is sent";
        diag.attachNote(send.getLoc()) << "the " << describe(send) << " is here";
        return diag;
      };
      if (send.getTag() != recv.getTag())
        return differ("tag", recv.getTagAttr(), send.getTagAttr());
      if (send.getBytes() != recv.getBytes())
        return differ("bytes", recv.getBytes(), send.getBytes());
      if (send.getTraffic() != recv.getTraffic())
        return differ("traffic", stringifyTraffic(recv.getTraffic()), stringifyTraffic(send.getTraffic()));
    }
    if (sends.size() == recvs.size())
      continue;
    bool sent = sends.size() > recvs.size();
    Operation *alone = sent ? (Operation *)sends[recvs.size()] : (Operation *)recvs[sends.size()];
    ProgramOp other = programs[sent ? key.second : key.first];
    InFlightDiagnostic diag = alone->emitOpError("has no match: position ")
                              << key.first << " sends " << sends.size() << " values to position "
                              << key.second << ", which receives " << recvs.size();
    diag.attachNote(other.getLoc()) << "the other position is here";
    return diag;
  }
  return success();
}

/// All positions agree the same number of times.
static LogicalResult verifyAgreements(ArrayRef<ProgramOp> programs) {
  SmallVector<SmallVector<AgreeOp>> agreements;
  for (ProgramOp program : programs)
    agreements.emplace_back(getSchedule(program).getBody().front().getOps<AgreeOp>());
  for (auto [i, list] : llvm::enumerate(agreements)) {
    if (list.size() == agreements[0].size())
      continue;
    size_t longer = list.size() > agreements[0].size() ? i : 0, shorter = longer ? 0 : i;
    ProgramOp program = programs[shorter];
    InFlightDiagnostic diag = program.emitOpError("agrees ")
                              << agreements[shorter].size() << " times in a step, but position " << longer
                              << " " << agreements[longer].size() << " times";
    diag.attachNote(agreements[longer][agreements[shorter].size()].getLoc()) << "the other agreement is here";
    return diag;
  }
  return success();
}

static LogicalResult verifyProgress(ArrayRef<ProgramOp> programs) {
  Simulation simulation(programs, [](Operation *) { return 1.0; });
  SmallVector<Operation *> circle = simulation.deadlock();
  if (circle.empty())
    return success();
  InFlightDiagnostic diag = circle[0]->emitOpError("never ends: this ")
                            << describe(circle[0]) << " at position "
                            << circle[0]->getParentOfType<ProgramOp>().getPosition() << " waits in a circle";
  for (Operation *op : ArrayRef<Operation *>(circle).drop_front())
    diag.attachNote(op->getLoc()) << "for this " << describe(op) << " at position "
                                  << op->getParentOfType<ProgramOp>().getPosition() << ", which waits";
  return diag;
}

LogicalResult dsopt::verifyPositions(ModuleOp module, ArrayRef<ProgramOp> programs) {
  return failure(failed(verifyPeers(programs)) || failed(verifyTransfers(programs)) ||
                 failed(verifyAgreements(programs)) || failed(verifyProgress(programs)));
}
