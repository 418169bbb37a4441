// One matrix product for the forward pass, the input gradient and the weight gradient of dense layers, by one block, in
// Shoal's order (design rule 4): C[i][j] starts from a bias of its row, from zero or from what it is, and takes in
// A[i][k] B[k][j] by fmaf, k ascending, in one accumulator. Tiles of C are in registers, 4 x 4 a thread; slices of A,
// and of B where its rows do not lie side by side, go through shared memory.
#ifndef SHOAL_KERNELS_CUDA_GEMM_CUH
#define SHOAL_KERNELS_CUDA_GEMM_CUH

#include "kernels/cuda/names.cuh"
#include "kernels/policy_math.h"

enum {
    GEMM_DEPTH = 32,                 // of a slice
    GEMM_ROWS = 64,                  // of a tile; its columns are a quarter of the block's threads
    GEMM_PITCH = GEMM_ROWS + 4,      // of a slice: quadruples stay aligned
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

// b's i counts the columns of C. With i_stride 1 it is read where it is: its rows are aligned to 16 bytes, and whole
// tiles of them can be read, whatever is behind `cols`.
typedef struct Gemm {
    int rows, cols, depth;
    GemmMatrix a, b;
    float *c; // [rows][c_pitch]
    int c_pitch;
    const float *bias; // [rows], or NULL: what C holds, or zero
    bool adds;         // to what C holds
    GemmFinish finish;
    const float *y; // laid out as C
    PolicyActivation activation;
} Gemm;

// `count` x `depth` elements, count <= tile, into a slice of `tile` columns. Neighbouring threads take what lies side
// by side in both, or squares of 8 x 4, which meet no bank of the slice twice.
DEVICE_FN void gemm_stage(float (*slice)[GEMM_PITCH], GemmMatrix from, int count, int depth, int tile) {
    int thread = (int)threadIdx.x, threads = (int)blockDim.x;
    if (from.k_stride == 1) {
        for (int i = thread / 8; i < tile; i += threads / 8) {
            const float *at = from.at + i * from.i_stride;
            for (int k = thread % 8; k < depth; k += 8)
                slice[k][i] = i < count ? at[k] : 0.0f;
        }
    } else {
        int lines = threads / tile > 1 ? threads / tile : 1, line = threads / tile > 1 ? thread / tile : 0;
        for (int i = thread - line * tile; i < tile; i += threads) {
            const float *at = from.at + i;
#pragma unroll 4
            for (int k = line; k < depth; k += lines)
                slice[k][i] = i < count ? at[k * from.k_stride] : 0.0f;
        }
    }
}

// a, b: of the slice's first row.
DEVICE_FN void gemm_multiply(const float *a, const float *b, int b_pitch, int depth, float sum[4][4]) {
#pragma unroll 4
    for (int k = 0; k < depth; k++) {
        float4 p = *(const float4 *)(a + k * GEMM_PITCH), q = *(const float4 *)(b + k * b_pitch);
        float x[4] = {p.x, p.y, p.z, p.w}, y[4] = {q.x, q.y, q.z, q.w};
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
    int corner = (first_row + row) * g.c_pitch + first_col + col;
    float sum[4][4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float bias = g.bias != NULL && row + i < rows ? g.bias[first_row + row + i] : 0.0f;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            bool is_there = g.adds && row + i < rows && col + j < cols;
            sum[i][j] = is_there ? g.c[corner + i * g.c_pitch + j] : bias;
        }
    }
    for (int k = 0; k < g.depth; k += GEMM_DEPTH) {
        int depth = g.depth - k < GEMM_DEPTH ? g.depth - k : GEMM_DEPTH;
        GemmMatrix a = {g.a.at + first_row * g.a.i_stride + k * g.a.k_stride, g.a.i_stride, g.a.k_stride};
        GemmMatrix b = {g.b.at + first_col * g.b.i_stride + k * g.b.k_stride, g.b.i_stride, g.b.k_stride};
        bool is_direct = g.b.i_stride == 1;
        __syncthreads(); // the slices before are done with
        gemm_stage(m.a, a, rows < GEMM_ROWS ? rows : GEMM_ROWS, depth, GEMM_ROWS);
        if (!is_direct) gemm_stage(m.b, b, cols < tile_cols ? cols : tile_cols, depth, tile_cols);
        __syncthreads();
        if (row >= rows || col >= cols) continue;
        gemm_multiply(&m.a[0][row], is_direct ? b.at + col : &m.b[0][col], is_direct ? b.k_stride : GEMM_PITCH, depth,
                      sum);
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            int at = corner + i * g.c_pitch + j;
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
