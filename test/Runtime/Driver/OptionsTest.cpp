//===- OptionsTest.cpp - the command line's table and parser --------------===//

#include "dsopt/Runtime/Options.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>

using namespace dsopt::runtime;

static ParsedOptions parse(std::vector<const char *> words, Tool tool = Tool::Compiler) {
  words.insert(words.begin(), "dsopt");
  return parseOptions(static_cast<int>(words.size()), words.data(), tool);
}

static std::string message(std::vector<const char *> words, Tool tool = Tool::Compiler) {
  try {
    parse(words, tool);
  } catch (const Error &error) {
    EXPECT_EQ(error.status, StatusInput);
    return error.what();
  }
  return "no error";
}

TEST(Options, NamesAreUnique) {
  std::set<std::string> names;
  for (const OptionRow &row : optionTable())
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
}

TEST(Options, DefaultsPassTheirOwnChecks) {
  for (const OptionRow &row : optionTable())
    if (*row.defaultValue && row.state == OptionState::Ready) {
      std::string word = std::string("-") + row.name + "=" + row.defaultValue;
      EXPECT_EQ(message({word.c_str()}), "no error") << word;
    }
}

TEST(Options, OneOrTwoDashesAndPositionals) {
  ParsedOptions options = parse({"model.onnx", "-zero=3", "--pp=4", "-run", "-o", "out", "--", "-x"});
  EXPECT_EQ(options.integer("zero"), 3);
  EXPECT_EQ(options.integer("pp"), 4);
  EXPECT_EQ(options.text("o"), "out");
  EXPECT_TRUE(options.has("run"));
  EXPECT_FALSE(options.has("dp"));
  EXPECT_EQ(options.positionals, (std::vector<std::string>{"model.onnx", "-x"}));
}

TEST(Options, SizesAndDefaults) {
  EXPECT_EQ(parse({"-device-memory=2G"}).integer("device-memory"), int64_t(2) << 30);
  EXPECT_EQ(parse({"-steps=2k"}).integer("steps"), 2000);
  EXPECT_EQ(parse({}).number("lr"), 0.001);
  EXPECT_EQ(parse({}).numberPair("betas"), std::make_pair(0.9, 0.999));
  EXPECT_EQ(parse({"-betas=0.8,0.95"}).numberPair("betas"), std::make_pair(0.8, 0.95));
  EXPECT_EQ(parse({}).integer("dp", 7), 7);
}

TEST(Options, ValuesMayBeTheNextWord) {
  ParsedOptions options =
      parse({"-zero", "3", "--lr", "0.5", "-run", "model.onnx", "-freeze", "*.bias", "-data", "-"});
  EXPECT_EQ(options.integer("zero"), 3);
  EXPECT_EQ(options.number("lr"), 0.5);
  EXPECT_EQ(options.list("freeze"), std::vector<std::string>{"*.bias"});
  EXPECT_EQ(options.text("data"), "-");
  EXPECT_EQ(options.positionals, std::vector<std::string>{"model.onnx"});
  // What begins with a dash is a value only if it is a number.
  EXPECT_EQ(message({"-lr", "-1"}), "option -lr: expected a number of 0 or more, got '-1'");
  EXPECT_EQ(message({"-lr", "-run"}), "option -lr needs a value: -lr=X");
  EXPECT_EQ(message({"-lr", "--", "x"}), "option -lr needs a value: -lr=X");
}

TEST(Options, WhereAValueMayBeLeftOutOnlyAChoiceIsTaken) {
  ParsedOptions options = parse({"-plan", "model.onnx", "-list-parameters", "json"});
  EXPECT_EQ(options.text("plan"), "");
  EXPECT_EQ(options.text("list-parameters"), "json");
  EXPECT_EQ(options.positionals, std::vector<std::string>{"model.onnx"});
}

