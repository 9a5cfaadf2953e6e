// Two 16-bit floats that came from memory as one number.
template <typename T> METAL_FUNC void unpack_pair(uint pair, thread float* v) {
  half2 h = as_type<half2>(pair);
  v[0] = float(h.x);
  v[1] = float(h.y);
}
#if BFLOAT16
template <> METAL_FUNC void unpack_pair<bfloat16_t>(uint pair, thread float* v) {
  v[0] = as_type<float>(pair << 16);
  v[1] = as_type<float>(pair & 0xffff0000u);
}
#endif
