//===- DeliverOutputs.h - outputs of a model come to rank 0 -----*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_CORE_DELIVEROUTPUTS_H
#define DSOPT_LIB_RUNTIME_CORE_DELIVEROUTPUTS_H

#include "Core/Addresses.h"
#include "dsopt/Runtime/Session.h"

namespace dsopt::runtime {

/// Hands the outputs of a group's first `counted` micro-batches to `sink` on rank 0, in order (collective).
/// The group ran as `positions` have it. Pieces of other ranks pass through `arrived` there. `fetch` brings
/// bytes of this rank to where addresses say, from its device if it has one.
void deliverOutputs(const Program &program, const std::vector<Position> &positions, const RankInfo &info,
                    Engine &engine, const Addresses &addresses, int64_t counted, std::vector<char> &arrived,
                    const std::function<void(char *, int64_t)> &fetch, const OutputSink &sink);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CORE_DELIVEROUTPUTS_H
