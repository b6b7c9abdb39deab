//===- BagOps.cpp - PyTorch's EmbeddingBag ---------------------------------===//
//
// Exporters write it as a loop over bags, each a slice of rows between two offsets, which is reduced.
// Offsets may be data, so that a slice has no shape. It is rebuilt here: each row is added to its
// bag's. A bag without rows is zero, as PyTorch has it.
//
//===----------------------------------------------------------------------===//

#include "BagOps.h"

#include "Scopes.h"

using namespace mlir;

namespace dsopt::onnx_import {

namespace {
using Node = const onnx::NodeProto *;

/// What a loop over bags computes; names are those of values around the loop.
struct Bags {
  /// Of rows that are looked up in the loop.
  std::string weight, indices, factors;
  /// Rows that have been looked up before.
  std::string rows;
  std::string offsets, ends;
  StringRef reduction;
  /// Which of the values that the loop carries on are the bags; the other counts.
  int sequence = 0;
};

class Matcher {
public:
  Matcher(NodeBuilder &n, const onnx::GraphProto &body) : n(n), body(body) {
    forEachNode(body, [&](const onnx::NodeProto &node) {
      for (const std::string &output : node.output())
        producers[output] = &node;
    });
  }

  /// A scan of rows that are looked up in the loop (PyTorch's older exporter).
  std::optional<Bags> matchScan();
  /// A sequence of rows of a table (its newer one).
  std::optional<Bags> matchSequence();

private:
  Node find(const std::string &name, StringRef op, int inputs = 1) const {
    auto found = producers.find(name);
    bool fits =
        found != producers.end() && found->second->op_type() == op && found->second->input_size() >= inputs;
    return fits ? found->second : nullptr;
  }
  bool isOuter(const std::string &name) const {
    return !producers.count(name) && llvm::none_of(body.input(), [&](const onnx::ValueInfoProto &input) {
      return input.name() == name;
    });
  }
  static const onnx::GraphProto *graphOf(Node node, StringRef name) {
    for (const onnx::AttributeProto &attribute : node->attribute())
      if (attribute.name() == name && attribute.has_g() && attribute.g().output_size() == 1)
        return &attribute.g();
    return nullptr;
  }
  std::optional<int64_t> integerOf(const std::string &name) const;
  /// The reduction over rows that gives a value, null if none does.
  Node reductionOf(const std::string &name, StringRef &kind) const;
  /// The value that the innermost of nested branches gives which can be taken.
  std::string taken(std::string name) const;

