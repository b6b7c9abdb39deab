//===- VerifyPositions.cpp - programs against each other ------------------===//

#include "Verify.h"
#include "dsopt/Analysis/Exec/Simulation.h"

#include <map>

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

namespace {
/// What the positions' ranks do with others, in order.
struct Communication {
  explicit Communication(ArrayRef<ProgramOp> programs)
      : transfers(programs.size()), collectives(programs.size()) {
    for (auto [i, program] : llvm::enumerate(programs))
      for (Operation &op : getSchedule(program).getBody().front())
        if (isa<RunOp, WaitOp>(op))
          continue;
        else if (auto transfer = dyn_cast<TransferOpInterface>(op))
          transfers[i].push_back(transfer);
        else if (auto collective = dyn_cast<CollectiveOpInterface>(op))
          collectives[i].push_back(collective);
  }
  std::vector<std::vector<TransferOpInterface>> transfers; ///< by position
  std::vector<std::vector<CollectiveOpInterface>> collectives;
};
} // namespace

/// A transfer's peers are at one other position, and its own ranks at one place: each group has one rank of
/// both positions, so that in a communicator the two name each other.
static LogicalResult verifyPeers(const Communication &communication, Members &members) {
  int64_t positions = communication.transfers.size();
  for (auto [i, transfers] : llvm::enumerate(communication.transfers))
    for (TransferOpInterface transfer : transfers) {
      FailureOr<int64_t> count = members.count(transfer);
      if (failed(count))
        return failure();
      int64_t peer = transfer.getPeer();
      if (peer < 0 || peer >= *count)
        return transfer->emitOpError("names member ")
               << peer << " of " << getCommunicator(transfer) << ", which has " << *count;
      int64_t position = members.peer(transfer);
      if (position < 0 || position >= positions || position == (int64_t)i || members.place(transfer) < 0)
        return transfer->emitOpError("names member ")
               << peer << " of " << getCommunicator(transfer)
               << ", expected one that is at the same other position for all ranks of this one";
    }
  return success();
}

/// Between two positions the k-th send meets the k-th receive.
static LogicalResult verifyTransfers(ArrayRef<ProgramOp> programs, const Communication &communication,
                                     Members &members) {
  std::map<std::pair<int64_t, int64_t>, std::pair<std::vector<SendOp>, std::vector<RecvOp>>> pairs;
  for (auto [i, list] : llvm::enumerate(communication.transfers))
    for (Operation *op : list)
      if (auto send = dyn_cast<SendOp>(op))
        pairs[{i, members.peer(send)}].first.push_back(send);
      else if (auto recv = dyn_cast<RecvOp>(op))
        pairs[{members.peer(recv), i}].second.push_back(recv);
  for (auto &[key, transfers] : pairs) {
    auto &[sends, recvs] = transfers;
    for (size_t k = 0; k < std::min(sends.size(), recvs.size()); ++k) {
      SendOp send = sends[k];
      RecvOp recv = recvs[k];
      auto differ = [recv, send, k, from = key.first](StringRef what, auto got,
                                                      auto expected) mutable -> LogicalResult {
        InFlightDiagnostic diag = recv.emitOpError("is transfer ")
                                  << k << " from position " << from << " and has " << what << " " << got
                                  << ", but " << expected << " is sent";
        diag.attachNote(send.getLoc()) << "the " << describe(send) << " is here";
        return diag;
      };
      if (send.getTag() != recv.getTag() || send.getMicroBatch() != recv.getMicroBatch())
        return differ("tag", "\"" + recv.getLabel() + "\"", "\"" + send.getLabel() + "\"");
      if (send.getBytes() != recv.getBytes())
        return differ("bytes", recv.getBytes(), send.getBytes());
      if (send.getTraffic() != recv.getTraffic())
        return differ("traffic", stringifyTraffic(recv.getTraffic()), stringifyTraffic(send.getTraffic()));
      if (send.getCommunicator() != recv.getCommunicator())
        return differ("communicator", recv.getCommunicatorAttr(), send.getCommunicatorAttr());
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

/// Bytes that each member has for each other, 0 for an agreement.
static int64_t bytesOfPart(Operation *op) {
  if (auto gather = dyn_cast<GatherOp>(op))
    return gather.getBytes();
  if (auto exchange = dyn_cast<AllToAllOp>(op))
    return exchange.getBytes();
  if (auto shift = dyn_cast<ShiftOp>(op))
    return shift.getBytes();
  if (auto reduce = dyn_cast<ReduceOp>(op))
    return bytesOf(reduce.getElements(), reduce.getType());
  return 0;
}

/// Collectives over a communicator come in the same order at the positions of all members; agreements are of
/// all ranks.
static LogicalResult verifyCollectives(ArrayRef<ProgramOp> programs, const Communication &communication,
                                       Members &members) {
  std::map<StringRef, SmallVector<SmallVector<Operation *>>> lists; ///< by communicator and position
  for (auto [i, collectives] : llvm::enumerate(communication.collectives))
    for (CollectiveOpInterface op : collectives) {
      FailureOr<int64_t> count = members.count(op);
      if (failed(count))
        return failure();
      if (int64_t all = members.grid().size(); isa<AgreeOp>(op) && *count != all)
        return op->emitOpError("is over ") << *count << " ranks, expected all " << all;
      auto &list = lists[op.getCommunicatorAttr().getValue()];
      list.resize(programs.size());
      list[i].push_back(op);
    }
  for (auto &[name, list] : lists)
    for (auto [i, own] : llvm::enumerate(list)) {
      if (own.empty())
        continue;
      for (int64_t other : members.positions(own.front())) {
        if (other == (int64_t)i)
          continue;
        ArrayRef<Operation *> theirs =
            other < (int64_t)programs.size() ? ArrayRef<Operation *>(list[other]) : ArrayRef<Operation *>();
        if (own.size() > theirs.size()) {
          ProgramOp program = programs[std::min<size_t>(other, programs.size() - 1)];
          InFlightDiagnostic diag = program.emitOpError("has ")
                                    << theirs.size() << " collectives over @" << name << " at position "
                                    << other << ", but position " << i << " has " << own.size();
          diag.attachNote(own[theirs.size()]->getLoc())
              << "the other one's " << describe(own[theirs.size()]) << " is here";
          return diag;
        }
        for (size_t k = 0; k < own.size(); ++k) {
          if (own[k]->getName() == theirs[k]->getName() && bytesOfPart(own[k]) == bytesOfPart(theirs[k]))
            continue;
          InFlightDiagnostic diag = own[k]->emitOpError("is collective ")
                                    << k << " over @" << name << ", of " << bytesOfPart(own[k])
                                    << " bytes, but position " << other << " has the " << describe(theirs[k])
                                    << " there, of " << bytesOfPart(theirs[k]);
          diag.attachNote(theirs[k]->getLoc()) << "the other is here";
          return diag;
        }
      }
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

LogicalResult dsopt::verifyPositions(ArrayRef<ProgramOp> programs, Members &members) {
  Communication communication(programs);
  return failure(failed(verifyPeers(communication, members)) ||
                 failed(verifyTransfers(programs, communication, members)) ||
                 failed(verifyCollectives(programs, communication, members)) ||
                 failed(verifyProgress(programs)));
}
