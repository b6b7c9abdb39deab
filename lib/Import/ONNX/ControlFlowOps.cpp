//===- ControlFlowOps.cpp - branches, and loops of known length ------------===//
//
// Nothing of them is left after import: a branch is taken when its condition is known, both are
// computed and one is selected when it is not, and loops are unrolled.
//
//===----------------------------------------------------------------------===//

#include "BagOps.h"
#include "BoundInputs.h"
#include "OpTable.h"

using namespace mlir;

namespace dsopt::onnx_import {

/// A condition that is known.
static std::optional<bool> knownCondition(Value condition) {
  auto values = constantIntegers(condition);
  return values && values->size() == 1 ? std::optional<bool>(values->front() != 0) : std::nullopt;
}

/// A condition, which has one element; null with an error.
static Value conditionOf(NodeBuilder &n, const Binding &binding, StringRef name) {
  Value condition = n.read(binding, name);
  if (condition &&
      (!Emitter::elementOf(condition).isInteger(1) || Emitter::typeOf(condition).getNumElements() != 1)) {
    n.error() << "has a condition of type " << Emitter::typeOf(condition) << ", expected one bool";
    return {};
  }
  return n.e.reshape(condition, {});
}

static LogicalResult checkOutputs(NodeBuilder &n, const onnx::GraphProto &graph, StringRef name,
                                  int expected) {
  if (graph.output_size() == expected)
    return success();
  return n.error() << "has a graph '" << name << "' of " << graph.output_size() << " outputs, expected "
                   << expected;
}

//===----------------------------------------------------------------------===//
// If
//===----------------------------------------------------------------------===//

namespace {
/// While it lives, a branch reads what is around it with a gradient that is zero where the branch is not
/// taken: selected, since the derivative of what is not taken may be no number.
class Guards {
public:
  Guards(NodeBuilder &n, Value condition, bool taken) : n(n), condition(condition), taken(taken) {
    for (const std::string &name : n.captured()) {
      Binding &binding = n.outerBinding(name);
      before.push_back({name, binding});
      if (binding.parameter && binding.parameter.getFrozen())
        continue;
      if (binding.parameter)
        binding = {guarded(n.e.read(binding)), {}, {}, binding.narrow};
      else if (binding.value)
        binding.value = guarded(binding.value);
      else if (binding.sequence)
        for (Value &value : *binding.sequence)
          value = guarded(value);
    }
  }
  ~Guards() {
    for (auto &[name, binding] : llvm::reverse(before))
      n.outerBinding(name) = std::move(binding);
  }

private:
  Value guarded(Value value) {
    Emitter &e = n.e;
    if (!value || !isa<FloatType>(Emitter::elementOf(value)) || value.getDefiningOp<graph::ConstantOp>())
      return value;
    auto op = graph::CustomGradientOp::create(e.builder, e.location, value.getType(), value, value, condition,
                                              /*number=*/0);
    Block &block = op.getBackward().emplaceBlock();
    Emitter::Elsewhere elsewhere(e, block);
    Value isTrue = block.addArgument(condition.getType(), e.location);
    Value gradient = block.addArgument(value.getType(), e.location), zero = e.scalar(0, value);
    graph::YieldOp::create(e.builder, e.location,
                           taken ? e.where(isTrue, gradient, zero) : e.where(isTrue, zero, gradient));
    return op.getResult(0);
  }

  NodeBuilder &n;
  Value condition;
  bool taken;
  SmallVector<std::pair<std::string, Binding>> before;
};
} // namespace

namespace {
/// One of the two, which is checked when it is built.
struct Branch {
  StringRef name;
  const onnx::GraphProto *graph = nullptr;
  SmallVector<Binding> outputs = {};

