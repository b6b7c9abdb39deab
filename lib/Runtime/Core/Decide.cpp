//===- Decide.cpp - the step's decision ------------------------------------===//

#include "Core/Decide.h"
#include "dsopt/Runtime/OptimizerFacts.h"
#include "dsopt/Runtime/Scalars.h"

#include <algorithm>
#include <cmath>

namespace dsopt::runtime {

double clipFactor(double clip, double norm) { return clip > 0 ? std::min(1.0, clip / (norm + 1e-6)) : 1.0; }

void writeScalars(const Decision &decision, const RunOptions &options, const std::string &optimizer,
                  double lrScale, double decayScale, float *table, int64_t freezeStep,
                  int64_t varianceSteps) {
  bool muon = optimizer == "muon";
  bool movesApart = optimizer == "zero-one-adam";
  const OptimizerFacts &facts = factsOf(optimizer);
  double lr = decision.lr * lrScale;
  // What AdamW beside Muon goes by.
  double adamLr = muon ? lr * options.adamLrFactor : lr;
  double weightDecay = decayScale * options.weightDecay;
  Betas betas = betasOf(options, decision.appliedSteps);
  double beta1 = facts.takesBetas ? betas.beta1 : options.momentum, beta2 = betas.beta2;
  double t = static_cast<double>(decision.appliedSteps + 1);
  std::fill_n(table, DSOPT_SCALARS, 0.0f);
  table[DSOPT_LR] = static_cast<float>(lr);
  table[DSOPT_FACTOR] = static_cast<float>(decision.factor);
  table[DSOPT_APPLY] = decision.apply ? 1.0f : 0.0f;
  table[DSOPT_WEIGHT_DECAY] = static_cast<float>(weightDecay);
  table[DSOPT_BETA1] = static_cast<float>(beta1);
  table[DSOPT_ONE_MINUS_BETA1] = static_cast<float>(1 - beta1);
  table[DSOPT_BETA2] = static_cast<float>(beta2);
  table[DSOPT_ONE_MINUS_BETA2] = static_cast<float>(1 - beta2);
  table[DSOPT_EPS] = static_cast<float>(options.eps);
  table[DSOPT_STEP_SIZE] = static_cast<float>(facts.correctsBias ? adamLr / (1 - std::pow(beta1, t)) : lr);
  if (optimizer == "lamb") // the whole correction of both moments, as in DeepSpeed
    table[DSOPT_STEP_SIZE] =
        static_cast<float>(lr * std::sqrt(1 - std::pow(beta2, t)) / (1 - std::pow(beta1, t)));
  if (optimizer == "adafactor") { // PyTorch's beta2_decay of -0.8
    table[DSOPT_BETA2] = static_cast<float>(1 - std::pow(t, -0.8));
    table[DSOPT_ONE_MINUS_BETA2] = static_cast<float>(std::pow(t, -0.8));
    table[DSOPT_STEP_SIZE] = static_cast<float>(std::min(lr, 1 / std::sqrt(t)));
  }
  table[DSOPT_RSQRT_BIAS2] = static_cast<float>(
      facts.correctsBias
          ? 1 / std::sqrt(1 - std::pow(beta2, varianceSteps > 0 ? static_cast<double>(varianceSteps) : t))
          : 1);
  if (freezeStep > 0) {
    // The variance is as its last step had it, its correction too; the momentum goes in as it is.
    double frozenBeta2 = betasOf(options, freezeStep - 1).beta2;
    table[DSOPT_STEP_SIZE] = static_cast<float>(lr);
    table[DSOPT_RSQRT_BIAS2] =
        static_cast<float>(1 / std::sqrt(1 - std::pow(frozenBeta2, static_cast<double>(freezeStep))));
  }
  table[DSOPT_DECAY_FACTOR] = static_cast<float>(1 - adamLr * weightDecay);
  if (movesApart)
    table[DSOPT_RATES] = static_cast<float>(decision.rates * lrScale);
  if (facts.takesMomentum && facts.takesBetas) {
    table[DSOPT_MOMENTUM] = static_cast<float>(options.momentum);
    table[DSOPT_ONE_MINUS_MOMENTUM] = static_cast<float>(1 - options.momentum);
  }
  table[DSOPT_FIRST] = decision.appliedSteps == 0 ? 1.0f : 0.0f;
}

} // namespace dsopt::runtime
