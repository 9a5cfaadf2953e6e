// euler_step: x += dt * v in place, where v is the velocity's one row, or
// (1 + guidance) * v[0] - guidance * v[1] of two, and x again in the first C
// columns of all BATCH rows of the estimator's input.
// velocity: [BATCH, T, C]; numbers: dt, 1 + guidance, guidance; after: not read,
// it is of the step before
// x: [1, T, C]; input: [BATCH, T, WIDTH]
// Reference: reference::euler_step, reference::write_columns.
//
// inputs: velocity numbers after
// state: x input
// outputs: order

//: kernel
int t = int(threadgroup_position_in_grid.x), T = int(threadgroups_per_grid.x);
for (int c = int(thread_index_in_threadgroup); c < C; c += THREADS) {
  long i = long(t) * C + c;
  float v = velocity[i];
  if (BATCH == 2) v = numbers[1] * v - numbers[2] * velocity[long(T) * C + i];
  float next = x[i] + numbers[0] * v;
  x[i] = next;
  for (int b = 0; b < BATCH; ++b) input[(long(b) * T + t) * WIDTH + c] = I(next);
}
if (t == 0 && thread_index_in_threadgroup == 0) order[0] = 0.0f;
