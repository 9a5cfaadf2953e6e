// embed_token: the embedding of a token plus that of its position, the same for every row.
// table: [V, K]; position_table: [P, K]; token, position: [1] → y: [ROWS, K] float32
// Reference: two embeddings and their sum.
//
// inputs: table position_table token position
// outputs: y

//: kernel
for (int i = int(thread_index_in_threadgroup); i < K; i += THREADS) {
  float value = float(table[long(token[0]) * K + i]) + float(position_table[long(position[0]) * K + i]);
  for (int r = 0; r < ROWS; ++r) y[r * K + i] = value;
}
