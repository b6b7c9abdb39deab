//===- TargetTest.cpp - a module compiled, linked, loaded and called ------===//

#include "dsopt/Target/Target.h"
#include "dsopt/Conversion/Passes.h"
#include "dsopt/Dialect/Exec/Exec.h"
#include "dsopt/Interfaces/CompiledProducts.h"
#include "dsopt/Pipeline/RegisterAll.h"
#include "dsopt/Runtime/ABI.h"
#include "dsopt/Runtime/Session.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileSystem.h"

#include <cstring>
#include <dlfcn.h>
#include <gtest/gtest.h>

using namespace mlir;
using namespace dsopt;

//===----------------------------------------------------------------------===//
// The runtime, as simple as it can be
//===----------------------------------------------------------------------===//

extern "C" {
void dsopt_rt_launch(dsopt_rt *, dsopt_kernel kernel, int64_t range, int64_t grain, void *const *args) {
  for (int64_t from = 0; from < range; from += grain)
    kernel(from, std::min(from + grain, range), args);
}
void dsopt_rt_gemm(dsopt_rt *, const dsopt_gemm *p, const void *a, const void *b, void *c, void *,
                   int64_t accumulate) {
  auto *left = static_cast<const float *>(a), *right = static_cast<const float *>(b);
  auto *result = static_cast<float *>(c);
  for (int64_t i = 0; i < p->m; ++i)
    for (int64_t j = 0; j < p->n; ++j) {
      float sum = accumulate ? result[i * p->ldc + j] : 0;
      for (int64_t l = 0; l < p->k; ++l)
        sum += left[p->transpose_a ? l * p->lda + i : i * p->lda + l] *
               right[p->transpose_b ? j * p->ldb + l : l * p->ldb + j];
      result[i * p->ldc + j] = sum;
    }
}
void dsopt_rt_scatter_add(dsopt_rt *, const dsopt_scatter_add *d, const void *rows, const void *indices,
                          void *target, void *, int64_t accumulate) {
  auto *result = static_cast<float *>(target);
  if (!accumulate)
    std::fill(result, result + d->size * d->width, 0.f);
  for (int64_t i = 0; i < d->count; ++i) {
    int64_t index = d->index_bytes == 8 ? static_cast<const int64_t *>(indices)[i]
                                        : static_cast<const int32_t *>(indices)[i];
    for (int64_t j = 0; j < d->width; ++j)
      result[index * d->width + j] += static_cast<const float *>(rows)[i * d->width + j];
  }
}
void dsopt_rt_accumulate(dsopt_rt *, int64_t elements, const float *value, void *target, int64_t,
                         int64_t accumulate) {
  auto *gradient = static_cast<float *>(target);
  for (int64_t i = 0; i < elements; ++i)
    gradient[i] = (accumulate ? gradient[i] : 0) + value[i];
}
}

