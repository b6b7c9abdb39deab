//===- Executable.h - a program and its runtime in one file -----*- C++ -*-===//
//
// Writes and opens what Footer.h describes.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_EXECUTABLE_H
#define DSOPT_RUNTIME_EXECUTABLE_H

#include <string>
#include <string_view>

namespace dsopt::runtime {

/// Writes a copy of dsopt-run (the file `runtime`) with a program's shared object behind it.
void writeExecutable(const std::string &runtime, std::string_view program, const std::string &path);

/// A descriptor of a file in memory with the program at the end of an open executable; -1 if there is none.
/// Every byte of the file is compared with its hash first: a damaged one is an Error of status 1.
int openEmbedded(int executable);

} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_EXECUTABLE_H
