// One matrix product for the forward pass, the input gradient and the weight gradient of dense layers, by one block, in
// Shoal's order (design rule 4): C[i][j] starts from a bias of its row, from zero or from what it is, and takes in
// A[i][k] B[k][j] by fmaf, k ascending, in one accumulator. Tiles of C are in registers, 4 x 4 a thread; slices of A
// and B go through shared memory.
#ifndef SHOAL_KERNELS_CUDA_GEMM_CUH
#define SHOAL_KERNELS_CUDA_GEMM_CUH

#include "kernels/cuda/names.cuh"
#include "kernels/policy_math.h"

enum {
    GEMM_DEPTH = 16,
    GEMM_ROWS = 64,                  // of a tile; its columns are a quarter of the block's threads
    GEMM_PITCH = GEMM_ROWS + 4,      // of a slice: rows of 4 stay aligned
    GEMM_PER_COLUMN = GEMM_ROWS / 4, // threads that share four columns
};

typedef struct GemmShared {
    float a[GEMM_DEPTH][GEMM_PITCH], b[GEMM_DEPTH][GEMM_PITCH];
} GemmShared;

// Element (i, k) at i * i_stride + k * k_stride; one of the two is 1.
typedef struct GemmMatrix {
    const float *at;
    int i_stride, k_stride;
} GemmMatrix;

typedef enum GemmFinish {
    GEMM_AS_IS,
    GEMM_ACTIVATE,
    GEMM_DERIVE // times the activation's derivative, where the activation is `y`
} GemmFinish;

typedef struct Gemm {
    int rows, cols, depth;
    GemmMatrix a, b; // b's i counts the columns of C
    float *c;
    int c_row, c_col;  // strides
    const float *bias; // [rows], or NULL: what C holds, or zero
    bool adds;         // to what C holds
    GemmFinish finish;
    const float *y; // laid out as C
    PolicyActivation activation;
} Gemm;

// `count` x `depth` elements into a slice of `tile` x GEMM_DEPTH. Neighbouring threads take what lies side by side.
DEVICE_FN void gemm_stage(float (*slice)[GEMM_PITCH], GemmMatrix from, int count, int depth, int tile) {
    bool by_depth = from.k_stride == 1;
    for (int e = (int)threadIdx.x; e < tile * GEMM_DEPTH; e += (int)blockDim.x) {
        int k = by_depth ? e % GEMM_DEPTH : e / tile, i = by_depth ? e / GEMM_DEPTH : e % tile;
        slice[k][i] = i < count && k < depth ? from.at[i * from.i_stride + k * from.k_stride] : 0.0f;
    }
}

DEVICE_FN void gemm_multiply(const GemmShared &m, int row, int col, int depth, float sum[4][4]) {
#pragma unroll 4
    for (int k = 0; k < depth; k++) {
        float4 a = *(const float4 *)&m.a[k][row], b = *(const float4 *)&m.b[k][col];
        float x[4] = {a.x, a.y, a.z, a.w}, y[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
#pragma unroll
            for (int j = 0; j < 4; j++)
                sum[i][j] = sim_fmaf(x[i], y[j], sum[i][j]);
        }
    }
}

DEVICE_FN float gemm_finish(const Gemm &g, int at, float sum) {
    if (g.finish == GEMM_ACTIVATE) return policy_activate(sum, g.activation);
    if (g.finish == GEMM_AS_IS) return sum;
    float y = g.y[at];
    if (g.activation == POLICY_TANH) return sum * sim_fmaf(-y, y, 1.0f);
    return y > 0.0f ? sum : 0.0f;
}

// A tile of C from (first_row, first_col) on.
DEVICE_FN void gemm_tile(const Gemm &g, GemmShared &m, int first_row, int first_col, int tile_cols) {
    int across = tile_cols / 4, row = (int)threadIdx.x / across * 4, col = (int)threadIdx.x % across * 4;
    int rows = g.rows - first_row, cols = g.cols - first_col;
    float *c = g.c + (first_row + row) * g.c_row + (first_col + col) * g.c_col;
    float sum[4][4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float bias = g.bias != NULL && row + i < rows ? g.bias[first_row + row + i] : 0.0f;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            bool is_there = g.adds && row + i < rows && col + j < cols;
            sum[i][j] = is_there ? c[i * g.c_row + j * g.c_col] : bias;
        }
    }
    for (int k = 0; k < g.depth; k += GEMM_DEPTH) {
        int depth = g.depth - k < GEMM_DEPTH ? g.depth - k : GEMM_DEPTH;
        GemmMatrix a = {g.a.at + first_row * g.a.i_stride + k * g.a.k_stride, g.a.i_stride, g.a.k_stride};
        GemmMatrix b = {g.b.at + first_col * g.b.i_stride + k * g.b.k_stride, g.b.i_stride, g.b.k_stride};
        __syncthreads(); // the slices before are done with
        gemm_stage(m.a, a, rows, depth, GEMM_ROWS);
        gemm_stage(m.b, b, cols, depth, tile_cols);
        __syncthreads();
        gemm_multiply(m, row, col, depth, sum);
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            int at = (first_row + row + i) * g.c_row + (first_col + col + j) * g.c_col;
            if (row + i < rows && col + j < cols) g.c[at] = gemm_finish(g, at, sum[i][j]);
        }
    }
}

// All threads of the block. What A, B and C hold has to be there, and C is there after the next barrier.
DEVICE_FN void gemm(const Gemm &g, GemmShared &m) {
    int tile_cols = (int)blockDim.x / GEMM_PER_COLUMN * 4;
    for (int row = 0; row < g.rows; row += GEMM_ROWS) {
        for (int col = 0; col < g.cols; col += tile_cols)
            gemm_tile(g, m, row, col, tile_cols);
    }
}

#endif