namespace {
/// Two stages' worth of table, one segment and the kernel it launches (y = x + c).
constexpr const char *kModule = R"mlir(
module attributes {graph.model = "tiny", graph.model_folder = "models",
    exec.inputs = [{name = "x", type = tensor<8x4xf32>, label = false, ignore_index = -100 : i64}, {name = "y", type = tensor<8xi64>, label = true, ignore_index = -1 : i64}],
    dsopt.options = {dp = 2, zero = 3, micro_batches = 2, reduction_shards = 2, clip = 1, optimizer = "sgd",
                     command = "dsopt tiny.onnx", run_defaults = {lr = "0.1"}}} {
  dist.grid @grid [pp = 1, edp = 2, ep = 1, sp = 1, tp = 1]
  exec.communicator @dp over [edp, ep, sp]
  exec.communicator @world over [pp, edp, ep, sp, tp]
  graph.parameter @w : tensor<4x2xf32> from "tiny.data" at 16 bytes 32 {chunks = array<i64: -1>, file_bytes = 48 : i64}
  graph.parameter @v : tensor<3xf32> from "tiny.data" at 48 bytes 12 {decay_scale = 0.25, lr_scale = 0.5}
  graph.parameter @u : tensor<3xf32> from "tiny.data" at 60 bytes 12 {decay_scale = 0.25, lr_scale = 0.5}
  dist.bucket @b0 : f32 of [0] [#dist.range<@w, 0, 8>, #dist.range<@v, 64, 3>, #dist.range<@u, 128, 3>]
    elements 192 padded 256 over [edp, ep, sp] zero 3
  memref.global "private" constant @const_0 : memref<8x2xf32> = dense<0.5>
  module @kernels {
    llvm.func @kernel0(%lo: i64, %hi: i64, %args: !llvm.ptr) {
      %one = llvm.mlir.constant(1 : i64) : i64
      %sx = llvm.getelementptr %args[0] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
      %sc = llvm.getelementptr %args[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
      %sy = llvm.getelementptr %args[2] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
      %x = llvm.load %sx : !llvm.ptr -> !llvm.ptr
      %c = llvm.load %sc : !llvm.ptr -> !llvm.ptr
      %y = llvm.load %sy : !llvm.ptr -> !llvm.ptr
      llvm.br ^head(%lo : i64)
    ^head(%i: i64):
      %more = llvm.icmp "slt" %i, %hi : i64
      llvm.cond_br %more, ^body, ^exit
    ^body:
      %px = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      %pc = llvm.getelementptr %c[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      %py = llvm.getelementptr %y[%i] : (!llvm.ptr, i64) -> !llvm.ptr, f32
      %vx = llvm.load %px : !llvm.ptr -> f32
      %vc = llvm.load %pc : !llvm.ptr -> f32
      %sum = llvm.fadd %vx, %vc : f32
      llvm.store %sum, %py : f32, !llvm.ptr
      %next = llvm.add %i, %one : i64
      llvm.br ^head(%next : i64)
    ^exit:
      llvm.return
    }
  }
  func.func private @block0.F(%x: memref<8x4xf32>, %y: memref<8x2xf32>, %w: memref<4x2xf32>, %c: memref<8x2xf32>)
      attributes {exec.segment, exec.temp_bytes = 128 : i64, exec.flops = 144 : i64, graph.block = 0 : i64, graph.phase = #graph.phase<F>} {
    %t = exec.temp at 64 : memref<8x2xf32>
    exec.gemm %x, %w -> %t : memref<8x4xf32>, memref<4x2xf32> -> memref<8x2xf32>
    exec.launch @kernels::@kernel0 range 16 grain 4 (%t, %c) -> (%y) : memref<8x2xf32>, memref<8x2xf32> -> memref<8x2xf32>
    return
  }
  func.func private @block0.W(%x: memref<8x4xf32>, %d: memref<8x2xf32>, %g: memref<4x2xf32>)
      attributes {exec.segment, exec.temp_bytes = 0 : i64, exec.flops = 128 : i64} {
    exec.gemm %x, %d -> %g {into_gradient, transpose_a} : memref<8x4xf32>, memref<8x2xf32> -> memref<4x2xf32>
    return
  }
  exec.stream @compute compute
  exec.stream @comm communication
  exec.program @position0 position 0 blocks [0, 1] attributes {traffic = {all_gather = 512}} {
    exec.memory @device device bytes 4096 bound 4000 {live = {parameters = 512, total = 4096}}
    exec.buffer @b0.param at 0 : memref<128xf32> parameters slots 1 stride 512 persistent stored of @b0
    exec.buffer @b0.full at 512 : memref<256xf32> buffers slots 1 stride 1024 gathered of @b0
    exec.buffer @b0.grad.0 at 1536 : memref<128xf32> gradients slots 1 stride 512 persistent accumulator of @b0 use 0
    exec.buffer @input.x at 2048 : memref<8x4xf32> activations slots 2 stride 128
    exec.buffer @out at 2304 : memref<8x2xf32> activations slots 1 stride 64
    exec.buffer @temp at 2368 : memref<128xi8> buffers slots 1 stride 128
    exec.buffer @norms at 2496 : memref<21xi64> buffers slots 1 stride 192
    exec.buffer @const_0 : memref<8x2xf32> constants slots 1 stride 64 symbol "const_0"
    exec.schedule {
      %0 = exec.gather @b0.param to @b0.full bytes 512 all_gather order 0 over @dp on @comm
      %1 = exec.input "x" to @input.x[1] micro_batch 1 on @compute
      exec.wait %0 on @compute
      exec.wait %1 on @compute
      %2 = exec.run @block0.F [@input.x[1], @out, @b0.full, @const_0] temp @temp micro_batch 1 accumulate on @compute
      %n = exec.norm @b0.grad.0 of @b0 to @norms on @compute
      exec.wait %n on @comm
      %3 = exec.agree norms [@norms] losses [] order 1 over @world on @comm
      exec.wait %3 on @compute
      %4 = exec.update @kernels::@kernel0 of @b0 [@b0.param, @b0.grad.0+0+4*edp] elements 128 sliced on @compute {exec.changes = [@b0.param]}
      %5 = exec.fold @out bytes 8 into [@b0.param+256] places [4] elements [3] momenta [0.75] on @compute
      %6 = exec.input "context" to @out micro_batch 1 on @compute context
    }
  }
})mlir";

class Target : public ::testing::Test {
protected:
  void SetUp() override {
    DialectRegistry registry;
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    handler = std::make_unique<ScopedDiagnosticHandler>(&context, [&](Diagnostic &diagnostic) {
      message = diagnostic.str();
      return success();
    });
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("dsopt-test", folder));
  }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }

  /// The module for a processor, with `to` in place of `from`, lowered.
  OwningOpRef<ModuleOp> lower(llvm::StringRef arch, llvm::StringRef from = "", llvm::StringRef to = "") {
    std::string text = kModule;
    if (!from.empty())
      text.replace(text.find(from), from.size(), to.str());
    auto module = parseSourceString<ModuleOp>(text, &context);
    if (!module)
      return module;
    auto target = resolveTarget(loc(), arch, /*threads=*/2);
    if (failed(target))
      return nullptr;
    module->walk([&](ModuleOp one) { one->setAttr(kTargetAttr, *target); });
    PassManager passes(&context);
    passes.addPass(createSegmentsToLLVM());
    if (failed(passes.run(*module)))
      return nullptr;
    return module;
  }
  std::string file(const char *name) { return (folder + "/" + name).str(); }
  Location loc() { return UnknownLoc::get(&context); }

  MLIRContext context;
  std::unique_ptr<ScopedDiagnosticHandler> handler;
  std::string message;
  llvm::SmallString<128> folder;
};
} // namespace

