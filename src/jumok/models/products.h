/* x W + b for all rows at once, in float32, bfloat16 or int8: tiles of some rows and a panel of outputs, whose sums stay
   in registers. `linear` is called by all threads of a parallel region. */

#pragma once

#include "lanes.h"

#ifdef __AVX512F__
enum { ROWS = 12 }; /* rows of a tile, as many as registers can hold */
#else
enum { ROWS = 6 };
#endif
enum { PANEL = 2 * LANES, CHUNK = 8 * ROWS, FEW = 8 }; /* columns of a tile; rows that use a panel before the next */

enum { FLOAT32, INT8, BFLOAT16 };
enum { RELU, GELU, SILU, SWIGLU, NONE };

typedef struct {
    number inputs, outputs, kind;
    const void *weight; /* panels of PANEL outputs: (panel, inputs, PANEL), INT8: (panel, inputs/4, PANEL, 4),
                           BFLOAT16: (panel, inputs/2, PANEL, 2) */
    const float *bias, *scale; /* of every output; INT8: weight = scale * integer */
    const int32_t *sum;        /* INT8: 128 times the sum of an output's integers */
} Linear;

typedef struct { /* room for intermediate results of all rows */
    float *x, *normed, *wide, *seen, *scale;
    uint8_t *rounded; /* 2 bytes for each input of a product */
} Room;

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

/* A row of a tile to where it belongs; most are whole. */
static inline void put(float *to, const lanes tile[2], number columns) {
    if (columns >= PANEL)
        *(lanes *)to = tile[0], *(lanes *)(to + LANES) = tile[1];
    else
        memcpy(to, tile, (size_t)columns * sizeof(float));
}

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

/* out = f(x W + b), (rows, outputs) with `stride` between rows of out; f is RELU, GELU or nothing. */
static void linear(const Linear *map, const float *x, number rows, float *out, number stride, number activation,
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
                if (activation == RELU) tile[r][0] = positive(tile[r][0]), tile[r][1] = positive(tile[r][1]);
                if (activation == GELU) tile[r][0] = gelu(tile[r][0]), tile[r][1] = gelu(tile[r][1]);
                put(out + (n + r) * stride + column, tile[r], columns);
            }
        }
    }
}
