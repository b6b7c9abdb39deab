//===- Tokenize.h - `dsopt tokenize` ----------------------------*- C++ -*-===//

#ifndef DSOPT_TOOLS_DSOPT_TOKENIZE_H
#define DSOPT_TOOLS_DSOPT_TOKENIZE_H

#include "dsopt/Runtime/Options.h"

#include "llvm/Support/raw_ostream.h"

namespace dsopt {

/// Prints the ids of texts, a line each, or the texts of ids.
int tokenize(const runtime::ParsedOptions &options, llvm::raw_ostream &out);

} // namespace dsopt

#endif // DSOPT_TOOLS_DSOPT_TOKENIZE_H
