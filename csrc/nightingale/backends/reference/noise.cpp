#include <cmath>
#include <vector>

#include "mlx/ops.h"
#include "mlx/random.h"
#include "mlx/transforms.h"
#include "nightingale/backends/reference/ops.h"

namespace nightingale::reference {

mx::array
normal_noise(const DrawPosition& first, int rows, int columns, mx::Stream s) {
  std::vector<uint32_t> keys;
  keys.reserve(2 * rows);
  auto at = first;
  for (int row = 0; row < rows; ++row, ++at.position) {
    DrawKey key = draw_key(at);
    keys.push_back(key.low);
    keys.push_back(key.high);
  }
  auto draw = mx::vmap(
      [=](const mx::array& key) {
        return mx::random::bits({columns}, 4, key, s);
      },
      0,
      0);
  auto words = draw(mx::array(keys.begin(), {rows, 2}));
  // The midpoint of one of 2^23 equal intervals of (-1, 1).
  auto part = mx::astype(
      mx::right_shift(words, mx::array(9u, mx::uint32), s), mx::float32, s);
  auto uniform = mx::subtract(
      mx::multiply(mx::add(part, mx::array(0.5f), s), mx::array(0x1p-22f), s),
      mx::array(1.0f),
      s);
  return mx::multiply(mx::erfinv(uniform, s), mx::array(std::sqrt(2.0f)), s);
}

} // namespace nightingale::reference
