//===- OptionsText.cpp - help, manual page and completion of the table ----===//

#include "dsopt/Runtime/Options.h"

#include <algorithm>

using namespace dsopt::runtime;

const std::vector<CommandWord> &dsopt::runtime::commandWords() {
  static const std::vector<CommandWord> words = {
      {"train", "run", "compile and train now (-run)"},
      {"eval", "eval", "the loss on -data, forward only (-eval)"},
      {"plan", "plan", "what would happen, in bytes for each rank (-plan)"},
      {"export", "eval",
       "write what a checkpoint holds: -resume=DIR with -save-weights=FILE or -save-onnx=FILE, and -data"},
      {"predict", "predict", "the model's outputs on -data, into -save-outputs=FILE.npz (-predict)"},
      {"generate", "generate", "go on from prompts, token by token (-generate)"},
      {"inspect", "inspect", "what is in a model, what it wants and what is in the way (-inspect)"},
      {"tokenize", "tokenize", "the ids of texts by the model's tokenizer, and back (-tokenize)"},
      {"report", "", "dsopt-report: the page of RUN.jsonl"},
      {"help", "help", "all options, or one: dsopt help lr"},
  };
  return words;
}

/// Whether `tool` takes an option.
static bool isFor(Tool tool, const OptionRow &row) {
  return row.state == OptionState::Ready &&
         (tool == Tool::Compiler || row.use == OptionUse::Run || row.use == OptionUse::Any);
}

/// The groups of options, in the order of the table.
static std::vector<std::string> groups() {
  std::vector<std::string> names;
  for (const OptionRow &row : optionTable())
    if (std::find(names.begin(), names.end(), row.group) == names.end())
      names.push_back(row.group);
  return names;
}

/// An option with the form of its value.
static std::string spelled(const OptionRow &row) {
  std::string name = std::string("-") + row.name, form = row.shownForm();
  return row.isFlagOr() ? name + "[=" + form + "]" : row.kind == OptionKind::Flag ? name : name + "=" + form;
}

std::string dsopt::runtime::optionsHelp(Tool tool, const std::map<std::string, std::string> &compiled) {
  std::string text;
  for (const std::string &group : groups()) {
    std::string lines;
    for (const OptionRow &row : optionTable()) {
      if (group != row.group || !isFor(tool, row))
        continue;
      std::string left = "  " + spelled(row);
      auto value = compiled.find(row.name);
      std::string byDefault = value != compiled.end() ? value->second : row.defaultValue;
      left += left.size() < 34 ? std::string(34 - left.size(), ' ') : "\n" + std::string(34, ' ');
      lines += left + row.help + (byDefault.empty() ? "" : " (" + byDefault + ")") +
               (row.repeatable() ? " (repeatable)" : "") + "\n";
    }
    if (!lines.empty())
      text += group + ":\n" + lines;
  }
  return text +
         "values follow = or are the next word; counts take k, M, G (1000), bytes K, M, G or KiB, MiB, GiB "
         "(1024) and KB, MB, GB (1000)\n";
}

/// What else there is to know of an option, as sentences.
static std::string remarksOn(const OptionRow &row) {
  std::string text;
  if (*row.defaultValue)
    text += std::string(" default: ") + row.defaultValue + ".";
  if (row.repeatable())
    text += " may be given several times.";
  if (row.isCompiledIn())
    text += " compiled in.";
  if (row.kind == OptionKind::Bytes)
    text += " K, M, G and KiB, MiB, GiB are powers of 1024, KB, MB, GB of 1000.";
  return text;
}

std::string dsopt::runtime::optionHelp(const OptionRow &row) {
  if (row.state == OptionState::Later)
    return spelled(row) + "\n  not available yet\n";
  std::string remarks = remarksOn(row);
  return spelled(row) + "\n  " + row.help + "\n" + (remarks.empty() ? "" : " " + remarks + "\n");
}

/// A text in which roff sees no commands.
static std::string roff(const std::string &text) {
  std::string result;
  for (char c : text)
    result += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c);
  return !result.empty() && (result[0] == '.' || result[0] == '\'') ? "\\&" + result : result;
}

std::string dsopt::runtime::optionsManual(Tool tool, const std::string &version) {
  std::string text = ".TH DSOPT 1 \"\" \"dsopt " + version +
                     "\"\n.SH NAME\ndsopt \\- a compiler for distributed training\n"
                     ".SH SYNOPSIS\n";
  if (tool == Tool::Compiler)
    text += ".B dsopt\n[WORD] MODEL.onnx|STAGE.mlir [options]\n.SH WORDS\n";
  else
    text += ".B PROGRAM\n\\-data=FILE [options]\n";
  if (tool == Tool::Compiler)
    for (const CommandWord &word : commandWords())
      text += std::string(".TP\n.B ") + word.name + "\n" + roff(word.help) + "\n";
  text += ".SH VALUES\nA value follows = or is the next word. The next word is no value if it begins with a "
          "dash and is no "
          "number; an option whose value may be left out takes only one of its choices.\n"
          ".SH OPTIONS\n";
  for (const std::string &group : groups()) {
    std::string lines;
    for (const OptionRow &row : optionTable())
      if (group == row.group && isFor(tool, row))
        lines += ".TP\n.B " + roff(spelled(row)) + "\n" + roff(row.help) + "." + roff(remarksOn(row)) + "\n";
    if (!lines.empty())
      text += ".SS " + group + "\n" + lines;
  }
  return text;
}

