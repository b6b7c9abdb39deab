//===- TokenFile.h - files of tokens ----------------------------*- C++ -*-===//
//
// Told apart by content: llm.c's (magic 20240520 with 16 and 20240801 with 32
// bits a token), Megatron's (a .idx file beside the .bin), else raw little-endian
// tokens as nanoGPT writes them.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_DATA_TOKENFILE_H
#define DSOPT_LIB_RUNTIME_DATA_TOKENFILE_H

#include <cstdint>
#include <string>

namespace dsopt::runtime {

class TokenFile {
public:
  /// Maps the file. An Error of status 1 says what is wrong with it.
  TokenFile(const std::string &path, int64_t rawBytes);
  ~TokenFile();
  TokenFile(const TokenFile &) = delete;

  const std::string &path() const { return file; }
  int64_t tokens() const { return count; }
  /// Of a token.
  int64_t bytes() const { return width; }
  int64_t at(int64_t index) const;
  /// Where a token lies in the file.
  int64_t offset(int64_t index) const { return start + index * width; }

private:
  void readLlmC();
  bool readMegatron();
  [[noreturn]] void fail(const std::string &what) const;

  std::string file;
  const char *data = nullptr;
  int64_t size = 0, start = 0, width = 2, count = 0;
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_DATA_TOKENFILE_H
