//===- OptimizerTest.cpp - an update rule that no pass knows --------------===//
//
// graph.sub, given the interface of an optimizer here: its gradient comes first,
// and it replaces its second operand.
//
//===----------------------------------------------------------------------===//

#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Interfaces/Interfaces.h"
#include "dsopt/Pipeline/RegisterAll.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace dsopt;

namespace {
constexpr StringLiteral kNames[] = {"test"};

template <UpdateScope scope>
struct TestRule : OptimizerOpInterface::ExternalModel<TestRule<scope>, graph::SubOp> {
  static ArrayRef<StringLiteral> getOptimizers() { return kNames; }
  static std::optional<NamedAttrList> choose(StringRef name, ModuleOp) {
    return name == "test" ? std::optional(NamedAttrList()) : std::nullopt;
  }
  static SmallVector<OptimizerState> getStates(Type) { return {}; }
  static Operation *buildUpdate(OpBuilder &builder, Location loc, Value parameter, Value gradient, ValueRange,
                                Value, const NamedAttrList &) {
    return graph::SubOp::create(builder, loc, gradient, parameter);
  }
  UpdateRole getRole(Operation *, unsigned operand) const {
    return operand ? UpdateRole::Parameter : UpdateRole::Gradient;
  }
  unsigned getReplaced(Operation *, unsigned) const { return 1; }
  UpdateScope getScope(Operation *) const { return scope; }
  StringRef getRuleName(Operation *) const { return "test"; }
};

const char *model = R"mlir(
graph.parameter @w : tensor<8xf32> from "m" at 0 bytes 32
graph.state @w.grad.0 : tensor<8xf32> gradient of @w block 0
)mlir";

class Optimizer : public testing::Test {
protected:
  void SetUp() override {
    DialectRegistry registry;
    registerAllDialects(registry);
    static bool once = (registerAllPasses(), true);
    (void)once;
    context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
    context->loadAllAvailableDialects();
    module = parseSourceString<ModuleOp>(model, context.get());
  }

  /// Appends the rule and makes its kernel.
  LogicalResult run() {
    PassManager manager(context.get());
    if (failed(parsePassPipeline("append-optimizer{optimizer=test},form-kernels", manager)))
      return failure();
    return manager.run(*module);
  }

  std::unique_ptr<MLIRContext> context;
  OwningOpRef<ModuleOp> module;
};
} // namespace

TEST_F(Optimizer, IsChosenAndBecomesAKernel) {
  graph::SubOp::attachInterface<TestRule<UpdateScope::Elements>>(*context);
  ASSERT_TRUE(succeeded(run()));
  auto update = module->lookupSymbol<func::FuncOp>("update");
  SmallVector<graph::WriteOp> writes(update.getOps<graph::WriteOp>());
  ASSERT_EQ(writes.size(), 1u);
  EXPECT_EQ(writes[0].getState(), "w");
  // A kernel takes the parameter first.
  auto kernel = module->lookupSymbol<func::FuncOp>("update.test");
  ASSERT_TRUE(kernel);
  auto sub = *kernel.getOps<graph::SubOp>().begin();
  EXPECT_EQ(sub.getLhs(), kernel.getArgument(kUpdateGradient));
  EXPECT_EQ(sub.getRhs(), kernel.getArgument(kUpdatedParameter));
  EXPECT_EQ(kernel->getAttrOfType<DenseI64ArrayAttr>(graph::kInPlaceAttr).asArrayRef(),
            ArrayRef<int64_t>{kUpdatedParameter});
}

TEST_F(Optimizer, ThatSeesWholeMatricesNeedsAFunctionOfThem) {
  graph::SubOp::attachInterface<TestRule<UpdateScope::Matrices>>(*context);
  std::string message;
  ScopedDiagnosticHandler handler(context.get(),
                                  [&](Diagnostic &diagnostic) { message += diagnostic.str(); });
  EXPECT_TRUE(failed(run()));
  EXPECT_EQ(message, "'graph.sub' op needs whole matrices and names no function of one, expected "
                     "build-matrix-updates to have run");
}
