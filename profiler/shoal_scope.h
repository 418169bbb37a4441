// Annotates a program of your own for profreport: what each stretch of its time is spent on. A trainer in C or C++ that
// knows nothing else of Shoal is then measured as Shoal's own are. Link with -lshoal_inject.
//
//     shoal_profile_start("runs/x", "mytrainer");      // or set SHOAL_PROFILE=runs/x, and leave this out
//     shoal_scope_begin(SHOAL_SIMULATION, "env step");
//     ...
//     shoal_scope_end();
//     shoal_profile_stop();                            // or leave it to the end of the process
//
// and then `profreport runs/x`. Scopes nest, and each thread has its own; the innermost one has the time. Of a
// program that uses CUDA, the GPU's work is recorded as well where CUDA_INJECTION64_PATH names libshoal_inject.so.
//
// A process is worker `rank` of its run: SHOAL_RANK, or RANK, OMPI_COMM_WORLD_RANK, SLURM_PROCID, PMI_RANK, whichever
// is set. A process that forks goes on recording; its child does not, until it calls shoal_profile_start().
//
// Ownership: names are kept as pointers, and must last as long as the process: literals, or what shoal_scope_name()
// returns. Errors: -1, and shoal_profile_message() says why; scopes never fail: what finds no room is dropped, and the
// report says so. Thread safety: scopes from any thread; start and stop from one thread at a time.
#ifndef SHOAL_PROFILER_SHOAL_SCOPE_H
#define SHOAL_PROFILER_SHOAL_SCOPE_H

#ifdef __cplusplus
extern "C" {
#endif

enum ShoalCategory {
    SHOAL_SIMULATION,    // stepping environments
    SHOAL_POLICY,        // evaluating the policy
    SHOAL_LEARNING,      // updating parameters
    SHOAL_COMMUNICATION, // collectives and messages
    SHOAL_HOST,          // bookkeeping
    SHOAL_IO,            // files
    SHOAL_IDLE,          // waiting
};

enum ShoalPhase { SHOAL_SETUP, SHOAL_WARM_UP, SHOAL_TRAIN, SHOAL_EVALUATE };

// Records from now on, into FOLDER/profile. tool: the program's name in reports; NULL: the name it was called by. -1
// where a profile is under way already, or cannot be written.
int shoal_profile_start(const char *folder, const char *tool);

// Ends the trace; 0 where none is recorded. -1: something was lost, a full disk for instance.
int shoal_profile_stop(void);

// 1 where one is under way, 0 where none is: SHOAL_PROFILE may name a folder that cannot be written.
int shoal_profile_is_recording(void);

// Why this thread's last call returned -1; "" if none did. Valid until its next one.
const char *shoal_profile_message(void);

// category: an enum ShoalCategory; another one counts as SHOAL_HOST.
void shoal_scope_begin(int category, const char *name);
void shoal_scope_end(void); // of the innermost scope of this thread

// shoal_scope_begin() for modules of interpreters, whose scopes cost more: profreport --calibrate has a class for them.
void shoal_script_begin(int category, const char *name);

// A copy of a name that lasts; the same text gives the same pointer. For names that are made at run time.
const char *shoal_scope_name(const char *text);

// The process goes over to a phase, an enum ShoalPhase; others are ignored.
void shoal_phase(int phase);

// SHOAL_SCOPE(SIMULATION, "env step"); until the enclosing block ends. gcc and clang.
#define SHOAL_SCOPE_JOIN_(a, b) a##b
#define SHOAL_SCOPE_JOIN(a, b)  SHOAL_SCOPE_JOIN_(a, b)
#define SHOAL_SCOPE(category, name)                                                                     \
    char SHOAL_SCOPE_JOIN(shoal_scope_, __LINE__) __attribute__((cleanup(shoal_scope_leave), unused)) = \
        (shoal_scope_begin(SHOAL_##category, name), 0)

static inline void shoal_scope_leave(const char *scope) {
    (void)scope;
    shoal_scope_end();
}

#ifdef __cplusplus
}
#endif

#endif
