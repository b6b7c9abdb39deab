//===- DriverTest.cpp - the driver's calls on the software device ---------===//

#include "Driver/Api.h"

#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <vector>

namespace {
/// y[i] = a * x[i] + y[i], and a kernel for a device that there is not.
constexpr const char *kAxpy = R"(
.version 8.0
.target sm_80
.address_size 64
.global .align 4 .f32 factor = 0f40000000;
.visible .entry axpy(.param .u64 x, .param .u64 y, .param .f32 a, .param .u32 count)
{
  .reg .pred %p;
  .reg .b32 %i, %n, %t;
  .reg .b64 %x, %y, %at;
  .reg .f32 %a, %b, %c;
  mov.u32 %i, %ctaid.x;
  mov.u32 %n, %ntid.x;
  mov.u32 %t, %tid.x;
  mad.lo.u32 %i, %i, %n, %t;
  ld.param.u32 %n, [count];
  setp.ge.u32 %p, %i, %n;
  @%p bra $end;
  ld.param.u64 %x, [x];
  ld.param.u64 %y, [y];
  ld.param.f32 %a, [a];
  mul.wide.u32 %at, %i, 4;
  add.s64 %x, %x, %at;
  add.s64 %y, %y, %at;
  ld.global.f32 %b, [%x];
  ld.global.f32 %c, [%y];
  fma.rn.f32 %c, %a, %b, %c;
  st.global.f32 [%y], %c;
$end:
  ret;
}
)";

class Driver : public testing::Test {
protected:
  void SetUp() override { begin(1); }

  void begin(uint64_t seed) {
    softDeviceRestart(seed);
    CUcontext context;
    ok(cuInit(0));
    ok(cuDevicePrimaryCtxRetain(&context, 0));
    ok(cuCtxSetCurrent(context));
    ok(cuModuleLoadData(&module, kAxpy));
    ok(cuModuleGetFunction(&axpy, module, "axpy"));
  }
  void ok(CUresult result) { ASSERT_EQ(result, CUDA_SUCCESS) << softDeviceFault(); }
  CUdeviceptr room(size_t count) {
    CUdeviceptr address = 0;
    ok(cuMemAlloc_v2(&address, count * sizeof(float)));
    return address;
  }
  CUdeviceptr upload(const std::vector<float> &values) {
    CUdeviceptr address = room(values.size());
    ok(cuMemcpyHtoD_v2(address, values.data(), values.size() * sizeof(float)));
    return address;
  }
  std::vector<float> download(CUdeviceptr address, size_t count) {
    std::vector<float> values(count);
    EXPECT_EQ(cuMemcpyDtoH_v2(values.data(), address, count * sizeof(float)), CUDA_SUCCESS)
        << softDeviceFault();
    return values;
  }
  CUresult launch(CUdeviceptr x, CUdeviceptr y, float a, unsigned count, CUstream stream,
                  unsigned threads = 64) {
    void *parameters[] = {&x, &y, &a, &count};
    return cuLaunchKernel(axpy, (count + threads - 1) / threads, 1, 1, threads, 1, 1, 0, stream, parameters,
                          nullptr);
  }
  CUstream stream() {
    CUstream made = nullptr;
    ok(cuStreamCreate(&made, CU_STREAM_NON_BLOCKING));
    return made;
  }
  CUevent event() {
    CUevent made = nullptr;
    ok(cuEventCreate(&made, CU_EVENT_DISABLE_TIMING));
    return made;
  }

  CUmodule module = nullptr;
  CUfunction axpy = nullptr;
};

bool says(const std::string &word) { return std::string(softDeviceFault()).find(word) != std::string::npos; }
} // namespace

