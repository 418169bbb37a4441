// Arithmetic in kernels against the host's: exact where IEEE 754 or the integers leave no choice, otherwise within the
// error that CUDA's manual allows.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/vgpu/programs/program_test.cuh"

namespace {

using namespace program;

class Arithmetic : public ProgramTest {};

constexpr int THREADS = 128;
constexpr int BLOCKS = 16;
constexpr int COUNT = THREADS * BLOCKS;

__device__ int global_index() { return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); }

// ---- Philox and normal numbers -------------------------------------------------------------------------------------

__host__ __device__ uint4 philox(uint4 counter, uint2 key) {
    for (int round = 0; round < 10; round++) {
        uint64_t a = uint64_t{0xD2511F53u} * counter.x, b = uint64_t{0xCD9E8D57u} * counter.z;
        counter = uint4{static_cast<uint32_t>(b >> 32) ^ counter.y ^ key.x, static_cast<uint32_t>(b),
                        static_cast<uint32_t>(a >> 32) ^ counter.w ^ key.y, static_cast<uint32_t>(a)};
        key.x += 0x9E3779B9u;
        key.y += 0xBB67AE85u;
    }
    return counter;
}

__global__ void philox_kernel(uint4 *out, uint2 key) {
    unsigned i = static_cast<unsigned>(global_index());
    out[i] = philox(uint4{i, i >> 3, 7, 9}, key);
}

TEST_F(Arithmetic, Philox) {
    // The reference generator's published answer for counters and keys of all ones.
    uint4 ones = philox(uint4{~0u, ~0u, ~0u, ~0u}, uint2{~0u, ~0u});
    EXPECT_EQ(ones.x, 0x408f276du);
    DeviceArray<uint4> out(COUNT);
    uint2 key = {0x89abcdefu, 0x01234567u};
    philox_kernel<<<BLOCKS, THREADS>>>(out.data(), key);
    LAUNCH_OK();
    std::vector<uint4> values = out.values();
    for (unsigned i = 0; i < COUNT; i++) {
        uint4 expected = philox(uint4{i, i >> 3, 7, 9}, key);
        ASSERT_EQ(memcmp(&values[i], &expected, sizeof(expected)), 0) << i;
    }
}

__global__ void normal_kernel(float *out, uint2 key) {
    int i = global_index();
    uint4 bits = philox(uint4{static_cast<unsigned>(i), 0, 0, 0}, key);
    float u = (static_cast<float>(bits.x >> 8) + 0.5f) * 0x1p-24f, v = static_cast<float>(bits.y >> 8) * 0x1p-24f;
    out[i] = sqrtf(-2.0f * logf(u)) * cosf(6.2831853f * v);
}

TEST_F(Arithmetic, BoxMullerHasTheMomentsOfANormalDistribution) {
    DeviceArray<float> out(COUNT);
    normal_kernel<<<BLOCKS, THREADS>>>(out.data(), uint2{42, 0});
    LAUNCH_OK();
    double mean = 0, variance = 0;
    for (float value : out.values()) {
        mean += double{value} / COUNT;
        variance += double{value} * double{value} / COUNT;
    }
    EXPECT_NEAR(mean, 0, 0.1); // four and a half standard errors
    EXPECT_NEAR(variance, 1, 0.14);
}

// ---- float ---------------------------------------------------------------------------------------------------------

constexpr int EXACT = 11;
__host__ __device__ void exact_functions(float x, float y, float *out) {
    out[0] = x + y;
    out[1] = x * y;
    out[2] = x / y;
    out[3] = sqrtf(x);
    out[4] = fmaf(x, y, 0.3f);
    out[5] = floorf(x) - ceilf(y);
    out[6] = rintf(x) + truncf(y);
    out[7] = fminf(x, y) + fmaxf(x, 0.5f);
    out[8] = fmodf(x, 0.7f);
    out[9] = fabsf(x) - y;
    out[10] = static_cast<float>(static_cast<double>(x) * static_cast<double>(y));
}

__global__ void exact_kernel(const float *x, const float *y, float *out) {
    int i = global_index();
    exact_functions(x[i], y[i], out + EXACT * i);
}

// Pairs of random numbers of all magnitudes and of the values that are special.
std::vector<float> special_floats(std::mt19937 &random, size_t size) {
    const float limits[] = {0.0f, -0.0f, 1.0f, -1.0f, INFINITY, -INFINITY, NAN, 0x1p-149f, -0x1p-126f, 0x1.fffffep127f};
    std::vector<float> values = random_floats(random, size, -10.0f, 10.0f);
    for (float &value : values) {
        if (random() % 3 == 0) value = std::ldexp(value, static_cast<int>(random() % 280) - 150);
        if (random() % 5 == 0) value = limits[random() % 10];
    }
    return values;
}

