// One matrix product for the forward pass, the input gradient and the weight gradient of a dense layer, in Shoal's
// order (design rule 4): C[i][j] starts from a row of biases, from zero or from what it is, and takes in A[i][k]
// B[k][j] by fmaf, k ascending, in one accumulator. Vectorised over j. Cut into blocks of k, whose sums wait in C: that
// changes no bit. Compiled for each instruction set.
#ifndef SHOAL_KERNELS_CPU_GEMM_H
#define SHOAL_KERNELS_CPU_GEMM_H

#include <stddef.h>

#include "kernels/cpu/wide.h"
#include "kernels/policy.h"

enum {
    GEMM_PANEL = 64,  // columns of B that lie side by side in a packed matrix
    GEMM_DEPTH = 128, // a block of a panel: 32 KiB
    GEMM_ROWS = 6,    // sums in registers: rows x vectors
    GEMM_VECTORS = WIDE == 16 ? 4 : 2,
};

typedef struct Gemm {
    float *c; // [rows][c_stride]
    int c_stride;
    const float *a; // element (i, k) at i a_row + k a_depth
    int a_row, a_depth;
    const float *b;     // [depth][b_stride], or packed in panels: [cols / 64][depth][64, fewer in the last]
    int b_stride;       // 0: packed
    const float *start; // [cols] what each row begins with; NULL: what C holds
} Gemm;

extern const float gemm_zeros[POLICY_WIDTH_MAX]; // aligned to 64 bytes

// `rows` x `vectors` sums over k of [0, depth). rows and vectors are constants where this is inlined.
WIDE_FN void gemm_tile(const Gemm *g, int rows, int vectors, int depth) {
    Wide sum[GEMM_ROWS][GEMM_VECTORS];
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) {
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            sum[r][v] = wide_load((g->start != NULL ? g->start : g->c + r * g->c_stride) + v * WIDE);
    }
    const float *a = g->a, *b = g->b;
    int a_row = g->a_row, a_depth = g->a_depth, b_stride = g->b_stride;
    for (int k = 0; k < depth; k++) {
        Wide weight[GEMM_VECTORS];
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            weight[v] = wide_load(b + v * WIDE);
#pragma GCC unroll 6
        for (int r = 0; r < rows; r++) {
            Wide input = wide_set(a[r * a_row]);
#pragma GCC unroll 4
            for (int v = 0; v < vectors; v++)
                sum[r][v] = wide_fma(weight[v], input, sum[r][v]);
        }
        a += a_depth;
        b += b_stride;
    }
#pragma GCC unroll 6
    for (int r = 0; r < rows; r++) {
#pragma GCC unroll 4
        for (int v = 0; v < vectors; v++)
            wide_store(g->c + r * g->c_stride + v * WIDE, sum[r][v]);
    }
}

// `rows` x `cols` sums; rows is a constant where this is inlined.
WIDE_FN void gemm_strip(Gemm g, int rows, int cols, int depth) {
    for (; cols > 0;) {
        int vectors = cols >= 4 * WIDE && GEMM_VECTORS == 4 ? 4 : cols >= 2 * WIDE ? 2 : 1;
        if (vectors == 4) {
            gemm_tile(&g, rows, GEMM_VECTORS, depth);
        } else if (vectors == 2) {
            gemm_tile(&g, rows, 2, depth);
        } else {
            gemm_tile(&g, rows, 1, depth);
        }
        g.c += vectors * WIDE;
        g.b += vectors * WIDE;
        if (g.start != NULL) g.start += vectors * WIDE;
        cols -= vectors * WIDE;
    }
}

WIDE_FN void gemm_block(Gemm g, int rows, int cols, int depth) {
    for (int left = rows; left > 0;) {
        int now = left >= GEMM_ROWS ? GEMM_ROWS : left >= 2 ? 2 : 1;
        if (now == GEMM_ROWS) {
            gemm_strip(g, GEMM_ROWS, cols, depth);
        } else if (now == 2) {
            gemm_strip(g, 2, cols, depth);
        } else {
            gemm_strip(g, 1, cols, depth);
        }
        g.c += now * g.c_stride;
        g.a += now * g.a_row;
        left -= now;
    }
}

// cols: a multiple of 16; b, c and start aligned to 64 bytes, c_stride and b_stride multiples of 16.
static inline void gemm(const Gemm *whole, int rows, int cols, int depth) {
    for (int col = 0; col < cols; col += GEMM_PANEL) {
        int width = cols - col < GEMM_PANEL ? cols - col : GEMM_PANEL;
        Gemm g = *whole;
        g.c += col;
        g.b += g.b_stride == 0 ? col * depth : col;
        g.b_stride = g.b_stride == 0 ? width : g.b_stride;
        if (g.start != NULL) g.start += col;
        for (int k = 0; k < depth; k += GEMM_DEPTH) {
            gemm_block(g, rows, width, depth - k < GEMM_DEPTH ? depth - k : GEMM_DEPTH);
            g.a += GEMM_DEPTH * g.a_depth;
            g.b += GEMM_DEPTH * g.b_stride;
            g.start = NULL;
        }
    }
}

#endif