  NodeBuilder &n;
  const onnx::GraphProto &body;
  llvm::StringMap<Node> producers;
};
} // namespace

std::optional<int64_t> Matcher::integerOf(const std::string &name) const {
  if (isOuter(name)) {
    auto known = constantIntegers(n.outerValue(name));
    return known && known->size() == 1 ? std::optional<int64_t>(known->front()) : std::nullopt;
  }
  Node node = find(name, "Constant", 0);
  if (!node || node->attribute_size() != 1)
    return std::nullopt;
  const onnx::AttributeProto &value = node->attribute(0);
  if (value.name() == "value_int")
    return value.i();
  if (value.name() == "value_ints" && value.ints_size() == 1)
    return value.ints(0);
  const onnx::TensorProto &tensor = value.t();
  if (value.name() != "value" || tensor.data_type() != onnx::TensorProto::INT64)
    return std::nullopt;
  if (tensor.int64_data_size() == 1)
    return tensor.int64_data(0);
  int64_t number;
  if (tensor.raw_data().size() != sizeof(number))
    return std::nullopt;
  std::memcpy(&number, tensor.raw_data().data(), sizeof(number));
  return number;
}

Node Matcher::reductionOf(const std::string &name, StringRef &kind) const {
  for (StringRef op : {"ReduceSum", "ReduceMean", "ReduceMax"})
    if (Node node = find(name, op)) {
      kind = StringRef(node->op_type()).drop_front(StringRef("Reduce").size());
      if (node->input_size() > 1)
        return integerOf(node->input(1)) == 0 ? node : nullptr;
      for (const onnx::AttributeProto &attribute : node->attribute())
        if (attribute.name() == "axes")
          return attribute.ints_size() == 1 && attribute.ints(0) == 0 ? node : nullptr;
    }
  return nullptr;
}

std::string Matcher::taken(std::string name) const {
  while (Node node = find(name, "If")) {
    Node equal = find(node->input(0), "Equal", 2);
    if (!equal)
      break;
    // Of a mode that is a constant, or whether this is the last bag, which is no other.
    std::optional<int64_t> left = integerOf(equal->input(0)), right = integerOf(equal->input(1));
    const onnx::GraphProto *branch =
        graphOf(node, left && right && left == right ? "then_branch" : "else_branch");
    if (!branch)
      break;
    name = branch->output(0).name();
  }
  return name;
}

std::optional<Bags> Matcher::matchScan() {
  Bags bags;
  Node reduce = reductionOf(body.output(1).name(), bags.reduction);
  if (!reduce)
    return std::nullopt;
  auto bound = [&](const std::string &name) -> std::string {
    Node unsqueeze = find(name, "Unsqueeze");
    Node gather = unsqueeze ? find(unsqueeze->input(0), "Gather", 2) : nullptr;
    return gather && gather->input(1) == body.input(0).name() && isOuter(gather->input(0)) ? gather->input(0)
                                                                                           : "";
  };
  auto slice = [&](Node node) {
    if (!node || integerOf(node->input(3)) != 0 || !isOuter(node->input(0)))
      return false;
    bags.offsets = bound(node->input(1));
    bags.ends = bound(node->input(2));
    return !bags.offsets.empty() && !bags.ends.empty();
  };
  std::string rows = reduce->input(0);
  if (Node product = find(rows, "Mul", 2)) {
    Node unsqueeze = find(product->input(1), "Unsqueeze");
    Node factors = unsqueeze ? find(unsqueeze->input(0), "Slice", 4) : nullptr;
    if (!slice(factors))
      return std::nullopt;
    bags.factors = factors->input(0);
    rows = product->input(0);
  }
  std::string starts = bags.offsets, ends = bags.ends;
  Node gather = find(rows, "Gather", 2);
  Node indices = gather ? find(gather->input(1), "Slice", 4) : nullptr;
  if (!slice(indices) || !isOuter(gather->input(0)) ||
      (!starts.empty() && (starts != bags.offsets || ends != bags.ends)))
    return std::nullopt;
  bags.weight = gather->input(0);
  bags.indices = indices->input(0);
  return bags;
}

std::optional<Bags> Matcher::matchSequence() {
  Bags bags;
  Node insert = find(body.output(1).name(), "SequenceInsert", 2);
  // Exporters write the two in any order.
  if (!insert) {
    insert = find(body.output(2).name(), "SequenceInsert", 2);
    bags.sequence = 1;
  }
  const std::string &counter = body.input(3 - bags.sequence).name();
  if (!insert || insert->input(0) != body.input(2 + bags.sequence).name())
    return std::nullopt;
  Node isEmpty = find(insert->input(1), "If");
  Node equal = isEmpty ? find(isEmpty->input(0), "Equal", 2) : nullptr;
  Node start = equal ? find(equal->input(0), "Slice", 3) : nullptr,
       end = equal ? find(equal->input(1), "Slice", 3) : nullptr;
  if (!start || !end || start->input(0) != end->input(0) || !isOuter(start->input(0)))
    return std::nullopt;
  // From the iteration's offset to the next.
  Node place = find(start->input(1), "Reshape"), next = find(end->input(1), "Add", 2);
  if (!place || !next || place->input(0) != counter || next->input(0) != start->input(1) ||
      find(start->input(2), "Add", 2) == nullptr)
    return std::nullopt;
  const onnx::GraphProto *filled = graphOf(isEmpty, "else_branch");
  Node reduce = filled ? reductionOf(taken(filled->output(0).name()), bags.reduction) : nullptr;
  Node rows = reduce ? find(taken(reduce->input(0)), "Slice", 3) : nullptr;
  if (!rows || rows->input_size() != 3 || rows->input(1) != equal->input(0) ||
      rows->input(2) != equal->input(1) || !isOuter(rows->input(0)))
    return std::nullopt;
  bags.rows = rows->input(0);
  bags.offsets = start->input(0);
  return bags;
}

/// The bags of `[N, D]` rows, of which bag b has those from `offsets[b]` on.
static Value reduceBags(Emitter &e, Value rows, Value offsets, StringRef reduction) {
  Type index = e.builder.getI64Type(), element = Emitter::elementOf(rows);
  offsets = e.convert(offsets, index);
  int64_t count = Emitter::shapeOf(rows)[0], width = Emitter::shapeOf(rows)[1],
          bags = Emitter::shapeOf(offsets)[0] - 1;
  // Bags of equal numbers of rows, as of an input of two dimensions.
  if (auto known = constantIntegers(offsets)) {
    int64_t size = count / bags;
    bool isEven = size > 0 && size * bags == count;
    for (int64_t i = 0; isEven && i <= bags; ++i)
      isEven = (*known)[i] == i * size;
    if (isEven) {
      Value shaped = e.reshape(rows, {bags, size, width});
      return reduction == "Sum"    ? e.sum(shaped, 1, /*keepdims=*/false)
             : reduction == "Mean" ? e.mean(shaped, 1, /*keepdims=*/false)
                                   : e.reduce<graph::ReduceMaxOp>(shaped, 1, /*keepdims=*/false);
    }
  }
  auto scatter = [&](Value data, Value places, Value updates, ScatterMode mode) {
    return e.make<graph::ScatterOp>({data, places, updates},
                                    e.attr("mode", ScatterModeAttr::get(e.builder.getContext(), mode)));
  };
  // How many offsets there are up to a row, less one; what is in no bag goes behind the last.
  Value marks =
      scatter(e.splat(index, 0, {count + 1, 1}), offsets, e.splat(index, 1, {bags + 1, 1}), ScatterMode::Add);
  Value passed =
      e.make<graph::CumSumOp>(e.slice(e.reshape(marks, count + 1), 0, 0, count), e.attr("axis", 0));
  Value places = e.sub(passed, e.scalar(1, passed));
  places = e.where(e.less(places, e.scalar(0, places)), e.scalar(bags, places), places);
  Value sizes = e.sub(e.slice(offsets, 0, 1, bags), e.slice(offsets, 0, 0, bags));
  bool isMax = reduction == "Max";
  double initial = isMax ? -std::numeric_limits<double>::infinity() : 0;
  Value all = scatter(e.splat(element, initial, {bags + 1, width}), places, rows,
                      isMax ? ScatterMode::Max : ScatterMode::Add);
  Value result = e.slice(all, 0, 0, bags);
  sizes = e.reshape(e.maximum(sizes, e.scalar(isMax ? 0 : 1, sizes)), {bags, 1});
  if (isMax)
    return e.where(e.equal(sizes, e.scalar(0, sizes)), e.scalar(0, result), result);
  return reduction == "Mean" ? e.div(result, e.convert(sizes, element)) : result;
}

/// Whether `ends` are the offsets behind the first.
static bool followOn(Value offsets, Value ends) {
  auto slice = ends.getDefiningOp<graph::SliceOp>();
  if (slice)
    return slice.getInput() == offsets && slice.getStarts() == ArrayRef<int64_t>{1} &&
           slice.getSteps() == ArrayRef<int64_t>{1};
  auto all = constantIntegers(offsets), rest = constantIntegers(ends);
  return all && rest && ArrayRef(*all).drop_front() == ArrayRef(*rest);
}

FailureOr<bool> buildBags(NodeBuilder &n, const onnx::GraphProto &body) {
  Emitter &e = n.e;
  bool isScan = body.input_size() == 2 && body.output_size() == 2,
       isSequence = body.input_size() == 4 && body.output_size() == 3;
  if (!isScan && !isSequence)
    return false;
  Matcher matcher(n, body);
  std::optional<Bags> bags = isScan ? matcher.matchScan() : matcher.matchSequence();
  if (!bags)
    return false;
  Value offsets = n.outer(bags->offsets);
  if (!offsets || Emitter::rankOf(offsets) != 1 || Emitter::shapeOf(offsets)[0] < 2)
    return offsets ? FailureOr<bool>(false) : FailureOr<bool>(failure());
  if (isScan) {
    Value ends = n.outer(bags->ends), weight = n.outer(bags->weight), indices = n.outer(bags->indices);
    Value factors = bags->factors.empty() ? Value() : n.outer(bags->factors);
    if (!ends || !weight || !indices || (!factors && !bags->factors.empty()))
      return failure();
    if (!followOn(offsets, ends) || Emitter::rankOf(weight) != 2 || Emitter::rankOf(indices) != 1)
      return false;
    Value rows = e.gather(weight, indices, 0);
    if (factors)
      rows = e.mul(rows, e.reshape(factors, {Emitter::shapeOf(indices)[0], 1}));
    Value result = rows ? reduceBags(e, rows, offsets, bags->reduction) : Value();
    if (failed(n.set(0, result)))
      return failure();
    return true;
  }
  Value rows = n.outer(bags->rows);
  FailureOr<Binding> first = n.binding(2 + bags->sequence), counter = n.binding(3 - bags->sequence);
  if (!rows || failed(first) || failed(counter))
    return failure();
  auto start = constantIntegers(counter->value);
  if (Emitter::rankOf(rows) != 2 || !first->sequence || !first->sequence->empty() || !start ||
      *start != SmallVector<int64_t>{0})
    return false;
  Value result = reduceBags(e, rows, offsets, bags->reduction);
  if (!result)
    return failure();
  std::vector<Value> elements;
  int64_t count = Emitter::shapeOf(result)[0];
  for (int64_t i = 0; i < count; ++i)
    elements.push_back(e.slice(result, 0, i, 1));
  if (failed(n.set(bags->sequence, std::move(elements))) ||
      failed(n.set(1 - bags->sequence,
                   e.convert(e.splat(e.builder.getI64Type(), count, Emitter::shapeOf(counter->value)),
                             Emitter::elementOf(counter->value)))))
    return failure();
  return true;
}

} // namespace dsopt::onnx_import
