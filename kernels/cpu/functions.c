// The built-in objectives on the CPU. Compiled for each instruction set (ISA is defined).
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/wide.h"
#include "kernels/objective_math.h"

#define ISA_CAT_(a, b) a##b
#define ISA_CAT(a, b)  ISA_CAT_(a, b)

// The sum of TERM(x + i) over `count` terms.
#define SUM_FUNCTION(name, TERM)                                                   \
    static double name(const float *x, int32_t count) {                            \
        double partial[OBJECTIVE_PARTIALS] = {0};                                  \
        int32_t first = 0;                                                         \
        for (; first + OBJECTIVE_PARTIALS <= count; first += OBJECTIVE_PARTIALS) { \
            for (int32_t k = 0; k < OBJECTIVE_PARTIALS; k++) /* vectorises */      \
                partial[k] = partial[k] + TERM(x + first + k);                     \
        }                                                                          \
        for (int32_t k = 0; first + k < count; k++)                                \
            partial[k] = partial[k] + TERM(x + first + k);                         \
        return objective_fold(partial);                                            \
    }

SUM_FUNCTION(sphere, objective_sphere)
SUM_FUNCTION(rastrigin, objective_rastrigin)
SUM_FUNCTION(rosenbrock, objective_rosenbrock)

double ISA_CAT(cpu_objective_, ISA)(KernObjectiveKind kind, const float *x, int32_t dim) {
    double sum = kind == KERN_OBJECTIVE_SPHERE      ? sphere(x, dim)
                 : kind == KERN_OBJECTIVE_RASTRIGIN ? rastrigin(x, dim)
                                                    : rosenbrock(x, dim - 1);
    wide_end();
    return -sum;
}
