//===- RowSource.h - the rows of a run as a program's inputs ----*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_GENERATE_ROWSOURCE_H
#define DSOPT_LIB_RUNTIME_GENERATE_ROWSOURCE_H

#include "Generate/Sequences.h"
#include "dsopt/Runtime/Data.h"

namespace dsopt::runtime {

class RowSource : public DataSource {
public:
  explicit RowSource(const Program &program);

  /// What the next run is given. It stays the caller's.
  void give(const Rows &rows) { given = &rows; }
  /// Most rows of a run.
  int64_t most() const { return program.chunk; }

  /// The smallest size that has room for the rows that are given.
  int chooseVariant(int64_t run) override;
  void fill(int64_t run, int64_t microBatch, int64_t input, void *target) override;

private:
  enum class Role { Tokens, Positions, Slots, Picks };
  std::vector<Role> roles;    ///< of each input
  std::vector<int64_t> sizes; ///< that runs may have, ascending: the variants', then the program's own
  std::vector<std::vector<int64_t>> elements; ///< by size and input
  const Rows *given = nullptr;
  size_t chosen = 0;
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_GENERATE_ROWSOURCE_H
