//===- OptimizerFacts.cpp - what update rules take of options -------------===//

#include "dsopt/Runtime/OptimizerFacts.h"

#include <map>

namespace dsopt::runtime {

static constexpr bool yes = true, no = false;

/// Made when the program starts: steps allocate nothing.
//                           momentum, betas, eps, corrects bias, refuses the others
static const std::map<std::string, OptimizerFacts> kKnown = {
    {"sgd", {yes, no, no, no, no}},
    {"adam", {no, yes, yes, yes, no}},
    {"adamw", {no, yes, yes, yes, no, {{"weight-decay", "0.01"}}}},
    {"lion", {no, yes, no, no, yes, {{"lr", "0.0001"}, {"betas", "0.9,0.99"}}}},
    {"adagrad", {no, no, yes, no, yes, {{"lr", "0.01"}, {"eps", "1e-10"}}}},
    {"adafactor", {no, no, no, no, yes, {{"lr", "0.01"}}}},
    {"lamb", {no, yes, yes, no, yes}},
    {"muon", {yes, yes, yes, yes, yes, {{"momentum", "0.95"}, {"weight-decay", "0.1"}}}},
    {"onebit-adam", {no, yes, yes, yes, yes}},
    {"onebit-lamb", {no, yes, yes, no, yes}},
    {"zero-one-adam", {no, yes, yes, yes, yes}},
};

const OptimizerFacts &factsOf(const std::string &optimizer) {
  static const OptimizerFacts others;
  auto found = kKnown.find(optimizer);
  return found == kKnown.end() ? others : found->second;
}

} // namespace dsopt::runtime
