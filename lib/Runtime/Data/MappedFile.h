//===- MappedFile.h - a file of data in memory ------------------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_DATA_MAPPEDFILE_H
#define DSOPT_LIB_RUNTIME_DATA_MAPPEDFILE_H

#include <cstdint>
#include <string>

namespace dsopt::runtime {

/// Maps a whole file; one that is cut or fails later ends the process with its name (Mappings.h). An Error of
/// status 1 says why it cannot be read, of status 2 if the system failed.
class MappedFile {
public:
  /// `expected` says what it should be: "a .npz file".
  MappedFile(const std::string &path, const std::string &expected);
  ~MappedFile();
  MappedFile(const MappedFile &) = delete;

  const uint8_t *data() const { return bytes; }
  uint64_t size() const { return count; }

private:
  const uint8_t *bytes = nullptr; ///< null of an empty file
  uint64_t count = 0;
};

/// The status of a system call's failure on something that a user named: 2 where disk or system failed.
int statusOf(int error);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_DATA_MAPPEDFILE_H
