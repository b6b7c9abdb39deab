//===- Saving.cpp - when and where a run saves ----------------------------===//

#include "Saving.h"
#include "Core/Together.h"
#include "dsopt/Runtime/Mappings.h"
#include "dsopt/Runtime/System.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <thread>
#include <utility>

#include <fcntl.h>

using namespace dsopt::runtime;
namespace fs = std::filesystem;

/// How long a rank waits for a file that another host has made.
static constexpr std::chrono::seconds kPatience{5};

static void addAll(std::vector<Note> &notes, const std::vector<std::string> &texts) {
  for (const std::string &text : texts)
    if (!text.empty())
      notes.push_back({text, true});
}

std::unique_ptr<SaveFolder> dsopt::runtime::openSaveFolder(RunSettings &settings, std::vector<Note> &notes) {
  settings.names.push_back(drawRunName());
  if (settings.save.empty() || settings.evaluates)
    return nullptr;
  std::vector<std::string> said;
  auto folder = std::make_unique<SaveFolder>(settings.save, said);
  addAll(notes, said);
  return folder;
}

std::string dsopt::runtime::goBack(RunSettings &settings, SaveFolder *folder, std::vector<Note> &notes) {
  const std::vector<std::string> mine = settings.names;
  settings.names.push_back(drawRunName());
  if (!folder)
    return "";
  std::vector<std::string> said;
  folder->recover(said);
  addAll(notes, said);
  std::vector<std::string> all = listCheckpoints(folder->path());
  for (auto path = all.rbegin(); path != all.rend(); ++path) {
    try {
      std::string run = readManifest(*path).lineage.run;
      if (std::find(mine.begin(), mine.end(), run) == mine.end())
        continue;
      settings.resume = "auto";
      return *path;
    } catch (const Unreadable &) { // an older one may do
    }
  }
  return "";
}

bool dsopt::runtime::savesAfter(const RunSettings &settings, int64_t done, bool last) {
  if (settings.save.empty())
    return false;
  return last || (settings.saveEvery > 0 && done % settings.saveEvery == 0);
}

void Saving::goesOnFrom(const Resumed *resumed) {
  lineage = {settings.names.empty() ? drawRunName() : settings.names.back(), "", -1};
  leftOut.clear();
  if (resumed) {
    lineage.parent = resumed->manifest.lineage.run;
    lineage.parentStep = resumed->manifest.step;
    leftOut = resumed->leftOut;
  }
  if (folder && !settings.saveAside)
    folder->enter(lineage, lineage.parentStep, leftOut, /*aside=*/false);
}

void Saving::begin(std::vector<Note> &notes) {
  if (settings.save.empty() || settings.evaluates)
    return;
  if (folder && settings.saveAside)
    addAll(notes, {folder->enter(lineage, lineage.parentStep, leftOut, /*aside=*/true)});
  checkShared(settings.save);
}

/// Rank 0 makes a file of a name that nobody can know, the others look for it.
void Saving::checkShared(const std::string &place) {
  if (engine.size() == 1)
    return;
  struct Name {
    char text[64] = "";
  } mine;
  bool first = engine.rank() == 0;
  if (first)
    ("shared-" + lineage.run).copy(mine.text, sizeof mine.text - 1);
  std::string path = place + "/" + mine.text;
  together(engine, [&] {
    if (!first)
      return;
    int file = sys::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0 || sys::close(file) != 0)
      throw Error(StatusFailure, path + ": cannot be written: " + std::strerror(errno));
  });
  std::vector<Name> all(engine.size());
  engine.exchange(&mine, sizeof mine, all.data());
  path = place + "/" + all[0].text;
  auto look = [&] {
    struct stat info;
    auto until = sys::now() + kPatience;
    while (sys::stat(path.c_str(), &info) != 0) {
      if (sys::now() >= until)
        throw Error(StatusInput, "option -save: " + describeRank(program, engine.rank()) +
                                     " does not see in " + place +
                                     " what rank 0 wrote there: give a folder that all hosts share");
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  };
  try {
    together(engine, look);
  } catch (...) {
    if (first)
      sys::unlink(path.c_str());
    throw;
  }
  if (first && sys::unlink(path.c_str()) != 0)
    throw Error(StatusFailure, path + ": cannot be removed: " + std::strerror(errno));
}

void Saving::named(int64_t step, std::vector<Note> &notes) {
  folder->wrote(step);
  addAll(notes, {folder->prune(settings.saveKeep)});
}

std::vector<Note> Saving::wait(Session &session) {
  session.finishSave();
  return std::exchange(meanwhile, {});
}

std::vector<Note> Saving::save(Session &session, bool last) {
  std::vector<Note> notes = wait(session);
  together(engine, checkMappings);
  int64_t step = session.stepsDone();
  std::string checkpoint = settings.save + "/" + checkpointName(step);
  if (settings.saveAsync && !last) {
    session.startSave(checkpoint, lineage, [this, step] { named(step, meanwhile); });
    return notes;
  }
  session.save(checkpoint, lineage);
  if (folder)
    named(step, notes);
  return notes;
}

std::vector<Note> Saving::saveBest(Session &session) {
  std::vector<Note> notes = wait(session);
  together(engine, checkMappings);
  session.save(settings.save + "/" + kBestCheckpoint, lineage);
  return notes;
}

std::vector<Note> Saving::finish(Session &session) {
  std::vector<Note> notes = wait(session);
  // What is due still, should this run have saved nothing itself.
  if (folder)
    addAll(notes, {folder->prune(settings.saveKeep)});
  return notes;
}

std::vector<Note> Saving::saveInto(const std::string &place, Session &session) {
  std::vector<Note> notes = wait(session);
  std::error_code ignored;
  bool isOwn = !settings.save.empty() && fs::equivalent(place, settings.save, ignored);
  if (!isOwn && !places.count(place)) {
    std::unique_ptr<SaveFolder> &mine = places[place];
    if (engine.rank() == 0) {
      std::vector<std::string> said;
      mine = std::make_unique<SaveFolder>(place, said);
      // Whoever asks for it here has trained for long: nothing is refused now, and nothing lost.
      said.push_back(mine->enter(lineage, session.stepsDone() - 1, {}, /*aside=*/true));
      addAll(notes, said);
    }
    engine.barrier();
    checkShared(place);
  }
  together(engine, checkMappings);
  session.save(place + "/" + checkpointName(session.stepsDone()), lineage);
  if (isOwn && folder)
    folder->wrote(session.stepsDone());
  return notes;
}
