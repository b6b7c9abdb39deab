//===- BackwardTest.cpp - a model's backward against finite differences ---===//
//
// A small transformer with tied embedding, in float64: blocks, backward, and the
// outlined blocks, whose gradients are the same bits.
//
//===----------------------------------------------------------------------===//

#include "Dialect/Graph/Evaluate.h"
#include "dsopt/Pipeline/RegisterAll.h"
#include "dsopt/Transforms/Autodiff/Passes.h"
#include "dsopt/Transforms/Fuse/Passes.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::graph;
using namespace dsopt::graph::test;

namespace {

const char *model = R"mlir(
graph.parameter @table : tensor<7x4xf64> from "m" at 0 bytes 224
graph.parameter @position : tensor<3x4xf64> from "m" at 0 bytes 96
graph.parameter @scale : tensor<4xf64> from "m" at 0 bytes 32
graph.parameter @bias : tensor<4xf64> from "m" at 0 bytes 32
graph.parameter @qkv : tensor<4x12xf64> from "m" at 0 bytes 384
graph.parameter @proj : tensor<4x4xf64> from "m" at 0 bytes 128
graph.parameter @up : tensor<4x8xf64> from "m" at 0 bytes 256
graph.parameter @down : tensor<8x4xf64> from "m" at 0 bytes 256
func.func @forward(%ids: tensor<2x3xi64>, %mask: tensor<1x3x3xi1>, %labels: tensor<6xi64>) -> tensor<f32> {
  %table = graph.read @table : tensor<7x4xf64>
  %position = graph.read @position : tensor<3x4xf64>
  %scale = graph.read @scale : tensor<4xf64>
  %bias = graph.read @bias : tensor<4xf64>
  %qkv = graph.read @qkv : tensor<4x12xf64>
  %proj = graph.read @proj : tensor<4x4xf64>
  %up = graph.read @up : tensor<4x8xf64>
  %down = graph.read @down : tensor<8x4xf64>
  %low = graph.constant dense<-30.0> : tensor<f64>
  %e = graph.gather %table, %ids {axis = 0 : i64} : (tensor<7x4xf64>, tensor<2x3xi64>) -> tensor<2x3x4xf64>
  %x = graph.add %e, %position : (tensor<2x3x4xf64>, tensor<3x4xf64>) -> tensor<2x3x4xf64>
  %n, %mean, %rstd = graph.layer_norm %x, %scale, %bias {axis = 2 : i64, epsilon = 1.0e-5 : f64} : (tensor<2x3x4xf64>, tensor<4xf64>, tensor<4xf64>) -> (tensor<2x3x4xf64>, tensor<2x3x1xf64>, tensor<2x3x1xf64>)
  %rows = graph.reshape %n : (tensor<2x3x4xf64>) -> tensor<6x4xf64>
  %m = graph.matmul %rows, %qkv : (tensor<6x4xf64>, tensor<4x12xf64>) -> tensor<6x12xf64>
  %m3 = graph.reshape %m : (tensor<6x12xf64>) -> tensor<2x3x12xf64>
  %q = graph.slice %m3 {starts = array<i64: 0, 0, 0>, sizes = array<i64: 2, 3, 4>, steps = array<i64: 1, 1, 1>} : (tensor<2x3x12xf64>) -> tensor<2x3x4xf64>
  %k = graph.slice %m3 {starts = array<i64: 0, 0, 4>, sizes = array<i64: 2, 3, 4>, steps = array<i64: 1, 1, 1>} : (tensor<2x3x12xf64>) -> tensor<2x3x4xf64>
  %v = graph.slice %m3 {starts = array<i64: 0, 0, 8>, sizes = array<i64: 2, 3, 4>, steps = array<i64: 1, 1, 1>} : (tensor<2x3x12xf64>) -> tensor<2x3x4xf64>
  %s = graph.matmul %q, %k {transpose_b} : (tensor<2x3x4xf64>, tensor<2x3x4xf64>) -> tensor<2x3x3xf64>
  %masked = graph.where %mask, %s, %low : (tensor<1x3x3xi1>, tensor<2x3x3xf64>, tensor<f64>) -> tensor<2x3x3xf64>
  %p = graph.softmax %masked {axis = 2 : i64} : (tensor<2x3x3xf64>) -> tensor<2x3x3xf64>
  %a = graph.matmul %p, %v : (tensor<2x3x3xf64>, tensor<2x3x4xf64>) -> tensor<2x3x4xf64>
  %arows = graph.reshape %a : (tensor<2x3x4xf64>) -> tensor<6x4xf64>
  %o = graph.matmul %arows, %proj : (tensor<6x4xf64>, tensor<4x4xf64>) -> tensor<6x4xf64>
  %o3 = graph.reshape %o : (tensor<6x4xf64>) -> tensor<2x3x4xf64>
  %x1 = graph.add %x, %o3 : (tensor<2x3x4xf64>, tensor<2x3x4xf64>) -> tensor<2x3x4xf64>
  %n1, %mean1, %rstd1 = graph.layer_norm %x1, %scale, %bias {axis = 2 : i64, epsilon = 1.0e-5 : f64} : (tensor<2x3x4xf64>, tensor<4xf64>, tensor<4xf64>) -> (tensor<2x3x4xf64>, tensor<2x3x1xf64>, tensor<2x3x1xf64>)
  %rows1 = graph.reshape %n1 : (tensor<2x3x4xf64>) -> tensor<6x4xf64>
  %h = graph.matmul %rows1, %up : (tensor<6x4xf64>, tensor<4x8xf64>) -> tensor<6x8xf64>
  %g = graph.gelu %h : (tensor<6x8xf64>) -> tensor<6x8xf64>
  %d = graph.matmul %g, %down : (tensor<6x8xf64>, tensor<8x4xf64>) -> tensor<6x4xf64>
  %d3 = graph.reshape %d : (tensor<6x4xf64>) -> tensor<2x3x4xf64>
  %x2 = graph.add %x1, %d3 : (tensor<2x3x4xf64>, tensor<2x3x4xf64>) -> tensor<2x3x4xf64>
  %last = graph.reshape %x2 : (tensor<2x3x4xf64>) -> tensor<6x4xf64>
  %head = graph.transpose %table {perm = array<i64: 1, 0>} : (tensor<7x4xf64>) -> tensor<4x7xf64>
  %z = graph.matmul %last, %head : (tensor<6x4xf64>, tensor<4x7xf64>) -> tensor<6x7xf64>
  %nll, %lse = graph.nll %z, %labels {ignore_index = 1 : i64} : (tensor<6x7xf64>, tensor<6xi64>) -> (tensor<6xf64>, tensor<6xf64>)
  %sum = graph.reduce_mean %nll {axes = array<i64: 0>} : (tensor<6xf64>) -> tensor<f64>
  %loss = graph.cast %sum : (tensor<f64>) -> tensor<f32>
  return %loss : tensor<f32>
}
)mlir";

