//===- Tune.cpp - measures how products are best cut ----------------------===//
//
// Kernels of all products in a number of ways are compiled to one library and run in turn,
// so that whatever else the machine does meets all alike; each way's best time counts.
// Two rounds: blocks of other shapes, then other copies about the best shape. What is not
// clearly faster than the model's choice does not replace it.
//
//===----------------------------------------------------------------------===//

#include "Tune.h"
#include "GemmTable.h"
#include "Messages.h"
#include "Produce.h"

#include "Kernels/CPU/Runtime.h"
#include "dsopt/Conversion/Products.h"
#include "dsopt/Pipeline/Pipelines.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FormatVariadic.h"

#include <chrono>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;
using namespace dsopt;
using runtime::Error;

namespace {
/// A product of the module: all that differ only in what a table does not see.
struct TunedProduct {
  SmallVector<exec::ProductAttr, 1> variants; ///< the first is measured
  bool mayBeLibrary = true;
  exec::BlockingAttr model, best;
  double modelSeconds = 0, bestSeconds = 0, librarySeconds = 0;
};

/// What is measured at a time.
struct Way {
  TunedProduct *product;
  exec::BlockingAttr blocking; ///< null: the library
  std::string kernel = "";
  int64_t range = 0;
  dsopt_kernel function = nullptr;
  double seconds = std::numeric_limits<double>::infinity();
};

/// Arguments of a product's kernel, filled with small numbers.
class Buffers {
public:
  Buffers(exec::ProductAttr product, TargetAttr target) {
    for (Type type : typeOfProductKernel(product, target).getInputs())
      if (auto buffer = dyn_cast<MemRefType>(type)) {
        int64_t bytes = buffer.getNumElements() * buffer.getElementTypeBitWidth() / 8;
        // As a program's: on huge pages, from lines of the cache on, each at another place in its page.
        constexpr int64_t kPage = 4096, kPlace = 21 * 64, kHugePage = 2 << 20;
        int64_t whole = llvm::alignTo(bytes + 2 * kPage, kHugePage);
        memory.emplace_back(static_cast<char *>(std::aligned_alloc(kHugePage, whole)), std::free);
        madvise(memory.back().get(), whole, MADV_HUGEPAGE);
        char *begin = memory.back().get() + memory.size() * kPlace % kPage;
        if (buffer.getElementType().isF32())
          fill(reinterpret_cast<float *>(begin), bytes / 4, 0.001f);
        else
          fill(reinterpret_cast<uint16_t *>(begin), bytes / 2, uint16_t(0x3A80)); // about as much in bf16
        pointers.push_back(begin);
      }
  }
  void *const *data() const { return pointers.data(); }
  void *operator[](size_t index) const { return pointers[index]; }

private:
  template <typename T> static void fill(T *begin, int64_t count, T value) {
    std::fill(begin, begin + count, value);
  }
  std::vector<std::unique_ptr<char, void (*)(void *)>> memory;
  std::vector<void *> pointers;
};

/// The threads that a program would have.
struct Machine {
  runtime::ThreadPool pool;
  dsopt_rt rt;
  explicit Machine(TargetAttr target) : pool(target.getThreads(), /*spin=*/20000, runtime::prepareThread) {
    runtime::limitLibraries(statedFeatures(target));
    rt.pool = &pool;
    rt.prepareTiles(DSOPT_F16);
  }

  /// Leaves nothing of a product in a cache. In a step its operands were written long before; and a way would
  /// find more or less of them, by what the way before it read last.
  void emptyCaches() {
    constexpr int64_t kLine = 64;
    pool.split(0, static_cast<int64_t>(other.size()), kLine, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; i += kLine)
        ++other[i];
    });
  }

private:
  static size_t sizeOfOther() {
    long last = sysconf(_SC_LEVEL3_CACHE_SIZE), least = 64 << 20, most = 256 << 20;
    return last > 0 ? std::clamp(4 * last, least, most) : most;
  }
  /// Several times the last cache, which keeps lines that were read more than once.
  std::vector<char> other = std::vector<char>(sizeOfOther());
};
} // namespace

