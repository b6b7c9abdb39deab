//===- Profile.cpp - measures the calls of a step --------------------------===//

#include "Core/Profile.h"

namespace dsopt::runtime {

Profile::Profile(const Program &program) : actions(program.calls.size()) {
  for (const Call &call : program.calls)
    rows.push_back({call});
  auto action = [&](ActionKind kind, const char *name, const char *what, bool flies) {
    rows.resize(std::max<size_t>(rows.size(), rowOf(kind) + 1));
    rows[rowOf(kind)] = {{name, what, ""}, flies};
  };
  action(ActionKind::Input, "input", "copies and checks inputs", false);
  action(ActionKind::Run, "other", "calls that the program does not describe", false);
  action(ActionKind::Gather, "gather", "parameters or gradients over ranks", true);
  action(ActionKind::Reduce, "reduce", "gradients over ranks", true);
  action(ActionKind::AllToAll, "all_to_all", "values between ranks", true);
  action(ActionKind::Add, "add", "gradients of shards and of shared parameters", false);
  action(ActionKind::Send, "send", "values to another stage", true);
  action(ActionKind::Recv, "recv", "values from another stage", true);
  action(ActionKind::Norm, "norm", "square sums of gradients", false);
  action(ActionKind::Agree, "agree", "exchange of norms, losses and stop requests", false);
  action(ActionKind::Update, "update", "updates that the program does not describe", false);
  action(ActionKind::Map, "map", "flat kernels on buffers", false);
  action(ActionKind::Fold, "fold", "running statistics", false);
}

void Profile::reset() {
  for (Row &row : rows) {
    row.calls = row.bytes = row.flops = 0;
    row.time = {};
  }
}

std::vector<CallRow> Profile::result() const {
  std::vector<CallRow> result;
  for (const Row &row : rows)
    if (row.calls)
      result.push_back({row.one, row.flies, row.calls,
                        std::chrono::duration<double, std::milli>(row.time).count(),
                        static_cast<double>(row.bytes), static_cast<double>(row.flops)});
  return result;
}

} // namespace dsopt::runtime