/// A word in single quotes for a shell; no text of the table has any.
static std::string shellQuoted(const std::string &text) {
  std::string result = "'";
  for (char c : text)
    result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

/// The fixed values of an option, separated by blanks.
static std::string choicesOf(const OptionRow &row) {
  std::string words;
  if (row.kind == OptionKind::Choice || row.kind == OptionKind::FlagOrChoice ||
      row.kind == OptionKind::OpenChoice)
    for (auto &[name, ready] : row.choices())
      if (ready)
        words += (words.empty() ? "" : " ") + name;
  return words;
}

static std::string bashCompletion(Tool tool, const std::string &command) {
  std::string names, cases, words;
  for (const OptionRow &row : optionTable()) {
    if (!isFor(tool, row))
      continue;
    names += std::string(names.empty() ? "-" : " -") + row.name +
             (row.kind == OptionKind::Flag || row.isFlagOr() ? "" : "=");
    if (std::string choices = choicesOf(row); !choices.empty())
      cases += std::string("    ") + row.name + ") COMPREPLY=($(compgen -W " + shellQuoted(choices) +
               " -- \"$value\")) ;;\n";
  }
  if (tool == Tool::Compiler)
    for (const CommandWord &word : commandWords())
      words += (words.empty() ? "" : " ") + std::string(word.name);
  return "_dsopt() {\n"
         "  local line=\"${COMP_LINE:0:COMP_POINT}\" word value option\n"
         "  word=\"${line##*[[:space:]]}\" value=\n"
         "  COMPREPLY=()\n"
         "  if [[ $word == -*=* ]]; then\n"
         "    option=\"${word%%=*}\" value=\"${word#*=}\"\n"
         "    option=\"${option#-}\" option=\"${option#-}\"\n"
         "    case \"$option\" in\n" +
         cases +
         "    *) COMPREPLY=($(compgen -f -- \"$value\")) ;;\n"
         "    esac\n"
         "  elif [[ $word == -* ]]; then\n"
         "    [[ $word == --* ]] && word=\"${word#-}\"\n"
         "    COMPREPLY=($(compgen -W " +
         shellQuoted(names) +
         " -- \"$word\"))\n"
         "    [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace\n"
         "  else\n"
         "    COMPREPLY=($(compgen -f -- \"$word\"))\n" +
         (words.empty() ? ""
                        : "    ((COMP_CWORD == 1)) && COMPREPLY+=($(compgen -W " + shellQuoted(words) +
                              " -- \"$word\"))\n") +
         "  fi\n"
         "}\n"
         "complete -o filenames -F _dsopt " +
         command + "\n";
}

static std::string zshCompletion(Tool tool, const std::string &command) {
  // In a specification brackets, colons and backslashes mean something.
  auto escaped = [](const std::string &text) {
    std::string result;
    for (char c : text)
      result += (c == '[' || c == ']' || c == ':' || c == '\\' ? "\\" : "") + std::string(1, c);
    return result;
  };
  std::string text = "#compdef " + command + "\n_dsopt() {\n  _arguments \\\n";
  for (const OptionRow &row : optionTable()) {
    if (!isFor(tool, row))
      continue;
    std::string choices = choicesOf(row), spec = row.repeatable() ? "*-" : "-";
    spec += row.name;
    bool takesValue = row.kind != OptionKind::Flag;
    spec += (takesValue && !row.isFlagOr() ? "=" : "") + std::string("[") + escaped(row.help) + "]";
    if (takesValue && !row.isFlagOr())
      spec += ":value:" + (choices.empty() ? "_files" : "(" + choices + ")");
    text += "    " + shellQuoted(spec) + " \\\n";
  }
  std::string words;
  if (tool == Tool::Compiler)
    for (const CommandWord &word : commandWords())
      words += (words.empty() ? "" : " ") + std::string(word.name);
  text += words.empty() ? ""
                        : "    " +
                              shellQuoted("1:word or model:{_alternative \"words:word:(" + words +
                                          ")\" \"files:model:_files\"}") +
                              " \\\n";
  return text + "    '*:file:_files'\n}\ncompdef _dsopt " + command + "\n";
}

static std::string fishCompletion(Tool tool, const std::string &command) {
  // Between single quotes backslashes mean something there.
  auto inQuotes = [](const std::string &text) {
    std::string result;
    for (char c : text)
      result += (c == '\'' || c == '\\' ? "\\" : "") + std::string(1, c);
    return "'" + result + "'";
  };
  std::string text, head = "complete -c " + command;
  if (tool == Tool::Compiler)
    for (const CommandWord &word : commandWords())
      text += head + " -n __fish_use_subcommand -a " + word.name + " -d " + inQuotes(word.help) + "\n";
  for (const OptionRow &row : optionTable()) {
    if (!isFor(tool, row))
      continue;
    std::string name = row.name, choices = choicesOf(row);
    text += head + (name.size() == 1 ? " -s " + name : " -o " + name + " -l " + name);
    if (row.kind != OptionKind::Flag && !row.isFlagOr())
      text += choices.empty() ? " -r -F" : " -x";
    text += (choices.empty() ? "" : " -a " + inQuotes(choices)) + " -d " + inQuotes(row.help) + "\n";
  }
  return text;
}

std::string dsopt::runtime::optionsCompletion(Tool tool, const std::string &shell,
                                              const std::string &command) {
  return shell == "fish"  ? fishCompletion(tool, command)
         : shell == "zsh" ? zshCompletion(tool, command)
                          : bashCompletion(tool, command);
}
