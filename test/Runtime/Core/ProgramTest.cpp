//===- ProgramTest.cpp - the program table, good and bad -------------------===//

#include "ProgramTables.h"
#include "dsopt/Runtime/Session.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

using namespace dsopt::runtime;
using namespace dsopt::test;

static const char *const kGood = kGoodTable;

static std::string failure(std::string text, const std::string &from, const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
  try {
    parseProgram(text.data(), text.size());
  } catch (const Error &error) {
    EXPECT_EQ(error.status, 1);
    return error.what();
  }
  return "";
}

TEST(Program, Reads) {
  std::string text = kGood;
  Program program = parseProgram(text.data(), text.size());
  EXPECT_EQ(program.parameters[0].chunks[0], 18446744073709551615ull);
  EXPECT_EQ(program.defaults.at("lr"), "0.1");
  EXPECT_EQ(program.buckets[0].groups[0].end, 64);
  EXPECT_EQ(program.buckets[0].groups[0].decay_scale, 1);
  const Position &position = program.positions[0];
  EXPECT_EQ(position.traffic.tied, 7);
  EXPECT_EQ(position.actions[0].refs[0].slot, 1);
  EXPECT_EQ(position.actions[1].kind, ActionKind::Reduce);
  EXPECT_EQ(position.queues[position.actions[1].queue].kind, QueueKind::Communication);
  EXPECT_TRUE(position.actions[1].accumulate);
  EXPECT_EQ(position.actions[1].refs[1].steps[static_cast<size_t>(dsopt::Axis::edp)], 256);
  EXPECT_EQ(position.actions[2].input, -1); // a context
  EXPECT_EQ(position.actions[3].kind, ActionKind::Fold);
  EXPECT_EQ(position.actions[3].folds[0].place, 4);
  EXPECT_EQ(position.actions[3].folds[0].momentum, 0.75);
  EXPECT_EQ(position.actions[4].phase, Phase::Weights);
  EXPECT_EQ(position.actions[5].kind, ActionKind::AllToAll);
  EXPECT_EQ(program.communicators[position.actions[5].communicator].name, "own");
  EXPECT_EQ(program.grid.group(1, program.communicators[0].axes), (std::vector<int>{0, 1}));
  EXPECT_EQ(program.grid.group(1, program.communicators[1].axes), std::vector<int>{1});
  EXPECT_EQ(program.grid.group(1, program.communicators[2].axes), std::vector<int>{1});
  EXPECT_EQ(describeAction(program, 1, 0), "in");
  EXPECT_EQ(describeAction(program, 1, 1), "action 1");
}