TEST_F(Target, ResolvesArchitectures) {
  auto native = resolveTarget(loc(), "native", 2);
  ASSERT_TRUE(succeeded(native));
  EXPECT_FALSE(native->getArch().empty());
  EXPECT_EQ(native->getThreads(), 2);
  auto v3 = resolveTarget(loc(), "x86-64-v3", 1), v4 = resolveTarget(loc(), "x86-64-v4", 1);
  auto zen4 = resolveTarget(loc(), "znver4", 1);
  ASSERT_TRUE(succeeded(v3) && succeeded(v4) && succeeded(zen4));
  EXPECT_EQ(statedFeatures(*v3), (std::vector<std::string>{"avx", "avx2", "fma", "bmi", "bmi2", "f16c"}));
  EXPECT_EQ(v3->getVectorBits(), 256);
  EXPECT_TRUE(llvm::is_contained(statedFeatures(*v4), "avx512vl"));
  EXPECT_EQ(v4->getVectorBits(), 512);
  EXPECT_TRUE(convertsF16(*v4));
  Type f32 = Float32Type::get(loc().getContext()), bf16 = BFloat16Type::get(loc().getContext());
  EXPECT_TRUE(widensOperands(*v3, bf16) && widensOperands(*v4, bf16) && !widensOperands(*v3, f32));
  EXPECT_FALSE(widensOperands(*zen4, bf16));
  EXPECT_TRUE(widensOperands(*zen4, Float16Type::get(loc().getContext())));
  EXPECT_TRUE(failed(resolveTarget(loc(), "i8080", 1)));
  EXPECT_NE(message.find("unknown -arch=i8080, expected native"), std::string::npos) << message;
}

