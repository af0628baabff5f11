/* The softmax of logits, its losses and its gradient, a row at a time: layers/loss.py writes out the same,
   layers/loss_native.py calls this.

   A row goes three times through the cache next to the processor, and once through memory: for the largest logit and
   the sum of all; for e^(x - largest) and their sum; for the gradient, which is written where the logits were. */

#include "lanes.h"

typedef struct {
    void *logits; /* float, or bfloat16 */
    number low, rows, vocabulary, stride;
    const float *bias; /* NULL: it is in the logits already */
    const int64_t *target; /* below 0: no word */
    double smoothing;
    number learns;
    float *smoothed, *plain; /* (rows) */
    float *sums;             /* (vocabulary) those of the gradient are added; NULL: nobody wants them */
} Loss;

static inline lanes load(const void *row, number low, number k, number count) {
    lanes v = {0};
    if (low) {
        halves h = {0};
        if (count < LANES)
            memcpy(&h, (const uint16_t *)row + k, (size_t)count * sizeof(uint16_t));
        else
            h = *(const halves *)((const uint16_t *)row + k);
        v = widened(h);
    } else if (count < LANES)
        memcpy(&v, (const float *)row + k, (size_t)count * sizeof(float));
    else
        v = *(const lanes *)((const float *)row + k);
    return v;
}

static inline void store(void *row, number low, number k, number count, lanes v) {
    if (low) {
        const halves h = narrowed(v);
        if (count < LANES)
            memcpy((uint16_t *)row + k, &h, (size_t)count * sizeof(uint16_t));
        else
            *(halves *)((uint16_t *)row + k) = h;
    } else if (count < LANES)
        memcpy((float *)row + k, &v, (size_t)count * sizeof(float));
    else
        *(lanes *)((float *)row + k) = v;
}

/* `x` and `sums` have room for the vocabulary rounded up to LANES; `low` is known where this is compiled. */
static inline __attribute__((always_inline)) void word(const Loss *loss, number n, number low, float *x, float *sums) {
    const number vocabulary = loss->vocabulary, target = loss->target[n], tail = vocabulary % LANES;
    const number whole_lanes = vocabulary - tail;
    void *row = (char *)loss->logits + n * loss->stride * (low ? 2 : 4);
    if (target < 0) {
        loss->smoothed[n] = loss->plain[n] = 0;
        if (loss->learns) memset(row, 0, (size_t)vocabulary * (low ? 2 : 4));
        return;
    }
    lanes most = (lanes){0} - INFINITY, added = {0}, all = {0};
    for (number k = 0; k < whole_lanes; k += LANES) {
        lanes v = load(row, low, k, LANES);
        if (loss->bias) v += *(const lanes *)(loss->bias + k);
        *(lanes *)(x + k) = v;
        most = larger(v, most);
        added += v;
    }
    if (tail) {
        lanes v = load(row, low, whole_lanes, tail), ends;
        if (loss->bias) v += load(loss->bias, 0, whole_lanes, tail);
        for (number i = 0; i < LANES; i++) ends[i] = i < tail ? v[i] : -INFINITY;
        for (number i = 0; i < tail; i++) added[i] += v[i];
        most = larger(ends, most);
        *(lanes *)(x + whole_lanes) = ends;
    }
    float highest = -INFINITY;
    for (number i = 0; i < LANES; i++) highest = most[i] > highest ? most[i] : highest;
    const float wanted = x[target];
    for (number k = 0; k < vocabulary; k += LANES) {
        const lanes e = exponential(*(const lanes *)(x + k) - highest);
        *(lanes *)(x + k) = e;
        all += e;
    }
    const float sum = total(all), level = highest + logf(sum), plain = level - wanted;
    const float smoothing = (float)loss->smoothing;
    loss->plain[n] = plain;
    loss->smoothed[n] =
        smoothing ? (1 - smoothing) * plain + smoothing * (level - total(added) / (float)vocabulary) : plain;
    if (!loss->learns) return;
    x[target] -= (1 - smoothing) * sum;
    const float share = 1 / sum, even = smoothing / (float)vocabulary;
    for (number k = 0; k < vocabulary; k += LANES) {
        const lanes gradient = *(const lanes *)(x + k) * share - even;
        if (sums) *(lanes *)(sums + k) += gradient;
        store(row, low, k, k < whole_lanes ? LANES : tail, gradient);
    }
}

/* The rows are cut into `parts`, each with a room of its own, (parts, 2, width): what comes out depends on how many
   parts there are, and not on who computes which. Returns how many targets are beyond the vocabulary: then nothing was
   done. */
number jumok_loss(const Loss *loss, number parts, number width, float *room) {
    number wrong = 0;
    for (number n = 0; n < loss->rows; n++) wrong += loss->target[n] >= loss->vocabulary;
    if (wrong) return wrong;
#pragma omp parallel for schedule(static) num_threads((int)parts)
    for (number part = 0; part < parts; part++) {
        float *x = room + part * 2 * width, *sums = loss->sums ? x + width : NULL;
        if (sums) memset(sums, 0, (size_t)width * sizeof(float));
        const number end = loss->rows * (part + 1) / parts;
        for (number n = loss->rows * part / parts; n < end; n++)
            if (loss->low)
                word(loss, n, 1, x, sums);
            else
                word(loss, n, 0, x, sums);
    }
    if (loss->sums)
        for (number part = 0; part < parts; part++)
            for (number k = 0; k < loss->vocabulary; k++) loss->sums[k] += room[(2 * part + 1) * width + k];
    return 0;
}
