//===- PredictionFile.cpp - the outputs of a model as an .npz file --------===//

#include "PredictionFile.h"

using namespace dsopt::runtime;

PredictionFile::PredictionFile(const std::string &path, const Program &program, int variant,
                               int64_t microBatches, int64_t rows)
    : file(path) {
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    const Output &output = program.outputs[i];
    std::vector<int64_t> shape = variant < 0 ? output.shape : program.variants[variant].outputs[i];
    if (rows && !shape.empty() && shape[0] == program.micro_batch_size)
      shape[0] = rows;
    else
      shape.insert(shape.begin(), microBatches);
    file.add(output.name, output.type, shape);
  }
}
