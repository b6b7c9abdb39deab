//===- Output.h - what the compiler prints ----------------------*- C++ -*-===//

#ifndef DSOPT_TOOLS_DSOPT_OUTPUT_H
#define DSOPT_TOOLS_DSOPT_OUTPUT_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <string>

namespace dsopt {

/// Prints to a file that appears when it is whole, or to standard output if `path` is empty. `print` returns
/// false if it could not: then there is no file. Throws runtime::Error for the file.
void writeText(const std::string &path, llvm::function_ref<bool(llvm::raw_ostream &)> print);

/// How wide lines for a person may be where they go to `path`: as COLUMNS says, else as a terminal is that
/// standard output goes to; 0 if neither says it.
size_t columnsOf(const std::string &path);

/// An Error of status 2 if standard output did not take what was printed; quiet if nobody reads any more.
void finishStandardOutput();

} // namespace dsopt

#endif // DSOPT_TOOLS_DSOPT_OUTPUT_H
