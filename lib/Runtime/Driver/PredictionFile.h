//===- PredictionFile.h - the outputs of a model as an .npz file -*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_DRIVER_PREDICTIONFILE_H
#define DSOPT_LIB_RUNTIME_DRIVER_PREDICTIONFILE_H

#include "Data/NpzWriter.h"
#include "dsopt/Runtime/Program.h"

namespace dsopt::runtime {

/// An array for each output.
class PredictionFile {
public:
  /// Of so many micro-batches, which stand one behind the other along a new first dimension. Where the data
  /// are `rows` (0: they are not), outputs with as many rows as a micro-batch are lists of them, too. Shapes
  /// are those of the `variant` that the data fit, -1: none.
  PredictionFile(const std::string &path, const Program &program, int variant, int64_t microBatches,
                 int64_t rows);

  /// The next bytes of an output; those of rows that fill up the last micro-batch are left out.
  void take(int64_t output, const char *values, int64_t bytes) { file.take(output, values, bytes); }
  void finish() { file.finish(); }

private:
  NpzWriter file;
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_DRIVER_PREDICTIONFILE_H
