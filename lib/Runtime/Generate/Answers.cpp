//===- Answers.cpp - what goes out of a run --------------------------------===//

#include "Generate/Answers.h"

#include "Data/NpzWriter.h"
#include "Generate/TextAnswer.h"
#include "dsopt/Runtime/JsonText.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <numeric>

using namespace dsopt::runtime;

/// Writes text to standard output at once: somebody may wait for it.
static void say(const std::string &text) {
  if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0)
    throw Error(StatusFailure, std::string("standard output: writing failed: ") + std::strerror(errno));
}

namespace {
/// `tokens` [answers, N], filled up with -1, and the logits that chose them.
class AnswerFile {
public:
  AnswerFile(const GenerateSettings &settings, int64_t answers, int64_t vocabulary)
      : path(settings.saveOutputs), answers(answers), longest(settings.answer.newTokens),
        vocabulary(vocabulary), tokens(answers * longest, -1),
        logits(settings.saveLogits ? answers * longest * vocabulary : 0) {}

  void take(const Sequence &sequence, const float *own) {
    int64_t at = sequence.answer * longest + sequence.chosen() - 1;
    tokens[at] = sequence.tokens.back();
    if (!logits.empty())
      std::memcpy(&logits[at * vocabulary], own, vocabulary * sizeof(float));
  }
  void write() const {
    NpzWriter file(path);
    size_t number = file.add("tokens", "i64", {answers, longest});
    file.take(number, reinterpret_cast<const char *>(tokens.data()), tokens.size() * sizeof(int64_t));
    if (!logits.empty()) {
      number = file.add("logits", "f32", {answers, longest, vocabulary});
      file.take(number, reinterpret_cast<const char *>(logits.data()), logits.size() * sizeof(float));
    }
    file.finish();
  }

private:
  std::string path;
  int64_t answers, longest, vocabulary;
  std::vector<int64_t> tokens;
  std::vector<float> logits;
};

/// The logarithms of tokens' probabilities before any processor: {"logprob":-0.1,"top":[[5,-0.1],..]}.
std::string describeChoice(const float *logits, int64_t vocabulary, int64_t token, int64_t count) {
  float most = *std::max_element(logits, logits + vocabulary);
  double sum = 0;
  for (int64_t i = 0; i < vocabulary; ++i)
    sum += std::exp(static_cast<double>(logits[i] - most));
  auto logarithm = [&](int64_t i) {
    return jsonNumber(static_cast<double>(logits[i] - most) - std::log(sum));
  };
  std::vector<int64_t> order(vocabulary);
  std::iota(order.begin(), order.end(), 0);
  count = std::min(count, vocabulary);
  std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](int64_t a, int64_t b) {
    return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
  });
  std::string text =
      "{\"token\":" + std::to_string(token) + ",\"logprob\":" + logarithm(token) + ",\"top\":[";
  for (int64_t i = 0; i < count; ++i)
    text += (i ? ",[" : "[") + std::to_string(order[i]) + "," + logarithm(order[i]) + "]";
  return text + "]}";
}

/// Where answers go: one alone as its text comes; several, or with logarithms of probabilities, as lines of
/// JSON in the order of prompts. Without a tokenizer tokens stand for their text.
class AnswerWriter : public AnswerSink {
public:
  AnswerWriter(const GenerateSettings &settings, int64_t answers, int64_t vocabulary)
      : settings(settings), vocabulary(vocabulary), isPlain(answers == 1 && !settings.logprobs),
        answers(answers) {
    if (!settings.saveOutputs.empty())
      file.emplace(settings, answers, vocabulary);
    for (Answer &answer : this->answers)
      if (settings.tokenizer)
        answer.text.emplace(*settings.tokenizer, settings.stops);
  }

  bool token(const Sequence &sequence, const float *logits) override {
    Answer &answer = answers[sequence.answer];
    if (file)
      file->take(sequence, logits);
    if (settings.logprobs)
      answer.choices += (answer.choices.empty() ? "" : ",") +
                        describeChoice(logits, vocabulary, sequence.tokens.back(), *settings.logprobs);
    if (settings.echoes && sequence.chosen() == 1)
      add(answer, settings.prompts[sequence.prompt].text);
    if (!answer.text) {
      add(answer, (answer.said.empty() ? "" : isPlain ? " " : ",") + std::to_string(sequence.tokens.back()));
      return false;
    }
    add(answer, answer.text->add(sequence.tokens.back()));
    return answer.text->hasStopped();
  }

