// overlap: the rows of a transposed convolution from its products with all
// taps. products: [B, count, filters, taps]; bias: [filters] → y: [B, results,
// filters]: y[b, r] is the bias and every products[b, t, :, k] for which
// stride * t + k is r + trim.
// The weights' own order makes neighbours read `taps` apart; the other rows of
// the same inputs read what is between, and no weight is turned.
// Reference: reference::conv_transpose1d.
//
// inputs: products bias steps rows
// outputs: y

//: kernel
constexpr int CHUNK = 1024; // elements of a group
int filters = steps[0], stride = steps[1] & 1023;
int taps = (steps[1] >> 10) & 1023, trim = steps[1] >> 20;
int count = rows[0], results = rows[1];
int batch = int(threadgroup_position_in_grid.z);
int size = results * filters;
int begin = int(threadgroup_position_in_grid.x) * CHUNK, end = min(begin + CHUNK, size);
for (int i = begin + int(thread_index_in_threadgroup); i < end; i += THREADS) {
  int row = i / filters, filter = i - row * filters, position = row + trim;
  float sum = float(bias[filter]);
  for (int tap = position % stride; tap < taps; tap += stride) {
    int t = (position - tap) / stride;
    if (position >= tap && t < count)
      sum += float(products[((batch * count + t) * filters + filter) * taps + tap]);
  }
  y[batch * size + i] = sum;
}