TEST(Program, SaysWhatIsWrong) {
  EXPECT_EQ(failure(kGood, "{\"version\"", "{{"), "program table: not JSON");
  EXPECT_EQ(failure(kGood, DSOPT_TEST_VERSION, "\"version\": 1"),
            "program table: version 1, this runtime expects " + std::to_string(DSOPT_ABI_VERSION) +
                ": compile the program anew");
  EXPECT_EQ(failure(kGood, DSOPT_TEST_VERSION, DSOPT_TEST_VERSION ", \"delayed_update\": 3"),
            "program table: delayed_update is 3, but list 2 has 0 positions");
  EXPECT_EQ(failure(kGood, DSOPT_TEST_VERSION, DSOPT_TEST_VERSION ", \"freeze_step\": 3"),
            "program table: freeze_step is 3, but list 3 has 0 positions");
  auto withPolicy = [](const std::string &policy) {
    return failure(kGood, DSOPT_TEST_VERSION,
                   DSOPT_TEST_VERSION ", \"freeze_step\": 3, \"local_policy\": {" + policy + "}");
  };
  EXPECT_EQ(withPolicy("\"local_step_clipper\": 2"),
            "program table: local_policy has a scaler of 0, expected 1 or more");
  EXPECT_EQ(withPolicy("\"var_update_scaler\": 1, \"local_step_scaler\": 1, \"local_step_clipper\": 2"),
            "program table: freeze_step is 3, but list 4 has 0 positions");
  EXPECT_EQ(failure(kGood, "\"reduce\"", "\"reduces\""),
            "program table: program.positions[0].actions[1].kind: unknown name 'reduces'");
  EXPECT_EQ(failure(kGood, "\"phase\": \"W\"", "\"phase\": \"weights\""),
            "program table: program.positions[0].actions[4].phase: unknown name 'weights'");
  EXPECT_EQ(failure(kGood, "[0, 1, 0, 0]", "[0, 1, 0]"),
            "program table: program.positions[0].actions[0].refs[0]: "
            "expected an address of four to seven numbers, got [0,1,0]");
  EXPECT_EQ(failure(kGood, "[0, 1, 0, 0]", "[0, 2, 0, 0]"),
            "program table: action 0 (in): slot: index 2, expected less than 2");
  EXPECT_EQ(failure(kGood, "\"waits\": [0]", "\"waits\": [1]"),
            "program table: action 1 (): wait: index 1, expected less than 1");
  EXPECT_EQ(failure(kGood, "\"waits\": [0]", "\"waits\": [0], \"changes\": [99]"),
            "program table: action 1 (): changed buffer: index 99, expected less than 2");
  EXPECT_EQ(failure(kGood, "\"padded\": 128", "\"padded\": 64"),
            "program table: bucket 'b0': 64 elements with padding, expected 64 or more and a multiple of 64 "
            "for each slice");
  auto withParts = [&](const std::string &parts) {
    return failure(kGood, "\"bucket\": 0}]", "\"parts\": [" + parts + "]}]");
  };
  EXPECT_EQ(withParts(R"({"elements": 16}, {"begin": 16, "bucket_offset": 16, "elements": 48})"), "");
  EXPECT_EQ(withParts(R"({"elements": 16}, {"begin": 16, "bucket": 1, "elements": 48})"),
            "program table: bucket of a part of parameter 'w': index 1, expected less than 1");
  EXPECT_EQ(withParts(R"({"elements": 16}, {"begin": 17, "bucket_offset": 16, "elements": 47})"),
            "program table: a part of parameter 'w' has 47 elements from 17 on, at 16 in a bucket of 64, "
            "expected those from 16 on inside of it");
  EXPECT_EQ(withParts(R"({"elements": 16}, {"begin": 16, "bucket_offset": 17, "elements": 48})"),
            "program table: a part of parameter 'w' has 48 elements from 16 on, at 17 in a bucket of 64, "
            "expected those from 16 on inside of it");
  EXPECT_EQ(withParts(R"({"elements": 16})"),
            "program table: the parts of parameter 'w' have 16 elements, expected 64");
  auto withShards = [&](const std::string &parts) {
    std::string text = kGood;
    text.replace(text.find("[1, 2, 1, 1, 1]"), 15, "[1, 1, 1, 1, 2], \"T\": 4");
    text.replace(text.find("\"M\": 2"), 6, "\"M\": 4");
    text.replace(text.find("[[\"edp\", 0, 1]]"), 15, "[[\"edp\", 0, 1], [\"tp\", 0, 1]]");
    text.replace(text.find("\"padded\""), 0, "\"distinct\": true, ");
    return failure(text, "\"bucket\": 0}]", parts);
  };
  auto parts = [](const std::string &text) { return "\"parts\": [" + text + "]}]"; };
  const std::string first = R"({"elements": 16, "run": 4, "stride": 16, "step": 8}, )",
                    wrong = "program table: shard 1 of parameter 'w' has ",
                    right = ", expected one of 4 equal shards of 64 elements";
  auto second = [](const std::string &what) { return R"({"bucket_offset": 16, )" + what + "}"; };
  EXPECT_EQ(
      withShards(parts(first + second(R"("begin": 4, "elements": 16, "run": 4, "stride": 16, "step": 8)"))),
      "");
  EXPECT_EQ(
      withShards(parts(first + second(R"("begin": 8, "elements": 16, "run": 4, "stride": 16, "step": 8)"))),
      wrong + "16 elements, in runs of 4 every 16 from 8 on and 8 for each rank" + right);
  EXPECT_EQ(
      withShards(parts(first + second(R"("begin": 4, "elements": 16, "run": 4, "stride": 8, "step": 8)"))),
      wrong + "16 elements, in runs of 4 every 8 from 4 on and 8 for each rank" + right);
  EXPECT_EQ(
      withShards(parts(first + second(R"("begin": 4, "elements": 16, "run": 4, "stride": 16, "step": 4)"))),
      wrong + "16 elements, in runs of 4 every 16 from 4 on and 4 for each rank" + right);
  EXPECT_EQ(
      withShards(parts(first + second(R"("begin": 4, "elements": 12, "run": 4, "stride": 16, "step": 8)"))),
      wrong + "12 elements, in runs of 4 every 16 from 4 on and 8 for each rank" + right);
  EXPECT_EQ(withShards(parts(first + second(R"("begin": 4, "elements": 16)"))),
            wrong + "16 elements, in runs of 0 every 0 from 4 on and 0 for each rank" + right);
  // The last of four may have padding, but not be padding alone.
  auto padded = [&](int64_t run) {
    std::string n = std::to_string(run), each = R"(, "elements": )" + n + R"(, "run": )" + n +
                                                R"(, "stride": )" + std::to_string(4 * run) +
                                                R"(, "step": )" + std::to_string(2 * run) + "}";
    return withShards(parts(R"({"begin": 0)" + each + R"(, {"bucket_offset": 32, "begin": )" + n + each));
  };
  EXPECT_EQ(padded(16), "");
  EXPECT_EQ(padded(21), "");
  EXPECT_EQ(padded(22), "program table: shard 0 of parameter 'w' has 22 elements, in runs of 22 every 88 "
                        "from 0 on and 44 for each "
                        "rank" +
                            right);
  EXPECT_EQ(padded(15), "program table: shard 0 of parameter 'w' has 15 elements, in runs of 15 every 60 "
                        "from 0 on and 30 for each "
                        "rank" +
                            right);
  EXPECT_EQ(withShards(parts(R"({"elements": 64})")),
            "program table: parameter 'w' has a tile in bucket 'b0', expected shards in buckets that are "
            "distinct, nothing else there");
  EXPECT_EQ(withShards("\"bucket\": 0}]"),
            "program table: parameter 'w' lies whole in bucket 'b0', which has shards");
  EXPECT_EQ(withParts(R"({"elements": 64, "run": 64, "stride": 64, "step": 64})"),
            "program table: parameter 'w' has a shard in bucket 'b0', expected shards in buckets that are "
            "distinct, nothing else there");
  EXPECT_EQ(failure(kGood, "\"M\": 2", "\"M\": 2, \"T\": 0"),
            "program table: T is 0, expected 1 or more, at most " + std::to_string(INT64_C(1) << 28));
  EXPECT_EQ(failure(kGood, "\"momentum\": 0.75}", "\"momentum\": 0.75}, {}"),
            "program table: action 3 (): got 2 addresses, expected 3");
  EXPECT_EQ(failure(kGood, "\"input\": -1", "\"input\": -2"),
            "program table: action 2 (): input: index -2, expected less than 1");
  EXPECT_EQ(failure(kGood, "\"bytes\": 1024", "\"bytes\": 1000"),
            "program table: buffer 'w' does not lie in the device memory of 1000 bytes");
  EXPECT_EQ(
      failure(kGood, "\"type\": \"f32\", \"communicator\": 0", "\"type\": \"f64\", \"communicator\": 0"),
      "program table: action 1 (): element type 'f64', expected f32, bf16 or f16");
  EXPECT_EQ(failure(kGood, "\"M\": 2", "\"M\": 3"), "program table: K = 4, V = 2, M = 3 do not fit dp = 2");
  EXPECT_EQ(failure(kGood, "\"M\": 2", "\"M\": 2, \"Q\": 0"),
            "program table: Q is 0, expected 1 or more, at most 268435456");
  EXPECT_EQ(failure(kGood, "\"grid\": [1, 2, 1, 1, 1]", "\"grid\": [1, 2, 1, 2, 1], \"Q\": 3"),
            "program table: Q = 3 is no multiple of the 2 ranks along sp");
}