TEST_F(Driver, CopiesAndKernelsOfOneStreamAreInOrder) {
  CUstream one = stream();
  std::vector<float> x(1000, 3), y(1000, 1), made(1000);
  CUdeviceptr there = room(1000), target = upload(y);
  ok(cuMemcpyHtoDAsync_v2(there, x.data(), 4000, one));
  for (int i = 0; i < 3; ++i)
    ok(launch(there, target, 2, 1000, one));
  ok(cuMemcpyDtoHAsync_v2(made.data(), target, 4000, one));
  ok(cuStreamSynchronize(one));
  EXPECT_EQ(made, std::vector<float>(1000, 19));
  CUdeviceptr factor;
  size_t bytes;
  ok(cuModuleGetGlobal_v2(&factor, &bytes, module, "factor"));
  EXPECT_EQ(bytes, 4u);
  EXPECT_EQ(download(factor, 1)[0], 2);
  EXPECT_EQ(cuModuleGetFunction(&axpy, module, "none"), CUDA_ERROR_NOT_FOUND);
}

TEST_F(Driver, AMissingWaitIsFoundUnderEverySeed) {
  for (bool waits : {true, false})
    for (uint64_t seed = 1; seed <= 100; ++seed) {
      begin(seed);
      CUstream compute = stream(), copies = stream();
      CUevent done = event();
      std::vector<float> made(256);
      CUdeviceptr x = upload(std::vector<float>(256, 1)), y = upload(std::vector<float>(256, 1));
      ok(launch(x, y, 1, 256, compute));
      ok(cuEventRecord(done, compute));
      if (waits)
        ok(cuStreamWaitEvent(copies, done, 0));
      ok(cuMemcpyDtoHAsync_v2(made.data(), y, 1024, copies));
      CUresult first = cuStreamSynchronize(copies), second = cuCtxSynchronize();
      EXPECT_EQ(second == CUDA_SUCCESS, waits) << seed << " " << first;
      EXPECT_EQ(says("no order between kernel axpy and a copy to the host"), !waits) << softDeviceFault();
    }
}

TEST_F(Driver, OtherPartsOfABufferNeedNoOrder) {
  CUstream one = stream(), other = stream();
  CUdeviceptr x = upload(std::vector<float>(512, 1)), y = upload(std::vector<float>(512, 1));
  ok(launch(x, y, 1, 256, one));
  ok(launch(x + 1024, y + 1024, 1, 256, other));
  // Two reads need none, either.
  CUdeviceptr z = upload(std::vector<float>(256));
  ok(launch(x, z, 1, 256, other));
  ok(cuCtxSynchronize());
  EXPECT_EQ(download(y, 512), std::vector<float>(512, 2));
}

TEST_F(Driver, TheHostsOwnOrderCounts) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    begin(seed);
    CUstream one = stream(), other = stream();
    CUdeviceptr x = upload(std::vector<float>(64, 1)), y = upload(std::vector<float>(64, 1));
    ok(launch(x, y, 1, 64, one));
    ok(cuStreamSynchronize(one));
    ok(launch(x, y, 1, 64, other));
    CUevent done = event();
    ok(cuEventRecord(done, other));
    while (cuEventQuery(done) == CUDA_ERROR_NOT_READY)
      ;
    ok(launch(x, y, 1, 64, one));
    ok(cuStreamSynchronize(one));
    EXPECT_EQ(download(y, 64), std::vector<float>(64, 4)) << seed;
  }
}

TEST_F(Driver, BuffersOfTheHostAreReadWhenACopyRuns) {
  int early = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    begin(seed);
    CUstream one = stream();
    void *memory;
    ok(cuMemHostAlloc(&memory, 256, 0));
    float *pinned = static_cast<float *>(memory);
    std::fill_n(pinned, 64, 1.0f);
    CUdeviceptr x = room(64);
    ok(cuMemcpyHtoDAsync_v2(x, pinned, 256, one));
    // A mistake: the copy may not have run yet.
    std::fill_n(pinned, 64, 2.0f);
    ok(cuStreamSynchronize(one));
    early += download(x, 64)[0] == 2;
    ok(cuMemFreeHost(pinned));
  }
  EXPECT_EQ(early, 30);
}

