//===- AtomicFile.h - every output of dsopt ---------------------*- C++ -*-===//
//
// A file that appears under its name when it is complete, and not at all
// otherwise. Until then it has a name in the same folder that nobody can predict,
// is opened so that no link is followed and nothing that exists is written over,
// and is locked, by which the next run knows what a killed one left.
//
// What is there and is no regular file (a device, a FIFO, a descriptor of this
// process as /dev/stdout) is written in place and never replaced. All but devices
// get their bytes at the end, when they are complete.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_ATOMICFILE_H
#define DSOPT_RUNTIME_ATOMICFILE_H

#include "dsopt/Runtime/Error.h"

#include <cstdint>
#include <string>

#include <sys/types.h>

namespace dsopt::runtime {

/// Writes or reads all bytes at a place of an open file; false with errno at an error. A disk that takes
/// nothing more is ENOSPC; a file that ends early is no error number: errno is 0.
bool writeFully(int descriptor, int64_t offset, const void *data, int64_t bytes);
bool readFully(int descriptor, int64_t offset, void *data, int64_t bytes);

/// Every failure is an Error of status 2 that names the file.
class AtomicFile {
public:
  /// Its permissions are `mode` without what the umask takes: 0777 for what can be executed.
  explicit AtomicFile(const std::string &path, mode_t mode = 0666);
  ~AtomicFile();
  AtomicFile(const AtomicFile &) = delete;
  void append(const void *data, uint64_t bytes);
  /// Somewhere else than at the end; does not move the end.
  void writeAt(uint64_t offset, const void *data, uint64_t bytes);
  uint64_t position() const { return end; }
  /// Data to disk, then the name, then the folder that has the name.
  void commit();

private:
  [[noreturn]] void fail(const char *what, int error) const;
  /// Writes what was collected to what takes bytes one after the other only.
  void deliver();

  const std::string path;
  std::string temporary;  ///< empty: written in place
  bool collected = false; ///< in memory, until it is delivered
  int fd = -1;
  uint64_t end = 0;
};

/// The status to end with where something cannot be created: what is full or broken is no mistake of whoever
/// asked.
int statusOfCreating(int error);

/// An Error of status 1 unless `path` can be created (or replaced, or written in place) as a file; `option`
/// asked for it. Removes what killed runs of this machine left in its folder.
void checkWritable(const std::string &path, const std::string &option);

} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_ATOMICFILE_H
