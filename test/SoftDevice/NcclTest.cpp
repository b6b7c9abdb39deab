//===- NcclTest.cpp - NCCL's stand-in between processes -------------------===//
//
// Ranks are forked; each has the device of its number.
//
//===----------------------------------------------------------------------===//

#include "Nccl/Api.h"

#include <climits>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

enum : ncclDataType_t { Bytes = 1, Floats = 7 };

class Rank {
public:
  Rank(int rank, int size, const ncclUniqueId &id, int device, uint64_t seed) : rank(rank), size(size) {
    softDeviceRestart(seed + static_cast<uint64_t>(rank));
    CUcontext context;
    need(cuInit(0) == 0 && cuDevicePrimaryCtxRetain(&context, device) == 0 && cuCtxSetCurrent(context) == 0);
    need(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == 0 &&
         cuStreamCreate(&other, CU_STREAM_NON_BLOCKING) == 0);
    ncclConfig_t config{sizeof(config), 0xcafebeef, 21800, 0, INT_MIN, INT_MIN, INT_MIN, nullptr, INT_MIN};
    begun(ncclCommInitRankConfig(&comm, size, id, rank, &config));
  }

  static void need(bool holds, const char *what = "a call failed") {
    if (holds)
      return;
    std::fprintf(stderr, "rank: %s\n", what);
    _exit(1);
  }
  static void begun(ncclResult_t result) { need(result == ncclSuccess || result == ncclInProgress); }
  /// How the communicator is when it no longer is in progress.
  ncclResult_t settled() {
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress)
      need(ncclCommGetAsyncError(comm, &state) == ncclSuccess);
    return state;
  }
  CUdeviceptr upload(const std::vector<int> &values) {
    CUdeviceptr address = room(values.size());
    need(cuMemcpyHtoD_v2(address, values.data(), values.size() * 4) == 0);
    return address;
  }
  CUdeviceptr room(size_t count) {
    CUdeviceptr address = 0;
    need(cuMemAlloc_v2(&address, count * 4) == 0);
    return address;
  }
  std::vector<int> download(CUdeviceptr from, size_t count) {
    std::vector<int> values(count);
    need(cuMemcpyDtoH_v2(values.data(), from, count * 4) == 0, softDeviceFault());
    return values;
  }
  /// Waits for the stream as a program does that watches the communicator.
  ncclResult_t await(CUstream on) {
    CUevent event;
    need(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == 0 && cuEventRecord(event, on) == 0);
    while (true) {
      CUresult result = cuEventQuery(event);
      if (result == CUDA_SUCCESS)
        return ncclSuccess;
      if (result != CUDA_ERROR_NOT_READY)
        return ncclUnhandledCudaError;
      ncclResult_t state;
      need(ncclCommGetAsyncError(comm, &state) == ncclSuccess);
      if (state != ncclSuccess && state != ncclInProgress)
        return state;
    }
  }
  bool isFault(const char *text) { return std::strstr(softDeviceFault(), text); }
  bool isError(const char *text) { return std::strstr(ncclGetLastError(comm), text); }

  int rank, size;
  CUstream stream, other;
  ncclComm_t comm = nullptr;
};

void *pointer(CUdeviceptr address) { return reinterpret_cast<void *>(address); }

/// True in each of the ranks, which get device number `rank`, or all the first one.
void run(int size, const std::function<bool(Rank &)> &body, bool share = false) {
  setenv("SOFT_DEVICE", "devices=4,memory=16777216", 1);
  for (uint64_t seed : {1, 2, 3}) {
    ncclUniqueId id;
    ASSERT_EQ(ncclGetUniqueId(&id), ncclSuccess);
    std::vector<pid_t> ranks;
    for (int rank = 0; rank < size; ++rank) {
      pid_t pid = fork();
      if (pid == 0) {
        alarm(20);
        Rank self(rank, size, id, share ? 0 : rank, seed * 100);
        _exit(body(self) ? 0 : 1);
      }
      ranks.push_back(pid);
    }
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      int status = 0;
      waitpid(ranks[rank], &status, 0);
      EXPECT_EQ(status, 0) << "rank " << rank << ", seed " << seed;
    }
  }
}

TEST(Nccl, Gathers) {
  run(3, [](Rank &rank) {
    if (rank.settled() != ncclSuccess)
      return false;
    for (bool inPlace : {false, true}) {
      CUdeviceptr from = rank.upload({rank.rank, 10 * rank.rank}), to = rank.room(6);
      if (inPlace) {
        cuMemcpyDtoDAsync_v2(to + rank.rank * 8, from, 8, rank.stream);
        from = to + rank.rank * 8;
      }
      Rank::begun(ncclAllGather(pointer(from), pointer(to), 2, Floats, rank.comm, rank.stream));
      if (rank.settled() != ncclSuccess || rank.await(rank.stream) != ncclSuccess)
        return false;
      if (rank.download(to, 6) != std::vector<int>{0, 0, 1, 10, 2, 20})
        return false;
    }
    return ncclCommFinalize(rank.comm) == ncclSuccess && ncclCommDestroy(rank.comm) == ncclSuccess;
  });
}

