//===- EinsumOps.cpp - sums of products by letters -------------------------===//
//
// Operands are multiplied from the left, two at a time: letters that both have
// and that are needed later are a batch, those that are not are contracted by one
// matrix product, and a letter of one operand alone is summed before.
//
//===----------------------------------------------------------------------===//

#include "OpTable.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace dsopt::onnx_import {

namespace {
/// A tensor and the letter of each of its dimensions.
struct Lettered {
  Value value;
  std::string letters;
};

class Einsum {
public:
  explicit Einsum(NodeBuilder &n) : n(n), e(n.e) {}
  LogicalResult run();

private:
  LogicalResult parse(StringRef equation);
  FailureOr<std::string> letter(StringRef term, int64_t ellipsis);
  Lettered diagonal(Lettered x);
  Lettered sumOut(Lettered x, StringRef needed);
  Lettered inOrder(Lettered x, StringRef letters);
  Lettered multiply(Lettered a, Lettered b, StringRef needed);
  int64_t sizeOf(const Lettered &x, char letter) { return Emitter::shapeOf(x.value)[x.letters.find(letter)]; }

  NodeBuilder &n;
  Emitter &e;
  std::vector<Lettered> operands;
  std::string result;
};

bool has(StringRef letters, char letter) { return letters.contains(letter); }
} // namespace

/// The letters of one term, an ellipsis as digits: the last dimension is the last digit.
FailureOr<std::string> Einsum::letter(StringRef term, int64_t ellipsis) {
  std::string letters;
  while (!term.empty()) {
    if (term.consume_front("...")) {
      for (int64_t i = 0; i < ellipsis; ++i)
        letters += char('9' + 1 - ellipsis + i);
    } else if (isalpha(term.front())) {
      letters += term.front();
      term = term.drop_front();
    } else {
      return n.error() << "has equation '" << n.stringAttr("equation", "") << "', expected letters, "
                       << "ellipses, commas and an arrow";
    }
  }
  return letters;
}

LogicalResult Einsum::parse(StringRef equation) {
  std::string text = equation.str();
  llvm::erase(text, ' ');
  auto [inputs, output] = StringRef(text).split("->");
  bool hasArrow = StringRef(text).contains("->");
  SmallVector<StringRef> terms;
  inputs.split(terms, ',');
  if ((int)terms.size() != n.numInputs())
    return n.error() << "has equation '" << equation << "' for " << n.numInputs()
                     << " inputs, expected a term each";
  int64_t longest = 0;
  for (auto [i, term] : llvm::enumerate(terms)) {
    Value value = n.input(i);
    if (!value)
      return failure();
    auto named = letter(term, 0);
    if (failed(named))
      return failure();
    int64_t ellipsis = term.contains("...") ? Emitter::rankOf(value) - (int64_t)named->size() : 0;
    if (ellipsis < 0 || ellipsis > 9 || ellipsis + (int64_t)named->size() != Emitter::rankOf(value))
      return n.error() << "has term '" << term << "' for " << Emitter::typeOf(value)
                       << ", expected a letter for each dimension";
    longest = std::max(longest, ellipsis);
    operands.push_back({value, *letter(term, ellipsis)});
  }
  if (hasArrow) {
    auto letters = letter(output, longest);
    if (failed(letters))
      return failure();
    result = *letters;
    return success();
  }
  // Without an arrow: the ellipsis, then letters that occur once, in order.
  std::string all;
  for (const Lettered &operand : operands)
    all += operand.letters;
  llvm::sort(all);
  for (char c : all)
    if (isdigit(c) ? !has(result, c) : llvm::count(all, c) == 1)
      result += c;
  return success();
}

/// A letter that occurs twice in one term stands for the diagonal.
Lettered Einsum::diagonal(Lettered x) {
  for (size_t i = 0; i < x.letters.size(); ++i) {
    size_t other = x.letters.find(x.letters[i], i + 1);
    if (other == std::string::npos || !x.value)
      continue;
    int64_t rank = Emitter::rankOf(x.value), size = Emitter::shapeOf(x.value)[i];
    if (size != Emitter::shapeOf(x.value)[other]) {
      n.error() << "takes a diagonal of " << Emitter::typeOf(x.value) << ", expected equal dimensions";
      return {};
    }
    Type i64 = e.builder.getI64Type();
    Value isOnIt = e.equal(e.counting(i64, size, i, rank), e.counting(i64, size, other, rank));
    x.value = e.sum(e.where(isOnIt, x.value, e.scalar(0, x.value)), other, /*keepdims=*/false);
    x.letters.erase(other, 1);
    --i;
  }
  return x;
}

