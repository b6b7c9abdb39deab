//===- TokenFile.h - files of tokens ----------------------------*- C++ -*-===//
//
// Told apart by content: llm.c's (magic 20240520 with 16 and 20240801 with 32
// bits a token), Megatron's (a .idx file beside the .bin), NumPy's .npy of whole
// numbers, else raw little-endian tokens as nanoGPT writes them.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_DATA_TOKENFILE_H
#define DSOPT_LIB_RUNTIME_DATA_TOKENFILE_H

#include "MappedFile.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dsopt::runtime {

class TokenFile {
public:
  /// Maps the file. Raw tokens have `rawBytes` bytes; 0: they have 2, and a file that looks like anything
  /// else is refused. An Error of status 1 says what is wrong with it.
  TokenFile(const std::string &path, int64_t rawBytes);

  const std::string &path() const { return file; }
  int64_t tokens() const { return count; }
  int64_t at(int64_t index) const;
  /// Where a token lies in the file.
  int64_t offset(int64_t index) const { return start + index * width; }
  /// Some places of the file that stand for the rest: its beginning, its end and between.
  std::vector<int64_t> sample() const;

private:
  void readLlmC();
  bool readMegatron();
  bool readNpy();
  void readRaw(int64_t bytes);
  /// What a file that is read as raw tokens of 2 bytes seems to be instead, and what to do; empty: nothing.
  std::string seemsToBe() const;
  [[noreturn]] void fail(const std::string &what) const;
  [[noreturn]] void failSize(const std::string &source) const;

  std::string file;
  MappedFile mapped;
  const char *data;
  int64_t size, start = 0, width = 2, count = 0;
  bool isSigned = false;
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_DATA_TOKENFILE_H
