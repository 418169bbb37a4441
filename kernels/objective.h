// Objectives: what an ES optimises where there is no simulator. A member's parameters go to a function, and what it
// gives is the member's fitness, which is maximised.
//
//     objective:sphere           -sum x_i^2
//     objective:rastrigin        -sum (x_i^2 + 10 - 10 cos(2 pi x_i))
//     objective:rosenbrock       -sum (100 (x_(i+1) - x_i^2)^2 + (1 - x_i)^2)
//     objective:sleep:LOW:HIGH   a random number, after so many milliseconds; for tests of what hands work out
//     objective:exec:COMMAND     the user's command, which is told parameters and prints a fitness, line by line
//     objective:lib:PATH         the user's shared library (kernels/shoal_objective.h)
//
// Ownership: plain data, that may be copied. Errors: STATUS_USAGE naming what is wrong and the nearest name.
// Thread safety: plain data.
#ifndef SHOAL_KERNELS_OBJECTIVE_H
#define SHOAL_KERNELS_OBJECTIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "host/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KERN_OBJECTIVE_PREFIX "objective:"

// A target that nothing reaches: there is none.
#define KERN_TARGET_NONE 1e9

enum { KERN_OBJECTIVE_TEXT_MAX = 512, KERN_OBJECTIVE_LABEL_MAX = 64 };

// K(its name in capitals, its name, form, what it is, the range its search begins in, target, the least dim)
#define KERN_OBJECTIVES(K)                                                                                             \
    K(SPHERE, "sphere", "sphere", "-sum x_i^2; 0 at 0", -5.0f, 5.0f, -0.01, 1)                                         \
    K(RASTRIGIN, "rastrigin", "rastrigin", "-sum (x_i^2 + 10 - 10 cos(2 pi x_i)); 0 at 0", -5.12f, 5.12f, -1.0, 1)     \
    K(ROSENBROCK, "rosenbrock", "rosenbrock", "-sum (100 (x_(i+1) - x_i^2)^2 + (1 - x_i)^2); 0 where all are 1",       \
      -2.0f, 2.0f, -1.0, 2)                                                                                            \
    K(SLEEP, "sleep", "sleep[:MS[:MS]]", "a random number, after MS ms (1), or after a random time between two", 0.0f, \
      0.0f, KERN_TARGET_NONE, 1)                                                                                       \
    K(EXEC, "exec", "exec:COMMAND", "a command's: it reads parameters and prints a fitness, line by line", 0.0f, 0.0f, \
      KERN_TARGET_NONE, 1)                                                                                             \
    K(LIB, "lib", "lib:PATH", "a shared library's, by shoal_objective.h; a name that ends in .so will do, too", 0.0f,  \
      0.0f, KERN_TARGET_NONE, 1)

typedef enum KernObjectiveKind {
    KERN_OBJECTIVE_NONE, // a policy in a simulator
#define KERN_OBJECTIVE_ENUM(NAME, ...) KERN_OBJECTIVE_##NAME,
    KERN_OBJECTIVES(KERN_OBJECTIVE_ENUM)
#undef KERN_OBJECTIVE_ENUM
        KERN_OBJECTIVE_KINDS
} KernObjectiveKind;

typedef struct KernObjectiveInfo {
    const char *name, *form, *help; // "sleep", "sleep[:MS[:MS]]"
    float low, high;                // where each parameter begins: uniformly between them
    double target;                  // KERN_TARGET_NONE: there is none
    int32_t least_dim;
} KernObjectiveInfo;

typedef struct KernObjective {
    KernObjectiveKind kind;
    float low, high;                    // where the search begins
    double sleep_low_ms, sleep_high_ms; // SLEEP
    char name[KERN_OBJECTIVE_TEXT_MAX]; // in full; a library's path is absolute
    int32_t argument;                   // where the command or the path begins in it; 0: it names none
} KernObjective;

// [KERN_OBJECTIVE_KINDS], by kind; that of KERN_OBJECTIVE_NONE is zeros.
extern const KernObjectiveInfo kern_objective_info[];

// Whether that is the name of an objective, be there such a one or not, and not of a simulator.
bool kern_objective_is(const char *name);

// What a name stands for, with the range that its search begins in by default.
Status kern_objective_parse(const char *name, KernObjective *objective) HOST_MUST_CHECK;

// "did you mean": the full name of the built-in objective that is called so without its prefix; NULL: none is.
const char *kern_objective_of_bare_name(const char *name);

// Where the search begins: "VALUE" for all parameters, "LOW:HIGH" to draw each; "": what suits the objective.
Status kern_objective_set_start(KernObjective *objective, const char *text) HOST_MUST_CHECK;

// The first parameters: [dim] drawn from the INIT counters of `seed`.
void kern_objective_start(const KernObjective *objective, uint64_t seed, int32_t dim, float *params);

// A library's content, as 16 hex digits; "" for others, and where none is named.
Status kern_objective_hash(const KernObjective *objective, char text[17]) HOST_MUST_CHECK;

// A command or a library's path.
static inline const char *kern_objective_argument(const KernObjective *objective) {
    return objective->name + objective->argument;
}

// For folders: "objective-rastrigin", "objective-exec". Returns `text`.
const char *kern_objective_label(KernObjectiveKind kind, char text[KERN_OBJECTIVE_LABEL_MAX]);

#ifdef __cplusplus
}
#endif

#endif