  LogicalResult build(NodeBuilder &n) {
    graph = n.graph(name, 0);
    if (!graph || failed(checkOutputs(n, *graph, name, n.numOutputs())))
      return failure();
    FailureOr<SmallVector<Binding>> built = n.build(*graph, {});
    if (succeeded(built))
      outputs = std::move(*built);
    return success(succeeded(built));
  }
};
} // namespace

static LogicalResult branch(NodeBuilder &n) {
  FailureOr<Binding> given = n.binding(0);
  Value condition = failed(given) ? Value() : conditionOf(n, *given, "condition");
  if (!condition)
    return failure();
  Branch branches[] = {{"then_branch"}, {"else_branch"}};
  if (std::optional<bool> known = knownCondition(condition)) {
    Branch &taken = branches[*known ? 0 : 1];
    if (failed(taken.build(n)))
      return failure();
    for (auto [i, output] : llvm::enumerate(taken.outputs))
      n.bind(i, output);
    return success();
  }
  size_t statistics = n.e.statistics.size();
  if (failed(n.bindCaptured()))
    return failure();
  for (Branch &branch : branches) {
    Guards guards(n, condition, /*taken=*/&branch == branches);
    std::string problem;
    if (failed(withoutErrors(problem, n.e.location, [&] { return branch.build(n); })))
      return n.error()
             << "has a condition that depends on data, so that both of its branches are computed, and "
             << branch.name << " cannot be: " << problem << howToBind(condition, n.inputName(0));
  }
  if (n.e.statistics.size() != statistics)
    return n.error() << "has a condition that depends on data, and a batch normalization that trains in a "
                        "branch; both branches are computed, expected none with running statistics";
  for (int i = 0; i < n.numOutputs(); ++i) {
    if (!n.wants(i))
      continue;
    std::string name = branches[0].graph->output(i).name(), other = branches[1].graph->output(i).name();
    Value lhs = n.read(branches[0].outputs[i], name), rhs = n.read(branches[1].outputs[i], other);
    if (!lhs || !rhs)
      return failure();
    if (lhs.getType() != rhs.getType())
      return n.error() << "has a condition that depends on data, and branches that give '" << name
                       << "' of type " << Emitter::typeOf(lhs) << " and '" << other << "' of type "
                       << Emitter::typeOf(rhs)
                       << "; both are computed and one is selected, expected equal types"
                       << howToBind(condition, n.inputName(0));
    if (failed(n.set(i, n.e.where(condition, lhs, rhs))))
      return failure();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

/// The iterations' values as one tensor with a new dimension.
static Value stack(NodeBuilder &n, ArrayRef<Value> values, int64_t axis) {
  SmallVector<Value> parts;
  for (Value value : values) {
    if (value.getType() != values.front().getType()) {
      n.error() << "stacks values of types " << Emitter::typeOf(values.front()) << " and "
                << Emitter::typeOf(value) << ", expected equal types in all iterations";
      return {};
    }
    SmallVector<int64_t> shape(Emitter::shapeOf(value));
    shape.insert(shape.begin() + axis, 1);
    parts.push_back(n.e.reshape(value, shape));
  }
  return parts.size() == 1 ? parts.front() : n.e.concat(parts, axis);
}

namespace {
/// What iterations give, of which each output becomes one tensor.
struct Stacks {
  std::vector<SmallVector<Value>> values;

  LogicalResult add(NodeBuilder &n, const onnx::GraphProto &body, ArrayRef<Binding> outputs, int first) {
    values.resize(outputs.size() - first);
    for (auto [i, list] : llvm::enumerate(values)) {
      list.push_back(n.read(outputs[first + i], body.output(first + i).name()));
      if (!list.back())
        return failure();
    }
    return success();
  }
};
} // namespace

/// What the first iteration takes.
static LogicalResult initialValues(NodeBuilder &n, int first, int count, SmallVectorImpl<Binding> &carried) {
  for (int i = 0; i < count; ++i) {
    FailureOr<Binding> initial = n.binding(first + i);
    if (failed(initial))
      return failure();
    carried.push_back(std::move(*initial));
  }
  return success();
}

static LogicalResult loop(NodeBuilder &n) {
  int count = std::max(n.numInputs() - 2, 0);
  const onnx::GraphProto *body = n.graph("body", 2 + count);
  if (!body)
    return failure();
  if (body->output_size() < 1 + count)
    return n.error() << "has a body of " << body->output_size() << " outputs, expected a condition and "
                     << count << " values that it carries on";
  if (failed(checkOutputs(n, *body, "body", 1 + n.numOutputs())))
    return failure();
  FailureOr<bool> isBags = buildBags(n, *body);
  if (failed(isBags) || *isBags)
    return success(succeeded(isBags));
  std::optional<int64_t> most;
  if (n.has(0)) {
    FailureOr<int64_t> given = n.integer(0, "a trip count");
    if (failed(given))
      return failure();
    most = *given;
  }
  Emitter &e = n.e;
  Value condition = e.bools(true, {});
  if (n.has(1)) {
    FailureOr<Binding> given = n.binding(1);
    condition = failed(given) ? Value() : conditionOf(n, *given, "condition");
  }
  SmallVector<Binding> carried;
  if (!condition || failed(initialValues(n, 2, count, carried)))
    return failure();
  Stacks stacks;
  int64_t iteration = 0;
  for (; !most || iteration < *most; ++iteration) {
    std::optional<bool> goesOn = knownCondition(condition);
    if (!goesOn)
      return n.error() << "goes on after iteration " << iteration
                       << " by a condition that depends on data, expected one that is known: loops are "
                          "unrolled when the model is compiled"
                       << howToBind(condition,
                                    iteration ? StringRef(body->output(0).name()) : n.inputName(1));
    if (!*goesOn)
      break;
    SmallVector<Binding> inputs{{e.splat(e.builder.getI64Type(), iteration), {}, {}}, {condition, {}, {}}};
    inputs.append(carried);
    FailureOr<SmallVector<Binding>> outputs = n.build(*body, inputs);
    if (failed(outputs))
      return failure();
    condition = conditionOf(n, outputs->front(), body->output(0).name());
    carried.assign(outputs->begin() + 1, outputs->begin() + 1 + count);
    if (!condition || failed(stacks.add(n, *body, *outputs, 1 + count)))
      return failure();
  }
  if (iteration == 0 && body->output_size() > 1 + count)
    return n.error() << "has no iteration, but outputs that hold what iterations give, expected one or more";
  for (auto [i, binding] : llvm::enumerate(carried))
    n.bind(i, binding);
  for (auto [i, values] : llvm::enumerate(stacks.values))
    if (n.wants(count + i) && failed(n.set(count + i, stack(n, values, 0))))
      return failure();
  return success();
}

static LogicalResult scan(NodeBuilder &n) {
  int scanned = n.integerAttr("num_scan_inputs", 0), count = n.numInputs() - scanned;
  const onnx::GraphProto *body = n.graph("body", n.numInputs());
  if (!body)
    return failure();
  if (scanned < 1 || count < 0 || body->output_size() < count)
    return n.error() << "scans " << scanned << " of " << n.numInputs() << " inputs with a body of "
                     << body->output_size() << " outputs, expected one or more inputs to scan, and an output "
                     << "for each other";
  if (failed(checkOutputs(n, *body, "body", n.numOutputs())))
    return failure();
  size_t stacked = body->output_size() - count;
  auto axes = n.integersAttr("scan_input_axes", scanned, 0),
       reversed = n.integersAttr("scan_input_directions", scanned, 0),
       outputAxes = n.integersAttr("scan_output_axes", stacked, 0),
       outputReversed = n.integersAttr("scan_output_directions", stacked, 0);
  SmallVector<Binding> carried;
  if (failed(axes) || failed(reversed) || failed(outputAxes) || failed(outputReversed) ||
      failed(initialValues(n, 0, count, carried)))
    return failure();
  SmallVector<Value> sequences;
  int64_t length = -1;
  for (int i = 0; i < scanned; ++i) {
    Value value = n.input(count + i);
    FailureOr<int64_t> axis = value ? n.axis((*axes)[i], Emitter::rankOf(value)) : FailureOr<int64_t>();
    if (failed(axis))
      return failure();
    (*axes)[i] = *axis;
    int64_t own = Emitter::shapeOf(value)[*axis];
    if (own == 0 || (length >= 0 && own != length))
      return n.error() << "scans " << own << " elements of input " << count + i << " and "
                       << std::max<int64_t>(length, own)
                       << " of another, expected as many of each, and one or more";
    length = own;
    sequences.push_back(value);
  }
  Emitter &e = n.e;
  Stacks stacks;
  for (int64_t step = 0; step < length; ++step) {
    SmallVector<Binding> inputs = carried;
    for (auto [i, value] : llvm::enumerate(sequences)) {
      int64_t axis = (*axes)[i];
      SmallVector<int64_t> shape(Emitter::shapeOf(value));
      shape.erase(shape.begin() + axis);
      Value part = e.reshape(e.slice(value, axis, (*reversed)[i] ? length - 1 - step : step, 1), shape);
      if (!part)
        return failure();
      inputs.push_back({part, {}, {}});
    }
    FailureOr<SmallVector<Binding>> outputs = n.build(*body, inputs);
    if (failed(outputs))
      return failure();
    carried.assign(outputs->begin(), outputs->begin() + count);
    if (failed(stacks.add(n, *body, *outputs, count)))
      return failure();
  }
  for (auto [i, binding] : llvm::enumerate(carried))
    n.bind(i, binding);
  for (auto [i, values] : llvm::enumerate(stacks.values)) {
    if (!n.wants(count + i))
      continue;
    FailureOr<int64_t> axis = n.axis((*outputAxes)[i], Emitter::rankOf(values.front()) + 1);
    if (failed(axis))
      return failure();
    if ((*outputReversed)[i])
      std::reverse(values.begin(), values.end());
    if (failed(n.set(count + i, stack(n, values, *axis))))
      return failure();
  }
  return success();
}

ArrayRef<OpRow> controlFlowOps() {
  static const OpRow rows[] = {
      {"If", 1, kMaxOpset, branch},
      {"Loop", 1, kMaxOpset, loop},
      {"Scan", 9, kMaxOpset, scan},
  };
  return rows;
}

} // namespace dsopt::onnx_import
