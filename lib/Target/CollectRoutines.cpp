//===- CollectRoutines.cpp - the runtime's routines that are used ---------===//
//
// Segments' calls are described in the module; what programs do by themselves is in their actions.
//
//===----------------------------------------------------------------------===//

#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Dialect/Exec/Exec.h"
#include "dsopt/Interfaces/Options.h"
#include "dsopt/Runtime/RoutineImages.h"
#include "dsopt/Target/Target.h"

#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace dsopt;

namespace {
enum class Head { Any, Matrix, Wide };

/// A kind of call and an image that it takes kernels from; some are for one type, some for one size of heads.
struct Use {
  llvm::StringLiteral call, image, type = "";
  Head head = Head::Any;
};
} // namespace

static constexpr Use kUses[] = {
    {"accumulate", "Elementwise"},
    {"attention", "Attention", "f32"},
    {"attention", "AttentionBf16", "bf16", Head::Matrix},
    {"attention", "AttentionF16", "f16", Head::Matrix},
    {"attention", "AttentionWideBf16", "bf16", Head::Wide},
    {"attention", "AttentionWideF16", "f16", Head::Wide},
    {"attention_grad", "AttentionDots"},
    {"attention_grad", "AttentionGrad", "f32"},
    {"attention_grad", "AttentionGradBf16", "bf16", Head::Matrix},
    {"attention_grad", "AttentionGradF16", "f16", Head::Matrix},
    {"attention_grad", "AttentionGradWideBf16", "bf16", Head::Wide},
    {"attention_grad", "AttentionGradWideF16", "f16", Head::Wide},
    {"ctc", "Ctc"},
    {"ctc_grad", "Ctc"},
    {"linear_nll", "LinearNll"},
    {"scatter", "Scatter"},
    {"scatter_add", "ScatterAdd"},
    {"scatter_add", "Sort"},
};

static StringRef nameOf(Type type) { return type.isBF16() ? "bf16" : type.isF16() ? "f16" : "f32"; }

static Head headOf(DictionaryAttr call) {
  auto elements = call.getAs<IntegerAttr>("head");
  return elements && elements.getInt() > runtime::kMatrixHead ? Head::Wide : Head::Matrix;
}

SmallVector<StringRef, 2> dsopt::routinesOf(DictionaryAttr call) {
  StringRef kind = call.getAs<StringAttr>("kind").getValue(),
            type = nameOf(call.getAs<TypeAttr>("type").getValue());
  SmallVector<StringRef, 2> images;
  for (const Use &use : kUses)
    if (use.call == kind && (use.type.empty() || use.type == type) &&
        (use.head == Head::Any || use.head == headOf(call)))
      images.push_back(use.image);
  return images;
}

std::vector<Routine> dsopt::collectRoutines(ModuleOp module) {
  llvm::StringSet<> needed;
  auto calls = module->getAttrOfType<ArrayAttr>(exec::kCallsAttr);
  if (calls)
    for (auto call : calls.getAsRange<DictionaryAttr>())
      for (StringRef image : routinesOf(call))
        needed.insert(image);
  module.walk([&](Operation *op) {
    if (isa<exec::AddOp, exec::FoldOp>(op))
      needed.insert("Elementwise");
    if (isa<exec::NormOp>(op))
      needed.insert("SquareSums");
    auto update = dyn_cast<exec::UpdateOp>(op);
    if (update && update.getRecord() && update.getStream() != exec::kHostStream)
      for (const char *image : {"SquareSums", "TrustTables"})
        needed.insert(image);
    if (update && update.getRecord() && update.getDirection() &&
        options::freeze_step(module).value_or(0) > 0 && update.getStream() != exec::kHostStream)
      needed.insert("LambSums");
  });
  // NCCL's queues are made wherever there are several ranks.
  if (dist::getGrid(module).size() > 1)
    needed.insert("TreeSum");
  std::vector<Routine> routines;
  for (const runtime::RoutineImage &image : runtime::routineImages())
    // Where nobody has described the calls, any may be among them.
    if (!calls || needed.contains(image.name))
      routines.push_back({image.name, image.ptx});
  return routines;
}