class Backward : public testing::Test {
protected:
  void SetUp() override {
    DialectRegistry registry;
    registerAllDialects(registry);
    context = std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
    module = parseSourceString<ModuleOp>(model, context.get());
    ASSERT_TRUE(module);
    std::mt19937 engine(11);
    for (auto parameter : module->getOps<ParameterOp>())
      inputs.states[parameter.getSymName()] = randomElements(parameter.getType(), -1, 1, engine);
    for (Type type : module->lookupSymbol<func::FuncOp>("forward").getArgumentTypes())
      arguments.push_back(randomElements(type, 0, 1, engine));
  }

  void run(std::unique_ptr<Pass> pass) {
    PassManager manager(context.get());
    manager.addPass(std::move(pass));
    ASSERT_TRUE(succeeded(manager.run(*module)));
  }

  /// Runs a function; what it accumulates is collected by state.
  SmallVector<Attribute> call(func::FuncOp function, ArrayRef<Attribute> with, Environment environment) {
    Block &body = function.front();
    for (auto [argument, value] : llvm::zip(body.getArguments(), with))
      environment.values[argument] = value;
    for (Operation &op : llvm::make_early_inc_range(body.without_terminator()))
      if (auto run = dyn_cast<RunOp>(op)) {
        SmallVector<Attribute> operands;
        for (Value input : run.getInputs())
          operands.push_back(environment.values.lookup(input));
        auto results = call(module->lookupSymbol<func::FuncOp>(run.getCallee()), operands, environment);
        for (auto [result, value] : llvm::zip(run.getOutputs(), results))
          environment.values[result] = value;
      }
    if (body.getOps<RunOp>().empty())
      evaluate(body, environment);
    for (auto accumulate : body.getOps<AccumulateOp>())
      gradients[accumulate.getState()] = cast<DenseElementsAttr>(environment.values[accumulate.getValue()]);
    SmallVector<Attribute> results;
    for (Value result : body.getTerminator()->getOperands())
      results.push_back(environment.values.lookup(result));
    return results;
  }

