//===- Prompts.cpp - what sequences begin with -----------------------------===//

#include "Generate/Prompts.h"

#include "dsopt/Runtime/Error.h"
#include "dsopt/Runtime/Npz.h"

#include <cstring>

using namespace dsopt::runtime;

static Error wrong(const std::string &text) { return Error(StatusInput, text); }

/// All elements of an array of integers.
static std::vector<int64_t> readIntegers(NpzFile &file, const NpzArray &array) {
  const char *bytes = file.data(array);
  std::vector<int64_t> values(array.bytes / array.elementBytes);
  for (size_t i = 0; i < values.size(); ++i) {
    if (array.type == "i32") {
      int32_t value;
      std::memcpy(&value, bytes + 4 * i, 4);
      values[i] = value;
    } else {
      std::memcpy(&values[i], bytes + 8 * i, 8);
    }
  }
  return values;
}

std::vector<Prompt> dsopt::runtime::readPromptIds(const std::string &path) {
  NpzFile file(path);
  std::vector<Prompt> prompts;
  auto read = [&](const NpzArray &array, size_t rank) {
    if ((array.type != "i64" && array.type != "i32") || array.shape.size() != rank || array.fortran)
      throw wrong(path + ": array '" + array.name + "' is " + describeArray(array) +
                  ", expected i64 or i32 of " + std::to_string(rank) +
                  (rank == 1 ? " dimension" : " dimensions"));
    return readIntegers(file, array);
  };
  if (const NpzArray *array = file.find("input_ids")) {
    std::vector<int64_t> all = read(*array, 2);
    int64_t length = array->shape[1];
    for (int64_t row = 0; row < array->shape[0]; ++row)
      prompts.push_back({{all.begin() + row * length, all.begin() + (row + 1) * length}, ""});
  }
  bool isList = prompts.empty();
  while (const NpzArray *array = isList ? file.find(std::to_string(prompts.size())) : nullptr)
    prompts.push_back({read(*array, 1), ""});
  if (prompts.empty())
    throw wrong(path +
                " has no prompts: expected input_ids [prompts, length], or arrays 0, 1, ... of tokens");
  return prompts;
}

void dsopt::runtime::checkPrompts(const std::vector<Prompt> &prompts, int64_t vocabulary, int64_t newTokens,
                                  int64_t context) {
  for (size_t number = 0; number < prompts.size(); ++number) {
    const std::vector<int64_t> &prompt = prompts[number].tokens;
    std::string name = "prompt " + std::to_string(number);
    if (prompt.empty())
      throw wrong(name + " is empty, expected at least one token");
    for (size_t i = 0; i < prompt.size(); ++i)
      if (prompt[i] < 0 || (vocabulary && prompt[i] >= vocabulary))
        throw wrong(name + " has token " + std::to_string(prompt[i]) + " at position " + std::to_string(i) +
                    ", expected 0 to " + std::to_string(vocabulary - 1));
    if (static_cast<int64_t>(prompt.size()) + newTokens > context)
      throw wrong(name + " has " + std::to_string(prompt.size()) + " tokens and is to get " +
                  std::to_string(newTokens) + " more (-max-new-tokens), expected at most " +
                  std::to_string(context) +
                  " in all, the context that the program was made for (-max-context)");
  }
}
