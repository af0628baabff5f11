/* A Transformer on the CPU in one call for each step: layers/c_library.py compiles this, models/compiled.py calls it.

   layers/lanes.h has the arithmetic of the processor, products.h the products, blocks.h what layers are made of. */

#include "blocks.h"

#ifdef _OPENMP
#include <omp.h>
#endif

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
            linear(&block->project, from, rows, room->wide, columns, NONE, room);
            if (positions->turns) {
#pragma omp for schedule(static)
                for (number n = 0; n < rows; n++)
                    for (number h = 0; h < stack->heads + stack->groups; h++)
                        turn(room->wide + n * columns + h * width, positions->turns + position[n] * 2 * width, width);
            }
#pragma omp for schedule(static)
            for (number unit = 0; unit < stack->groups * rows; unit++) { /* few long sentences: threads share groups */
                const number n = unit % rows, g = unit / rows;
                if (can_look_at_all(stack, positions, length[n])) {
                    if (n == first[n])
                        look_at_all(stack, room->wide + n * columns, columns, g, length[n], room->seen + n * queries);
                    continue;
                }
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
            linear(memory + part, room->x, rows, out + part * rows * keys, keys, NONE, room);
    }
}

/* A stack by itself: `x` is (sequences, length, width), and so is `out`. Each thread has a room and takes so many
   sequences at a time that what it works on stays in its cache; `row`, `position`, `first` and `lengths` are what
   `jumok_read` wants to know of so many. */
void jumok_encode(const Stack *stack, const Positions *positions, const Room *rooms, number threads, number sequences,
                  number length, number together, const int64_t *row, const int64_t *position, const int64_t *first,
                  const int64_t *lengths, const float *x, float *out) {
    (void)threads;
#pragma omp parallel for schedule(dynamic) num_threads((int)threads)
    for (number n = 0; n < sequences; n += together) {
#ifdef _OPENMP
        Room room = rooms[omp_get_thread_num()];
#else
        Room room = rooms[0];
#endif
        const number many = sequences - n < together ? sequences - n : together;
        Stack own = *stack;
        own.embedding = x + n * length * stack->width;
        room.x = out + n * length * stack->width;
        jumok_read(&own, positions, &room, 1, many * length, row, position, first, lengths, NULL, 0, NULL);
    }
}

void jumok_gelu(const float *x, number count, float *out) { /* for tests */
    for (number k = 0; k < count; k++) out[k] = gelu((lanes){0} + x[k])[0];
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
            linear(&block->project, from, rows, room->wide, columns, NONE, room);
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
            linear(&block->cross_query, from, rows, room->wide, queries, NONE, room);
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
        linear(head, room->x, rows, step->out, words, NONE, room);
#pragma omp for schedule(static)
        for (number n = 0; n < rows; n++) {
            const float sum = softmax(step->out + n * words, words, 1);
            for (number k = 0; k < words; k++) step->out[n * words + k] -= sum;
        }
    }
}

/* The `count` largest of `words` numbers in each row, the largest first, of equal ones the earlier first; -infinity
   where there are fewer. If something in a row is not a number, neither is the first of them. */
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