/// The product as the library takes it; it adds to nothing.
static dsopt_gemm libraryProduct(exec::ProductAttr product) {
  auto typeOf = [](Type type) { return type.isF32() ? DSOPT_F32 : type.isF16() ? DSOPT_F16 : DSOPT_BF16; };
  dsopt_gemm gemm = {};
  gemm.m = product.getM(), gemm.n = product.getN(), gemm.k = product.getK();
  gemm.transpose_a = product.getTransposeA(), gemm.transpose_b = product.getTransposeB();
  gemm.lda = product.getLda(), gemm.ldb = product.getLdb(), gemm.ldc = product.getLdc();
  gemm.type_ab = typeOf(product.getOperands()), gemm.type_c = typeOf(product.getResult());
  std::fill(std::begin(gemm.batch), std::end(gemm.batch), 1);
  if (!product.getBatch())
    return gemm;
  auto place = [](DenseI64ArrayAttr from, int64_t (&to)[DSOPT_BATCH_RANK]) {
    llvm::copy(from.asArrayRef(), std::end(to) - from.size());
  };
  place(product.getBatch(), gemm.batch);
  place(product.getStridesA(), gemm.stride_a);
  place(product.getStridesB(), gemm.stride_b);
  place(product.getStridesC(), gemm.stride_c);
  return gemm;
}

static double operations(exec::ProductAttr product) {
  return 2.0 * product.count() * product.getM() * product.getN() * product.getK();
}

/// The products of the module that have kernels, in its order.
static llvm::MapVector<exec::GemmChoiceAttr, TunedProduct> collectProducts(ModuleOp module, TargetAttr target,
                                                                           Messages &messages) {
  llvm::MapVector<exec::GemmChoiceAttr, TunedProduct> found;
  llvm::MapVector<exec::ProductAttr, int64_t> calls;
  WalkResult walked = module.walk([&](exec::ProductCallOpInterface call) {
    SmallVector<exec::ProductAttr> products;
    if (failed(call.collectProducts(products)))
      return WalkResult::interrupt();
    for (exec::ProductAttr product : products) {
      if (!product || !isCompiled(product, target))
        continue;
      product = product.withPacked(false); // with a table nothing is packed
      ++calls[product];
      // What is a part, or has a bias, is no library's.
      found[choiceOf(product)].mayBeLibrary &= !product.getBias() && call.getWholeProduct().empty();
    }
    return WalkResult::advance();
  });
  if (walked.wasInterrupted())
    messages.fail("products cannot be collected");
  for (auto [product, count] : calls) {
    auto &variants = found[choiceOf(product)].variants;
    variants.push_back(product);
    if (count > calls[variants.front()])
      std::swap(variants.front(), variants.back());
  }
  return found;
}

namespace {
struct CloseLibrary {
  void operator()(void *library) const { dlclose(library); }
};
using Library = std::unique_ptr<void, CloseLibrary>;
} // namespace

