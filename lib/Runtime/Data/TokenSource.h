//===- TokenSource.h - micro-batches out of files of tokens -----*- C++ -*-===//
//
// Each row of a micro-batch is a window: as many tokens as the input has columns,
// one window after the other, none over the end of a file.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_DATA_TOKENSOURCE_H
#define DSOPT_LIB_RUNTIME_DATA_TOKENSOURCE_H

#include "TokenFile.h"
#include "dsopt/Runtime/Data.h"

namespace dsopt::runtime {

class TokenSource : public DataSource {
public:
  TokenSource(const Program &program, const std::string &text, const std::vector<std::string> &paths,
              const TokenOptions &options);

  void fill(int64_t step, int64_t microBatch, int64_t input, void *target) override;
  std::string describe(int64_t step, int64_t microBatch, int64_t input, int64_t element) override;

private:
  enum class Role { Tokens, Labels, Ones, Positions };
  struct Shard {
    std::unique_ptr<TokenFile> file;
    int64_t firstWindow = 0;
  };
  void assignRoles(const TokenOptions &options);
  /// Refuses a file some of whose tokens no look-up takes, before anything is trained on others.
  void checkSample(const TokenFile &file) const;
  static std::string describe(const TokenFile &file, int64_t token);
  /// The file and the first token of a row's window.
  std::pair<const TokenFile *, int64_t> window(int64_t step, int64_t microBatch, int64_t row) const;

  std::vector<Role> roles; ///< of each input
  std::vector<Shard> shards;
  int64_t rows = 1, length = 0; ///< of the token input
  int64_t bound = 0;            ///< tokens are below it; 0: nothing says so
  bool shifted;
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_DATA_TOKENSOURCE_H
