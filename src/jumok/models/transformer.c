/* A Transformer on the CPU in one call for each step: models/native.py compiles this, models/compiled.py calls it.

   The equations are those of layers/block.py. Rows are words: in `step` the newest word of every hypothesis, in `read`
   all words of all sentences, one after another without padding. Every function below is called by all threads
   of one parallel region; `omp for` shares its work among them and waits for all at its end. */

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __AVX512F__
#include <immintrin.h>
#endif
#ifdef _OPENMP
#include <omp.h>
#endif

#if defined(__AVX512F__)
enum { LANES = 16, ROWS = 12 }; /* floats in a register; rows of a tile, as many as registers can hold */
#elif defined(__AVX2__)
enum { LANES = 8, ROWS = 6 };
#else
enum { LANES = 4, ROWS = 6 };
#endif
enum { PANEL = 2 * LANES, CHUNK = 8 * ROWS, FEW = 8 }; /* columns of a tile; rows that use a panel before the next */

typedef float lanes __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t whole __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef long long number;

enum { FLOAT32, INT8, BFLOAT16 };
enum { NO_NORM, LAYER_NORM, RMS_NORM };
enum { RELU, GELU, SILU, SWIGLU };

typedef struct {
    number inputs, outputs, kind;
    const void *weight; /* panels of PANEL outputs: (panel, inputs, PANEL), INT8: (panel, inputs/4, PANEL, 4),
                           BFLOAT16: (panel, inputs/2, PANEL, 2) */
    const float *bias, *scale; /* of every output; INT8: weight = scale * integer */
    const int32_t *sum;        /* INT8: 128 times the sum of an output's integers */
} Linear;

typedef struct {
    number kind;
    const float *weight, *bias;
    double eps;
} Norm;

typedef struct {
    Linear project, output, cross_query, cross_output, inner, outer; /* project: queries, keys and values */
    Norm attention_norm, cross_norm, feed_norm;
} Block;

typedef struct {
    number width, heads, groups, head_width, feed_forward, activation, pre, layers;
    double scale; /* of the word vectors */
    const float *embedding;
    const Block *blocks;
    Norm norm;
} Stack;

typedef struct { /* where words stand; what a model does not use is NULL */
    const float *added;    /* (position, width) */
    const float *turns;    /* (position, 2, head_width): cosines and sines */
    const float *relative; /* (head, reach): score of key - query + origin */
    number reach, origin;
} Positions;

typedef struct { /* room for intermediate results of all rows */
    float *x, *normed, *wide, *seen, *scale;
    uint8_t *rounded; /* 2 bytes for each input of a product */
} Room;

/* ------------------------------------------------------------ many numbers at a time */

static inline lanes choose(whole where, lanes yes, lanes no) {
    return (lanes)((where & (whole)yes) | (~where & (whole)no));
}

static inline int any(whole where) {
#ifdef __AVX512F__
    return _mm512_test_epi32_mask((__m512i)where, (__m512i)where) != 0;
#else
    int found = 0;
    for (int i = 0; i < LANES; i++) found |= where[i];
    return found;
#endif
}

/* max(0, v); NaN stays */
static inline lanes positive(lanes v) { return choose(v < 0, (lanes){0}, v); }

static inline float total(lanes v) {
#ifdef __AVX512F__
    return _mm512_reduce_add_ps((__m512)v);
#else
    float sum = 0;
    for (int i = 0; i < LANES; i++) sum += v[i];
    return sum;
#endif
}

/* The largest of some numbers, or of their sizes. */
static inline float largest(const float *v, number count, int sizes) {
    const whole bits = (whole){0} + (sizes ? 0x7fffffff : -1);
    lanes most = (lanes){0} - INFINITY;
    number k = 0;
    for (; k + LANES <= count; k += LANES) {
        const lanes each = (lanes)((whole) * (const lanes *)(v + k) & bits);
        most = choose(each > most, each, most);
    }
    float found = -INFINITY;
    for (int i = 0; i < LANES; i++) found = most[i] > found ? most[i] : found;
    for (; k < count; k++) {
        const float each = sizes ? fabsf(v[k]) : v[k];
        found = each > found ? each : found;
    }
    return found;
}

/* ------------------------------------------------------------ products */

