#include "model/causal_transpose.h"

#include <string.h>

enum { TILE = 32 }; /* rows and columns: two of them stay in the first cache */

/* `size` is a constant where this is inlined, and memcpy a move. */
static inline void transpose_tile(const unsigned char *from, int64_t rows, int64_t columns,
                                  int64_t row, int64_t column, size_t size, unsigned char *to)
{
    const int64_t row_end = row + TILE < rows ? row + TILE : rows;
    const int64_t column_end = column + TILE < columns ? column + TILE : columns;
    for (int64_t c = column; c < column_end; c++)
        for (int64_t r = row; r < row_end; r++)
            memcpy(to + (size_t)(c * rows + r) * size, from + (size_t)(r * columns + c) * size,
                   size);
}

void causal_transpose(const void *matrix, int64_t rows, int64_t columns, size_t size, void *turned)
{
    for (int64_t row = 0; row < rows; row += TILE)
        for (int64_t column = 0; column < columns; column += TILE)
            if (size == 2)
                transpose_tile(matrix, rows, columns, row, column, 2, turned);
            else
                transpose_tile(matrix, rows, columns, row, column, 4, turned);
}
