//===- NodeOptions.cpp - what goes between nodes, and how -----------------===//

#include "NodeOptions.h"

#include "dsopt/Interfaces/Options.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using dsopt::runtime::Error;
using dsopt::runtime::ParsedOptions;

namespace dsopt {

void setNodeOptions(ModuleOp module, const ParsedOptions &options, const LauncherInfo &launcher) {
  Builder builder(module.getContext());
  int64_t dp = options::dp(module).value_or(1), zero = options::zero(module);
  auto text = [&](const char *name, const char *off) {
    StringRef value = getOption(module, optionKey(name), StringRef(off));
    if (value != off && zero != 3)
      throw Error(1, ("-" + Twine(name) + "=" + value + " is for what -zero=3 gathers, and the stage is " +
                      Twine(zero) + ": give -zero=3, or leave it out")
                         .str());
    return value != off;
  };
  text("gather-type", "param");
  bool pairs = options::reduce_type(module) == "int4";
  if (pairs && options::gradient_type(module) != "fp32")
    throw Error(
        1, "-reduce-type=int4 adds in fp32, and -gradient-type=param accumulates in 16 bits: leave one of "
           "them out");
  if (pairs && options::reduction(module) == "fast")
    throw Error(1,
                "-reduce-type=int4 adds what ranks have in their order, and -reduction=fast leaves that to "
                "NCCL, which adds no int4: leave one of them out");
  bool keeps = text("secondary-params", "none");
  int64_t sp = options::sp(module);
  if (sp > 1 && (pairs || keeps))
    throw Error(1, (Twine(pairs ? "-reduce-type=int4" : "-secondary-params=node") + " does not go with -sp=" +
                    Twine(sp) + " yet: nodes are of data-parallel ranks alone; leave one of them out")
                       .str());
  // Those of this host are what a launcher knows of nodes; sequence- and tensor-parallel ranks lie between
  // them.
  int64_t inner = sp * options::tp(module);
  int64_t here = launcher.worldSize ? std::min(std::max<int64_t>(1, launcher.localSize / inner), dp) : dp;
  int64_t nodeSize = options.integer("node-size", options::node_size(module).value_or(here));
  if (options.has("node-size") || keeps || pairs) {
    if (dp % nodeSize)
      throw Error(1, ("-node-size=" + Twine(nodeSize) + " does not divide the " + Twine(dp) +
                      " data-parallel ranks (-dp)" +
                      (options.has("node-size") ? "" : ": the launcher started so many on this host"))
                         .str());
    setOption(module, "node_size", builder.getI64IntegerAttr(nodeSize));
  }
  if (keeps && nodeSize == dp)
    llvm::errs() << "dsopt: warning: -secondary-params=node has no effect: all " << dp
                 << " data-parallel ranks are in one node (-node-size)\n";
  else if (keeps && nodeSize == 1)
    throw Error(1, "-secondary-params=node with -node-size=1 keeps everything whole on each rank: "
                   "-max-reuse-distance says how much is to be kept so, or -zero=2 all of it");
}

} // namespace dsopt
