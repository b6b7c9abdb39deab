//===- FuzzTokens.cpp - files of tokens of every kind ---------------------===//
//
// The first byte says which kind; of Megatron's two files the first ends at the
// length in the two bytes after it.
//
//===----------------------------------------------------------------------===//

#include "Data/TokenSource.h"
#include "Fuzz.h"

#include <cstring>

using namespace dsopt::runtime;
using namespace dsopt::test;

template <typename T> static void put(std::string &out, T value) {
  out.append(reinterpret_cast<char *>(&value), sizeof value);
}

std::vector<std::string> dsopt::test::fuzzSeeds() {
  std::string llmC(1, 'r'), npy(1, 'r'), raw(1, 'r'), megatron(1, 'm'), index, wide(1, 'w');
  for (int32_t number : {20240520, 1, 64})
    put(llmC, number);
  llmC.resize(1 + 1024 + 64 * 2, 1);
  std::string header = "{'descr': '<u2', 'fortran_order': False, 'shape': (64,), }\n";
  npy += std::string("\x93NUMPY\1\0", 8);
  put<uint16_t>(npy, header.size());
  npy += header + std::string(128, '\1');
  raw += std::string(256, '\1');
  wide += std::string("\1\0\0\0", 4) + std::string(124, '\0');
  index = std::string("MMIDIDX\0\0", 9);
  put<int64_t>(index, 1);
  index += '\10'; // unsigned, 16 bits
  put<int64_t>(index, 2);
  put<int64_t>(index, 3);
  put<int32_t>(index, 30);
  put<int32_t>(index, 34);
  put<uint16_t>(megatron, index.size());
  megatron += index + std::string(128, '\1');
  return {llmC, npy, raw, wide, megatron};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const FuzzFolder folder;
  std::string_view rest = viewOf(data, size);
  char kind = rest.empty() ? 0 : rest[0];
  rest.remove_prefix(std::min<size_t>(1, rest.size()));
  std::string name = "tokens.bin";
  if (kind == 'm' && rest.size() >= 2) {
    uint16_t length;
    std::memcpy(&length, rest.data(), 2);
    rest.remove_prefix(2);
    folder.write("pair.idx", rest.substr(0, length));
    rest.remove_prefix(std::min<size_t>(length, rest.size()));
    name = "pair.bin";
  }
  Program program;
  program.K = program.M = 2;
  program.inputs.push_back({"input_ids", "i64", {2, 5}, false, -100});
  program.inputs.push_back({"labels", "i64", {2, 5}, true, -100});
  program.inputs[0].bound = 300;
  std::string path = folder.write(name, rest);
  try {
    TokenOptions options;
    options.bytes = kind == 'w' ? 4 : 0;
    options.shifted = size % 2;
    TokenSource source(program, path, {path}, options);
    source.plannedSteps(4, 0);
    source.prepare();
    int64_t target[10];
    for (int64_t step = 0; step < 4; ++step)
      for (int64_t input : {0, 1}) {
        source.fill(step, step % 2, input, target);
        source.describe(step, step % 2, input, 9);
      }
  } catch (const Error &) {
  }
  return 0;
}