TEST_F(Target, WritesTheTableThatTheRuntimeReads) {
  auto module = lower("x86-64-v3");
  ASSERT_TRUE(module) << message;
  auto text = emitProgram(*module);
  ASSERT_TRUE(succeeded(text)) << message;
  runtime::Program program = runtime::parseProgram(text->text.data(), text->text.size(), text->actions);
  EXPECT_EQ(program.command, "dsopt tiny.onnx");
  EXPECT_EQ(program.model, "tiny");
  // Absolute, so that a program finds its weights from every working folder.
  std::string folder = program.model_folder;
  ASSERT_GT(folder.size(), 7u);
  EXPECT_EQ(folder.front(), '/');
  EXPECT_EQ(folder.substr(folder.size() - 7), "/models");
  EXPECT_EQ(program.arch, "x86-64-v3");
  EXPECT_EQ(program.threads, 2);
  EXPECT_EQ(program.K, 4);
  EXPECT_EQ(program.V, 2);
  EXPECT_EQ(program.M, 2);
  EXPECT_EQ(program.zero, 3);
  EXPECT_EQ(program.accumulate, "sharded");
  EXPECT_TRUE(program.clip);
  EXPECT_EQ(program.flops, 2 * 144);
  EXPECT_EQ(program.bubble, 0.0);
  EXPECT_EQ(program.defaults.at("lr"), "0.1");
  ASSERT_EQ(program.inputs.size(), 2u);
  EXPECT_EQ(program.inputs[0].shape, (std::vector<int64_t>{8, 4}));
  EXPECT_FALSE(program.inputs[0].label);
  EXPECT_TRUE(program.inputs[1].label);
  EXPECT_EQ(program.inputs[1].type, "i64");
  EXPECT_EQ(program.inputs[1].ignore_index, -1);

  ASSERT_EQ(program.parameters.size(), 3u);
  EXPECT_EQ(program.parameters[0].chunks, std::vector<uint64_t>{~uint64_t(0)});
  EXPECT_EQ(program.parameters[0].file_bytes, 48);
  EXPECT_EQ(program.parameters[2].bucket_offset, 128);
  ASSERT_EQ(program.buckets.size(), 1u);
  ASSERT_EQ(program.buckets[0].groups.size(), 2u);
  EXPECT_EQ(program.buckets[0].groups[0].end, 64);
  EXPECT_EQ(program.buckets[0].groups[0].decay_scale, 1);
  EXPECT_EQ(program.buckets[0].groups[1].begin, 64);
  EXPECT_EQ(program.buckets[0].groups[1].end, 192);
  EXPECT_EQ(program.buckets[0].groups[1].lr_scale, 0.5);
  EXPECT_EQ(program.buckets[0].groups[1].decay_scale, 0.25);

  ASSERT_EQ(program.positions.size(), 1u);
  const runtime::Position &position = program.positions[0];
  EXPECT_EQ(arenaOf(position), 4096);
  EXPECT_EQ(position.memory.at("total"), 4096);
  ASSERT_EQ(position.queues.size(), 2u);
  EXPECT_EQ(position.queues[1].name, "comm");
  EXPECT_EQ(position.queues[1].kind, runtime::QueueKind::Communication);
  EXPECT_EQ(position.traffic.all_gather, 512);
  EXPECT_EQ(position.buffers[7].symbol, "const_0");
  ASSERT_EQ(position.loads.size(), 1u);
  EXPECT_TRUE(position.loads[0].sliced);
  ASSERT_EQ(position.actions.size(), 8u);
  EXPECT_EQ(position.actions[0].bucket, 0);
  EXPECT_EQ(position.actions[1].refs[0].slot, 1);
  const runtime::Action &run = position.actions[2];
  EXPECT_EQ(run.waits, std::vector<int64_t>{0}); // the input is on the same stream
  EXPECT_EQ(run.name, "block 0 F");
  EXPECT_EQ(run.phase, runtime::Phase::Forward);
  EXPECT_EQ(run.symbol, "block0.F");
  EXPECT_TRUE(run.accumulate);
  EXPECT_EQ(run.micro_batch, 1);
  EXPECT_EQ(run.temp.buffer, 5);
  EXPECT_EQ(run.refs.size(), 4u);
  EXPECT_EQ(position.actions[3].kind, runtime::ActionKind::Norm);
  EXPECT_EQ(position.actions[3].bucket, 0);
  EXPECT_EQ(position.actions[4].norms, 1);
  const runtime::Action &update = position.actions[5];
  EXPECT_EQ(update.waits, std::vector<int64_t>{4});
  EXPECT_EQ(update.refs[1].steps[static_cast<size_t>(Axis::edp)], 4);
  EXPECT_TRUE(update.sliced);
  const runtime::Action &fold = position.actions[6];
  EXPECT_EQ(fold.kind, runtime::ActionKind::Fold);
  EXPECT_EQ(fold.bytes, 8);
  ASSERT_EQ(fold.refs.size(), 2u);
  EXPECT_EQ(fold.refs[1].offset, 256);
  ASSERT_EQ(fold.folds.size(), 1u);
  EXPECT_EQ(fold.folds[0].place, 4);
  EXPECT_EQ(fold.folds[0].elements, 3);
  EXPECT_EQ(fold.folds[0].momentum, 0.75);
  EXPECT_EQ(position.actions[7].input, -1);
}

