//===- Branches.cpp - which values a step reaches --------------------------===//

#include "Branches.h"

using namespace mlir;
using namespace dsopt;

/// The one element that a condition is made of.
static Value scalarOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<graph::ReshapeOp, graph::ExpandOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

Branches::Branches(func::FuncOp function, function_ref<bool(OpOperand &)> passes)
    : nodes{{~0u, kNever, kNever}, {~0u, kAlways, kAlways}} {
  Operation *terminator = function.front().getTerminator();
  for (auto where : function.getOps<graph::WhereOp>())
    if (where.getBranch())
      conditionOf(where);
  if (!any())
    return;
  for (Operation &op : llvm::reverse(function.front().without_terminator())) {
    Condition all = kNever;
    for (OpOperand &use : op.getUses()) {
      Operation *user = use.getOwner();
      Condition condition = user == terminator ? (use.getOperandNumber() == 0 ? kAlways : kNever)
                            : passes(use)      ? reaches(user)
                                               : kNever;
      auto where = dyn_cast<graph::WhereOp>(user);
      if (where && where.getBranch() && use.getOperandNumber() > 0) {
        Condition taken = conditionOf(where);
        condition =
            use.getOperandNumber() == 1 ? choose(taken, condition, kNever) : choose(taken, kNever, condition);
      }
      all = either(all, condition);
    }
    reached[&op] = all;
  }
}

Branches::Condition Branches::conditionOf(graph::WhereOp where) {
  Value value = scalarOf(where.getCondition());
  bool negated = false;
  while (auto negation = value.getDefiningOp<graph::NotOp>()) {
    value = scalarOf(negation.getInput());
    negated = !negated;
  }
  auto found = llvm::find(variables, value);
  unsigned variable = found - variables.begin();
  if (found == variables.end())
    variables.push_back(value);
  return negated ? node(variable, kNever, kAlways) : node(variable, kAlways, kNever);
}

Branches::Condition Branches::node(unsigned variable, Condition high, Condition low) {
  if (high == low)
    return high;
  auto [place, isNew] = known.try_emplace({variable, high, low}, nodes.size());
  if (isNew)
    nodes.push_back({variable, high, low});
  return place->second;
}

Branches::Condition Branches::choose(Condition a, Condition b, Condition c) {
  if (a == kAlways || b == c)
    return b;
  if (a == kNever)
    return c;
  if (b == kAlways && c == kNever)
    return a;
  if (auto found = chosen.find({a, b, c}); found != chosen.end())
    return found->second;
  unsigned first = std::min({nodes[a].variable, nodes[b].variable, nodes[c].variable});
  auto part = [&](Condition of, bool holds) {
    const Node &one = nodes[of];
    return one.variable != first ? of : holds ? one.high : one.low;
  };
  Condition high = choose(part(a, true), part(b, true), part(c, true));
  Condition low = choose(part(a, false), part(b, false), part(c, false));
  return chosen[{a, b, c}] = node(first, high, low);
}

Value Branches::build(OpBuilder &builder, Location loc, Condition condition) const {
  llvm::DenseMap<Condition, Value> built;
  auto constant = [&](bool holds) -> Value {
    auto type = RankedTensorType::get({}, builder.getI1Type());
    return graph::ConstantOp::create(builder, loc, cast<ElementsAttr>(DenseElementsAttr::get(type, holds)));
  };
  auto make = [&](auto &&self, Condition at) -> Value {
    if (at == kNever || at == kAlways)
      return constant(at == kAlways);
    if (Value known = built.lookup(at))
      return known;
    const Node &one = nodes[at];
    Value decides = variables[one.variable];
    auto type = cast<RankedTensorType>(decides.getType());
    if (type.getRank() != 0)
      decides =
          graph::ReshapeOp::create(builder, loc, RankedTensorType::get({}, type.getElementType()), decides);
    Value value;
    if (one.low == kNever && one.high == kAlways)
      value = decides;
    else if (one.low == kAlways && one.high == kNever)
      value = graph::NotOp::create(builder, loc, decides);
    else if (one.low == kNever)
      value = graph::AndOp::create(builder, loc, decides, self(self, one.high));
    else if (one.high == kAlways)
      value = graph::OrOp::create(builder, loc, decides, self(self, one.low));
    else if (one.high == kNever)
      value = graph::AndOp::create(builder, loc, graph::NotOp::create(builder, loc, decides),
                                   self(self, one.low));
    else
      value =
          graph::OrOp::create(builder, loc, graph::AndOp::create(builder, loc, decides, self(self, one.high)),
                              graph::AndOp::create(builder, loc, graph::NotOp::create(builder, loc, decides),
                                                   self(self, one.low)));
    return built[at] = value;
  };
  return make(make, condition);
}