  /// The loss in float64, before its cast.
  double loss(func::FuncOp function, Environment environment) {
    Block &body = function.front();
    for (auto [argument, value] : llvm::zip(body.getArguments(), arguments))
      environment.values[argument] = value;
    evaluate(body, environment);
    return environment.numbers(body.getTerminator()->getOperand(0).getDefiningOp()->getOperand(0))[0];
  }

  std::unique_ptr<MLIRContext> context;
  OwningOpRef<ModuleOp> module;
  Environment inputs;
  SmallVector<Attribute> arguments;
  llvm::StringMap<DenseElementsAttr> gradients;
};

TEST_F(Backward, MatchesFiniteDifferences) {
  OwningOpRef<ModuleOp> original = module->clone();
  auto forward = original->lookupSymbol<func::FuncOp>("forward");
  run(createFindBlocks());
  EXPECT_EQ((*module)->getAttrOfType<IntegerAttr>(kBlocksAttr).getInt(), 3);
  run(createBuildBackward());
  run(createAppendOptimizer());
  run(createVerifyGraph());
  auto seed = RankedTensorType::get({}, Float32Type::get(context.get()));
  arguments.push_back(DenseElementsAttr::get(seed, 1.0f));
  call(module->lookupSymbol<func::FuncOp>("micro_batch"), arguments, inputs);

  for (auto parameter : module->getOps<ParameterOp>()) {
    StringRef name = parameter.getSymName();
    std::vector<double> sum(numElements(parameter.getType()), 0.0);
    unsigned blocks = 0;
    for (auto state : module->getOps<StateOp>())
      if (state.getRole() == graph::Role::Gradient && state.getParameter() == name) {
        ASSERT_TRUE(gradients.contains(state.getSymName()));
        for (auto [total, part] : llvm::zip(sum, gradients[state.getSymName()].getValues<double>()))
          total += part;
        ++blocks;
      }
    EXPECT_EQ(blocks, name == "table" || name == "scale" || name == "bias" ? 2u : 1u) << name.str();
    for (size_t i = 0; i < sum.size(); ++i) {
      const double step = 1e-5;
      Environment above = inputs, below = inputs;
      auto elements = cast<DenseElementsAttr>(inputs.states[name]);
      above.states[name] = nudged(elements, i, step);
      below.states[name] = nudged(elements, i, -step);
      double expected = (loss(forward, above) - loss(forward, below)) / (2 * step);
      EXPECT_NEAR(sum[i], expected, 1e-7 * (1 + std::abs(expected))) << name.str() << " element " << i;
    }
  }
}

TEST_F(Backward, OutlinedBlocksComputeTheSame) {
  run(createFindBlocks());
  run(createBuildBackward());
  auto seed = RankedTensorType::get({}, Float32Type::get(context.get()));
  arguments.push_back(DenseElementsAttr::get(seed, 0.5f));
  auto loss = call(module->lookupSymbol<func::FuncOp>("micro_batch"), arguments, inputs);
  auto whole = std::move(gradients);
  gradients.clear();
  run(createFormBlocks());
  auto outlined = call(module->lookupSymbol<func::FuncOp>("micro_batch"), arguments, inputs);
  EXPECT_EQ(loss, outlined);
  EXPECT_EQ(whole.size(), 11u);
  EXPECT_EQ(whole.size(), gradients.size());
  for (auto &entry : whole)
    EXPECT_EQ(entry.second, gradients[entry.first()]) << entry.first().str();
}

} // namespace
