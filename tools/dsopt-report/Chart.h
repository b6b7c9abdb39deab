//===- Chart.h - lines and bars as inline SVG -------------------*- C++ -*-===//

#ifndef DSOPT_TOOLS_DSOPT_REPORT_CHART_H
#define DSOPT_TOOLS_DSOPT_REPORT_CHART_H

#include "Log.h"

namespace dsopt::report {

/// `text` as HTML shows it.
std::string escaped(const std::string &text);

/// "1.2k", "3.4e-05".
std::string shortNumber(double value);

struct Line {
  std::string name;
  int color = 0; ///< of the page's palette
  const Series *values = nullptr;
  bool points = false; ///< marks each value, and dashes between them
  bool smooth = false; ///< has smoothed curves, which the page's choice of smoothing shows
  bool tone = false;   ///< another tone of the color
  bool dotted = false; ///< tells it from another line of that color
  bool hidden = false; ///< until it is chosen in the legend
};

/// A figure with a title and the values over steps, on a linear and a logarithmic axis between which a
/// switch chooses; the logarithmic one is chosen where few values would flatten all others. Empty if no line
/// has a value. `marks` are steps with a vertical line; `note` stands below.
std::string lineChart(const std::string &title, const std::vector<Line> &lines,
                      const std::vector<int64_t> &marks = {}, const std::string &note = "");

/// Rows of stacked parts; `unit` follows the numbers.
struct Bars {
  std::vector<std::string> parts;          ///< names, in the palette's order
  std::vector<std::string> rows;           ///< names
  std::vector<std::vector<double>> values; ///< by row, then part
};
std::string barChart(const std::string &title, const Bars &bars, std::string (*format)(double));

} // namespace dsopt::report

#endif // DSOPT_TOOLS_DSOPT_REPORT_CHART_H
