//===- NpzSource.h - micro-batches out of an .npz file ----------*- C++ -*-===//

#ifndef DSOPT_LIB_RUNTIME_DATA_NPZSOURCE_H
#define DSOPT_LIB_RUNTIME_DATA_NPZSOURCE_H

#include "dsopt/Runtime/Data.h"

namespace dsopt::runtime {

class NpzSource : public DataSource {
public:
  /// Checks headers only. An Error of status 1 says what does not fit.
  NpzSource(const Program &program, const std::string &path, bool pad = false);

  int64_t rows() const override { return listed; }
  void prepare() override;
  int chooseVariant(int64_t step) override;
  void fill(int64_t step, int64_t microBatch, int64_t input, void *target) override;
  std::string describe(int64_t step, int64_t microBatch, int64_t input, int64_t element) override;
  /// The array 'dsopt.lr', of a file that holds one step.
  double learningRate();
  /// The text of 'dsopt.place' there, empty where there is none.
  std::string place();

private:
  struct Stream {
    const NpzArray *array = nullptr;
    const char *data = nullptr;
    std::vector<int64_t> shape; ///< of one micro-batch in the file
    int64_t elements = 0;       ///< of one micro-batch
    int from = 0, to = 0;       ///< element kinds
    int64_t bytes = 0;          ///< of one element in the file
    int64_t rest = 0;           ///< rows of a last micro-batch that has fewer
  };
  std::vector<int64_t> fileShape(const Input &input, const NpzArray &array);
  /// Whether micro-batches in the file have one of the dimension's sizes.
  bool isOfASize() const;
  void checkArrays() const;
  void checkPadding(bool pad) const;
  /// How far a micro-batch reaches along the dimension: to the last place that the mask shows or that has
  /// a label.
  int64_t lengthOf(int64_t step, int64_t microBatch) const;
  /// Copies elements one after the other.
  void fillRow(const Stream &stream, const Input &input, const char *source, int64_t elements, void *target,
               int64_t step, int64_t microBatch) const;
  void fillBox(const Stream &stream, const Input &input, const std::vector<int64_t> &shape,
               const char *source, char *target, const std::string &place) const;

  NpzFile file;
  std::vector<Stream> streams;
  int64_t listed = 0; ///< rows, of a prediction on lists of them
  int64_t length = 0; ///< of the program's dimension in the file
  int variant = -1;   ///< whose shapes are filled
};

} // namespace dsopt::runtime

#endif // DSOPT_LIB_RUNTIME_DATA_NPZSOURCE_H
