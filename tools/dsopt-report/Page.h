//===- Page.h - one HTML page about runs ------------------------*- C++ -*-===//

#ifndef DSOPT_TOOLS_DSOPT_REPORT_PAGE_H
#define DSOPT_TOOLS_DSOPT_REPORT_PAGE_H

#include "Log.h"

#include <optional>

namespace dsopt::report {

/// The whole page: style, figures and a few lines of script are part of it, nothing is fetched. With a
/// version it is one that asks the server it came from for later versions of its figures.
std::string page(const std::vector<Log> &logs, std::optional<int64_t> version = std::nullopt);

/// Of that page what changes while a run goes on.
std::string figures(const std::vector<Log> &logs);

} // namespace dsopt::report

#endif // DSOPT_TOOLS_DSOPT_REPORT_PAGE_H