TEST_F(Driver, ARecordedGraphIsTheWorkItRecorded) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    begin(seed);
    CUstream one = stream(), other = stream();
    CUevent fork = event(), join = event();
    CUdeviceptr x = upload(std::vector<float>(64, 1)), y = upload(std::vector<float>(64)),
                z = upload(std::vector<float>(64));
    CUgraph graph;
    CUgraphExec executable;
    ok(cuStreamBeginCapture_v2(one, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    ok(launch(x, y, 1, 64, one));
    ok(cuEventRecord(fork, one));
    ok(cuStreamWaitEvent(other, fork, 0));
    ok(launch(y, z, 1, 64, other));
    ok(cuEventRecord(join, other));
    ok(launch(x, x, 0, 64, one));
    ok(cuStreamWaitEvent(one, join, 0));
    ok(launch(x, z, 1, 64, one));
    ok(cuStreamEndCapture(one, &graph));
    ok(cuGraphInstantiateWithFlags(&executable, graph, 0));
    ok(cuCtxSynchronize());
    EXPECT_EQ(download(z, 64)[0], 0);
    for (int i = 0; i < 3; ++i)
      ok(cuGraphLaunch(executable, one));
    ok(cuStreamSynchronize(one));
    // y is 1, 2, 3 and z their sum with three times x.
    EXPECT_EQ(download(z, 64), std::vector<float>(64, 9));
    ok(cuGraphExecDestroy(executable));
    ok(cuGraphDestroy(graph));
  }
}

