// What CUPTI takes to tell of a call of the CUDA runtime, and how much longer a kernel takes that it records: the same
// calls before CUPTI is opened and afterwards. Of each round the shortest call counts: what else the machine does only
// adds to the others.
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "host/clock.h"
#include "profiler/prof_cost_parts.h"
#include "profiler/prof_cupti.h"

enum { CALLS = 8, KERNELS = 10 };

// From cuda_runtime_api.h, whose types are numbers and pointers.
// F(function, its parameters)
#define CUDA_LIST(F)                                                                                                \
    F(cudaGetDeviceCount, (int *))                                                                                  \
    F(cudaStreamCreateWithFlags, (void **, unsigned))                                                               \
    F(cudaStreamDestroy, (void *))                                                                                  \
    F(cudaStreamGetFlags, (void *, unsigned *))                                                                     \
    F(cudaStreamSynchronize, (void *))                                                                              \
    F(cudaLaunchHostFunc, (void *, void (*)(void *), void *))                                                       \
    F(cudaEventCreate, (void **))                                                                                   \
    F(cudaEventDestroy, (void *))                                                                                   \
    F(cudaEventRecord, (void *, void *))                                                                            \
    F(cudaEventElapsedTime, (float *, void *, void *))                                                              \
    F(cudaLibraryLoadData, (void **, const void *, const void *, void *, unsigned, const void *, void *, unsigned)) \
    F(cudaLibraryGetKernel, (void **, void *, const char *))                                                        \
    F(cudaLibraryUnload, (void *))                                                                                  \
    F(cudaLaunchKernel, (const void *, Dim3, Dim3, void **, size_t, void *))

typedef struct Dim3 {
    unsigned x, y, z;
} Dim3;

typedef struct Cuda {
#define CUDA_MEMBER(function, parameters) int(*function) parameters; // NOLINT(bugprone-macro-parentheses)
    CUDA_LIST(CUDA_MEMBER)
#undef CUDA_MEMBER
    void *stream, *event[2], *library, *kernel;
} Cuda;