TEST_F(Arithmetic, FloatsAreExact) {
    std::mt19937 random(3);
    std::vector<float> x = special_floats(random, COUNT), y = special_floats(random, COUNT), expected(EXACT);
    DeviceArray<float> device_x(x), device_y(y), out(EXACT * COUNT);
    exact_kernel<<<BLOCKS, THREADS>>>(device_x.data(), device_y.data(), out.data());
    LAUNCH_OK();
    std::vector<float> actual = out.values();
    for (int i = 0; i < COUNT; i++) {
        exact_functions(x[i], y[i], expected.data());
        for (int k = 0; k < EXACT; k++) {
            float value = actual[EXACT * i + k];
            if (std::isnan(expected[k]) && std::isnan(value)) continue; // of whatever payload
            ASSERT_EQ(memcmp(&value, &expected[k], sizeof(float)), 0)
                << "function " << k << " of " << x[i] << ", " << y[i] << ": " << value << ", not " << expected[k];
        }
    }
}

// Error in units of the last place of a float as large as the exact result.
double float_error(double actual, double exact) {
    if (actual == exact) return 0;
    int exponent = std::max(std::ilogb(exact), -126);
    return std::fabs(actual - exact) / std::ldexp(1.0, exponent - 23);
}

constexpr int FUNCTIONS = 11;
__global__ void transcendental_kernel(const float *x, float *out) {
    int i = global_index();
    float v = x[i], *y = out + FUNCTIONS * i;
    y[0] = tanhf(v);
    y[1] = expf(v);
    y[2] = logf(fabsf(v));
    y[3] = sinf(v);
    y[4] = cosf(v);
    y[5] = rsqrtf(fabsf(v));
    y[6] = erff(v);
    y[7] = log1pf(fabsf(v));
    y[8] = powf(fabsf(v), 1.7f);
    y[9] = atan2f(v, 2.0f);
    y[10] = __expf(v);
}

TEST_F(Arithmetic, TranscendentalFunctions) {
    struct Function {
        const char *name;
        double (*exact)(double);
        double error;
    };
    const Function functions[FUNCTIONS] = {
        {"tanhf", [](double v) { return std::tanh(v); }, 3},
        {"expf", [](double v) { return std::exp(v); }, 2},
        {"logf", [](double v) { return std::log(std::fabs(v)); }, 2},
        {"sinf", [](double v) { return std::sin(v); }, 3},
        {"cosf", [](double v) { return std::cos(v); }, 3},
        {"rsqrtf", [](double v) { return 1 / std::sqrt(std::fabs(v)); }, 2.5},
        {"erff", [](double v) { return std::erf(v); }, 3},
        {"log1pf", [](double v) { return std::log1p(std::fabs(v)); }, 3},
        {"powf", [](double v) { return std::pow(std::fabs(v), double{1.7f}); }, 5},
        {"atan2f", [](double v) { return std::atan2(v, 2.0); }, 4},
        {"__expf", [](double v) { return std::exp(v); }, 2 + 1.173 * 20},
    };
    std::mt19937 random(4);
    std::vector<float> x = random_floats(random, COUNT, -20.0f, 20.0f);
    DeviceArray<float> device_x(x), out(FUNCTIONS * COUNT);
    transcendental_kernel<<<BLOCKS, THREADS>>>(device_x.data(), out.data());
    LAUNCH_OK();
    std::vector<float> actual = out.values();
    for (int k = 0; k < FUNCTIONS; k++) {
        for (int i = 0; i < COUNT; i++) {
            double value = double{actual[FUNCTIONS * i + k]}, exact = functions[k].exact(double{x[i]});
            ASSERT_LE(float_error(value, exact), functions[k].error)
                << functions[k].name << "(" << x[i] << ") is " << value << ", not " << exact;
        }
    }
}

// ---- double --------------------------------------------------------------------------------------------------------

__global__ void double_kernel(const double *x, double *out) {
    int i = global_index();
    double v = x[i];
    out[4 * i] = exp(v) + log(1 + v * v) + pow(fabs(v) + 0.5, 1.3) + sin(v) + tanh(v);
    out[4 * i + 1] = v / 3.7;
    out[4 * i + 2] = sqrt(fabs(v));
    out[4 * i + 3] = fma(v, v, -v);
}

