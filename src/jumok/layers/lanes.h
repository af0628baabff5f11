/* Many numbers at a time, in whatever registers the processor has. */

#pragma once

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __AVX512F__
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
enum { LANES = 16 }; /* floats in a register */
#elif defined(__AVX2__)
enum { LANES = 8 };
#else
enum { LANES = 4 };
#endif

typedef float lanes __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t whole __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef uint16_t halves __attribute__((vector_size(2 * LANES), aligned(2), may_alias)); /* of bfloat16 */
typedef uint32_t bits __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef long long number;

static inline lanes choose(whole where, lanes yes, lanes no) {
    return (lanes)((where & (whole)yes) | (~where & (whole)no));
}

/* The larger of two; what is no number in `a` is passed over. */
static inline lanes larger(lanes a, lanes b) {
#ifdef __AVX512F__
    return (lanes)_mm512_max_ps((__m512)a, (__m512)b);
#else
    return choose(a > b, a, b);
#endif
}

/* The smaller of two; what is no number in `a` is passed over. */
static inline lanes smaller(lanes a, lanes b) {
#ifdef __AVX512F__
    return (lanes)_mm512_min_ps((__m512)a, (__m512)b);
#else
    return choose(a < b, a, b);
#endif
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

static inline lanes widened(halves v) { return (lanes)(__builtin_convertvector(v, bits) << 16); }

/* to bfloat16: to the nearest, halfway to the even one; NaN stays */
static inline halves narrowed(lanes v) {
    const bits b = (bits)v, nearest = (b + 0x7fff + ((b >> 16) & 1)) >> 16, none = (bits)(v != v);
    return __builtin_convertvector((nearest & ~none) | (none & 0x7fc0), halves);
}

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
        most = larger(each, most);
    }
#ifdef __AVX512F__
    float found = _mm512_reduce_max_ps((__m512)most);
#else
    float found = -INFINITY;
    for (int i = 0; i < LANES; i++) found = most[i] > found ? most[i] : found;
#endif
    for (; k < count; k++) {
        const float each = sizes ? fabsf(v[k]) : v[k];
        found = each > found ? each : found;
    }
    return found;
}

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

/* v Phi(v), the normal distribution's, to 1e-6 of max(1, |v|); NaN stays. Phi(v) = 1/2 + v q(t) with a polynomial (a
   minimax fit, held to Phi(5.4) = 1) of t = 2 (v / 5.4)^2 - 1, between -1 and 1: no exponential, no division. */
static inline lanes gelu(lanes v) {
    const lanes bound = (lanes){0} + 5.4f, x = smaller(larger(v, -bound), bound);
    const lanes t = x * x * 0.0685871056f - 1.0f;
    lanes q = t * 4.72464249e-4f - 1.13721343e-3f;
    q = q * t + 6.88599539e-4f;
    q = q * t - 8.97481048e-4f;
    q = q * t + 3.80632491e-3f;
    q = q * t - 7.00381165e-3f;
    q = q * t + 9.61258356e-3f;
    q = q * t - 1.38288233e-2f;
    q = q * t + 1.96412653e-2f;
    q = q * t - 2.57759001e-2f;
    q = q * t + 3.21194418e-2f;
    q = q * t - 3.92041728e-2f;
    q = q * t + 4.84993197e-2f;
    q = q * t - 6.53281212e-2f;
    q = q * t + 1.30928129e-1f;
    return v * larger(q * x + 0.5f, (lanes){0});
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
static inline float softmax(float *v, number count, int keep) {
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

/* to = fromᵀ: (width, padded) of (rows, width), 0 where there is no row; width and padded are multiples of 16. */
static inline void transpose(const float *from, number stride, number rows, number width, float *to, number to_stride,
                             number padded) {
#ifdef __AVX512F__
    for (number r = 0; r < padded; r += 16)
        for (number column = 0; column < width; column += 16) {
            __m512 x[16], y[16];
            for (int i = 0; i < 16; i++)
                x[i] = r + i < rows ? _mm512_loadu_ps(from + (r + i) * stride + column) : _mm512_setzero_ps();
            for (int i = 0; i < 16; i += 2) {
                y[i] = _mm512_unpacklo_ps(x[i], x[i + 1]);
                y[i + 1] = _mm512_unpackhi_ps(x[i], x[i + 1]);
            }
            for (int i = 0; i < 16; i += 4) {
                x[i] = _mm512_shuffle_ps(y[i], y[i + 2], 0x44);
                x[i + 1] = _mm512_shuffle_ps(y[i], y[i + 2], 0xee);
                x[i + 2] = _mm512_shuffle_ps(y[i + 1], y[i + 3], 0x44);
                x[i + 3] = _mm512_shuffle_ps(y[i + 1], y[i + 3], 0xee);
            }
            for (int i = 0; i < 4; i++) { /* now each quarter of a register is a piece of a column */
                y[i] = _mm512_shuffle_f32x4(x[i], x[i + 4], 0x88);
                y[i + 4] = _mm512_shuffle_f32x4(x[i], x[i + 4], 0xdd);
                y[i + 8] = _mm512_shuffle_f32x4(x[i + 8], x[i + 12], 0x88);
                y[i + 12] = _mm512_shuffle_f32x4(x[i + 8], x[i + 12], 0xdd);
            }
            for (int i = 0; i < 8; i++) {
                _mm512_storeu_ps(to + (column + i) * to_stride + r, _mm512_shuffle_f32x4(y[i], y[i + 8], 0x88));
                _mm512_storeu_ps(to + (column + i + 8) * to_stride + r, _mm512_shuffle_f32x4(y[i], y[i + 8], 0xdd));
            }
        }
#else
    for (number r = 0; r < padded; r++)
        for (number column = 0; column < width; column++)
            to[column * to_stride + r] = r < rows ? from[r * stride + column] : 0;
#endif
}
