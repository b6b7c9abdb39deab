//===- CachedAttentionTest.cpp - rows beside the cache against whole ones --===//

#include "AttentionReference.h"
#include "InstructionSets.h"
#include "Kernels/CPU/Runtime.h"

#include <numeric>

using namespace dsopt::runtime;
using namespace dsopt::runtime::attention;

namespace {
/// Sequences that are whole in one call of attention, and rows of them in calls of cached attention.
class CachedAttention : public testing::TestWithParam<Case>, public AttentionProblem {
protected:
  CachedAttention() : AttentionProblem(GetParam()) {}

  /// What attention says of all rows of all sequences.
  std::vector<uint8_t> whole() {
    ThreadPool pool(1, 0, prepareThread);
    dsopt_rt rt;
    rt.pool = &pool;
    d.threads = 1;
    std::vector<uint8_t> result(out.bytes.size(), 0xff);
    lse.assign(wantLse.size(), NAN);
    std::vector<float> workspace(dsopt_attention_workspace(&d, 0) / 4, NAN);
    dsopt_rt_attention(&rt, &d, q.bytes.data(), k.bytes.data(), v.bytes.data(),
                       mask.empty() ? nullptr : maskBytes.data(), nullptr, nullptr, result.data(), lse.data(),
                       workspace.data());
    return result;
  }

  /// The same, in calls of some rows each: those of a sequence in their order, sequences in any.
  std::vector<uint8_t> byRows(int threads, int64_t most, unsigned seed) {
    std::mt19937 random(seed);
    ThreadPool pool(threads, 0, prepareThread);
    dsopt_rt rt;
    rt.pool = &pool;
    // The cache has place for one sequence more, and for more columns than are read.
    int64_t slots = d.batch + 1, context = d.rows + 7, width = bytesOf(d.type);
    std::vector<uint8_t> keys(slots * d.heads * context * d.depth * width, 0xff),
        values(slots * d.heads * context * d.width * width, 0xff), result(out.bytes.size(), 0xff);
    std::vector<int64_t> slotOf(slots), next(d.batch, 0);
    std::iota(slotOf.begin(), slotOf.end(), 0);
    std::shuffle(slotOf.begin(), slotOf.end(), random);
    auto left = [&] { return std::accumulate(next.begin(), next.end(), int64_t(0)) < d.batch * d.rows; };
    while (left()) {
      // Rows of a call: runs of sequences, and rows of none.
      std::vector<std::pair<int64_t, int64_t>> rows;
      std::vector<int64_t> slot, position;
      int64_t count = 1 + random() % most;
      while (static_cast<int64_t>(rows.size()) < count && left()) {
        int64_t sequence = random() % d.batch;
        if (random() % 8 == 0) {
          rows.emplace_back(-1, 0);
          slot.push_back(-1);
          position.push_back(0);
        }
        for (int64_t run = 1 + random() % count; run > 0 && next[sequence] < d.rows; --run) {
          slot.push_back(slotOf[sequence]);
          position.push_back(next[sequence]);
          rows.emplace_back(sequence, next[sequence]++);
        }
      }
      call(rt, threads, rows, slot, position, context, slots, keys, values, result);
    }
    return result;
  }

