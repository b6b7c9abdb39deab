//===- Serve.h - a page of runs that go on ----------------------*- C++ -*-===//

#ifndef DSOPT_TOOLS_DSOPT_REPORT_SERVE_H
#define DSOPT_TOOLS_DSOPT_REPORT_SERVE_H

#include <string>
#include <vector>

namespace dsopt::report {

/// Serves a page about these logs at 127.0.0.1 and the port (0: one that is free) until SIGINT or SIGTERM.
/// Throws std::runtime_error if a log cannot be opened, or the port is taken.
void serve(const std::vector<std::string> &paths, int port);

} // namespace dsopt::report

#endif // DSOPT_TOOLS_DSOPT_REPORT_SERVE_H
