//===- Routines.cpp - elementwise routines, sums of squares, CTC -----------===//

#include "Kernels/CUDA/Routines.h"
#include "Kernels/CUDA/Grids.h"

#include <algorithm>
#include <string>

namespace dsopt::runtime::cuda {

/// Elements of a block, and of a block that folds.
static constexpr int64_t kThreads = 256, kElements = 8 * kThreads;

void accumulate(Device &device, StreamHandle stream, int64_t elements, const float *value, void *gradient,
                int64_t type, bool accumulates) {
  if (!accumulates && type == DSOPT_F32) {
    if (elements)
      DSOPT_CUDA(cuMemcpyDtoDAsync_v2, addressOf(gradient), addressOf(value), elements * 4, stream);
    return;
  }
  std::string kernel = (accumulates ? "dsopt_add_" : "dsopt_convert_") + suffixOf(type) + "_f32";
  launchBlocks(device, stream, kernel, blocksFor(elements, kElements), kThreads, gradient, value, elements);
}

void addInto(Device &device, StreamHandle stream, void *target, const void *source, int64_t elements,
             int64_t type) {
  launchBlocks(device, stream, "dsopt_add_" + suffixOf(type) + "_" + suffixOf(type),
               blocksFor(elements, kElements), kThreads, target, source, elements);
}

void fold(Device &device, StreamHandle stream, float *running, const void *statistics, int64_t bytes,
          int64_t elements, const int64_t *places, int64_t count, double momentum) {
  for (int64_t first = 0; first < count; first += FoldPlaces::kMost) {
    FoldPlaces some = {std::min<int64_t>(count - first, FoldPlaces::kMost), {}};
    std::copy_n(places + first, some.count, some.places);
    launchBlocks(device, stream, "dsopt_fold", blocksFor(elements, kThreads), kThreads, running, statistics,
                 bytes, elements, some, static_cast<float>(momentum), static_cast<float>(1 - momentum));
  }
}

void squareSums(Device &device, StreamHandle stream, const SquarePiece *pieces, int64_t count, int64_t type,
                int64_t *record, int64_t *sums, int64_t sumCount) {
  if (record) {
    DSOPT_CUDA(cuMemsetD8Async, addressOf(record), 0, kSquareDigits * 8, stream);
    // -1, which is above every parameter where numbers have no sign.
    DSOPT_CUDA(cuMemsetD8Async, addressOf(record + kSquareDigits), 0xff, 8, stream);
  }
  if (!sums)
    sumCount = 0;
  if (sumCount)
    DSOPT_CUDA(cuMemsetD8Async, addressOf(sums), 0, sumCount * kSquareDigits * 8, stream);
  for (int64_t first = 0; first < count; first += SquarePieces::kMost) {
    SquarePieces some = {std::min<int64_t>(count - first, SquarePieces::kMost), {}, {}};
    for (int64_t i = 0; i < some.count; ++i) {
      some.pieces[i] = pieces[first + i];
      some.firsts[i + 1] = some.firsts[i] + blocksFor(pieces[first + i].elements, kSquareElements);
    }
    launchBlocks(device, stream, "dsopt_square_sums_" + suffixOf(type), some.firsts[some.count], kThreads,
                 some, record, sums);
  }
  launchBlocks(device, stream, "dsopt_normalize_sums", blocksFor(sumCount + 1, 32), 32, record, sums,
               sumCount);
}

void lambSums(Device &device, StreamHandle stream, const LambPiece *pieces, int64_t count, float eps,
              int64_t *sums, int64_t sumCount) {
  for (int64_t first = 0; first < count; first += LambPieces::kMost) {
    LambPieces some = {std::min<int64_t>(count - first, LambPieces::kMost), {}, {}, eps};
    for (int64_t i = 0; i < some.count; ++i) {
      some.pieces[i] = pieces[first + i];
      some.firsts[i + 1] = some.firsts[i] + blocksFor(pieces[first + i].elements, kSquareElements);
    }
    launchBlocks(device, stream, "dsopt_lamb_sums", some.firsts[some.count], kThreads, some, sums);
  }
  launchBlocks(device, stream, "dsopt_normalize_sums", blocksFor(sumCount + 1, 32), 32,
               static_cast<int64_t *>(nullptr), sums, sumCount);
}

/// Of no group yet.
static TrustTables tablesOf(const LambRule &rule, int64_t ranks, int64_t words) {
  TrustTables tables{};
  tables.ranks = ranks;
  tables.words = words;
  tables.rule = rule;
  return tables;
}

/// A table whose places are more than a launch carries.
static void writeByParts(Device &device, StreamHandle stream, const TrustTable &table, const LambRule &rule,
                         const int64_t *records, int64_t ranks, int64_t words, int64_t *scratch) {
  DSOPT_CUDA(cuMemsetD8Async, addressOf(scratch), 0, 2 * kSquareDigits * 8, stream);
  auto count = static_cast<int64_t>(table.places->size());
  TrustTables some = tablesOf(rule, ranks, words);
  for (int64_t first = 0; first < count; first += TrustTables::kPlaces) {
    some.ends[0] = static_cast<int32_t>(std::min<int64_t>(count - first, TrustTables::kPlaces));
    std::copy_n(table.places->begin() + first, some.ends[0], some.places);
    launchBlocks(device, stream, "dsopt_add_trust", 1, kTrustThreads, some, records, scratch);
  }
  TrustTables one = {1, 0, {table.group}, {table.table}, {table.root}, {table.numbers}, {1}, {0}, rule};
  launchBlocks(device, stream, "dsopt_trust_tables", 1, kTrustThreads, one, scratch);
}

void writeTrustTables(Device &device, StreamHandle stream, const TrustTable *tables, int64_t count,
                      const LambRule &rule, const int64_t *records, int64_t ranks, int64_t words,
                      int64_t *scratch) {
  for (int64_t first = 0; first < count;) {
    TrustTables some = tablesOf(rule, ranks, words);
    int64_t taken = 0, places = 0;
    for (; first < count && taken < TrustTables::kMost &&
           places + static_cast<int64_t>(tables[first].places->size()) <= TrustTables::kPlaces;
         ++first, ++taken) {
      some.groups[taken] = tables[first].group;
      some.tables[taken] = tables[first].table;
      some.roots[taken] = tables[first].root;
      some.numbers[taken] = tables[first].numbers;
      for (int64_t place : *tables[first].places)
        some.places[places++] = static_cast<int32_t>(place);
      some.ends[taken] = static_cast<int32_t>(places);
    }
    launchBlocks(device, stream, "dsopt_trust_tables", taken, kTrustThreads, some, records);
    if (taken == 0)
      writeByParts(device, stream, tables[first++], rule, records, ranks, words, scratch);
  }
}

static constexpr int64_t kCtcThreads = 128;

void ctc(Device &device, StreamHandle stream, const dsopt_ctc &d, const float *logs, const int64_t *targets,
         const int64_t *inputLengths, const int64_t *targetLengths, void *workspace, float *losses) {
  launchBlocks(device, stream, "dsopt_ctc_losses", d.batch, kCtcThreads, d, logs, targets, inputLengths,
               targetLengths, workspace, losses);
}

void ctcGrad(Device &device, StreamHandle stream, const dsopt_ctc &d, const float *logs,
             const int64_t *targets, const int64_t *inputLengths, const int64_t *targetLengths,
             const float *grad, void *workspace, float *gradient) {
  launchBlocks(device, stream, "dsopt_ctc_gradient", d.batch, kCtcThreads, d, logs, targets, inputLengths,
               targetLengths, grad, workspace, gradient);
}

} // namespace dsopt::runtime::cuda
