//===- Executable.h - a program and its runtime in one file -----*- C++ -*-===//
//
// Writes and opens what Footer.h describes.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_EXECUTABLE_H
#define DSOPT_RUNTIME_EXECUTABLE_H

#include <string>
#include <string_view>
#include <vector>

namespace dsopt::runtime {

/// Writes a copy of dsopt-run (the file `runtime`) with the shared object of a program behind it, or of two.
void writeExecutable(const std::string &runtime, const std::vector<std::string_view> &programs,
                     const std::string &path);

/// Descriptors of files in memory with the programs at the end of an open executable, in order; none if it
/// has none. Every byte of the file is compared with its hash first: a damaged one is an Error of status 1.
std::vector<int> openEmbedded(int executable);

} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_EXECUTABLE_H
