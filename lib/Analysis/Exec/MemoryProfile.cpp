//===- MemoryProfile.cpp - the device's bytes, run by run -----------------===//

#include "dsopt/Analysis/Exec/MemoryProfile.h"

#include "dsopt/Analysis/Exec/Lifetimes.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

FailureOr<MemoryProfile> MemoryProfile::compute(ProgramOp program, AccessAnalysis &analysis) {
  FailureOr<ProgramLife> life = ProgramLife::compute(program, analysis);
  if (failed(life))
    return failure();
  std::vector<int64_t> changes(life->timeline.entries().size() + 1, 0);
  int64_t bytes = 0;
  for (const BufferLife &buffer : life->lives) {
    if (buffer.memory != 0)
      continue;
    bytes += buffer.persistent ? buffer.bytes : 0;
    for (const Episode &episode : buffer.episodes) {
      changes[episode.first] += BufferOp(buffer.buffer).getStride();
      changes[episode.last + 1] -= BufferOp(buffer.buffer).getStride();
    }
  }
  MemoryProfile profile;
  profile.peak = bytes;
  for (auto [entry, change] : llvm::zip(life->timeline.entries(), changes)) {
    bytes += change;
    profile.peak = std::max(profile.peak, bytes);
    if (isa<RunOp>(entry.op))
      profile.live[entry.op] = bytes;
  }
  return profile;
}
