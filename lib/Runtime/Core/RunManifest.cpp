//===- RunManifest.cpp - what checkpoints say of a run ---------------------===//

#include "Core/RunManifest.h"
#include "Kernels/CPU/Runtime.h"
#include "dsopt/Runtime/JsonText.h"
#include "dsopt/Runtime/OptimizerFacts.h"

#include <cstdio>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace dsopt::runtime {

/// Which parameters tensor shards cut, and how: equal at every degree.
static std::string cutsOf(const Program &program) {
  std::string text;
  int64_t count = 0;
  for (const Parameter &parameter : program.parameters)
    if (!parameter.parts.empty() && parameter.parts.front().isShard()) {
      const Part &part = parameter.parts.front();
      text += parameter.name + " " + std::to_string(part.run) + " " + std::to_string(part.stride) + "\n";
      ++count;
    }
  char hash[17];
  std::snprintf(hash, sizeof hash, "%016llx", (unsigned long long)XXH3_64bits(text.data(), text.size()));
  return std::to_string(count) + " parameters (" + hash + ")";
}

std::map<std::string, std::string> optionsOf(const Program &program, const RunOptions &options) {
  auto number = [](double value) { return jsonNumber(value, 17); };
  std::map<std::string, std::string> texts = {{"lr", number(options.lr)},
                                              {"lr-schedule", lrScheduleName(options.schedule)},
                                              {"warmup-steps", std::to_string(options.warmupSteps)},
                                              {"min-lr", number(options.minLr)},
                                              {"weight-decay", number(options.weightDecay)},
                                              {"grad-clip", number(options.gradClip)},
                                              {"seed", std::to_string(options.seed)},
                                              {"shuffle", options.shuffle ? "on" : "off"}};
  if (scalesLoss(program.precision)) {
    const LossScaleOptions &scale = options.lossScale;
    texts["loss-scale"] = scale.fixed > 0 ? number(scale.fixed) : "dynamic";
    if (scale.fixed == 0) {
      texts["loss-scale-window"] = std::to_string(scale.window);
      texts["loss-scale-hysteresis"] = std::to_string(scale.hysteresis);
      texts["min-loss-scale"] = number(scale.least);
    }
  }
  if (program.target != "cpu")
    texts["target"] = program.target;
  if (program.matmul_precision != "highest")
    texts["matmul-precision"] = program.matmul_precision;
  if (program.gather_type != "param")
    texts["gather-type"] = program.gather_type;
  if (program.reduce_type != "gradient") {
    texts["reduce-type"] = program.reduce_type;
    texts["node-size"] = std::to_string(program.node_size);
  }
  if (program.compress_gradients != "none")
    texts["compress-gradients"] = program.compress_gradients;
  for (const auto &[name, value] : program.bound)
    texts["input"] += (texts["input"].empty() ? "" : " -input=") + name + "=" + value;
  if (program.gemm_table != "none")
    texts["gemm-table"] = program.gemm_table;
  if (program.T > 1)
    texts["shard"] = cutsOf(program);
  if (program.freeze_step > 0)
    texts["freeze-step"] = std::to_string(program.freeze_step);
  if (const LocalPolicy &policy = program.local_policy; policy.local_step_clipper > 0) {
    texts["var-update-scaler"] = std::to_string(policy.var_update_scaler);
    texts["local-step-scaler"] = std::to_string(policy.local_step_scaler);
    texts["local-step-clipper"] = std::to_string(policy.local_step_clipper);
  }
  if (program.delayed_update > 0)
    texts["delayed-update"] = std::to_string(program.delayed_update);
  const OptimizerFacts &facts = factsOf(program.optimizer);
  if (program.optimizer == "muon")
    texts["adam-lr"] = number(options.lr * options.adamLrFactor);
  if (facts.takesMomentum)
    texts["momentum"] = number(options.momentum);
  if (facts.takesBetas)
    texts["betas"] = number(options.beta1) + "," + number(options.beta2);
  if (facts.takesEps)
    texts["eps"] = number(options.eps);
  if (program.optimizer == "onebit-lamb")
    for (auto [name, value] : {std::pair("min-coeff", options.lamb.leastCoeff),
                               {"max-coeff", options.lamb.largestCoeff},
                               {"coeff-beta", options.lamb.coeffBeta},
                               {"factor-min", options.lamb.factorMin},
                               {"factor-max", options.lamb.factorMax},
                               {"factor-threshold", options.lamb.factorThreshold}})
      texts[name] = number(value);
  for (const auto &[name, value] : options.lrParameters)
    texts["lr-params"] += (texts["lr-params"].empty() ? "" : ",") + name + "=" + number(value);
  if (options.schedule != LrSchedule::Constant)
    texts["lr-decay-steps"] = std::to_string(options.decaySteps > 0 ? options.decaySteps : options.steps);
  return texts;
}

Manifest manifestOf(const Program &program, const RunOptions &options) {
  Manifest manifest;
  manifest.K = program.K;
  manifest.V = program.V;
  manifest.T = program.T;
  manifest.Q = program.Q;
  manifest.decaySteps = options.decaySteps > 0 ? options.decaySteps : options.steps;
  manifest.decayGiven = options.decayGiven;
  manifest.kernelTable = kKernelTable;
  manifest.accumulate = program.accumulate;
  manifest.gradientType = program.gradient_type;
  manifest.precision = program.precision;
  manifest.optimizer = program.optimizer;
  manifest.arch = program.arch;
  manifest.model = program.model;
  manifest.dsopt = program.dsopt;
  manifest.options = optionsOf(program, options);
  return manifest;
}

} // namespace dsopt::runtime
