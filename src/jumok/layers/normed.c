/* Behind a convolution: a norm over each picture, GELU, and what is added to it, in one call: layers/normed_native.py.

   out = gelu((x - mean) / sqrt(var + eps) * weight + bias) + added

   Pictures are (places, channels), one after the other; the numbers of one stay in a core's cache between the looks for
   its mean, for its variance, and for the rest. */

#include "lanes.h"

static inline lanes loaded(const void *x, int narrow, number at) {
    return narrow ? widened(*(const halves *)((const uint16_t *)x + at)) : *(const lanes *)((const float *)x + at);
}

static inline void stored(void *x, int narrow, number at, lanes v) {
    if (narrow)
        *(halves *)((uint16_t *)x + at) = narrowed(v);
    else
        *(lanes *)((float *)x + at) = v;
}

static inline float single(const void *x, int narrow, number at) {
    if (!narrow) return ((const float *)x)[at];
    const uint32_t bits = (uint32_t)((const uint16_t *)x)[at] << 16;
    float found;
    memcpy(&found, &bits, 4);
    return found;
}

static inline __attribute__((always_inline)) void picture(const int narrow, const void *x, const void *added, void *out,
                                                          number places, number channels, const float *weight,
                                                          const float *bias, double eps) {
    const number all = places * channels;
    number k = 0;
    lanes sums[4] = {{0}}, squares[4] = {{0}};
    float rest = 0, rest_squares = 0;
    for (; k + 4 * LANES <= all; k += 4 * LANES)
        for (int i = 0; i < 4; i++) sums[i] += loaded(x, narrow, k + i * LANES);
    for (; k < all; k++) rest += single(x, narrow, k);
    const float mean = (total(sums[0] + sums[1] + sums[2] + sums[3]) + rest) / (float)all;
    for (k = 0; k + 4 * LANES <= all; k += 4 * LANES)
        for (int i = 0; i < 4; i++) {
            const lanes apart = loaded(x, narrow, k + i * LANES) - mean;
            squares[i] += apart * apart;
        }
    for (; k < all; k++) rest_squares += (single(x, narrow, k) - mean) * (single(x, narrow, k) - mean);
    const float square = total(squares[0] + squares[1] + squares[2] + squares[3]) + rest_squares;
    const float factor = 1.0f / sqrtf(square / (float)all + (float)eps);
    const number whole_lanes = channels / LANES * LANES;
    for (number n = 0; n < places; n++) {
        const number row = n * channels;
        for (number c = 0; c < whole_lanes; c += LANES) {
            lanes v = (loaded(x, narrow, row + c) - mean) * factor;
            v = gelu(v * *(const lanes *)(weight + c) + *(const lanes *)(bias + c));
            if (added) v += loaded(added, narrow, row + c);
            stored(out, narrow, row + c, v);
        }
        if (whole_lanes < channels) { /* what is left of a row is fewer than a register holds */
            const size_t left = (size_t)(channels - whole_lanes), bytes = left * (narrow ? 2 : 4);
            const number at = row + whole_lanes, size = narrow ? 2 : 4;
            char some[4 * LANES] = {0}, more[4 * LANES] = {0};
            lanes w = {0}, b = {0};
            memcpy(some, (const char *)x + at * size, bytes);
            memcpy(&w, weight + whole_lanes, left * 4);
            memcpy(&b, bias + whole_lanes, left * 4);
            lanes v = gelu((loaded(some, narrow, 0) - mean) * factor * w + b);
            if (added) {
                memcpy(more, (const char *)added + at * size, bytes);
                v += loaded(more, narrow, 0);
            }
            stored(some, narrow, 0, v);
            memcpy((char *)out + at * size, some, bytes);
        }
    }
}

void jumok_normed(const void *x, const void *added, void *out, number narrow, number pictures, number places,
                  number channels, const float *weight, const float *bias, double eps, number threads) {
    (void)threads;
    const number step = places * channels * (narrow ? 2 : 4);
#pragma omp parallel for schedule(static) num_threads((int)threads)
    for (number n = 0; n < pictures; n++) {
        const void *own = (const char *)x + n * step, *its = added ? (const char *)added + n * step : NULL;
        void *to = (char *)out + n * step;
        if (narrow)
            picture(1, own, its, to, places, channels, weight, bias, eps);
        else
            picture(0, own, its, to, places, channels, weight, bias, eps);
    }
}