TEST(Options, BytesAsPeopleWriteThem) {
  auto bytes = [](const char *text) {
    int64_t value = -1;
    return parseBytes(text, value) ? value : -1;
  };
  EXPECT_EQ(bytes("12"), 12);
  EXPECT_EQ(bytes("12B"), 12);
  for (const char *text : {"1M", "1m", "1MiB", "1mib"})
    EXPECT_EQ(bytes(text), 1 << 20) << text;
  for (const char *text : {"1MB", "1mb"})
    EXPECT_EQ(bytes(text), 1000000) << text;
  EXPECT_EQ(bytes("1.5GiB"), int64_t(3) << 29);
  EXPECT_EQ(bytes("0.5kB"), 500);
  EXPECT_EQ(bytes("2T"), int64_t(2) << 40);
  for (const char *text : {"", "M", "1.5", "1.M", ".5M", "1..5M", "1Mb", "1MiBs", "1 M", "-1", "+1", "1X",
                           "9999999999T", "9.9e9G"})
    EXPECT_EQ(bytes(text), -1) << text;
  EXPECT_EQ(parse({"-device-memory", "1GB"}).integer("device-memory"), 1000000000);
  EXPECT_EQ(message({"-device-memory=1Mb"}), "option -device-memory: expected a number of bytes such as "
                                             "512M, 1.5GiB (M and MiB: 2^20) or 16GB (10^9), got '1Mb'");
}

TEST(Options, OtherToolsNamesAreTaught) {
  EXPECT_EQ(message({"--learning_rate=3e-4"}),
            "unknown option --learning_rate (of transformers): write -lr=3e-4");
  EXPECT_EQ(message({"--learning_rate", "3e-4"}),
            "unknown option --learning_rate (of transformers): write -lr=3e-4");
  EXPECT_EQ(message({"--max_steps", "-run"}), "unknown option --max_steps (of transformers): write -steps=N");
  EXPECT_EQ(message({"-adam-beta1=0.8"}),
            "unknown option -adam-beta1 (of transformers): write -betas=0.8,0.999; both of them");
  EXPECT_EQ(message({"--save_every=5"}), "unknown option --save_every: write -save-every=5");
  EXPECT_EQ(message({"--log_norms"}), "unknown option --log_norms: write -log-norms");
}

/// Other tools' values are not ours, and mean one that there is.
TEST(Options, OtherToolsValuesAreTaught) {
#define DSOPT_FOREIGN_VALUE(option, foreign, own)                                                            \
  EXPECT_EQ(wrongValue(*findOption(option), own), "");                                                       \
  EXPECT_EQ(ownValue(*findOption(option), foreign), own) << foreign;
#include "dsopt/Runtime/ForeignOptions.def"
  EXPECT_EQ(ownValue(*findOption("precision"), "torch.bfloat16"), "bf16");
  EXPECT_EQ(ownValue(*findOption("optimizer"), "SGD"), "sgd");
  EXPECT_EQ(ownValue(*findOption("optimizer"), "rmsprop"), "");
  EXPECT_EQ(message({"--max_steps=1.5"}),
            "unknown option --max_steps (of transformers): write -steps=N; expected a "
            "whole number of 1 or more, got '1.5'");
  EXPECT_EQ(message({"--memory", "1 GB"}),
            "unknown option --memory (of many scripts): write -device-memory=1GB; "
            "bytes of a rank's device");
  EXPECT_EQ(message({"-device-memory", "1 GB"}),
            "option -device-memory: write -device-memory=1GB without a space, got "
            "'1 GB'");
  EXPECT_EQ(message({"--bf16", "False"}), "unknown option --bf16 (of transformers): leave it out");
}

/// What is advised is an option, and its fixed value is one that it takes.
TEST(Options, AdviceCanBeFollowed) {
  std::set<std::string> names;
  for (const ForeignOption &one : foreignOptions()) {
    EXPECT_TRUE(names.insert(one.name).second) << one.name;
    EXPECT_EQ(findOption(one.name), nullptr) << one.name;
    std::string write = one.write;
    EXPECT_TRUE(*one.note || !write.empty()) << one.name;
    static const std::regex option("(^|[^a-z-])-([a-z][a-z-]+)");
    std::string note = one.note;
    for (std::sregex_iterator at(note.begin(), note.end(), option), end; at != end; ++at)
      EXPECT_TRUE(findOption((*at)[2]) && findOption((*at)[2])->state == OptionState::Ready)
          << one.name << ": " << note;
    if (write.empty())
      continue;
    const OptionRow *row = findOption(write.substr(1, write.find('=') - 1));
    ASSERT_NE(row, nullptr) << one.name;
    EXPECT_EQ(row->state, OptionState::Ready) << one.name;
    bool isOpen = write.find('$') != std::string::npos || write.find('|') != std::string::npos ||
                  write.find('N') != std::string::npos || write.find("FILE") != std::string::npos;
    if (!isOpen)
      EXPECT_EQ(message({write.c_str()}), "no error") << one.name;
  }
}

