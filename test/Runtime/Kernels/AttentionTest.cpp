//===- AttentionTest.cpp - attention against its definition in double ------===//

#include "AttentionMeetings.h"
#include "InstructionSets.h"
#include "Kernels/CPU/Runtime.h"

using namespace dsopt::runtime;
using namespace dsopt::runtime::attention;

namespace {
class Attention : public testing::TestWithParam<Case>, public AttentionProblem {
protected:
  Attention() : AttentionProblem(GetParam()) {}

  /// Runs both directions; what they wrote, one after the other.
  std::vector<std::vector<uint8_t>> run(int threads) {
    ThreadPool pool(threads, 0, prepareThread);
    dsopt_rt rt;
    rt.pool = &pool;
    d.threads = threads;
    std::vector<std::vector<uint8_t>> results{out.bytes, qGrad.bytes, kGrad.bytes, vGrad.bytes};
    for (auto &result : results)
      std::fill(result.begin(), result.end(), 0xff); // not a number
    lse.assign(wantLse.size(), NAN);
    const void *masked = mask.empty() ? nullptr : maskBytes.data();
    auto in = [&](const Tensor &tensor) { return tensor.bytes.data() + tensor.offset * bytesOf(d.type); };
    auto to = [&](const Tensor &tensor, int index) {
      return results[index].data() + tensor.offset * bytesOf(d.type);
    };
    std::vector<float> workspace(dsopt_attention_workspace(&d, 0) / 4, NAN);
    dsopt_rt_attention(&rt, &d, in(q), in(k), in(v), masked, nullptr, nullptr, to(out, 0), lse.data(),
                       workspace.data());
    workspace.assign(dsopt_attention_workspace(&d, 1) / 4, NAN);
    dsopt_rt_attention_grad(&rt, &d, in(q), in(k), in(v), masked, to(out, 0), lse.data(), in(grad), nullptr,
                            nullptr, nullptr, to(qGrad, 1), to(kGrad, 2), to(vGrad, 3), workspace.data());
    return results;
  }
};

TEST_P(Attention, RightAndSameBitsWithAnyThreads) {
  std::vector<std::vector<uint8_t>> wide; // of AVX-512 in fp32
  for (const InstructionSet &set : instructionSetsHere()) {
    SCOPED_TRACE(set.name);
    selectAttention(set.features);
    auto first = run(1);
    ASSERT_NO_FATAL_FAILURE(expectNear(out, first[0], wantOut, "result"));
    ASSERT_NO_FATAL_FAILURE(expectLse());
    ASSERT_NO_FATAL_FAILURE(expectNear(qGrad, first[1], wantQ, "gradient of q"));
    ASSERT_NO_FATAL_FAILURE(expectNear(kGrad, first[2], wantK, "gradient of k"));
    ASSERT_NO_FATAL_FAILURE(expectNear(vGrad, first[3], wantV, "gradient of v"));
    for (int threads : {2, 3, 8})
      ASSERT_EQ(run(threads), first) << threads << " threads";
    if (set.name == "avx512")
      wide = first;
    d.widens = 1;
    ASSERT_EQ(run(1), set.name == "avx512bf16" ? wide : first) << "widened";
    d.widens = 0;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Attention,
                         testing::Values(Case{1, 1, 1, 1, 1, 1}, Case{2, 2, 1, 17, 15, 15},
                                         Case{1, 3, 17, 1, 64, 64}, Case{1, 2, 15, 17, 80, 64},
                                         Case{1, 1, 255, 255, 64, 15}, Case{1, 1, 64, 64, 64, 64},
                                         Case{3, 3, 130, 70, 16, 33}, Case{1, 1, 1023, 1023, 15, 1},
                                         Case{1, 1, 17, 1023, 64, 80}, Case{1, 2, 1023, 15, 1, 64}));
INSTANTIATE_TEST_SUITE_P(Causal, Attention,
                         testing::Values(Case{1, 1, 1, 1, 4, 4, 1}, Case{2, 1, 17, 17, 64, 64, 1},
                                         Case{1, 9, 255, 255, 64, 64, 1}, Case{1, 1, 15, 255, 64, 80, 1},
                                         Case{1, 2, 100, 333, 15, 15, 1}, Case{1, 1, 1023, 1023, 64, 64, 1},
                                         Case{1, 1, 200, 130, 32, 32, 1},
                                         Case{1, 2, 40, 140, 16, 16, kBeginsAt},
                                         Case{2, 3, 70, 300, 16, 24, kBeginsAt + 130},
                                         Case{1, 1, 65, 65, 32, 32, kBeginsAt + 70}));
INSTANTIATE_TEST_SUITE_P(Masks, Attention,
                         testing::Values(Case{2, 3, 17, 15, 8, 8, 0, 0}, Case{2, 3, 17, 15, 8, 8, 0, 8},
                                         Case{2, 3, 70, 65, 8, 8, 0, 4}, Case{2, 3, 70, 130, 8, 8, 0, 12},
                                         Case{2, 3, 17, 15, 8, 8, 0, 1}, Case{2, 3, 17, 15, 8, 8, 0, 9},
                                         Case{2, 3, 17, 15, 8, 8, 0, 2}, Case{2, 3, 17, 77, 8, 8, 0, 15},
                                         Case{2, 2, 77, 77, 16, 16, 1, 9}, Case{2, 2, 40, 140, 16, 16, 1, 13},
                                         Case{1, 2, 33, 70, 16, 16, 1, 15, Layout::Separate, DSOPT_F32, true},
                                         Case{1, 2, 33, 70, 16, 16, 1, 15, Layout::Separate, DSOPT_BF16,
                                              true}));
INSTANTIATE_TEST_SUITE_P(Strided, Attention,
                         testing::Values(Case{2, 3, 130, 130, 64, 64, 1, -1, Layout::Packed},
                                         Case{1, 2, 17, 17, 15, 15, 0, -1, Layout::Packed},
                                         Case{2, 3, 65, 33, 16, 48, 0, 9, Layout::Heads}));
INSTANTIATE_TEST_SUITE_P(BF16, Attention,
                         testing::Values(Case{1, 1, 1, 1, 1, 1, 0, -1, Layout::Separate, DSOPT_BF16},
                                         Case{2, 3, 130, 130, 64, 64, 1, -1, Layout::Packed, DSOPT_BF16},
                                         Case{1, 2, 255, 255, 80, 15, 0, 9, Layout::Separate, DSOPT_BF16},
                                         Case{1, 1, 200, 130, 32, 32, 1, -1, Layout::Separate, DSOPT_BF16},
                                         Case{2, 1, 101, 33, 24, 200, 1, -1, Layout::Separate, DSOPT_BF16},
                                         Case{1, 1, 67, 1023, 200, 1, 1, -1, Layout::Separate, DSOPT_BF16},
                                         Case{1, 9, 100, 300, 64, 64, 1, -1, Layout::Heads, DSOPT_BF16}));
INSTANTIATE_TEST_SUITE_P(F16, Attention,
                         testing::Values(Case{1, 1, 1, 1, 1, 1, 0, -1, Layout::Separate, DSOPT_F16},
                                         Case{2, 3, 130, 130, 64, 64, 1, -1, Layout::Packed, DSOPT_F16},
                                         Case{1, 2, 255, 255, 80, 15, 0, 9, Layout::Separate, DSOPT_F16},
                                         Case{1, 9, 100, 300, 64, 64, 1, -1, Layout::Heads, DSOPT_F16}));

class Meet : public testing::TestWithParam<Meeting> {
protected:
  Meetings::Results run(int64_t entries, int threads) {
    ThreadPool pool(threads, 0, prepareThread);
    dsopt_rt rt;
    rt.pool = &pool;
    auto of = [](const auto &values) { return values.empty() ? nullptr : values.data(); };
    auto forward = [&](AttentionPart &p) {
      p.d.threads = threads;
      rt.sequenceRank = p.rank;
      std::vector<float> workspace(dsopt_attention_workspace(&p.d, 0) / 4, NAN);
      dsopt_rt_attention(&rt, &p.d, p.q.data(), p.k.data(), p.v.data(), of(p.mask), of(p.previous),
                         of(p.previousLse), p.results[0].data(), p.lse.data(), workspace.data());
    };
    auto backward = [&](AttentionPart &p) {
      p.d.threads = threads;
      rt.sequenceRank = p.rank;
      std::vector<float> workspace(dsopt_attention_workspace(&p.d, 1) / 4, NAN);
      dsopt_rt_attention_grad(&rt, &p.d, p.q.data(), p.k.data(), p.v.data(), of(p.mask), p.out.data(),
                              p.lse.data(), p.grad.data(), of(p.qPrevious), of(p.kPrevious), of(p.vPrevious),
                              p.results[0].data(), p.results[1].data(), p.results[2].data(),
                              workspace.data());
    };
    return meetings.run(entries, forward, backward);
  }

  Meetings meetings{GetParam().c, GetParam().shards, GetParam().readers};
};

TEST_P(Meet, RanksAndEntriesHaveTheSameBits) {
  meetings.shareHeads();
  int64_t shards = GetParam().shards;
  for (const InstructionSet &set : instructionSetsHere()) {
    SCOPED_TRACE(set.name);
    selectAttention(set.features);
    Meetings::Results ranks = run(/*entries=*/1, 1);
    ASSERT_NO_FATAL_FAILURE(meetings.expectDefinition(ranks));
    ASSERT_TRUE(run(/*entries=*/1, 2) == ranks);
    for (int64_t entries = 2; entries <= shards; ++entries)
      if (shards % entries == 0) {
        ASSERT_TRUE(run(entries, 1) == ranks);
        ASSERT_TRUE(run(entries, 3) == ranks);
      }
  }
}
INSTANTIATE_TEST_SUITE_P(Shards, Meet, testing::ValuesIn(meetingCases()));
} // namespace