/// Rows of data are a data-parallel rank's; slices lie with those along sp, too.
TEST(Program, RanksHaveSlices) {
  Program program;
  program.grid = dsopt::Grid({2, 2, 1, 4, 3});
  EXPECT_EQ(program.dp(), 2);
  EXPECT_EQ(program.slices(), 8);
  for (int rank = 0; rank < program.ranks(); ++rank) {
    RankInfo info = rankInfo(program, rank);
    EXPECT_EQ(info.slice, 4 * info.coordinates[1] + info.coordinates[3]);
    EXPECT_EQ(info.dpRank, info.coordinates[1]);
    EXPECT_EQ(program.rankAt(info.position, info.slice, info.coordinates[4]), rank);
  }
  EXPECT_EQ(describeWorld(program), "48 (dp 2 x pp 2 x sp 4 x tp 3)");
  EXPECT_EQ(describeRank(program, 43),
            "rank 43 (stage 1, data-parallel rank 1, sequence-parallel rank 2, tensor-parallel rank 1)");
  program.grid = dsopt::Grid({1, 1, 1, 4, 1});
  EXPECT_EQ(describeRank(program, 1), "rank 1");
}

/// A table of two metrics, of which the action measures what `action` says.
static std::string withMetrics(const std::string &metrics, const std::string &action) {
  std::string text = kGood;
  text.replace(text.find("\"grid\""), 0, "\"metrics\": [" + metrics + "], ");
  return failure(text, "\"kind\": \"agree\"", "\"kind\": \"agree\", " + action);
}

