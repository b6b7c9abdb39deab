//===- FuzzModel.cpp - models, and options of their import -----------------===//
//
// A model is imported, or refused by one error of one line; so it is when somebody
// looks into it. What options ask of it follows from its bytes. Beside it lies a file
// that external data may be in.
//
//===----------------------------------------------------------------------===//

#include "Fuzz.h"
#include "ModelMutator.h"

#include "dsopt/Dialect/Graph/Graph.h"
#include "dsopt/Import/ImportONNX.h"
#include "dsopt/Import/InspectONNX.h"
#include "dsopt/Interfaces/OneLine.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdio>
#include <ctime>
#include <memory>
#include <optional>

#include <sys/resource.h>

using namespace dsopt;
using namespace dsopt::test;
using namespace mlir;

namespace {
constexpr rlim_t kMostBytes = rlim_t(2) << 30;
/// Of processor time, for one model.
#if defined(__SANITIZE_ADDRESS__)
constexpr double kMostSeconds = 50; // the fuzzer's own limit is 60
#else
constexpr double kMostSeconds = 10;
#endif
/// Inputs that one context serves: what it has seen stays in its memory.
constexpr int kContextInputs = 200;

[[noreturn]] void found(const char *what, const std::string &text) {
  std::fprintf(stderr, "found: %s: %s\n", what, text.c_str());
  abort();
}

/// What a run needs beside a model, and counts of how models ended.
struct Setting {
  Setting() {
    folder.write("weights.bin", std::string(4096, '\x3f'));
    std::filesystem::create_directory(folder.path + "/folder");
#if !defined(__SANITIZE_ADDRESS__)
    rlimit limit{kMostBytes, kMostBytes};
    setrlimit(RLIMIT_AS, &limit);
#endif
  }
  ~Setting() {
    std::printf("%lld models were taken, %lld refused\n", static_cast<long long>(taken),
                static_cast<long long>(refused));
  }
  MLIRContext &freshContext() {
    if (!context || ++served % kContextInputs == 0) {
      context.reset();
      std::filesystem::remove_all(folder.path + "/spilled");
      std::filesystem::create_directory(folder.path + "/spilled");
      context = std::make_unique<MLIRContext>(MLIRContext::Threading::DISABLED);
      context->loadDialect<graph::GraphDialect, func::FuncDialect>();
    }
    return *context;
  }

  FuzzFolder folder;
  std::unique_ptr<MLIRContext> context;
  int64_t served = 0, taken = 0, refused = 0;
};

/// Options that an import may have, of names that the model has and of others.
class Choices {
public:
  explicit Choices(std::string_view model)
      : random(std::hash<std::string_view>()(model)), names(namesOf(model)) {}

  size_t below(size_t bound) { return random() % bound; }
  ImportOptions make(const FuzzFolder &folder, const std::string &path) {
    ImportOptions options;
    options.path = path;
    options.spillFolder = folder.path + "/spilled";
    options.returns = pick({Returns::Loss, Returns::Loss, Returns::Outputs, Returns::Predictions});
    options.weights = pick({WeightFiles::Ignore, WeightFiles::IfPresent, WeightFiles::Required});
    if (below(4))
      for (const std::string &symbol : names.symbols)
        options.dims[symbol] = size();
    if (below(3) == 0)
      options.microBatchSize = size();
    if (below(2))
      return options;
    if (below(3) == 0)
      options.inputs.emplace_back(name(names.inputs),
                                  pick({"0", "1", "3", "true", "-1", "0.5", "1,2,3", "nan", "1e400", "", ",",
                                        "18446744073709551616", "0,0,0,0,0,0,0,0,0,0,0,0"}));
    if (below(8) == 0)
      options.inputs.push_back({name(names.inputs), "1"});
    while (below(3) == 0) {
      std::vector<int64_t> &shape = options.inputShapes[name(names.inputs)];
      for (size_t rank = below(5); rank > 0; --rank)
        shape.push_back(size());
      options.floatInputs.insert(name(names.inputs));
    }
    if (below(3) == 0)
      options.loss = pick({"cross-entropy:", "mse:", "mse:"}) + name(names.outputs) +
                     (below(2) ? "," + name(names.inputs) : ",target");
    else if (below(4) == 0)
      options.loss = name(names.outputs);
    for (auto *globs : {&options.freeze, &options.train, &options.untie})
      if (below(4) == 0)
        globs->push_back(below(4) ? name(names.initializers) : pick({"*", "[", "a*", "", "{w,b}", "?"}));
    for (auto *globs : {&options.predicted, &options.logOutputs, &options.compared})
      if (below(6) == 0)
        globs->push_back(below(4) ? name(names.outputs) : "*");
    if (below(6) == 0)
      options.paddingIndex.push_back({name(names.initializers), static_cast<int64_t>(below(5)) - 1});
    options.dropoutOff = below(4) == 0;
    options.batchNorm = pick({BatchNorm::Model, BatchNorm::Train, BatchNorm::Frozen});
    options.triesAll = below(4) == 0;
    if (below(8) == 0)
      options.weightsFolder = folder.path;
    return options;
  }

private:
  template <typename T> T pick(std::initializer_list<T> values) {
    return values.begin()[below(values.size())];
  }
  std::string pick(std::initializer_list<const char *> values) {
    return values.begin()[below(values.size())];
  }
  int64_t size() { return pick<int64_t>({1, 2, 3, 4, 8, below(8) ? 4 : int64_t(1) << 40}); }
  std::string name(const std::vector<std::string> &list) {
    const std::vector<std::string> &chosen = below(8) ? list : names.values;
    return chosen.empty() ? "x" : chosen[below(chosen.size())];
  }

