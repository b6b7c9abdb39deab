//===- CheckGradients.cpp - a model's gradients against differences -------===//

#include "CheckGradients.h"

#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Interfaces/Interfaces.h"
#include "dsopt/Pipeline/Pipelines.h"

#include <cmath>
#include <random>

using namespace mlir;

namespace dsopt {

/// Elements of an input that are compared at most.
static constexpr int64_t kMostElements = 12;
static constexpr double kStep = 1e-5, kTolerance = 1e-5;

namespace {
using Values = llvm::DenseMap<Value, Attribute>;

class Checker {
public:
  Checker(ModuleOp module, func::FuncOp forward, const std::map<std::string, std::vector<char>> &inputs)
      : module(module), forward(forward), inputs(inputs), body(forward.front()) {}

  FailureOr<GradientCounts> run();

private:
  void widen();
  LogicalResult bindInputs();
  LogicalResult buildGradients();
  FailureOr<double> weighedSum(const Values &given);
  LogicalResult evaluate(Values &values, Operation *last);
  LogicalResult compare(unsigned argument, const std::vector<double> &gradient, GradientCounts &counts);

  ModuleOp module;
  func::FuncOp forward;
  const std::map<std::string, std::vector<char>> &inputs;
  Block &body;
  Values given;
  /// Of the inputs, null where nothing depends on one.
  SmallVector<Value> gradients;
  /// The outputs and the weights of their elements, arguments of the function.
  SmallVector<std::pair<Value, Value>> outputs;
  Operation *lastForward = nullptr;
};
} // namespace

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }
static bool isFloat(Value value) { return isa<FloatType>(typeOf(value).getElementType()); }

static std::vector<double> numbersOf(Attribute constant) {
  std::vector<double> numbers;
  for (APFloat number : cast<DenseElementsAttr>(constant).getValues<APFloat>())
    numbers.push_back(number.convertToDouble());
  return numbers;
}

static DenseElementsAttr wide(DenseElementsAttr narrow) {
  auto type = RankedTensorType::get(narrow.getType().getShape(), Float64Type::get(narrow.getContext()));
  if (narrow.isSplat() && narrow.getNumElements() > 0)
    return DenseElementsAttr::get(type, (double)narrow.getSplatValue<float>());
  std::vector<double> numbers(narrow.value_begin<float>(), narrow.value_end<float>());
  return DenseElementsAttr::get(type, ArrayRef(numbers));
}

/// Every float of 32 bits becomes one of 64.
void Checker::widen() {
  auto widened = [&](Type type) -> Type {
    auto tensor = cast<RankedTensorType>(type);
    return tensor.getElementType().isF32() ? tensor.clone(Float64Type::get(type.getContext())) : tensor;
  };
  for (BlockArgument argument : body.getArguments())
    argument.setType(widened(argument.getType()));
  for (Operation &op : body) {
    if (auto constant = dyn_cast<graph::ConstantOp>(op))
      if (auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
          dense && dense.getElementType().isF32())
        constant.setValueAttr(wide(dense));
    if (auto value = op.getAttrOfType<FloatAttr>("value"))
      op.setAttr("value", FloatAttr::get(Float64Type::get(op.getContext()), value.getValueAsDouble()));
    for (OpResult result : op.getResults())
      result.setType(widened(result.getType()));
  }
  forward.setType(FunctionType::get(module.getContext(), body.getArgumentTypes(),
                                    body.getTerminator()->getOperandTypes()));
}

LogicalResult Checker::bindInputs() {
  for (BlockArgument argument : body.getArguments()) {
    auto name = forward.getArgAttrOfType<StringAttr>(argument.getArgNumber(), graph::kNameAttr);
    auto found = inputs.find(name.str());
    RankedTensorType type = typeOf(argument);
    int64_t width = isFloat(argument) ? sizeof(float) : graph::elementBytes(type.getElementType());
    if (found == inputs.end() || (int64_t)found->second.size() != type.getNumElements() * width)
      return module.emitError("has no bytes for input ") << name << " of " << type;
    ArrayRef<char> bytes(found->second);
    if (isFloat(argument)) {
      ArrayRef<float> numbers(reinterpret_cast<const float *>(bytes.data()), type.getNumElements());
      std::vector<double> doubles(numbers.begin(), numbers.end());
      given[argument] = DenseElementsAttr::get(type, ArrayRef(doubles));
    } else if (type.getElementType().isInteger(1)) {
      SmallVector<bool> bits(bytes.begin(), bytes.end());
      given[argument] = DenseElementsAttr::get(type, bits);
    } else {
      given[argument] = DenseElementsAttr::getFromRawBuffer(type, bytes);
    }
  }
  return success();
}

