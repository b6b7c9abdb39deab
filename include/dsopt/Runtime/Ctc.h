//===- Ctc.h - connectionist temporal classification ------------*- C++ -*-===//
//
// Graves, Fernandez, Gomez and Schmidhuber 2006: the probability of all ways to write a
// sample's labels, with blanks between them, over its frames. Logarithms, in double. The
// compiler folds by it too.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_RUNTIME_CTC_H
#define DSOPT_RUNTIME_CTC_H

#include "dsopt/Runtime/ABI.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace dsopt::runtime {

/// One sample, and its states: a blank, then each label with a blank behind it.
template <typename Real> class CtcSample {
public:
  static constexpr double kNever = -std::numeric_limits<double>::infinity();

  /// Sample `n`. What its lengths and labels are is looked at before it is used: see isValid.
  CtcSample(const dsopt_ctc &d, int64_t n, const Real *logs, const int64_t *targets,
            const int64_t *inputLengths, const int64_t *targetLengths)
      : d(d), logs(logs + n * d.classes), first(targets), frames(inputLengths[n]), labels(targetLengths[n]) {
    int64_t begin = d.concatenated ? 0 : n * d.targets, room = d.targets;
    for (int64_t before = 0; d.concatenated && before < n; ++before) {
      valid &= targetLengths[before] >= 0 && targetLengths[before] <= room;
      begin += targetLengths[before];
      room -= targetLengths[before];
    }
    valid = valid && frames >= 0 && frames <= d.frames && labels >= 0 && labels <= room;
    if (!valid)
      return;
    first += begin;
    for (int64_t i = 0; i < labels; ++i)
      valid &= first[i] >= 0 && first[i] < d.classes;
  }

  bool isValid() const { return valid; }

  /// The logarithm of the probability; `rows` holds those to have come to each state, of each frame or, of
  /// two rows in turn, of the last. NaN where the sample is not valid.
  double forward(double *rows, bool keepsAll) const {
    if (!valid)
      return std::numeric_limits<double>::quiet_NaN();
    if (frames == 0)
      return labels == 0 ? 0 : kNever;
    int64_t count = states();
    auto row = [&](int64_t frame) { return rows + (keepsAll ? frame : frame % 2) * count; };
    std::fill_n(row(0), count, kNever);
    row(0)[0] = at(0, 0);
    if (count > 1)
      row(0)[1] = at(0, 1);
    for (int64_t frame = 1; frame < frames; ++frame) {
      const double *before = row(frame - 1);
      double *now = row(frame);
      for (int64_t s = 0; s < count; ++s) {
        double sum = s > 0 ? logSum(before[s], before[s - 1]) : before[s];
        if (skips(s))
          sum = logSum(sum, before[s - 2]);
        now[s] = sum + at(frame, s);
      }
    }
    const double *last = row(frames - 1);
    return count > 1 ? logSum(last[count - 1], last[count - 2]) : last[0];
  }

  /// The gradient of the loss, times `factor`, from the rows that forward has filled and its result: as that
  /// of the logits of a log_softmax, exp(log) less the share of the paths that go through a class
  /// (PyTorch's). `scratch` are three more rows.
  void backward(const double *rows, double *scratch, Real *gradient, double total, double factor) const {
    int64_t count = states(), stride = d.batch * d.classes;
    double *after = scratch, *next = after + count, *links = next + count;
    linkEqual(links);
    for (int64_t frame = frames - 1; frame >= 0; --frame) {
      for (int64_t s = 0; s < count; ++s)
        after[s] = goOn(next, frame, s) + at(frame, s);
      const double *come = rows + frame * count;
      Real *to = gradient + frame * stride;
      const Real *from = logs + frame * stride;
      for (int64_t c = 0; c < d.classes; ++c)
        to[c] = static_cast<Real>(std::exp(static_cast<double>(from[c])) * factor);
      for (int64_t s = 0; s < count; ++s) {
        if (links[s] < 0)
          continue;
        double sum = come[s] + after[s];
        for (int64_t other = s; (other = std::abs(static_cast<int64_t>(links[other])) - 1) > 0;)
          sum = logSum(sum, come[other] + after[other]);
        double log = at(frame, s);
        to[classOf(s)] = static_cast<Real>((std::exp(log) - std::exp(sum - total - log)) * factor);
      }
      std::swap(after, next);
    }
  }

private:
  static double logSum(double a, double b) {
    double most = std::max(a, b), least = std::min(a, b);
    return most == kNever ? kNever : most + std::log1p(std::exp(least - most));
  }

  int64_t states() const { return 2 * labels + 1; }
  int64_t classOf(int64_t state) const { return state % 2 ? first[state / 2] : d.blank; }
  double at(int64_t frame, int64_t state) const { return logs[frame * d.batch * d.classes + classOf(state)]; }
  /// Whether a path may come to the state from the one two before.
  bool skips(int64_t state) const {
    return state >= 2 && classOf(state) != d.blank && classOf(state) != classOf(state - 2);
  }
  /// Paths to the end from behind a state, where `next` are those from the next frame on.
  double goOn(const double *next, int64_t frame, int64_t s) const {
    int64_t count = states();
    if (frame == frames - 1)
      return s >= count - 2 ? 0 : kNever;
    double sum = s + 1 < count ? logSum(next[s], next[s + 1]) : next[s];
    return s + 2 < count && skips(s + 2) ? logSum(sum, next[s + 2]) : sum;
  }
  /// For each state 1 more than the next of its class, 0 if there is none; negative (-1 if there is none)
  /// where it is not the first.
  void linkEqual(double *links) const {
    for (int64_t s = states() - 1; s >= 0; --s) {
      int64_t next = s + 1;
      while (next < states() && classOf(next) != classOf(s))
        ++next;
      links[s] = next < states() ? next + 1 : 0;
      if (next < states())
        links[next] = links[next] == 0 ? -1 : -links[next];
    }
  }

  const dsopt_ctc &d;
  const Real *logs; ///< of this sample in the first frame
  const int64_t *first;
  int64_t frames, labels;
  bool valid = true;
};

