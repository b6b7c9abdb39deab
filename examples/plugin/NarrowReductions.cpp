//===- NarrowReductions.cpp - a pass outside the tree: bf16 on the wire ---===//
//
// Gradients are reduced over the data-parallel ranks in bf16, half the bytes. What rounding leaves out is
// kept on the rank in fp32 and added to the next gradient (error feedback: Seide et al., 2014, section 3).
// Runs after finish-step.
//
//===----------------------------------------------------------------------===//

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
  func.func nested @narrow.add(%e: !f, %g: !f) -> !f attributes {graph.in_place = array<i64: 0>} {
    %0 = graph.add %e, %g : (!f, !f) -> !f return %0 : !f
  }
  func.func nested @narrow.round(%e: !f) -> !b { %0 = graph.cast %e : (!f) -> !b return %0 : !b }
  func.func nested @narrow.rest(%e: !f, %w: !b) -> !f attributes {graph.in_place = array<i64: 0>} {
    %0 = graph.cast %w : (!b) -> !f %1 = graph.sub %e, %0 : (!f, !f) -> !f return %1 : !f
  }
  func.func nested @narrow.store(%s: !b) -> !f { %0 = graph.cast %s : (!b) -> !f return %0 : !f }
  func.func nested @narrow.accumulate(%g: !f, %s: !b) -> !f attributes {graph.in_place = array<i64: 0>} {
    %0 = graph.cast %s : (!b) -> !f %1 = graph.add %g, %0 : (!f, !f) -> !f return %1 : !f
  }
)mlir";

namespace {
struct NarrowReductions : PassWrapper<NarrowReductions, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(NarrowReductions)
  StringRef getArgument() const final { return "narrow-reductions"; }
  StringRef getDescription() const final { return "reduce gradients in bf16 with error feedback"; }

  void narrow(ReduceOp reduce, ProgramOp program, ScheduleOp schedule, int64_t ranks) {
    OpBuilder buffers(schedule), actions(reduce);
    MLIRContext *context = reduce.getContext();
    int64_t slice = reduce.getElements(), whole = slice * ranks;
    auto declare = [&](StringRef suffix, int64_t elements, Type type, BufferKind kind, bool persistent) {
      auto name = StringAttr::get(context, reduce.getWhole().getBuffer().getValue() + suffix);
      auto memref = MemRefType::get({elements}, type);
      if (!SymbolTable::lookupSymbolIn(program, name))
        BufferOp::create(buffers, reduce.getLoc(), name, memref, kind, 1, aligned(bytesOf(memref)),
                         /*offset=*/{}, persistent, {}, {}, {}, {});
      return RefAttr::get(context, FlatSymbolRefAttr::get(name), 0, 0, 0);
    };
    auto map = [&](StringRef kernel, ArrayRef<Attribute> refs, int64_t elements) {
      auto name = SymbolRefAttr::get(context, kKernelsModule, FlatSymbolRefAttr::get(context, kernel));
      MapOp::create(actions, reduce.getLoc(), EventType::get(context), name, ArrayAttr::get(context, refs),
                    elements, Stream::Compute);
    };
    Type f32 = actions.getF32Type(), bf16 = actions.getBF16Type();
    RefAttr error = declare(".error", whole, f32, BufferKind::Optimizer, /*persistent=*/true);
    RefAttr wire = declare(".wire", whole, bf16, BufferKind::Buffers, false);
    RefAttr sum = declare(".sum", slice, bf16, BufferKind::Buffers, false), target = reduce.getTarget();
    map("narrow.add", {error, reduce.getWhole()}, whole);
    map("narrow.round", {error, wire}, whole);
    map("narrow.rest", {error, wire}, whole);
    actions.setInsertionPointAfter(reduce);
    if (reduce.getAccumulate())
      map("narrow.accumulate", {target, sum}, slice);
    else
      map("narrow.store", {sum, target}, slice);
    reduce.setWholeAttr(wire);
    reduce.setTargetAttr(sum);
    reduce.setType(bf16);
    reduce.setAccumulate(false);
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
        if (reduce.getType().isF32())
          narrow(reduce, program, getSchedule(program), getOption(module, "dp", 1));
  }
};
} // namespace

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "narrow-reductions", "1", [] { PassRegistration<NarrowReductions>(); }};
}
