// One matrix product for the forward pass, the input gradient and the weight gradient of dense layers, by one block, in
// Shoal's order (design rule 4): C[i][j] starts from a bias of its row, from zero or from what it is, and takes in
// A[i][k] B[k][j] by fmaf, k ascending, in one accumulator. Tiles of C are in registers, 4 x 4 a thread; slices of A,
// and of B where its rows do not lie side by side, go through shared memory.
#ifndef SHOAL_KERNELS_CUDA_GEMM_CUH
#define SHOAL_KERNELS_CUDA_GEMM_CUH

#include "kernels/cuda/names.cuh"
#include "kernels/policy_math.h"
#include "kernels/ppo_math.h"

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
    GEMM_ACTIVATE, // as the output of a layer of that kind
    GEMM_DERIVE    // times the activation's derivative, where the activation is `y`
} GemmFinish;

// b's i counts the columns of C. With i_stride 1 it is read where it is: its rows are aligned to 16 bytes, and whole
// tiles of them can be read, whatever is behind `cols`.
typedef struct Gemm {
    int rows, cols, depth;
    GemmMatrix a, b;
    float *c; // [rows][c_pitch]
    int c_pitch;
    bool is_aligned;   // C's rows are, to 16 bytes
    const float *bias; // [rows], or NULL: what C holds, or zero
    bool adds;         // to what C holds
    GemmFinish finish;
    const float *y; // laid out as C
    PolicyLayerKind kind;
    PolicyActivation activation;
    bool rounds; // what is finished, to bfloat16
} Gemm;

// `count` x `depth` elements, count <= tile, into a slice of `tile` columns. Neighbouring threads take what lies side
// by side in both, or squares of 8 x 4, which meet no bank of the slice twice.
DEVICE_FN void gemm_stage(float (*slice)[GEMM_PITCH], GemmMatrix from, int count, int depth, int tile) {
    int thread = (int)threadIdx.x, threads = (int)blockDim.x;
    if (from.k_stride == 1) {
        int first = thread % 8;
        for (int i = thread / 8; i < tile; i += threads / 8) {
            const float *at = from.at + i * from.i_stride + first;
            float *to = &slice[first][i];
#pragma unroll
            for (int k = 0; k < GEMM_DEPTH; k += 8) {
                if (first + k < depth) to[k * GEMM_PITCH] = i < count ? at[k] : 0.0f;
            }
        }
    } else {
        int lines = threads / tile > 1 ? threads / tile : 1, line = threads / tile > 1 ? thread / tile : 0;
        for (int i = thread - line * tile; i < tile; i += threads) {
            const float *at = from.at + i + line * from.k_stride;
            float *to = &slice[line][i];
#pragma unroll 4
            for (int k = line; k < depth; k += lines) {
                *to = i < count ? *at : 0.0f;
                at += lines * from.k_stride;
                to += lines * GEMM_PITCH;
            }
        }
    }
}

// a, b: of the slice's first row.
DEVICE_FN void gemm_multiply(const float *a, const float *b, int b_pitch, int depth, float sum[4][4]) {
#pragma unroll 2
    for (int k = 0; k < depth; k++, a += GEMM_PITCH, b += b_pitch) {
        float4 p = *(const float4 *)a, q = *(const float4 *)b;
        float x[4] = {p.x, p.y, p.z, p.w}, y[4] = {q.x, q.y, q.z, q.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
#pragma unroll
            for (int j = 0; j < 4; j++)
                sum[i][j] = sim_fmaf(x[i], y[j], sum[i][j]);
        }
    }
}

DEVICE_FN float gemm_finish(const Gemm &g, float sum, float y) {
    if (g.finish == GEMM_AS_IS) return sum;
    float finished = g.finish == GEMM_ACTIVATE     ? policy_finish(sum, g.kind, g.activation)
                     : g.activation == POLICY_TANH ? ppo_tanh_gradient(sum, y)
                                                   : ppo_relu_gradient(sum, y);
    return g.rounds ? policy_bf16(finished) : finished;
}

// A thread's 4 x 4 sums: where they are in C, and how many of them are there.
typedef struct GemmPlace {
    int at, rows, cols;
} GemmPlace;

