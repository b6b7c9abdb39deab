//===- DeepSpeedMeaning.cpp - a configuration as dsopt's options ----------===//
//
// Keys that are obeyed, in the order of the table: what DeepSpeed would do with
// them, said in dsopt's options. What contradicts itself is an error that names
// both places.
//
//===----------------------------------------------------------------------===//

#include "DeepSpeedConfig.h"
#include "dsopt/Runtime/LossScale.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

#include <set>

using namespace llvm;
using dsopt::runtime::ParsedOptions;

namespace dsopt {

namespace {
class Meaning {
public:
  Meaning(DeepSpeedConfig &config, ParsedOptions &options, const LauncherInfo &launcher)
      : config(config), options(options), launcher(launcher) {}

  void apply() {
    pipeline();
    precision();
    optimizer();
    scheduler();
    if (lower(config.text("optimizer.type")) == "lion") // DeepSpeed's, not the paper's
      set("lr", "0.001", "optimizer.type");
    zero();
    clipping();
    output();
    byTable();
    batch();
  }
  std::vector<ConfiguredOption> configured;

private:
  /// Sets an option unless the command line did.
  void set(const std::string &option, const std::string &value, const std::string &path) {
    if (options.has(option))
      return;
    const runtime::OptionRow *row = runtime::findOption(option);
    if (row->kind == runtime::OptionKind::Number && value[0] == '-')
      refuse(path, "expected a number of 0 or more, got " + value);
    options.setDefault(option, value);
    configured.push_back({option, value, config.has(path) ? config.place(path) : config.place(parent(path))});
  }
  static std::string parent(const std::string &path) {
    return path.find('.') == std::string::npos ? "" : path.substr(0, path.rfind('.'));
  }

  [[noreturn]] void refuse(const std::string &path, const std::string &message) const {
    throw runtime::Error(1, config.place(path) + ": " + message);
  }
  /// Two keys that exclude each other.
  void exclude(const std::string &path, const std::string &other, const std::string &why) const {
    if (config.has(path) && config.has(other))
      refuse(path, "contradicts " + config.mention(other) + ": " + why);
  }

  void pipeline() {
    if (config.has("pipeline.stages"))
      set("pp", config.text("pipeline.stages"), "pipeline.stages");
    std::string cut;
    for (const char *path : {"tensor_parallel.autotp_size", "tensor_parallel.tp.tp_size"}) {
      int64_t size = config.integer(path).value_or(0);
      if (size < 2)
        continue;
      if (!cut.empty() && config.integer(cut) != size)
        refuse(path, std::to_string(size) + " contradicts " + config.mention(cut) + " " + config.text(cut) +
                         ": both are -tp");
      cut = path;
      set("tp", std::to_string(size), path);
    }
    if (config.integer("sequence_parallel_size").value_or(1) > 1)
      set("sp", config.text("sequence_parallel_size"), "sequence_parallel_size");
    const std::string interval = "pipeline.activation_checkpoint_interval";
    if (config.integer(interval).value_or(0) > 0)
      set("recompute", "full", interval);
    const std::string offloaded = "activation_checkpointing.cpu_checkpointing";
    if (config.flag(offloaded))
      set("offload-activations", "cpu", offloaded);
  }

  void precision() {
    exclude("bfloat16", "bf16", "they are two names of one block");
    if (config.flag("fp16.enabled"))
      for (const char *block : {"bf16.enabled", "bfloat16.enabled"})
        if (config.flag(block))
          refuse("fp16.enabled", "contradicts " + config.mention(block) + ": only one of them can be true");
    if (options.has("precision") && options.text("precision") != "fp16" && config.flag("fp16.enabled"))
      without["fp16.enabled"] = "-precision is given";
    lossScale();
    std::string block = config.has("bfloat16") ? "bfloat16" : "bf16";
    if (config.flag("fp16.enabled"))
      set("precision", "fp16", "fp16.enabled");
    else if (config.has(block + ".enabled"))
      set("precision", config.flag(block + ".enabled") ? "bf16" : "fp32", block + ".enabled");
    if (config.flag(block + ".bf16_optimizer_states") &&
        !config.flag(block + ".bf16_master_weights_and_grads"))
      refuse(block + ".bf16_optimizer_states", "needs " + block + ".bf16_master_weights_and_grads");
    std::string narrow = options.text("precision");
    const char *accumulated = "data_types.grad_accum_dtype", *sent = "communication_data_type";
    for (const char *path : {accumulated, sent}) {
      if (!config.has(path))
        continue;
      std::string type = lower(config.text(path));
      if (type != "fp32" && type != narrow)
        refuse(path, type + " needs " + type + ".enabled, or -precision=" + type);
      if (config.has(accumulated) && config.has(sent) && type != lower(config.text(accumulated)))
        refuse(sent, "contradicts " + config.mention(accumulated) +
                         ": accumulators and wire have one type (-gradient-type)");
      set("gradient-type", type == "fp32" ? "fp32" : "param", path);
    }
  }

