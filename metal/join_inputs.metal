// join_inputs: the estimator's inputs of up to eight solutions as sequences of one
// array, each filled up with zeros.
// x[8]: [SEQUENCES, frames, WIDTH], of which LISTED are given; order[8]: not read,
// they are of whoever wrote x in place; extent: rows of a sequence of y, then the
// frames of each solution → y: [S * SEQUENCES, rows, WIDTH]
// Reference: mx::pad and mx::concatenate.
//
// inputs: x[8] order[8] extent
// outputs: y

//: kernel
int row = int(threadgroup_position_in_grid.x), sequence = int(threadgroup_position_in_grid.y);
int solution = sequence / SEQUENCES, rows = extent[0], frames = extent[1 + solution];
#if LISTED > 1
if (solution == 1) x = x1;
#endif
#if LISTED > 2
if (solution == 2) x = x2;
if (solution == 3) x = x3;
#endif
#if LISTED > 4
if (solution == 4) x = x4;
if (solution == 5) x = x5;
if (solution == 6) x = x6;
if (solution == 7) x = x7;
#endif
long from = (long(sequence % SEQUENCES) * frames + row) * WIDTH;
long to = (long(sequence) * rows + row) * WIDTH;
for (int c = int(thread_index_in_threadgroup); c < WIDTH; c += THREADS)
  y[to + c] = row < frames ? I(x[from + c]) : I(0.0f);
