//===- Profile.cpp - measures the calls of a step --------------------------===//

#include "Core/Profile.h"

#include <iterator>

namespace dsopt::runtime {

namespace {
/// What a report says of a kind of action.
struct Described {
  const char *what;
  bool flies;
};
/// By ActionKind.
constexpr Described kDescribed[] = {
    {"copies and checks inputs", false},
    {"calls that the program does not describe", false},
    {"parameters or gradients over ranks", true},
    {"gradients over ranks", true},
    {"values between ranks", true},
    {"gradients of shards and of shared parameters", false},
    {"values to another stage", true},
    {"values from another stage", true},
    {"square sums of gradients", false},
    {"exchange of norms, losses and stop requests", false},
    {"updates that the program does not describe", false},
    {"flat kernels on buffers", false},
    {"running statistics", false},
    {"between memories", false},
    {"values to the next rank", true},
};
static_assert(std::size(kDescribed) == kActionKindCount);
} // namespace

Profile::Profile(const Program &program, DeviceMeter *meter) : actions(program.calls.size()), meter(meter) {
  for (const Call &call : program.calls)
    rows.emplace_back().one = call;
  for (int kind = 0; kind < kActionKindCount; ++kind) {
    bool run = kind == static_cast<int>(ActionKind::Run);
    // A device copies by itself.
    bool flies = kDescribed[kind].flies || (meter && kind == static_cast<int>(ActionKind::Copy));
    Row &row = rows.emplace_back();
    row.one = {run ? "other" : kActionKinds[kind], kDescribed[kind].what, ""};
    row.flies = flies;
  }
}

void Profile::reset() {
  for (Row &row : rows) {
    row.calls = row.bytes = row.flops = 0;
    row.time = {};
    row.deviceMs = 0;
  }
}

void Profile::settle() {
  if (!meter)
    return;
  for (const Marked &one : marked)
    rows[one.row].deviceMs += meter->milliseconds(one.begin, one.end);
  marked.clear();
  meter->restart();
}

std::vector<CallRow> Profile::result() const {
  std::vector<CallRow> result;
  for (const Row &row : rows)
    if (row.calls)
      result.push_back({row.one, row.flies, row.calls,
                        std::chrono::duration<double, std::milli>(row.time).count() + row.deviceMs,
                        static_cast<double>(row.bytes), static_cast<double>(row.flops), row.figures,
                        row.figures.algorithm && !row.one.products.empty() ? row.figures.algorithm : ""});
  return result;
}

} // namespace dsopt::runtime