  void lossScale() {
    if (!config.flag("fp16.enabled") || without.count("fp16.enabled"))
      return;
    const std::string fixed = "fp16.loss_scale";
    if (config.has(fixed))
      set("loss-scale", config.text(fixed), fixed);
    bool isDynamic = runtime::fixedLossScale(options.text("loss-scale")) == 0;
    for (auto [option, path] : {std::pair("initial-scale-power", "fp16.initial_scale_power"),
                                std::pair("loss-scale-window", "fp16.loss_scale_window"),
                                std::pair("loss-scale-hysteresis", "fp16.hysteresis"),
                                std::pair("min-loss-scale", "fp16.min_loss_scale")}) {
      if (!config.has(path))
        continue;
      if (isDynamic)
        set(option, config.text(path), path);
      else
        without[path] = "the loss scale is fixed";
    }
  }

  static std::string lower(StringRef text) { return text.lower(); }

  /// Keys of a `params` block that another type takes.
  void checkParams(const std::string &block, const std::string &type) const {
    for (const std::string &path : config.paths()) {
      const KeyRow *row = findKey(path);
      if (parent(path) != block || !*row->of)
        continue;
      std::vector<std::string> types = alternatives(row->of);
      if (llvm::none_of(types, [&](StringRef one) { return one.equals_insensitive(type); }))
        refuse(path, "is no parameter of " + config.mention(parent(block) + ".type") + " " + type + "; " +
                         join(types, ", ") + (types.size() > 1 ? " take it" : " takes it"));
    }
  }
  std::string typeOf(const std::string &block) const {
    std::string type = config.text(block + ".type");
    for (const std::string &word : alternatives(findKey(block + ".type")->form))
      if (StringRef(word).equals_insensitive(type))
        type = word;
    if (config.has(block) && type.empty())
      refuse(
          block, "needs a type: one of " + [&] {
            std::string words;
            for (const std::string &word : alternatives(findKey(block + ".type")->form))
              if (word[0] != '!')
                words += (words.empty() ? "" : ", ") + word;
            return words;
          }());
    return type;
  }

  void optimizer() {
    std::string type = typeOf("optimizer"), params = "optimizer.params";
    if (type.empty())
      return;
    checkParams(params, type);
    bool adam = type == "Adam" || type == "AdamW";
    bool decoupled =
        type == "AdamW" || !config.has(params + ".adam_w_mode") || config.flag(params + ".adam_w_mode");
    if (type == "AdamW" && config.has(params + ".adam_w_mode") && !config.flag(params + ".adam_w_mode"))
      config.warnWithout(params + ".adam_w_mode", "the type AdamW decides it");
    bool isLamb = type == "OneBitLamb", isOneBit = isLamb || type == "OneBitAdam",
         isZeroOne = type == "ZeroOneAdam";
    bool own = options.has("optimizer"); // the command line's
    set("optimizer",
        isLamb      ? "onebit-lamb"
        : isOneBit  ? "onebit-adam"
        : isZeroOne ? "zero-one-adam"
        : !adam     ? lower(type)
        : decoupled ? "adamw"
                    : "adam",
        "optimizer.type");
    if (isOneBit && !own)
      set("freeze-step",
          config.has(params + ".freeze_step") ? config.text(params + ".freeze_step") : "100000",
          config.has(params + ".freeze_step") ? params + ".freeze_step" : "optimizer.type");
    if (isZeroOne && !own)
      for (auto [key, option] : {std::pair("var_freeze_step", "freeze-step"),
                                 {"var_update_scaler", "var-update-scaler"},
                                 {"local_step_scaler", "local-step-scaler"},
                                 {"local_step_clipper", "local-step-clipper"}})
        if (std::string path = params + "." + key; config.has(path))
          set(option, config.text(path), path);
    if (isZeroOne && config.has(params + ".bias_correction"))
      without[params + ".bias_correction"] =
          "0/1 Adam corrects its bias, by how often its variance was updated";
    if (isLamb)
      coefficients(params + ".", own);
    for (auto [key, option] :
         {std::pair("eps", "eps"), {"weight_decay", "weight-decay"}, {"momentum", "momentum"}})
      if (std::string path = params + "." + key; config.has(path))
        set(option, config.text(path), path);
    if (const json::Value *betas = config.find(params + ".betas"))
      set("betas", jsonText((*betas->getAsArray())[0]) + "," + jsonText((*betas->getAsArray())[1]),
          params + ".betas");
    else if (type == "Lion")
      set("betas", "0.9,0.999", "optimizer.type");
    if (type == "Muon")
      muon(params + ".");
    if (adam && !config.has(params + ".weight_decay"))
      set("weight-decay", config.flag(params + ".torch_adam") && decoupled ? "0.01" : "0", "optimizer.type");
  }

