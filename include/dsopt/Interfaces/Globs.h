//===- Globs.h - names as options give them ---------------------*- C++ -*-===//

#ifndef DSOPT_INTERFACES_GLOBS_H
#define DSOPT_INTERFACES_GLOBS_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/GlobPattern.h"

#include <string>

namespace dsopt {

/// A glob of whole names, whose text has to outlive it. A name stands for itself, whatever it would mean as a
/// pattern.
class Glob {
public:
  /// That of -OPTION=TEXT; what is no pattern is an error of `emitError`.
  static llvm::FailureOr<Glob> parse(llvm::StringRef option, llvm::StringRef text,
                                     llvm::function_ref<mlir::InFlightDiagnostic()> emitError);

  bool matches(llvm::StringRef name) const { return name == text || pattern.match(name); }

private:
  Glob(llvm::StringRef text, llvm::GlobPattern pattern) : text(text), pattern(std::move(pattern)) {}
  llvm::StringRef text;
  llvm::GlobPattern pattern;
};

/// The end of an error about a glob that matches none of `names`: a glob that does match some of them
/// ("*bias" for "bias"), else names that are spelled nearly so, else where the names are to be seen.
std::string nearMatches(llvm::StringRef glob, llvm::ArrayRef<llvm::StringRef> names);

} // namespace dsopt

#endif // DSOPT_INTERFACES_GLOBS_H