TEST_F(Target, RefusesModulesWithoutTarget) {
  auto module = lower("native");
  ASSERT_TRUE(module) << message;
  ObjectBuffers objects;
  auto refuses = [&] { return failed(emitObjects(*module, {}, {}, "", objects)); };
  auto kernels = module->lookupSymbol<ModuleOp>("kernels");
  kernels->removeAttr(kTargetAttr);
  EXPECT_TRUE(refuses());
  EXPECT_EQ(message, "module @kernels has no dsopt.target, expected what attach-target says");
  (*module)->removeAttr(kTargetAttr);
  EXPECT_TRUE(failed(emitProgram(*module)));
  EXPECT_EQ(message, "module has no dsopt.target, expected what attach-target says");
}

/// LLVM would leave out what it does not know.
TEST_F(Target, RefusesTargetsThatLLVMDoesNotKnow) {
  auto module = lower("x86-64-v3");
  ASSERT_TRUE(module) << message;
  std::string text;
  llvm::raw_string_ostream os(text);
  auto refuses = [&](llvm::StringRef arch, llvm::StringRef feature) {
    auto before = (*module)->getAttrOfType<TargetAttr>(kTargetAttr);
    (*module)->setAttr(kTargetAttr, TargetAttr::get(&context, TargetKind::CPU, before.getTriple(), arch, 1,
                                                    256, Builder(&context).getStrArrayAttr({feature})));
    return failed(emitLLVM(*module, os));
  };
  EXPECT_TRUE(refuses("znevr4", "+avx2"));
  EXPECT_NE(message.find("unknown processor 'znevr4'"), std::string::npos) << message;
  EXPECT_TRUE(refuses("znver4", "+avx22"));
  EXPECT_NE(message.find("unknown feature 'avx22'"), std::string::npos) << message;
}