TEST_F(Arithmetic, Doubles) {
    std::mt19937 random(5);
    std::uniform_real_distribution<double> uniform(-8, 8);
    std::vector<double> x(COUNT);
    for (double &value : x)
        value = uniform(random);
    DeviceArray<double> device_x(x), out(4 * COUNT);
    double_kernel<<<BLOCKS, THREADS>>>(device_x.data(), out.data());
    LAUNCH_OK();
    std::vector<double> actual = out.values();
    for (int i = 0; i < COUNT; i++) {
        double v = x[i];
        double sum = std::exp(v) + std::log(1 + v * v) + std::pow(std::fabs(v) + 0.5, 1.3) + std::sin(v) + std::tanh(v);
        ASSERT_NEAR(actual[4 * i], sum, 1e-14 * (1 + std::fabs(sum))) << v;
        ASSERT_EQ(actual[4 * i + 1], v / 3.7) << v;
        ASSERT_EQ(actual[4 * i + 2], std::sqrt(std::fabs(v))) << v;
        ASSERT_EQ(actual[4 * i + 3], std::fma(v, v, -v)) << v;
    }
}

// ---- half and bfloat16 ---------------------------------------------------------------------------------------------

// Rounds to a format of `bits` significant bits and no exponent below `lowest`, ties to even.
float rounded(double value, int bits, int lowest) {
    if (value == 0) return static_cast<float>(value);
    double unit = std::ldexp(1.0, std::max(std::ilogb(value), lowest) - bits + 1);
    return static_cast<float>(std::nearbyint(value / unit) * unit);
}
float as_half(double value) { return rounded(value, 11, -14); }
float as_bfloat16(double value) { return rounded(value, 8, -126); }

__global__ void half_kernel(const float *x, float *out) {
    int i = global_index();
    __half h = __float2half(x[i]);
    __half2 pair = __halves2half2(h, __hmul(h, h)), sum = __hfma2(pair, pair, pair);
    __nv_bfloat16 b = __float2bfloat16(x[i]);
    out[5 * i] = __half2float(h);
    out[5 * i + 1] = __low2float(sum);
    out[5 * i + 2] = __high2float(sum);
    out[5 * i + 3] = __bfloat162float(__hmul(b, b));
    out[5 * i + 4] = __bfloat162float(__hadd(b, __float2bfloat16(0.3f)));
}

TEST_F(Arithmetic, HalfAndBfloat16) {
    std::mt19937 random(6);
    std::vector<float> x = random_floats(random, COUNT, -4.0f, 4.0f);
    for (size_t i = 0; i < x.size(); i += 3)
        x[i] = std::ldexp(x[i], -static_cast<int>(random() % 22)); // to subnormals
    DeviceArray<float> device_x(x), out(5 * COUNT);
    half_kernel<<<BLOCKS, THREADS>>>(device_x.data(), out.data());
    LAUNCH_OK();
    std::vector<float> actual = out.values();
    for (int i = 0; i < COUNT; i++) {
        double h = double{as_half(double{x[i]})}, square = double{as_half(h * h)},
               b = double{as_bfloat16(double{x[i]})};
        const float expected[5] = {as_half(h), as_half(h * h + h), as_half(square * square + square),
                                   as_bfloat16(b * b), as_bfloat16(b + double{as_bfloat16(double{0.3f})})};
        for (int k = 0; k < 5; k++)
            ASSERT_EQ(actual[5 * i + k], expected[k]) << "result " << k << " of " << x[i];
    }
}

// ---- integers ------------------------------------------------------------------------------------------------------

constexpr int WIDE = 7;
__global__ void wide_kernel(const long long *x, const long long *y, long long *out) {
    int i = global_index();
    long long a = x[i], b = y[i], *r = out + WIDE * i;
    unsigned long long c = static_cast<unsigned long long>(a), d = static_cast<unsigned long long>(b);
    r[0] = a / b;
    r[1] = a % b;
    r[2] = static_cast<long long>(c / d);
    r[3] = static_cast<long long>(c % d);
    r[4] = __mul64hi(a, b);
    r[5] = static_cast<long long>(__umul64hi(c, d));
    r[6] = (a >> (b & 63)) ^ static_cast<long long>(c << (d & 63)) ^ __popcll(c) ^ __clzll(a) ^ __ffsll(b);
}