  /// Those of 1-bit LAMB, which LAMB has none of.
  void coefficients(const std::string &params, bool isOverruled) {
    for (auto [key, option] : {std::pair("max_coeff", "max-coeff"),
                               {"min_coeff", "min-coeff"},
                               {"coeff_beta", "coeff-beta"},
                               {"factor_max", "factor-max"},
                               {"factor_min", "factor-min"},
                               {"factor_threshold", "factor-threshold"}})
      if (std::string path = params + key; config.has(path)) {
        if (!isOverruled)
          set(option, config.text(path), path);
        obeyed.insert(path);
      }
    without[params + "bias_correction"] = "1-bit LAMB corrects no bias";
  }

  /// DeepSpeed's defaults, and the rates of Muon and of the AdamW beside it. A scheduler's is that of both.
  void muon(const std::string &params) {
    for (auto [option, value] : {std::pair("betas", "0.9,0.95"), {"eps", "1e-10"}, {"weight-decay", "0"}})
      set(option, value, "optimizer.type");
    bool isScheduled = config.has("scheduler.type");
    for (auto [key, option, value] :
         {std::tuple("muon_lr", "lr", "0.02"), std::tuple("adam_lr", "adam-lr", "0.0003")}) {
      std::string own = params + key, shared = params + "lr";
      if (isScheduled && config.has(own))
        config.warnWithout(own, "a scheduler has one learning rate for all parameters");
      if (isScheduled)
        continue;
      std::string path = config.has(own) ? own : shared;
      set(option, config.has(path) ? config.text(path) : value, config.has(path) ? path : "optimizer.type");
    }
  }

  /// The learning rate: the scheduler's where it has one, else the optimizer's.
  void scheduler() {
    std::string type = typeOf("scheduler"), params = "scheduler.params.", lr = "optimizer.params.lr";
    if (!type.empty())
      checkParams("scheduler.params", type);
    bool own = options.has("lr-schedule"); // the command line's
    if (type.empty() || own) {
      if (!type.empty())
        config.warnWithout("scheduler", "-lr-schedule is given");
      if (config.has(lr))
        set("lr", config.text(lr), lr);
      return;
    }
    static const std::pair<const char *, const char *> names[] = {{"WarmupLR", "warmup"},
                                                                  {"WarmupDecayLR", "warmup-decay"},
                                                                  {"WarmupCosineLR", "warmup-cosine"},
                                                                  {"OneCycle", "onecycle"},
                                                                  {"LRRangeTest", "range-test"}};
    for (auto [name, schedule] : names)
      if (type == name)
        set("lr-schedule", schedule, "scheduler.type");
    std::string top = type == "OneCycle"         ? "cycle_max_lr"
                      : type == "LRRangeTest"    ? "lr_range_test_min_lr"
                      : type == "WarmupCosineLR" ? ""
                                                 : "warmup_max_lr";
    if (type == "OneCycle")
      for (const char *needed : {"cycle_min_lr", "cycle_max_lr"})
        if (!config.has(params + needed))
          refuse("scheduler.type", "OneCycle needs scheduler.params." + std::string(needed));
    bool has = !top.empty() && config.has(params + top);
    bool fixed = !has && (type == "WarmupDecayLR" || type == "LRRangeTest"); // DeepSpeed's 0.001
    if (has)
      set("lr", config.text(params + top), params + top);
    else if (fixed)
      set("lr", "0.001", "scheduler.type");
    else if (config.has(lr))
      set("lr", config.text(lr), lr);
    if (config.has(lr) && (fixed || (has && config.text(lr) != config.text(params + top))))
      config.warnWithout(lr, "scheduler.params." + top + (fixed ? ", 0.001 where it is not given," : "") +
                                 " is the learning rate");
    warmup(type, params);
    // The rest under its own name.
    std::string rest;
    for (const std::string &path : config.paths()) {
      StringRef text = findKey(path)->text;
      if (StringRef(path).starts_with(params) && text.consume_front("-lr-params="))
        rest += (rest.empty() ? "" : ",") + text.take_until([](char c) { return c == '='; }).str() + "=" +
                lower(config.text(path));
    }
    if (!rest.empty())
      set("lr-params", rest, "scheduler.params");
  }

