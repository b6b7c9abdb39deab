//===- ProgramTables.h - small program tables for tests ---------*- C++ -*-===//

#ifndef DSOPT_TEST_PROGRAMTABLES_H
#define DSOPT_TEST_PROGRAMTABLES_H

#include "dsopt/Runtime/ABI.h"

#define DSOPT_TEST_TEXT_OF(value) #value
#define DSOPT_TEST_VERSION_KEY(value) "\"version\": " DSOPT_TEST_TEXT_OF(value)
/// The key of this runtime's version, as tables begin with it.
#define DSOPT_TEST_VERSION DSOPT_TEST_VERSION_KEY(DSOPT_ABI_VERSION)

namespace dsopt::test {

/// One position that says what it does.
inline const char *const kGoodTable =
    "{" DSOPT_TEST_VERSION R"(, "arch": "x86-64-v3", "grid": [1, 2, 1, 1, 1], "K": 4, "V": 2, "M": 2,
  "accumulate": "local", "defaults": {"lr": "0.1"}, "inputs": [{"name": "x", "type": "f32", "shape": [2, 3]}],
  "parameters": [{"name": "w", "type": "f32", "shape": [64], "chunks": [18446744073709551615], "bucket": 0}],
  "buckets": [{"name": "b0", "type": "f32", "elements": 64, "padded": 128, "groups": [{"begin": 0, "end": 64}]}],
  "communicators": [{"name": "dp", "axes": [["edp", 0, 1]]}, {"name": "own", "axes": []},
                    {"name": "part", "axes": [["edp", 1, 1]]}],
  "positions": [{"memories": [{"kind": "device", "bytes": 1024}], "queues": [{"name": "compute"}, {"name": "comm", "kind": "communication"}],
    "traffic": {"tied": 7}, "memory": {"total": 1024},
    "buffers": [{"name": "x", "bytes": 256, "slots": 2, "stride": 256}, {"name": "w", "offset": 512, "bytes": 512}],
    "actions": [{"kind": "input", "name": "in", "refs": [[0, 1, 0, 0]]},
                {"kind": "reduce", "queue": 1, "waits": [0], "type": "f32", "communicator": 0,
                 "refs": [[1, 0, 0, 0], [1, 0, 0, 256]], "accumulate": true},
                {"kind": "input", "input": -1, "refs": [[0, 0, 0, 0]]},
                {"kind": "fold", "bytes": 8, "refs": [[0, 0, 0, 0], [1, 0, 0, 0]],
                 "folds": [{"place": 4, "elements": 1, "momentum": 0.75}]},
                {"kind": "run", "phase": "W"},
                {"kind": "all_to_all", "queue": 1, "bytes": 64, "communicator": 1,
                 "refs": [[0, 0, 0, 0], [1, 0, 0, 0]]},
                {"kind": "agree", "queue": 1, "communicator": 0}],
    "loads": [{"bucket": 0, "target": [1, 0, 0, 0], "sliced": false}]}]})";

/// What its position does.
inline const char *const kSections =
    R"([{"kind": "input", "name": "in", "refs": [[0, 1, 0, 0]]},
                {"kind": "reduce", "queue": 1, "waits": [0], "type": "f32", "communicator": 0,
                 "refs": [[1, 0, 0, 0], [1, 0, 0, 256]], "accumulate": true},
                {"kind": "input", "input": -1, "refs": [[0, 0, 0, 0]]},
                {"kind": "fold", "bytes": 8, "refs": [[0, 0, 0, 0], [1, 0, 0, 0]],
                 "folds": [{"place": 4, "elements": 1, "momentum": 0.75}]},
                {"kind": "run", "phase": "W"},
                {"kind": "all_to_all", "queue": 1, "bytes": 64, "communicator": 1,
                 "refs": [[0, 0, 0, 0], [1, 0, 0, 0]]},
                {"kind": "agree", "queue": 1, "communicator": 0}])";

/// The same with its actions apart.
inline const char *const kTableOfSections =
    "{" DSOPT_TEST_VERSION R"(, "arch": "x86-64-v3", "grid": [1, 2, 1, 1, 1], "K": 4, "V": 2, "M": 2,
  "accumulate": "local", "defaults": {"lr": "0.1"}, "inputs": [{"name": "x", "type": "f32", "shape": [2, 3]}],
  "parameters": [{"name": "w", "type": "f32", "shape": [64], "chunks": [18446744073709551615], "bucket": 0}],
  "buckets": [{"name": "b0", "type": "f32", "elements": 64, "padded": 128, "groups": [{"begin": 0, "end": 64}]}],
  "communicators": [{"name": "dp", "axes": [["edp", 0, 1]]}, {"name": "own", "axes": []},
                    {"name": "part", "axes": [["edp", 1, 1]]}],
  "positions": [{"memories": [{"kind": "device", "bytes": 1024}], "queues": [{"name": "compute"}, {"name": "comm", "kind": "communication"}],
    "traffic": {"tied": 7}, "memory": {"total": 1024},
    "buffers": [{"name": "x", "bytes": 256, "slots": 2, "stride": 256}, {"name": "w", "offset": 512, "bytes": 512}],
    "section": [0, 713],
    "loads": [{"bucket": 0, "target": [1, 0, 0, 0], "sliced": false}]}]})";

} // namespace dsopt::test

#endif // DSOPT_TEST_PROGRAMTABLES_H
