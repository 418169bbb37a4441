// Transposes matrices of 4-byte words: states are [word][lane] in a block, and worlds want their own in a row.
#ifndef SHOAL_KERNELS_CPU_TRANSPOSE_H
#define SHOAL_KERNELS_CPU_TRANSPOSE_H

#include <stddef.h>
#include <stdint.h>

typedef uint32_t __attribute__((may_alias)) TransposeWord;
typedef TransposeWord __attribute__((vector_size(16), aligned(4))) TransposeRow;

// Words to[c][r] = from[r][c] of a matrix with this many rows and columns, by squares of four; strides are in words.
static __attribute__((noinline)) void transpose(void *to, size_t to_stride, const void *from, size_t from_stride,
                                                int rows, int columns) {
    const int whole_rows = rows & ~3, whole_columns = columns & ~3;
    for (int r = 0; r < whole_rows; r += 4) {
        for (int c = 0; c < whole_columns; c += 4) {
            const TransposeWord *in = (const TransposeWord *)from + (size_t)r * from_stride + c;
            TransposeWord *out = (TransposeWord *)to + (size_t)c * to_stride + r;
            const TransposeRow a = *(const TransposeRow *)in, b = *(const TransposeRow *)(in + from_stride);
            const TransposeRow x = *(const TransposeRow *)(in + 2 * from_stride),
                               y = *(const TransposeRow *)(in + 3 * from_stride);
            const TransposeRow ab0 = __builtin_shufflevector(a, b, 0, 4, 1, 5),
                               ab2 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
            const TransposeRow xy0 = __builtin_shufflevector(x, y, 0, 4, 1, 5),
                               xy2 = __builtin_shufflevector(x, y, 2, 6, 3, 7);
            *(TransposeRow *)out = __builtin_shufflevector(ab0, xy0, 0, 1, 4, 5);
            *(TransposeRow *)(out + to_stride) = __builtin_shufflevector(ab0, xy0, 2, 3, 6, 7);
            *(TransposeRow *)(out + 2 * to_stride) = __builtin_shufflevector(ab2, xy2, 0, 1, 4, 5);
            *(TransposeRow *)(out + 3 * to_stride) = __builtin_shufflevector(ab2, xy2, 2, 3, 6, 7);
        }
    }
    for (int r = 0; r < rows; r++) {
        for (int c = r < whole_rows ? whole_columns : 0; c < columns; c++)
            ((TransposeWord *)to)[(size_t)c * to_stride + (size_t)r] =
                ((const TransposeWord *)from)[(size_t)r * from_stride + (size_t)c];
    }
}

#endif