/// Compiles the ways' kernels to a library in memory.
static Library compileWays(ModuleOp module, TargetAttr target, MutableArrayRef<Way> ways,
                           Messages &messages) {
  OwningOpRef<ModuleOp> whole = ModuleOp::create(module.getLoc());
  (*whole)->setAttr(kTargetAttr, target);
  OpBuilder builder(whole->getBodyRegion());
  auto kernels = ModuleOp::create(builder, module.getLoc(), exec::kKernelsModule);
  kernels->setAttr(kTargetAttr, target);
  builder.setInsertionPointToStart(kernels.getBody());
  for (auto [index, way] : llvm::enumerate(ways)) {
    if (!way.blocking)
      continue;
    way.kernel = "way" + std::to_string(index);
    way.range = rangeOf(createProductKernel(builder, module.getLoc(), way.kernel,
                                            way.product->variants.front(), target, way.blocking));
  }
  ObjectOptions how = objectOptions();
  how.cache.clear();
  ObjectBuffers objects;
  if (failed(runPipeline(kernels, "builtin.module(lower-kernels)")) ||
      failed(emitObjects(*whole, how, ProgramTable(), /*model=*/"", objects)))
    messages.fail("the kernels to measure cannot be compiled");
  auto linked = linkObjects(objects);
  if (!linked)
    throw Error(runtime::StatusFailure, llvm::toString(linked.takeError()));
  int file = inMemory((*linked)->getBuffer());
  Library library(dlopen(("/proc/self/fd/" + std::to_string(file)).c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!library)
    throw Error(runtime::StatusFailure, std::string("the kernels to measure cannot be loaded: ") + dlerror());
  close(file);
  for (Way &way : ways)
    if (way.blocking)
      way.function = reinterpret_cast<dsopt_kernel>(dlsym(library.get(), way.kernel.c_str()));
  return library;
}

/// Runs ways of one product in turn; each keeps its best time.
static void measure(Machine &machine, TargetAttr target, MutableArrayRef<Way> ways) {
  using Clock = std::chrono::steady_clock;
  constexpr double kRun = 2e-3, kWay = 30e-3; // seconds of a run's calls, and of all runs of a way
  exec::ProductAttr product = ways.front().product->variants.front();
  Buffers buffers(product, target);
  dsopt_gemm gemm = libraryProduct(product);
  auto call = [&](const Way &way) {
    if (way.function)
      runtime::launch(machine.rt, way.function, way.range, /*grain=*/1, buffers.data());
    else
      runtime::multiply(machine.rt, gemm, buffers[0], buffers[1], buffers[2], /*accumulate=*/false);
  };
  auto seconds = [&](const Way &way, int64_t repeats) {
    machine.emptyCaches();
    Clock::time_point begin = Clock::now();
    for (int64_t i = 0; i < repeats; ++i)
      call(way);
    return std::chrono::duration<double>(Clock::now() - begin).count() / repeats;
  };
  double first = 0;
  for (Way &way : ways)
    first = std::max(first, (seconds(way, 1), seconds(way, 1)));
  int64_t repeats = std::max<int64_t>(1, kRun / first);
  int64_t runs = std::clamp<int64_t>(kWay / (first * repeats), 3, 15);
  for (int64_t run = 0; run < runs; ++run)
    for (Way &way : ways)
      way.seconds = std::min(way.seconds, seconds(way, repeats));
}

static std::string describe(exec::ProductAttr product) {
  return llvm::formatv("{0}{1}x{2}x{3} {4}{5} {6}",
                       product.count() > 1 ? std::to_string(product.count()) + " of " : "", product.getM(),
                       product.getN(), product.getK(), product.getTransposeA() ? "T" : "N",
                       product.getTransposeB() ? "T" : "N", product.getOperands())
      .str();
}

/// Measures ways, which stand together by product, and takes what is faster.
static void measureAll(ModuleOp module, TargetAttr target, Machine &machine, std::vector<Way> &ways,
                       Messages &messages, bool quiet) {
  // Closed behind them: the next one has its name, the open file's.
  Library library = compileWays(module, target, ways, messages);
  auto start = std::chrono::steady_clock::now();
  for (auto begin = ways.begin(); begin != ways.end();) {
    TunedProduct &product = *begin->product;
    auto first = begin;
    auto end = std::find_if(begin, ways.end(), [&](const Way &way) { return way.product != &product; });
    measure(machine, target, MutableArrayRef<Way>(&*begin, end - begin));
    // The best so far is the first, and is measured again beside the others.
    product.bestSeconds = begin->seconds;
    product.best = begin->blocking;
    for (; begin != end; ++begin) {
      if (!begin->blocking)
        product.librarySeconds = begin->seconds;
      else if (begin->blocking == product.model)
        product.modelSeconds = begin->seconds;
      if (begin->blocking && begin->seconds < product.bestSeconds) {
        product.best = begin->blocking;
        product.bestSeconds = begin->seconds;
      }
    }
    if (quiet)
      continue;
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    double left = took.count() / (begin - ways.begin()) * (ways.end() - begin);
    llvm::errs() << llvm::formatv(
        "dsopt:   {0}: {1:f2} times as fast as by the model, in the best of {2} ways; "
        "{3:f0} s left\n",
        describe(product.variants.front()), product.modelSeconds / product.bestSeconds, end - first, left);
  }
}

/// What a table says of a product: only what is clearly faster replaces what is there without it.
static MeasuredChoice decide(exec::GemmChoiceAttr key, const TunedProduct &product) {
  constexpr double kClearly = 0.98;
  exec::BlockingAttr blocking =
      product.bestSeconds < kClearly * product.modelSeconds ? product.best : product.model;
  double seconds = blocking == product.model ? product.modelSeconds : product.bestSeconds;
  if (product.mayBeLibrary && product.librarySeconds < kClearly * seconds) {
    blocking = nullptr;
    seconds = product.librarySeconds;
  }
  double giga = operations(product.variants.front()) * 1e-9;
  return {key.withBlocking(blocking), giga / seconds, giga / product.modelSeconds,
          product.librarySeconds > 0 ? giga / product.librarySeconds : 0};
}

void dsopt::tuneProducts(ModuleOp module, const std::string &path, bool quiet) {
  Messages messages(*module.getContext());
  FailureOr<TargetAttr> found = getTarget(module);
  if (failed(found))
    messages.fail("the module has no target");
  TargetAttr target = *found;
  llvm::MapVector<exec::GemmChoiceAttr, TunedProduct> products = collectProducts(module, target, messages);
  if (products.empty())
    throw Error(1, "-tune=" + path + " finds no product that has a kernel of its own on " +
                       target.getArch().str() + ": a table would be empty");
  Machine machine(target);
  auto fits = [&](const TunedProduct &product, exec::BlockingAttr blocking) {
    return llvm::all_of(product.variants, [&](exec::ProductAttr variant) {
      return problemOf(variant, target, blocking).empty();
    });
  };
  std::vector<Way> ways;
  auto add = [&](TunedProduct &product, ArrayRef<exec::BlockingAttr> others) {
    ways.push_back({&product, product.best});
    if (product.best != product.model)
      ways.push_back({&product, product.model});
    for (exec::BlockingAttr blocking : others)
      if (blocking != product.model && fits(product, blocking))
        ways.push_back({&product, blocking});
    if (product.mayBeLibrary)
      ways.push_back({&product, nullptr});
  };
  auto say = [&](StringRef what) {
    if (!quiet)
      llvm::errs() << "dsopt: " << products.size() << " products, " << ways.size() << " ways: " << what
                   << "\n";
  };
  for (auto &[key, product] : products) {
    product.model = product.best = chooseBlocking(product.variants.front(), target);
    add(product, otherShapes(product.variants.front(), target, product.best));
  }
  say("blocks of every shape");
  measureAll(module, target, machine, ways, messages, quiet);
  ways.clear();
  for (auto &[key, product] : products)
    add(product, otherCopies(product.variants.front(), target, product.best));
  say("other copies about the fastest");
  measureAll(module, target, machine, ways, messages, quiet);

  std::vector<MeasuredChoice> choices;
  int64_t faster = 0, libraries = 0;
  double before = 0, after = 0;
  for (auto &[key, product] : products) {
    choices.push_back(decide(key, product));
    double model = product.modelSeconds, chosen = model * choices.back().model / choices.back().chosen;
    libraries += !choices.back().choice.getBlocking();
    faster += chosen < model;
    before += model;
    after += chosen;
  }
  size_t measured = choices.size();
  if (auto table = module->getAttrOfType<exec::GemmTableAttr>(exec::kGemmTableAttr))
    for (auto choice : table.getChoices().getAsRange<exec::GemmChoiceAttr>())
      if (!products.contains(choice.withoutBlocking()))
        choices.push_back({choice});
  writeGemmTable(path, target, choices);
  if (!quiet)
    llvm::outs() << llvm::formatv(
        "wrote {0}: {1} products on {2} with {3} thread{4}, of which {5} are faster than "
        "by the model ({6} by the library); one call of each takes {7:f3} times as long{8}\n",
        path, measured, target.getArch(), target.getThreads(), target.getThreads() == 1 ? "" : "s", faster,
        libraries, after / before,
        choices.size() > measured
            ? llvm::formatv("; {0} more of -gemm-table", choices.size() - measured).str()
            : "");
}