  void done(const Sequence &sequence) override {
    Answer &answer = answers[sequence.answer];
    if (answer.text)
      add(answer, answer.text->finish());
    answer.isDone = true;
    answer.prompt = sequence.prompt;
    for (; !isPlain && next < answers.size() && answers[next].isDone; ++next)
      if (isShown())
        say(line(answers[next]) + "\n");
  }

  /// All that there is, also where a run was ended before its end.
  void finish() {
    if (isPlain && isShown())
      say("\n");
    if (file)
      file->write();
  }
  const std::string &text(size_t answer) const { return answers[answer].said; }

private:
  struct Answer {
    std::optional<TextAnswer> text;
    std::string said, choices;
    int64_t prompt = 0;
    bool isDone = false;
  };
  /// What is saved as tokens alone is not shown, too.
  bool isShown() const { return !file || settings.tokenizer; }
  void add(Answer &answer, const std::string &text) {
    answer.said += text;
    if (isPlain && isShown() && !text.empty())
      say(text);
  }
  std::string line(const Answer &answer) const {
    std::string text = "{\"prompt\":" + std::to_string(answer.prompt);
    text += settings.tokenizer ? ",\"text\":" + jsonString(answer.said) : ",\"tokens\":[" + answer.said + "]";
    return text + (settings.logprobs ? ",\"choices\":[" + answer.choices + "]}" : "}");
  }

  const GenerateSettings &settings;
  int64_t vocabulary;
  bool isPlain;
  std::vector<Answer> answers;
  size_t next = 0; ///< that is to be shown
  std::optional<AnswerFile> file;
};
} // namespace

static void sayRates(const GenerateCounts &counts) {
  auto rate = [](int64_t tokens, double ms) { return ms > 0 ? static_cast<double>(tokens) * 1e3 / ms : 0; };
  std::fprintf(stderr,
               "dsopt: %lld tokens of prompts in %.1f ms (%.1f a second), %lld behind them in %.1f ms (%.1f "
               "a second)\n",
               (long long)counts.given, counts.givenMs, rate(counts.given, counts.givenMs),
               (long long)counts.chosen, counts.chosenMs, rate(counts.chosen, counts.chosenMs));
}

/// Answers the prompts that settings have; `text` becomes that of the first answer.
static bool answerAll(Session &session, Engine &engine, const Program &program, RowSource &source,
                      GenerateSettings &settings, std::string *text = nullptr) {
  bool first = engine.rank() == 0;
  Sequences sequences(first ? makeSequences(program, settings) : std::vector<Sequence>(), program.sequences);
  AnswerWriter output(settings, sequences.size(), program.outputs[0].shape.back());
  GenerateCounts counts = generate(session, engine, program, source, sequences, settings.answer, output);
  if (!first)
    return counts.stopped;
  output.finish();
  if (text)
    *text = output.text(0);
  if (!settings.quiet)
    sayRates(counts);
  return counts.stopped;
}

/// Lines of a terminal, one after the other; with -chat each is a turn behind all before it.
static bool converse(Session &session, Engine &engine, const Program &program, RowSource &source,
                     GenerateSettings &settings) {
  bool first = engine.rank() == 0;
  std::string turns = settings.system.empty() ? "" : chatTurn("system", settings.system);
  std::vector<char> all(engine.size());
  for (std::string line, answer;;) {
    if (first)
      std::fputs("> ", stderr);
    char goesOn = first && std::getline(std::cin, line);
    session.exchange(&goesOn, 1, all.data());
    if (!all[0])
      return false;
    if (first && settings.isChat) {
      turns += (turns.empty() ? "" : ",") + chatTurn("user", line);
      settings.prompts = {promptOfChat(settings, turns)};
    } else if (first) {
      std::vector<int32_t> ids = settings.tokenizer->encode(line);
      settings.prompts = {{{ids.begin(), ids.end()}, line}};
    }
    if (answerAll(session, engine, program, source, settings, &answer))
      return true;
    turns += "," + chatTurn("assistant", answer);
  }
}

bool dsopt::runtime::answerPrompts(Session &session, Engine &engine, const Program &program,
                                   RowSource &source, GenerateSettings &settings) {
  return settings.isInteractive ? converse(session, engine, program, source, settings)
                                : answerAll(session, engine, program, source, settings);
}