TEST(Program, MeasuresMetrics) {
  const char *two =
      R"({"name": "accuracy", "combine": "ratio", "parts": [1, 1]}, {"name": "f1", "combine": "f1", "parts": [3, 3, 3]})";
  const char *refs = R"("refs": [[0, 0, 0, 0], [0, 1, 0, 0], [1, 0, 0, 0], [1, 0, 4, 0]], )";
  EXPECT_EQ(withMetrics(two, std::string(refs) + R"("places": [1, 8], "lengths": [1, 3])"), "");
  EXPECT_EQ(withMetrics(two, std::string(refs) + R"("places": [1, 9], "lengths": [1, 3])"),
            "program table: action 6 (): elements 9 to 12 of metrics, which have 11");
  EXPECT_EQ(withMetrics(two, std::string(refs) + R"("places": [1], "lengths": [1, 3])"),
            "program table: action 6 (): 1 places, 2 lengths and 4 addresses of metrics and others");
  EXPECT_EQ(withMetrics(two, R"("places": [1], "lengths": [1])"),
            "program table: action 6 (): 1 places, 1 lengths and 0 addresses of metrics and others");
  EXPECT_EQ(withMetrics(two, R"("refs": [[1, 0, 508, 0], [1, 0, 508, 0]], "places": [0], "lengths": [2])"),
            "program table: action 6 (): a part of a metric lies outside of buffer 'w'");
  EXPECT_EQ(withMetrics(R"({"name": "f1", "combine": "f1", "parts": [3, 3]})", "\"norms\": 0"),
            "program table: metric 'f1' has 2 parts, expected 3 of one size");
  EXPECT_EQ(withMetrics(R"({"name": "f1", "combine": "median", "parts": [1]})", "\"norms\": 0"),
            "program table: program.metrics[0].combine: unknown name 'median'");
}

