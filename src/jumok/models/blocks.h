/* The parts of a Transformer's block. The equations are those of layers/block.py; the fields of the structures those of
   models/native_stack.py.

   Rows are words: in `jumok_step` the newest word of every hypothesis, in `jumok_read` all words of all sentences, one
   after another without padding. Functions with an `omp for` are called by all threads of one parallel region; it
   shares its work among them and waits for all at its end. */

#pragma once

#include "products.h"

enum { NO_NORM, LAYER_NORM, RMS_NORM };

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

/* ------------------------------------------------------------ functions of single rows */

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

/* What `linear` does not do itself: SiLU, and SwiGLU. */
static void activate(const Stack *stack, float *wide, number rows) {
    const number inner = stack->feed_forward, columns = stack->activation == SWIGLU ? 2 * inner : inner;
#pragma omp for schedule(static)
    for (number n = 0; n < rows; n++) {
        float *from = wide + n * columns;
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

/* Whether `look_at_all` can do it: no table of scores, a head in whole registers, and room for its keys and values. */
static int can_look_at_all(const Stack *stack, const Positions *positions, number count) {
    return !positions->relative && stack->head_width % 16 == 0 && count * stack->head_width <= 1 << 14;
}

/* The heads of one group of all `count` words of a sentence look at each other. `wide` has queries, keys and values of
   each, `columns` from word to word. The products go through the tiles of `linear`: keys transposed, values in panels. */
static void look_at_all(const Stack *stack, const float *wide, number columns, number group, number count, float *out) {
    const number width = stack->head_width, each = stack->heads / stack->groups, queries = stack->heads * width;
    const number key_panels = (count + PANEL - 1) / PANEL, value_panels = (width + PANEL - 1) / PANEL;
    const float *key = wide + queries + group * width, *value = key + stack->groups * width;
    float keys[key_panels * width * PANEL], values[value_panels * count * PANEL];
    float query[ROWS * width], score[ROWS * count];
    lanes tile[12][2];
    for (number p = 0; p < key_panels; p++)
        transpose(key + p * PANEL * columns, columns, count - p * PANEL, width, keys + p * width * PANEL, PANEL, PANEL);
    for (number p = 0; p < value_panels; p++) {
        const number many = width - p * PANEL < PANEL ? width - p * PANEL : PANEL;
        float *to = values + p * count * PANEL;
        if (many < PANEL) memset(to, 0, (size_t)(count * PANEL) * sizeof(float));
        for (number t = 0; t < count; t++)
            memcpy(to + t * PANEL, value + t * columns + p * PANEL, (size_t)many * sizeof(float));
    }
    for (number h = group * each; h < (group + 1) * each; h++)
        for (number n = 0; n < count; n += ROWS) {
            const number rows = count - n < ROWS ? count - n : ROWS;
            for (number r = 0; r < rows; r++)
                memcpy(query + r * width, wide + (n + r) * columns + h * width, (size_t)width * sizeof(float));
            for (number p = 0; p < key_panels; p++) {
                tiles[FLOAT32][rows - 1](query, width, keys + p * width * PANEL, tile);
                for (number r = 0; r < rows; r++) put(score + r * count + p * PANEL, tile[r], count - p * PANEL);
            }
            for (number r = 0; r < rows; r++) softmax(score + r * count, count, 0);
            for (number p = 0; p < value_panels; p++) {
                tiles[FLOAT32][rows - 1](score, count, values + p * count * PANEL, tile);
                for (number r = 0; r < rows; r++)
                    put(out + (n + r) * queries + h * width + p * PANEL, tile[r], width - p * PANEL);
            }
        }
}

/* ------------------------------------------------------------ sublayers */

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
    linear(map, from, rows, room->normed, width, NONE, room);
#pragma omp for schedule(static)
    for (number n = 0; n < rows; n++) {
        float *x = room->x + n * width;
        for (number k = 0; k < width; k++) x[k] += room->normed[n * width + k];
        if (!stack->pre) normalise(norm, x, x, width);
    }
}

static void feed_forward(const Stack *stack, const Block *block, number rows, const Room *room) {
    const number columns = block->inner.outputs;
    const float *from = before(stack, &block->feed_norm, rows, room);
    linear(&block->inner, from, rows, room->wide, columns, stack->activation, room);
    if (stack->activation == SILU || stack->activation == SWIGLU) activate(stack, room->wide, rows);
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
