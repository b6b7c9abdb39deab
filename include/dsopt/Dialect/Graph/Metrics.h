//===- Metrics.h - what a run measures beside its loss ----------*- C++ -*-===//
//
// What a micro-batch gives of a metric is one or more results of @forward, @micro_batch and
// @evaluate, in f32, behind the loss and the statistics. They are agreed on at the step's end as
// losses are, and combined then (Runtime/Metrics.h).
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_DIALECT_GRAPH_METRICS_H
#define DSOPT_DIALECT_GRAPH_METRICS_H

#include "dsopt/Dialect/Graph/Graph.h"

namespace dsopt::graph {
/// On a result of @forward: the value of the model that it is, for metrics to compare (its name).
inline constexpr llvm::StringLiteral kOutputAttr = "graph.output";
/// On a result of a function: the metric that it is a part of. All parts of one stand in their order.
inline constexpr llvm::StringLiteral kMetricAttr = "graph.metric";

/// On a result of a function that has no loss: the output that it is, and its shape.
inline constexpr llvm::StringLiteral kPredictionAttr = "graph.prediction";
inline constexpr llvm::StringLiteral kShapeAttr = "graph.shape";

/// Whether a function computes outputs, which are all of its results, instead of a loss.
inline bool predicts(mlir::func::FuncOp function) {
  return function.getNumResults() > 0 && function.getResultAttr(0, kPredictionAttr);
}

/// A result of a function that is a part of a metric.
struct MetricPart {
  unsigned result = 0;
  MetricAttr metric;
  unsigned part = 0;
};

/// How many parts a metric has.
inline unsigned partsOf(Combine combine) {
  return combine <= Combine::Root ? 1 : combine <= Combine::Exponential ? 2 : 3;
}

/// The results of a function that are parts of metrics, in order.
inline llvm::SmallVector<MetricPart> metricsOf(mlir::func::FuncOp function) {
  llvm::SmallVector<MetricPart> parts;
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    if (auto metric = function.getResultAttrOfType<MetricAttr>(i, kMetricAttr)) {
      bool goesOn = !parts.empty() && parts.back().metric == metric && parts.back().result + 1 == i &&
                    parts.back().part + 1 < partsOf(metric.getCombine());
      parts.push_back({i, metric, goesOn ? parts.back().part + 1 : 0});
    }
  return parts;
}

/// The operations of @forward that nothing but metrics needs.
llvm::DenseSet<mlir::Operation *> measuringOnly(mlir::func::FuncOp function);
} // namespace dsopt::graph

#endif // DSOPT_DIALECT_GRAPH_METRICS_H
