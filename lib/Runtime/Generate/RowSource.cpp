//===- RowSource.cpp - the rows of a run as a program's inputs -------------===//

#include "Generate/RowSource.h"

#include "dsopt/Runtime/GenerateInputs.h"

#include <algorithm>

using namespace dsopt::runtime;

static int64_t countOf(const std::vector<int64_t> &shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

RowSource::RowSource(const Program &program) : DataSource(program, "prompts") {
  setCount(1);
  std::vector<int64_t> own;
  for (const Input &input : program.inputs) {
    roles.push_back(input.name == kPositionsInput ? Role::Positions
                    : input.name == kSlotsInput   ? Role::Slots
                    : input.name == kPicksInput   ? Role::Picks
                                                  : Role::Tokens);
    own.push_back(countOf(input.shape));
  }
  for (const Variant &variant : program.variants) {
    elements.emplace_back();
    for (const std::vector<int64_t> &shape : variant.shapes)
      elements.back().push_back(countOf(shape));
  }
  elements.push_back(std::move(own));
  size_t tokens = std::find(roles.begin(), roles.end(), Role::Tokens) - roles.begin();
  for (const std::vector<int64_t> &counts : elements)
    sizes.push_back(counts[tokens]);
}

int RowSource::chooseVariant(int64_t) {
  auto rows = static_cast<int64_t>(given->tokens.size());
  chosen = 0;
  while (sizes[chosen] < rows)
    ++chosen;
  return chosen + 1 < sizes.size() ? static_cast<int>(chosen) : -1;
}

void RowSource::fill(int64_t, int64_t, int64_t input, void *target) {
  Role role = roles[input];
  const std::vector<int64_t> &values = role == Role::Tokens      ? given->tokens
                                       : role == Role::Positions ? given->positions
                                       : role == Role::Slots     ? given->slots
                                                                 : given->picks;
  int64_t count = elements[chosen][input], none = role == Role::Slots ? -1 : 0;
  auto put = [&](auto *to) {
    for (int64_t i = 0; i < count; ++i)
      to[i] = static_cast<std::remove_pointer_t<decltype(to)>>(
          i < static_cast<int64_t>(values.size()) ? values[i] : none);
  };
  if (program.inputs[input].type == "i32")
    put(static_cast<int32_t *>(target));
  else
    put(static_cast<int64_t *>(target));
}
