//===- Remedies.cpp - what would fit where a model does not ----------------===//

#include "Remedies.h"
#include "Trials.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace dsopt;
using runtime::Error;
using runtime::ParsedOptions;

/// These with one more, which takes the place of others of its option.
static std::vector<Remedy> add(std::vector<Remedy> remedies, const Remedy &remedy) {
  llvm::erase_if(remedies, [&](const Remedy &one) { return llvm::StringRef(one.name) == remedy.name; });
  remedies.push_back(remedy);
  return remedies;
}

static std::string describe(llvm::ArrayRef<Remedy> remedies) {
  std::vector<std::string> texts;
  for (const Remedy &remedy : remedies)
    texts.push_back(remedy.text());
  return llvm::join(texts, " ");
}

/// What takes fewer bytes than what is asked for, from cheap to dear.
static std::vector<std::vector<Remedy>> remediesFor(const ParsedOptions &options) {
  std::vector<std::vector<Remedy>> remedies;
  if (options.integer("gather-window", 1) > 1)
    remedies.push_back({{"gather-window", "1"}});
  int64_t zero = options.integer("zero");
  for (auto [stage, value] : {std::pair(1, "1"), {2, "2"}, {3, "3"}})
    if (zero < stage)
      remedies.push_back({{"zero", value}});
  if (options.text("tile-products") == "none")
    remedies.push_back({{"tile-products", "auto"}});
  if (options.text("recompute") != "auto")
    remedies.push_back({{"recompute", "auto"}});
  for (const char *name : {"offload-activations", "offload-optimizer"})
    if (options.text(name) == "none")
      remedies.push_back({{name, "cpu"}});
  if (options.text("offload-params") == "none") {
    // They go together.
    remedies.emplace_back();
    if (zero < 3)
      remedies.back().push_back({"zero", "3"});
    if (options.text("offload-optimizer") == "none")
      remedies.back().push_back({"offload-optimizer", "cpu"});
    remedies.back().push_back({"offload-params", "cpu"});
  }
  return remedies;
}

/// The fewest that fit, or those with the least bytes; and how many these are.
static std::pair<std::vector<Remedy>, int64_t> choose(const ParsedOptions &options, Trials &trials,
                                                      int64_t least, int64_t budget) {
  std::vector<Remedy> chosen;
  for (const std::vector<Remedy> &next : remediesFor(options)) {
    std::vector<Remedy> with = chosen;
    for (const Remedy &remedy : next)
      with = add(with, remedy);
    std::optional<int64_t> bytes = trials.bytes(with);
    if (!bytes || *bytes >= least)
      continue;
    least = *bytes;
    chosen = std::move(with);
    if (least <= budget)
      break;
  }
  // What later ones made unnecessary.
  for (size_t i = 0; i < chosen.size();) {
    std::vector<Remedy> without = chosen;
    without.erase(without.begin() + i);
    std::optional<int64_t> bytes = trials.bytes(without);
    if (bytes && *bytes <= std::max(least, budget)) {
      chosen = std::move(without);
      least = *bytes;
    } else {
      ++i;
    }
  }
  return {chosen, least};
}

std::string dsopt::findRemedy(MLIRContext &context, const ParsedOptions &given,
                              const LauncherInfo &launcher) try {
  int64_t budget = given.integer("device-memory");
  if (budget <= 0)
    return "";
  ImportReport report;
  OwningOpRef<ModuleOp> source = readSource(context, given, report, /*warns=*/false);
  Trials trials(*source, given, launcher, budget);
  std::optional<int64_t> needed = trials.bytes({});
  if (!needed || *needed <= budget)
    return "";
  auto [chosen, least] = choose(given, trials, *needed, budget);
  // What is said is a plan's.
  trials.estimates = false;
  if (std::optional<int64_t> exact = trials.bytes(chosen); exact && (*exact <= budget) == (least <= budget))
    least = *exact;
  else if (needed = trials.bytes({}); needed)
    std::tie(chosen, least) = choose(given, trials, *needed, budget);
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
