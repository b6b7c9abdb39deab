//===- CollectRoutines.cpp - the runtime's routines that are used ---------===//
//
// Segments call them by name; what programs do by themselves is in their actions.
//
//===----------------------------------------------------------------------===//

#include "CollectRoutines.h"
#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Dialect/Exec/Exec.h"
#include "dsopt/Interfaces/Options.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace dsopt;

namespace {
/// A call and an image that it takes kernels from; those of matrix instructions are for one type.
struct Use {
  llvm::StringLiteral call, image, type = "";
};
} // namespace

static constexpr Use kUses[] = {{"dsopt_rt_accumulate", "Elementwise"},
                                {"dsopt_rt_attention", "Attention"},
                                {"dsopt_rt_attention", "AttentionBf16", "bf16"},
                                {"dsopt_rt_attention", "AttentionF16", "f16"},
                                {"dsopt_rt_attention_grad", "AttentionGrad"},
                                {"dsopt_rt_attention_grad", "AttentionGradBf16", "bf16"},
                                {"dsopt_rt_attention_grad", "AttentionGradF16", "f16"},
                                {"dsopt_rt_ctc", "Ctc"},
                                {"dsopt_rt_ctc_grad", "Ctc"},
                                {"dsopt_rt_linear_nll", "LinearNll"},
                                {"dsopt_rt_scatter", "Scatter"},
                                {"dsopt_rt_scatter_add", "ScatterAdd"},
                                {"dsopt_rt_scatter_add", "Sort"}};

/// Whether a call of the module computes with elements of a type, as far as is known.
static bool hasCallsOf(ModuleOp module, StringRef type) {
  auto calls = module->getAttrOfType<ArrayAttr>(exec::kCallsAttr);
  return !calls || llvm::any_of(calls.getAsRange<DictionaryAttr>(), [&](DictionaryAttr call) {
    Type its = call.getAs<TypeAttr>("type").getValue();
    return type == "bf16" ? its.isBF16() : its.isF16();
  });
}

std::vector<const runtime::RoutineImage *> dsopt::collectRoutines(ModuleOp module) {
  llvm::StringSet<> calls, needed;
  module.walk([&](LLVM::CallOp call) {
    if (auto callee = call.getCallee())
      calls.insert(*callee);
  });
  for (const Use &use : kUses)
    if (calls.contains(use.call) && (use.type.empty() || hasCallsOf(module, use.type)))
      needed.insert(use.image);
  module.walk([&](Operation *op) {
    if (isa<exec::AddOp, exec::FoldOp>(op))
      needed.insert("Elementwise");
    if (isa<exec::NormOp>(op))
      needed.insert("SquareSums");
  });
  // NCCL's queues are made wherever there are several ranks.
  if (getOption(module, "dp", 1) * getOption(module, "pp", 1) > 1)
    needed.insert("TreeSum");
  std::vector<const runtime::RoutineImage *> images;
  for (const runtime::RoutineImage &image : runtime::routineImages())
    if (needed.contains(image.name))
      images.push_back(&image);
  return images;
}