TEST(Options, RepeatedOnesCollectOthersMustAgree) {
  ParsedOptions options = parse(
      {"-freeze=a.*", "-freeze=b", "-lr=2", "-lr=2", "-run", "-run", "-dim=batch=4", "-lr-scale=*.w=0.5"});
  EXPECT_EQ(options.list("freeze"), (std::vector<std::string>{"a.*", "b"}));
  EXPECT_EQ(options.list("lr"), (std::vector<std::string>{"2"}));
  EXPECT_EQ(message({"-steps=1", "-steps", "2"}),
            "-steps=1 and -steps=2 contradict each other: -steps takes one value");
  EXPECT_EQ(message({"-plan", "-plan=json"}),
            "-plan and -plan=json contradict each other: -plan takes one value");
  EXPECT_EQ(options.pairList("dim")[0], std::make_pair(std::string("batch"), std::string("4")));
  EXPECT_EQ(options.pairList("lr-scale")[0].first, "*.w");
}

TEST(Options, MisspeltOnesNameTheNearest) {
  EXPECT_EQ(message({"-zeor=3"}), "unknown option -zeor; did you mean -zero?");
  EXPECT_EQ(message({"-micro-batch=2"}), "unknown option -micro-batch; did you mean -micro-batches?");
  EXPECT_EQ(message({"-xyzzyxyzzy"}), "unknown option -xyzzyxyzzy; -help lists all options");
  EXPECT_EQ(message({"-accumulate=locale"}),
            "option -accumulate: expected one of local|sharded, got 'locale'; did you mean local?");
}

