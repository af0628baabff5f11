/* Attention of many short sentences, forwards and backwards: layers/attention_native.py calls this.

       S = scale Q Kᵀ    P = softmax(S)    O = P V           dV = Pᵀ dO    dP = dO Vᵀ    dS = P (dP - Σ P dP)
                                                             dQ = scale dS K    dK = scale dSᵀ Q

   One head of one sentence at a time, all of it in the cache; in float, whatever comes in and goes out. Rows are read
   and written where they lie: no copy is made of a batch to bring its heads together. Weights are kept for the way
   back: while sentences are short they are fewer numbers than the queries. */

#include "lanes.h"

enum { PANEL = 4 }; /* registers side by side, and rows below each other: as many as the processor has */
#if defined(__AVX512F__) || !defined(__x86_64__)
enum { ROWS = 6 };
#else
enum { ROWS = 3 };
#endif
enum { ALL, UNTIL, FROM }; /* which k a row r of a product goes over: all; k <= r + ahead; k >= r - ahead */

typedef struct {
    void *at; /* numbers of a head lie together */
    number batch, head, row;
} Rows;

typedef struct {
    number low, batch, heads, queries, keys, width, causal; /* low: bfloat16; width: a multiple of 16 */
    double scale;
    const uint8_t *mask; /* (batch, keys) 0: nobody may look there; or NULL */
    Rows query, key, value, out, d_query, d_key, d_value; /* on the way back `out` is its gradient */
    float *weights;                                       /* (batch, heads, queries, keys rounded up to 16) */
} Attention;

/* ------------------------------------------------------------ products */