static inline __attribute__((always_inline)) void tile_float(const int rows, const float *x, number inputs,
                                                             const float *w, lanes out[][2]) {
    lanes sum[12][2];
#pragma GCC unroll 12
    for (int r = 0; r < rows; r++) sum[r][0] = sum[r][1] = (lanes){0};
    for (number k = 0; k < inputs; k++, w += PANEL) {
        const lanes left = *(const lanes *)w, right = *(const lanes *)(w + LANES);
#pragma GCC unroll 12
        for (int r = 0; r < rows; r++) {
            const float value = x[r * inputs + k];
            sum[r][0] += value * left;
            sum[r][1] += value * right;
        }
    }
#pragma GCC unroll 12
    for (int r = 0; r < rows; r++) out[r][0] = sum[r][0], out[r][1] = sum[r][1];
}

static inline __attribute__((always_inline)) void tile_int8(const int rows, const uint8_t *x, number inputs,
                                                            const int8_t *w, lanes out[][2]) {
#ifdef __AVX512VNNI__
    __m512i sum[12][2];
#pragma GCC unroll 12
    for (int r = 0; r < rows; r++) sum[r][0] = sum[r][1] = _mm512_setzero_si512();
    for (number k = 0; k < inputs; k += 4, w += 4 * PANEL) {
        const __m512i left = _mm512_loadu_si512(w), right = _mm512_loadu_si512(w + 64);
#pragma GCC unroll 12
        for (int r = 0; r < rows; r++) {
            int32_t four;
            memcpy(&four, x + r * inputs + k, 4);
            const __m512i value = _mm512_set1_epi32(four);
            /* _mm512_dpbusd_epi32, but gcc would copy every sum and read the weights anew for every row */
            __asm__("vpdpbusd %2, %1, %0" : "+v"(sum[r][0]) : "v"(value), "v"(left));
            __asm__("vpdpbusd %2, %1, %0" : "+v"(sum[r][1]) : "v"(value), "v"(right));
        }
    }
#pragma GCC unroll 12
    for (int r = 0; r < rows; r++)
        for (int half = 0; half < 2; half++) out[r][half] = (lanes)sum[r][half];
#else /* never asked for: jumok_has_int8 */
    (void)rows, (void)x, (void)inputs, (void)w, (void)out;
#endif
}

static inline __attribute__((always_inline)) void tile_bfloat16(const int rows, const uint16_t *x, number inputs,
                                                                const uint16_t *w, lanes out[][2]) {
#ifdef __AVX512BF16__
    __m512 sum[12][2];
#pragma GCC unroll 12
    for (int r = 0; r < rows; r++) sum[r][0] = sum[r][1] = _mm512_setzero_ps();
    for (number k = 0; k < inputs; k += 2, w += 2 * PANEL) {
        const __m512i left = _mm512_loadu_si512(w), right = _mm512_loadu_si512(w + PANEL);
#pragma GCC unroll 12
        for (int r = 0; r < rows; r++) {
            int32_t two;
            memcpy(&two, x + r * inputs + k, 4);
            const __m512i value = _mm512_set1_epi32(two);
            __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum[r][0]) : "v"(value), "v"(left));
            __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum[r][1]) : "v"(value), "v"(right));
        }
    }
#pragma GCC unroll 12
    for (int r = 0; r < rows; r++)
        for (int half = 0; half < 2; half++) out[r][half] = (lanes)sum[r][half];
#else
    (void)rows, (void)x, (void)inputs, (void)w, (void)out;
#endif
}

/* A function for each number of rows, by itself: the compiler then keeps all its sums in registers. */
#define TILE(r)                                                                                                        \
    static __attribute__((noinline)) void float_##r(const void *x, number n, const void *w, lanes out[][2]) {          \
        tile_float(r, x, n, w, out);                                                                                   \
    }                                                                                                                  \
    static __attribute__((noinline)) void int8_##r(const void *x, number n, const void *w, lanes out[][2]) {           \
        tile_int8(r, x, n, w, out);                                                                                    \
    }                                                                                                                  \
    static __attribute__((noinline)) void bfloat_##r(const void *x, number n, const void *w, lanes out[][2]) {         \
        tile_bfloat16(r, x, n, w, out);                                                                                \
    }
