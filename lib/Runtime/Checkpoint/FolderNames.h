//===- FolderNames.h - names in a folder of checkpoints ---------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_CHECKPOINT_FOLDERNAMES_H
#define DSOPT_LIB_RUNTIME_CHECKPOINT_FOLDERNAMES_H

#include <string>
#include <vector>

namespace dsopt::runtime {

/// Whether there is something of that name; an Error if that cannot be known.
bool exists(const std::string &path);

/// The names in a folder, in order; none where there is no such folder.
std::vector<std::string> namesIn(const std::string &folder);

/// What was made, renamed and removed in a folder to disk; an Error of status 2.
void syncNames(const std::string &folder);

/// An Error of status 2 unless `from` is called `to` now.
void renamePath(const std::string &from, const std::string &to);

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_CHECKPOINT_FOLDERNAMES_H
