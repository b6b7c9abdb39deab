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
constexpr size_t kColumns = 560, kSmoothColumns = 280;
/// The same where a figure has more lines than the palette has colors.
constexpr size_t kFewColumns = 100, kManyLines = 16;
/// What the page's choices of smoothing keep of the mean at each value.
constexpr double kSmoothing[] = {0.6, 0.9, 0.98};

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
  bool logarithmic = false;
  double scaled(double value) const { return logarithmic ? std::log10(value) : value; }
  bool takes(double value) const { return drawn(value) && (!logarithmic || value > 0); }
  double at(double value) const {
    double low = scaled(least);
    return from + (scaled(value) - low) / (scaled(most) - low) * (to - from);
  }
  /// Round values on it.
  std::vector<double> ticks(int count) const {
    std::vector<double> values;
    if (!logarithmic) {
      double distance = tickDistance(most - least, count);
      for (double value = std::ceil(least / distance) * distance; value <= most; value += distance)
        values.push_back(std::fabs(value) < distance * 1e-6 ? 0 : value);
      return values;
    }
    double decades = scaled(most) - scaled(least);
    auto every = static_cast<int>(std::ceil(decades / count));
    for (int power = static_cast<int>(std::floor(scaled(least))); power <= scaled(most); power += every)
      for (double factor : {1.0, 2.0, 5.0})
        if (double value = factor * std::pow(10.0, power);
            value >= least && value <= most && (factor == 1 || decades < 2))
          values.push_back(value);
    // Less than from one such value to the next.
    return values.size() > 1 ? values : std::vector<double>{least, most};
  }
};

using Points = std::vector<std::pair<double, double>>;