  void call(dsopt_rt &rt, int threads, const std::vector<std::pair<int64_t, int64_t>> &rows,
            const std::vector<int64_t> &slot, const std::vector<int64_t> &position, int64_t context,
            int64_t slots, std::vector<uint8_t> &keys, std::vector<uint8_t> &values,
            std::vector<uint8_t> &result) {
    int64_t count = rows.size(), width = bytesOf(d.type), maskWidth = bytesOf(d.mask_type);
    dsopt_attention own = d;
    own.batch = own.pairs = 1;
    own.rows = count;
    own.columns = context;
    own.threads = threads;
    // [rows, heads, size]
    auto gather = [&](const Tensor &tensor, int64_t *strides) {
      strides[1] = tensor.size;
      strides[2] = d.heads * tensor.size;
      std::vector<uint8_t> bytes(count * strides[2] * width);
      for (int64_t i = 0; i < count; ++i)
        for (int64_t head = 0; head < d.heads && rows[i].first >= 0; ++head)
          std::memcpy(bytes.data() + (i * strides[2] + head * strides[1]) * width,
                      tensor.bytes.data() + offsetOf(tensor, rows[i], head), tensor.size * width);
      return bytes;
    };
    auto queries = gather(q, own.q), newKeys = gather(k, own.k), newValues = gather(v, own.v);
    own.out[1] = d.width;
    own.out[2] = d.heads * d.width;
    std::vector<uint8_t> got(count * own.out[2] * width, 0xff), ownMask;
    if (!mask.empty()) {
      own.mask[0] = 0;
      own.mask[1] = count * context;
      own.mask[2] = context;
      own.mask[3] = 1;
      ownMask.resize(d.heads * count * context * maskWidth, 0xff);
      for (int64_t head = 0; head < d.heads; ++head)
        for (int64_t i = 0; i < count; ++i)
          for (int64_t column = 0; column < d.columns && rows[i].first >= 0; ++column)
            std::memcpy(ownMask.data() + ((head * count + i) * context + column) * maskWidth,
                        maskBytes.data() + (rows[i].first * d.mask[0] + head * d.mask[1] +
                                            rows[i].second * d.mask[2] + column * d.mask[3]) *
                                               maskWidth,
                        maskWidth);
    }
    std::vector<float> workspace(dsopt_attention_workspace(&own, 0) / 4, NAN);
    dsopt_rt_cached_attention(&rt, &own, queries.data(), newKeys.data(), newValues.data(), slot.data(),
                              position.data(), ownMask.empty() ? nullptr : ownMask.data(), keys.data(),
                              values.data(), got.data(), workspace.data());
    for (int64_t i = 0; i < count; ++i)
      for (int64_t head = 0; head < d.heads; ++head) {
        const uint8_t *from = got.data() + (i * own.out[2] + head * own.out[1]) * width;
        if (rows[i].first >= 0)
          std::memcpy(result.data() + offsetOf(out, rows[i], head), from, d.width * width);
        else
          ASSERT_TRUE(std::all_of(from, from + d.width * width, [](uint8_t byte) { return byte == 0; }));
      }
  }

  int64_t offsetOf(const Tensor &tensor, std::pair<int64_t, int64_t> row, int64_t head) const {
    return (row.first * tensor.strides[0] + head * tensor.strides[1] + row.second * tensor.strides[2]) *
           bytesOf(d.type);
  }
};

TEST_P(CachedAttention, RowsHaveTheBitsOfTheWhole) {
  for (const InstructionSet &set : instructionSetsHere()) {
    SCOPED_TRACE(set.name);
    selectAttention(set.features);
    std::vector<uint8_t> want = whole();
    unsigned seed = 1;
    for (int64_t most : {1, 5, 80, 300})
      for (int threads : {1, 3})
        ASSERT_EQ(byRows(threads, most, seed++), want)
            << "at most " << most << " rows, " << threads << " threads";
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, CachedAttention,
                         testing::Values(Case{1, 1, 1, 1, 1, 1, 1}, Case{2, 3, 17, 17, 15, 33, 1},
                                         Case{3, 2, 150, 150, 64, 64, 1}, Case{1, 1, 260, 260, 80, 16, 1},
                                         Case{2, 2, 130, 130, 16, 24, 1, 7}, Case{2, 3, 70, 70, 8, 8, 1, 5},
                                         Case{2, 2, 90, 90, 32, 32, 1, -1, Layout::Heads}));
INSTANTIATE_TEST_SUITE_P(Types, CachedAttention,
                         testing::Values(Case{2, 3, 130, 130, 64, 64, 1, -1, Layout::Heads, DSOPT_BF16},
                                         Case{2, 2, 70, 70, 24, 40, 1, 7, Layout::Separate, DSOPT_BF16},
                                         Case{1, 2, 77, 77, 16, 16, 1, 7, Layout::Separate, DSOPT_BF16, true},
                                         Case{2, 3, 130, 130, 64, 80, 1, -1, Layout::Separate, DSOPT_F16}));
} // namespace