/// In the order of a ring, rounded each time: 2^24 + 1 + 1 is 2^24, 1 + 1 + 2^24 is 2^24 + 2.
TEST(Nccl, AddsAlongARing) {
  run(3, [](Rank &rank) {
    rank.settled();
    auto bits = [](float value) {
      int result;
      std::memcpy(&result, &value, sizeof(result));
      return result;
    };
    float mine = rank.rank == 0 ? 16777216.0f : 1.0f;
    CUdeviceptr from = rank.upload({bits(mine), bits(mine), bits(mine)}), to = rank.room(1);
    Rank::begun(ncclReduceScatter(pointer(from), pointer(to), 1, Floats, 0, rank.comm, rank.stream));
    // Rank 0's slice begins at rank 1 and ends with its own.
    float sums[] = {16777218.0f, 16777216.0f, 16777216.0f};
    return rank.settled() == ncclSuccess && rank.await(rank.stream) == ncclSuccess &&
           rank.download(to, 1) == std::vector<int>{bits(sums[rank.rank])};
  });
}

TEST(Nccl, ExchangesInGroups) {
  run(3, [](Rank &rank) {
    rank.settled();
    CUdeviceptr from = rank.upload({rank.rank, 10 + rank.rank, 20 + rank.rank}), to = rank.room(3);
    ncclGroupStart();
    for (int peer = 0; peer < 3; ++peer) {
      ncclSend(pointer(from + peer * 4), 1, Floats, peer, rank.comm, rank.stream);
      ncclRecv(pointer(to + peer * 4), 1, Floats, peer, rank.comm, rank.stream);
    }
    Rank::begun(ncclGroupEnd());
    int first = 10 * rank.rank;
    return rank.settled() == ncclSuccess && rank.await(rank.stream) == ncclSuccess &&
           rank.download(to, 3) == std::vector<int>{first, first + 1, first + 2};
  });
}

/// Work on another stream that touches what a gather does.
TEST(Nccl, FindsAMissingWait) {
  run(2, [](Rank &rank) {
    rank.settled();
    CUdeviceptr from = rank.upload({1, 2}), to = rank.room(4);
    Rank::begun(ncclAllGather(pointer(from), pointer(to), 2, Floats, rank.comm, rank.stream));
    rank.settled();
    cuMemsetD8Async(from, 0, 8, rank.other);
    CUresult first = cuStreamSynchronize(rank.other), second = cuStreamSynchronize(rank.stream);
    return (first || second) && rank.isFault("no order between ncclAllGather of 2 and a fill");
  });
}

TEST(Nccl, SaysWhenItIsInProgress) {
  run(2, [](Rank &rank) {
    rank.settled();
    CUdeviceptr from = rank.upload({1, 2}), to = rank.room(4);
    for (int i = 0; i < 20; ++i) {
      if (ncclAllGather(pointer(from), pointer(to), 2, Floats, rank.comm, rank.stream) == ncclInProgress)
        return ncclAllGather(pointer(from), pointer(to), 2, Floats, rank.comm, rank.stream) ==
                   ncclInvalidArgument &&
               rank.isError("while the communicator is in progress");
    }
    return false;
  });
}

/// A rank that does something else than its peer: one of the two says so, the other sees it go.
void differ(const std::function<void(Rank &, CUdeviceptr, CUdeviceptr)> &one,
            const std::function<void(Rank &, CUdeviceptr, CUdeviceptr)> &other, const char *text) {
  run(2, [&](Rank &rank) {
    rank.settled();
    CUdeviceptr from = rank.upload({1, 2, 3, 4}), to = rank.room(8);
    (rank.rank ? other : one)(rank, from, to);
    rank.settled();
    ncclResult_t result = rank.await(rank.stream);
    return (result == ncclInvalidUsage && rank.isError(text)) ||
           (result == ncclRemoteError && rank.isError("is gone"));
  });
}
void gather(Rank &rank, CUdeviceptr from, CUdeviceptr to, size_t count, ncclDataType_t type) {
  Rank::begun(ncclAllGather(pointer(from), pointer(to), count, type, rank.comm, rank.stream));
}

TEST(Nccl, FindsOtherSizes) {
  differ([](Rank &rank, auto from, auto to) { gather(rank, from, to, 2, Floats); },
         [](Rank &rank, auto from, auto to) { gather(rank, from, to, 3, Floats); }, "which has a part of");
}
TEST(Nccl, FindsOtherTypes) {
  differ([](Rank &rank, auto from, auto to) { gather(rank, from, to, 2, Floats); },
         [](Rank &rank, auto from, auto to) { gather(rank, from, to, 2, Bytes); }, "of 2 uint8");
}
TEST(Nccl, FindsAnotherOrder) {
  auto send = [](Rank &rank, CUdeviceptr from) {
    Rank::begun(ncclSend(pointer(from), 2, Floats, 1, rank.comm, rank.stream));
  };
  differ([&](Rank &rank, auto from, auto) { send(rank, from); },
         [](Rank &rank, auto from, auto to) { gather(rank, from, to, 2, Floats); },
         "which has ncclSend of 2");
}

TEST(Nccl, SeesAPeerGo) {
  run(2, [](Rank &rank) {
    rank.settled();
    if (rank.rank == 1)
      return true;
    CUdeviceptr from = rank.upload({1, 2}), to = rank.room(4);
    gather(rank, from, to, 2, Floats);
    rank.settled();
    if (rank.await(rank.stream) != ncclRemoteError || !rank.isError("rank 1 is gone"))
      return false;
    // What waits for it comes to an end.
    return ncclCommAbort(rank.comm) == ncclSuccess && cuStreamSynchronize(rank.stream) == CUDA_SUCCESS;
  });
}

TEST(Nccl, RefusesOneDeviceForTwo) {
  run(
      2,
      [](Rank &rank) { return rank.settled() == ncclInvalidUsage && rank.isError("Duplicate GPU detected"); },
      /*share=*/true);
}

} // namespace
