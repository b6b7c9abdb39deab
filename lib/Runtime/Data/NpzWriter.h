//===- NpzWriter.h - writes NumPy's .npz archives ---------------*- C++ -*-===//
//
// Arrays whose shapes are known before their elements. Bytes go to their places in the file as they come, so
// that none is held; the file appears when it is complete.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_RUNTIME_DATA_NPZWRITER_H
#define DSOPT_LIB_RUNTIME_DATA_NPZWRITER_H

#include "dsopt/Runtime/AtomicFile.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dsopt::runtime {

class NpzWriter {
public:
  explicit NpzWriter(const std::string &path);

  /// The number of a new array of elements of a type as MLIR spells it. An Error of status 1 if NumPy has
  /// none such.
  size_t add(const std::string &name, const std::string &type, const std::vector<int64_t> &shape);
  /// The next bytes of an array; those behind its last element are left out.
  void take(size_t number, const char *values, int64_t bytes);
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

#endif // DSOPT_LIB_RUNTIME_DATA_NPZWRITER_H
