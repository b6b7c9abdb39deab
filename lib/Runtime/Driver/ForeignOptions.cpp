//===- ForeignOptions.cpp - what to write instead of other tools' names ---===//

#include "dsopt/Runtime/Options.h"

#include <algorithm>

using namespace dsopt::runtime;

const std::vector<ForeignOption> &dsopt::runtime::foreignOptions() {
  static const std::vector<ForeignOption> table = {
#define DSOPT_FOREIGN(name, of, write, note) {name, of, write, note},
#include "dsopt/Runtime/ForeignOptions.def"
  };
  return table;
}

/// `write` with the given value, or the form of what it names where none was given.
static std::string withValue(const std::string &write, const std::string &value) {
  size_t at = write.find('$');
  if (at == std::string::npos)
    return write;
  std::string shown = value;
  if (shown.empty()) {
    const OptionRow *row = findOption(write.substr(1, write.find('=') - 1));
    // What surrounds the value has the rest of the form.
    bool isWhole = write[at - 1] == '=' && write.find('=') == at - 1 && at + 1 == write.size();
    shown = row && isWhole ? row->shownForm() : "X";
  }
  return write.substr(0, at) + shown + write.substr(at + 1);
}

std::string dsopt::runtime::adviseOn(const std::string &name, const std::string &value) {
  std::string dashed = name;
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  if (const OptionRow *row = findOption(dashed); row && row->kind == OptionKind::Flag)
    return ": write -" + dashed;
  else if (row)
    return ": write " + withValue("-" + dashed + "=$", value);
  for (const ForeignOption &one : foreignOptions())
    if (dashed == one.name) {
      std::string note = one.note, write = withValue(one.write, value);
      return std::string(" (of ") + one.of + "): " + (write.empty() ? "" : "write " + write) +
             (write.empty() || note.empty() ? "" : "; ") + note;
    }
  const OptionRow *nearest = nearestOption(name);
  return nearest ? std::string("; did you mean -") + nearest->name + "?" : "; -help lists all options";
}
