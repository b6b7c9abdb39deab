//===- NpzSource.h - micro-batches out of an .npz file ----------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_DATA_NPZSOURCE_H
#define DSOPT_LIB_RUNTIME_DATA_NPZSOURCE_H

#include "dsopt/Runtime/Data.h"

namespace dsopt::runtime {

class NpzSource : public DataSource {
public:
  /// Checks headers only. An Error of status 1 says what does not fit.
  NpzSource(const Program &program, const std::string &path);

  void prepare() override;
  void fill(int64_t step, int64_t microBatch, int64_t input, void *target) override;

private:
  struct Stream {
    const NpzArray *array = nullptr;
    const char *data = nullptr;
    int64_t elements = 0; ///< of one micro-batch
    int from = 0, to = 0; ///< element kinds
    int64_t bytes = 0;    ///< of one element in the file
  };
  NpzFile file;
  std::vector<Stream> streams;
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_DATA_NPZSOURCE_H
