//===- CheckIndices.cpp - labels and tokens are in range before they are used ===//

#include "Core/Executor.h"

#include <limits>

namespace dsopt::runtime {

namespace {
/// What checkIndices finds in a micro-batch of indices.
struct IndexCheck {
  bool anyValid = false;
  int64_t outside = -1; ///< place of the first value out of range
};
} // namespace

/// "[2, 1]": an element of a shape.
static std::string describePlace(const std::vector<int64_t> &shape, int64_t element) {
  std::string text;
  for (size_t axis = shape.size(); axis-- > 0; element /= shape[axis])
    text = std::to_string(element % shape[axis]) + (text.empty() ? "" : ", ") + text;
  return "[" + text + "]";
}

template <typename Index>
static IndexCheck checkValues(const void *values, int64_t count, const Input &input) {
  IndexCheck check;
  const Index *indices = static_cast<const Index *>(values);
  for (int64_t i = 0; i < count; ++i) {
    bool ignored = input.label && indices[i] == input.ignore_index;
    check.anyValid |= !ignored;
    bool outside = input.bound && (indices[i] < input.least || indices[i] >= input.bound);
    if (outside && (!ignored || input.looked_up) && check.outside < 0)
      check.outside = i;
  }
  return check;
}

void Executor::checkIndices(const Prepared &prepared, const void *values) const {
  const Input &input = program.inputs[prepared.action->input];
  bool wide = input.type == "i64";
  if (!wide && input.type != "i32")
    return;
  int64_t count = 1;
  for (int64_t size : shapeOf(prepared.action->input))
    count *= size;
  IndexCheck check =
      wide ? checkValues<int64_t>(values, count, input) : checkValues<int32_t>(values, count, input);
  if (check.outside < 0 && (check.anyValid || !input.label))
    return;
  std::string where =
      (evaluates ? "evaluation, micro-batch " + std::to_string(step * program.K + prepared.microBatch)
                 : "step " + std::to_string(step) + ", micro-batch " + std::to_string(prepared.microBatch)) +
      ": ";
  if (check.outside < 0)
    throw Error(StatusInput, where + "no valid label in '" + input.name + "' (all are " +
                                 std::to_string(input.ignore_index) + ")");
  int64_t value = wide ? static_cast<const int64_t *>(values)[check.outside]
                       : static_cast<const int32_t *>(values)[check.outside];
  std::string place = inputs.describe(step, prepared.microBatch, prepared.action->input, check.outside);
  if (!place.empty())
    where += place + ": ";
  std::string expected = input.least ? "at least " + std::to_string(input.least) : std::string("0 or more");
  bool ignores = input.ignore_index != std::numeric_limits<int64_t>::min();
  if (input.label && ignores && !input.looked_up)
    expected += " (or " + std::to_string(input.ignore_index) + ", ignored)";
  where += input.name + describePlace(shapeOf(prepared.action->input), check.outside) + " is " +
           std::to_string(value) + ", expected less than " + std::to_string(input.bound) + " and " + expected;
  if (input.looked_up && value < 0)
    where += input.least ? ""
             : value == input.ignore_index && input.label
                 ? ": it is looked up in an embedding too, which has no row for ignored labels"
                 : ": an embedding's rows are not counted from its end";
  throw Error(StatusInput, where);
}

} // namespace dsopt::runtime