/// Reverse mode over the function, which returns the gradients of its inputs then.
LogicalResult Checker::buildGradients() {
  Operation *terminator = body.getTerminator();
  lastForward = terminator->getPrevNode();
  llvm::DenseSet<Value> active;
  unsigned inputCount = body.getNumArguments();
  for (BlockArgument argument : body.getArguments())
    if (isFloat(argument))
      active.insert(argument);
  SmallVector<Operation *> ops;
  for (Operation &op : body.without_terminator()) {
    ops.push_back(&op);
    if (llvm::any_of(op.getOperands(), [&](Value operand) { return active.contains(operand); }))
      for (Value result : op.getResults())
        if (isFloat(result))
          active.insert(result);
  }
  OpBuilder builder(terminator);
  llvm::DenseMap<Value, Value> gradientOf;
  auto add = [&](Value value, Value gradient) {
    Value &sum = gradientOf[value];
    sum = sum ? graph::AddOp::create(builder, module.getLoc(), sum, gradient).getResult() : gradient;
  };
  std::mt19937 engine(11);
  std::uniform_real_distribution<double> uniform(0.5, 1.5);
  for (Value output : llvm::to_vector(terminator->getOperands())) {
    if (!isFloat(output) || !active.contains(output))
      continue;
    Value weight = body.addArgument(output.getType(), module.getLoc());
    std::vector<double> numbers(typeOf(output).getNumElements());
    for (double &number : numbers)
      number = uniform(engine);
    given[weight] = DenseElementsAttr::get(typeOf(output), ArrayRef(numbers));
    outputs.push_back({output, weight});
    add(output, weight);
  }
  for (Operation *op : llvm::reverse(ops)) {
    SmallVector<Value> resultGrads, operandGrads(op->getNumOperands());
    SmallVector<bool> needed;
    for (Value result : op->getResults())
      resultGrads.push_back(gradientOf.lookup(result));
    for (Value operand : op->getOperands())
      needed.push_back(active.contains(operand));
    if (!llvm::is_contained(needed, true) || llvm::all_of(resultGrads, [](Value v) { return !v; }))
      continue;
    auto differentiable = dyn_cast<DifferentiableOpInterface>(op);
    if (!differentiable)
      return module.emitError("has no gradient: ") << op->getName();
    if (failed(differentiable.buildGradient(builder, resultGrads, needed, operandGrads)))
      return failure();
    for (auto [operand, gradient, wanted] : llvm::zip(op->getOperands(), operandGrads, needed))
      if (wanted && gradient)
        add(operand, gradient);
  }
  SmallVector<Value> returned;
  for (unsigned i = 0; i < inputCount; ++i) {
    gradients.push_back(gradientOf.lookup(body.getArgument(i)));
    if (gradients.back())
      returned.push_back(gradients.back());
  }
  llvm::append_range(returned, llvm::make_first_range(outputs));
  terminator->setOperands(returned);
  forward.setAllArgAttrs(ArrayAttr());
  forward.setAllResultAttrs(ArrayAttr());
  forward.setType(
      FunctionType::get(module.getContext(), body.getArgumentTypes(), ValueRange(returned).getTypes()));
  return success();
}

