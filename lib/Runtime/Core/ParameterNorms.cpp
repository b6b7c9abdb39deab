//===- ParameterNorms.cpp - the norms of parameters ------------------------===//

#include "Core/ParameterNorms.h"
#include "Core/Agreement.h"
#include "Core/LocalSteps.h"
#include "Core/Parts.h"

#include <algorithm>

namespace dsopt::runtime {

/// A rank adds its slice of what its position owns.
ParameterNorms::ParameterNorms(const Program &program, const RankInfo &info, const Addresses &addresses,
                               Engine &engine, ThreadPool &pool)
    : program(program), engine(engine), pool(pool), parameters(program, pool.threads(), /*byParameter=*/true),
      tracked(trainableParameters(program)) {
  for (const Position::Load &load : program.positions[info.position].loads) {
    const Bucket &bucket = program.buckets[load.bucket];
    bool rounded = !load.master && (bucket.type != "f32" || movesApart(program));
    // What ranks along tp have alike counts once.
    bool isAnothers = !bucket.distinct && tensorRank(info) > 0;
    if (!bucket.trainable || bucket.owner != info.position || rounded || isAnothers)
      continue;
    int64_t slice = program.sliceOf(bucket), first = info.slice * slice;
    auto *values = reinterpret_cast<const float *>(addresses.at(load.target));
    parameters.addRange(load.bucket, Element::F32, load.sliced ? values : values + first, first, slice);
  }
  norms.resize(tracked.size() * ExactSum::kDigits);
  allNorms.resize(norms.size() * engine.size());
}

void ParameterNorms::exchange(std::vector<float> &result) {
  for (size_t range = 0; range < parameters.ranges(); ++range)
    parameters.compute(range, pool);
  for (size_t i = 0; i < tracked.size(); ++i)
    std::copy_n(parameters.of(tracked[i]).digits, ExactSum::kDigits, norms.begin() + i * ExactSum::kDigits);
  engine.exchange(norms.data(), norms.size() * sizeof(int64_t), allNorms.data());
  result.resize(program.parameters.size(), -1.0f);
  normsOf(allNorms.data(), norms.size(), engine.size(), tracked, /*scale=*/1, result);
}

} // namespace dsopt::runtime
