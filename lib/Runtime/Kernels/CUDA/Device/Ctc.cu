//===- Ctc.cu - connectionist temporal classification ----------------------===//
//
// dsopt/Runtime/Ctc.h with a block a sample: a thread takes some of the states of a frame,
// then all of them meet. Additions are in the host's order.
//
//===----------------------------------------------------------------------===//

#include "Doubles.h"

namespace {
constexpr int kThreads = 128;
constexpr double kNever = -__builtin_inf();

DEVICE double logSum(double a, double b) {
  double high = most(a, b), low = least(a, b);
  return high == kNever ? kNever : high + log1p(exp(low - high));
}

/// The block's sample and its states: a blank, then each label with a blank behind it.
struct Sample {
  const dsopt_ctc &d;
  const float *logs; ///< in the first frame
  const int64_t *first;
  int64_t frames, labels, count; ///< of the states
  int64_t blank; ///< read once, so that no address in the parameters is chosen beside one of a label
  bool isValid = true;

  DEVICE_MEMBER Sample(const dsopt_ctc &d, const float *logs, const int64_t *targets,
                       const int64_t *inputLengths, const int64_t *targetLengths)
      : d(d), logs(logs + blockX() * d.classes), first(targets), frames(inputLengths[blockX()]),
        labels(targetLengths[blockX()]), count(2 * labels + 1), blank(d.blank) {
    int64_t begin = d.concatenated ? 0 : blockX() * d.targets, room = d.targets;
    for (int64_t before = 0; d.concatenated && before < blockX(); ++before) {
      int64_t length = targetLengths[before];
      isValid &= length >= 0 && length <= room;
      begin += length;
      room -= length;
    }
    isValid = isValid && frames >= 0 && frames <= d.frames && labels >= 0 && labels <= room;
    if (!isValid)
      return;
    first += begin;
    for (int64_t i = 0; i < labels; ++i)
      isValid &= first[i] >= 0 && first[i] < d.classes;
  }

  DEVICE_MEMBER int64_t classOf(int64_t s) const { return s % 2 ? first[s / 2] : blank; }
  DEVICE_MEMBER double at(int64_t frame, int64_t s) const {
    return logs[frame * d.batch * d.classes + classOf(s)];
  }
  /// Whether a path may come to the state from the one two before.
  DEVICE_MEMBER bool skips(int64_t s) const {
    return s >= 2 && classOf(s) != blank && classOf(s) != classOf(s - 2);
  }

  /// The logarithm of the probability; all threads return it, and have met behind the last write of `rows`.
  template <bool keepsAll> DEVICE_MEMBER double forward(double *rows) const {
    if (frames == 0)
      return labels == 0 ? 0 : kNever;
    auto row = [&](int64_t frame) { return rows + (keepsAll ? frame : frame % 2) * count; };
    for (int64_t frame = 0; frame < frames; ++frame) {
      const double *before = frame ? row(frame - 1) : nullptr;
      for (int64_t s = threadX(); s < count; s += kThreads) {
        double sum = s < 2 ? 0 : kNever;
        if (frame) {
          sum = s > 0 ? logSum(before[s], before[s - 1]) : before[s];
          if (skips(s))
            sum = logSum(sum, before[s - 2]);
        }
        row(frame)[s] = sum + at(frame, s);
      }
      barrier();
    }
    const double *last = row(frames - 1);
    return count > 1 ? logSum(last[count - 1], last[count - 2]) : last[0];
  }

