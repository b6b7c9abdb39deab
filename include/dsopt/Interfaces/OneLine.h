//===- OneLine.h - text for a message of one line ---------------*- C++ -*-===//

#ifndef DSOPT_INTERFACES_ONELINE_H
#define DSOPT_INTERFACES_ONELINE_H

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace dsopt {

/// The text with control characters as "\x0A": whatever a file calls its values, a message about them is one
/// line that does nothing to a terminal.
inline std::string oneLine(llvm::StringRef text) {
  std::string line;
  for (unsigned char character : text)
    if (llvm::isPrint(character) || character > 127)
      line.push_back(character);
    else
      line += "\\x" + llvm::utohexstr(character, /*LowerCase=*/false, /*Width=*/2);
  return line;
}

} // namespace dsopt

#endif // DSOPT_INTERFACES_ONELINE_H
