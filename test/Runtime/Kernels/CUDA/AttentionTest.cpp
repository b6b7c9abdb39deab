//===- AttentionTest.cpp - attention on a device against its definition ----===//

#include "../AttentionMeetings.h"
#include "OnDevice.h"

namespace dsopt::runtime::cuda {

using namespace attention;

namespace {
class Attention : public OnDevice, public testing::WithParamInterface<Case>, public AttentionProblem {
protected:
  Attention() : AttentionProblem(GetParam()) {}

  /// Runs both directions; what they wrote, one after the other.
  std::vector<std::vector<uint8_t>> run() {
    auto in = [&](const Tensor &tensor) {
      return upload(tensor.bytes) + tensor.offset * attention::bytesOf(d.type);
    };
    // Not a number where nothing is written.
    std::vector<uint8_t *> results;
    auto to = [&](const Tensor &tensor) {
      results.push_back(upload(std::vector<uint8_t>(tensor.bytes.size(), 0xff)));
      return results.back() + tensor.offset * attention::bytesOf(d.type);
    };
    uint8_t *qThere = in(q), *kThere = in(k), *vThere = in(v), *gradThere = in(grad), *outThere = to(out);
    void *maskThere = mask.empty() ? nullptr : upload(maskBytes);
    auto *lseThere = room<float>(wantLse.size() * 4);
    AttentionTensors tensors{};
    tensors.q = qThere;
    tensors.k = kThere;
    tensors.v = vThere;
    tensors.mask = maskThere;
    tensors.out = outThere;
    tensors.lse = lseThere;
    cuda::attention(device, stream, d, tensors);
    tensors.grad = gradThere;
    tensors.qGrad = to(qGrad);
    tensors.kGrad = to(kGrad);
    tensors.vGrad = to(vGrad);
    attentionGrad(device, stream, d, tensors, room(dsopt_device_attention_workspace(&d, 1)));
    lse = download(lseThere, wantLse.size());
    const Tensor *written[] = {&out, &qGrad, &kGrad, &vGrad};
    std::vector<std::vector<uint8_t>> bytes;
    for (size_t i = 0; i < results.size(); ++i)
      bytes.push_back(download(results[i], written[i]->bytes.size()));
    return bytes;
  }
};

TEST_P(Attention, IsTheDefinition) {
  auto results = run();
  ASSERT_NO_FATAL_FAILURE(expectNear(out, results[0], wantOut, "result"));
  ASSERT_NO_FATAL_FAILURE(expectLse());
  ASSERT_NO_FATAL_FAILURE(expectNear(qGrad, results[1], wantQ, "gradient of q"));
  ASSERT_NO_FATAL_FAILURE(expectNear(kGrad, results[2], wantK, "gradient of k"));
  ASSERT_NO_FATAL_FAILURE(expectNear(vGrad, results[3], wantV, "gradient of v"));
  // Blocks and warps go in another order.
  EXPECT_EQ(run(), results);
}

std::vector<Case> allCases() {
  std::vector<Case> cases;
  for (int64_t type : {DSOPT_F32, DSOPT_BF16, DSOPT_F16}) {
    for (Case c :
         {Case{1, 1, 1, 1, 1, 1}, Case{2, 2, 1, 17, 15, 15}, Case{1, 3, 17, 1, 64, 64},
          Case{1, 2, 65, 67, 80, 64}, Case{1, 1, 70, 130, 64, 15}, Case{1, 1, 64, 64, 64, 64},
          Case{1, 1, 66, 70, 256, 200}, Case{1, 1, 20, 33, 130, 256}, Case{1, 1, 5, 70, 8, 129},
          // Causal: as many rows as columns, fewer, and more, of which the first read nothing.
          Case{1, 1, 1, 1, 4, 4, 1}, Case{2, 1, 17, 17, 64, 64, 1}, Case{1, 2, 150, 150, 32, 32, 1},
          Case{1, 1, 15, 140, 64, 80, 1}, Case{1, 1, 150, 70, 32, 32, 1},
          // Masks that are whole in some dimensions.
          Case{2, 3, 17, 15, 8, 8, 0, 0}, Case{2, 3, 17, 15, 8, 8, 0, 8}, Case{2, 3, 70, 65, 8, 8, 0, 4},
          Case{1, 2, 70, 130, 8, 8, 0, 12}, Case{2, 3, 17, 15, 8, 8, 0, 1}, Case{2, 3, 17, 15, 8, 8, 0, 2},
          Case{2, 3, 17, 77, 8, 8, 0, 15}, Case{2, 2, 77, 77, 16, 16, 1, 9},
          Case{1, 2, 40, 140, 16, 16, 1, 13}, Case{2, 3, 80, 80, 64, 64, 1, -1, Layout::Packed},
          Case{1, 2, 17, 17, 15, 15, 0, -1, Layout::Packed}, Case{2, 3, 65, 33, 16, 48, 0, 9, Layout::Heads},
          Case{1, 2, 33, 70, 100, 16, 1, 15, Layout::Separate, DSOPT_F32, true},
          Case{1, 2, 20, 18, 130, 16, 0, 3, Layout::Separate, DSOPT_F32, true}}) {
      c.type = type;
      cases.push_back(c);
    }
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Cases, Attention, testing::ValuesIn(allCases()));

class Meet : public OnDevice, public testing::WithParamInterface<Meeting> {
protected:
  template <typename T> T *there(const std::vector<T> &values) {
    return values.empty() ? nullptr : upload(values);
  }
  /// As what calls the routines places them.
  static dsopt_attention placed(const AttentionPart &part) {
    dsopt_attention d = part.d;
    d.first = dsopt_attention_first(&d, part.rank);
    return d;
  }
  AttentionTensors tensorsOf(const AttentionPart &part) {
    AttentionTensors tensors{};
    tensors.q = there(part.q);
    tensors.k = there(part.k);
    tensors.v = there(part.v);
    tensors.mask = there(part.mask);
    return tensors;
  }
  Meetings::Results run(int64_t entries) {
    auto forward = [&](AttentionPart &part) {
      AttentionTensors tensors = tensorsOf(part);
      tensors.previous = there(part.previous);
      tensors.previousLse = there(part.previousLse);
      auto *out = upload(part.results[0]);
      tensors.out = out;
      tensors.lse = upload(part.lse);
      cuda::attention(device, stream, placed(part), tensors);
      part.results[0] = download(out, part.results[0].size());
      part.lse = download(tensors.lse, part.lse.size());
    };
    auto backward = [&](AttentionPart &part) {
      AttentionTensors tensors = tensorsOf(part);
      tensors.out = there(part.out);
      tensors.lse = there(part.lse);
      tensors.grad = there(part.grad);
      tensors.qPrevious = there(part.qPrevious);
      tensors.kPrevious = there(part.kPrevious);
      tensors.vPrevious = there(part.vPrevious);
      uint8_t *grads[3];
      for (int i = 0; i < 3; ++i)
        grads[i] = upload(part.results[i]);
      tensors.qGrad = grads[0];
      tensors.kGrad = grads[1];
      tensors.vGrad = grads[2];
      attentionGrad(device, stream, placed(part), tensors,
                    room(dsopt_device_attention_workspace(&part.d, 1)));
      for (int i = 0; i < 3; ++i)
        part.results[i] = download(grads[i], part.results[i].size());
    };
    return meetings.run(entries, forward, backward);
  }

  Meetings meetings{GetParam().c, GetParam().shards, GetParam().readers};
};

TEST_P(Meet, RanksAndEntriesHaveTheSameBits) {
  meetings.shareHeads();
  Meetings::Results ranks = run(/*entries=*/1);
  ASSERT_NO_FATAL_FAILURE(meetings.expectDefinition(ranks));
  for (int64_t entries = 2; entries <= GetParam().shards; ++entries)
    if (GetParam().shards % entries == 0)
      ASSERT_TRUE(run(entries) == ranks);
}
INSTANTIATE_TEST_SUITE_P(Shards, Meet, testing::ValuesIn(meetingCases()));
} // namespace

} // namespace dsopt::runtime::cuda
