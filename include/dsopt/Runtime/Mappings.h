//===- Mappings.h - files that lie in memory --------------------*- C++ -*-===//
//
// A mapped file that is truncated, or whose disk fails, is a SIGBUS at whoever reads
// it. What is registered here turns that into a message with the file's name.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_MAPPINGS_H
#define DSOPT_RUNTIME_MAPPINGS_H

#include <cstddef>
#include <string>

namespace dsopt::runtime {

/// `bytes` from `address` on are the file `path`, until forgetMapping.
void registerMapping(const void *address, size_t bytes, const std::string &path);
void forgetMapping(const void *address);

/// From here on a file that can no longer be read ends the process with status 2, after one write of `before`,
/// a sentence that names the file, and a byte `end` to `fd`.
void reportLostMappings(int fd, const std::string &before, char end);

} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_MAPPINGS_H
