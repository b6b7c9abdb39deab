//===- NarrowReductions.cpp - passes outside the tree: bf16 on the wire ---===//
//
// Gradients are reduced over the data-parallel ranks in bf16, half the bytes: narrow-reductions asks for it
// in the dist form. What rounding leaves out is kept on the rank in fp32 and added to the next gradient
// (error feedback: Seide et al., 2014, section 3) by feed-errors-back, which runs after finish-step.
//
//===----------------------------------------------------------------------===//

#include "dsopt/Dialect/Dist/Dist.h"
#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Interfaces/Options.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Tools/Plugins/PassPlugin.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::exec;

/// Kernels, which become flat ones: element by element, however many there are.
static constexpr StringLiteral kKernels = R"mlir(
  !f = tensor<64xf32>
  !b = tensor<64xbf16>
  func.func nested @errors.add(%e: !f, %g: !f) -> !f attributes {graph.in_place = array<i64: 0>} {
    %0 = graph.add %e, %g : (!f, !f) -> !f return %0 : !f
  }
  func.func nested @errors.rest(%e: !f) -> !f attributes {graph.in_place = array<i64: 0>} {
    %0 = graph.cast %e : (!f) -> !b %1 = graph.cast %0 : (!b) -> !f
    %2 = graph.sub %e, %1 : (!f, !f) -> !f return %2 : !f
  }
)mlir";

namespace {
struct NarrowReductions : PassWrapper<NarrowReductions, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(NarrowReductions)
  StringRef getArgument() const final { return "narrow-reductions"; }
  StringRef getDescription() const final { return "reduce gradients in bf16"; }
  void runOnOperation() final {
    getOperation().walk(
        [](dist::ReduceOp reduce) { reduce.setType(BFloat16Type::get(reduce.getContext())); });
  }
};

struct FeedErrorsBack : PassWrapper<FeedErrorsBack, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FeedErrorsBack)
  StringRef getArgument() const final { return "feed-errors-back"; }
  StringRef getDescription() const final {
    return "add what narrow reductions leave out to the next gradient";
  }

  void feedBack(ReduceOp reduce, ProgramOp program, ScheduleOp schedule, int64_t ranks) {
    OpBuilder buffers(schedule), actions(reduce);
    MLIRContext *context = reduce.getContext();
    int64_t whole = reduce.getElements() * ranks;
    auto map = [&](StringRef kernel, ArrayRef<Attribute> refs) {
      auto name = SymbolRefAttr::get(context, kKernelsModule, FlatSymbolRefAttr::get(context, kernel));
      MapOp::create(actions, reduce.getLoc(), EventType::get(context), name, ArrayAttr::get(context, refs),
                    whole, kComputeStream);
    };
    auto name = StringAttr::get(context, reduce.getWhole().getBuffer().getValue() + ".error");
    auto memref = MemRefType::get({whole}, actions.getF32Type());
    if (!SymbolTable::lookupSymbolIn(program, name))
      BufferOp::create(buffers, reduce.getLoc(), name, memref, BufferKind::Optimizer, 1,
                       aligned(bytesOf(memref)),
                       /*offset=*/{}, /*persistent=*/true, {}, {}, {}, {}, {});
    RefAttr error = RefAttr::get(context, FlatSymbolRefAttr::get(name), 0, 0, 0);
    map("errors.add", {error, reduce.getWhole()});
    actions.setInsertionPointAfter(reduce);
    map("errors.rest", {error});
    reduce.setWholeAttr(error);
  }

  void runOnOperation() final {
    ModuleOp module = getOperation();
    OwningOpRef<ModuleOp> kernels = parseSourceString<ModuleOp>(kKernels, &getContext());
    for (auto kernel : kernels->getOps<func::FuncOp>()) {
      kernel->setAttr(graph::kIterateAttr, graph::IterationAttr::get(&getContext(), graph::Iteration::Flat));
      kernel->setAttr(graph::kRangeAttr, DenseI64ArrayAttr::get(&getContext(), {64}));
    }
    Block *target = module.lookupSymbol<ModuleOp>(kKernelsModule).getBody();
    target->getOperations().splice(target->end(), kernels->getBody()->getOperations());
    for (auto program : module.getOps<ProgramOp>())
      for (auto reduce : llvm::to_vector(getSchedule(program).getOps<ReduceOp>()))
        if (reduce.getWire())
          feedBack(reduce, program, getSchedule(program), getOption(module, "dp", 1));
  }
};
} // namespace

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "narrow-reductions", "1", [] {
            PassRegistration<NarrowReductions>();
            PassRegistration<FeedErrorsBack>();
          }};
}
