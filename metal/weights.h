// Eight weights that stand side by side, as float32. Addresses are multiples of
// what is loaded.

METAL_FUNC void load8(const device float* p, thread float* v) {
  float4 a = *(const device float4*)p;
  float4 b = *(const device float4*)(p + 4);
  v[0] = a.x; v[1] = a.y; v[2] = a.z; v[3] = a.w;
  v[4] = b.x; v[5] = b.y; v[6] = b.z; v[7] = b.w;
}

METAL_FUNC void unpack_half2(uint pair, thread float* v) {
  half2 h = as_type<half2>(pair);
  v[0] = float(h.x);
  v[1] = float(h.y);
}

METAL_FUNC void load8(const device half* p, thread float* v) {
  uint4 q = *(const device uint4*)p;
  unpack_half2(q.x, v);
  unpack_half2(q.y, v + 2);
  unpack_half2(q.z, v + 4);
  unpack_half2(q.w, v + 6);
}

METAL_FUNC void unpack_bfloat2(uint pair, thread float* v) {
  v[0] = as_type<float>(pair << 16);
  v[1] = as_type<float>(pair & 0xffff0000u);
}

METAL_FUNC void load8(const device bfloat16_t* p, thread float* v) {
  uint4 q = *(const device uint4*)p;
  unpack_bfloat2(q.x, v);
  unpack_bfloat2(q.y, v + 2);
  unpack_bfloat2(q.z, v + 4);
  unpack_bfloat2(q.w, v + 6);
}

METAL_FUNC float sum8(thread const float* v) {
  return ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
}

METAL_FUNC float dot8(thread const float* a, thread const float* b) {
  float even = a[0] * b[0], odd = a[1] * b[1];
  for (int i = 2; i < 8; i += 2) {
    even = fma(a[i], b[i], even);
    odd = fma(a[i + 1], b[i + 1], odd);
  }
  return even + odd;
}
