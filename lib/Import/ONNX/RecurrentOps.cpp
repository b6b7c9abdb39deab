//===- RecurrentOps.cpp - RNN, GRU and LSTM, step by step ------------------===//
//
// The input's product with its weight is one for all steps; what depends on the
// state before is unrolled. Steps behind a sequence's own length keep the state
// and give zeros.
//
//===----------------------------------------------------------------------===//

#include "OpTable.h"

using namespace mlir;

namespace dsopt::onnx_import {

/// Steps that are unrolled at most.
static constexpr int64_t kMaxSteps = 4096;

namespace {
enum class Cell { RNN, GRU, LSTM };

class Recurrence {
public:
  Recurrence(NodeBuilder &n, Cell cell) : n(n), e(n.e), cell(cell) {}
  LogicalResult run();

private:
  LogicalResult readShapes();
  Value activate(int64_t direction, int64_t which, Value x);
  LogicalResult runDirection(int64_t direction, bool backwards, std::vector<Value> &outputs);
  LogicalResult step(int64_t direction, Value gates, Value &hidden, Value &state);
  Value ofDirection(Value operand, int64_t direction);
  Value gate(Value gates, int64_t index) { return e.slice(gates, 1, index * size, size); }
  Value zeros() { return e.splat(element, 0, {batch, size}); }
  int64_t gateCount() const { return cell == Cell::RNN ? 1 : cell == Cell::GRU ? 3 : 4; }

