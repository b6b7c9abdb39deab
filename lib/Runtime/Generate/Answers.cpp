//===- Answers.cpp - what goes out of a run --------------------------------===//

#include "Generate/Answers.h"

#include "Data/NpzWriter.h"
#include "Generate/Prompts.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

using namespace dsopt::runtime;

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
} // namespace

static void sayRates(const GenerateCounts &counts) {
  auto rate = [](int64_t tokens, double ms) { return ms > 0 ? static_cast<double>(tokens) * 1e3 / ms : 0; };
  std::fprintf(stderr,
               "dsopt: %lld tokens of prompts in %.1f ms (%.1f a second), %lld behind them in %.1f ms (%.1f "
               "a second)\n",
               (long long)counts.given, counts.givenMs, rate(counts.given, counts.givenMs),
               (long long)counts.chosen, counts.chosenMs, rate(counts.chosen, counts.chosenMs));
}

/// One answer a line, as numbers.
static void printTokens(Sequences &sequences) {
  for (int64_t i = 0; i < sequences.size(); ++i) {
    const Sequence &sequence = sequences[i];
    std::string line;
    for (size_t at = sequence.given; at < sequence.tokens.size(); ++at)
      line += (line.empty() ? "" : " ") + std::to_string(sequence.tokens[at]);
    if (std::printf("%s\n", line.c_str()) < 0)
      break;
  }
  if (std::fflush(stdout) != 0)
    throw Error(StatusFailure, std::string("standard output: writing failed: ") + std::strerror(errno));
}

bool dsopt::runtime::answerPrompts(Session &session, Engine &engine, const Program &program,
                                   RowSource &source, GenerateSettings &settings) {
  bool first = engine.rank() == 0;
  Sequences sequences(makeSequences(program, settings, readPromptIds(settings.promptIds)), program.sequences);
  std::optional<AnswerFile> file;
  if (first && !settings.saveOutputs.empty())
    file.emplace(settings, sequences.size(), program.outputs[0].shape.back());
  GenerateCounts counts = generate(session, engine, program, source, sequences, settings.answer,
                                   [&](const Sequence &sequence, const float *logits) {
                                     if (file)
                                       file->take(sequence, logits);
                                     return false;
                                   });
  if (!first)
    return counts.stopped;
  if (file)
    file->write();
  else
    printTokens(sequences);
  if (!settings.quiet)
    sayRates(counts);
  return counts.stopped;
}
