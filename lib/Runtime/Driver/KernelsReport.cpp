//===- KernelsReport.cpp - what -report=kernels prints --------------------===//
//
// One row for each product shape, kernel, routine and kind of communication. A
// row's limit is the time that the machine's bandwidth needs for its bytes or the
// library's peak for its flops, whichever is longer; what lies in caches may
// pass it.
//
//===----------------------------------------------------------------------===//

#include "KernelsReport.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

using namespace dsopt::runtime;

/// Rows of less than this share of a step are summed up in one line.
static constexpr double kLeastShare = 0.0005;

template <typename... Values> static std::string format(const char *text, Values... values) {
  char buffer[512];
  std::snprintf(buffer, sizeof buffer, text, values...);
  return buffer;
}

/// Flops a second of products with this element type; of the fastest type measured where it has none.
static double peakOf(const MachineLimits &limits, const std::string &type) {
  if (auto it = limits.peak.find(type); it != limits.peak.end())
    return it->second;
  double best = 0;
  for (const auto &[other, peak] : limits.peak)
    best = std::max(best, peak);
  return best;
}

static double flopsOfProducts(const std::vector<int64_t> &products) {
  double flops = 0;
  for (size_t at = 0; at < products.size(); at += kProductNumbers)
    flops += 2.0 * products[at] * products[at + 1] * products[at + 2] * products[at + 3] * products[at + 4];
  return flops;
}

/// What a device's kernel takes, or which algorithm a product takes.
static std::string figuresOf(const CallRow &row) {
  const KernelFigures &figures = row.figures;
  if (!row.algorithm.empty())
    return "; " + row.algorithm;
  if (!figures.registers)
    return "";
  return format("; %lld registers, %lld B shared, %lld B spilled", (long long)figures.registers,
                (long long)figures.shared, (long long)figures.spills);
}

static std::string heading(const Program &program, const MachineLimits &limits, int64_t threads, double ms,
                           int64_t steps) {
  std::string text = format("kernels: mean of %lld step%s of %.1f ms, %lld thread%s", (long long)steps,
                            steps == 1 ? "" : "s", ms / steps, (long long)threads, threads == 1 ? "" : "s");
  if (program.ranks() > 1)
    text += format(", rank 0 of %lld", (long long)(program.ranks()));
  text += format("; this %s: %.1f GB/s", program.target == "cpu" ? "machine" : "GPU", limits.bandwidth / 1e9);
  for (const auto &[type, peak] : limits.peak)
    text += format(", %.0f GFLOP/s %s", peak / 1e9, type.c_str());
  return text + "\n    calls        ms   share        MB    GFLOP    GB/s  GFLOP/s  of limit\n";
}

std::string dsopt::runtime::kernelsTable(const Program &program, const std::vector<CallRow> &rows,
                                         const MachineLimits &limits, int64_t threads, double ms,
                                         int64_t steps) {
  std::string text = heading(program, limits, threads, ms, steps);
  std::vector<size_t> order(rows.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return rows[a].ms > rows[b].ms; });

  int64_t others = 0;
  double othersMs = 0;
  double sum = 0, productMs = 0, productFlops = 0, leastMs = 0;
  for (size_t index : order) {
    const CallRow &row = rows[index];
    double seconds = row.ms / 1e3, peak = peakOf(limits, row.call.type);
    double limit = std::max(limits.bandwidth > 0 ? row.bytes / limits.bandwidth : 0,
                            peak > 0 && !row.call.type.empty() ? row.flops / peak : 0);
    if (!row.flies)
      sum += row.ms;
    if (row.ms < kLeastShare * ms) {
      ++others;
      othersMs += row.ms;
    }
    if (!row.call.products.empty()) {
      productMs += row.ms;
      double flops = row.calls * flopsOfProducts(row.call.products);
      productFlops += flops;
      leastMs += peak > 0 ? flops / peak * 1e3 : 0;
    }
    if (row.ms < kLeastShare * ms)
      continue;
    text += format("%9.1f %9.2f %6.1f%% %9.1f %8.2f %7.1f %8.1f %8.0f%%  ", double(row.calls) / steps,
                   row.ms / steps, 100 * row.ms / ms, row.bytes / steps / 1e6, row.flops / steps / 1e9,
                   row.bytes / seconds / 1e9, row.flops / seconds / 1e9, 100 * limit / seconds);
    text += row.call.kind + (row.call.type.empty() || row.call.type == "f32" ? "" : " " + row.call.type) +
            " " + row.call.what + (row.call.place.empty() ? "" : "  [" + row.call.place + "]") +
            (row.flies ? " (beside computation)" : "") + figuresOf(row) + "\n";
  }
  if (others)
    text += format("%9s %9.2f %6.1f%%  %lld more rows\n", "", othersMs / steps, 100 * othersMs / ms,
                   (long long)others);
  text += format("%9s %9.2f %6.1f%%  measured; the rest of a step is %.2f ms\n", "sum", sum / steps,
                 100 * sum / ms, (ms - sum) / steps);
  if (productMs > 0) {
    double whole = productFlops / ms / 1e6, inside = productFlops / productMs / 1e6;
    text += format(
        "calls with products: %.1f%% of the step, %.1f GFLOP at %.1f GFLOP/s; the step as a whole %.1f",
        100 * productMs / ms, productFlops / steps / 1e9, inside, whole);
    if (leastMs > 0)
      text += format("; at the peak they would take %.2f ms: whole-program efficiency %.1f%%",
                     leastMs / steps, 100 * leastMs / ms);
    text += "\n";
  }
  text.pop_back();
  return text;
}
