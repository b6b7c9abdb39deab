//===- AttentionMeetings.h - attention of shards, part by part --*- C++ -*-===//
//
// Rows of each shard of a sequence meet the columns of all, on ranks of their own, as batch entries of one,
// or of several that have some each: the same bits, and those of the definition but for rounding. For the
// host's routines and a device's.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TEST_RUNTIME_KERNELS_ATTENTIONMEETINGS_H
#define DSOPT_TEST_RUNTIME_KERNELS_ATTENTIONMEETINGS_H

#include "AttentionReference.h"

#include <functional>

namespace dsopt::runtime::attention {

using Bytes = std::vector<uint8_t>;
using Floats = std::vector<float>;

/// What a part of attention is given and gives; empty where there is none.
struct AttentionPart {
  dsopt_attention d;
  int rank = 0;
  Bytes q, k, v, mask, out, grad; ///< `out` is read in backward
  Floats previous, previousLse, lse, qPrevious, kPrevious, vPrevious;
  Bytes results[3]; ///< out; or the gradients of q, k and v: with room for what is written
};

/// A case whose rows and columns are cut in shards.
class Meetings {
public:
  /// Each of `readers` heads reads the same head of k and v.
  Meetings(Case c, int64_t shards, int64_t readers = 1)
      : problem(c), c(c), n(shards), readers(readers), own(c.rows / shards), ownColumns(c.columns / shards) {}

  /// What `forward` and `backward` make of it: the result, its lse and the gradients of q, k and v, whole.
  struct Results {
    Floats out, lse, q, k, v;
    bool operator==(const Results &other) const {
      auto same = [](const Floats &one, const Floats &two) {
        return one.size() == two.size() && std::memcmp(one.data(), two.data(), one.size() * 4) == 0;
      };
      return same(out, other.out) && same(lse, other.lse) && same(q, other.q) && same(k, other.k) &&
             same(v, other.v);
    }
  };
  using Run = std::function<void(AttentionPart &)>;

  /// So many shards are batch entries of a rank.
  Results run(int64_t entries, const Run &forward, const Run &backward) {
    int64_t blocks = n / entries; // of rows, that are computed at once
    std::vector<AttentionPart> made(blocks);
    for (int64_t block = 0; block < blocks; ++block)
      for (int64_t distance = 0; distance < n; ++distance) {
        AttentionPart part = partOf(entries, block, distance, /*isGradient=*/false);
        part.previous = distance ? floatsOf(made[block].results[0], true) : Floats();
        part.previousLse = distance ? made[block].lse : Floats();
        part.d.partial = distance + 1 < n;
        part.results[0].assign(rowsOf(part) * c.width * bytesOf(part.d.partial ? DSOPT_F32 : c.type), 0xff);
        part.lse.assign(rowsOf(part), NAN);
        forward(part);
        made[block] = part;
      }
    std::vector<AttentionPart> last(blocks);
    std::vector<Floats> k(n), v(n); // by the shard of columns
    for (int64_t distance = 0; distance < n; ++distance)
      for (int64_t block = 0; block < blocks; ++block) {
        AttentionPart part = partOf(entries, block, distance, /*isGradient=*/true);
        part.out = made[block].results[0];
        part.lse = made[block].lse;
        part.d.q_partial = part.d.column_partial = distance + 1 < n;
        if (distance) {
          part.qPrevious = floatsOf(last[block].results[0], true);
          for (int64_t place = 0; place < entries; ++place) {
            append(part.kPrevious, k[columnsAt(entries, block, distance, place)]);
            append(part.vPrevious, v[columnsAt(entries, block, distance, place)]);
          }
        }
        int64_t width = bytesOf(part.d.q_partial ? DSOPT_F32 : c.type), heads = c.heads / readers;
        int64_t count = part.d.batch * heads * ownColumns;
        part.results[0].assign(rowsOf(part) * c.depth * width, 0xff);
        part.results[1].assign(count * c.depth * width, 0xff);
        part.results[2].assign(count * c.width * width, 0xff);
        backward(part);
        for (auto [sums, result] : {std::pair(&k, 1), std::pair(&v, 2)}) {
          Floats all = floatsOf(part.results[result], part.d.column_partial);
          auto size = static_cast<int64_t>(all.size()) / entries;
          for (int64_t place = 0; place < entries; ++place)
            (*sums)[columnsAt(entries, block, distance, place)].assign(all.begin() + place * size,
                                                                       all.begin() + (place + 1) * size);
        }
        last[block] = part;
      }
    Results all;
    for (int64_t block = 0; block < blocks; ++block) {
      append(all.out, floatsOf(made[block].results[0], false));
      append(all.lse, made[block].lse);
      append(all.q, floatsOf(last[block].results[0], false));
    }
    for (int64_t shard = 0; shard < n; ++shard) {
      append(all.k, k[shard]);
      append(all.v, v[shard]);
    }
    return all;
  }