// Four numbers side by side at `from`, those that are there; as one, where all are and lie on 16 bytes.
DEVICE_FN void gemm_load4(const float *from, int count, bool is_whole, bool is_aligned, float to[4]) {
    if (is_whole && is_aligned) {
        float4 four = *(const float4 *)from;
        to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
        return;
    }
#pragma unroll
    for (int j = 0; j < 4; j++)
        to[j] = is_whole || j < count ? from[j] : 0.0f;
}

DEVICE_FN void gemm_begin(const Gemm &g, GemmPlace place, int row, bool is_whole, float sum[4][4]) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
        bool is_there = is_whole || i < place.rows;
        float start = g.bias != NULL && is_there ? g.bias[row + i] : 0.0f;
        if (g.adds && is_there) {
            gemm_load4(g.c + place.at + i * g.c_pitch, place.cols, is_whole, g.is_aligned, sum[i]);
        } else {
#pragma unroll
            for (int j = 0; j < 4; j++)
                sum[i][j] = start;
        }
    }
}

DEVICE_FN void gemm_end(const Gemm &g, GemmPlace place, bool is_whole, float sum[4][4]) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if (!is_whole && i >= place.rows) break;
        int at = place.at + i * g.c_pitch;
        float y[4] = {};
        if (g.finish == GEMM_DERIVE) gemm_load4(g.y + at, place.cols, is_whole, g.is_aligned, y);
#pragma unroll
        for (int j = 0; j < 4; j++)
            sum[i][j] = gemm_finish(g, sum[i][j], y[j]);
        if (is_whole && g.is_aligned) {
            *(float4 *)(g.c + at) = make_float4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);
        } else {
#pragma unroll
            for (int j = 0; j < 4; j++) {
                if (is_whole || j < place.cols) g.c[at + j] = sum[i][j];
            }
        }
    }
}

// A tile of C from (first_row, first_col) on; whole where no part of it is beyond C.
DEVICE_FN void gemm_tile(const Gemm &g, GemmShared &m, int first_row, int first_col, int tile_cols, bool is_whole) {
    int across = tile_cols / 4, row = (int)threadIdx.x / across * 4, col = (int)threadIdx.x % across * 4;
    int rows = is_whole ? (int)GEMM_ROWS : g.rows - first_row, cols = is_whole ? tile_cols : g.cols - first_col;
    GemmPlace place = {(first_row + row) * g.c_pitch + first_col + col, rows - row, cols - col};
    bool is_there = is_whole || (row < rows && col < cols);
    float sum[4][4] = {};
    if (is_there) gemm_begin(g, place, first_row + row, is_whole, sum);
    for (int k = 0; k < g.depth; k += GEMM_DEPTH) {
        int depth = g.depth - k < GEMM_DEPTH ? g.depth - k : GEMM_DEPTH;
        GemmMatrix a = {g.a.at + first_row * g.a.i_stride + k * g.a.k_stride, g.a.i_stride, g.a.k_stride};
        GemmMatrix b = {g.b.at + first_col * g.b.i_stride + k * g.b.k_stride, g.b.i_stride, g.b.k_stride};
        bool is_direct = g.b.i_stride == 1;
        __syncthreads(); // the slices before are done with
        gemm_stage(m.a, a, rows < GEMM_ROWS ? rows : GEMM_ROWS, depth, GEMM_ROWS);
        if (!is_direct) gemm_stage(m.b, b, cols < tile_cols ? cols : tile_cols, depth, tile_cols);
        __syncthreads();
        if (!is_there) continue;
        gemm_multiply(&m.a[0][row], is_direct ? b.at + col : &m.b[0][col], is_direct ? b.k_stride : GEMM_PITCH, depth,
                      sum);
    }
    if (is_there) gemm_end(g, place, is_whole, sum);
}

// All threads of the block. What A, B and C hold has to be there, and C is there after the next barrier.
DEVICE_FN void gemm(const Gemm &g, GemmShared &m) {
    int tile_cols = (int)blockDim.x / GEMM_PER_COLUMN * 4;
    for (int row = 0; row < g.rows; row += GEMM_ROWS) {
        for (int col = 0; col < g.cols; col += tile_cols) {
            if (g.rows - row >= GEMM_ROWS && g.cols - col >= tile_cols) {
                gemm_tile(g, m, row, col, tile_cols, true);
            } else {
                gemm_tile(g, m, row, col, tile_cols, false);
            }
        }
    }
}

#endif