TEST(Program, HasOutputs) {
  auto with = [](const std::string &action) {
    std::string text = kGood;
    text.replace(text.find("\"grid\""), 0, R"("outputs": [{"name": "o", "type": "f32", "shape": [2]}], )");
    return failure(text, "\"kind\": \"agree\"", "\"kind\": \"agree\", " + action);
  };
  const char *refs = R"("refs": [[0, 0, 0, 0], [0, 1, 0, 0]], )";
  EXPECT_EQ(with(std::string(refs) + R"("outputs": [0], "output_bytes": [8])"), "");
  EXPECT_EQ(with(std::string(refs) + R"("outputs": [1], "output_bytes": [8])"),
            "program table: action 6 (): output: index 1, expected less than 1");
  EXPECT_EQ(with(std::string(refs) + R"("outputs": [0], "output_bytes": [4])"),
            "program table: action 6 (): 4 bytes of output 'o' in buffer 'x', expected 8");
  EXPECT_EQ(with(R"("outputs": [0], "output_bytes": [8])"),
            "program table: action 6 (): 0 places, 0 lengths and 0 addresses of metrics and others");
}

TEST(Program, CombinesMetrics) {
  std::vector<Metric> metrics = {{"a", Combine::Mean, {1}},         {"b", Combine::Root, {1}},
                                 {"c", Combine::Ratio, {1, 1}},     {"d", Combine::Exponential, {1, 1}},
                                 {"e", Combine::F1, {2, 2, 2}},     {"f", Combine::Precision, {3, 3, 3}},
                                 {"g", Combine::Recall, {3, 3, 3}}, {"h", Combine::Ratio, {1, 1}},
                                 {"i", Combine::F1, {1, 1, 1}}};
  EXPECT_EQ(elementsOf(metrics), 35);
  std::vector<double> sums = {6, 18, 3, 4, 0, 5, 9, 3, 9, 4, 9, 8, 2, 0, 0, 4, 0, 0,
                              2, 3,  0, 2, 0, 0, 4, 0, 0, 2, 3, 0, 0, 0, 0, 0, 0};
  std::vector<float> values = combineMetrics(metrics, sums, 2);
  ASSERT_EQ(values.size(), metrics.size());
  EXPECT_EQ(values[0], 3.0f);
  EXPECT_EQ(values[1], 3.0f);
  EXPECT_EQ(values[2], 0.75f);
  EXPECT_EQ(values[3], 1.0f);
  EXPECT_EQ(values[4], 0.5f);  // of the second of two classes
  EXPECT_EQ(values[5], 0.25f); // of two classes that there are, one is never predicted
  EXPECT_EQ(values[6], 0.5f);
  EXPECT_TRUE(std::isnan(values[7])); // nothing counts
  EXPECT_TRUE(std::isnan(values[8]));
}

TEST(Program, DevicesHaveImages) {
  auto with = [&](const std::string &keys) {
    return failure(kGood, DSOPT_TEST_VERSION, DSOPT_TEST_VERSION ", " + keys);
  };
  auto image = [](const std::string &keys) { return R"("target": "cuda", "images": [{)" + keys + "}]"; };
  std::string text = kGood;
  text.replace(text.find("\"grid\""), 0,
               image(R"("arch": "sm_90a", "kind": "cubin", "offset": 64, "bytes": 10)") + ", ");
  Program program = parseProgram(text.data(), text.size());
  EXPECT_EQ(program.target, "cuda");
  EXPECT_EQ(program.images[0].arch, "sm_90a");
  EXPECT_EQ(program.images[0].kind, "cubin");
  EXPECT_EQ(program.images[0].offset, 64);
  EXPECT_EQ(program.images[0].bytes, 10);
  EXPECT_EQ(with(R"("target": "cpu")"), "");
  EXPECT_EQ(with(R"("target": "tpu")"), "program table: target 'tpu', expected cpu or cuda");
  EXPECT_EQ(with(R"("target": "cuda")"), "program table: target cuda with 0 images, expected one or more");
  EXPECT_EQ(with(R"("images": [{}])"), "program table: target cpu with 1 images, expected none");
  EXPECT_EQ(with(image(R"("arch": "sm_80", "kind": "fatbin", "bytes": 1)")),
            "program table: image for 'sm_80': kind 'fatbin', expected ptx or cubin");
  EXPECT_EQ(with(image(R"("routine": "Ctc", "arch": "sm_80", "kind": "fatbin", "bytes": 1)")),
            "program table: image of Ctc for 'sm_80': kind 'fatbin', expected ptx or cubin");
  EXPECT_EQ(with(image(R"("arch": "sm_80", "kind": "ptx", "offset": 32, "bytes": 1)")),
            "program table: image for 'sm_80': 1 bytes at 32, expected 1 or more at a multiple of 64");
}