  void warmup(StringRef type, const std::string &params) {
    if (!type.starts_with("Warmup"))
      return;
    int64_t steps = config.integer(params + "warmup_num_steps").value_or(1000);
    set("warmup-steps", std::to_string(steps),
        config.has(params + "warmup_num_steps") ? params + "warmup_num_steps" : "scheduler.type");
    std::string total = params + "total_num_steps";
    if (!config.has(total))
      return;
    set("lr-decay-steps", config.text(total), total);
    if (*config.integer(total) < steps)
      config.warn(total, "is less than warmup_num_steps, " + std::to_string(steps) +
                             ": the rate falls at once after the warm-up");
  }

  void zero() {
    std::string block = "zero_optimization";
    const json::Value *value = config.find(block);
    if (!value)
      return;
    if (value->getAsBoolean()) {
      set("zero", *value->getAsBoolean() ? "1" : "0", block);
      return;
    }
    block += ".";
    std::string stage = config.has(block + "stage") ? config.text(block + "stage") : "0";
    if (config.has(block + "stage"))
      set("zero", stage, block + "stage");
    exclude(block + "cpu_offload", block + "offload_optimizer", "the first is the second's old form");
    exclude(block + "stage3_gather_fp16_weights_on_model_save",
            block + "stage3_gather_16bit_weights_on_model_save", "the first is the second's old name");
    std::string device = block + "offload_param.device";
    if (config.has(device) && lower(config.text(device)) != "none" && stage != "3")
      refuse(device, "parameters are offloaded under stage 3 only, " + stagePlace(stage));
    else if (config.has(device) && lower(config.text(device)) != "none")
      set("offload-params", lower(config.text(device)), device);
    std::string ratio = block + "offload_optimizer.ratio";
    if (config.has(ratio) && *config.find(ratio)->getAsNumber() < 1 && stage != "3")
      refuse(ratio, "a part of the optimizer is offloaded under stage 3 only, " + stagePlace(stage));
    offload(block, ratio);
    std::string norm = block + "compute_grad_norm";
    if (config.has(norm) && !config.flag(norm) && config.has("gradient_clipping") &&
        *config.find("gradient_clipping")->getAsNumber() > 0)
      refuse(norm, "contradicts " + config.mention("gradient_clipping") + ": clipping needs the norm");
    buckets(block, stage);
    std::string partition = block + "zero_hpz_partition_size", quantized = block + "zero_quantized_weights";
    if (stage == "3" && config.integer(partition).value_or(0) > 1) {
      set("node-size", config.text(partition), partition);
      set("secondary-params", "node", partition);
    }
    if (stage == "3" && config.flag(quantized))
      set("gather-type", "int8", quantized);
    if (config.flag(block + "zero_quantized_gradients"))
      set("reduce-type", "int4", block + "zero_quantized_gradients");
    // Keys of stage 3 below it: with the reason that is nearest.
    if (stage != "3")
      for (const std::string &path : config.paths())
        if (StringRef(path).starts_with(block + "stage3_") || path == partition || path == quantized)
          without[path] = "it is for stage 3, " + stagePlace(stage);
  }
  /// How many elements are gathered, kept and reduced at once.
  void buckets(const std::string &block, const std::string &stage) {
    static const std::pair<const char *, const char *> names[] = {
        {"stage3_prefetch_bucket_size", "prefetch-bucket-size"},
        {"stage3_max_live_parameters", "max-live-parameters"},
        {"stage3_max_reuse_distance", "max-reuse-distance"},
        {"stage3_param_persistence_threshold", "param-persistence-threshold"}};
    for (auto [key, option] : names)
      if (stage == "3" && config.has(block + key))
        set(option, config.text(block + key), block + key);
    std::string reduced = block + "reduce_bucket_size", gathered = block + "allgather_bucket_size";
    if (config.has(reduced))
      set("reduce-bucket-size", config.text(reduced), reduced);
    if (config.has(gathered) && stage != "0")
      set("gather-bucket-size", config.text(gathered), gathered);
    else if (config.has(gathered))
      without[gathered] = "nothing is gathered under stage 0";
  }
  void offload(const std::string &block, const std::string &ratio) {
    std::string device = block + "offload_optimizer.device", old = block + "cpu_offload";
    bool isOn = config.has(device) && lower(config.text(device)) != "none";
    if (isOn)
      set("offload-optimizer", lower(config.text(device)), device);
    else if (config.has(old) && config.flag(old))
      set("offload-optimizer", "cpu", old);
    for (const char *name : {"cpu_offload_param", "cpu_offload_params"})
      if (config.has(block + name) && config.flag(block + name))
        set("offload-params", "cpu", block + name);
    disk(block);
    if (!config.has(ratio))
      return;
    if (isOn)
      set("offload-ratio", llvm::formatv("{0}", 1 - *config.find(ratio)->getAsNumber()).str(), ratio);
    else
      without[ratio] = "no optimizer is offloaded";
  }
  /// What says where and how something lies on disk.
  void disk(const std::string &block) {
    std::vector<std::string> paths;
    for (const char *what : {"offload_optimizer", "offload_param"}) {
      std::string device = block + what + ".device", path = block + what + ".nvme_path";
      if (!config.has(path))
        continue;
      if (config.has(device) && lower(config.text(device)) == "nvme")
        paths.push_back(path);
      else
        without[path] = device + " is not nvme";
    }
    if (paths.size() == 2 && config.text(paths[0]) != config.text(paths[1]))
      refuse(paths[1], "contradicts " + config.mention(paths[0]) + ": one folder has both");
    if (!paths.empty())
      set("nvme-path", config.text(paths.front()), paths.front());
    std::string group = block + "sub_group_size", requests, first;
    bool used = false;
    for (const char *what : {"offload_optimizer.device", "offload_param.device"})
      used |= config.has(block + what) && lower(config.text(block + what)) == "nvme";
    if (config.has(group) && used)
      set("sub-group-size", config.text(group), group);
    else if (config.has(group))
      without[group] = "nothing lies on disk";
    for (const char *name : {"block_size", "queue_depth"}) {
      std::string path = std::string("aio.") + name;
      if (!config.has(path))
        continue;
      if (!used)
        without[path] = "nothing lies on disk";
      requests += (requests.empty() ? "" : ",") + std::string(name) + "=" + config.text(path);
      first = first.empty() ? path : first;
    }
    if (used && !requests.empty())
      set("aio", requests, first);
  }
  std::string stagePlace(const std::string &stage) const {
    std::string path = "zero_optimization.stage";
    return config.has(path) ? config.mention(path) + " is " + stage : path + " is not given";
  }

