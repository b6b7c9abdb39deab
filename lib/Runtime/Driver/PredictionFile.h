//===- PredictionFile.h - the outputs of a model as an .npz file -*- C++ -*-===//
//
// An array for each output. Bytes go to their places in the file as they come, so that none is held; the
// file appears when it is complete.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_DRIVER_PREDICTIONFILE_H
#define DSOPT_LIB_RUNTIME_DRIVER_PREDICTIONFILE_H

#include "dsopt/Runtime/AtomicFile.h"
#include "dsopt/Runtime/Program.h"

namespace dsopt::runtime {

class PredictionFile {
public:
  /// Of so many micro-batches, which stand one behind the other along a new first dimension. Where the data
  /// are `rows` (0: they are not), outputs with as many rows as a micro-batch are lists of them, too. Shapes
  /// are those of the `variant` that the data fit, -1: none.
  PredictionFile(const std::string &path, const Program &program, int variant, int64_t microBatches,
                 int64_t rows);

  /// The next bytes of an output; those of rows that fill up the last micro-batch are left out.
  void take(int64_t output, const char *values, int64_t bytes);
  /// Writes what an archive ends with, and gives the file its name.
  void finish();

private:
  struct Array {
    std::string name;           ///< of the member
    std::string header;         ///< of the array
    uint64_t offset = 0;        ///< of the member
    uint64_t bytes = 0;         ///< of the values
    uint64_t taken = 0;         ///< of them, so far
    unsigned long checksum = 0; ///< of the header and those
    uint64_t size() const { return header.size() + bytes; }
    /// In front of the array.
    std::string local() const;
    /// In the archive's directory.
    std::string entry() const;
  };
  AtomicFile file;
  std::vector<Array> arrays;
  uint64_t end = 0;
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_DRIVER_PREDICTIONFILE_H