TEST(Program, ConstantsOfDevicesHaveAPlace) {
  auto failureFor = [](const std::string &target) {
    std::string text = kGood;
    text.replace(text.find("\"grid\""), 0, target);
    return failure(text.c_str(), "\"name\": \"w\", \"offset\": 512",
                   "\"name\": \"w\", \"symbol\": \"k\", \"offset\": 576");
  };
  EXPECT_EQ(failureFor(""), "");
  EXPECT_EQ(failureFor(R"("target": "cuda", "images": [{"kind": "ptx", "bytes": 1}], )"),
            "program table: buffer 'w' does not lie in the device memory of 1024 bytes");
}

TEST(Program, SaysWhatIsWrongWithCommunicators) {
  EXPECT_EQ(failure(kGood, "[[\"edp\", 1, 1]]", "[[\"edp\", 1, 3]]"),
            "program table: communicator 'part' is over edp inner 3, but there are 2 ranks along it");
  EXPECT_EQ(failure(kGood, "[[\"edp\", 1, 1]]", "[[\"edp\", 2, 0]]"),
            "program table: communicator 'part' is over edp outer 0, but there are 2 ranks along it");
  EXPECT_EQ(failure(kGood, "[[\"edp\", 1, 1]]", "[[\"tp\", 0, 1], [\"edp\", 0, 1]]"),
            "program table: communicator 'part' has edp behind tp");
  EXPECT_EQ(
      failure(kGood, "[[\"edp\", 1, 1]]", "[[\"dp\", 0, 1]]"),
      "program table: program.communicators[2].axes[0]: there is no such axis, or part of one: [\"dp\",0,1]");
  EXPECT_EQ(failure(kGood, "[[\"edp\", 1, 1]]", "[[\"edp\", 3, 1]]"),
            "program table: program.communicators[2].axes[0]: there is no such axis, or part of one: "
            "[\"edp\",3,1]");
  EXPECT_EQ(failure(kGood, "[[\"edp\", 1, 1]]", "[[\"edp\", 0]]"),
            "program table: program.communicators[2].axes[0]: expected an axis, its part and a count, got "
            "[\"edp\",0]");
  EXPECT_EQ(failure(kGood, "\"grid\": [1, 2, 1, 1, 1]", "\"grid\": [1, 2, 1, 0, 1]"),
            "program table: grid has 0 ranks along sp, expected 1 or more, at most 268435456 in all");
  EXPECT_EQ(failure(kGood, "\"grid\": [1, 2, 1, 1, 1]", "\"grid\": [1, 65536, 65536, 1, 1]"),
            "program table: grid has 65536 ranks along ep, expected 1 or more, at most 268435456 in all");
  EXPECT_EQ(failure(kGood, "\"communicator\": 1", "\"communicator\": 3"),
            "program table: action 5 (): communicator: index 3, expected less than 3");
  const char *send = R"({"kind": "send", "queue": 1, "communicator": 0, "peer": )";
  EXPECT_EQ(failure(kGood, "{\"kind\": \"agree\"", send + std::string("2}, {\"kind\": \"agree\"")),
            "program table: action 6 (): peer: index 2, expected less than 2");
  EXPECT_EQ(failure(kGood, "{\"kind\": \"agree\"", send + std::string("1}, {\"kind\": \"agree\"")),
            "program table: action 6 (): rank 1 is its own peer");
  EXPECT_EQ(failure(kGood, "\"communicator\": 0}", "\"communicator\": 1}"),
            "program table: action 6 (): 1 ranks agree, expected all 2");
  std::string several = "[";
  for (int i = 0; i < 16; ++i)
    several += R"({"name": "dp", "axes": [["edp", 0, 1]]}, )";
  EXPECT_EQ(failure(kGood, "\"communicators\": [", "\"communicators\": " + several),
            "program table: 19 communicators, expected less than 16");
}

