//===- DeliverOutputs.cpp - outputs of a model come to rank 0 -------------===//

#include "Core/DeliverOutputs.h"
#include "Core/StateMessages.h"

#include <algorithm>

namespace dsopt::runtime {

void deliverOutputs(const Program &program, const std::vector<Position> &positions, const RankInfo &info,
                    Engine &engine, const Addresses &addresses, int64_t counted, std::vector<char> &arrived,
                    const std::function<void(char *, int64_t)> &fetch, const OutputSink &sink) {
  constexpr int64_t kPiece = 16 << 20;
  for (int64_t microBatch = 0; microBatch < counted; ++microBatch) {
    int64_t dpRank = microBatch / program.M, place = 0;
    while (microBatchIndex(program, dpRank, place) != microBatch)
      ++place;
    for (size_t position = 0; position < positions.size(); ++position) {
      // Ranks along sp and tp have the same.
      int from = program.rankAt(position, dpRank * program.sp());
      if (info.rank != 0 && info.rank != from)
        continue;
      const Action &agree =
          *std::find_if(positions[position].actions.begin(), positions[position].actions.end(),
                        [](const Action &action) { return action.kind == ActionKind::Agree; });
      size_t first = agree.refs.size() - agree.outputs.size() * program.M;
      for (size_t i = 0; i < agree.outputs.size(); ++i) {
        const Ref &ref = agree.refs[first + i * program.M + place];
        if (info.rank == from)
          fetch(addresses.at(ref), agree.output_bytes[i]);
        uint64_t tag = microBatch * program.outputs.size() + agree.outputs[i];
        for (int64_t at = 0, bytes; at < agree.output_bytes[i]; at += bytes) {
          bytes = std::min(kPiece, agree.output_bytes[i] - at);
          const char *values = info.rank == from ? addresses.at(ref) + at : nullptr;
          if (info.rank != 0)
            sendState(engine, program, addresses, ref, 0, values, bytes, tag);
          else if (!values) {
            arrived.resize(std::max<size_t>(arrived.size(), bytes));
            receiveState(engine, program, ref, from, arrived.data(), bytes, tag);
            values = arrived.data();
          }
          if (info.rank == 0)
            sink(agree.outputs[i], values, bytes);
        }
      }
    }
  }
  // What rank 0 could not write ends all.
  engine.barrier();
}

} // namespace dsopt::runtime