/// Folds the operations up to one, each with its operands' constants.
LogicalResult Checker::evaluate(Values &values, Operation *last) {
  for (Operation &op : body.without_terminator()) {
    SmallVector<Attribute> operands;
    for (Value operand : op.getOperands())
      operands.push_back(values.lookup(operand));
    // A folder may change its operation: it gets a copy without a history.
    OpBuilder builder(op.getContext());
    Operation *copy = op.clone();
    SmallVector<Value> constants;
    for (auto [operand, attribute] : llvm::zip(copy->getOpOperands(), operands)) {
      auto constant = graph::ConstantOp::create(builder, op.getLoc(), cast<ElementsAttr>(attribute));
      operand.set(constant);
      constants.push_back(constant);
    }
    SmallVector<OpFoldResult> results;
    bool folded = succeeded(copy->fold(operands, results)) && results.size() == op.getNumResults();
    for (auto [value, result] : llvm::zip(op.getResults(), results))
      values[value] = isa<Attribute>(result)
                          ? cast<Attribute>(result)
                          : cast<Value>(result).getDefiningOp<graph::ConstantOp>().getValueAttr();
    copy->destroy();
    for (Value constant : constants)
      constant.getDefiningOp()->destroy();
    if (!folded)
      return module.emitError("cannot be folded: ") << op.getName();
    if (&op == last)
      break;
  }
  return success();
}

FailureOr<double> Checker::weighedSum(const Values &inputs) {
  Values values = inputs;
  if (failed(evaluate(values, lastForward)))
    return failure();
  double sum = 0;
  for (auto [output, weight] : outputs)
    for (auto [x, w] : llvm::zip(numbersOf(values.lookup(output)), numbersOf(values.lookup(weight))))
      sum += x * w;
  return sum;
}

LogicalResult Checker::compare(unsigned argument, const std::vector<double> &gradient,
                               GradientCounts &counts) {
  Value input = body.getArgument(argument);
  std::vector<double> numbers = numbersOf(given.lookup(input));
  FailureOr<double> middle = weighedSum(given);
  if (failed(middle))
    return failure();
  int64_t count = numbers.size(), step = std::max<int64_t>(1, count / kMostElements);
  for (int64_t i = 0; i < count; i += step) {
    auto beside = [&](double delta) {
      Values nearby = given;
      std::vector<double> moved = numbers;
      moved[i] += delta;
      nearby[input] = DenseElementsAttr::get(typeOf(input), ArrayRef(moved));
      return weighedSum(nearby);
    };
    auto above = beside(kStep), below = beside(-kStep);
    if (failed(above) || failed(below))
      return failure();
    double right = (*above - *middle) / kStep, left = (*middle - *below) / kStep, slope = (left + right) / 2;
    double scale = 1 + std::abs(slope);
    // Curvature makes the two sides, and half a step, differ by a little, a kink or a jump by much.
    auto near = beside(kStep / 2);
    if (failed(near))
      return failure();
    double half = (*near - *middle) / (kStep / 2);
    if (!std::isfinite(slope) || std::abs(right - left) > 1e-2 * scale ||
        std::abs(right - half) > 1e-2 * scale) {
      ++counts.kinks;
      continue;
    }
    if (!(std::abs(gradient[i] - slope) <= kTolerance * scale))
      return module.emitError("has gradient ") << std::to_string(gradient[i]) << " of input " << argument
                                               << " element " << i << ", expected " << std::to_string(slope);
    ++counts.compared;
  }
  return success();
}

FailureOr<GradientCounts> Checker::run() {
  widen();
  GradientCounts counts;
  if (failed(bindInputs()) || failed(buildGradients()))
    return failure();
  Values values = given;
  if (failed(evaluate(values, nullptr)))
    return failure();
  for (auto [argument, gradient] : llvm::enumerate(gradients)) {
    if (!gradient)
      continue;
    if (gradient.getType() != body.getArgument(argument).getType())
      return module.emitError("has a gradient of type ") << gradient.getType() << " for input " << argument;
    if (failed(compare(argument, numbersOf(values.lookup(gradient)), counts)))
      return failure();
  }
  return counts;
}

FailureOr<GradientCounts> checkGradients(ModuleOp module,
                                         const std::map<std::string, std::vector<char>> &inputs) {
  auto forward = module.lookupSymbol<func::FuncOp>(graph::kForwardFunction);
  return Checker(module, forward, inputs).run();
}

} // namespace dsopt
