//===- DeepSpeedConfig.h - a DeepSpeed configuration as options -*- C++ -*-===//
//
// -config=ds_config.json in two halves: every key is checked against one table
// (DeepSpeedKeys.def), then what is left becomes options of dsopt with
// DeepSpeed's meaning. Options that were given on the command line win.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TOOLS_DSOPT_DEEPSPEEDCONFIG_H
#define DSOPT_TOOLS_DSOPT_DEEPSPEEDCONFIG_H

#include "CompileOptions.h"
#include "JsonPlaces.h"

namespace dsopt {

/// Keys that are there, known, of the right type and not "auto", by path.
class DeepSpeedConfig {
public:
  /// Reads and checks a file; everything wrong throws runtime::Error of status 1.
  explicit DeepSpeedConfig(const std::string &path);

  /// The value at `path`, or null if it is not given.
  const llvm::json::Value *find(const std::string &path) const;
  bool has(const std::string &path) const { return find(path) != nullptr; }
  /// "ds_config.json:3:5: path".
  std::string place(const std::string &path) const;
  /// "path (3:5)", for messages that name two places.
  std::string mention(const std::string &path) const;
  std::vector<std::string> paths() const;

  bool flag(const std::string &path) const;
  std::optional<int64_t> integer(const std::string &path) const;
  std::string text(const std::string &path) const;

  /// Lines for the user: what has no effect and why, one line for each reason.
  std::vector<std::string> warnings() const;
  void warn(const std::string &path, const std::string &reason);
  void warnWithout(const std::string &path, const std::string &reason) {
    warn(path, "has no effect: " + reason);
  }

private:
  void checkBlock(const std::string &path, const llvm::json::Object &block);
  void checkKey(const std::string &path, const llvm::json::Value &value);
  [[noreturn]] void refuseUnknown(const std::string &path) const;

  JsonFile file;
  std::map<std::string, const llvm::json::Value *> given;
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons; ///< with the paths they hold for
};

/// What a configuration asked for: an option, its value, and the place that said so.
struct ConfiguredOption {
  std::string option, value, place;
};

/// Reads the file of -config, if it is given, and sets the options it asks for that are not given. Prints
/// warnings unless `quiet`. Returns what it set, for messages.
std::vector<ConfiguredOption> applyConfig(runtime::ParsedOptions &options, const LauncherInfo &launcher,
                                          bool quiet);

/// docs/DeepSpeedConfig.md.
void printConfigKeys(llvm::raw_ostream &out);

/// A value as JSON text, without quotes around words.
std::string jsonText(const llvm::json::Value &value);

/// The `|`-separated words of a form, a same or an of.
std::vector<std::string> alternatives(llvm::StringRef text);

enum class KeyType { Block, Bool, Count, Integer, Number, Text, Choice, Pair, Any };
enum class KeyFate { Obeyed, Decided, Without, Later, Refused };

/// One row of the table.
struct KeyRow {
  const char *path;
  KeyType type;
  const char *form;
  KeyFate fate;
  const char *same, *of, *text;
};
llvm::ArrayRef<KeyRow> keyTable();
const KeyRow *findKey(llvm::StringRef path);

/// Whether a value asks for what happens anyway.
bool isSame(const KeyRow &row, const llvm::json::Value &value);

} // namespace dsopt

#endif // DSOPT_TOOLS_DSOPT_DEEPSPEEDCONFIG_H
