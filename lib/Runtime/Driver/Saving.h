//===- Saving.h - when and where a run saves --------------------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_DRIVER_SAVING_H
#define DSOPT_LIB_RUNTIME_DRIVER_SAVING_H

#include "Checkpoints.h"
#include "dsopt/Runtime/SaveFolder.h"

namespace dsopt::runtime {

/// Makes and locks the folder of -save; null without. Rank 0's, or its launcher's, before ranks meet. The run
/// gets a name.
std::unique_ptr<SaveFolder> openSaveFolder(RunSettings &settings, std::vector<Note> &notes);

/// For a launcher whose ranks failed and that starts them again: puts right what they left in the folder, and
/// lets them go on from the newest checkpoint that they wrote. That one, or nothing: then they begin as they
/// did.
std::string goBack(RunSettings &settings, SaveFolder *folder, std::vector<Note> &notes);

/// Whether one is due after `done` steps; `last`: no step follows.
bool savesAfter(const RunSettings &settings, int64_t done, bool last);

/// The saves of a run.
class Saving {
public:
  /// `folder` is null but on rank 0.
  Saving(const Program &program, const RunSettings &settings, Engine &engine, SaveFolder *folder)
      : program(program), settings(settings), engine(engine), folder(folder) {}

  /// On rank 0, when it is known what the run goes on from (null: nothing) and nothing has been loaded: an
  /// Error of status 1 if others' later checkpoints lie in the folder and are not to be set aside.
  void goesOnFrom(const Resumed *resumed);
  /// Collective, before the first step: sets others' aside, and sees that all ranks have the folder. Lines
  /// for the user go to `notes`.
  void begin(std::vector<Note> &notes);

  /// Collective: writes a checkpoint and, on rank 0, removes the oldest of this run beyond -save-keep; with
  /// -save-async, unless it is the `last` one, while steps go on. What the user should know, on rank 0.
  std::vector<Note> save(Session &session, bool last);
  /// Collective, after a step: goes on with what is written meanwhile.
  void goOn(Session &session) { session.continueSave(); }
  /// Collective, at the end: waits for what is written meanwhile, and removes what an earlier run was killed
  /// over.
  std::vector<Note> finish(Session &session);
  /// The checkpoint `best` in -save's folder, in place of an earlier one; with -save-async, too, steps wait.
  std::vector<Note> saveBest(Session &session);
  /// The same in another folder, of which nothing is removed.
  std::vector<Note> saveInto(const std::string &place, Session &session);

private:
  void checkShared(const std::string &place);
  /// Collective: waits for what is written meanwhile.
  std::vector<Note> wait(Session &session);
  /// On rank 0: a checkpoint has its name.
  void named(int64_t step, std::vector<Note> &notes);
  const Program &program;
  const RunSettings &settings;
  Engine &engine;
  SaveFolder *folder;
  Lineage lineage; ///< on rank 0
  std::vector<std::string> leftOut;
  std::vector<Note>
      meanwhile; ///< what there is to say of the save that is under way; its thread's until then
  std::map<std::string, std::unique_ptr<SaveFolder>> places; ///< of saveInto; null but on rank 0
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_DRIVER_SAVING_H