Lettered Einsum::sumOut(Lettered x, StringRef needed) {
  SmallVector<int64_t> axes;
  std::string kept;
  for (auto [dim, c] : llvm::enumerate(x.letters))
    if (has(needed, c))
      kept += c;
    else
      axes.push_back(dim);
  return axes.empty() ? x : Lettered{e.sum(x.value, axes, /*keepdims=*/false), kept};
}

/// The dimensions in the order of `letters`, of which the tensor has all.
Lettered Einsum::inOrder(Lettered x, StringRef letters) {
  SmallVector<int64_t> perm;
  for (char c : letters)
    perm.push_back(x.letters.find(c));
  return {x.value ? e.transpose(x.value, perm) : Value(), letters.str()};
}

Lettered Einsum::multiply(Lettered a, Lettered b, StringRef needed) {
  a = sumOut(a, needed.str() + b.letters);
  b = sumOut(b, needed.str() + a.letters);
  if (!a.value || !b.value)
    return {};
  std::string batch, rows, columns, inner;
  for (char c : a.letters) {
    if (!has(b.letters, c))
      rows += c;
    else if (has(needed, c))
      batch += c;
    else
      inner += c;
  }
  for (char c : b.letters)
    if (!has(a.letters, c))
      columns += c;
  // Sizes of both, of which one may be 1 where an ellipsis broadcasts.
  SmallVector<int64_t> batchSizes, rowSizes, columnSizes, shape;
  int64_t depth = 1;
  auto common = [&](char c) -> int64_t {
    int64_t sizeA = sizeOf(a, c), sizeB = sizeOf(b, c);
    return sizeA == 1 ? sizeB : sizeA;
  };
  auto expanded = [&](Lettered x) {
    SmallVector<int64_t> sizes;
    for (char c : x.letters)
      sizes.push_back(has(batch + inner, c) ? common(c) : sizeOf(x, c));
    x.value = e.expand(x.value, sizes);
    return x;
  };
  for (char c : batch + inner)
    if (sizeOf(a, c) != sizeOf(b, c) && sizeOf(a, c) != 1 && sizeOf(b, c) != 1) {
      n.error() << "multiplies " << Emitter::typeOf(a.value) << " by " << Emitter::typeOf(b.value)
                << ", expected equal sizes of equal letters";
      return {};
    }
  for (char c : batch)
    batchSizes.push_back(common(c));
  for (char c : inner)
    depth *= common(c);
  Lettered wideA = expanded(a), wideB = expanded(b);
  for (char c : rows)
    rowSizes.push_back(sizeOf(a, c));
  for (char c : columns)
    columnSizes.push_back(sizeOf(b, c));
  int64_t count = ShapedType::getNumElements(batchSizes);
  Value lhs = inOrder(wideA, batch + rows + inner).value, rhs = inOrder(wideB, batch + inner + columns).value;
  Value product =
      e.make<graph::MatMulOp>({e.reshape(lhs, {count, ShapedType::getNumElements(rowSizes), depth}),
                               e.reshape(rhs, {count, depth, ShapedType::getNumElements(columnSizes)})});
  shape = batchSizes;
  llvm::append_range(shape, rowSizes);
  llvm::append_range(shape, columnSizes);
  return {e.reshape(product, shape), batch + rows + columns};
}

LogicalResult Einsum::run() {
  if (failed(parse(n.stringAttr("equation", ""))))
    return failure();
  for (Lettered &operand : operands)
    operand = diagonal(operand);
  Lettered all = operands.front();
  for (size_t i = 1; i < operands.size() && all.value; ++i) {
    std::string needed = result;
    for (size_t k = i + 1; k < operands.size(); ++k)
      needed += operands[k].letters;
    all = multiply(all, operands[i], needed);
  }
  if (!all.value)
    return failure();
  all = sumOut(all, result);
  for (auto [i, c] : llvm::enumerate(result))
    if (!has(all.letters, c) || has(StringRef(result).drop_front(i + 1), c))
      return n.error() << "has equation '" << n.stringAttr("equation", "")
                       << "', expected a result of its inputs' letters, each once";
  return n.set(0, inOrder(all, result).value);
}

static LogicalResult einsum(NodeBuilder &n) { return Einsum(n).run(); }

ArrayRef<OpRow> einsumOps() {
  static const OpRow rows[] = {{"Einsum", 12, kMaxOpset, einsum}};
  return rows;
}

} // namespace dsopt::onnx_import