TEST_F(Arithmetic, WideIntegers) {
    std::mt19937 random(7);
    std::vector<long long> x = random_integers<long long>(random, COUNT, INT64_MIN, INT64_MAX);
    std::vector<long long> y = random_integers<long long>(random, COUNT, INT64_MIN, INT64_MAX);
    for (int i = 0; i < COUNT; i++) {
        y[i] >>= random() % 64; // of all lengths
        if (y[i] == 0 || y[i] == -1) y[i] = 3;
    }
    DeviceArray<long long> device_x(x), device_y(y), out(WIDE * COUNT);
    wide_kernel<<<BLOCKS, THREADS>>>(device_x.data(), device_y.data(), out.data());
    LAUNCH_OK();
    std::vector<long long> actual = out.values();
    for (int i = 0; i < COUNT; i++) {
        long long a = x[i], b = y[i];
        auto c = static_cast<unsigned long long>(a), d = static_cast<unsigned long long>(b);
        const long long expected[WIDE] = {
            a / b,
            a % b,
            static_cast<long long>(c / d),
            static_cast<long long>(c % d),
            static_cast<long long>((static_cast<__int128>(a) * b) >> 64),
            static_cast<long long>((static_cast<unsigned __int128>(c) * d) >> 64),
            (a >> (b & 63)) ^ static_cast<long long>(c << (d & 63)) ^ __builtin_popcountll(c) ^
                (c == 0 ? 64 : __builtin_clzll(c)) ^ __builtin_ffsll(b),
        };
        for (int k = 0; k < WIDE; k++) {
            ASSERT_EQ(actual[WIDE * i + k], expected[k]) << "result " << k << " of " << a << ", " << b;
        }
    }
}

constexpr int INTRINSICS = 10;
__global__ void intrinsics_kernel(const unsigned *x, const unsigned *y, unsigned *out) {
    int i = global_index();
    unsigned a = x[i], b = y[i], *r = out + INTRINSICS * i;
    r[0] = __byte_perm(a, b, 0x5140);
    r[1] = __funnelshift_l(a, b, b);
    r[2] = __brev(a);
    r[3] = static_cast<unsigned>(__clz(static_cast<int>(b)) * 64 + __ffs(static_cast<int>(a)));
    r[4] = a / b + a % 1000u;
    r[5] = __umulhi(a, b);
    r[6] = static_cast<unsigned>(__dp4a(static_cast<int>(a), static_cast<int>(b), 5));
    r[7] = __sad(static_cast<int>(a), static_cast<int>(b), 3u);
    r[8] = __usad(a, b, 3u);
    r[9] = static_cast<unsigned>(__popc(a) + __mulhi(static_cast<int>(a), static_cast<int>(b)));
}

std::vector<unsigned> intrinsics(unsigned a, unsigned b) {
    auto byte = [](unsigned value, int k) { return (value >> 8 * k) & 255u; };
    auto signed_byte = [&](unsigned value, int k) {
        return static_cast<int>(static_cast<signed char>(byte(value, k)));
    };
    unsigned reversed = 0;
    for (int k = 0; k < 32; k++)
        reversed |= ((a >> k) & 1u) << (31 - k);
    int dot = 5;
    for (int k = 0; k < 4; k++)
        dot += signed_byte(a, k) * signed_byte(b, k);
    int64_t distance = int64_t{static_cast<int>(a)} - static_cast<int>(b);
    int64_t product = int64_t{static_cast<int>(a)} * static_cast<int>(b);
    unsigned shift = b & 31;
    return {byte(a, 0) | byte(b, 0) << 8 | byte(a, 1) << 16 | byte(b, 1) << 24,
            shift == 0 ? b : b << shift | a >> (32 - shift),
            reversed,
            static_cast<unsigned>(__builtin_clz(b) * 64 + __builtin_ffs(static_cast<int>(a))),
            a / b + a % 1000u,
            static_cast<unsigned>((uint64_t{a} * b) >> 32),
            static_cast<unsigned>(dot),
            static_cast<unsigned>(distance < 0 ? -distance : distance) + 3u,
            std::max(a, b) - std::min(a, b) + 3u,
            static_cast<unsigned>(__builtin_popcount(a)) + static_cast<unsigned>(product >> 32)};
}

TEST_F(Arithmetic, IntegerIntrinsics) {
    std::mt19937 random(8);
    std::vector<unsigned> x = random_integers<unsigned>(random, COUNT, 0, UINT32_MAX);
    std::vector<unsigned> y = random_integers<unsigned>(random, COUNT, 1, UINT32_MAX);
    for (int i = 0; i < COUNT; i += 2)
        y[i] = std::max(1u, y[i] >> random() % 32);
    DeviceArray<unsigned> device_x(x), device_y(y), out(INTRINSICS * COUNT);
    intrinsics_kernel<<<BLOCKS, THREADS>>>(device_x.data(), device_y.data(), out.data());
    LAUNCH_OK();
    std::vector<unsigned> actual = out.values();
    for (int i = 0; i < COUNT; i++) {
        std::vector<unsigned> expected = intrinsics(x[i], y[i]);
        for (int k = 0; k < INTRINSICS; k++) {
            ASSERT_EQ(actual[INTRINSICS * i + k], expected[k]) << "result " << k << " of " << x[i] << ", " << y[i];
        }
    }
}

