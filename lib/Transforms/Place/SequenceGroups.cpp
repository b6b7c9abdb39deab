//===- SequenceGroups.cpp - how many ranks exchange heads -----------------===//
//
// What ranks of a sequence send for attention, and how long they wait for the one that reads most columns, in
// groups of each possible size.
//
//===----------------------------------------------------------------------===//

#include "SequenceWriter.h"
#include "dsopt/Interfaces/AssumedRates.h"
#include "dsopt/Interfaces/DeviceLimits.h"
#include "dsopt/Interfaces/Interfaces.h"
#include "dsopt/Interfaces/OverlapRemarks.h"
#include "dsopt/Interfaces/SequenceOps.h"
#include "dsopt/Interfaces/Target.h"

#include "mlir/IR/Remarks.h"

#include <cmath>
#include <utility>

using namespace mlir;
using namespace dsopt;

static constexpr double kPicoseconds = 1e12;

HeadGroups SequenceWriter::groupsOf(int64_t group) {
  // An axis that is not cut is named alone.
  auto along = [&](AxisPart::Part part) {
    SmallVector<AxisPart> parts;
    bool isWhole = part == AxisPart::Inner ? group == ranks : group == 1;
    if (part == AxisPart::Inner ? group > 1 : group < ranks)
      parts.push_back(isWhole ? AxisPart{axis} : AxisPart{axis, part, group});
    return dist::AxesAttr::get(builder.getContext(), parts);
  };
  return {group, group * mine, along(AxisPart::Inner), along(AxisPart::Outer)};
}

/// Forward and backward of an attention whose ranks exchange heads in groups. Rows and results, keys and
/// values change places there and back; keys and values go along the ring of groups, in backward again, and
/// so do the sums of their gradients, home in the end. Of causal rows those at the end read the columns of
/// all groups, the others wait.
GroupPrice SequenceWriter::priceOf(Operation *op, int64_t group, int64_t rows, int64_t columns,
                                   bool isCausal) const {
  double steps = double(ranks / group - 1), exchanged = 2.0 * (rows + columns) / ranks * (group - 1) / group,
         shown = 2.0 * columns / ranks * steps, added = steps ? columns / double(ranks) * (steps + 1) : 0;
  Type type = getElementTypeOrSelf(op->getOperand(0).getType());
  std::optional<DeviceLimits> device =
      deviceOf(forward->getParentOfType<ModuleOp>()->getAttrOfType<TargetAttr>(kTargetAttr));
  double links = device ? device->links : kAssumedBytesPerSecond,
         rate = device ? device->flopsPerSecond(type, /*isProduct=*/true) * kReachedOfLimit
                       : kAssumedFlopsPerThread;
  // Forward has two products of all rows and columns, backward five.
  double flops = isCausal ? 3.5 * cast<CostedOpInterface>(op).getFlops() / ranks * steps / (steps + 1) : 0;
  double bytes = (exchanged + shown) * type.getIntOrFloatBitWidth() / 8 + added * sizeof(float);
  return {group, std::llround(exchanged + shown + added), std::llround(bytes / links * kPicoseconds),
          std::llround(flops / rate * kPicoseconds)};
}

HeadGroups SequenceWriter::groupsFor(Operation *op, ArrayRef<Value> k, ArrayRef<Value> v) {
  auto typeOf = [](Value value) { return cast<RankedTensorType>(value.getType()); };
  auto elements = [](ArrayRef<Value> shards, int64_t all) {
    return graph::numElements(shards[0].getType()) * all;
  };
  int64_t heads = typeOf(op->getOperand(0)).getDimSize(1), few = typeOf(k[0]).getDimSize(1);
  int64_t rows =
      graph::numElements(op->getOperand(0).getType()) + graph::numElements(op->getResult(0).getType());
  int64_t columns = elements(k, shards) + elements(v, shards);
  bool isCausal = cast<SequenceOpInterface>(op).getSoftmax()->causal;
  SmallVector<GroupPrice> prices;
  for (int64_t group = ranks; group > 0; --group)
    if (ranks % group == 0 && heads % group == 0 && few % group == 0)
      prices.push_back(priceOf(op, group, rows, columns, isCausal));
  const GroupPrice *best = llvm::min_element(
      prices, [](const GroupPrice &one, const GroupPrice &other) { return one.time() < other.time(); });
  if (asked) {
    auto *wanted = llvm::find_if(prices, [&](const GroupPrice &one) { return one.group == *asked; });
    if (wanted == prices.end() && !std::exchange(hasWarned, true))
      op->emitWarning("has ") << heads << " heads and " << few << " of keys and values, which groups of "
                              << *asked << " ranks do not divide: they are groups of " << best->group
                              << ", whatever -sp-method=ulysses asks for";
    else if (wanted != prices.end())
      best = wanted;
  }
  if (ranks > 1) {
    auto *known = llvm::find_if(
        choices, [&](const GroupChoice &one) { return one.group == best->group && one.prices == prices; });
    if (known == choices.end())
      known = &choices.emplace_back(GroupChoice{op->getLoc(), best->group, 0, prices});
    ++known->attentions;
  }
  return groupsOf(best->group);
}

void SequenceWriter::keepChoices() {
  SmallVector<Attribute> all;
  for (const GroupChoice &choice : choices) {
    SmallVector<int64_t> groups, elements, times;
    std::string text = "attention (" + std::to_string(choice.attentions) + " times): ";
    for (const GroupPrice &price : choice.prices) {
      groups.push_back(price.group);
      elements.push_back(price.elements);
      times.push_back(price.time());
      if (price.group == choice.group)
        text += "groups of " + std::to_string(price.group) + " of " + std::to_string(ranks) +
                " ranks exchange heads, keys and values go along a ring of " +
                std::to_string(ranks / price.group) + ": a rank sends " + std::to_string(price.elements) +
                " elements forward and backward";
    }
    remark::missed(choice.loc, remark::RemarkOpts::name("sequence-groups").category(kOverlapRemarks)) << text;
    auto count = [&](StringRef name, int64_t value) {
      return builder.getNamedAttr(name, builder.getI64IntegerAttr(value));
    };
    auto list = [&](StringRef name, ArrayRef<int64_t> values) {
      return builder.getNamedAttr(name, builder.getDenseI64ArrayAttr(values));
    };
    all.push_back(builder.getDictionaryAttr({count("attentions", choice.attentions),
                                             count("group", choice.group), list("groups", groups),
                                             list("elements", elements), list("picoseconds", times)}));
  }
  if (!all.empty())
    forward->getParentOfType<ModuleOp>()->setAttr(graph::kSequenceGroupsAttr, builder.getArrayAttr(all));
}
