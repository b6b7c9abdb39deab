//===- FrozenSteps.cpp - around an optimizer's freeze ---------------------===//

#include "Core/FrozenSteps.h"
#include "Core/LocalSteps.h"
#include "Core/Parameters.h"

#include <algorithm>
#include <cstdlib>
#include <map>

namespace dsopt::runtime {

ListKind kindOfNext(const Program &program, int64_t steps, int64_t applied, bool isPadded) {
  if (program.delayed_update > 0 && steps >= program.delayed_update)
    return ListKind::DelayedStep;
  if (movesApart(program))
    return kindOfStep(program.local_policy, program.freeze_step, applied + 1);
  if (program.freeze_step == 0 || applied < program.freeze_step)
    return ListKind::Step;
  bool isFirst = isPadded && !program.of(ListKind::FirstFrozenStep).empty();
  return isFirst ? ListKind::FirstFrozenStep : ListKind::FrozenStep;
}

void clearPadding(const Program &program, const Position &position, const RankInfo &info,
                  const Addresses &addresses) {
  ParameterTable table(program);
  for (const Action &action : position.updates) {
    const Bucket &bucket = program.buckets[action.bucket];
    const Buffer *variance = addresses.find(bucket.name + ".v");
    if (!variance)
      throw Error(StatusInput, "program table: no step behind the freeze has '" + bucket.name + ".v'");
    auto *values = reinterpret_cast<float *>(addresses.at(*variance));
    // What the rank has of it.
    int64_t slice = program.sliceOf(bucket), first = action.sliced ? info.slice * slice : 0,
            last = action.sliced ? first + slice : bucket.padded;
    std::map<int64_t, int64_t> ends; // of what parameters have, by where it begins
    for (const auto &[parameter, part] : table.ofBucket(action.bucket))
      ends[part.bucket_offset] = part.bucket_offset + part.elements;
    ends[bucket.padded] = bucket.padded;
    int64_t end = 0;
    for (auto [begin, next] : ends) {
      if (int64_t from = std::max(end, first), to = std::min(begin, last); from < to)
        std::fill(values + from - first, values + to - first, 0.0f);
      end = next;
    }
  }
}

/// When ranks were apart is known by these.
static void checkPolicy(const Program &program, const std::string &checkpoint, const Manifest &manifest) {
  const LocalPolicy &policy = program.local_policy;
  for (auto [name, value] : {std::pair("var-update-scaler", policy.var_update_scaler),
                             std::pair("local-step-scaler", policy.local_step_scaler),
                             std::pair("local-step-clipper", policy.local_step_clipper)})
    if (auto found = manifest.options.find(name);
        found != manifest.options.end() && manifest.applied > 0 && found->second != std::to_string(value))
      throw Error(StatusInput, checkpoint + " was written with -" + name + "=" + found->second + " after " +
                                   std::to_string(manifest.applied) + " applied steps, got -" + name + "=" +
                                   std::to_string(value) + ": expected the same");
}

void checkFreeze(const Program &program, const std::string &checkpoint, const Manifest &manifest) {
  if (program.local_policy.local_step_clipper > 0)
    checkPolicy(program, checkpoint, manifest);
  auto found = manifest.options.find("freeze-step");
  if (program.freeze_step == 0 || found == manifest.options.end())
    return;
  int64_t written = std::strtoll(found->second.c_str(), nullptr, 10);
  if (written != program.freeze_step && manifest.applied > std::min(written, program.freeze_step))
    throw Error(StatusInput, checkpoint + " was written with -freeze-step=" + found->second + " after " +
                                 std::to_string(manifest.applied) +
                                 " applied steps, got -freeze-step=" + std::to_string(program.freeze_step) +
                                 ": expected the same, or that no step behind either has been applied");
}

} // namespace dsopt::runtime