TEST_F(Driver, AGraphIsOneCall) {
  CUstream one = stream();
  CUdeviceptr x = upload(std::vector<float>(64, 1)), y = upload(std::vector<float>(64));
  CUgraph graph;
  CUgraphExec executable;
  int64_t before = softDeviceIssues();
  ok(cuStreamBeginCapture_v2(one, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  for (int i = 0; i < 5; ++i)
    ok(launch(x, y, 1, 64, one));
  ok(cuStreamEndCapture(one, &graph));
  ok(cuGraphInstantiateWithFlags(&executable, graph, 0));
  EXPECT_EQ(softDeviceIssues(), before);
  ok(cuGraphLaunch(executable, one));
  EXPECT_EQ(softDeviceIssues(), before + 1);
  for (int i = 0; i < 5; ++i)
    ok(launch(x, y, 1, 64, one));
  EXPECT_EQ(softDeviceIssues(), before + 6);
  ok(cuStreamSynchronize(one));
  EXPECT_EQ(download(y, 64), std::vector<float>(64, 10));
}

TEST_F(Driver, AnUploadBesideAReplayThatReadsIsFound) {
  for (bool waits : {true, false})
    for (uint64_t seed = 1; seed <= 30; ++seed) {
      begin(seed);
      CUstream compute = stream(), copies = stream();
      CUevent done = event(), there = event();
      std::vector<float> values(64, 1);
      CUdeviceptr x = upload(values), y = upload(std::vector<float>(64));
      CUgraph graph;
      CUgraphExec executable;
      ok(cuStreamBeginCapture_v2(compute, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
      ok(launch(x, y, 1, 64, compute));
      ok(launch(x, y, 1, 64, compute));
      ok(cuStreamEndCapture(compute, &graph));
      ok(cuGraphInstantiateWithFlags(&executable, graph, 0));
      for (int step = 0; step < 2; ++step) {
        if (step > 0 && waits)
          ok(cuStreamWaitEvent(copies, done, 0));
        ok(cuMemcpyHtoDAsync_v2(x, values.data(), 256, copies));
        ok(cuEventRecord(there, copies));
        ok(cuStreamWaitEvent(compute, there, 0));
        ok(cuGraphLaunch(executable, compute));
        ok(cuEventRecord(done, compute));
      }
      EXPECT_EQ(cuCtxSynchronize() == CUDA_SUCCESS, waits) << seed;
      EXPECT_EQ(says("no order between kernel axpy and a copy to the device"), !waits) << softDeviceFault();
    }
}

TEST_F(Driver, RecordingsThatAreNoGraphs) {
  CUstream one = stream(), other = stream();
  CUevent fork = event();
  CUdeviceptr x = upload(std::vector<float>(64, 1)), y = upload(std::vector<float>(64));
  CUgraph graph;
  ok(cuStreamBeginCapture_v2(one, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  ok(cuEventRecord(fork, one));
  ok(cuStreamWaitEvent(other, fork, 0));
  ok(launch(x, y, 1, 64, other));
  EXPECT_EQ(cuStreamEndCapture(one, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  EXPECT_TRUE(says("kernel axpy was recorded in a stream that the first one does not wait for"));
  ok(cuStreamBeginCapture_v2(one, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  ok(launch(x, y, 1, 64, one));
  EXPECT_EQ(cuStreamSynchronize(one), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(cuStreamEndCapture(one, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  ok(cuStreamBeginCapture_v2(one, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  CUdeviceptr more;
  EXPECT_EQ(cuMemAlloc_v2(&more, 64), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(cuStreamEndCapture(one, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  ok(launch(x, y, 1, 64, one));
  ok(cuStreamSynchronize(one));
}

TEST_F(Driver, OtherThreadsWaitWhileOneRecords) {
  CUstream one = stream(), other = stream();
  CUdeviceptr x = upload(std::vector<float>(64, 1)), y = upload(std::vector<float>(64));
  CUcontext context;
  ok(cuCtxGetCurrent(&context));
  auto inOtherThread = [&](const std::function<CUresult()> &call) {
    CUresult result;
    std::thread([&] {
      ok(cuCtxSetCurrent(context));
      result = call();
    }).join();
    return result;
  };
  auto wait = [&](CUstream stream) { return inOtherThread([=] { return cuStreamSynchronize(stream); }); };
  CUgraph graph;
  ok(cuStreamBeginCapture_v2(one, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  ok(launch(x, y, 1, 64, one));
  EXPECT_EQ(wait(other), CUDA_SUCCESS);
  ok(cuStreamEndCapture(one, &graph));
  ok(cuGraphDestroy(graph));
  // But not for what is recorded, for all of a device, or where the recording refuses everybody.
  for (int mode : {CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_GLOBAL}) {
    bool isLocal = mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    ok(cuStreamBeginCapture_v2(one, mode));
    EXPECT_EQ(isLocal ? wait(one) : wait(other), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    EXPECT_EQ(cuStreamEndCapture(one, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  }
  ok(cuStreamBeginCapture_v2(one, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  EXPECT_EQ(inOtherThread(cuCtxSynchronize), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(cuStreamEndCapture(one, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_F(Driver, AFaultStaysAndSaysWhere) {
  CUstream one = stream();
  CUdeviceptr x = upload(std::vector<float>(64, 1)), y = upload(std::vector<float>(64));
  ok(launch(x, y, 1, 65, one));
  EXPECT_EQ(cuStreamSynchronize(one), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_TRUE(says("kernel axpy block (1,0,0) thread (0,0,0), PTX line")) << softDeviceFault();
  EXPECT_EQ(cuStreamSynchronize(one), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(cuMemFree_v2(x), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(Driver, FreedMemoryIsNotThereAnyMore) {
  CUstream one = stream();
  CUdeviceptr x = upload(std::vector<float>(64, 1)), y = upload(std::vector<float>(64));
  ok(cuMemFree_v2(x));
  ok(launch(x, y, 1, 64, one));
  EXPECT_NE(cuStreamSynchronize(one), CUDA_SUCCESS);
  EXPECT_TRUE(says("not allocated")) << softDeviceFault();
}

TEST_F(Driver, TheHostCannotTouchTheDevicesMemory) {
  CUdeviceptr x = upload(std::vector<float>(64, 1));
  EXPECT_DEATH(std::memset(reinterpret_cast<void *>(x), 0, 4), "");
}

TEST_F(Driver, WhatADriverRefuses) {
  CUstream one = stream();
  CUdeviceptr x = upload(std::vector<float>(64, 1));
  EXPECT_EQ(launch(x, x, 1, 64, one, 2048), CUDA_ERROR_INVALID_VALUE);
  EXPECT_TRUE(says("2048 threads, expected at most 1024"));
  void *parameters[] = {&x, &x, &x, &x};
  auto shared = [&](unsigned bytes) {
    return cuLaunchKernel(axpy, 1, 1, 1, 1, 1, 1, bytes, one, parameters, nullptr);
  };
  EXPECT_EQ(shared(60 << 10), CUDA_ERROR_INVALID_VALUE);
  ok(cuFuncSetAttribute(axpy, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60 << 10));
  ok(shared(60 << 10));
  EXPECT_EQ(cuLaunchKernel(axpy, 1, 1, 1, 1, 1, 1, 0, one, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
  CUmodule other;
  EXPECT_EQ(cuModuleLoadData(&other, "\177ELF\2\1"), CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_EQ(cuModuleLoadData(&other, "no PTX"), CUDA_ERROR_INVALID_PTX);
  EXPECT_EQ(cuModuleLoadData(&other, ".version 8.7\n.target sm_100a\n.address_size 64\n"),
            CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_TRUE(says("a module for sm_100a does not run on sm_90"));
  CUdeviceptr large;
  EXPECT_EQ(cuMemAlloc_v2(&large, 1ull << 40), CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(cuStreamSynchronize(reinterpret_cast<CUstream>(64)), CUDA_ERROR_INVALID_HANDLE);
  CUcontext none = nullptr;
  ok(cuCtxSetCurrent(none));
  EXPECT_EQ(cuMemAlloc_v2(&large, 64), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(Driver, OpenHandlesAreCounted) {
  CUstream one = stream();
  CUevent mark = event();
  CUdeviceptr x = room(64);
  auto open = [] {
    int counts[5];
    softDeviceOpenHandles(&counts[0], &counts[1], &counts[2], &counts[3], &counts[4]);
    return std::vector<int>(counts, counts + 5);
  };
  EXPECT_EQ(open(), (std::vector<int>{1, 1, 1, 1, 0}));
  ok(cuStreamDestroy_v2(one));
  ok(cuEventDestroy_v2(mark));
  ok(cuMemFree_v2(x));
  ok(cuModuleUnload(module));
  EXPECT_EQ(open(), (std::vector<int>{0, 0, 0, 0, 0}));
}

TEST_F(Driver, WhatIsOpenAsTheContextIsGivenBackEndsTheProcess) {
  ok(cuModuleUnload(module));
  EXPECT_DEATH(
      {
        stream();
        event();
        cuDevicePrimaryCtxRelease_v2(0);
      },
      "leaked handles: 1 streams, 1 events are still open");
  EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(0), CUDA_SUCCESS);
  EXPECT_EQ(cuDevicePrimaryCtxRelease_v2(0), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(Driver, SomeStreamsFallBehindAllOthers) {
  bool isFirst = false, isLast = false;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    begin(seed);
    std::string order;
    auto note = [&](CUstream to, const char *what) {
      static std::string *noted;
      noted = &order;
      ok(cuLaunchHostFunc(
          to, [](void *name) { *noted += static_cast<const char *>(name); }, const_cast<char *>(what)));
    };
    CUstream one = stream(), other = stream();
    note(one, "a");
    for (int i = 0; i < 30; ++i)
      note(other, "b");
    ok(cuStreamSynchronize(other));
    isFirst |= order.find('a') == 0;
    isLast |= order.find('a') == std::string::npos;
    ok(cuStreamSynchronize(one));
  }
  EXPECT_TRUE(isFirst);
  EXPECT_TRUE(isLast);
}