  std::mt19937_64 random;
  ModelNames names;
};

/// Holds what is said, and finds what should not be said so.
class Listener {
public:
  explicit Listener(MLIRContext &context)
      : handler(&context, [this](Diagnostic &diagnostic) {
          std::string text = oneLine(diagnostic.str());
          if (text.empty())
            found("a message of nothing", "");
          if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
            ++errors;
          last = text;
        }) {}
  /// `most`: 1, but where errors of all nodes are asked for.
  void check(bool isTaken, int most = 1) const {
    if (isTaken ? errors > 0 : errors == 0 || errors > most)
      found(isTaken ? "taken in spite of an error" : "refused by a number of errors that is not one",
            std::to_string(errors) + ": " + last);
  }

private:
  int errors = 0;
  std::string last;
  ScopedDiagnosticHandler handler;
};

void importModel(MLIRContext &context, ImportOptions options, Setting &setting, bool saves) {
  ImportReport report;
  options.report = &report;
  Listener listener(context);
  FailureOr<OwningOpRef<ModuleOp>> module = importONNX(context, options);
  listener.check(succeeded(module), options.triesAll ? INT_MAX : 1);
  ++(succeeded(module) ? setting.taken : setting.refused);
  if (failed(module))
    return;
  if (failed(verify(**module)))
    found("a module that is not valid", options.path);
  listParameters(report.initializers, saves, llvm::nulls());
  summarizeParameters(report.initializers);
  parametersOf(**module);
  if (saves) {
    Listener listener(context);
    listener.check(succeeded(modelWithoutParameters(options.path, **module)));
  }
}
} // namespace

#if defined(__SANITIZE_ADDRESS__)
// MLIR's library, without sanitizers, does not give back what headers take from allocators' pools.
extern "C" const char *__asan_default_options() {
  return "hard_rss_limit_mb=2048:max_allocation_size_mb=2048:allow_user_poisoning=0";
}
#endif

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned random) {
  static const std::vector<std::string> seeds = fuzzSeeds();
  std::string changed = changeModel(viewOf(data, size), seeds[random % seeds.size()], random);
  if (changed.size() > most)
    return size;
  std::copy(changed.begin(), changed.end(), data);
  return changed.size();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static Setting setting;
  std::clock_t begin = std::clock();
  MLIRContext &context = setting.freshContext();
  std::string path = setting.folder.write("model.onnx", viewOf(data, size));
  Choices choices(viewOf(data, size));
  ImportOptions options = choices.make(setting.folder, path);
  if (choices.below(3)) {
    importModel(context, options, setting, choices.below(4) == 0);
  } else {
    Listener listener(context);
    listener.check(succeeded(inspectONNX(context, options)));
  }
  if (double seconds = double(std::clock() - begin) / CLOCKS_PER_SEC; seconds > kMostSeconds)
    found("a model that takes too long", std::to_string(seconds) + " s");
  return 0;
}
