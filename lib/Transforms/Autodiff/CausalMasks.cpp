//===- CausalMasks.cpp - masks that are counted, not stored ---------------===//

#include "CausalMasks.h"

#include "dsopt/Dialect/Graph/Graph.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;
using namespace dsopt;

namespace {
/// A number of each element that grows with its places: `steps` times them, and `base`.
struct Line {
  SmallVector<double> steps; ///< by dimension of the value
  double base = 0;

  bool isConstant() const {
    return llvm::all_of(steps, [](double step) { return step == 0; });
  }
};
/// One of two numbers for each element: the first where the line is 0 or less.
struct Choice {
  Line line;
  double low = 0, high = 0;
};
/// What is known of a value; neither: nothing.
struct Known {
  std::optional<Line> line;
  std::optional<Choice> choice;
};
} // namespace

static ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

/// The line as a larger shape has it, to whose last dimensions it broadcasts.
static Line broadcast(Line line, size_t rank) {
  line.steps.insert(line.steps.begin(), rank - line.steps.size(), 0);
  return line;
}

/// The line under another shape that differs by dimensions of one element.
static std::optional<Line> reshaped(const Line &line, ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  Line result{SmallVector<double>(to.size(), 0), line.base};
  size_t at = 0;
  for (auto [dim, size] : llvm::enumerate(to)) {
    if (size == 1)
      continue;
    while (at < from.size() && from[at] == 1)
      ++at;
    if (at == from.size() || from[at] != size)
      return line.isConstant() ? std::optional(result) : std::nullopt;
    result.steps[dim] = line.steps[at++];
  }
  return result;
}

/// Constants of one number, and rows of numbers that are equally far apart.
static Known ofConstant(graph::ConstantOp op) {
  auto elements = dyn_cast<DenseElementsAttr>(op.getValue());
  ArrayRef<int64_t> shape = shapeOf(op);
  if (!elements || elements.getNumElements() == 0)
    return {};
  auto numberOf = [](Attribute value) {
    if (auto number = dyn_cast<FloatAttr>(value))
      return number.getValueAsDouble();
    APInt integer = cast<IntegerAttr>(value).getValue();
    return integer.getBitWidth() == 1 ? double(integer.getZExtValue()) : double(integer.getSExtValue());
  };
  auto values = elements.getValues<Attribute>();
  Line line{SmallVector<double>(shape.size(), 0), numberOf(*values.begin())};
  if (elements.isSplat() || elements.getNumElements() == 1)
    return {line, {}};
  const auto *dim = llvm::find_if(shape, [](int64_t size) { return size > 1; });
  if (llvm::count_if(shape, [](int64_t size) { return size > 1; }) > 1)
    return {};
  double step = numberOf(*std::next(values.begin())) - line.base, expected = line.base;
  for (Attribute value : values) {
    if (numberOf(value) != expected)
      return {};
    expected += step;
  }
  line.steps[dim - shape.begin()] = step;
  return {line, {}};
}

namespace {
/// Follows the operations that make a value, each once.
class Finder {
public:
  const Known &find(Value value) {
    auto found = known.find(value);
    if (found != known.end())
      return found->second;
    Known made = read(value);
    return known.try_emplace(value, std::move(made)).first->second;
  }

private:
  Known read(Value value);
  Known sum(Operation *op, double factor);
  Known product(Operation *op);
  Known compare(Value result, Value lhs, Value rhs, bool isStrict);
  Known choose(graph::WhereOp op);
  Known moved(Value input, llvm::function_ref<std::optional<Line>(const Line &)> through);

  llvm::DenseMap<Value, Known> known;
};
} // namespace

/// lhs + factor * rhs, of lines, or of a choice and a number.
Known Finder::sum(Operation *op, double factor) {
  Known lhs = find(op->getOperand(0)), rhs = find(op->getOperand(1));
  size_t rank = shapeOf(op->getResult(0)).size();
  auto add = [&](Line one, Line other) {
    one = broadcast(one, rank);
    other = broadcast(other, rank);
    for (auto [step, more] : llvm::zip_equal(one.steps, other.steps))
      step += factor * more;
    one.base += factor * other.base;
    return one;
  };
  if (lhs.line && rhs.line)
    return {add(*lhs.line, *rhs.line), {}};
  if (lhs.choice && rhs.line && rhs.line->isConstant()) {
    double more = factor * rhs.line->base;
    return {{}, Choice{broadcast(lhs.choice->line, rank), lhs.choice->low + more, lhs.choice->high + more}};
  }
  if (rhs.choice && lhs.line && lhs.line->isConstant())
    return {{},
            Choice{broadcast(rhs.choice->line, rank), lhs.line->base + factor * rhs.choice->low,
                   lhs.line->base + factor * rhs.choice->high}};
  return {};
}

Known Finder::product(Operation *op) {
  Known lhs = find(op->getOperand(0)), rhs = find(op->getOperand(1));
  if (lhs.line && lhs.line->isConstant())
    std::swap(lhs, rhs);
  if (!rhs.line || !rhs.line->isConstant())
    return {};
  double factor = rhs.line->base;
  size_t rank = shapeOf(op->getResult(0)).size();
  if (lhs.choice)
    return {{},
            Choice{broadcast(lhs.choice->line, rank), lhs.choice->low * factor, lhs.choice->high * factor}};
  if (!lhs.line)
    return {};
  Line line = broadcast(*lhs.line, rank);
  for (double &step : line.steps)
    step *= factor;
  line.base *= factor;
  return {line, {}};
}

