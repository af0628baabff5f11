/* A matrix turned on its side, and the sums of its columns on the way: layers/turned_native.py calls this. */

#include "lanes.h"

enum { STRIP = 32, BLOCK = 64 }; /* columns at a time: a page of memory for each; rows of them that stay in the cache */

/* to (columns, rows) = fromᵀ; sums (columns), if someone wants them. Strips of columns are shared among threads: what
   comes out does not depend on how many there are. */
void jumok_turned(const float *from, number stride, number rows, number columns, float *to, float *sums,
                  number threads) {
#pragma omp parallel for schedule(static) num_threads((int)threads)
    for (number begin = 0; begin < columns; begin += STRIP) {
        const number width = columns - begin < STRIP ? columns - begin : STRIP;
        float added[STRIP] = {0};
        for (number row = 0; row < rows; row += BLOCK) {
            const float *block = from + row * stride + begin;
            const number count = rows - row < BLOCK ? rows - row : BLOCK;
            const number even_rows = count / 16 * 16, even_columns = width / 16 * 16;
            transpose(block, stride, even_rows, even_columns, to + begin * rows + row, rows, even_rows);
            for (number k = 0; k < width; k++)
                for (number r = k < even_columns ? even_rows : 0; r < count; r++)
                    to[(begin + k) * rows + row + r] = block[r * stride + k];
            if (!sums) continue;
            float part[STRIP] = {0};
            for (number r = 0; r < count; r++)
                for (number k = 0; k < width; k++) part[k] += block[r * stride + k];
            for (number k = 0; k < width; k++) added[k] += part[k];
        }
        if (sums) memcpy(sums + begin, added, (size_t)width * sizeof(float));
    }
}
