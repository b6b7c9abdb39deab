//===- Page.h - one HTML page about runs ------------------------*- C++ -*-===//

#ifndef DSOPT_TOOLS_DSOPT_REPORT_PAGE_H
#define DSOPT_TOOLS_DSOPT_REPORT_PAGE_H

#include "Log.h"

namespace dsopt::report {

/// The whole page: style, figures and a few lines of script are part of it, nothing is fetched.
std::string page(const std::vector<Log> &logs);

} // namespace dsopt::report

#endif // DSOPT_TOOLS_DSOPT_REPORT_PAGE_H