static inline __attribute__((always_inline)) void tile(number rows, number panel, number begin, number end,
                                                       const float *a, number a_row, number a_k, const float *b,
                                                       number b_k, float *c, number c_row) {
    lanes sum[ROWS][PANEL];
#pragma GCC unroll 6
    for (number r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (number p = 0; p < panel; p++) sum[r][p] = (lanes){0};
    for (number k = begin; k < end; k++) {
        const float *from = b + k * b_k;
#pragma GCC unroll 6
        for (number r = 0; r < rows; r++) {
            const float factor = a[r * a_row + k * a_k];
#pragma GCC unroll 4
            for (number p = 0; p < panel; p++) sum[r][p] += factor * *(const lanes *)(from + p * LANES);
        }
    }
#pragma GCC unroll 6
    for (number r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (number p = 0; p < panel; p++) *(lanes *)(c + r * c_row + p * LANES) = sum[r][p];
}

#define TILES(panel)                                                                                                   \
    static __attribute__((noinline)) void tile_##panel(number rows, number begin, number end, const float *a,          \
                                                       number a_row, number a_k, const float *b, number b_k, float *c, \
                                                       number c_row) {                                                 \
        switch (rows) {                                                                                                \
        case 1: tile(1, panel, begin, end, a, a_row, a_k, b, b_k, c, c_row); break;                                    \
        case 2: tile(2, panel, begin, end, a, a_row, a_k, b, b_k, c, c_row); break;                                    \
        case 3: tile(3, panel, begin, end, a, a_row, a_k, b, b_k, c, c_row); break;                                    \
        case 4: tile(ROWS < 4 ? ROWS : 4, panel, begin, end, a, a_row, a_k, b, b_k, c, c_row); break;                  \
        case 5: tile(ROWS < 5 ? ROWS : 5, panel, begin, end, a, a_row, a_k, b, b_k, c, c_row); break;                  \
        default: tile(ROWS, panel, begin, end, a, a_row, a_k, b, b_k, c, c_row);                                       \
        }                                                                                                              \
    }
TILES(1)
TILES(2)
TILES(3)
TILES(4)

/* c = a b: (rows, columns), columns a multiple of LANES, summed over `depth`; a(r, k) stands at a_row r + a_k k. */
static void multiply(number rows, number columns, number depth, const float *a, number a_row, number a_k,
                     const float *b, number b_k, float *c, number c_row, int over, number ahead) {
    for (number r = 0; r < rows; r += ROWS) {
        const number count = rows - r < ROWS ? rows - r : ROWS, last = r + count + ahead, first = r - ahead;
        const number begin = over == FROM && first > 0 ? first : 0, end = over == UNTIL && last < depth ? last : depth;
        for (number column = 0; column < columns; column += PANEL * LANES) {
            const float *from = a + r * a_row, *to = b + column;
            float *out = c + r * c_row + column;
            switch ((columns - column) / LANES) {
            case 1: tile_1(count, begin, end, from, a_row, a_k, to, b_k, out, c_row); break;
            case 2: tile_2(count, begin, end, from, a_row, a_k, to, b_k, out, c_row); break;
            case 3: tile_3(count, begin, end, from, a_row, a_k, to, b_k, out, c_row); break;
            default: tile_4(count, begin, end, from, a_row, a_k, to, b_k, out, c_row);
            }
        }
    }
}

/* ------------------------------------------------------------ rows of a head */

static inline number rounded(number count) { return (count + 15) / 16 * 16; }

/* Where rows of a head stand as floats, and how far apart: where they are, or in `room`. */
static const float *read(const Rows *rows, const Attention *of, number b, number h, number count, float *room,
                         number *stride) {
    const number begin = b * rows->batch + h * rows->head;
    *stride = of->low ? of->width : rows->row;
    if (!of->low) return (const float *)rows->at + begin;
    for (number r = 0; r < count; r++)
        for (number k = 0; k < of->width; k += LANES)
            *(lanes *)(room + r * of->width + k) =
                widened(*(const halves *)((const uint16_t *)rows->at + begin + r * rows->row + k));
    return room;
}

/* Where to write rows of a head: `written` brings them to their place if it is elsewhere. */
static float *place(const Rows *rows, const Attention *of, number b, number h, float *room, number *stride) {
    *stride = of->low ? of->width : rows->row;
    return of->low ? room : (float *)rows->at + b * rows->batch + h * rows->head;
}

/* ... and zeros behind them, up to `all`. */
static void written(const Rows *rows, const Attention *of, number b, number h, number count, number all,
                    const float *room) {
    const number begin = b * rows->batch + h * rows->head, size = of->low ? 2 : 4;
    for (number r = 0; of->low && r < count; r++)
        for (number k = 0; k < of->width; k += LANES)
            *(halves *)((uint16_t *)rows->at + begin + r * rows->row + k) =
                narrowed(*(const lanes *)(room + r * of->width + k));
    for (number r = count; r < all; r++)
        memset((char *)rows->at + (begin + r * rows->row) * size, 0, (size_t)(of->width * size));
}

/* How many keys there are up to the last one that may be looked at. */
static number visible(const Attention *of, number b) {
    number count = of->keys;
    while (of->mask && count && !of->mask[b * of->keys + count - 1]) count--;
    return count;
}

/* Scores to weights: e^(scale s - largest) / sum for the first `count`, 0 for the rest. None open: all 0. */
static void weigh(float *row, number count, number padded, float scale, const uint8_t *open) {
    const lanes none = (lanes){0} - INFINITY;
    whole place_in_lanes;
    for (int i = 0; i < LANES; i++) place_in_lanes[i] = i;
    lanes most = none, sums = {0};
    for (number k = 0; k < padded; k += LANES) {
        lanes v = choose(place_in_lanes < (int32_t)(count - k), *(lanes *)(row + k) * scale, none);
        for (number i = 0; open && i < LANES && k + i < count; i++)
            if (!open[k + i]) v[i] = -INFINITY;
        most = larger(v, most);
        *(lanes *)(row + k) = v;
    }
    float highest = -INFINITY;
    for (number i = 0; i < LANES; i++) highest = most[i] > highest ? most[i] : highest;
    for (number k = 0; k < padded; k += LANES) {
        const lanes v = *(lanes *)(row + k), e = choose(v == none, (lanes){0}, exponential(v - highest));
        sums += e;
        *(lanes *)(row + k) = e;
    }
    const float sum = total(sums), share = sum == 0 ? 0 : 1 / sum;
    for (number k = 0; k < padded; k += LANES) *(lanes *)(row + k) *= share;
}

/* ------------------------------------------------------------ one head of one sentence */

static void forwards(const Attention *of, number b, number h, float *room) {
    const number queries = of->queries, width = of->width, keys = visible(of, b), padded = rounded(keys);
    const number ahead = of->keys - queries, row = rounded(of->keys), size = rounded(of->keys + queries) * width;
    const int over = of->causal ? UNTIL : ALL;
    float *weights = of->weights + (b * of->heads + h) * queries * row, *turned = room + 2 * size;
    number q_row, k_row, out_row;
    const float *query = read(&of->query, of, b, h, queries, room, &q_row);
    const float *key = read(&of->key, of, b, h, keys, room + size, &k_row);
    transpose(key, k_row, keys, width, turned, padded, padded);
    multiply(queries, padded, width, query, q_row, 1, turned, padded, weights, row, ALL, 0);
    int holes = 0;
    for (number s = 0; of->mask && s < keys; s++) holes |= !of->mask[b * of->keys + s];
    for (number t = 0; t < queries; t++) {
        const number until = t + 1 + ahead, seen = of->causal && until < keys ? (until > 0 ? until : 0) : keys;
        weigh(weights + t * row, seen, padded, (float)of->scale, holes ? of->mask + b * of->keys : NULL);
    }
    const float *value = read(&of->value, of, b, h, keys, room + size, &k_row);
    float *out = place(&of->out, of, b, h, room, &out_row);
    multiply(queries, width, keys, weights, row, 1, value, k_row, out, out_row, over, ahead);
    written(&of->out, of, b, h, queries, queries, out);
}

static void backwards(const Attention *of, number b, number h, float *room) {
    const number queries = of->queries, width = of->width, keys = visible(of, b), padded = rounded(keys);
    const number ahead = of->keys - queries, row = rounded(of->keys), size = rounded(of->keys + queries) * width;
    const float *weights = of->weights + (b * of->heads + h) * queries * row;
    float *turned = room + 2 * size, *d_scores = turned + size, *made = room;
    number x_row, out_row, d_row;
    const float *d_out = read(&of->out, of, b, h, queries, room + size, &d_row);
    const float *value = read(&of->value, of, b, h, keys, room, &x_row);
    transpose(value, x_row, keys, width, turned, padded, padded);
    multiply(queries, padded, width, d_out, d_row, 1, turned, padded, d_scores, padded, ALL, 0);
    for (number t = 0; t < queries; t++) {
        const float *p = weights + t * row;
        float *d = d_scores + t * padded;
        const float mean = dot(p, d, padded);
        for (number k = 0; k < padded; k += LANES)
            *(lanes *)(d + k) = *(const lanes *)(p + k) * (*(lanes *)(d + k) - mean) * (float)of->scale;
    }
    made = place(&of->d_value, of, b, h, room, &out_row);
    multiply(keys, width, queries, weights, 1, row, d_out, d_row, made, out_row, of->causal ? FROM : ALL, ahead);
    written(&of->d_value, of, b, h, keys, of->keys, made);
    const float *key = read(&of->key, of, b, h, keys, room + size, &x_row);
    made = place(&of->d_query, of, b, h, room, &out_row);
    multiply(queries, width, keys, d_scores, padded, 1, key, x_row, made, out_row, of->causal ? UNTIL : ALL, ahead);
    written(&of->d_query, of, b, h, queries, queries, made);
    const float *query = read(&of->query, of, b, h, queries, room + size, &x_row);
    made = place(&of->d_key, of, b, h, room, &out_row);
    multiply(keys, width, queries, d_scores, 1, padded, query, x_row, made, out_row, of->causal ? FROM : ALL, ahead);
    written(&of->d_key, of, b, h, keys, of->keys, made);
}

/* Numbers of room that one who computes needs. */
number jumok_attention_room(const Attention *of) {
    return 3 * rounded(of->keys + of->queries) * of->width + of->queries * rounded(of->keys);
}

/* `parts` compute side by side, each with a room of its own. */
void jumok_attention(const Attention *of, number back, number parts, float *room) {
    const number units = of->batch * of->heads, size = jumok_attention_room(of);
#pragma omp parallel for schedule(static) num_threads((int)parts)
    for (number part = 0; part < parts; part++)
        for (number unit = units * part / parts; unit < units * (part + 1) / parts; unit++)
            if (back)
                backwards(of, unit / of->heads, unit % of->heads, room + part * size);
            else
                forwards(of, unit / of->heads, unit % of->heads, room + part * size);
}
