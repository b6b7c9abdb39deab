//===- Together.cpp - what all ranks do, or none --------------------------===//

#include "Core/Together.h"
#include "dsopt/Runtime/Manifest.h"

#include <algorithm>
#include <vector>

namespace dsopt::runtime {

std::optional<Error> together(Engine &engine, const std::function<void()> &body) {
  enum Outcome : int { Fine, Missing, Wrong };
  struct Record {
    int outcome = Fine, status = StatusOk;
    char text[1024] = "";
  } mine;
  std::optional<Error> failure;
  try {
    body();
  } catch (const Unreadable &error) {
    failure = error;
    mine.outcome = Missing;
  } catch (const Error &error) {
    failure = error;
    mine.outcome = Wrong;
  }
  if (failure) {
    mine.status = failure->status;
    std::string(failure->what()).copy(mine.text, sizeof mine.text - 1);
  }
  std::vector<Record> all(engine.size());
  engine.exchange(&mine, sizeof mine, all.data());
  auto worst = std::max_element(all.begin(), all.end(),
                                [](const Record &a, const Record &b) { return a.outcome < b.outcome; });
  if (worst->outcome == Fine)
    return std::nullopt;
  auto rank = worst - all.begin();
  if (worst->outcome == Missing)
    return Error(worst->status, (rank ? "rank " + std::to_string(rank) + ": " : "") + worst->text);
  if (rank == engine.rank())
    throw *failure;
  throw Error(worst->status, "another rank could not read its parameters", /*quiet=*/true);
}

} // namespace dsopt::runtime
