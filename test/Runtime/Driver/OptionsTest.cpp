//===- OptionsTest.cpp - the command line's table and parser --------------===//

#include "dsopt/Runtime/Options.h"

#include <gtest/gtest.h>

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

TEST(Options, RepeatedOnesCollectOthersTakeTheLast) {
  ParsedOptions options =
      parse({"-freeze=a.*", "-freeze=b", "-lr=1", "-lr=2", "-dim=batch=4", "-lr-scale=*.w=0.5"});
  EXPECT_EQ(options.list("freeze"), (std::vector<std::string>{"a.*", "b"}));
  EXPECT_EQ(options.number("lr"), 2);
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
  EXPECT_EQ(message({"-tp=2"}), "option -tp is not available yet");
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
  ParsedOptions options = parse({"-lr=0.1", "-zero=3", "-plan"}, Tool::Program);
  EXPECT_EQ(options.compiledIn, (std::vector<std::string>{"zero=3", "plan"}));
  EXPECT_EQ(options.number("lr"), 0.1);
}

TEST(Options, HelpHasGroupsAndCompiledValues) {
  std::string help = optionsHelp(Tool::Program, {{"lr", "0.25"}});
  EXPECT_NE(help.find("optimizer:\n"), std::string::npos);
  EXPECT_NE(help.find("(0.25)"), std::string::npos);
  EXPECT_EQ(help.find("-zero="), std::string::npos);
  EXPECT_NE(optionsHelp(Tool::Compiler).find("-zero=0|1|2|3"), std::string::npos);
}
