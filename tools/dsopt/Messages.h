//===- Messages.h - diagnostics as the one message a user sees ---*- C++ -*-===//

#ifndef DSOPT_TOOLS_DSOPT_MESSAGES_H
#define DSOPT_TOOLS_DSOPT_MESSAGES_H

#include "dsopt/Interfaces/OneLine.h"
#include "dsopt/Runtime/Error.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"
#include "llvm/Support/raw_ostream.h"

namespace dsopt {

/// Collects diagnostics as text, so that the first error is the one message a
/// user sees, with its notes; warnings and remarks are printed as they come.
class Messages {
public:
  explicit Messages(mlir::MLIRContext &context, bool warns = true)
      : warns(warns), handler(&context, [this](mlir::Diagnostic &diagnostic) { return handle(diagnostic); }) {
  }

  /// Throws what was collected; `otherwise` if nothing was.
  [[noreturn]] void fail(const std::string &otherwise) {
    throw runtime::Error(1, error.empty() ? otherwise : error);
  }

private:
  llvm::LogicalResult handle(mlir::Diagnostic &diagnostic) {
    std::string text = describe(diagnostic);
    if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Warning && warns)
      llvm::errs() << "dsopt: warning: " << text << "\n";
    else if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Remark && warns)
      llvm::errs() << "dsopt: remark: " << messageOf(text) << "\n";
    else if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error && error.empty()) {
      error = text;
      for (mlir::Diagnostic &note : diagnostic.getNotes())
        error += "\n  note: " + describe(note);
    }
    return llvm::success();
  }
  /// What a remark says, without its name and category.
  static llvm::StringRef messageOf(llvm::StringRef remark) {
    llvm::StringRef message = remark.split("Remark=\"").second;
    return message.empty() ? remark : message.rsplit('"').first;
  }
  static std::string describe(mlir::Diagnostic &diagnostic) {
    std::string text;
    if (auto file = llvm::dyn_cast<mlir::FileLineColLoc>(diagnostic.getLocation()))
      text = (file.getFilename().getValue() + ":" + llvm::Twine(file.getLine()) + ":" +
              llvm::Twine(file.getColumn()) + ": ")
                 .str();
    // An operation's place is its node's name, then its module and line, then the model.
    else if (auto node = llvm::dyn_cast<mlir::NameLoc>(diagnostic.getLocation());
             node && llvm::isa<mlir::NameLoc>(node.getChildLoc()) &&
             !llvm::StringRef(diagnostic.str()).contains("node '")) {
      auto module = llvm::cast<mlir::NameLoc>(node.getChildLoc());
      text = "node '" + node.getName().str() + "'" +
             (llvm::isa<mlir::NameLoc>(module.getChildLoc()) ? " of " + module.getName().str() : "") + ": ";
    }
    return oneLine(text + diagnostic.str());
  }

  bool warns;
  std::string error;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace dsopt

#endif // DSOPT_TOOLS_DSOPT_MESSAGES_H
