//===- Mappings.h - files that lie in memory --------------------*- C++ -*-===//
//
// A mapped file that is truncated, or whose disk fails, is a SIGBUS at whoever reads
// it. What is registered here turns that into a message with the file's name. What is
// cut off a file's last page reads as zeros instead: only looking at its size tells.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_MAPPINGS_H
#define DSOPT_RUNTIME_MAPPINGS_H

#include <cstddef>
#include <string>

struct stat;

namespace dsopt::runtime {

/// `bytes` from `address` on are the file `path`, until forgetMapping. With `file`, which says what is
/// mapped, checkMappings looks after it.
void registerMapping(const void *address, size_t bytes, const std::string &path,
                     const struct stat *file = nullptr);
void forgetMapping(const void *address);

/// An Error of status 2 names a file that has become shorter than what is mapped of it.
void checkMappings();

/// From here on a file that can no longer be read ends the process with status 2, after one write of
/// `before`, a sentence that names the file, and a byte `end` to `fd`.
void reportLostMappings(int fd, const std::string &before, char end);

} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_MAPPINGS_H
