//===- Fuzz.h - what every fuzzer shares ------------------------*- C++ -*-===//
//
// A fuzzer is a file with LLVMFuzzerTestOneInput, as libFuzzer takes it, and the
// inputs that others are made from. FuzzMain.cpp runs it without libFuzzer. What is
// wrong with an input is an Error; anything else that is thrown, every crash and what a
// sanitizer finds is a finding.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TEST_FUZZ_H
#define DSOPT_TEST_FUZZ_H

#include "dsopt/Runtime/Error.h"

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

namespace dsopt::test {

/// Inputs to begin with; an empty one where a fuzzer says none.
std::vector<std::string> fuzzSeeds();

/// Inputs to begin with for a fuzzer that takes bytes for orders: of up to `most` bytes, small ones more
/// often.
inline std::vector<std::string> orders(size_t most) {
  std::mt19937_64 random(1);
  std::vector<std::string> inputs(4096);
  for (std::string &input : inputs) {
    input.resize(random() % (most + 1));
    bool small = random() % 2;
    for (char &byte : input)
      byte = static_cast<char>(random() % (small && random() % 3 ? 16 : 256));
  }
  return inputs;
}

/// A folder for files that a fuzzer writes, in memory where the machine has such a place. Gone with the
/// process.
class FuzzFolder {
public:
  FuzzFolder() {
    std::string name =
        std::string(access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp") + "/dsopt-fuzz-XXXXXX";
    if (!mkdtemp(name.data()))
      abort();
    path = name;
  }
  ~FuzzFolder() { std::filesystem::remove_all(path); }
  /// The path of a file that has these bytes from here on.
  std::string write(const std::string &name, std::string_view bytes) const {
    std::string file = path + "/" + name;
    int fd = open(file.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0 || ::write(fd, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
      abort();
    close(fd);
    return file;
  }
  std::string path;
};

inline std::string_view viewOf(const uint8_t *data, size_t size) {
  return {reinterpret_cast<const char *>(data), size};
}

/// Takes the first part of an input: up to a zero byte.
inline std::string_view takePart(std::string_view &rest) {
  std::string_view part = rest.substr(0, rest.find('\0'));
  rest.remove_prefix(std::min(rest.size(), part.size() + 1));
  return part;
}

} // namespace dsopt::test

#endif // DSOPT_TEST_FUZZ_H