TEST_F(Target, ListsMemoriesAndStreamsAsTheyAreDeclared) {
  auto module = lower("native", "    exec.buffer @norms at 2496 :", R"mlir(
    exec.memory @pinned disk bytes 4096 bound 192 alignment 4096
    exec.buffer @norms in @pinned at 0 :)mlir");
  ASSERT_TRUE(module) << message;
  OpBuilder builder(module->getBody(), module->getBody()->begin());
  exec::StreamOp::create(builder, loc(), "offload", exec::StreamKind::Copy);
  auto text = emitProgram(*module);
  ASSERT_TRUE(succeeded(text)) << message;
  EXPECT_NE(
      text->text.find(
          R"("memories":[{"kind":"device","bytes":4096,"alignment":64},)"
          R"({"kind":"disk","bytes":4096,"alignment":4096}],"queues":[{"name":"offload","kind":"copy"},)"
          R"({"name":"compute","kind":"compute"},{"name":"comm","kind":"communication"}])"),
      std::string::npos)
      << text->text;
  EXPECT_NE(text->text.find(R"("name":"norms","kind":"buffers","memory":1,"offset":0)"), std::string::npos)
      << text->text;
  // Actions are on the queues of their streams, wherever these are listed.
  EXPECT_NE(text->actions.find(R"({"queue":2,"kind":"gather")"), std::string::npos) << text->text;
  EXPECT_NE(text->actions.find(R"({"queue":1,"kind":"input")"), std::string::npos) << text->text;
  // What the runtime has no memory for, and no queue, it does not run.
  try {
    runtime::parseProgram(text->text.data(), text->text.size(), text->actions);
    FAIL() << "a program with a memory on disk runs";
  } catch (const runtime::Error &error) {
    EXPECT_STREQ(error.what(),
                 "program table: memory 1 is of kind disk: this runtime has one memory of kind device, then "
                 "one of kind host, then one of kind disk");
  }
}

TEST_F(Target, RefusesProgramsWithoutMemory) {
  auto module = lower("native");
  ASSERT_TRUE(module) << message;
  module->walk([](exec::MemoryOp memory) { memory.removeBytesAttr(); });
  EXPECT_TRUE(failed(emitProgram(*module)));
  EXPECT_NE(message.find("has no bytes"), std::string::npos) << message;
}

TEST_F(Target, PrintsLLVM) {
  auto module = lower("x86-64-v4");
  ASSERT_TRUE(module) << message;
  std::string text;
  llvm::raw_string_ostream os(text);
  ASSERT_TRUE(succeeded(emitLLVM(*module, os))) << message;
  for (const char *part : {"target triple", "define void @block0.F(", "define void @kernel0(",
                           "@const_0 = ", "\"target-cpu\"=\"x86-64-v4\"", "\"prefer-vector-width\"=\"512\""})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
}