  /// Against the definition, which has all heads of k and v: those that share one are alike there.
  void expectDefinition(const Results &results) {
    double unit = c.type == DSOPT_BF16 ? 3e-2 : c.type == DSOPT_F16 ? 4e-3 : 2e-5;
    auto near = [&](const Floats &got, const std::vector<double> &want, int64_t size, int64_t rows,
                    int64_t of, const char *what) {
      double largest = 0;
      for (double value : want)
        largest = std::max(largest, value == value ? std::fabs(value) : 0);
      // By shard, batch entry, head and row here; by batch entry, head and row there.
      for (int64_t i = 0; i < static_cast<int64_t>(got.size()); ++i) {
        int64_t column = i % size, row = i / size % rows, head = i / size / rows % (c.heads / of),
                batch = i / size / rows / (c.heads / of) % c.batch,
                shard = i / size / rows / (c.heads / of) / c.batch;
        double expected = 0;
        for (int64_t reader = 0; reader < of; ++reader)
          expected +=
              want[((batch * c.heads + head * of + reader) * rows * n + shard * rows + row) * size + column];
        if (expected != expected)
          ASSERT_TRUE(got[i] != got[i]) << what << " " << i;
        else
          ASSERT_NEAR(got[i], expected, unit * (largest + 1) * of) << what << " " << i;
      }
    };
    ASSERT_NO_FATAL_FAILURE(near(results.out, problem.wantOut, c.width, own, 1, "result"));
    ASSERT_NO_FATAL_FAILURE(near(results.q, problem.wantQ, c.depth, own, 1, "gradient of q"));
    ASSERT_NO_FATAL_FAILURE(near(results.k, problem.wantK, c.depth, ownColumns, readers, "gradient of k"));
    ASSERT_NO_FATAL_FAILURE(near(results.v, problem.wantV, c.width, ownColumns, readers, "gradient of v"));
  }

  /// Makes heads that share columns alike, and computes the definition again.
  void shareHeads() {
    for (auto [tensor, size] : {std::pair(&problem.k, c.depth), std::pair(&problem.v, c.width)})
      for (int64_t batch = 0; batch < c.batch; ++batch)
        for (int64_t head = 0; head < c.heads; ++head)
          std::copy_n(tensor->values.begin() +
                          (batch * c.heads + head / readers * readers) * c.columns * size,
                      c.columns * size, tensor->values.begin() + (batch * c.heads + head) * c.columns * size);
    problem.compute();
  }

private:
  int64_t rowsOf(const AttentionPart &part) const { return part.d.batch * c.heads * own; }
  static void append(Floats &to, const Floats &from) { to.insert(to.end(), from.begin(), from.end()); }
  Floats floatsOf(const Bytes &bytes, bool isWide) const {
    int64_t type = isWide ? DSOPT_F32 : c.type;
    Floats values(bytes.size() / bytesOf(type));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = load(bytes.data() + i * bytesOf(type), type);
    return values;
  }

  /// Rows of a shard of `values`, which are [batch, heads, all rows, size]; each `step`th head.
  void take(Bytes &to, const Floats &values, int64_t shard, int64_t rows, int64_t size, int64_t step) const {
    for (int64_t pair = 0; pair < c.batch * c.heads; pair += step)
      for (int64_t i = 0; i < rows * size; ++i) {
        to.resize(to.size() + bytesOf(c.type));
        store(&to[to.size() - bytesOf(c.type)], values[(pair * n * rows + shard * rows) * size + i], c.type);
      }
  }

  /// The shard of columns at a place among entries.
  int64_t columnsAt(int64_t entries, int64_t block, int64_t distance, int64_t place) const {
    return (block * entries + (place + distance) % entries + n - distance) % n;
  }

