//===- Effects.cpp - options that change nothing here ---------------------===//

#include "Effects.h"

#include "dsopt/Interfaces/Options.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace dsopt;

static bool keeps(ModuleOp module, StringRef what, StringRef where) {
  return getOption(module, what, StringRef("none")) == where;
}
static bool sharesData(ModuleOp module) { return options::dp(module).value_or(1) > 1; }
static bool hasSlices(ModuleOp module) { return sharesData(module) || options::sp(module) > 1; }
static bool hasPeers(ModuleOp module) { return hasSlices(module) || options::pp(module) > 1; }
static bool gathers(ModuleOp module) {
  return options::zero(module) == 3 && (hasSlices(module) || !keeps(module, "offload_params", "none"));
}
static bool hasShards(ModuleOp module) { return options::tensor_shards(module).value_or(1) > 1; }
static bool hasBudget(ModuleOp module) { return options::device_memory(module) > 0; }
static bool updatesElsewhere(ModuleOp module) { return !keeps(module, "offload_optimizer", "none"); }
static bool hasDisk(ModuleOp module) {
  return keeps(module, "offload_optimizer", "nvme") || keeps(module, "offload_params", "nvme");
}

namespace {
struct Need {
  const char *option;
  const char *value; ///< the only one that needs something; null: all but the default
  bool (*isMet)(ModuleOp);
  const char *goesWith;
};
} // namespace

static constexpr const char *kGathers = "-zero=3 and -dp or -sp of 2 or more, or -offload-params";

static constexpr Need kNeeds[] = {
    {"recompute", "auto", hasBudget, "-device-memory; -recompute=full computes all again that saves bytes"},
    {"gather-window", nullptr, gathers, kGathers},
    {"prefetch", nullptr, gathers, kGathers},
    {"prefetch-bucket-size", nullptr, gathers, kGathers},
    {"max-live-parameters", nullptr, gathers, kGathers},
    {"max-reuse-distance", nullptr, gathers, kGathers},
    {"param-persistence-threshold", nullptr, gathers, kGathers},
    {"gather-type", nullptr, hasSlices, "-dp or -sp of 2 or more"},
    {"compress-gradients", nullptr, sharesData, "-dp of 2 or more"},
    {"reduce-type", nullptr, sharesData, "-dp of 2 or more"},
    {"reductions-in-flight", nullptr, hasPeers, "-dp, -sp or -pp of 2 or more"},
    {"shard", nullptr, hasShards, "-tp or -tensor-shards of 2 or more"},
    {"offload-ratio", nullptr, updatesElsewhere, "-offload-optimizer=cpu or nvme"},
    {"aio", nullptr, hasDisk, "-offload-optimizer=nvme or -offload-params=nvme"},
    {"sub-group-size", nullptr, hasDisk, "-offload-optimizer=nvme or -offload-params=nvme"},
};

std::vector<std::string> dsopt::optionsWithoutEffect(ModuleOp module, const runtime::ParsedOptions &options,
                                                     const std::vector<ConfiguredOption> &configured) {
  std::vector<std::string> lines;
  for (const Need &need : kNeeds) {
    std::string given = options.text(need.option);
    bool asks = need.value
                    ? given == need.value
                    : options.has(need.option) && given != runtime::findOption(need.option)->defaultValue;
    bool isOwn =
        llvm::none_of(configured, [&](const ConfiguredOption &one) { return one.option == need.option; });
    if (asks && isOwn && !need.isMet(module))
      lines.push_back(std::string("option -") + need.option + "=" + given +
                      " has no effect here: it goes with " + need.goesWith);
  }
  return lines;
}
