//===- Facts.h - tables about runs ------------------------------*- C++ -*-===//
//
// What of a run is text or one number, and what of several runs differs.
//
//===----------------------------------------------------------------------===//

#ifndef DSOPT_TOOLS_DSOPT_REPORT_FACTS_H
#define DSOPT_TOOLS_DSOPT_REPORT_FACTS_H

#include "Log.h"

namespace dsopt::report {

/// "1.5 MB".
std::string bytes(double value);
/// "12.5 ms".
std::string milliseconds(double value);

/// A text or number of an object, empty where it has none of that name.
std::string textOf(const nlohmann::json &object, const char *key);
/// A list of numbers, empty where there is none.
std::vector<double> listOf(const nlohmann::json &object, const char *key);
/// A run's values of that name, none where it has not logged it.
const Series &seriesOf(const Log &log, const std::string &name);

/// One column a run, one row a fact; facts that no run has are left out.
std::string factTable(const std::vector<Log> &logs);

/// One row a run with its color of the first `colors`: last losses, and the options that are not the same in
/// all runs.
std::string comparison(const std::vector<Log> &logs, int colors);

} // namespace dsopt::report

#endif // DSOPT_TOOLS_DSOPT_REPORT_FACTS_H
