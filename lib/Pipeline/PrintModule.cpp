//===- PrintModule.cpp - a module as people read it -----------------------===//

#include "dsopt/Pipeline/PrintModule.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

/// Bytes of a line that stand in front of the place where it can go on in the next one: the last space
/// outside of strings within the width, rather one behind a comma in its second half; the first space where
/// none is within it; all of the line where it has none.
static size_t findBreak(StringRef line, size_t width) {
  size_t place = line.size(), comma = 0;
  bool inString = false;
  for (size_t i = 0; i < line.size() && (i <= width || place == line.size()); ++i) {
    if (inString && line[i] == '\\')
      ++i;
    else if (line[i] == '"')
      inString = !inString;
    else if (line[i] == ' ' && !inString) {
      place = i;
      if (i && line[i - 1] == ',')
        comma = i;
    }
  }
  return comma > width / 2 ? comma : place;
}

void dsopt::printModule(ModuleOp module, raw_ostream &os) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream); // with aliases
  stream << '\n';
  for (StringRef rest = text; !rest.empty();) {
    auto [whole, others] = rest.split('\n');
    rest = others;
    StringRef line = whole.ltrim(' ');
    size_t indent = whole.size() - line.size(), further = indent + 4;
    while (indent + line.size() > kPrintedWidth) {
      size_t place = findBreak(line, kPrintedWidth - indent);
      if (place == line.size())
        break;
      os.indent(indent) << line.take_front(place) << '\n';
      line = line.drop_front(place + 1);
      indent = further;
    }
    os.indent(indent) << line << '\n';
  }
}
