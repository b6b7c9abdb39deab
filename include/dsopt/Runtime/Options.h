//===- Options.h - the command line of dsopt and trained programs -*- C++ -*-===//
//
// One table (Options.def) and one parser for both. Everything wrong is an Error
// of status 1 with one clear message.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_OPTIONS_H
#define DSOPT_RUNTIME_OPTIONS_H

#include "dsopt/Runtime/Error.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace dsopt::runtime {

enum class OptionUse { Run, Compile, Command, Any };
enum class OptionKind {
  Flag,
  Count,
  Bytes,
  Integer,
  Number,
  Text,
  Choice,
  NumberPair,
  TextList,
  PairList,
  FlagOrChoice,
  OpenChoice ///< plugins add values: checked by checkRegistered when they are loaded
};
enum class OptionState { Ready, Later };

/// One row of the table.
struct OptionRow {
  const char *name;
  OptionUse use;
  OptionKind kind;
  const char *form, *defaultValue, *group;
  OptionState state;
  const char *help;
  bool repeatable() const { return kind == OptionKind::TextList || kind == OptionKind::PairList; }
};

/// The whole table, in order.
const std::vector<OptionRow> &optionTable();
/// The row of `name` (no dashes), or null.
const OptionRow *findOption(const std::string &name);
/// The known option nearest to `name` by edit distance, or null if none is near.
const OptionRow *nearestOption(const std::string &name);

enum class Tool {
  Compiler, ///< dsopt: all options
  Program   ///< a trained program: run options; compile options are collected in `compiledIn`
};

/// What a command line says.
class ParsedOptions {
public:
  /// Given options by name; every value was checked against its row. Flags have the value "".
  std::map<std::string, std::vector<std::string>> values;
  std::vector<std::string> positionals;
  /// Program: compile options that were given, as spelled without dashes ("zero=3").
  std::vector<std::string> compiledIn;

  bool has(const std::string &name) const { return values.count(name) != 0; }
  /// Takes `value` as if given, unless the option is there already (the values compiled in).
  void setDefault(const std::string &name, const std::string &value);

  // What was given, else the table's default, else `otherwise`.
  std::string text(const std::string &name, const std::string &otherwise = "") const;
  /// Counts and bytes, with their suffixes resolved.
  int64_t integer(const std::string &name, int64_t otherwise = 0) const;
  double number(const std::string &name, double otherwise = 0) const;
  std::pair<double, double> numberPair(const std::string &name) const;
  std::vector<std::string> list(const std::string &name) const;
  std::vector<std::pair<std::string, std::string>> pairList(const std::string &name) const;
};

/// Parses `argv[1...]`. One or two dashes; `-name=value`; `-o FILE` also as two words; `-` alone is a
/// positional; after `--` everything is.
ParsedOptions parseOptions(int argc, const char *const *argv, Tool tool);

/// Throws unless `value` of an OpenChoice is one of `registered`, what there is with all plugins loaded.
void checkRegistered(const OptionRow &row, const std::string &value,
                     const std::vector<std::string> &registered);

/// All options of `tool` in groups. `compiled` replaces defaults.
std::string optionsHelp(Tool tool, const std::map<std::string, std::string> &compiled = {});

/// `16`, `1k`, `2M`: suffixes are powers of `base` (1000 or 1024). False if it is no such number.
bool parseSize(const std::string &text, int64_t base, int64_t &value);

/// Number of edits between two words (a swap of neighbours is one).
int editDistance(const std::string &a, const std::string &b);

} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_OPTIONS_H
