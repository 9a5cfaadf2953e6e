// relative_softmax: y = softmax(content + position), where query i and key j take
// column T - 1 - i + j of the position scores.
// content: [B, HEADS, T, T]; position: [B, HEADS, T, 2 * T - 1] → y: [B, HEADS, T, T]
// A SIMD group for each row, which reads it three times: a row is in the cache.
// Reference: reference::relative_attention, between its products.
//
// inputs: content position
// outputs: y

//: kernel
int lane = int(thread_index_in_simdgroup);
int t = int(threadgroup_position_in_grid.x), T = int(threadgroups_per_grid.x);
long head = long(threadgroup_position_in_grid.z) * threadgroups_per_grid.y +
    threadgroup_position_in_grid.y;
long row = (head * T + t) * T;
long shifted = (head * T + t) * (2 * T - 1) + T - 1 - t;
float largest = -INFINITY;
for (int j = lane; j < T; j += 32) {
  largest = max(largest, content[row + j] + position[shifted + j]);
}
largest = simd_max(largest);
float sum = 0.0f;
for (int j = lane; j < T; j += 32) {
  sum += precise::exp(content[row + j] + position[shifted + j] - largest);
}
float scale = 1.0f / simd_sum(sum);
for (int j = lane; j < T; j += 32) {
  y[row + j] = scale * precise::exp(content[row + j] + position[shifted + j] - largest);
}
