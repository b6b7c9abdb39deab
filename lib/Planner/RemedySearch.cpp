//===- RemedySearch.cpp - what would fit where a step does not ------------===//

#include "dsopt/Planner/RemedySearch.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace dsopt;

Remedies dsopt::withRemedy(Remedies remedies, const Remedy &remedy) {
  llvm::erase_if(remedies, [&](const Remedy &one) { return one.name == remedy.name; });
  remedies.push_back(remedy);
  return remedies;
}

std::string RemedySearch::valueOf(llvm::StringRef name, const Remedies &with) const {
  for (const Remedy &remedy : with)
    if (remedy.name == name)
      return remedy.value;
  return given(name);
}

std::optional<int64_t> RemedySearch::recomputed(const Remedies &with) {
  bool chooses = valueOf("recompute", with) == "auto";
  std::optional<Need> needed =
      ask(chooses ? withRemedy(with, {"recompute", "full"}) : with, /*full=*/nullptr);
  if (!needed)
    return std::nullopt;
  if (!chooses || needed->bytes <= budget || needed->states > budget)
    return needed->bytes;
  std::optional<Need> chosen =
      ask(withRemedy(with, {"device-memory", std::to_string(budget - needed->growth)}), &*needed);
  return chosen ? chosen->bytes : needed->bytes;
}

RemedySearch::Tiles RemedySearch::chooseTiles(const Remedies &with) {
  Tiles best{0, recomputed(withRemedy(with, {"tile-products", "none"}))};
  if (tileSizes.empty() || !best.bytes || *best.bytes <= budget)
    return best;
  auto attempt = [&](int64_t elements) {
    return Tiles{elements, recomputed(withRemedy(with, {"tile-products", std::to_string(elements)}))};
  };
  Tiles least = attempt(tileSizes.front());
  if (!least.bytes || *least.bytes >= *best.bytes)
    return best;
  best = least;
  for (int64_t size : llvm::reverse(llvm::ArrayRef(tileSizes).drop_front())) {
    if (*least.bytes > budget)
      break;
    if (Tiles larger = attempt(size); larger.bytes && *larger.bytes <= budget)
      return larger;
  }
  return best;
}

std::optional<int64_t> RemedySearch::bytes(const Remedies &remedies) {
  return valueOf("tile-products", remedies) == "auto" ? chooseTiles(remedies).bytes : recomputed(remedies);
}

std::vector<Remedies> RemedySearch::candidates() const {
  std::vector<Remedies> remedies;
  auto isGiven = [&](llvm::StringRef name, llvm::StringRef value) { return given(name) == value; };
  std::string window = given("gather-window");
  int64_t microBatches = 0;
  bool isOne = llvm::to_integer(window, microBatches, 10) && microBatches == 1;
  if (!window.empty() && !isOne)
    remedies.push_back({{"gather-window", "1"}});
  std::string zero = given("zero");
  for (const char *stage : {"1", "2", "3"})
    if (zero < stage)
      remedies.push_back({{"zero", stage}});
  if (isGiven("tile-products", "none"))
    remedies.push_back({{"tile-products", "auto"}});
  if (!isGiven("recompute", "auto"))
    remedies.push_back({{"recompute", "auto"}});
  for (const char *name : {"offload-activations", "offload-optimizer"})
    if (isGiven(name, "none"))
      remedies.push_back({{name, "cpu"}});
  if (isGiven("offload-params", "none")) {
    // They go together.
    remedies.emplace_back();
    if (zero < "3")
      remedies.back().push_back({"zero", "3"});
    if (isGiven("offload-optimizer", "none"))
      remedies.back().push_back({"offload-optimizer", "cpu"});
    remedies.back().push_back({"offload-params", "cpu"});
  }
  return remedies;
}

std::pair<Remedies, int64_t> RemedySearch::fewest(int64_t least) {
  Remedies chosen;
  for (const Remedies &next : candidates()) {
    Remedies with = chosen;
    for (const Remedy &remedy : next)
      with = withRemedy(with, remedy);
    std::optional<int64_t> taken = bytes(with);
    if (!taken || *taken >= least)
      continue;
    least = *taken;
    chosen = std::move(with);
    if (least <= budget)
      break;
  }
  // What later ones made unnecessary.
  for (size_t i = 0; i < chosen.size();) {
    Remedies without = chosen;
    without.erase(without.begin() + i);
    std::optional<int64_t> taken = bytes(without);
    if (taken && *taken <= std::max(least, budget)) {
      chosen = std::move(without);
      least = *taken;
    } else {
      ++i;
    }
  }
  return {chosen, least};
}