TEST(Program, SaysWhatIsWrongWithMemoriesAndQueues) {
  EXPECT_EQ(failure(kGood, "\"kind\": \"device\"", "\"kind\": \"tape\""),
            "program table: program.positions[0].memories[0].kind: unknown name 'tape'");
  EXPECT_EQ(
      failure(kGood, "\"kind\": \"device\"", "\"kind\": \"disk\""),
      "program table: memory 0 is of kind disk: this runtime has one memory of kind device, then one of kind "
      "host, then one of kind disk");
  EXPECT_EQ(failure(kGood, "\"bytes\": 1024}]", "\"bytes\": 1024}, {\"kind\": \"device\"}]"),
            "program table: memory 1 is of kind device: this runtime has one memory of kind device, then one "
            "of kind host, then one of kind disk");
  EXPECT_EQ(
      failure(kGood, "\"bytes\": 1024}]", "\"bytes\": 1024}, {\"kind\": \"host\"}, {\"kind\": \"host\"}]"),
      "program table: memory 2 is of kind host: this runtime has one memory of kind device, then one of kind "
      "host, then one of kind disk");
  EXPECT_EQ(failure(kGood, "[{\"kind\": \"device\", \"bytes\": 1024}]", "[]"),
            "program table: a position has no memory, expected the device's");
  EXPECT_EQ(failure(kGood, "\"bytes\": 1024}]", "\"bytes\": -8}]"),
            "program table: memory 0 has -8 bytes and an alignment of 64");
  EXPECT_EQ(failure(kGood, "\"name\": \"w\", \"offset\"", "\"name\": \"w\", \"memory\": 1, \"offset\""),
            "program table: memory of buffer 'w': index 1, expected less than 1");
  EXPECT_EQ(failure(kGood, "\"offset\": 512", "\"offset\": 500"),
            "program table: buffer 'w' is at 500, expected a multiple of 64");
  EXPECT_EQ(
      failure(kGood, "\"kind\": \"communication\"", "\"kind\": \"disk\""),
      "program table: action 1 (): on queue 'comm' of kind disk, which does not run actions of kind reduce");
  EXPECT_EQ(
      failure(kGood, "{\"name\": \"compute\"}", "{\"name\": \"compute\", \"kind\": \"host\"}"),
      "program table: action 4 (): on queue 'compute' of kind host, which does not run actions of kind run");
  std::string several = "\"queues\": [";
  for (int i = 0; i < 7; ++i)
    several += R"({"name": "more", "kind": "communication"}, )";
  EXPECT_EQ(failure(kGood, "\"queues\": [", several),
            "program table: 8 queues of the engine, expected less than 8");
  EXPECT_EQ(failure(kGood, "\"queue\": 1", "\"queue\": 2"),
            "program table: action 1 (): queue: index 2, expected less than 2");
  EXPECT_EQ(failure(kGood, "\"queue\": 1", "\"queue\": 0"),
            "program table: action 1 (): on queue 'compute' of kind compute, which does not run actions of "
            "kind reduce");
  EXPECT_EQ(failure(kGood, "{\"kind\": \"run\"", "{\"queue\": 1, \"kind\": \"run\""),
            "program table: action 4 (): on queue 'comm' of kind communication, which does not run actions "
            "of kind run");
  std::string two = kGood, comm = R"({"name": "comm", "kind": "communication"})";
  two.insert(two.find(comm) + comm.size(), R"(, {"name": "fast", "kind": "communication"})");
  EXPECT_EQ(parseProgram(two.data(), two.size()).positions[0].queues[2].name, "fast");
  EXPECT_EQ(failure(two, "{\"kind\": \"agree\", \"queue\": 1", "{\"kind\": \"agree\", \"queue\": 2"),
            "program table: action 6 (): on queue 'fast', but collectives of communicator 'dp' are on queue "
            "'comm'");
  EXPECT_EQ(failure(two, "{\"kind\": \"all_to_all\", \"queue\": 1", "{\"kind\": \"reduce\", \"queue\": 2"),
            "program table: action 5 (): on queue 'fast', but reductions are on queue 'comm'");
}

