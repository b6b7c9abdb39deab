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

enum class OptionUse { Run, Compile, Schedule, Command, Any };
enum class OptionKept { No, Kept, Built };
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
  FlagOrList, ///< repeatable; its value can be left out
  OpenChoice  ///< plugins add values: checked by checkRegistered when they are loaded
};
enum class OptionState { Ready, Later };
/// How the ranks of a run may be given an option.
enum class AmongRanks {
  Equal,    ///< with one value
  Contents, ///< with others that come to the same: paths whose files have the same bytes
  Own       ///< with one of its own: what its machine has, and what the first rank alone writes or prints
};

/// One row of the table.
struct OptionRow {
  const char *name;
  OptionUse use;
  OptionKept kept;
  AmongRanks ranks;
  OptionKind kind;
  const char *form, *defaultValue, *group;
  OptionState state;
  const char *help;
  bool isCompiledIn() const { return use == OptionUse::Compile || use == OptionUse::Schedule; }
  bool repeatable() const {
    return kind == OptionKind::TextList || kind == OptionKind::PairList || kind == OptionKind::FlagOrList;
  }
  /// Whether nothing but `=` says that a value follows, if one does.
  bool isFlagOr() const { return kind == OptionKind::FlagOrChoice || kind == OptionKind::FlagOrList; }
  /// The values of a choice: name, and whether it exists.
  std::vector<std::pair<std::string, bool>> choices() const;
  /// The form without its marks and without what does not exist yet.
  std::string shownForm() const;
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
  /// The value of any option in one spelling, for messages too: "0.001" of 1e-3, "not given".
  std::string meaning(const OptionRow &row) const;
  std::vector<std::pair<std::string, std::string>> pairList(const std::string &name) const;
};

/// Parses `argv[1...]`. One or two dashes; `-name=value` or `-name value`; `-` alone is a positional; after
/// `--` everything is. A flag takes no next word, a flag or choice (-plan) only one of its choices, and what
/// needs a value none that begins with a dash and is no number. Two values of an option that does not collect
/// are refused.
ParsedOptions parseOptions(int argc, const char *const *argv, Tool tool);

/// A word of a command line as a shell takes it: in quotes where it has to be, of an option its value alone.
std::string shellWord(const std::string &word);

/// A command line as programs keep it, every option with its value in one word (but for `-o FILE`).
std::string spelledCommand(const std::string &tool, int argc, const char *const *argv);

/// Throws unless `value` of an OpenChoice is one of `registered`, what there is with all plugins loaded.
void checkRegistered(const OptionRow &row, const std::string &value,
                     const std::vector<std::string> &registered);

/// All options of `tool` in groups. `compiled` replaces defaults.
std::string optionsHelp(Tool tool, const std::map<std::string, std::string> &compiled = {});

/// A word that says what to do with a model, in the place of an option: `dsopt train MODEL`.
struct CommandWord {
  const char *name, *option, *help;
};
const std::vector<CommandWord> &commandWords();

/// One option in full, with its default and where it counts; several lines.
std::string optionHelp(const OptionRow &row);

/// A manual page (roff) of all options of `tool`.
std::string optionsManual(Tool tool, const std::string &version);

/// A script that completes options and their choices in `shell` (bash, zsh or fish) for `command`.
std::string optionsCompletion(Tool tool, const std::string &shell, const std::string &command);

/// Whether a word behind an option can be its value: it does not begin with a dash, or is a number.
bool isValueWord(const std::string &word);

/// Another tool's name of an option, and what to write here (ForeignOptions.def).
struct ForeignOption {
  const char *name, *of, *write, *note;
};
const std::vector<ForeignOption> &foreignOptions();

/// The value of an option with fixed ones that another tool's value means (bfloat16, AdamW), empty if there
/// is none.
std::string ownValue(const OptionRow &row, std::string value);

/// Why an option does not take a value, empty if it does.
std::string wrongValue(const OptionRow &row, const std::string &value);

/// What to write instead of an option that there is not, to go behind its name: another tool's name for one,
/// or the nearest of the table.
std::string adviseOn(const std::string &name, const std::string &value);

/// `16`, `1k`, `2M`: suffixes are powers of `base` (1000 or 1024). False if it is no such number.
bool parseSize(const std::string &text, int64_t base, int64_t &value);

/// Bytes: `512M`, `1.5GiB` (powers of 1024) or `16GB` (powers of 1000). False if it is no such number.
bool parseBytes(const std::string &text, int64_t &value);

/// Number of edits between two words (a swap of neighbours is one).
int editDistance(const std::string &a, const std::string &b);

} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_OPTIONS_H