/// Whether lhs <= rhs, or lhs < rhs: of whole numbers both are one.
Known Finder::compare(Value result, Value lhs, Value rhs, bool isStrict) {
  Known one = find(lhs), other = find(rhs);
  if (!one.line || !other.line)
    return {};
  size_t rank = shapeOf(result).size();
  Line line = broadcast(*one.line, rank), behind = broadcast(*other.line, rank);
  for (auto [step, more] : llvm::zip_equal(line.steps, behind.steps))
    step -= more;
  line.base += (isStrict ? 1 : 0) - behind.base;
  auto isWhole = [](double number) { return number == std::floor(number); };
  if (!isWhole(line.base) || !llvm::all_of(line.steps, isWhole))
    return {};
  return {{}, Choice{line, 1, 0}};
}

Known Finder::choose(graph::WhereOp op) {
  Known condition = find(op.getCondition()), lhs = find(op.getLhs()), rhs = find(op.getRhs());
  auto number = [](const Known &known) {
    return known.line && known.line->isConstant() ? std::optional(known.line->base) : std::nullopt;
  };
  std::optional<double> yes = number(lhs), no = number(rhs);
  if (!condition.choice || !yes || !no)
    return {};
  const Choice &made = *condition.choice;
  return {{},
          Choice{broadcast(made.line, shapeOf(op).size()), made.low != 0 ? *yes : *no,
                 made.high != 0 ? *yes : *no}};
}

/// The same elements in other places: `through` says where a line's are.
Known Finder::moved(Value input, llvm::function_ref<std::optional<Line>(const Line &)> through) {
  Known known = find(input);
  std::optional<Line> line = known.line     ? through(*known.line)
                             : known.choice ? through(known.choice->line)
                                            : std::nullopt;
  if (!line)
    return {};
  return known.line ? Known{line, {}} : Known{{}, Choice{*line, known.choice->low, known.choice->high}};
}

Known Finder::read(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return {};
  size_t rank = shapeOf(value).size();
  return llvm::TypeSwitch<Operation *, Known>(op)
      .Case<graph::ConstantOp>([](graph::ConstantOp op) { return ofConstant(op); })
      .Case<graph::IotaOp>([&](graph::IotaOp iota) {
        Line line{SmallVector<double>(rank, 0), 0};
        line.steps[iota.getAxis()] = 1;
        return Known{line, {}};
      })
      .Case<graph::AddOp>([&](Operation *op) { return sum(op, 1); })
      .Case<graph::SubOp>([&](Operation *op) { return sum(op, -1); })
      .Case<graph::MulOp>([&](Operation *op) { return product(op); })
      .Case<graph::LessEqualOp>([&](auto op) { return compare(value, op.getLhs(), op.getRhs(), false); })
      .Case<graph::LessOp>([&](auto op) { return compare(value, op.getLhs(), op.getRhs(), true); })
      .Case<graph::GreaterEqualOp>([&](auto op) { return compare(value, op.getRhs(), op.getLhs(), false); })
      .Case<graph::GreaterOp>([&](auto op) { return compare(value, op.getRhs(), op.getLhs(), true); })
      .Case<graph::NotOp>([&](graph::NotOp op) {
        Known known = find(op.getInput());
        if (known.choice)
          known.choice =
              Choice{known.choice->line, double(known.choice->low == 0), double(known.choice->high == 0)};
        known.line.reset();
        return known;
      })
      .Case<graph::CastOp>([&](graph::CastOp op) {
        Known known = find(op.getInput());
        if (known.choice && getElementTypeOrSelf(op.getType()).isInteger(1))
          known.choice =
              Choice{known.choice->line, double(known.choice->low != 0), double(known.choice->high != 0)};
        return known;
      })
      .Case<graph::WhereOp>([&](graph::WhereOp op) { return choose(op); })
      .Case<graph::ReshapeOp>([&](graph::ReshapeOp op) {
        return moved(op.getInput(),
                     [&](const Line &line) { return reshaped(line, shapeOf(op.getInput()), shapeOf(op)); });
      })
      .Case<graph::ExpandOp>([&](graph::ExpandOp op) {
        return moved(op.getInput(), [&](const Line &line) { return std::optional(broadcast(line, rank)); });
      })
      .Case<graph::TransposeOp>([&](graph::TransposeOp op) {
        return moved(op.getInput(), [&](const Line &line) {
          Line result{{}, line.base};
          for (int64_t dim : op.getPerm())
            result.steps.push_back(line.steps[dim]);
          return std::optional(result);
        });
      })
      .Case<graph::SliceOp>([&](graph::SliceOp op) {
        return moved(op.getInput(), [&](const Line &line) {
          Line result = line;
          for (auto [dim, step] : llvm::enumerate(result.steps)) {
            result.base += step * op.getStarts()[dim];
            step *= op.getSteps()[dim];
          }
          return std::optional(result);
        });
      })
      .Default([](Operation *) { return Known(); });
}

std::optional<CausalMask> dsopt::findCausalMask(Value mask, int64_t rows, int64_t columns) {
  ArrayRef<int64_t> shape = shapeOf(mask);
  if (shape.size() < 2 || shape.take_back(2) != ArrayRef<int64_t>({rows, columns}))
    return std::nullopt;
  std::optional<Choice> choice = Finder().find(mask).choice;
  if (!choice)
    return std::nullopt;
  ArrayRef<double> steps = choice->line.steps;
  size_t last = steps.size() - 1;
  if (llvm::any_of(steps.drop_back(2), [](double step) { return step != 0; }))
    return std::nullopt;
  double base = choice->line.base;
  // column - row <= shift is read, or row - column <= -shift - 1 is not.
  if (steps[last] == 1 && steps[last - 1] == -1)
    return CausalMask{int64_t(-base), choice->low, choice->high};
  if (steps[last] == -1 && steps[last - 1] == 1)
    return CausalMask{int64_t(base) - 1, choice->high, choice->low};
  return std::nullopt;
}
