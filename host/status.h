// Status codes and the message that goes with the last failure of this thread.
//
// Everything that can fail returns a Status. host_fail() records what went wrong, with the value at fault; TRY() passes
// a failure up; only mains print the message and exit.
#ifndef SHOAL_HOST_STATUS_H
#define SHOAL_HOST_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

// S(name, what it means)
#define STATUS_LIST(S)                                                 \
    S(OK, "success")                                                   \
    S(USAGE, "bad option or value: the user's mistake, exit status 2") \
    S(IO, "a file or folder could not be read or written")             \
    S(CORRUPT, "a file's content is not what it should be")            \
    S(MEMORY, "memory could not be had")                               \
    S(DEVICE, "a device is missing or failed")                         \
    S(NUMERIC, "a NaN or an infinity appeared")                        \
    S(STOPPED, "stopped on request before the work was complete")      \
    S(SYSTEM, "the operating system refused")

typedef enum Status {
#define STATUS_ENUM(name, meaning) STATUS_##name,
    STATUS_LIST(STATUS_ENUM)
#undef STATUS_ENUM
} Status;

#define HOST_MUST_CHECK __attribute__((warn_unused_result))

// Records a failure of this thread and returns `status`: `return host_fail(STATUS_IO, "cannot open %s: %s", ...)`.
#define host_fail(status, ...) host_fail_at(__FILE__, __LINE__, status, __VA_ARGS__)
Status host_fail_at(const char *file, int line, Status status, const char *format, ...)
    __attribute__((format(printf, 4, 5))) HOST_MUST_CHECK;

// The last failure's message on this thread; "" if there was none. Valid until the thread's next host_fail().
const char *host_message(void);

// Where that failure was recorded, as "file:line".
const char *host_message_origin(void);

// "OK", "USAGE", ... Static storage.
const char *host_status_name(Status status);

// Returns from the enclosing function if `expr` failed.
#define TRY(expr)                                         \
    do {                                                  \
        Status try_status_ = (expr);                      \
        if (try_status_ != STATUS_OK) return try_status_; \
    } while (0)

#ifdef __cplusplus
}
#endif

#endif