  void clipping() {
    const std::string key = "gradient_clipping";
    if (!config.has(key)) {
      if (!options.has("grad-clip")) {
        options.setDefault("grad-clip", "1");
        notes.push_back(
            "gradient_clipping is not given: 1.0, DeepSpeed's default; -grad-clip=0 turns it off");
      }
      return;
    }
    set("grad-clip", config.text(key), key);
  }

  void output() {
    if (config.has("steps_per_print"))
      set("log-every", config.text("steps_per_print"), "steps_per_print");
    auto ofRun = [&](const char *path, const char *option, const char *value) {
      if (!config.flag(path))
        return;
      if (options.has("run"))
        set(option, value, path);
      else
        config.warnWithout(path, std::string("nothing runs now; give -") + option +
                                     (*value ? std::string("=") + value : "") + " to the program");
    };
    ofRun("wall_clock_breakdown", "breakdown", "");
    ofRun("flops_profiler.enabled", "report", "kernels");
  }

  /// Everything whose row says it all.
  void byTable() {
    for (const std::string &path : config.paths()) {
      const KeyRow *row = findKey(path);
      std::string block = parent(path);
      bool same = isSame(*row, *config.find(path));
      // What a block that is switched off says besides.
      std::string enabled = block + ".enabled";
      if (findKey(enabled) && path != enabled && (!config.flag(enabled) || without.count(enabled))) {
        if (!same)
          config.warnWithout(path, without.count(enabled) ? without[enabled]
                                   : config.has(enabled)  ? enabled + " is false"
                                                          : enabled + " is not given");
        continue;
      }
      if (auto it = without.find(path); it != without.end()) {
        config.warnWithout(path, it->second);
        continue;
      }
      if (same || obeyed.count(path))
        continue;
      switch (row->fate) {
      case KeyFate::Obeyed:
        break;
      case KeyFate::Decided:
        config.warn(path, std::string("the compiler decides this by itself: ") + row->text);
        break;
      case KeyFate::Without:
        config.warnWithout(path, row->text);
        break;
      case KeyFate::Later:
        refuse(path, "is not available yet (" + std::string(row->text) + "); " +
                         (*row->same ? "expected " + join(alternatives(row->same), " or ") + ", got "
                                     : std::string("got ")) +
                         config.text(path));
      case KeyFate::Refused:
        refuse(path, row->text);
      }
    }
  }

