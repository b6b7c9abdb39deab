//===- Words.h - `dsopt train MODEL` and `dsopt help` -----------*- C++ -*-===//
//
// The first word of a command line may say what to do. It means what an option
// does; a file of that name is meant by ./train.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TOOLS_DSOPT_WORDS_H
#define DSOPT_TOOLS_DSOPT_WORDS_H

#include "dsopt/Runtime/Options.h"

#include "llvm/Support/raw_ostream.h"

#include <optional>

namespace dsopt {

/// Takes the leading word of `argv`, if it is one, and then parses what is left. An answer, if the word asks
/// for no more than a text (help), is printed to `out` and gives a status.
std::optional<int> parseWords(int argc, char **argv, runtime::ParsedOptions &options, llvm::raw_ostream &out);

} // namespace dsopt

#endif // DSOPT_TOOLS_DSOPT_WORDS_H