static std::string failure(const std::function<void()> &body) {
  try {
    body();
  } catch (const Error &error) {
    EXPECT_EQ(error.status, StatusInput);
    return error.what();
  }
  return "";
}

TEST(Program, SectionsAreTheSameAsActions) {
  std::string whole = kGoodTable, apart = kTableOfSections;
  Program one = parseProgram(whole.data(), whole.size());
  Program other = parseProgram(apart.data(), apart.size(), kSections);
  Program copy = other;
  ASSERT_EQ(copy.positions[0].actions.size(), one.positions[0].actions.size());
  for (size_t i = 0; i < one.positions[0].actions.size(); ++i) {
    EXPECT_EQ(copy.positions[0].actions[i].kind, one.positions[0].actions[i].kind);
    EXPECT_EQ(copy.positions[0].actions[i].refs.size(), one.positions[0].actions[i].refs.size());
  }
  // What one has read, its copies have.
  EXPECT_EQ(&other.positions[0].actions[0], &copy.positions[0].actions[0]);
  EXPECT_EQ(failure([&] {
              parseProgram(apart.data(), apart.size(), "[]");
            }).find("program table: program.positions[0].section: [0,"),
            0u);
}

/// A program for many ranks: every position but one says nonsense, which no rank of that one reads.
TEST(Program, ARankReadsItsOwnPositionOnly) {
  const int64_t pp = 64, dp = 8, count = 2000;
  std::string positions, sections, groups;
  for (int64_t place = 0; place < pp; ++place) {
    std::string section = "[";
    for (int64_t i = 0; i < count; ++i)
      section += std::string(i ? "," : "") +
                 R"({"kind":"run","name":"block 3 F","symbol":"block3.F","waits":[)" +
                 (i ? std::to_string(i - 1) : "") + R"(],"refs":[[0,0,0,0]]})";
    section += "]";
    if (place != 5)
      std::fill(section.begin(), section.end(), '?');
    positions += std::string(place ? "," : "") +
                 R"({"memories":[{"kind":"device","bytes":1024}],"queues":[{"name":"compute"}],)"
                 R"("buffers":[{"name":"x","bytes":256}],"section":[)" +
                 std::to_string(sections.size()) + "," + std::to_string(section.size()) + "]}";
    sections += section + "\n";
  }
  std::string table = "{" DSOPT_TEST_VERSION
                      R"(, "grid": [64, 8, 1, 1, 1], "K": 8, "V": 8, "M": 1, "positions": [)" +
                      positions + "]}";
  Program program = parseProgram(table.data(), table.size(), sections);
  EXPECT_EQ(arenasOf(program).size(), size_t(pp * dp));
  EXPECT_EQ(program.positions[5].actions.size(), size_t(count));
  EXPECT_EQ(describeAction(program, 5 * dp, count - 1), "block 3 F");
  for (int again = 0; again < 2; ++again)
    EXPECT_EQ(failure([&] { program.positions[6].actions.size(); }),
              "program table: program.positions[6].section: not JSON");
}

TEST(Program, RunOrder) {
  Program program;
  program.grid = dsopt::Grid({1, 2, 1, 1, 1});
  program.K = 8;
  program.V = 4;
  program.M = 4;
  program.accumulate = "sharded";
  // Rank 1 holds shards 2 and 3, micro-batches 4, 5 and 6, 7: index by index over them.
  int64_t expected[] = {4, 6, 5, 7};
  for (int64_t p = 0; p < 4; ++p)
    EXPECT_EQ(microBatchIndex(program, 1, p), expected[p]);
}
