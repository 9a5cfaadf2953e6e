// sample: chooses the next speech token: guidance, the alignment analyser, the
// repetition penalty, temperature, top-k, min-p, top-p and a Gumbel draw. The
// penalty may also come last, before the draw.
// logits: [ROWS, V]; seen_before: [V]; last: [1], the token before; rules: see
// RuleWord; step: position of the token, rows of each head's weights (1 or 2);
// marks_before: [8], sums_before: [6], see ops/alignment.h; w0 to w3: [rows,
// text], of which the first HEADS count; without heads there is no analyser.
// → token: [1]; seen: [V]; marks: [8]; sums: [6]; report: [2], the text position
// and the faults.
// One threadgroup, because everything waits for the largest logit, and three
// barriers do where top-p keeps everything. What is summed is summed as integers
// and all else is a maximum, so that the token does not depend on THREADS.
// Reference: ops::choose_token on a CPU stream.
//
// inputs: logits seen_before last rules step marks_before sums_before w0 w1 w2 w3
// outputs: token seen marks sums report
#include "reduce.h"
#include "threefry.h"

enum RuleWord {
  CFG_WEIGHT, // float, as those below are
  PENALTY,
  TEMPERATURE, // 0: the most likely token
  MIN_P,
  AFTER_END,
  FIRST_STOP, // int, as those below are
  FIRST_REPEAT,
  TEXT,
  STOP,
  DRAWS, // two words: with the position they key the draw
  SPARE = DRAWS + 2, // two digits: 1 - top_p in fixed point; 0: nothing is cut
  TOP_K = SPARE + 2, // 0: all
  PENALTY_LAST // then the start of speech is seen before the first token only
};

enum MarkPlace {
  FRAME,
  TEXT_POSITION,
  STARTED,
  COMPLETE,
  LAST_TOKEN,
  TOKEN_COUNT,
  STOP_SUPPRESSED,
  STOP_FORCED
};

enum SumPlace { OPENING_PEAK, ENDING_PEAK, TAIL, REPEATED = TAIL + 3 };

// The text's weights in one step, the mean of the heads.
struct TextWeights {
  int position; // of the largest in the last row
  float opening; // largest of the first four, in any row
  float ending; // largest of the last two, in the last row
  float previous_ending; // and in the row before
  float tail[3]; // the last three of the last row
  float earlier; // largest before the last five, in the last row
};

METAL_FUNC void follow(
    TextWeights weights, int text, thread int* marks, thread float* sums) {
  int jump = weights.position - marks[TEXT_POSITION];
  if (jump > -4 && jump < 7) marks[TEXT_POSITION] = weights.position;
  sums[OPENING_PEAK] = max(sums[OPENING_PEAK], weights.opening);
  sums[ENDING_PEAK] = weights.ending;
  bool false_start = max(weights.ending, weights.previous_ending) > 0.1f ||
      sums[OPENING_PEAK] < 0.5f;
  if (!false_start) marks[STARTED] = 1;
  if (marks[COMPLETE]) {
    for (int i = 0; i < 3; ++i) sums[TAIL + i] += weights.tail[i];
    sums[REPEATED] += weights.earlier;
  }
  if (marks[TEXT_POSITION] >= text - 3) marks[COMPLETE] = 1;
  ++marks[FRAME];
}

METAL_FUNC int faults_of(
    int token,
    float after_end,
    int first_repeat,
    thread int* marks,
    thread const float* sums) {
  int faults = 0;
  if (marks[COMPLETE]) {
    float longest = max(max(sums[TAIL], sums[TAIL + 1]), sums[TAIL + 2]);
    if (longest >= after_end) faults += 1;
    if (sums[REPEATED] > after_end) faults += 2;
  }
  ++marks[TOKEN_COUNT];
  if (marks[TOKEN_COUNT] >= first_repeat && token == marks[LAST_TOKEN]) faults += 4;
  marks[LAST_TOKEN] = token;
  return faults;
}

