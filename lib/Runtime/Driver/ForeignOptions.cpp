//===- ForeignOptions.cpp - what to write instead of other tools' names ---===//

#include "dsopt/Runtime/Options.h"

#include <algorithm>
#include <cctype>
#include <set>

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

std::string dsopt::runtime::ownValue(const OptionRow &row, std::string value) {
  for (char &c : value)
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (value.rfind("torch.", 0) == 0)
    value.erase(0, 6);
  for (auto &[name, ready] : row.choices())
    if (ready && name == value)
      return value;
  struct Value {
    const char *option, *foreign, *own;
  };
  static const Value table[] = {
#define DSOPT_FOREIGN_VALUE(option, foreign, own) {option, foreign, own},
#include "dsopt/Runtime/ForeignOptions.def"
  };
  for (const Value &one : table)
    if (row.name == std::string(one.option) && value == one.foreign)
      return one.own;
  return "";
}

/// Whether a value names a file that is no data here.
static bool isText(const std::string &value) {
  for (const std::string end : {".txt", ".csv", ".json", ".jsonl", ".parquet"})
    if (value.size() > end.size() && value.compare(value.size() - end.size(), end.size(), end) == 0)
      return true;
  return false;
}

/// "write ..." with the given value, or with the form of one where it is none of the option's.
static std::string write(const std::string &form, std::string value) {
  const OptionRow *row = findOption(form.substr(1, form.find('=') - 1));
  if (!row || form.find('$') == std::string::npos || value.empty())
    return "write " + withValue(form, value);
  if (std::string own = ownValue(*row, value); !own.empty())
    value = own;
  if (row->kind == OptionKind::Bytes)
    value.erase(std::remove(value.begin(), value.end(), ' '), value.end());
  std::string shown = withValue(form, value), given = shown.substr(shown.find('=') + 1);
  if (std::string wrong = wrongValue(*row, given); !wrong.empty())
    return "write " + withValue(form, "") + "; " + wrong.substr(wrong.find(": ") + 2);
  if (row->name == std::string("data") || row->name == std::string("eval-data"))
    return "write " + withValue(form, isText(value) ? "" : value);
  return "write " + shown + (given == row->defaultValue ? ", which is the default" : "");
}

std::string dsopt::runtime::adviseOn(const std::string &name, const std::string &value) {
  std::string dashed = name;
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  static const std::set<std::string> nothing = {"false", "False", "none", "None", "no"};
  auto find = [&](const std::string &known) -> std::string {
    if (const OptionRow *row = findOption(known); row && row->kind == OptionKind::Flag)
      return ": write -" + known;
    else if (row)
      return ": " + write("-" + known + "=$", value);
    for (const ForeignOption &one : foreignOptions())
      if (known == one.name) {
        std::string note = one.note, form = one.write, of = std::string(" (of ") + one.of + "): ";
        if (!form.empty() && form.find('$') == std::string::npos && nothing.count(value))
          return of + "leave it out";
        return of + (form.empty() ? "" : write(form, value)) + (form.empty() || note.empty() ? "" : "; ") +
               note;
      }
    return "";
  };
  std::string advice = find(dashed);
  // Lightning's command line has trainer.max_epochs, optimizer.lr and the like.
  if (size_t dot = dashed.rfind('.'); advice.empty() && dot != std::string::npos)
    advice = find(dashed.substr(dot + 1));
  if (!advice.empty())
    return advice;
  const OptionRow *nearest = nearestOption(name);
  return nearest ? std::string("; did you mean -") + nearest->name + "?" : "; -help lists all options";
}