// ---- division of 128 bits ------------------------------------------------------------------------------------------

template <class Integer> __global__ void divide_kernel(const Integer *x, const Integer *y, Integer *out) {
    int i = global_index();
    out[2 * i] = x[i] / y[i];
    out[2 * i + 1] = x[i] % y[i];
}

// Of all magnitudes; a signed one of both signs. Never 0.
template <class Integer> std::vector<Integer> random_wide(std::mt19937 &random) {
    std::vector<Integer> values(COUNT);
    for (Integer &value : values) {
        unsigned __int128 bits = 0;
        for (int word = 0; word < 4; word++)
            bits = bits << 32 | random();
        value = static_cast<Integer>(bits) >> random() % 128;
        if (value == 0) value = 3;
    }
    return values;
}

template <class Integer> void expect_quotients(unsigned seed) {
    std::mt19937 random(seed);
    std::vector<Integer> x = random_wide<Integer>(random), y = random_wide<Integer>(random);
    DeviceArray<Integer> device_x(x), device_y(y), out(2 * COUNT);
    divide_kernel<<<BLOCKS, THREADS>>>(device_x.data(), device_y.data(), out.data());
    LAUNCH_OK();
    std::vector<Integer> actual = out.values();
    for (int i = 0; i < COUNT; i++) {
        ASSERT_TRUE(actual[2 * i] == x[i] / y[i]) << "quotient " << i;
        ASSERT_TRUE(actual[2 * i + 1] == x[i] % y[i]) << "remainder " << i;
    }
}

TEST_F(Arithmetic, DivisionOf128Bits) {
    expect_quotients<unsigned __int128>(11);
    expect_quotients<__int128>(12);
}

// ---- conversions ---------------------------------------------------------------------------------------------------

constexpr int CONVERSIONS = 7;
__global__ void conversions_kernel(const float *x, int *out) {
    int i = global_index(), *r = out + CONVERSIONS * i;
    r[0] = __float2int_rz(x[i]);
    r[1] = __float2int_rn(x[i]);
    r[2] = __float2int_rd(x[i]);
    r[3] = __float2int_ru(x[i]);
    r[4] = static_cast<int>(__float2uint_rz(x[i]));
    r[5] = static_cast<int>(__float2ll_rz(x[i]) >> 32);
    r[6] = __float_as_int(__int2float_rd(__float_as_int(x[i])));
}

// To the nearest value there is; not a number becomes 0, as a GPU has it.
template <class Integer> Integer saturated(double value) {
    if (std::isnan(value)) return 0;
    if (value <= static_cast<double>(std::numeric_limits<Integer>::min())) return std::numeric_limits<Integer>::min();
    if (value >= static_cast<double>(std::numeric_limits<Integer>::max())) return std::numeric_limits<Integer>::max();
    return static_cast<Integer>(value);
}

TEST_F(Arithmetic, ConversionsSaturate) {
    std::mt19937 random(9);
    std::vector<float> x = special_floats(random, COUNT);
    DeviceArray<float> device_x(x);
    DeviceArray<int> out(CONVERSIONS * COUNT);
    conversions_kernel<<<BLOCKS, THREADS>>>(device_x.data(), out.data());
    LAUNCH_OK();
    std::vector<int> actual = out.values();
    for (int i = 0; i < COUNT; i++) {
        double value = double{x[i]};
        int bits, float_bits;
        memcpy(&bits, &x[i], sizeof(bits));
        float below = static_cast<float>(bits);
        if (double{below} > bits) below = std::nextafter(below, -INFINITY);
        memcpy(&float_bits, &below, sizeof(float_bits));
        const int expected[CONVERSIONS] = {
            saturated<int>(std::trunc(value)),
            saturated<int>(std::nearbyint(value)),
            saturated<int>(std::floor(value)),
            saturated<int>(std::ceil(value)),
            static_cast<int>(saturated<unsigned>(std::trunc(value))),
            static_cast<int>((std::isnan(value) ? INT64_MIN : saturated<int64_t>(std::trunc(value))) >> 32),
            float_bits,
        };
        for (int k = 0; k < CONVERSIONS; k++) {
            ASSERT_EQ(actual[CONVERSIONS * i + k], expected[k]) << "conversion " << k << " of " << x[i];
        }
    }
}

} // namespace