  /// Paths to the end from behind a state, where `next` are those from the next frame on.
  DEVICE_MEMBER double goOn(const double *next, int64_t frame, int64_t s) const {
    if (frame == frames - 1)
      return s >= count - 2 ? 0 : kNever;
    double sum = s + 1 < count ? logSum(next[s], next[s + 1]) : next[s];
    return s + 2 < count && skips(s + 2) ? logSum(sum, next[s + 2]) : sum;
  }
  /// The next state of a state's class, or 0.
  DEVICE_MEMBER int64_t nextOfClass(int64_t s) const {
    for (int64_t next = s + 1; next < count; ++next)
      if (classOf(next) == classOf(s))
        return next;
    return 0;
  }
  DEVICE_MEMBER bool isFirst(int64_t s) const {
    for (int64_t before = 0; before < s; ++before)
      if (classOf(before) == classOf(s))
        return false;
    return true;
  }

  DEVICE_MEMBER void backward(const double *rows, double *scratch, float *gradient, double total,
                              double factor) const {
    double *after = scratch, *next = after + count, *links = next + count;
    // As on the host: 1 more than the next of its class, negative where the state is not the first.
    for (int64_t s = threadX(); s < count; s += kThreads) {
      auto link = static_cast<double>(nextOfClass(s) + 1);
      links[s] = isFirst(s) ? link : -link;
    }
    for (int64_t frame = frames - 1; frame >= 0; --frame) {
      for (int64_t s = threadX(); s < count; s += kThreads)
        after[s] = goOn(next, frame, s) + at(frame, s);
      float *to = gradient + frame * d.batch * d.classes;
      const float *from = logs + frame * d.batch * d.classes;
      for (int64_t c = threadX(); c < d.classes; c += kThreads)
        to[c] = static_cast<float>(exp(static_cast<double>(from[c])) * factor);
      barrier();
      const double *come = rows + frame * count;
      for (int64_t s = threadX(); s < count; s += kThreads) {
        if (links[s] < 0)
          continue;
        double sum = come[s] + after[s];
        for (int64_t other = s;;) {
          auto link = static_cast<int64_t>(links[other]);
          other = (link < 0 ? -link : link) - 1;
          if (other == 0)
            break;
          sum = logSum(sum, come[other] + after[other]);
        }
        double log = at(frame, s);
        to[classOf(s)] = static_cast<float>((exp(log) - exp(sum - total - log)) * factor);
      }
      // What is written next are the states of the frame behind, which all have read.
      double *done = after;
      after = next;
      next = done;
    }
  }
};

DEVICE bool isInfinite(double x) { return x == __builtin_inf() || x == kNever; }
} // namespace

KERNEL(kThreads)
void dsopt_ctc_losses(dsopt_ctc d, const float *logs, const int64_t *targets, const int64_t *inputLengths,
                      const int64_t *targetLengths, double *scratch, float *losses) {
  Sample sample(d, logs, targets, inputLengths, targetLengths);
  double loss = __builtin_nan("");
  if (sample.isValid)
    loss = -sample.forward<false>(scratch + blockX() * (2 * d.targets + 1) * 2);
  if (threadX() == 0)
    losses[blockX()] = static_cast<float>(d.zero_infinity && isInfinite(loss) ? 0 : loss);
}

KERNEL(kThreads)
void dsopt_ctc_gradient(dsopt_ctc d, const float *logs, const int64_t *targets, const int64_t *inputLengths,
                        const int64_t *targetLengths, const float *grad, double *scratch, float *gradient) {
  Sample sample(d, logs, targets, inputLengths, targetLengths);
  double *rows = scratch + blockX() * (2 * d.targets + 1) * (d.frames + 3);
  float *own = gradient + blockX() * d.classes;
  double total = 0;
  bool counts = sample.isValid;
  if (counts) {
    total = sample.forward<true>(rows);
    counts = !(d.zero_infinity && isInfinite(total));
  }
  // Frames behind the sample's have none, nor has what zero_infinity leaves out.
  for (int64_t frame = counts ? sample.frames : 0; frame < d.frames; ++frame)
    for (int64_t c = threadX(); c < d.classes; c += kThreads)
      own[frame * d.batch * d.classes + c] = 0;
  if (counts)
    sample.backward(rows, rows + d.frames * (2 * d.targets + 1), own, total, grad[blockX()]);
}
