//===- Remedies.cpp - what would fit where a model does not ----------------===//

#include "Remedies.h"
#include "Trials.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace dsopt;
using runtime::Error;
using runtime::ParsedOptions;

static std::string describe(const Remedies &remedies) {
  std::vector<std::string> texts;
  for (const Remedy &remedy : remedies)
    texts.push_back(remedy.text());
  return llvm::join(texts, " ");
}

std::string dsopt::findRemedy(MLIRContext &context, const ParsedOptions &given,
                              const LauncherInfo &launcher) try {
  int64_t budget = given.integer("device-memory");
  if (budget <= 0)
    return "";
  if (given.has("generate"))
    return "a smaller -max-batch, -max-context or -chunk takes less";
  ImportReport report;
  OwningOpRef<ModuleOp> source = readSource(context, given, report, /*warns=*/false);
  Trials trials(*source, given, launcher, budget);
  RemedySearch search = trials.search();
  std::optional<int64_t> needed = search.bytes({});
  if (!needed || *needed <= budget)
    return "";
  auto [chosen, least] = search.fewest(*needed);
  // What is said is a plan's.
  trials.estimates = false;
  if (std::optional<int64_t> exact = search.bytes(chosen); exact && (*exact <= budget) == (least <= budget))
    least = *exact;
  else if (needed = search.bytes({}); needed)
    std::tie(chosen, least) = search.fewest(*needed);
  std::string bytes = std::to_string(least) + " bytes";
  if (least > budget)
    return "no other option is enough: the least is " + bytes +
           (chosen.empty() ? "" : ", with " + describe(chosen)) +
           "; more stages (-pp), more ranks (-dp) or a smaller -micro-batch-size take less";
  return describe(chosen) + " fits (" + bytes + ")";
} catch (const Error &) {
  // What else is wrong was said.
  return "";
}
