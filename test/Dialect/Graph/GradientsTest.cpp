//===- GradientsTest.cpp - every gradient against finite differences ------===//

#include "Evaluate.h"
#include "dsopt/Interfaces/Interfaces.h"
#include "dsopt/Pipeline/RegisterAll.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace dsopt;
using namespace dsopt::graph;
using namespace dsopt::graph::test;

namespace {

/// The last operation of a body, its operands drawn from [low, high).
struct Case {
  const char *name;
  const char *text;
  double low = -2, high = 2;
  /// Results that have a gradient.
  unsigned results = 1;
};

void PrintTo(const Case &test, std::ostream *os) { *os << test.name; }

class Gradients : public testing::TestWithParam<Case> {};

/// sum(weights * results)
double weigh(const Environment &environment, Operation *op, ArrayRef<std::vector<double>> weights) {
  double sum = 0;
  for (auto [result, factors] : llvm::zip(op->getResults(), weights)) {
    std::vector<double> numbers = environment.numbers(result);
    for (size_t i = 0; i < numbers.size(); ++i)
      sum += numbers[i] * factors[i];
  }
  return sum;
}

TEST_P(Gradients, MatchFiniteDifferences) {
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  auto module = parseSourceString<ModuleOp>(GetParam().text, &context);
  ASSERT_TRUE(module);
  auto function = *module->getOps<func::FuncOp>().begin();
  Block &body = function.front();
  Operation *op = body.getTerminator()->getPrevNode();

  std::mt19937 engine(7);
  Environment inputs;
  for (Value argument : body.getArguments())
    inputs.values[argument] = randomElements(argument.getType(), GetParam().low, GetParam().high, engine);
  Environment forward = inputs;
  ASSERT_NO_FATAL_FAILURE(evaluate(body, forward));

  // The gradients of the results are further arguments.
  unsigned arguments = body.getNumArguments();
  SmallVector<Value> resultGrads(op->getNumResults());
  SmallVector<std::vector<double>> weights;
  Environment backward = inputs;
  for (unsigned i = 0; i < GetParam().results; ++i) {
    Type type = op->getResult(i).getType();
    resultGrads[i] = body.addArgument(type, op->getLoc());
    backward.values[resultGrads[i]] = randomElements(type, -1, 1, engine);
    weights.push_back(backward.numbers(resultGrads[i]));
  }
  SmallVector<bool> needed;
  for (Value operand : op->getOperands())
    needed.push_back(isa<BlockArgument>(operand) && isa<FloatType>(getElementTypeOrSelf(operand.getType())));
  SmallVector<Value> operandGrads(op->getNumOperands());
  OpBuilder builder(body.getTerminator());
  auto differentiable = dyn_cast<DifferentiableOpInterface>(op);
  ASSERT_TRUE(differentiable);
  ASSERT_TRUE(succeeded(differentiable.buildGradient(builder, resultGrads, needed, operandGrads)));
  ASSERT_NO_FATAL_FAILURE(evaluate(body, backward));
  for (Operation &built : body)
    ASSERT_TRUE(succeeded(mlir::verify(&built)));

  for (unsigned i = 0; i < op->getNumOperands(); ++i) {
    Value operand = op->getOperand(i);
    if (!needed[i])
      continue;
    ASSERT_TRUE(operandGrads[i]) << "operand " << i;
    ASSERT_EQ(operandGrads[i].getType(), operand.getType());
    ASSERT_LT(cast<BlockArgument>(operand).getArgNumber(), arguments);
    std::vector<double> gradient = backward.numbers(operandGrads[i]);
    auto elements = cast<DenseElementsAttr>(inputs.values[operand]);
    for (int64_t k = 0; k < elements.getNumElements(); ++k) {
      const double step = 1e-5;
      double sides[2];
      for (int side : {0, 1}) {
        Environment nearby = backward;
        nearby.values[operand] = nudged(elements, k, side ? step : -step);
        evaluate(body, nearby);
        sides[side] = weigh(nearby, op, weights);
      }
      double expected = (sides[1] - sides[0]) / (2 * step);
      EXPECT_NEAR(gradient[k], expected, 1e-7 * (1 + std::abs(expected)))
          << "operand " << i << " element " << k;
    }
  }
}

#define UNARY(name)                                                                                          \
  "func.func @f(%a: tensor<3x4xf64>) -> tensor<3x4xf64> {\n"                                                 \
  "  %0 = graph." name " %a : (tensor<3x4xf64>) -> tensor<3x4xf64>\n"                                        \
  "  return %0 : tensor<3x4xf64>\n}"
#define BINARY(name, a, b, c)                                                                                \
  "func.func @f(%a: tensor<" a ">, %b: tensor<" b ">) -> tensor<" c "> {\n"                                  \
  "  %0 = graph." name " : (tensor<" a ">, tensor<" b ">) -> tensor<" c ">\n"                                \
  "  return %0 : tensor<" c ">\n}"
#define ONE(op, a, c)                                                                                        \
  "func.func @f(%a: tensor<" a ">) -> tensor<" c "> {\n"                                                     \
  "  %0 = graph." op " : (tensor<" a ">) -> tensor<" c ">\n"                                                 \
  "  return %0 : tensor<" c ">\n}"

#define SCATTER(mode, indices)                                                                               \
  "func.func @f(%a: tensor<4x3xf64>, %u: tensor<3x3xf64>) -> tensor<4x3xf64> {\n"                            \
  "  %i = graph.constant dense<" indices "> : tensor<3xi64>\n"                                               \
  "  %0 = graph.scatter " mode " %a, %i, %u"                                                                 \
  " : (tensor<4x3xf64>, tensor<3xi64>, tensor<3x3xf64>) -> tensor<4x3xf64>\n"                                \
  "  return %0 : tensor<4x3xf64>\n}"

const Case elementwise[] = {
    {"neg", UNARY("neg")},
    {"abs", UNARY("abs")},
    {"exp", UNARY("exp")},
    {"log", UNARY("log"), 0.5, 3},
    {"sqrt", UNARY("sqrt"), 0.5, 3},
    {"reciprocal", UNARY("reciprocal"), 0.5, 3},
    {"tanh", UNARY("tanh")},
    {"erf", UNARY("erf")},
    {"sigmoid", UNARY("sigmoid")},
    {"relu", UNARY("relu")},
    {"sin", UNARY("sin")},
    {"cos", UNARY("cos")},
    {"acos", UNARY("acos"), -0.9, 0.9},
    {"acosh", UNARY("acosh"), 1.5, 4},
    {"asin", UNARY("asin"), -0.9, 0.9},
    {"asinh", UNARY("asinh")},
    {"atan", UNARY("atan")},
    {"atanh", UNARY("atanh"), -0.9, 0.9},
    {"cosh", UNARY("cosh")},
    {"sinh", UNARY("sinh")},
    {"rem", BINARY("rem %a, %b", "3x4xf64", "4xf64", "3x4xf64"), 0.5, 3},
    {"gelu", UNARY("gelu")},
    {"silu", UNARY("silu")},
    {"gelu_tanh", ONE("gelu %a {approximate_tanh}", "3x4xf64", "3x4xf64")},
    {"dropout",
     "func.func @f(%a: tensor<3x4xf64>) -> tensor<3x4xf64> {\n"
     "  %k = graph.constant dense<[1, 2, 3, 4, 1, 0, 0]> : tensor<7xi32>\n"
     "  %s = graph.constant dense<[0, -1]> : tensor<2xi32>\n"
     "  %0 = graph.dropout %a, %k, %s {ratio = 0.3 : f64} : (tensor<3x4xf64>, tensor<7xi32>, tensor<2xi32>) "
     "-> tensor<3x4xf64>\n"
     "  return %0 : tensor<3x4xf64>\n}"},
    {"add", BINARY("add %a, %b", "3x4xf64", "3x4xf64", "3x4xf64")},
    {"add_row", BINARY("add %a, %b", "2x3x4xf64", "4xf64", "2x3x4xf64")},
    {"add_column", BINARY("add %a, %b", "3x1xf64", "2x3x4xf64", "2x3x4xf64")},
    {"add_both", BINARY("add %a, %b", "3x1xf64", "1x4xf64", "3x4xf64")},
    {"add_scalar", BINARY("add %a, %b", "f64", "3x4xf64", "3x4xf64")},
    {"add_ones", BINARY("add %a, %b", "4xf64", "1x1x4xf64", "1x1x4xf64")},
    {"sub", BINARY("sub %a, %b", "3x4xf64", "4xf64", "3x4xf64")},
    {"mul", BINARY("mul %a, %b", "3x4xf64", "3x1xf64", "3x4xf64")},
    {"div", BINARY("div %a, %b", "3x4xf64", "4xf64", "3x4xf64"), 0.5, 3},
    {"pow", BINARY("pow %a, %b", "3x4xf64", "4xf64", "3x4xf64"), 0.5, 3},
    {"pow_square", "func.func @f(%a: tensor<3x4xf64>) -> tensor<3x4xf64> {\n"
                   "  %b = graph.constant dense<2.0> : tensor<f64>\n"
                   "  %0 = graph.pow %a, %b : (tensor<3x4xf64>, tensor<f64>) -> tensor<3x4xf64>\n"
                   "  return %0 : tensor<3x4xf64>\n}"},
    {"pow_cube", "func.func @f(%a: tensor<3x4xf64>) -> tensor<3x4xf64> {\n"
                 "  %b = graph.constant dense<3.0> : tensor<f64>\n"
                 "  %0 = graph.pow %a, %b : (tensor<3x4xf64>, tensor<f64>) -> tensor<3x4xf64>\n"
                 "  return %0 : tensor<3x4xf64>\n}"},
    {"min", BINARY("min %a, %b", "3x4xf64", "4xf64", "3x4xf64")},
    {"max", BINARY("max %a, %b", "3x4xf64", "3x1xf64", "3x4xf64")},
    {"where",
     "func.func @f(%c: tensor<3x1xi1>, %a: tensor<3x4xf64>, %b: tensor<4xf64>) -> tensor<3x4xf64> {\n"
     "  %0 = graph.where %c, %a, %b : (tensor<3x1xi1>, tensor<3x4xf64>, tensor<4xf64>) -> "
     "tensor<3x4xf64>\n"
     "  return %0 : tensor<3x4xf64>\n}"},
    {"cast", ONE("cast %a", "3x4xf64", "3x4xf64")},
};

const Case shapes[] = {
    {"matmul", BINARY("matmul %a, %b", "3x5xf64", "5x4xf64", "3x4xf64")},
    {"matmul_ta", BINARY("matmul %a, %b {transpose_a}", "5x3xf64", "5x4xf64", "3x4xf64")},
    {"matmul_tb", BINARY("matmul %a, %b {transpose_b}", "3x5xf64", "4x5xf64", "3x4xf64")},
    {"matmul_tab", BINARY("matmul %a, %b {transpose_a, transpose_b}", "5x3xf64", "4x5xf64", "3x4xf64")},
    {"matmul_batched", BINARY("matmul %a, %b", "2x3x5xf64", "2x5x4xf64", "2x3x4xf64")},
    {"matmul_batched_tb", BINARY("matmul %a, %b {transpose_b}", "2x3x5xf64", "2x4x5xf64", "2x3x4xf64")},
    {"reduce_sum", ONE("reduce_sum %a {axes = array<i64: 0, 2>}", "2x3x4xf64", "3xf64")},
    {"reduce_sum_keep", ONE("reduce_sum %a {axes = array<i64: 1>, keepdims}", "2x3x4xf64", "2x1x4xf64")},
    {"reduce_mean", ONE("reduce_mean %a {axes = array<i64: 1, 2>}", "2x3x4xf64", "2xf64")},
    {"reduce_mean_all", ONE("reduce_mean %a {axes = array<i64: 0, 1>}", "3x4xf64", "f64")},
    {"reduce_max", ONE("reduce_max %a {axes = array<i64: 1>}", "3x4xf64", "3xf64")},
    {"reduce_min", ONE("reduce_min %a {axes = array<i64: 0>, keepdims}", "3x4xf64", "1x4xf64")},
    {"reduce_prod", ONE("reduce_prod %a {axes = array<i64: 0, 2>}", "2x3x4xf64", "3xf64")},
    {"reduce_prod_keep", ONE("reduce_prod %a {axes = array<i64: 1>, keepdims}", "3x5xf64", "3x1xf64")},
    {"cumsum", ONE("cumsum %a {axis = 1 : i64}", "2x5x3xf64", "2x5x3xf64")},
    {"cumsum_back", ONE("cumsum %a {axis = 0 : i64, exclusive, reverse}", "7x3xf64", "7x3xf64")},
    {"reshape", ONE("reshape %a", "3x4xf64", "2x6xf64")},
    {"expand", ONE("expand %a", "3x1xf64", "2x3x4xf64")},
    {"transpose", ONE("transpose %a {perm = array<i64: 2, 0, 1>}", "2x3x4xf64", "4x2x3xf64")},
    {"concat", BINARY("concat %a, %b {axis = 1 : i64}", "2x3xf64", "2x2xf64", "2x5xf64")},
    {"slice", ONE("slice %a {starts = array<i64: 1, 0>, sizes = array<i64: 2, 2>, steps = array<i64: 1, 2>}",
                  "3x4xf64", "2x2xf64")},
    {"slice_back", ONE("slice %a {starts = array<i64: 3>, sizes = array<i64: 4>, steps = array<i64: -1>}",
                       "4xf64", "4xf64")},
    {"slice_grad",
     ONE("slice_grad %a {starts = array<i64: 1, 0>, steps = array<i64: 1, 2>}", "2x2xf64", "3x4xf64")},
    {"pad", ONE("pad %a {lows = array<i64: 1, -1>, highs = array<i64: 0, 2>, value = 0.5 : f64}", "3x4xf64",
                "4x5xf64")},
    {"gather", BINARY("gather %a, %b {axis = 0 : i64}", "3x4xf64", "2x5xi64", "2x5x4xf64")},
    {"gather_axis", BINARY("gather %a, %b {axis = 1 : i64}", "2x3x4xf64", "5xi64", "2x5x4xf64")},
    {"gather_inner", BINARY("gather %a, %b {axis = 2 : i64}", "2x3x4xf64", "2x5xi64", "2x3x2x5xf64")},
    {"gather_elements",
     BINARY("gather_elements %a, %b {axis = 1 : i64}", "2x3x4xf64", "2x5x3xi64", "2x5x3xf64")},
    {"gather_elements_one",
     BINARY("gather_elements %a, %b {axis = 0 : i64}", "3x1xf64", "7x1xi64", "7x1xf64")},
    {"windows",
     ONE("windows %a {axis = 1, counts = array<i64: 3>, kernel = array<i64: 2>, strides = array<i64: "
         "2>, dilations = array<i64: 2>, lows = array<i64: 1>, value = 1.0 : f64}",
         "2x5x3xf64", "2x3x2x3xf64")},
    {"windows_plane",
     ONE("windows %a {axis = 0, counts = array<i64: 4, 5>, kernel = array<i64: 3, 1>, strides = "
         "array<i64: 1, 1>, dilations = array<i64: 1, 1>, lows = array<i64: 1, 0>, value = 0.0 : f64}",
         "4x5xf64", "4x5x3x1xf64")},
    {"windows_sum",
     ONE("windows_sum %a {axis = 1, strides = array<i64: 2>, dilations = array<i64: 1>, lows = "
         "array<i64: 1>}",
         "2x3x3x1xf64", "2x5x1xf64")},
    {"scatter_set", SCATTER("set", "[2, -4, 1]")},
    {"scatter_add", SCATTER("add", "[2, -4, 2]")},
    {"scatter_mul", SCATTER("mul", "[2, -4, 2]")},
    {"scatter_min", SCATTER("min", "[2, -4, 2]")},
    {"scatter_max", SCATTER("max", "[2, -4, 2]")},
    {"gather_grad", BINARY("gather_grad %a, %b {axis = 0 : i64}", "5x4xf64", "5xi64", "3x4xf64")},
};

const Case composites[] = {
    {"softmax", ONE("softmax %a {axis = 1 : i64}", "3x4xf64", "3x4xf64")},
    {"softmax_inner", ONE("softmax %a {axis = 1 : i64}", "2x3x4xf64", "2x3x4xf64")},
    {"rms_norm",
     "func.func @f(%x: tensor<2x3x4xf64>, %s: tensor<4xf64>) -> tensor<2x3x4xf64> {\n"
     "  %0, %1 = graph.rms_norm %x, %s {axis = 2 : i64, epsilon = 1.0e-5 : f64} : (tensor<2x3x4xf64>, "
     "tensor<4xf64>) -> (tensor<2x3x4xf64>, tensor<2x3x1xf64>)\n"
     "  return %0 : tensor<2x3x4xf64>\n}"},
    {"rms_norm_statistic",
     "func.func @f(%x: tensor<2x3x5xf64>, %s: tensor<3x5xf64>) -> tensor<2x3x5xf64> {\n"
     "  %0, %1 = graph.rms_norm %x, %s {axis = 1 : i64, epsilon = 1.0e-5 : f64} : (tensor<2x3x5xf64>, "
     "tensor<3x5xf64>) -> (tensor<2x3x5xf64>, tensor<2x1x1xf64>)\n"
     "  return %0 : tensor<2x3x5xf64>\n}",
     -2, 2, 2},
    {"layer_norm",
     "func.func @f(%x: tensor<2x3x4xf64>, %s: tensor<4xf64>, %b: tensor<4xf64>) -> tensor<2x3x4xf64> {\n"
     "  %0, %1, %2 = graph.layer_norm %x, %s, %b {axis = 2 : i64, epsilon = 1.0e-5 : f64} : "
     "(tensor<2x3x4xf64>, "
     "tensor<4xf64>, tensor<4xf64>) -> (tensor<2x3x4xf64>, tensor<2x3x1xf64>, tensor<2x3x1xf64>)\n"
     "  return %0 : tensor<2x3x4xf64>\n}"},
    {"layer_norm_statistics",
     "func.func @f(%x: tensor<3x5xf64>, %s: tensor<5xf64>) -> tensor<3x5xf64> {\n"
     "  %0, %1, %2 = graph.layer_norm %x, %s {axis = 1 : i64, epsilon = 1.0e-5 : f64} : (tensor<3x5xf64>, "
     "tensor<5xf64>) -> (tensor<3x5xf64>, tensor<3x1xf64>, tensor<3x1xf64>)\n"
     "  return %0 : tensor<3x5xf64>\n}",
     -2, 2, 3},
    {"layer_norm_two_axes",
     "func.func @f(%x: tensor<2x3x4xf64>, %s: tensor<3x4xf64>) -> tensor<2x3x4xf64> {\n"
     "  %0, %1, %2 = graph.layer_norm %x, %s {axis = 1 : i64, epsilon = 1.0e-5 : f64} : (tensor<2x3x4xf64>, "
     "tensor<3x4xf64>) -> (tensor<2x3x4xf64>, tensor<2x1x1xf64>, tensor<2x1x1xf64>)\n"
     "  return %0 : tensor<2x3x4xf64>\n}"},
    {"nll", "func.func @f(%x: tensor<4x5xf64>) -> tensor<4xf64> {\n"
            "  %y = graph.constant dense<[2, -100, 0, 4]> : tensor<4xi64>\n"
            "  %0, %1 = graph.nll %x, %y {ignore_index = -100 : i64} : (tensor<4x5xf64>, tensor<4xi64>) -> "
            "(tensor<4xf64>, tensor<4xf64>)\n"
            "  return %0 : tensor<4xf64>\n}"},
};

std::string caseName(const testing::TestParamInfo<Case> &info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Elementwise, Gradients, testing::ValuesIn(elementwise), caseName);
INSTANTIATE_TEST_SUITE_P(Shapes, Gradients, testing::ValuesIn(shapes), caseName);
INSTANTIATE_TEST_SUITE_P(Composites, Gradients, testing::ValuesIn(composites), caseName);

} // namespace