METAL_FUNC float penalised(float x, bool seen, float penalty) {
  return !seen ? x : x < 0.0f ? x * penalty : x / penalty;
}

// As an unsigned number this is ordered like the float.
METAL_FUNC uint order_of(float x) {
  uint bits = as_type<uint>(x + 0.0f); // -0 is 0
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

// Two digits, the first in units of 1 / `scale`, the second of 18 bits. Sums of
// them are exact and, as V is below 2^14, do not overflow.
METAL_FUNC void fixed_point(float v, float scale, thread uint& high, thread uint& low) {
  float scaled = v * scale;
  high = uint(scaled);
  low = uint((scaled - float(high)) * 262144.0f + 0.5f);
}

METAL_FUNC uint64_t fixed_sum(uint high, uint low) {
  return (uint64_t(high) << 18) + low;
}

METAL_FUNC float gumbel(uint word) {
  float u = (float(word >> 9) + 0.5f) * 1.1920928955078125e-7f; // 2^-23
  return -precise::log(-precise::log(u));
}

//: kernel
constexpr int SIMDS = THREADS / 32;
constexpr int N = (V + THREADS - 1) / THREADS; // tokens of a thread
threadgroup float edges[14];
threadgroup float earlier_peaks[SIMDS];
threadgroup float best_values[3 * SIMDS];
threadgroup uint best_indices[3 * SIMDS];
threadgroup uint partial[4 * SIMDS];
uint id = thread_index_in_threadgroup;
uint lane = thread_index_in_simdgroup, simd = simdgroup_index_in_threadgroup;
float cfg_weight = as_type<float>(rules[CFG_WEIGHT]), penalty = as_type<float>(rules[PENALTY]);
bool penalty_last = rules[PENALTY_LAST] != 0u, forgets = penalty_last && step[0] == 0u;

float x[N];
for (int k = 0; k < N; ++k) {
  int i = int(id) + k * THREADS;
  x[k] = -INFINITY;
  if (i < V) {
    float y = float(logits[i]);
    // A product that is not contracted: the CPU rounds it.
    if (ROWS == 2) y += fma(cfg_weight, y - float(logits[(ROWS - 1) * V + i]), 0.0f);
    x[k] = penalised(y, seen_before[i] != 0 && !penalty_last, penalty);
    seen[i] = forgets ? 0 : seen_before[i];
  }
}

bool early = int(step[0]) < int(rules[FIRST_STOP]), suppress = false;
int faults = 0;
int mark[8];
float sum[6];
for (int i = 0; i < 8; ++i) mark[i] = marks_before[i];
for (int i = 0; i < 6; ++i) sum[i] = sums_before[i];
if (HEADS > 0) {
  int text = int(rules[TEXT]), last_row = int(step[1]) - 1, frame = mark[FRAME];
  float most = -1.0f, earlier = 0.0f;
  uint most_at = 0;
  for (int j = int(id); j < text; j += THREADS) {
    for (int row = 0; row <= last_row; ++row) {
      int i = row * text + j;
      float mean = 0.0f;
      if (j <= frame) { // later text is not looked at
        mean = w0[i];
        if (HEADS > 1) mean += w1[i];
        if (HEADS > 2) mean += w2[i];
        if (HEADS > 3) mean += w3[i];
        mean /= float(HEADS);
      }
      if (j < 4) edges[row * 4 + j] = mean;
      if (j >= text - 3) edges[8 + row * 3 + j - (text - 3)] = mean;
      if (row == last_row) {
        if (mean > most) {
          most = mean;
          most_at = uint(j);
        }
        if (j < text - 5) earlier = max(earlier, mean);
      }
    }
  }
  leave_best(most, most_at, best_values, best_indices, simd, lane);
  leave_max(earlier, earlier_peaks, simd, lane);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  take_best<SIMDS>(best_values, best_indices, lane, most, most_at);

  TextWeights weights;
  weights.position = int(most_at);
  weights.earlier = take_max<SIMDS>(earlier_peaks, lane);
  weights.opening = 0.0f;
  weights.ending = sum[ENDING_PEAK];
  for (int row = 0; row <= last_row; ++row) {
    for (int j = 0; j < min(text, 4); ++j) {
      weights.opening = max(weights.opening, edges[row * 4 + j]);
    }
    weights.previous_ending = weights.ending;
    weights.ending = 0.0f;
    for (int j = 0; j < 3; ++j) {
      weights.tail[j] = text - 3 + j >= 0 ? edges[8 + row * 3 + j] : 0.0f;
      if (j > 0) weights.ending = max(weights.ending, weights.tail[j]);
    }
  }
  follow(weights, text, mark, sum);
  faults = faults_of(
      last[0], as_type<float>(rules[AFTER_END]), int(rules[FIRST_REPEAT]), mark, sum);
  if (frame < int(rules[FIRST_STOP])) {
    faults = 0;
    suppress = true;
  }
  if (weights.position < text - 3 && text > 5) suppress = true;
  mark[STOP_SUPPRESSED] = suppress;
  mark[STOP_FORCED] = faults;
}
if (id == 0) {
  for (int i = 0; i < 8; ++i) marks[i] = mark[i];
  for (int i = 0; i < 6; ++i) sums[i] = sum[i];
  report[0] = mark[TEXT_POSITION];
  report[1] = mark[STOP_FORCED];
}

float peak = -INFINITY;
uint chosen = 0;
for (int k = 0; k < N; ++k) {
  int i = int(id) + k * THREADS;
  bool is_stop = i == int(rules[STOP]), changed = is_stop && (early || suppress);
  if ((changed || faults != 0) && i < V) {
    float y = is_stop && early ? -INFINITY : is_stop && faults != 0 ? 32768.0f : -32768.0f;
    x[k] = penalised(y, seen_before[i] != 0 && !penalty_last, penalty);
  }
  if (x[k] > peak) {
    peak = x[k];
    chosen = uint(i);
  }
}
leave_best(peak, chosen, best_values + SIMDS, best_indices + SIMDS, simd, lane);
threadgroup_barrier(mem_flags::mem_threadgroup);
take_best<SIMDS>(best_values + SIMDS, best_indices + SIMDS, lane, peak, chosen);

float temperature = as_type<float>(rules[TEMPERATURE]);
if (temperature > 0.0f) {
  // What is `reach` below the peak is removed by min-p or too rare to be drawn
  // and to count: most tokens need no exponential. A last penalty may still lower
  // the peak.
  float top = peak / temperature, min_p = as_type<float>(rules[MIN_P]);
  float reach = penalty_last ? INFINITY : min(30.0f, 0.1f - precise::log(min_p));
  float least = peak - reach * temperature;
  for (int k = 0; k < N; ++k) {
    bool kept = x[k] >= least;
    if (kept) {
      x[k] /= temperature;
      kept = !(precise::exp(x[k] - top) < min_p);
    }
    if (!kept) x[k] = -INFINITY;
  }
  // Min-p removes the least likely tokens: top-k may come after it.
  uint top_k = rules[TOP_K];
  if (top_k != 0u && top_k < uint(V)) {
    // The highest value that top_k tokens reach, found bit by bit.
    uint order[N], cut = 0;
    for (int k = 0; k < N; ++k) order[k] = order_of(x[k]);
    for (int bit = 31; bit >= 0; --bit) {
      uint raised = cut | 1u << bit, count = 0;
      for (int k = 0; k < N; ++k) count += order[k] >= raised ? 1u : 0u;
      auto counts = partial + (bit % 2 == 0 ? 2 * SIMDS : 0);
      leave_sum(count, counts, simd, lane);
      threadgroup_barrier(mem_flags::mem_threadgroup);
      if (take_sum<SIMDS>(counts, lane) >= top_k) cut = raised;
    }
    for (int k = 0; k < N; ++k) {
      if (order[k] < cut) x[k] = -INFINITY;
    }
  }

  uint64_t budget = fixed_sum(rules[SPARE], rules[SPARE + 1]);
  if (budget != 0) {
    // What is below (cut, first), by value and then by index, is removed: its
    // probabilities add up to `budget` at most. Found bit by bit, from the
    // highest.
    float share[N];
    uint order[N], high[N], low[N], highs = 0, lows = 0, cut = 0, first = 0;
    for (int k = 0; k < N; ++k) {
      order[k] = order_of(x[k]);
      share[k] = x[k] > -INFINITY ? precise::exp(x[k] - top) : 0.0f;
      fixed_point(share[k], 262144.0f, high[k], low[k]);
      highs += high[k];
      lows += low[k];
    }
    auto here = partial, there = partial + 2 * SIMDS;
    leave_sum(highs, here, simd, lane);
    leave_sum(lows, here + SIMDS, simd, lane);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    highs = take_sum<SIMDS>(here, lane);
    lows = take_sum<SIMDS>(here + SIMDS, lane);
    float total = float(fixed_sum(highs, lows)) * 1.4551915228366852e-11f; // 2^-36
    for (int k = 0; k < N; ++k) {
      if (share[k] > 0.0f) share[k] /= total;
      fixed_point(share[k], 2147483648.0f, high[k], low[k]);
    }
    for (int bit = 45; bit >= 0; --bit) {
      uint raised = bit < 14 ? cut : cut | 1u << (bit - 14);
      uint until = bit < 14 ? first | 1u << bit : 0u;
      highs = 0;
      lows = 0;
      for (int k = 0; k < N; ++k) {
        uint i = id + uint(k * THREADS);
        bool below = order[k] < raised || (order[k] == raised && i < until);
        highs += below ? high[k] : 0u;
        lows += below ? low[k] : 0u;
      }
      auto next = there; // `here` may still be read
      there = here;
      here = next;
      leave_sum(highs, here, simd, lane);
      leave_sum(lows, here + SIMDS, simd, lane);
      threadgroup_barrier(mem_flags::mem_threadgroup);
      highs = take_sum<SIMDS>(here, lane);
      lows = take_sum<SIMDS>(here + SIMDS, lane);
      if (fixed_sum(highs, lows) <= budget) {
        cut = raised;
        first = until;
      }
    }
    for (int k = 0; k < N; ++k) {
      uint i = id + uint(k * THREADS);
      if (order[k] < cut || (order[k] == cut && i < first)) x[k] = -INFINITY;
    }
  }

  if (penalty_last) {
    for (int k = 0; k < N; ++k) {
      int i = int(id) + k * THREADS;
      if (i < V) x[k] = penalised(x[k], seen_before[i] != 0, penalty);
    }
  }
  uint low_key = uint(step[0]), high_key = 0;
  threefry(rules[DRAWS], rules[DRAWS + 1], low_key, high_key);
  float best = -INFINITY;
  chosen = 0;
  for (int k = 0; k < N; ++k) {
    if (x[k] > -INFINITY) {
      uint i = id + uint(k * THREADS);
      float score = x[k] + gumbel(random_word(low_key, high_key, i, uint(V)));
      if (score > best) {
        best = score;
        chosen = i;
      }
    }
  }
  leave_best(best, chosen, best_values + 2 * SIMDS, best_indices + 2 * SIMDS, simd, lane);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  take_best<SIMDS>(best_values + 2 * SIMDS, best_indices + 2 * SIMDS, lane, best, chosen);
}

// The thread that copied this mark sets it.
if (chosen % THREADS == id) seen[chosen] = 1;
if (id == 0) token[0] = int(chosen);
