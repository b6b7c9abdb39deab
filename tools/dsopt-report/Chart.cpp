//===- Chart.cpp - lines and bars as inline SVG ---------------------------===//

#include "Chart.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace dsopt::report {

namespace {
/// A value that has a place in a figure: differences of such values are finite too.
bool drawn(double value) { return std::fabs(value) < 1e200; }

constexpr double kWidth = 620, kHeight = 230, kLeft = 58, kRight = 12, kTop = 10, kBottom = 24;
/// More values than this are drawn as the least and the most of each column.
constexpr size_t kColumns = 560;

std::string fixed(double value, int digits = 1) {
  char text[40];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

/// A round distance of about `count` marks over `range`.
double tickDistance(double range, int count) {
  double raw = range / count, power = std::pow(10.0, std::floor(std::log10(raw)));
  for (double factor : {1.0, 2.0, 5.0})
    if (raw <= factor * power)
      return factor * power;
  return 10 * power;
}

struct Axis {
  double least = 0, most = 1, from = 0, to = 1; ///< values, and where they lie
  double at(double value) const { return from + (value - least) / (most - least) * (to - from); }
};

using Points = std::vector<std::pair<double, double>>;

/// The values as they are, or for many the least and the most of each of the columns.
Points reduced(const Series &series) {
  Points points(series.begin(), series.end());
  if (points.size() <= 2 * kColumns)
    return points;
  Points few;
  for (size_t column = 0; column < kColumns; ++column) {
    auto begin = points.begin() + points.size() * column / kColumns;
    auto end = points.begin() + points.size() * (column + 1) / kColumns;
    auto bySize = [](auto &a, auto &b) {
      return drawn(a.second) && (!drawn(b.second) || a.second < b.second);
    };
    auto least = std::min_element(begin, end, bySize), most = least;
    for (auto it = begin; it != end; ++it)
      if (drawn(it->second) && (!drawn(most->second) || it->second > most->second))
        most = it;
    few.push_back(std::min(*least, *most));
    if (least != most)
      few.push_back(std::max(*least, *most));
  }
  return few;
}

std::string text(double x, double y, const char *anchor, const std::string &what) {
  return "<text x='" + fixed(x) + "' y='" + fixed(y) + "' text-anchor='" + anchor + "'>" + escaped(what) +
         "</text>";
}

std::string stroke(double x0, double y0, double x1, double y1, const char *kind) {
  return "<line class='" + std::string(kind) + "' x1='" + fixed(x0) + "' y1='" + fixed(y0) + "' x2='" +
         fixed(x1) + "' y2='" + fixed(y1) + "'/>";
}

/// The path through all finite values, with gaps where there are others.
std::string path(const Points &points, const Axis &x, const Axis &y) {
  std::string out;
  bool open = false;
  for (auto [step, value] : points) {
    if (drawn(value))
      out += (open ? 'L' : 'M') + fixed(x.at(step)) + " " + fixed(y.at(value));
    open = drawn(value);
  }
  return out;
}

std::string legend(const std::vector<std::pair<int, std::string>> &entries) {
  std::string out = "<div class='legend'>";
  for (auto &[color, name] : entries)
    out += "<span><i class='c" + std::to_string(color) + "'></i>" + escaped(name) + "</span>";
  return out + "</div>";
}
} // namespace

std::string escaped(const std::string &text) {
  std::string out;
  for (char c : text)
    switch (c) {
    case '<':
      out += "&lt;";
      break;
    case '>':
      out += "&gt;";
      break;
    case '&':
      out += "&amp;";
      break;
    case '"':
      out += "&quot;";
      break;
    case '\'':
      out += "&#39;";
      break;
    default:
      out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  return out;
}

std::string shortNumber(double value) {
  if (!std::isfinite(value))
    return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
  double size = std::fabs(value);
  const char *suffix = "";
  if (size >= 1e15 || (size > 0 && size < 1e-3)) {
    char text[40];
    std::snprintf(text, sizeof text, "%.3g", value);
    return text;
  }
  for (auto [limit, name] :
       {std::pair(1e12, "T"), std::pair(1e9, "G"), std::pair(1e6, "M"), std::pair(1e4, "k")})
    if (size >= limit) {
      value /= limit == 1e4 ? 1e3 : limit;
      suffix = name;
      break;
    }
  char text[40];
  std::snprintf(text, sizeof text, "%.4g%s", value, suffix);
  return text;
}

std::string lineChart(const std::string &title, const std::vector<Line> &lines,
                      const std::vector<int64_t> &marks) {
  Axis x{INFINITY, -INFINITY, kLeft, kWidth - kRight}, y{INFINITY, -INFINITY, kHeight - kBottom, kTop};
  bool any = false;
  for (const Line &line : lines)
    for (auto [step, value] : *line.values) {
      any = true;
      x.least = std::min(x.least, static_cast<double>(step));
      x.most = std::max(x.most, static_cast<double>(step));
      if (drawn(value)) {
        y.least = std::min(y.least, value);
        y.most = std::max(y.most, value);
      }
    }
  if (!any)
    return "";
  bool finite = y.least <= y.most;
  if (!finite)
    y.least = 0, y.most = 1;
  if (x.least == x.most)
    x.least -= 0.5, x.most += 0.5;
  // Quantities that come near 0 are shown from there.
  if (y.least > 0 && y.least < 0.35 * y.most)
    y.least = 0;
  double margin = y.most > y.least ? 0.05 * (y.most - y.least) : std::max(std::fabs(y.most) * 0.1, 1e-12);
  y.most += margin;
  if (y.least != 0)
    y.least -= margin;

  std::string svg = "<svg viewBox='0 0 " + fixed(kWidth, 0) + " " + fixed(kHeight, 0) +
                    "' role='img' aria-label='" + escaped(title) + "' data-x='" + fixed(x.least, 4) + " " +
                    fixed(x.most, 4) + "'>";
  double distance = tickDistance(y.most - y.least, 5);
  for (double value = std::ceil(y.least / distance) * distance; value <= y.most; value += distance) {
    double shown = std::fabs(value) < distance * 1e-6 ? 0 : value;
    svg += stroke(kLeft, y.at(value), kWidth - kRight, y.at(value), "grid") +
           text(kLeft - 6, y.at(value) + 3.5, "end", shortNumber(shown));
  }
  distance = std::max(1.0, tickDistance(x.most - x.least, 7));
  for (double step = std::ceil(x.least / distance) * distance; step <= x.most; step += distance)
    svg += text(x.at(step), kHeight - 6, "middle", shortNumber(step));
  for (int64_t mark : marks)
    svg += stroke(x.at(mark), kTop, x.at(mark), kHeight - kBottom, "mark");
  std::vector<std::pair<int, std::string>> names;
  for (const Line &line : lines) {
    if (line.values->empty())
      continue;
    names.push_back({line.color, line.name});
    Points points = reduced(*line.values);
    std::string color = "c" + std::to_string(line.color), data;
    svg += "<path class='" + color + (line.points ? " dashed" : "") + "' d='" + path(points, x, y) + "'/>";
    for (auto [step, value] : points) {
      bool alone = line.points || points.size() == 1;
      if (!drawn(value))
        svg += "<path class='bad' d='M" + fixed(x.at(step) - 4) + " " + fixed(kTop) +
               "l4 7l4 -7z'><title>step " + fixed(step, 0) + ": " + shortNumber(value) + "</title></path>";
      else if (alone && points.size() <= 200)
        svg += "<circle class='" + color + "' cx='" + fixed(x.at(step)) + "' cy='" + fixed(y.at(value)) +
               "' r='2.6'/>";
      data += (data.empty() ? "" : ",") + fixed(step, 0) + ":" + shortNumber(value);
    }
    svg += "<desc data-name='" + escaped(line.name) + "' data-color='" + std::to_string(line.color) + "'>" +
           data + "</desc>";
  }
  std::string out =
      "<figure><figcaption>" + escaped(title) + "</figcaption>" + svg + "<g class='cursor'></g></svg>";
  if (names.size() > 1)
    out += legend(names);
  return out + (finite ? "" : "<p class='note'>no finite value</p>") + "</figure>";
}

std::string barChart(const std::string &title, const Bars &bars, std::string (*format)(double)) {
  constexpr double kRow = 20, kName = 110, kValue = 76;
  double most = 0, height = kRow * bars.rows.size() + 6;
  for (const std::vector<double> &row : bars.values) {
    double sum = 0;
    for (double value : row)
      sum += value;
    most = std::max(most, sum);
  }
  if (most <= 0)
    return "";
  std::string svg = "<svg viewBox='0 0 " + fixed(kWidth, 0) + " " + fixed(height, 0) +
                    "' role='img' aria-label='" + escaped(title) + "'>";
  double scale = (kWidth - kName - kValue) / most;
  for (size_t row = 0; row < bars.rows.size(); ++row) {
    double x = kName, top = kRow * row + 3, sum = 0;
    svg += text(kName - 8, top + 12, "end", bars.rows[row]);
    for (size_t part = 0; part < bars.values[row].size(); ++part) {
      double width = bars.values[row][part] * scale;
      svg += "<rect class='c" + std::to_string(part) + "' x='" + fixed(x) + "' y='" + fixed(top) +
             "' width='" + fixed(width, 2) + "' height='" + fixed(kRow - 5) + "'><title>" +
             escaped(bars.parts[part]) + ": " + format(bars.values[row][part]) + "</title></rect>";
      x += width;
      sum += bars.values[row][part];
    }
    svg += text(x + 6, top + 12, "start", format(sum));
  }
  std::vector<std::pair<int, std::string>> names;
  for (size_t part = 0; part < bars.parts.size(); ++part)
    names.push_back({static_cast<int>(part), bars.parts[part]});
  return "<figure><figcaption>" + escaped(title) + "</figcaption>" + svg + "</svg>" + legend(names) +
         "</figure>";
}

} // namespace dsopt::report