/// Doubles of scratch that a sample's loss, or its gradient, takes.
inline int64_t ctcScratch(const dsopt_ctc &d, bool isGradient) {
  return (2 * d.targets + 1) * (isGradient ? d.frames + 3 : 2);
}

/// The losses of samples [begin, end).
template <typename Real>
void ctcLosses(const dsopt_ctc &d, const Real *logs, const int64_t *targets, const int64_t *inputLengths,
               const int64_t *targetLengths, Real *losses, double *scratch, int64_t begin, int64_t end) {
  for (int64_t n = begin; n < end; ++n) {
    CtcSample<Real> sample(d, n, logs, targets, inputLengths, targetLengths);
    double loss = -sample.forward(scratch + n * ctcScratch(d, false), /*keepsAll=*/false);
    losses[n] = static_cast<Real>(d.zero_infinity && std::isinf(loss) ? 0 : loss);
  }
}

/// The gradients of the logarithms of samples [begin, end), from those of the losses.
template <typename Real>
void ctcGradients(const dsopt_ctc &d, const Real *logs, const int64_t *targets, const int64_t *inputLengths,
                  const int64_t *targetLengths, const Real *grad, Real *gradient, double *scratch,
                  int64_t begin, int64_t end) {
  for (int64_t n = begin; n < end; ++n) {
    CtcSample<Real> sample(d, n, logs, targets, inputLengths, targetLengths);
    double *rows = scratch + n * ctcScratch(d, true), *more = rows + d.frames * (2 * d.targets + 1);
    double total = sample.forward(rows, /*keepsAll=*/true);
    // Frames behind the sample's have none, nor has what zero_infinity leaves out.
    Real *own = gradient + n * d.classes;
    for (int64_t frame = 0; frame < d.frames; ++frame)
      std::fill_n(own + frame * d.batch * d.classes, d.classes, Real(0));
    if (sample.isValid() && !(d.zero_infinity && std::isinf(total)))
      sample.backward(rows, more, own, total, grad[n]);
  }
}

} // namespace dsopt::runtime

#endif // DSOPT_RUNTIME_CTC_H
