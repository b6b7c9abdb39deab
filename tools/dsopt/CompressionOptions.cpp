//===- CompressionOptions.cpp - what goes with compressed gradients -------===//

#include "CompressionOptions.h"

#include "dsopt/Interfaces/Options.h"

using namespace mlir;
using dsopt::runtime::Error;
using dsopt::runtime::ParsedOptions;

namespace dsopt {

/// What ranks leave out of an exchange is kept by data-parallel ranks, not by tensor or sequence shards.
static void checkShards(ModuleOp module, StringRef axis, int64_t ranks, StringRef shards) {
  if (ranks < 2)
    return;
  auto refuse = [&](StringRef option, StringRef value) {
    throw Error(1, ("-" + option + "=" + value + " does not go with -" + axis + "=" + Twine(ranks) +
                    " yet: what it leaves out of exchanges is not kept by " + shards +
                    " shards; leave one of them out")
                       .str());
  };
  if (StringRef method = options::compress_gradients(module); method != "none")
    refuse("compress-gradients", method);
  for (const char *optimizer : {"onebit-adam", "onebit-lamb", "zero-one-adam"})
    if (options::optimizer(module) == optimizer)
      refuse("optimizer", optimizer);
}

void checkCompression(ModuleOp module, const ParsedOptions &options) {
  checkShards(module, "tp", options::tp(module), "tensor");
  checkShards(module, "sp", options::sp(module), "sequence");
  StringRef method = options::compress_gradients(module);
  if (method == "none")
    return;
  auto refuse = [&](StringRef option, StringRef value, StringRef why) {
    throw Error(
        1,
        ("-compress-gradients=" + method + " does not go with -" + option + "=" + value + ": " + why).str());
  };
  auto given = [&](StringRef option) { return getOption(module, optionKey(option), StringRef()); };
  if (given("reduce-type") == "int4")
    refuse("reduce-type", "int4", "either says how gradients travel; leave one of them out");
  if (given("gradient-type") == "param")
    refuse("gradient-type", "param", "what it leaves out is added in fp32; expected fp32");
  if (given("reduction") == "fast")
    refuse("reduction", "fast", "what ranks send is added in their order; expected canonical");
  if (given("precision") == "fp16")
    refuse("precision", "fp16",
           "what is left out would have the loss's scale, and be lost where a step is "
           "skipped; expected fp32 or bf16");
  for (const char *optimizer : {"onebit-adam", "onebit-lamb", "zero-one-adam"})
    if (given("optimizer") == optimizer)
      refuse("optimizer", optimizer, "behind its freeze ranks exchange momenta; expected adamw or another");
  if (options.has("delayed-update"))
    refuse("delayed-update", options.text("delayed-update"), "expected no delay");
}

} // namespace dsopt
