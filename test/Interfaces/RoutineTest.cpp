//===- RoutineTest.cpp - a routine that no pass knows ---------------------===//
//
// graph.cumsum has no lowering; given the interface of a routine here, it goes
// through every pass to a call of the runtime.
//
//===----------------------------------------------------------------------===//

#include "dsopt/Dialect/Exec/Actions.h"
#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Interfaces/Interfaces.h"
#include "dsopt/Pipeline/Pipelines.h"
#include "dsopt/Pipeline/RegisterAll.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Parser/Parser.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace dsopt;

namespace dsopt::test {
/// A segment's operation that no dialect of ours has.
class SumOp : public Op<SumOp, OpTrait::ZeroRegions, OpTrait::ZeroResults, OpTrait::ZeroSuccessors,
                        OpTrait::VariadicOperands, RuntimeCallOpInterface::Trait> {
public:
  using Op::Op;
  static StringRef getOperationName() { return "test.sum"; }
  static ArrayRef<StringRef> getAttributeNames() { return {}; }

  LogicalResult buildCall(RuntimeCallBuilder &builder) {
    builder.call("dsopt_rt_sum", {builder.descriptor("sum", {7}), builder.pointer(getOperand(0)),
                                  builder.pointer(getOperand(1)), builder.pointer(getOperand(2))});
    return success();
  }
  CallDescription describeCall() {
    return {"sum", "a sum", getElementTypeOrSelf(getOperand(0).getType()), /*bytes=*/12};
  }
};

class TestDialect : public Dialect {
public:
  explicit TestDialect(MLIRContext *context)
      : Dialect(getDialectNamespace(), context, TypeID::get<TestDialect>()) {
    addOperations<SumOp>();
  }
  static constexpr StringLiteral getDialectNamespace() { return "test"; }
};

struct SumRoutine : RoutineOpInterface::ExternalModel<SumRoutine, graph::CumSumOp> {
  Strides getOperandStrides(Operation *, unsigned) const { return Strides::Matrix; }
  Strides getResultStrides(Operation *, unsigned) const { return Strides::Contiguous; }
  Storage getOperandStorage(Operation *, unsigned) const { return Storage::Narrow; }
  Storage getResultStorage(Operation *, unsigned) const { return Storage::Wide; }
  bool canAccumulate(Operation *, unsigned) const { return false; }
  LogicalResult verifyRoutine(Operation *op) const {
    if (cast<graph::CumSumOp>(op).getAxis() != 1)
      return op->emitOpError("sums along another axis than 1");
    return success();
  }
  int64_t getWorkspaceBytes(Operation *, const RoutineTarget &target, ArrayRef<Type>) const {
    return 100 * target.threads;
  }
  Operation *buildCall(Operation *op, OpBuilder &builder, const RoutineBuffers &buffers,
                       const RoutineTarget &) const {
    OperationState state(op->getLoc(), SumOp::getOperationName());
    state.addOperands({buffers.of(op->getOperand(0)), buffers.of(op->getResult(0)), buffers.workspace});
    return builder.create(state);
  }
};
} // namespace dsopt::test

MLIR_DECLARE_EXPLICIT_TYPE_ID(dsopt::test::TestDialect)
MLIR_DEFINE_EXPLICIT_TYPE_ID(dsopt::test::TestDialect)
MLIR_DECLARE_EXPLICIT_TYPE_ID(dsopt::test::SumOp)
MLIR_DEFINE_EXPLICIT_TYPE_ID(dsopt::test::SumOp)

namespace {
const char *model = R"mlir(
module attributes {dsopt.options = {threads = 3 : i64}} {
  func.func @block0.F(%x: tensor<4x8xf32>) -> tensor<8x4xf32> attributes {graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
    %0 = graph.transpose %x {perm = array<i64: 1, 0>} : (tensor<4x8xf32>) -> tensor<8x4xf32>
    %1 = graph.cumsum %0 {axis = AXIS : i64} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return %1 : tensor<8x4xf32>
  }
}
)mlir";

class Routine : public testing::Test {
protected:
  void SetUp() override {
    DialectRegistry registry;
    registerAllDialects(registry);
    registry.insert<test::TestDialect>();
    static bool once = (registerAllPasses(), true);
    (void)once;
    context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
    context->loadAllAvailableDialects();
  }

  /// The model after passes; its sums run along `axis`.
  LogicalResult run(const std::string &passes, const std::string &axis = "1") {
    std::string text = model;
    text.replace(text.find("AXIS"), 4, axis);
    module = parseSourceString<ModuleOp>(text, context.get());
    return runPipeline(*module, "builtin.module(" + passes + ")");
  }

  std::unique_ptr<MLIRContext> context;
  OwningOpRef<ModuleOp> module;
};
} // namespace

TEST_F(Routine, NothingUnknownPasses) {
  std::string message;
  ScopedDiagnosticHandler handler(context.get(),
                                  [&](Diagnostic &diagnostic) { message += diagnostic.str(); });
  EXPECT_TRUE(failed(run("form-kernels")));
  EXPECT_EQ(message, "'graph.cumsum' op has no lowering to a kernel or to a routine of the runtime");
}

TEST_F(Routine, GoesThroughAllPasses) {
  graph::CumSumOp::attachInterface<test::SumRoutine>(*context);
  ASSERT_TRUE(succeeded(
      run("attach-target,absorb-movements,form-kernels,verify-kernels,blocks-to-segments,describe-calls")));
  auto segment = module->lookupSymbol<func::FuncOp>("block0.F");
  SmallVector<test::SumOp> calls(segment.getOps<test::SumOp>());
  ASSERT_EQ(calls.size(), 1u);
  // It reads what is transposed under strides, has scratch for three threads and costs what cumsum does.
  auto read = cast<MemRefType>(calls[0]->getOperand(0).getType());
  EXPECT_FALSE(read.getLayout().isIdentity());
  EXPECT_EQ(cast<MemRefType>(calls[0]->getOperand(2).getType()).getNumElements(), 300);
  EXPECT_EQ(calls[0]->getAttrOfType<IntegerAttr>(exec::kFlopsAttr).getInt(), 32);
  EXPECT_EQ(segment->getAttrOfType<IntegerAttr>(exec::kFlopsAttr).getInt(), 32);
  auto described = cast<DictionaryAttr>((*module)->getAttrOfType<ArrayAttr>(exec::kCallsAttr)[0]);
  EXPECT_EQ(described.getAs<StringAttr>("what").getValue(), "a sum");
  EXPECT_EQ(described.getAs<IntegerAttr>("flops").getInt(), 32);

  ASSERT_TRUE(succeeded(runPipeline(*module, "builtin.module(segments-to-llvm)")));
  auto callee = module->lookupSymbol<LLVM::LLVMFuncOp>("dsopt_rt_sum");
  ASSERT_TRUE(callee);
  // The runtime, the descriptor and three buffers.
  EXPECT_EQ(callee.getNumArguments(), 5u);
}

TEST_F(Routine, IsAskedForTypes) {
  graph::CumSumOp::attachInterface<test::SumRoutine>(*context);
  std::string message;
  ScopedDiagnosticHandler handler(context.get(),
                                  [&](Diagnostic &diagnostic) { message += diagnostic.str(); });
  EXPECT_TRUE(failed(run("attach-target,absorb-movements,blocks-to-segments", "0")));
  EXPECT_EQ(message, "'graph.cumsum' op sums along another axis than 1");
}