  AttentionPart partOf(int64_t entries, int64_t block, int64_t distance, bool isGradient) {
    AttentionPart part;
    dsopt_attention &d = part.d = problem.d;
    d.group = entries == n ? 0 : entries;
    part.rank = static_cast<int>(block * entries + distance % entries);
    int64_t first = block * entries, last = first + entries;
    for (int64_t shard = first; shard < last; ++shard) {
      take(part.q, problem.q.values, shard, own, c.depth, 1);
      if (isGradient)
        take(part.grad, problem.grad.values, shard, own, c.width, 1);
      // Entries of columns are in their own order, whoever reads them.
      int64_t column = columnsAt(entries, block, distance, shard - first);
      take(part.k, problem.k.values, column, ownColumns, c.depth, readers);
      take(part.v, problem.v.values, column, ownColumns, c.width, readers);
    }
    d.batch = c.batch * (last - first);
    d.rows = own;
    d.columns = ownColumns;
    d.key_heads = c.heads / readers;
    d.entries = entries;
    d.shards = n;
    d.distance = distance;
    d.row_step = own;
    d.column_step = ownColumns;
    auto strides = [](int64_t (&to)[3], int64_t heads, int64_t rows, int64_t size) {
      to[0] = heads * rows * size;
      to[1] = rows * size;
      to[2] = size;
    };
    strides(d.q, c.heads, own, c.depth);
    strides(d.q_grad, c.heads, own, c.depth);
    strides(d.out, c.heads, own, c.width);
    strides(d.grad, c.heads, own, c.width);
    strides(d.k, d.key_heads, ownColumns, c.depth);
    strides(d.k_grad, d.key_heads, ownColumns, c.depth);
    strides(d.v, d.key_heads, ownColumns, c.width);
    strides(d.v_grad, d.key_heads, ownColumns, c.width);
    if (!problem.mask.empty())
      takeMask(part, first, last, distance);
    return part;
  }

  void takeMask(AttentionPart &part, int64_t first, int64_t last, int64_t distance) {
    const int64_t (&strides)[4] = problem.d.mask;
    int64_t extents[] = {c.batch, c.heads, own, ownColumns};
    for (int i = 0; i < 4; ++i)
      extents[i] = strides[i] ? extents[i] : 1;
    for (int64_t shard = first; shard < last; ++shard)
      for (int64_t batch = 0; batch < extents[0]; ++batch)
        for (int64_t head = 0; head < extents[1]; ++head)
          for (int64_t row = 0; row < extents[2]; ++row)
            for (int64_t column = 0; column < extents[3]; ++column) {
              int64_t of = (shard + n - distance) % n;
              float value =
                  problem.mask[batch * strides[0] + head * strides[1] + (shard * own + row) * strides[2] +
                               (of * ownColumns + column) * strides[3]];
              part.mask.resize(part.mask.size() + bytesOf(problem.d.mask_type));
              store(&part.mask[part.mask.size() - bytesOf(problem.d.mask_type)], value, problem.d.mask_type);
            }
    int64_t stride = 1;
    for (int i = 3; i >= 0; --i) {
      part.d.mask[i] = strides[i] ? stride : 0;
      stride *= extents[i];
    }
    part.d.mask_shard = stride;
  }

  AttentionProblem problem;
  Case c;
  int64_t n, readers, own, ownColumns;
};

/// A case, and in how many shards; each head of k and v is read by so many.
struct Meeting {
  Case c;
  int64_t shards, readers = 1;
};

inline std::vector<Meeting> meetingCases() {
  std::vector<Meeting> all;
  for (int64_t type : {DSOPT_F32, DSOPT_BF16, DSOPT_F16})
    for (Meeting meeting :
         {Meeting{{1, 2, 64, 64, 16, 16, 1}, 2}, Meeting{{2, 2, 60, 60, 24, 17, 1}, 4},
          Meeting{{2, 3, 34, 34, 8, 8, 0}, 2}, Meeting{{1, 4, 140, 140, 64, 64, 1}, 2, 2},
          Meeting{{2, 6, 66, 66, 15, 15, 1}, 3, 3}, Meeting{{1, 2, 20, 80, 16, 16, 0}, 4},
          // Masks that are whole in some dimensions.
          Meeting{{2, 2, 36, 36, 16, 16, 0, 9}, 2}, Meeting{{2, 2, 36, 36, 16, 16, 1, 12}, 4},
          Meeting{{2, 2, 36, 36, 16, 16, 0, 15}, 3}, Meeting{{2, 4, 40, 40, 8, 8, 1, 1}, 2, 2},
          Meeting{{1, 1, 600, 600, 200, 64, 1}, 2}}) {
      meeting.c.type = type;
      all.push_back(meeting);
    }
  return all;
}

} // namespace dsopt::runtime::attention

#endif // DSOPT_TEST_RUNTIME_KERNELS_ATTENTIONMEETINGS_H
