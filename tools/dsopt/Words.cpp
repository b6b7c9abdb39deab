//===- Words.cpp - `dsopt train MODEL` and `dsopt help` -------------------===//

#include "Words.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

#include <cerrno>
#include <cstring>
#include <unistd.h>

using namespace dsopt;
using runtime::CommandWord;
using runtime::Error;
using runtime::OptionRow;
using runtime::ParsedOptions;

static const CommandWord *findWord(llvm::StringRef name) {
  const auto &words = runtime::commandWords();
  auto found = llvm::find_if(words, [&](const CommandWord &word) { return name == word.name; });
  return found == words.end() ? nullptr : &*found;
}

/// What `dsopt help NAME` prints.
static std::string helpOn(std::string name) {
  name.erase(0, name.find_first_not_of('-'));
  name = name.substr(0, name.find('='));
  const OptionRow *row = runtime::findOption(name);
  const CommandWord *word = findWord(name);
  std::string text;
  if (word)
    text += std::string("dsopt ") + word->name + "\n  " + word->help + "\n";
  if (row)
    text += runtime::optionHelp(*row);
  if (text.empty())
    throw Error(1, "dsopt help " + name + ": no such option or word" + runtime::adviseOn(name, ""));
  return text;
}

/// Becomes dsopt-report, which lies beside this program.
[[noreturn]] static void becomeReport(char **arguments) {
  static int anchor;
  llvm::SmallString<256> tool(llvm::sys::fs::getMainExecutable("dsopt", &anchor));
  llvm::sys::path::remove_filename(tool);
  llvm::sys::path::append(tool, "dsopt-report");
  execv(tool.c_str(), arguments);
  throw Error(2, "dsopt report: cannot start " + tool.str().str() + ": " + std::strerror(errno));
}

std::optional<int> dsopt::parseWords(int argc, char **argv, ParsedOptions &options, llvm::raw_ostream &out) {
  const CommandWord *word = argc > 1 ? findWord(argv[1]) : nullptr;
  if (!word) {
    options = runtime::parseOptions(argc, argv, runtime::Tool::Compiler);
    return std::nullopt;
  }
  llvm::StringRef name = word->name;
  if (name == "help" && argc > 2) {
    for (int i = 2; i < argc; ++i)
      out << helpOn(argv[i]);
    return 0;
  }
  if (name == "report")
    becomeReport(argv + 1);
  options = runtime::parseOptions(argc - 1, argv + 1, runtime::Tool::Compiler);
  // Where both are given, the option says more (-plan=json).
  options.setDefault(word->option, "");
  if (name == "train" && options.has("eval"))
    throw Error(
        1,
        "dsopt train and -eval contradict each other: dsopt eval MODEL measures, dsopt train MODEL trains");
  if (name == "export" && !options.has("save-weights") && !options.has("save-onnx"))
    throw Error(1,
                "dsopt export needs -save-weights=FILE.safetensors or -save-onnx=FILE, and -resume=DIR, the "
                "checkpoint");
  return std::nullopt;
}