#define CUDA_TRY(call)                                                                          \
    do {                                                                                        \
        int failed = (call);                                                                    \
        if (failed != 0) return host_fail(STATUS_DEVICE, "CUDA's error %d: %s", failed, #call); \
    } while (0)

static const char kernel_text[] = ".version 7.0\n.target sm_80\n.address_size 64\n"
                                  ".visible .entry shoal_nothing()\n{\n    ret;\n}\n";

// Never closed again.
static Status find_cuda(Cuda *cuda) {
    void *library = NULL;
    for (int major = PROF_CUDA_NEWEST; library == NULL && major >= PROF_CUDA_OLDEST; major--) {
        char name[32];
        snprintf(name, sizeof name, "libcudart.so.%d", major);
        library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    if (library == NULL) {
        return host_fail(STATUS_DEVICE, "there is no libcudart.so of version %d to %d in LD_LIBRARY_PATH",
                         PROF_CUDA_OLDEST, PROF_CUDA_NEWEST);
    }
#define CUDA_LOAD(function, parameters)                                                             \
    do {                                                                                            \
        void *found = dlsym(library, #function);                                                    \
        if (found == NULL) return host_fail(STATUS_DEVICE, "this CUDA runtime has no " #function);  \
        memcpy(&cuda->function, &found, sizeof found); /* no cast from void * to a function in C */ \
    } while (0);
    CUDA_LIST(CUDA_LOAD)
#undef CUDA_LOAD
    int devices = 0;
    if (cuda->cudaGetDeviceCount(&devices) != 0 || devices == 0) return host_fail(STATUS_DEVICE, "there is no GPU");
    return STATUS_OK;
}

static Status prepare(Cuda *cuda) {
    enum { NON_BLOCKING = 1 };
    // NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): find_cuda() set it by memcpy
    CUDA_TRY(cuda->cudaStreamCreateWithFlags(&cuda->stream, NON_BLOCKING));
    for (int i = 0; i < 2; i++)
        CUDA_TRY(cuda->cudaEventCreate(&cuda->event[i]));
    CUDA_TRY(cuda->cudaLibraryLoadData(&cuda->library, kernel_text, NULL, NULL, 0, NULL, NULL, 0));
    CUDA_TRY(cuda->cudaLibraryGetKernel(&cuda->kernel, cuda->library, "shoal_nothing"));
    return STATUS_OK;
}

static void release(Cuda *cuda) {
    if (cuda->library != NULL) (void)cuda->cudaLibraryUnload(cuda->library);
    for (int i = 0; i < 2; i++) {
        if (cuda->event[i] != NULL) (void)cuda->cudaEventDestroy(cuda->event[i]);
    }
    if (cuda->stream != NULL) (void)cuda->cudaStreamDestroy(cuda->stream);
}

// ---- a round -------------------------------------------------------------------------------------------------------

typedef struct Round {
    double call_ns, launch_ns; // of the shortest
    double kernel_ns;          // on the device
} Round;

static int launch(const Cuda *cuda) {
    const Dim3 one = {1, 1, 1};
    return cuda->cudaLaunchKernel(cuda->kernel, one, one, NULL, 0, cuda->stream);
}

static Status time_calls(const Cuda *cuda, double *least_ns) {
    int64_t least = INT64_MAX;
    unsigned flags;
    for (int i = 0; i < CALLS; i++) {
        int64_t start_ns = host_now_ns();
        CUDA_TRY(cuda->cudaStreamGetFlags(cuda->stream, &flags));
        int64_t ns = host_now_ns() - start_ns;
        if (ns < least) least = ns;
    }
    *least_ns = (double)least;
    return STATUS_OK;
}

static void wait_for_flag(void *flag) {
    while (!atomic_load((atomic_bool *)flag))
        usleep(20);
}

// Into a stream that waits until all of them are there, so that nobody has to be woken for them; then they run one
// behind the other, without the host.
static Status time_launches(const Cuda *cuda, Round *round) {
    atomic_bool is_open = false;
    float elapsed_ms = 0.0f;
    int64_t least = INT64_MAX;
    int error = cuda->cudaLaunchHostFunc(cuda->stream, wait_for_flag, &is_open);
    if (error == 0) error = launch(cuda);
    if (error == 0) error = cuda->cudaEventRecord(cuda->event[0], cuda->stream);
    for (int i = 0; i < KERNELS && error == 0; i++) {
        int64_t start_ns = host_now_ns();
        error = launch(cuda);
        int64_t ns = host_now_ns() - start_ns;
        if (ns < least) least = ns;
    }
    if (error == 0) error = cuda->cudaEventRecord(cuda->event[1], cuda->stream);
    atomic_store(&is_open, true);
    CUDA_TRY(cuda->cudaStreamSynchronize(cuda->stream)); // whatever failed: the stream looks at the flag until then
    CUDA_TRY(error);
    CUDA_TRY(cuda->cudaEventElapsedTime(&elapsed_ms, cuda->event[0], cuda->event[1]));
    round->launch_ns = (double)least;
    round->kernel_ns = 1e6 * (double)elapsed_ms / KERNELS;
    return STATUS_OK;
}

static Status time_round(const Cuda *cuda, Round *round) {
    TRY(time_calls(cuda, &round->call_ns));
    return time_launches(cuda, round);
}

// In scopes of the rounds' names, where there is a recorder.
static Status time_rounds(const Cuda *cuda, const ProfCostNames *names, Round rounds[PROF_COST_REPEATS]) {
    Round first;
    TRY(time_round(cuda, &first)); // to warm up
    for (int r = 0; r < PROF_COST_REPEATS; r++) {
        const HostTraceHooks *scope = host_trace_begin(HOST_TRACE_HOST, names->of[r]);
        Status status = time_round(cuda, &rounds[r]);
        host_trace_end(scope);
        TRY(status);
    }
    return STATUS_OK;
}

// ---- all of it -----------------------------------------------------------------------------------------------------

static Status time_recorded(const Cuda *cuda, const char *path, const ProfCostNames *names,
                            Round rounds[PROF_COST_REPEATS]) {
    const ProfCuptiOptions with = {.asks_now = true};
    ProfCupti *cupti = NULL;
    ProfRecorder *recorder = NULL;
    TRY(prof_cupti_open(&with, &cupti));
    ProfRecordOptions options = {.path = path, .collector = prof_cupti_collector(cupti)};
    Status status = prof_recorder_start(&options, &recorder);
    if (status == STATUS_OK) {
        prof_cupti_attach(cupti, recorder);
        status = time_rounds(cuda, names, rounds);
        Status detached = prof_cupti_detach(cupti), stopped = prof_recorder_stop(recorder, NULL);
        if (status == STATUS_OK) status = detached != STATUS_OK ? detached : stopped;
    }
    prof_cupti_close(cupti, NULL);
    prof_recorder_free(recorder);
    return status;
}

static Status compare(const char *path, const Round *plain, const Round *recorded, ProfCost *cost) {
    ProfCostCell calls[PROF_COST_REPEATS] = {{0.0, 0.0}}, launches[PROF_COST_REPEATS] = {{0.0, 0.0}};
    double call[PROF_COST_REPEATS], inside[PROF_COST_REPEATS], record[PROF_COST_REPEATS], kernel[PROF_COST_REPEATS];
    TRY(prof_cost_read(path, "cudaStreamGetFlags", calls));
    TRY(prof_cost_read(path, "cudaLaunchKernel", launches));
    for (int r = 0; r < PROF_COST_REPEATS; r++) {
        if (launches[r].records <= 0.0) return host_fail(STATUS_DEVICE, "CUPTI told of no launch");
        call[r] = recorded[r].call_ns - plain[r].call_ns;
        inside[r] = calls[r].ns - plain[r].call_ns;
        record[r] = (recorded[r].launch_ns - plain[r].launch_ns - call[r]) / launches[r].records;
        kernel[r] = recorded[r].kernel_ns - plain[r].kernel_ns;
    }
    cost->each_ns[PROF_COST_CALL] = prof_estimate(call, PROF_COST_REPEATS);
    cost->inside_ns[PROF_COST_CALL] = prof_estimate(inside, PROF_COST_REPEATS);
    cost->each_ns[PROF_COST_RECORD] = prof_estimate(record, PROF_COST_REPEATS);
    cost->inside_ns[PROF_COST_RECORD] = cost->each_ns[PROF_COST_RECORD];
    cost->kernel_ns = prof_estimate(kernel, PROF_COST_REPEATS);
    cost->is_known[PROF_COST_CALL] = cost->is_known[PROF_COST_RECORD] = cost->has_kernel = true;
    return STATUS_OK;
}

static Status measure(Cuda *cuda, const char *path, ProfCost *cost) {
    Round plain[PROF_COST_REPEATS], recorded[PROF_COST_REPEATS];
    ProfCostNames names;
    prof_cost_names(&names);
    TRY(prepare(cuda));
    TRY(time_rounds(cuda, &names, plain));
    TRY(time_recorded(cuda, path, &names, recorded));
    return compare(path, plain, recorded, cost);
}

Status prof_cost_measure_gpu(const char *folder, ProfCost *cost) {
    char path[HOST_PATH_MAX];
    Cuda cuda = {0};
    TRY(host_file_join(folder, "gpu.trace", path));
    TRY(find_cuda(&cuda));
    Status status = measure(&cuda, path, cost);
    release(&cuda);
    unlink(path);
    return status;
}
