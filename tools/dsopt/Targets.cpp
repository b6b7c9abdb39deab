//===- Targets.cpp - one command line for several targets -----------------===//

#include "Targets.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

using dsopt::runtime::Error;
using dsopt::runtime::ParsedOptions;

static constexpr char kBoth[] = "cpu,cuda";

/// The architectures of -arch that are a target's.
static std::string architecturesOf(const ParsedOptions &options, bool isDevice) {
  std::string given = options.text("arch"), own;
  for (llvm::StringRef name : llvm::split(given, ','))
    if (name.starts_with("sm_") == isDevice)
      own += (own.empty() ? "" : ",") + name.str();
  return own;
}

dsopt::Targets::Targets(const ParsedOptions &options) {
  if (options.text("target") != kBoth) {
    each.push_back(options);
    return;
  }
  for (const char *name : {"run", "emit", "inspect", "list-parameters", "print-pipeline"})
    if (options.has(name))
      throw Error(1, std::string("-target=") + kBoth + " makes one executable for both: with -" + name +
                         " give one of them");
  if (std::string how = options.text("plan"); !how.empty() && how != "text")
    throw Error(1, std::string("-target=") + kBoth + " prints both plans as text: with -plan=" + how +
                       " give one of them");
  if (options.positionals[0] == "-")
    throw Error(1, std::string("-target=") + kBoth + " reads the model twice, expected a file, got -");
  for (const char *target : {"cuda", "cpu"}) {
    ParsedOptions &one = each.emplace_back(options);
    one.values["target"] = {target};
    one.values.erase("arch");
    if (std::string own = architecturesOf(options, target == llvm::StringRef("cuda"));
        options.has("arch") && !own.empty())
      one.values["arch"] = {own};
  }
}