TEST(Options, PluginsAddChoices) {
  auto problem = [](const std::string &value, const std::vector<std::string> &registered) -> std::string {
    EXPECT_EQ(message({("-schedule=" + value).c_str()}), "no error");
    try {
      checkRegistered(*findOption("schedule"), value, registered);
    } catch (const Error &error) {
      EXPECT_EQ(error.status, StatusInput);
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(problem("gpipe", {"1f1b", "gpipe"}), "no error");
  EXPECT_EQ(problem("mine", {"1f1b", "gpipe", "mine"}), "no error");
  EXPECT_EQ(problem("mine", {"1f1b", "gpipe"}), "option -schedule: expected one of 1f1b|gpipe, got 'mine'");
  EXPECT_EQ(problem("gpipes", {"1f1b", "gpipe", "mine"}),
            "option -schedule: expected one of 1f1b|gpipe|mine, got 'gpipes'; did you mean gpipe?");
  EXPECT_EQ(problem("zero-bubble", {"1f1b", "gpipe"}), "option -schedule=zero-bubble is not available yet");
  EXPECT_EQ(problem("zero-bubble", {"1f1b", "gpipe", "zero-bubble"}), "no error");
  EXPECT_EQ(message({"-schedule="}), "option -schedule: expected gpipe|1f1b|interleaved, got ''");
}

TEST(Options, WhatIsNotThereYetSaysSo) {
  EXPECT_EQ(message({"-ep=2"}), "option -ep is not available yet");
  EXPECT_EQ(message({"-lr-schedule=wsd"}), "option -lr-schedule=wsd is not available yet");
}

TEST(Options, ValuesAreChecked) {
  EXPECT_EQ(message({"-dp=0"}), "option -dp: expected a whole number of 1 or more, got '0'");
  EXPECT_EQ(message({"-dp=2x"}), "option -dp: expected a whole number of 1 or more, got '2x'");
  EXPECT_EQ(message({"-steps=99999999999G"}),
            "option -steps: expected a whole number of 1 or more, got '99999999999G'");
  EXPECT_EQ(message({"-lr=fast"}), "option -lr: expected a number, got 'fast'");
  EXPECT_EQ(message({"-lr=-1"}), "option -lr: expected a number of 0 or more, got '-1'");
  EXPECT_EQ(message({"-lr"}), "option -lr needs a value: -lr=X");
  EXPECT_EQ(message({"-quiet=1"}), "option -quiet takes no value, got '1'");
  EXPECT_EQ(message({"-betas=0.9"}),
            "option -betas: expected two numbers from 0 to below 1, as in 0.9,0.999, got '0.9'");
}

TEST(Options, ProgramsCollectCompileOptions) {
  ParsedOptions options = parse({"-lr=0.1", "-zero=3", "-plan", "--pp", "2"}, Tool::Program);
  EXPECT_EQ(options.compiledIn, (std::vector<std::string>{"zero=3", "plan", "pp=2"}));
  EXPECT_EQ(options.number("lr"), 0.1);
}

TEST(Options, HelpHasGroupsAndCompiledValues) {
  std::string help = optionsHelp(Tool::Program, {{"lr", "0.25"}});
  EXPECT_NE(help.find("optimizer:\n"), std::string::npos);
  EXPECT_NE(help.find("(0.25)"), std::string::npos);
  EXPECT_EQ(help.find("-zero="), std::string::npos);
  EXPECT_NE(optionsHelp(Tool::Compiler).find("-zero=0|1|2|3"), std::string::npos);
}

TEST(Options, CompletionAndManualHaveEveryOption) {
  for (Tool tool : {Tool::Compiler, Tool::Program}) {
    std::string manual = optionsManual(tool, "1"), bash = optionsCompletion(tool, "bash", "dsopt"),
                zsh = optionsCompletion(tool, "zsh", "dsopt");
    // The words that an option is completed from.
    size_t names = bash.find("compgen -W '-");
    bash = bash.substr(names, bash.find(" -- ", names) - names);
    for (const OptionRow &row : optionTable()) {
      bool isThere = row.state == OptionState::Ready &&
                     (tool == Tool::Compiler || row.use == OptionUse::Run || row.use == OptionUse::Any);
      std::string spelled;
      for (const char *at = row.name; *at; ++at)
        spelled += *at == '-' ? "\\-" : std::string(1, *at);
      auto has = [&](const std::string &text, const std::string &start) {
        for (const char *next : {"\n", "=", "[", " ", "'"})
          if (text.find(start + next) != std::string::npos)
            return true;
        return false;
      };
      EXPECT_EQ(has(manual, ".B \\-" + spelled), isThere) << row.name;
      EXPECT_EQ(has(bash, std::string(" -") + row.name) || has(bash, std::string("'-") + row.name), isThere)
          << row.name;
      EXPECT_EQ(has(zsh, std::string("    '-") + row.name) || has(zsh, std::string("    '*-") + row.name),
                isThere)
          << row.name;
    }
  }
}

/// What ranks compare has one spelling; a new option is compared unless it is named among the others.
TEST(Options, RanksCompareMeanings) {
  ParsedOptions options = parse({"m.onnx", "-lr=3e-3", "-betas=0.90,.99", "-save-every=1k", "-shuffle"});
  auto meaning = [&](const char *name) { return options.meaning(*findOption(name)); };
  EXPECT_EQ(meaning("lr"), "0.003");
  EXPECT_EQ(meaning("betas"), "0.9,0.99");
  EXPECT_EQ(meaning("save-every"), "1000");
  EXPECT_EQ(meaning("shuffle"), "given");
  EXPECT_EQ(meaning("pad"), "not given");
  EXPECT_EQ(meaning("resume"), "not given");
  EXPECT_EQ(meaning("seed"), "0");
  int others = 0;
  for (const OptionRow &row : optionTable()) {
    others += row.ranks != AmongRanks::Equal;
    EXPECT_TRUE(row.ranks == AmongRanks::Equal || row.use == OptionUse::Run) << row.name;
  }
  EXPECT_EQ(others, 20);
}

TEST(Options, HelpOfOne) {
  EXPECT_EQ(optionHelp(*findOption("pp")), "-pp=N\n  pipeline stages\n  default: 1. compiled in.\n");
  EXPECT_EQ(optionHelp(*findOption("ep")), "-ep=N\n  not available yet\n");
}

TEST(Options, ProgramsKeepOneWordForEachOption) {
  std::vector<const char *> words{"x",   "m.onnx", "-zero",  "3",      "--lr=1", "-o",
                                  "out", "-plan",  "n.onnx", "-quiet", "-train", "a"};
  EXPECT_EQ(spelledCommand("dsopt", static_cast<int>(words.size()), words.data()),
            "dsopt m.onnx -zero=3 --lr=1 -o out -plan n.onnx -quiet -train=a");
  words = {"x", "a b.onnx", "-save", "it's", "-data=a b", "-freeze=*w"};
  EXPECT_EQ(spelledCommand("dsopt", static_cast<int>(words.size()), words.data()),
            "dsopt 'a b.onnx' -save='it'\\''s' -data='a b' -freeze=*w");
}