TILE(1) TILE(2) TILE(3) TILE(4) TILE(5) TILE(6) TILE(7) TILE(8) TILE(9) TILE(10) TILE(11) TILE(12)
#define ALL(kind)                                                                                                      \
    {kind##_1, kind##_2, kind##_3, kind##_4,  kind##_5,  kind##_6,                                                     \
     kind##_7, kind##_8, kind##_9, kind##_10, kind##_11, kind##_12}
typedef void Tile(const void *x, number inputs, const void *w, lanes out[][2]);
static Tile *const tiles[3][12] = {ALL(float), ALL(int8), ALL(bfloat)}; /* by the kind of product */
static const number bytes[3] = {4, 1, 2};

/* A row in fewer bits, as the products of its kind want it.
   INT8: x ~ scale * (rounded - 128). What is not a number stays so in the scale.
   BFLOAT16: the upper 16 bits of each float, to the nearest, ties to even. */
static void round_row(number kind, const float *x, number inputs, uint8_t *rounded, float *scale) {
    if (kind == INT8) {
        const float most = largest(x, inputs, 1), factor = most > 0 ? 127.0f / most : 0.0f;
        lanes wrong = {0};
        number k = 0;
        for (; k + LANES <= inputs; k += LANES) wrong += *(const lanes *)(x + k) * 0.0f;
        for (; k < inputs; k++) wrong[0] += x[k] * 0.0f;
        for (k = 0; k < inputs; k++) rounded[k] = (uint8_t)(int32_t)(x[k] * factor + 128.5f);
        *scale = most / 127.0f + total(wrong);
        return;
    }
    for (number k = 0; k < inputs; k++) {
        uint32_t bits;
        memcpy(&bits, x + k, 4);
        const uint32_t near = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
        const uint16_t half = (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? 0x7fff : near); /* NaN stays */
        memcpy(rounded + 2 * k, &half, 2);
    }
}

/* out = x W + b, or max(0, x W + b), (rows, outputs) with `stride` between rows of out. */
static void linear(const Linear *map, const float *x, number rows, float *out, number stride, int relu,
                   const Room *room) {
    const number inputs = map->inputs, outputs = map->outputs, panels = (outputs + PANEL - 1) / PANEL;
    const number chunks = (rows + CHUNK - 1) / CHUNK, size = bytes[map->kind], row = inputs * size;
    const char *from = map->kind == FLOAT32 ? (const char *)x : (const char *)room->rounded;
    const float *scales = room->scale;
    const int few = map->kind != FLOAT32 && rows <= FEW; /* each thread rounds for itself: cheaper than to wait */
    uint8_t own[few ? rows * row : 1];
    float own_scale[FEW];
    if (few) {
        for (number n = 0; n < rows; n++) round_row(map->kind, x + n * inputs, inputs, own + n * row, own_scale + n);
        from = (const char *)own, scales = own_scale;
    } else if (map->kind != FLOAT32) {
#pragma omp for schedule(static)
        for (number n = 0; n < rows; n++)
            round_row(map->kind, x + n * inputs, inputs, room->rounded + n * row, room->scale + n);
    }
#pragma omp for schedule(static)
    for (number unit = 0; unit < chunks * panels; unit++) {
        const number panel = unit % panels, first = unit / panels * CHUNK;
        const number last = first + CHUNK < rows ? first + CHUNK : rows;
        const number column = panel * PANEL, columns = outputs - column < PANEL ? outputs - column : PANEL;
        const char *weight = (const char *)map->weight + panel * PANEL * inputs * size;
        for (number n = first; n < last; n += ROWS) {
            const int count = (int)(last - n < ROWS ? last - n : ROWS);
            lanes tile[12][2];
            tiles[map->kind][count - 1](from + n * row, inputs, weight, tile);
            if (map->kind == INT8)
                for (int r = 0; r < count; r++)
                    for (int half = 0; half < 2; half++) {
                        const number at = column + half * LANES;
                        const whole sum = (whole)tile[r][half] - *(const whole *)(map->sum + at);
                        const lanes scale = *(const lanes *)(map->scale + at) * scales[n + r];
                        tile[r][half] = __builtin_convertvector(sum, lanes) * scale;
                    }
            const float *bias = map->bias + column;
            const lanes left = *(const lanes *)bias, right = *(const lanes *)(bias + LANES);
            for (int r = 0; r < count; r++) {
                tile[r][0] += left, tile[r][1] += right;
                if (relu) tile[r][0] = positive(tile[r][0]), tile[r][1] = positive(tile[r][1]);
                memcpy(out + (n + r) * stride + column, tile[r], (size_t)columns * sizeof(float));
            }
        }
    }
}

/* ------------------------------------------------------------ functions of single rows */

/* e^v to 1e-7: 2^n e^r with |r| <= ln 2 / 2. Beyond what a float can hold the nearest that it can; NaN stays. */
static inline lanes exponential(lanes v) {
    const lanes bound = (lanes){0} + 87.0f;
    v = choose(v < -bound, -bound, choose(v > bound, bound, v));
    const lanes shifted = v * 1.44269504f + 12582912.0f; /* rounds to the nearest whole number */
    const lanes n = shifted - 12582912.0f, r = v - n * 0.693359375f - n * -2.12194440e-4f;
    lanes e = r * 1.9875691500e-4f + 1.3981999507e-3f;
    e = e * r + 8.3334519073e-3f;
    e = e * r + 4.1665795894e-2f;
    e = e * r + 1.6666665459e-1f;
    e = e * r + 5.0000001201e-1f;
    e = e * r * r + r + 1.0f;
    const whole power = (__builtin_convertvector(n, whole) + 127) << 23;
    return e * (lanes)power;
}

static inline float dot(const float *a, const float *b, number count) {
    lanes sum = {0};
    number k = 0;
    for (; k + LANES <= count; k += LANES) sum += *(const lanes *)(a + k) * *(const lanes *)(b + k);
    float rest = 0;
    for (; k < count; k++) rest += a[k] * b[k];
    return total(sum) + rest;
}

static inline void add_scaled(float *to, const float *from, float factor, number count) {
    number k = 0;
    for (; k + LANES <= count; k += LANES) *(lanes *)(to + k) += factor * *(const lanes *)(from + k);
    for (; k < count; k++) to[k] += factor * from[k];
}

/* softmax in place; returns log(sum e^(v - max)) + max */
static float softmax(float *v, number count, int keep) {
    const float most = largest(v, count, 0);
    float sum = 0;
    number k = 0;
    lanes sums = {0};
    for (; k + LANES <= count; k += LANES) {
        const lanes e = exponential(*(const lanes *)(v + k) - most);
        sums += e;
        if (!keep) *(lanes *)(v + k) = e;
    }
    if (k < count) {
        lanes tail = (lanes){0} - INFINITY;
        memcpy(&tail, v + k, (size_t)(count - k) * sizeof(float));
        tail = exponential(tail - most);
        for (number i = 0; i < count - k; i++) sum += tail[i];
        if (!keep) memcpy(v + k, &tail, (size_t)(count - k) * sizeof(float));
    }
    sum += total(sums);
    if (keep) return logf(sum) + most;
    const float share = 1.0f / sum;
    for (k = 0; k < count; k++) v[k] *= share;
    return 0;
}

static void normalise(const Norm *norm, const float *x, float *out, number width) {
    if (norm->kind == NO_NORM) {
        if (out != x) memcpy(out, x, (size_t)width * sizeof(float));
        return;
    }
    float mean = 0, square = 0;
    if (norm->kind == LAYER_NORM) {
        lanes sum = {0};
        number k = 0;
        for (; k + LANES <= width; k += LANES) sum += *(const lanes *)(x + k);
        mean = total(sum);
        for (; k < width; k++) mean += x[k];
        mean /= (float)width;
    }
    lanes sum = {0};
    number k = 0;
    for (; k + LANES <= width; k += LANES) {
        const lanes d = *(const lanes *)(x + k) - mean;
        sum += d * d;
    }
    square = total(sum);
    for (; k < width; k++) square += (x[k] - mean) * (x[k] - mean);
    const float factor = 1.0f / sqrtf(square / (float)width + (float)norm->eps);
    if (norm->kind == LAYER_NORM)
        for (k = 0; k < width; k++) out[k] = (x[k] - mean) * factor * norm->weight[k] + norm->bias[k];
    else
        for (k = 0; k < width; k++) out[k] = x[k] * factor * norm->weight[k];
}

static void turn(float *x, const float *turns, number width) {
    const float *cosine = turns, *sine = turns + width;
    const number half = width / 2;
    for (number i = 0; i < half; i++) {
        const float first = x[i], second = x[i + half];
        x[i] = first * cosine[i] - second * sine[i];
        x[i + half] = second * cosine[i + half] + first * sine[i + half];
    }
}

static void activate(const Stack *stack, float *wide, number rows) {
    const number inner = stack->feed_forward, columns = stack->activation == SWIGLU ? 2 * inner : inner;
#pragma omp for schedule(static)
    for (number n = 0; n < rows; n++) {
        float *from = wide + n * columns;
        if (stack->activation == GELU)
            for (number k = 0; k < inner; k++) from[k] *= 0.5f + 0.5f * erff(from[k] * 0.70710678f);
        else
            for (number k = 0; k < inner; k += LANES) {
                lanes v = {0};
                const size_t bytes = (size_t)(inner - k < LANES ? inner - k : LANES) * sizeof(float);
                memcpy(&v, from + k, bytes);
                v /= 1.0f + exponential(-v);
                memcpy(from + k, &v, bytes);
            }
        if (stack->activation == SWIGLU)
            for (number k = 0; k < inner; k++) from[k] *= from[inner + k];
    }
}

/* ------------------------------------------------------------ attention */

/* The heads of one group of one row look at `count` keys and values. Those of word t stand at index[t] (NULL: at t);
   bias(t) is added to the scores where there is a table; the mean weights are added to `covered`. */
static void look(const Stack *stack, const float *query, const float *key, const float *value, number stride,
                 const int32_t *index, number count, const float *bias, number bias_stride, float *out, float *covered,
                 float share) {
    const number width = stack->head_width, each = stack->heads / stack->groups;
    float score[count];
    for (number h = 0; h < each; h++, query += width, out += width) {
        for (number t = 0; t < count; t++) score[t] = dot(query, key + (index ? index[t] : t) * stride, width);
        if (bias)
            for (number t = 0; t < count; t++) score[t] += bias[h * bias_stride + t];
        softmax(score, count, 0);
        memset(out, 0, (size_t)width * sizeof(float));
        for (number t = 0; t < count; t++) add_scaled(out, value + (index ? index[t] : t) * stride, score[t], width);
        if (covered)
            for (number t = 0; t < count; t++) covered[t] += share * score[t];
    }
}

/* ------------------------------------------------------------ the parts of a block */

static void embed(const Stack *stack, const Positions *positions, const int64_t *tokens, const int64_t *position,
                  number rows, float *x) {
    const number width = stack->width;
    const float scale = (float)stack->scale;
#pragma omp for schedule(static)
    for (number n = 0; n < rows; n++) {
        const float *word = stack->embedding + tokens[n] * width;
        const float *place = positions->added ? positions->added + position[n] * width : NULL;
        for (number k = 0; k < width; k++) x[n * width + k] = word[k] * scale + (place ? place[k] : 0.0f);
    }
}

/* What goes into the next sublayer: x itself (post-norm), or x normalised. */
static const float *before(const Stack *stack, const Norm *norm, number rows, const Room *room) {
    if (!stack->pre) return room->x;
#pragma omp for schedule(static)
    for (number n = 0; n < rows; n++)
        normalise(norm, room->x + n * stack->width, room->normed + n * stack->width, stack->width);
    return room->normed;
}

/* x + map(from), normalised (post-norm). */
static void after(const Stack *stack, const Linear *map, const Norm *norm, const float *from, number rows,
                  const Room *room) {
    const number width = stack->width;
    linear(map, from, rows, room->normed, width, 0, room);
#pragma omp for schedule(static)
    for (number n = 0; n < rows; n++) {
        float *x = room->x + n * width;
        for (number k = 0; k < width; k++) x[k] += room->normed[n * width + k];
        if (!stack->pre) normalise(norm, x, x, width);
    }
}

static void feed_forward(const Stack *stack, const Block *block, number rows, const Room *room) {
    const number columns = block->inner.outputs;
    const int relu = stack->activation == RELU;
    linear(&block->inner, before(stack, &block->feed_norm, rows, room), rows, room->wide, columns, relu, room);
    if (!relu) activate(stack, room->wide, rows);
    const float *inner = room->wide;
    if (columns != stack->feed_forward) { /* the gates lie between the rows: close the gaps */
#pragma omp single
        for (number n = 1; n < rows; n++)
            memmove(room->wide + n * stack->feed_forward, room->wide + n * columns,
                    (size_t)stack->feed_forward * sizeof(float));
    }
    after(stack, &block->outer, &block->feed_norm, inner, rows, room);
}

static void finish(const Stack *stack, number rows, const Room *room) {
#pragma omp for schedule(static)
    for (number n = 0; n < rows; n++)
        normalise(&stack->norm, room->x + n * stack->width, room->x + n * stack->width, stack->width);
}

static const float *bias_of(const Stack *stack, const Positions *positions, number group, number position) {
    const number head = group * (stack->heads / stack->groups);
    return positions->relative ? positions->relative + head * positions->reach + positions->origin - position : NULL;
}

/* ------------------------------------------------------------ what is called from outside */

number jumok_panel(void) { return PANEL; }

number jumok_has_int8(void) {
#ifdef __AVX512VNNI__
    return 1;
#else
    return 0;
#endif
}

number jumok_has_bfloat16(void) {
#ifdef __AVX512BF16__
    return 1;
#else
    return 0;
#endif
}

number jumok_has_threads(void) {
#ifdef _OPENMP
    return 1;
#else
    return 0;
#endif
}

/* Read sentences: `rows` words of which `tokens` and `position` tell; word n belongs to the sentence that begins at row
   first[n] and has length[n] words. Then `count` maps make of them what the decoder's layers look at: (count, rows,
   keys). */
void jumok_read(const Stack *stack, const Positions *positions, const Room *room, number threads, number rows,
                const int64_t *tokens, const int64_t *position, const int64_t *first, const int64_t *length,
                const Linear *memory, number count, float *out) {
    const number width = stack->head_width, queries = stack->heads * width, keys = stack->groups * width;
    const number columns = queries + 2 * keys, each = stack->heads / stack->groups;
#pragma omp parallel num_threads((int)threads)
    {
        embed(stack, positions, tokens, position, rows, room->x);
        for (number l = 0; l < stack->layers; l++) {
            const Block *block = stack->blocks + l;
            const float *from = before(stack, &block->attention_norm, rows, room);
            linear(&block->project, from, rows, room->wide, columns, 0, room);
            if (positions->turns) {
#pragma omp for schedule(static)
                for (number n = 0; n < rows; n++)
                    for (number h = 0; h < stack->heads + stack->groups; h++)
                        turn(room->wide + n * columns + h * width, positions->turns + position[n] * 2 * width, width);
            }
#pragma omp for schedule(static)
            for (number unit = 0; unit < rows * stack->groups; unit++) {
                const number n = unit / stack->groups, g = unit % stack->groups;
                const float *start = room->wide + first[n] * columns + queries + g * width;
                look(stack, room->wide + n * columns + g * each * width, start, start + keys, columns, NULL, length[n],
                     bias_of(stack, positions, g, position[n]), positions->reach,
                     room->seen + n * queries + g * each * width, NULL, 0);
            }
            after(stack, &block->output, &block->attention_norm, room->seen, rows, room);
            feed_forward(stack, block, rows, room);
        }
        finish(stack, rows, room);
        for (number part = 0; part < count; part++)
            linear(memory + part, room->x, rows, out + part * rows * keys, keys, 0, room);
    }
}

typedef struct {
    number rows, threads;
    const int64_t *tokens, *position;
    float *const *past;       /* of each layer: (entry, 2, groups * head_width), keys and values */
    const int32_t *ancestors; /* (rows, room): the entries of the words before */
    number room;
    const int32_t *entry;     /* (rows): where the new words go */
    const int64_t *source;    /* (rows, 4): address of a sentence's first key, floats from keys to values and from layer
                                 to layer, words, and one that is not ours */
    float *covered;           /* (rows, covered_room) or NULL */
    number covered_room;
    float *out;               /* (rows, vocabulary): log-probabilities */
} Step;

/* One more word for each row. */
void jumok_step(const Stack *stack, const Positions *positions, const Room *room, const Linear *head,
                const Step *step) {
    const number rows = step->rows, width = stack->head_width, queries = stack->heads * width;
    const number keys = stack->groups * width, columns = queries + 2 * keys, each = stack->heads / stack->groups;
    const float share = 1.0f / (float)(stack->heads * stack->layers);
#pragma omp parallel num_threads((int)step->threads)
    {
        embed(stack, positions, step->tokens, step->position, rows, room->x);
        for (number l = 0; l < stack->layers; l++) {
            const Block *block = stack->blocks + l;
            float *past = step->past[l];
            const float *from = before(stack, &block->attention_norm, rows, room);
            linear(&block->project, from, rows, room->wide, columns, 0, room);
#pragma omp for schedule(static)
            for (number unit = 0; unit < rows * stack->groups; unit++) {
                const number n = unit / stack->groups, g = unit % stack->groups, at = step->position[n];
                float *query = room->wide + n * columns + g * each * width, *key = room->wide + n * columns + queries;
                if (positions->turns) {
                    const float *turns = positions->turns + at * 2 * width;
                    for (number h = 0; h < each; h++) turn(query + h * width, turns, width);
                    turn(key + g * width, turns, width);
                }
                float *own = past + step->entry[n] * 2 * keys + g * width;
                memcpy(own, key + g * width, (size_t)width * sizeof(float));
                memcpy(own + keys, key + keys + g * width, (size_t)width * sizeof(float));
                look(stack, query, past + g * width, past + keys + g * width, 2 * keys,
                     step->ancestors + n * step->room, at + 1, bias_of(stack, positions, g, at), positions->reach,
                     room->seen + n * queries + g * each * width, NULL, 0);
            }
            after(stack, &block->output, &block->attention_norm, room->seen, rows, room);
            from = before(stack, &block->cross_norm, rows, room);
            linear(&block->cross_query, from, rows, room->wide, queries, 0, room);
            const number parts = step->covered ? 1 : stack->groups; /* one thread sums up what a row covers */
#pragma omp for schedule(static)
            for (number unit = 0; unit < rows * parts; unit++) {
                const number n = unit / parts, many = stack->groups / parts;
                const int64_t *source = step->source + n * 4;
                const float *key = (const float *)(intptr_t)source[0] + l * 2 * source[1];
                float *covered = step->covered ? step->covered + n * step->covered_room : NULL;
                for (number g = unit % parts * many; g < (unit % parts + 1) * many; g++)
                    look(stack, room->wide + n * queries + g * each * width, key + g * width,
                         key + source[1] + g * width, keys, NULL, source[2], NULL, 0,
                         room->seen + n * queries + g * each * width, covered, share);
            }
            after(stack, &block->cross_output, &block->cross_norm, room->seen, rows, room);
            feed_forward(stack, block, rows, room);
        }
        finish(stack, rows, room);
        const number words = head->outputs;
        linear(head, room->x, rows, step->out, words, 0, room);
#pragma omp for schedule(static)
        for (number n = 0; n < rows; n++) {
            const float sum = softmax(step->out + n * words, words, 1);
            for (number k = 0; k < words; k++) step->out[n * words + k] -= sum;
        }
    }
}

/* The `count` largest of `words` numbers in each row, the largest first, of equal ones the earlier first; -infinity where
   there are fewer. If something in a row is not a number, neither is the first of them. */
void jumok_best(const float *values, number rows, number words, number count, number threads, float *best,
                int64_t *token) {
    (void)threads;
#pragma omp parallel for schedule(static) num_threads((int)threads)
    for (number n = 0; n < rows; n++) {
        const float *row = values + n * words;
        float *most = best + n * count;
        int64_t *where = token + n * count;
        int wrong = 0;
        for (number i = 0; i < count; i++) most[i] = -INFINITY, where[i] = 0;
        for (number k = 0; k < words; k += 4 * LANES) {
            const number end = k + 4 * LANES < words ? k + 4 * LANES : words;
            if (end - k == 4 * LANES) { /* most blocks have nothing to offer */
                const lanes a = *(const lanes *)(row + k), b = *(const lanes *)(row + k + LANES);
                const lanes c = *(const lanes *)(row + k + 2 * LANES), d = *(const lanes *)(row + k + 3 * LANES);
                const lanes edge = (lanes){0} + most[count - 1];
                if (!any(~((a <= edge) & (b <= edge) & (c <= edge) & (d <= edge)))) continue;
            }
            for (number at = k; at < end; at++) {
                const float value = row[at];
                wrong |= value != value;
                if (!(value > most[count - 1])) continue;
                number i = count - 1;
                for (; i > 0 && value > most[i - 1]; i--) most[i] = most[i - 1], where[i] = where[i - 1];
                most[i] = value, where[i] = at;
            }
        }
        if (wrong) most[0] = NAN;
    }
}