/// The values as they are, or for many the least and the most of each of the columns.
Points reduced(const Series &series, size_t columns) {
  Points points(series.begin(), series.end());
  if (points.size() <= 2 * columns)
    return points;
  Points few;
  for (size_t column = 0; column < columns; ++column) {
    auto begin = points.begin() + points.size() * column / columns;
    auto end = points.begin() + points.size() * (column + 1) / columns;
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

/// The mean of the values so far, of which each weighs `keep` times what the next one does. Every value
/// counts, few are drawn.
Points smoothed(const Series &series, double keep) {
  Points points;
  double sum = 0, weight = 0;
  size_t index = 0, last = 0;
  for (auto [step, value] : series) {
    if (drawn(value)) {
      sum = keep * sum + (1 - keep) * value;
      weight = keep * weight + (1 - keep);
    }
    size_t column = index++ * kSmoothColumns / series.size();
    if (weight > 0 && (points.empty() || column != last || index == series.size()))
      points.push_back({static_cast<double>(step), sum / weight});
    last = column;
  }
  return points;
}

/// Whether few values would flatten all others on a linear axis.
bool spreads(const std::vector<Line> &lines) {
  std::vector<double> values;
  for (const Line &line : lines)
    for (auto [step, value] : *line.values)
      if (drawn(value)) {
        if (value <= 0)
          return false;
        values.push_back(value);
      }
  if (values.size() < 5)
    return false;
  auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *std::max_element(values.begin(), values.end()) > 20 * *middle;
}

std::string text(double x, double y, const char *anchor, const std::string &what) {
  return "<text x='" + fixed(x) + "' y='" + fixed(y) + "' text-anchor='" + anchor + "'>" + escaped(what) +
         "</text>";
}

std::string stroke(double x0, double y0, double x1, double y1, const char *kind) {
  return "<line class='" + std::string(kind) + "' x1='" + fixed(x0) + "' y1='" + fixed(y0) + "' x2='" +
         fixed(x1) + "' y2='" + fixed(y1) + "'/>";
}

/// The path through all values that the axis has, with gaps where there are others.
std::string path(const Points &points, const Axis &x, const Axis &y) {
  std::string out;
  bool open = false;
  for (auto [step, value] : points) {
    if (y.takes(value))
      out += (open ? 'L' : 'M') + fixed(x.at(step)) + " " + fixed(y.at(value));
    open = y.takes(value);
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

/// What a value is under the pointer: more digits than beside an axis.
static std::string exactNumber(double value) {
  if (!std::isfinite(value))
    return shortNumber(value);
  char text[40];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

static std::string lineClass(const Line &line) {
  return (line.tone ? "e" : "c") + std::to_string(line.color);
}

/// The vertical axis for all values that it takes.
static Axis verticalAxis(const std::vector<Line> &lines, bool logarithmic) {
  Axis y{INFINITY, -INFINITY, kHeight - kBottom, kTop, logarithmic};
  for (const Line &line : lines)
    for (auto [step, value] : *line.values)
      if (y.takes(value)) {
        y.least = std::min(y.least, value);
        y.most = std::max(y.most, value);
      }
  if (y.least > y.most)
    y.least = logarithmic ? 0.1 : 0, y.most = 1;
  if (logarithmic) {
    double margin = std::pow(y.most / y.least, 0.05);
    margin = std::max(margin, 1.05);
    y.most *= margin;
    y.least /= margin;
    return y;
  }
  // Quantities that come near 0 are shown from there.
  if (y.least > 0 && y.least < 0.35 * y.most)
    y.least = 0;
  double margin = y.most > y.least ? 0.05 * (y.most - y.least) : std::max(std::fabs(y.most) * 0.1, 1e-12);
  y.most += margin;
  if (y.least != 0)
    y.least -= margin;
  return y;
}

/// All lines on that axis.
static std::string curves(const std::vector<Line> &lines, const Axis &x, const Axis &y) {
  std::string svg = y.logarithmic ? "<g class='logarithmic'>" : "<g class='linear'>";
  for (double value : y.ticks(5))
    svg += stroke(kLeft, y.at(value), kWidth - kRight, y.at(value), "grid") +
           text(kLeft - 6, y.at(value) + 3.5, "end", shortNumber(value));
  size_t columns = lines.size() > kManyLines ? kFewColumns : kColumns;
  for (size_t i = 0; i < lines.size(); ++i) {
    const Line &line = lines[i];
    Points points = reduced(*line.values, columns);
    std::string color = lineClass(line);
    svg += "<g data-line='" + std::to_string(i) + "'" + (line.hidden ? " class='off'" : "") +
           "><path class='" + color +
           (line.points   ? " dashed"
            : line.smooth ? " raw"
                          : "") +
           "' d='" + path(points, x, y) + "'/>";
    if (line.smooth)
      for (size_t choice = 0; choice < std::size(kSmoothing); ++choice)
        svg += "<path class='" + color + (line.dotted ? " dotted" : "") + " smooth s" +
               std::to_string(choice + 1) + "' d='" + path(smoothed(*line.values, kSmoothing[choice]), x, y) +
               "'/>";
    bool alone = line.points || points.size() == 1;
    for (auto [step, value] : points)
      if (!drawn(value))
        svg += "<path class='bad' d='M" + fixed(x.at(step) - 4) + " " + fixed(kTop) +
               "l4 7l4 -7z'><title>step " + fixed(step, 0) + ": " + shortNumber(value) + "</title></path>";
      else if (alone && points.size() <= 200 && y.takes(value))
        svg += "<circle class='" + color + "' cx='" + fixed(x.at(step)) + "' cy='" + fixed(y.at(value)) +
               "' r='2.6'/>";
    svg += "</g>";
  }
  return svg + "</g>";
}

/// Names with colors, each with a box that shows and hides its line; those that start hidden are folded away.
static std::string lineLegend(const std::vector<Line> &lines) {
  std::string shown, hidden;
  size_t count = 0;
  for (size_t i = 0; i < lines.size(); ++i) {
    const Line &line = lines[i];
    (line.hidden ? hidden : shown) += "<label><input type='checkbox' data-line='" + std::to_string(i) + "'" +
                                      (line.hidden ? "" : " checked") + "/><i class='" + lineClass(line) +
                                      "'></i>" + escaped(line.name) + "</label>";
    count += line.hidden;
  }
  std::string out = "<div class='legend'>" + shown + "</div>";
  if (count)
    out += "<details><summary>" + std::to_string(count) + " more</summary><div class='legend'>" + hidden +
           "</div></details>";
  return out;
}

std::string lineChart(const std::string &title, const std::vector<Line> &given,
                      const std::vector<int64_t> &marks, const std::string &note) {
  std::vector<Line> lines;
  for (const Line &line : given)
    if (!line.values->empty())
      lines.push_back(line);
  if (lines.empty())
    return "";
  Axis x{INFINITY, -INFINITY, kLeft, kWidth - kRight};
  bool finite = false, positive = false, others = false;
  for (const Line &line : lines) {
    x.least = std::min(x.least, static_cast<double>(line.values->begin()->first));
    x.most = std::max(x.most, static_cast<double>(line.values->rbegin()->first));
    for (auto [step, value] : *line.values)
      if (drawn(value)) {
        finite = true;
        (value > 0 ? positive : others) = true;
      }
  }
  if (x.least == x.most)
    x.least -= 0.5, x.most += 0.5;
  std::string out = "<figure data-key='" + escaped(title) + "'><div class='head'><figcaption>" +
                    escaped(title) + "</figcaption>";
  if (positive)
    out += std::string("<label><input type='checkbox' class='log'") + (spreads(lines) ? " checked" : "") +
           "/>logarithmic</label>";
  out += "</div><svg viewBox='0 0 " + fixed(kWidth, 0) + " " + fixed(kHeight, 0) +
         "' tabindex='0' role='img' aria-label='" + escaped(title) + "' data-x='" + fixed(x.least, 4) + " " +
         fixed(x.most, 4) + "'>";
  double distance = std::max(1.0, tickDistance(x.most - x.least, 7));
  for (double step = std::ceil(x.least / distance) * distance; step <= x.most; step += distance)
    out += text(x.at(step), kHeight - 6, "middle", shortNumber(step));
  for (int64_t mark : marks)
    out += stroke(x.at(mark), kTop, x.at(mark), kHeight - kBottom, "mark");
  out += curves(lines, x, verticalAxis(lines, false));
  if (positive)
    out += curves(lines, x, verticalAxis(lines, true));
  size_t columns = lines.size() > kManyLines ? kFewColumns : kColumns;
  for (const Line &line : lines) {
    std::string data;
    for (auto [step, value] : reduced(*line.values, columns))
      data += (data.empty() ? "" : ",") + fixed(step, 0) + ":" + exactNumber(value);
    out += "<desc data-name='" + escaped(line.name) + "' data-class='" + lineClass(line) + "'>" + data +
           "</desc>";
  }
  out += "<g class='cursor'></g></svg>";
  if (lines.size() > 1)
    out += lineLegend(lines);
  if (!finite)
    out += "<p class='note'>no finite value</p>";
  if (positive && others)
    out += "<p class='note when-log'>values at or below 0 have no place on this axis</p>";
  if (!note.empty())
    out += "<p class='soft'>" + escaped(note) + "</p>";
  return out + "</figure>";
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
