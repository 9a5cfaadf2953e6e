#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/cpu/primitive.h"

namespace nightingale::cpu {

mx::array
embedding(const mx::array& table, const mx::array& ids, mx::Stream s) {
  mx::Shape shape = ids.shape();
  shape.push_back(table.shape(1));
  Storage storage = storage_of(table);
  return make_op(
      "Embedding",
      {shape},
      {dense(table, s), as_ids(ids, s)},
      [=](const Arrays& in, Arrays& out) {
        int rows = in[0].shape(0), channels = in[0].shape(1);
        const char* table = in[0].data<char>();
        const int* ids = in[1].data<int>();
        float* y = out[0].data<float>();
        auto unpack = simd().unpack[static_cast<int>(storage)];
        int64_t row_bytes = int64_t(channels) * storage_bytes(storage);
        for (size_t i = 0; i < in[1].size(); ++i) {
          int id = ids[i] >= 0 && ids[i] < rows ? ids[i] : 0;
          unpack(table + id * row_bytes, channels, y + i * channels);
        }
      },
      s);
}

} // namespace nightingale::cpu
