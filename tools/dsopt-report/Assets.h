//===- Assets.h - style and script of the page ------------------*- C++ -*-===//

#ifndef DSOPT_TOOLS_DSOPT_REPORT_ASSETS_H
#define DSOPT_TOOLS_DSOPT_REPORT_ASSETS_H

namespace dsopt::report {

/// Light and dark, wide and narrow; which curves a switch shows.
extern const char *const kStyle;

/// Values under the pointer, lines chosen in legends, and the data of a live run. The page is complete
/// without.
extern const char *const kScript;

/// Of a page that is served: asks for new data. Uses what kScript defines.
extern const char *const kLiveScript;

} // namespace dsopt::report

#endif // DSOPT_TOOLS_DSOPT_REPORT_ASSETS_H
