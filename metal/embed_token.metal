// embed_token: what a token means at its place, the same for every row.
// table: [V, K]; places: [P, K]; token, place: [1] → y: [ROWS, K] float32
// Reference: two embeddings and their sum.
//
// inputs: table places token place
// outputs: y

//: kernel
for (int i = int(thread_index_in_threadgroup); i < K; i += THREADS) {
  float value = float(table[long(token[0]) * K + i]) + float(places[long(place[0]) * K + i]);
  for (int r = 0; r < ROWS; ++r) y[r * K + i] = value;
}