  NodeBuilder &n;
  Emitter &e;
  Cell cell;
  Type element;
  Value x, lengths; ///< [steps, batch, inputs], i64 [batch]
  int64_t steps = 0, batch = 0, inputs = 0, size = 0, directions = 1;
  bool batchFirst = false, beforeReset = false;
  /// Of one direction.
  Value weight, recurrent, bias, recurrentBias, peepholes;
  std::vector<Value> lastHidden, lastState;
};
} // namespace

LogicalResult Recurrence::readShapes() {
  x = n.input(0);
  Value w = n.input(1), r = n.input(2);
  if (!x || !w || !r)
    return failure();
  element = Emitter::elementOf(x);
  batchFirst = n.opset >= 14 && n.integerAttr("layout", 0) != 0;
  if (Emitter::rankOf(x) != 3 || Emitter::rankOf(w) != 3 || Emitter::rankOf(r) != 3)
    return n.error() << "has an input of type " << Emitter::typeOf(x) << " and weights of types "
                     << Emitter::typeOf(w) << " and " << Emitter::typeOf(r) << ", expected rank 3";
  if (batchFirst)
    x = e.transpose(x, {1, 0, 2});
  ArrayRef<int64_t> shape = Emitter::shapeOf(x), recurrentShape = Emitter::shapeOf(r);
  steps = shape[0], batch = shape[1], inputs = shape[2], size = recurrentShape[2];
  StringRef direction = n.stringAttr("direction", "forward");
  if (!llvm::is_contained({"forward", "reverse", "bidirectional"}, direction))
    return n.error() << "has direction '" << direction << "', expected forward, reverse or bidirectional";
  directions = direction == "bidirectional" ? 2 : 1;
  SmallVector<int64_t> expectedW{directions, gateCount() * size, inputs},
      expectedR{directions, gateCount() * size, size};
  if (Emitter::shapeOf(w) != ArrayRef(expectedW) || recurrentShape != ArrayRef(expectedR) ||
      n.integerAttr("hidden_size", size) != size)
    return n.error() << "has weights of types " << Emitter::typeOf(w) << " and " << Emitter::typeOf(r)
                     << ", expected [" << expectedW << "] and [" << expectedR << "]";
  if (steps > kMaxSteps)
    return n.error() << "has " << steps << " steps, expected at most " << kMaxSteps;
  if (n.attribute("clip"))
    return n.error() << "clips its gates, which is not available";
  if (n.integerAttr("input_forget", 0))
    return n.error() << "couples input and forget gates, which is not available";
  beforeReset = n.integerAttr("linear_before_reset", 0) != 0;
  if (n.has(4)) {
    lengths = n.input(4);
    if (!lengths || Emitter::shapeOf(lengths) != ArrayRef(batch))
      return lengths ? n.error() << "has sequence_lens of type " << Emitter::typeOf(lengths) << ", expected "
                                 << batch << " integers"
                     : failure();
    lengths = e.reshape(e.convert(lengths, e.builder.getI64Type()), {batch, 1});
    // Sequences of full length need no selection.
    auto known = constantIntegers(lengths);
    if (known && llvm::all_of(*known, [&](int64_t length) { return length == steps; }))
      lengths = {};
  }
  return success();
}

/// One direction's part of an operand whose first dimension is the directions (the second, of states
/// in batch-first layout).
Value Recurrence::ofDirection(Value operand, int64_t direction) {
  if (!operand)
    return {};
  if (Emitter::rankOf(operand) == 0) {
    n.error() << "has an operand of type " << Emitter::typeOf(operand)
              << ", expected a part for each direction";
    return {};
  }
  SmallVector<int64_t> rest(Emitter::shapeOf(operand).drop_front());
  return e.reshape(e.slice(operand, 0, direction, 1), rest);
}

/// The direction's activation: of the gates, of what is new, of the output.
Value Recurrence::activate(int64_t direction, int64_t which, Value x) {
  SmallVector<StringRef> names = n.stringsAttr("activations");
  int64_t perDirection = cell == Cell::RNN ? 1 : cell == Cell::GRU ? 2 : 3;
  StringRef name = cell == Cell::RNN || which > 0 ? "Tanh" : "Sigmoid";
  if (!names.empty()) {
    if ((int64_t)names.size() != perDirection * directions) {
      n.error() << "has " << names.size() << " activations, expected " << perDirection * directions;
      return {};
    }
    name = names[direction * perDirection + which];
  }
  std::string lower = name.lower();
  if (lower == "tanh")
    return e.make<graph::TanhOp>(x);
  if (lower == "sigmoid")
    return e.make<graph::SigmoidOp>(x);
  if (lower == "relu")
    return e.make<graph::ReluOp>(x);
  n.error() << "has activation '" << name << "', expected Tanh, Sigmoid or Relu";
  return {};
}

/// The next state from the gates' part of the input and the state before.
LogicalResult Recurrence::step(int64_t direction, Value gates, Value &hidden, Value &state) {
  auto product = [&](Value lhs, Value rhs) {
    return e.make<graph::MatMulOp>({lhs, rhs}, e.flag("transpose_b"));
  };
  auto withBias = [&](Value value, Value own) { return own ? e.add(value, own) : value; };
  if (cell == Cell::RNN) {
    hidden = activate(direction, 0, e.add(gates, withBias(product(hidden, recurrent), recurrentBias)));
    return success(hidden != nullptr);
  }
  if (cell == Cell::GRU) {
    Value firstTwo = e.slice(recurrent, 0, 0, 2 * size), third = e.slice(recurrent, 0, 2 * size, size);
    Value biasTwo = recurrentBias ? e.slice(recurrentBias, 0, 0, 2 * size) : Value();
    Value biasThird = recurrentBias ? e.slice(recurrentBias, 0, 2 * size, size) : Value();
    Value both = e.add(e.slice(gates, 1, 0, 2 * size), withBias(product(hidden, firstTwo), biasTwo));
    both = activate(direction, 0, both);
    Value update = gate(both, 0), reset = gate(both, 1);
    Value inner = beforeReset ? e.mul(reset, withBias(product(hidden, third), biasThird))
                              : withBias(product(e.mul(reset, hidden), third), biasThird);
    Value fresh = activate(direction, 1, e.add(gate(gates, 2), inner));
    Value keep = e.mul(update, hidden), take = e.mul(e.sub(e.scalar(1, hidden), update), fresh);
    hidden = e.add(take, keep);
    return success(hidden != nullptr);
  }
  // Gates in the order input, output, forget, cell; peepholes likewise.
  Value all = e.add(gates, withBias(product(hidden, recurrent), recurrentBias));
  auto peep = [&](Value value, int64_t index, Value from) {
    return peepholes ? e.add(value, e.mul(e.slice(peepholes, 0, index * size, size), from)) : value;
  };
  Value in = activate(direction, 0, peep(gate(all, 0), 0, state));
  Value forget = activate(direction, 0, peep(gate(all, 2), 2, state));
  Value fresh = activate(direction, 1, gate(all, 3));
  state = e.add(e.mul(forget, state), e.mul(in, fresh));
  Value out = activate(direction, 0, peep(gate(all, 1), 1, state));
  hidden = e.mul(out, activate(direction, 2, state));
  return success(hidden != nullptr);
}

LogicalResult Recurrence::runDirection(int64_t direction, bool backwards, std::vector<Value> &outputs) {
  int64_t gates = gateCount() * size;
  weight = ofDirection(n.input(1), direction);
  recurrent = ofDirection(n.input(2), direction);
  bias = recurrentBias = peepholes = {};
  if (n.has(3)) {
    Value whole = ofDirection(n.input(3), direction);
    if (!whole || Emitter::shapeOf(whole) != ArrayRef(2 * gates))
      return n.error() << "has a bias that does not fit, expected " << 2 * gates << " numbers a direction";
    bias = e.slice(whole, 0, 0, gates);
    recurrentBias = e.slice(whole, 0, gates, gates);
  }
  if (cell == Cell::LSTM && n.has(7)) {
    peepholes = ofDirection(n.input(7), direction);
    if (!peepholes || Emitter::shapeOf(peepholes) != ArrayRef(3 * size))
      return n.error() << "has peepholes that do not fit, expected " << 3 * size << " numbers a direction";
  }
  auto initial = [&](int input) {
    if (!n.has(input))
      return zeros();
    Value given = n.input(input);
    if (given && batchFirst)
      given = e.transpose(given, {1, 0, 2});
    given = ofDirection(given, direction);
    if (given && Emitter::shapeOf(given) != ArrayRef({batch, size})) {
      n.error() << "has a state of type " << Emitter::typeOf(n.input(input)) << ", expected " << directions
                << " directions of " << batch << " times " << size << " numbers";
      return Value();
    }
    return given;
  };
  Value hidden = initial(5), state = cell == Cell::LSTM ? initial(6) : zeros();
  Value flat =
      e.make<graph::MatMulOp>({e.reshape(x, {steps * batch, inputs}), weight}, e.flag("transpose_b"));
  if (bias)
    flat = e.add(flat, bias);
  if (!flat || !hidden || !state)
    return failure();
  outputs.resize(steps);
  for (int64_t k = 0; k < steps; ++k) {
    int64_t t = backwards ? steps - 1 - k : k;
    Value oldHidden = hidden, oldState = state;
    if (failed(step(direction, e.slice(flat, 0, t * batch, batch), hidden, state)))
      return failure();
    outputs[t] = hidden;
    if (lengths) {
      Value runs = e.less(e.splat(e.builder.getI64Type(), t), lengths);
      outputs[t] = e.where(runs, hidden, e.scalar(0, hidden));
      hidden = e.where(runs, hidden, oldHidden);
      if (cell == Cell::LSTM)
        state = e.where(runs, state, oldState);
    }
  }
  lastHidden.push_back(hidden);
  lastState.push_back(state);
  return success();
}

LogicalResult Recurrence::run() {
  if (failed(readShapes()))
    return failure();
  bool reverse = n.stringAttr("direction", "forward") == "reverse";
  std::vector<std::vector<Value>> outputs(directions);
  for (int64_t direction = 0; direction < directions; ++direction)
    if (failed(runDirection(direction, reverse || direction == 1, outputs[direction])))
      return failure();
  // [steps, directions, batch, size]
  SmallVector<Value> all;
  for (int64_t t = 0; t < steps; ++t)
    for (int64_t direction = 0; direction < directions; ++direction)
      all.push_back(e.reshape(outputs[direction][t], {1, batch, size}));
  Value sequence = steps ? e.reshape(e.concat(all, 0), {steps, directions, batch, size})
                         : e.splat(element, 0, {0, directions, batch, size});
  auto last = [&](std::vector<Value> &values) {
    SmallVector<Value> parts;
    for (Value value : values)
      parts.push_back(e.reshape(value, {1, batch, size}));
    Value joined = e.concat(parts, 0);
    return batchFirst && joined ? e.transpose(joined, {1, 0, 2}) : joined;
  };
  if (batchFirst && sequence)
    sequence = e.transpose(sequence, {2, 0, 1, 3});
  if (failed(n.set(0, sequence)) || failed(n.set(1, last(lastHidden))))
    return failure();
  return cell == Cell::LSTM ? n.set(2, last(lastState)) : success();
}

template <Cell cell> static LogicalResult recurrent(NodeBuilder &n) { return Recurrence(n, cell).run(); }

ArrayRef<OpRow> recurrentOps() {
  static const OpRow rows[] = {
      {"GRU", 7, kMaxOpset, recurrent<Cell::GRU>},
      {"LSTM", 7, kMaxOpset, recurrent<Cell::LSTM>},
      {"RNN", 7, kMaxOpset, recurrent<Cell::RNN>},
  };
  return rows;
}

} // namespace dsopt::onnx_import
