//===- PrepareUpdates.cpp - the launches of updates ------------------------===//
//
// A launch for each group of parameters with scalars of its own, or, where an
// update goes by norms of whole parameters, or finds nothing between them, for
// each parameter.
//
//===----------------------------------------------------------------------===//

#include "Core/Executor.h"
#include "dsopt/Runtime/Scalars.h"

#include <algorithm>

namespace dsopt::runtime {

void *Executor::flatKernel(const std::string &symbol, const SymbolResolver &resolve) {
  void *kernel = resolve(symbol);
  if (!kernel)
    throw Error(StatusInput, "the program has no kernel '" + symbol + "'");
  return kernel;
}

/// Whether a run computes for slices of a bucket, and this rank's has no part of what it computes.
bool Executor::isOfOthers(const Action &run) const {
  if (!run.sliced)
    return false;
  int64_t slice = program.sliceOf(program.buckets[run.bucket]), first = info.slice * slice;
  return run.from + run.elements <= first || run.from >= first + slice;
}

void Executor::prepareScalars() {
  if (!addresses.find("scalars"))
    return;
  for (const Action &action : position.actions)
    if (action.kind == ActionKind::Update && !program.buckets[action.bucket].groups.empty()) {
      const Group &group = program.buckets[action.bucket].groups.front();
      scalarTable(group.lr_scale, group.decay_scale);
      return;
    }
}

void Executor::prepareUpdate(Prepared &prepared, const SymbolResolver &resolve) {
  const Action &action = *prepared.action;
  const Bucket &bucket = program.buckets[action.bucket];
  void *kernel = flatKernel(action.symbol, resolve);
  int64_t first = (action.sliced ? info.slice * program.sliceOf(bucket) : 0) + action.from;
  if (auto it = program.update_calls.find(action.symbol); it != program.update_calls.end())
    prepared.call = it->second;
  prepared.firstLaunch = launches.size();
  bool byNorms = seesNorms(action), isDevices = isOnDevice(prepared);
  if (byNorms) {
    // A device sums whole slices: parts are those of updates that were moved to the host.
    if (isDevices && action.direction && action.from > 0)
      throw Error(StatusInput, "program table: '" + action.name + "' is the device's, but a part of a slice");
    if (!ratios) {
      ratios = std::make_unique<TrustRatios>(program, position, addresses, pool);
      if (program.freeze_step > 0)
        ratios->keepCoefficients(options, hasOwnGradients());
    }
    if (isDevices && !action.direction && !ratios->hasScratch())
      ratios->setScratch(takeTables(TrustRatios::kScratchTables));
    prepared.norm = action.direction ? ratios->addDirection(action, first) : ratios->launches();
  }
  for (const Group &group : bucket.groups) {
    int64_t begin = std::max(group.begin, first), end = std::min(group.end, first + action.elements);
    if (begin >= end)
      continue;
    Launch launch{kernel, begin - first, end - first, 0};
    const float *table = scalarTable(group.lr_scale, group.decay_scale);
    if (action.direction || !(byNorms || action.unpadded)) {
      addLaunch(action, launch, table);
      continue;
    }
    // By whole parameters: each has a ratio of its own, or bytes.
    for (size_t i = 0; i < program.parameters.size(); ++i)
      for (const Part &part : partsOf(program.parameters[i])) {
        launch.begin = std::max(begin, part.bucket_offset) - first;
        launch.end = std::min(end, part.bucket_offset + part.elements) - first;
        if (part.bucket == action.bucket && launch.begin < launch.end)
          addLaunch(action, launch,
                    byNorms ? ratios->addLaunch(table, static_cast<int64_t>(i), part,
                                                isDevices ? takeTables(1) : nullptr)
                            : table);
      }
  }
  prepared.lastLaunch = launches.size();
}

void Executor::addLaunch(const Action &action, const Launch &launch, const float *table) {
  launches.push_back(launch);
  launches.back().args = pointers.size();
  for (const Ref &ref : action.refs)
    pointers.push_back(addresses.at(ref));
  pointers.push_back(const_cast<float *>(table));
}

float *Executor::scalarTable(double lrScale, double decayScale) {
  for (const ScalarTable &table : tables)
    if (table.lrScale == lrScale && table.decayScale == decayScale)
      return table.values;
  tables.push_back({lrScale, decayScale, takeTables(1)});
  return tables.back().values;
}

float *Executor::takeTables(int64_t count) {
  const Buffer *buffer = addresses.find("scalars");
  int64_t bytes = DSOPT_SCALARS * sizeof(float);
  int64_t have = buffer ? buffer->bytes / bytes : 0;
  if (have < takenTables + count)
    throw Error(StatusInput, "program table: buffer 'scalars' of position " + std::to_string(info.position) +
                                 " has room for " + std::to_string(have) + " tables, expected more");
  float *first = reinterpret_cast<float *>(addresses.at(*buffer)) + takenTables * DSOPT_SCALARS;
  takenTables += count;
  return first;
}

} // namespace dsopt::runtime
