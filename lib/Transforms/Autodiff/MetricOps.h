//===- MetricOps.h - what a micro-batch gives of a metric -------*- C++ -*-===//
//
// Operations on predictions and targets, for attach-metrics. Private to this folder.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_LIB_TRANSFORMS_AUTODIFF_METRICOPS_H
#define DSOPT_LIB_TRANSFORMS_AUTODIFF_METRICOPS_H

#include "dsopt/Dialect/Graph/Graph.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace dsopt {

/// Scores of classes in rows, `[N, C]` in f32, and the rows' labels, `[N]` in i64.
struct ClassPair {
  mlir::Value scores, labels;
  int64_t ignored = 0; ///< a label of rows that count nothing
};

class MetricOps {
public:
  MetricOps(mlir::OpBuilder &builder, mlir::Location location) : b(location, builder) {}

  /// The rows whose label is among the `most` largest scores (of equal ones the first), and those that count.
  llvm::SmallVector<mlir::Value> hits(const ClassPair &pair, int64_t most);
  /// The sum of the rows' -log(softmax(scores)[label]), and how many count.
  llvm::SmallVector<mlir::Value> logLikelihood(const ClassPair &pair);
  /// The same of rows whose losses are known, 0 where the label is ignored.
  llvm::SmallVector<mlir::Value> logLikelihood(mlir::Value losses, mlir::Value labels, int64_t ignored);
  /// By class: rows of that class and label, of that class, of that label.
  llvm::SmallVector<mlir::Value> confusion(const ClassPair &pair);
  /// The mean over elements of the difference's square or absolute value.
  mlir::Value distance(mlir::Value output, mlir::Value target, bool isSquare);

  /// Scores of two classes, `[N, 2]`, of one score a row, `[N, 1]`: that of the first is 0.
  mlir::Value beside(mlir::Value column);
  /// Labels in i64: of floats 1 above one half, else 0.
  mlir::Value numbers(mlir::Value labels);

  mlir::Value reshape(mlir::Value value, llvm::ArrayRef<int64_t> shape);
  mlir::Value convert(mlir::Value value, mlir::Type element);

private:
  /// What all metrics of classes compare.
  struct Rows {
    mlir::Value labels;  ///< `[N, 1]`
    mlir::Value counts;  ///< `[N, 1]`, whether the label is not ignored
    mlir::Value classes; ///< `[1, C]`, each class's number
  };
  Rows rowsOf(const ClassPair &pair);
  /// `[N, 1]`, the label's score; -inf of a label that is no class.
  mlir::Value picked(const ClassPair &pair, const Rows &rows);
  /// Whether labels are not ignored.
  mlir::Value counted(mlir::Value labels, int64_t ignored);
  template <typename Op, typename... Args> mlir::Value make(Args &&...args) {
    return Op::create(b, std::forward<Args>(args)...)->getResult(0);
  }
  mlir::Value scalar(mlir::Value like, double value);
  /// How many of the conditions hold, over `axes`.
  mlir::Value count(mlir::Value conditions, llvm::ArrayRef<int64_t> axes, bool keeps = false);

  mlir::ImplicitLocOpBuilder b;
};

} // namespace dsopt

#endif // DSOPT_LIB_TRANSFORMS_AUTODIFF_METRICOPS_H