  /// DeepSpeed's rule: train_batch_size = micro-batch x accumulation steps x dp.
  void batch() {
    const std::string keys[] = {"train_batch_size", "train_micro_batch_size_per_gpu",
                                "gradient_accumulation_steps"};
    std::optional<int64_t> total = config.integer(keys[0]), rows = config.integer(keys[1]),
                           steps = config.integer(keys[2]);
    int64_t others = options.integer("pp", 1) * options.integer("sp", 1) * options.integer("tp", 1);
    int64_t dp =
        options.has("dp") ? options.integer("dp") : std::max<int64_t>(1, launcher.worldSize / others);
    if (options.has("global-batch")) {
      if (rows)
        set("micro-batch-size", std::to_string(*rows), keys[1]);
      return;
    }
    // What the command line says takes the place of the file's; a third number is then not looked at.
    bool own = false;
    for (auto [option, value] : {std::pair("micro-batch-size", &rows), {"micro-batches", &steps}})
      if (options.has(option)) {
        *value = options.integer(option);
        own = true;
      }
    auto named = [&](int key, std::optional<int64_t> value) {
      std::string name = config.has(keys[key]) ? config.mention(keys[key]) : keys[key];
      return name + " " + std::to_string(*value);
    };
    auto divided = [&](std::initializer_list<int64_t> factors, const std::string &what) {
      int64_t unit = 1;
      for (int64_t factor : factors)
        unit *= factor;
      if (*total % unit)
        refuse(keys[0], std::to_string(*total) + " is no multiple of " + what + " = " + std::to_string(unit));
      return *total / unit;
    };
    std::string ranks = std::to_string(dp) + " dp";
    if (total && rows && steps) {
      if (!own && *total != *rows * *steps * dp)
        refuse(keys[0], std::to_string(*total) + " contradicts " + named(1, rows) + " x " + named(2, steps) +
                            " x " + ranks + " = " + std::to_string(*rows * *steps * dp));
    } else if (total && rows) {
      steps = divided({*rows, dp}, named(1, rows) + " x " + ranks);
    } else if (total && steps) {
      rows = divided({*steps, dp}, named(2, steps) + " x " + ranks);
    } else if (total) {
      steps = 1;
      rows = divided({dp}, ranks);
    } else if (rows && !steps) {
      steps = 1;
    }
    auto origin = [&](int key) { return config.has(keys[key]) ? keys[key] : keys[0]; };
    if (rows)
      set("micro-batch-size", std::to_string(*rows), origin(1));
    if (steps)
      set("micro-batches", std::to_string(*steps), config.has(keys[2]) ? keys[2] : origin(1));
  }

  DeepSpeedConfig &config;
  ParsedOptions &options;
  const LauncherInfo &launcher;
  std::map<std::string, std::string> without; ///< paths without effect and why
  std::set<std::string> obeyed;               ///< that other types do not take yet

public:
  std::vector<std::string> notes;
};
} // namespace

std::vector<ConfiguredOption> applyConfig(ParsedOptions &options, const LauncherInfo &launcher, bool quiet) {
  if (!options.has("config"))
    return {};
  DeepSpeedConfig config(options.text("config"));
  Meaning meaning(config, options, launcher);
  meaning.apply();
  if (!quiet) {
    for (const std::string &line : config.warnings())
      errs() << "dsopt: warning: " << line << "\n";
    for (const std::string &note : meaning.notes)
      errs() << "dsopt: " << options.text("config") << ": " << note << "\n";
  }
  return meaning.configured;
}

} // namespace dsopt