TEST_F(Target, CompiledSegmentsComputeWhatTheySay) {
  auto module = lower("native");
  ASSERT_TRUE(module) << message;
  ObjectBuffers one, two;
  ObjectOptions options;
  ASSERT_TRUE(succeeded(emitObjects(*module, options, {"{}", "[]"}, "model", one))) << message;
  options.threads = 2;
  ASSERT_TRUE(succeeded(emitObjects(*module, options, {"{}", "[]"}, "model", two))) << message;
  ASSERT_EQ(one.size(), two.size());
  for (size_t i = 0; i < one.size(); ++i)
    EXPECT_EQ(one[i]->getBuffer(), two[i]->getBuffer())
        << "object " << i << " depends on the number of threads";

  auto linked = linkObjects(one);
  ASSERT_TRUE(static_cast<bool>(linked)) << llvm::toString(linked.takeError());
  std::string path = file("tiny.so");
  std::error_code error;
  llvm::raw_fd_ostream(path, error) << (*linked)->getBuffer();
  void *object = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(object) << dlerror();
  EXPECT_EQ(std::string(static_cast<const char *>(dlsym(object, "dsopt_program")), 2), "{}");
  EXPECT_EQ(*static_cast<const uint64_t *>(dlsym(object, "dsopt_program_bytes")), 2u);
  EXPECT_EQ(std::string(static_cast<const char *>(dlsym(object, "dsopt_actions")), 2), "[]");
  EXPECT_EQ(*static_cast<const uint64_t *>(dlsym(object, "dsopt_model_bytes")), 5u);
  auto *constant = static_cast<float *>(dlsym(object, "const_0"));
  ASSERT_TRUE(constant);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(constant) % 64, 0u);
  auto forward = reinterpret_cast<dsopt_segment>(dlsym(object, "block0.F"));
  auto gradient = reinterpret_cast<dsopt_segment>(dlsym(object, "block0.W"));
  ASSERT_TRUE(forward && gradient);

  std::vector<float> x(32), w(8), y(16), g(8), expected(16);
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = float(i % 7) - 3;
  for (size_t i = 0; i < w.size(); ++i)
    w[i] = float(i) / 4;
  alignas(64) char temp[128];
  void *buffers[] = {x.data(), y.data(), w.data(), constant};
  forward(nullptr, buffers, temp, 0);
  dsopt_gemm product = {8, 2, 4, 0, 0, 4, 2, 2, DSOPT_F32, DSOPT_F32, {1, 1, 1, 1}, {}, {}, {}};
  dsopt_rt_gemm(nullptr, &product, x.data(), w.data(), expected.data(), nullptr, 0);
  for (size_t i = 0; i < y.size(); ++i)
    EXPECT_EQ(y[i], expected[i] + 0.5f) << i;

  void *arguments[] = {x.data(), y.data(), g.data()};
  gradient(nullptr, arguments, temp, 0);
  std::vector<float> once = g;
  gradient(nullptr, arguments, temp, 1);
  for (size_t i = 0; i < g.size(); ++i)
    EXPECT_EQ(g[i], 2 * once[i]) << i;
  dlclose(object);

  auto relocatable = linkObjects(one, /*relocatable=*/true);
  ASSERT_TRUE(static_cast<bool>(relocatable)) << llvm::toString(relocatable.takeError());
  EXPECT_EQ((*relocatable)->getBuffer()[16], 1); // ET_REL
  ObjectBuffers wrong;
  wrong.push_back(llvm::MemoryBuffer::getMemBufferCopy("no object", "wrong"));
  std::string refusal = llvm::toString(linkObjects(wrong).takeError());
  EXPECT_NE(refusal.find("cannot link"), std::string::npos) << refusal;
}

/// Equal blocks share segments, evaluations those of training: a run's own block and phase count.
TEST_F(Target, RunsAreNamedByTheirOwnBlock) {
  auto shared = lower("native", "exec.run @block0.F [", "exec.run @block0.F for <3 E> [");
  ASSERT_TRUE(shared);
  auto text = emitProgram(*shared);
  ASSERT_TRUE(succeeded(text)) << message;
  runtime::Program program = runtime::parseProgram(text->text.data(), text->text.size(), text->actions);
  const runtime::Action &run = program.positions[0].actions[2];
  EXPECT_EQ(run.name, "block 3 E");
  EXPECT_EQ(run.phase, runtime::Phase::Evaluation);
  EXPECT_EQ(run.symbol, "block0.F");

  auto unnamed = lower("native", ", graph.block = 0 : i64, graph.phase = #graph.phase<F>", "");
  ASSERT_TRUE(unnamed);
  EXPECT_TRUE(failed(emitProgram(*unnamed)));
  EXPECT_EQ(message, "'exec.run' op is of no block and phase: neither it nor @block0.F says one");
}
