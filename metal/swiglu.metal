// swiglu: silu(gate) * up. gate_up: [rows, 2 * F], the gate first → y: [rows, F]
// Reference: reference::swiglu.
//
// inputs: gate_up
// outputs: y

//: kernel
long row = long(threadgroup_position_in_grid.x);
for (int i = int(thread_index_in_threadgroup); i < F; i += THREADS) {
  float gate = float(gate_up[row * 2 * F + i]), up = float(gate_up[row * 2 * F + F + i]);
  y[row * F + i] = T(gate / (1.0f + precise::exp(-gate)) * up);
}
