//===- Generation.cpp - from prompts to answers ----------------------------===//

#include "Generate/Generation.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

using namespace dsopt::runtime;

namespace {
/// The rows of a run, as rank 0 tells them to all others.
class RowExchange {
public:
  RowExchange(Engine &engine, Session &session, int64_t most)
      : engine(engine), session(session), record(2 + 4 * most), all(record.size() * engine.size()) {}

  /// Collective: rank 0's rows are everybody's.
  void share(Rows &rows) {
    if (engine.size() == 1)
      return;
    std::array<std::vector<int64_t> *, 4> parts{&rows.tokens, &rows.positions, &rows.slots, &rows.picks};
    int64_t *next = record.data();
    *next++ = static_cast<int64_t>(rows.tokens.size());
    *next++ = static_cast<int64_t>(rows.picks.size());
    for (const std::vector<int64_t> *part : parts)
      next = std::copy(part->begin(), part->end(), next);
    session.exchange(record.data(), static_cast<int64_t>(record.size() * sizeof(int64_t)), all.data());
    const int64_t *from = all.data() + 2;
    for (std::vector<int64_t> *part : parts) {
      int64_t count = all[part == &rows.picks];
      part->assign(from, from + count);
      from += count;
    }
  }

private:
  Engine &engine;
  Session &session;
  std::vector<int64_t> record, all;
};
} // namespace

/// Rows lie one behind the other, each of the vocabulary's size.
static void collect(std::vector<float> &logits, const char *values, int64_t bytes, size_t &at) {
  logits.resize(std::max(logits.size(), (at + bytes + 3) / sizeof(float)));
  std::memcpy(reinterpret_cast<char *>(logits.data()) + at, values, bytes);
  at += bytes;
}

GenerateCounts dsopt::runtime::generate(Session &session, Engine &engine, const Program &program,
                                        RowSource &source, Sequences &sequences, const AnswerOptions &options,
                                        AnswerSink &sink) {
  using Clock = std::chrono::steady_clock;
  GenerateCounts counts;
  bool first = engine.rank() == 0;
  int64_t vocabulary = program.outputs[0].shape.back();
  Sampler sampler(options.sampling, vocabulary);
  RowExchange exchange(engine, session, source.most());
  Rows rows;
  source.give(rows);
  std::vector<float> logits;
  auto before = Clock::now();
  for (int64_t run = 0;; ++run) {
    if (first)
      sequences.next(source.most(), rows);
    exchange.share(rows);
    if (rows.tokens.empty())
      break;
    size_t at = 0;
    counts.stopped = session.runOnce(
        run, [&](int64_t, const char *values, int64_t bytes) { collect(logits, values, bytes, at); });
    if (counts.stopped)
      break;
    if (!first)
      continue;
    int64_t given = static_cast<int64_t>(rows.tokens.size());
    for (size_t i = 0; i < rows.sequences.size(); ++i) {
      Sequence &sequence = sequences[rows.sequences[i]];
      const float *own = logits.data() + i * vocabulary;
      if (!Sampler::isFinite(own, vocabulary))
        throw Error(StatusFailure, "prompt " + std::to_string(sequence.prompt) + ": the logits at position " +
                                       std::to_string(sequence.seen - 1) + " are not finite");
      given -= sequence.chosen() > 0;
      int64_t token = sampler.choose(own, sequence.tokens, sequence.given, sequence.answer);
      sequence.tokens.push_back(token);
      ++counts.chosen;
      const std::vector<int64_t> &ends = options.sampling.endTokens;
      bool isEnd = !options.ignoresEnd && std::find(ends.begin(), ends.end(), token) != ends.end();
      if (sink.token(sequence, own) || isEnd || sequence.chosen() >= options.newTokens) {
        sequences.finish(sequence);
        sink.done(sequence);
      }
    }
    counts.given += given;
    auto now = Clock::now();
    (given > 0 ? counts.givenMs : counts.chosenMs) +=
        std::chrono::duration<double, std::milli>(now - before).count();
    before = now;
  }
  return counts;
}
