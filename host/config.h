// Option tables: one line per option makes the struct, the command line, the help, the validation and config.json.
//
// A tool writes `x_config.def`, lines of
//
//     OPTION(type, name, default, minimum, maximum, unit, help)     a setting: goes to config.json
//     COMMAND(type, name, default, minimum, maximum, unit, help)    about this call only: --dry-run, --out, --resume
//
// `default` is always text ("0.05", "64,64", "auto"); minimum and maximum are numbers. `unit` may be "". The types:
//
//     INT     int64_t          decimal; seeds and counts
//     REAL    double           finite
//     FLAG    bool             --name, --no-name, --name=true|false; default "true" or "false"; bounds ignored (0, 1)
//     TEXT    char[512]        bounds ignored (0, 0)
//     CHOICE  int              index into the names in `unit`, "auto|cpu|cuda"; bounds ignored (0, 0)
//     SIZES   HostSizes        "64,64"; "0" or "none" is the empty list; the bounds hold for each element
//     LIST    HostTextList     repeatable text, --set a=b --set c=d; default ""; `unit` names the form, "NAME=VALUE"
//
// and includes it twice; the .def ends with `#undef OPTION` and `#undef COMMAND`:
//
//     typedef struct XConfig {
//     #define OPTION HOST_CONFIG_FIELD
//     #define COMMAND HOST_CONFIG_FIELD
//     #include "x/x_config.def"
//     } XConfig;
//
//     static const ConfigOption options[] = {
//     #define OPTION(type, name, ...) HOST_CONFIG_ROW(XConfig, false, type, name, __VA_ARGS__)
//     #define COMMAND(type, name, ...) HOST_CONFIG_ROW(XConfig, true, type, name, __VA_ARGS__)
//     #include "x/x_config.def"
//     };
//     static const ConfigTable table = {"xrun", options, sizeof options / sizeof options[0], sizeof(XConfig)};
//
// Names have underscores in the struct and in JSON, dashes on the command line (either is accepted everywhere).
//
// Every value remembers the layer it came from, and a value of a lower layer never replaces one of a higher layer, so
// layers can be applied in any order: read the command line first, then the file it names, then the simulator's
// defaults. LIST entries of all layers are kept, lower layers first (so a later one wins where names repeat).
//
// Ownership: HostConfig points to the caller's table and struct, owns nothing. Errors: STATUS_USAGE for every bad name
// or value, with the option, the value, the allowed range and unit, or the nearest name; STATUS_IO where a file cannot
// be read; the struct is unchanged by a value that is refused. Thread safety: none; one thread at a time per
// HostConfig.
#ifndef SHOAL_HOST_CONFIG_H
#define SHOAL_HOST_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "host/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    HOST_CONFIG_OPTIONS_MAX = 128,
    HOST_CONFIG_NAME_MAX = 64, // bytes, with the zero at the end
    HOST_TEXT_MAX = 512,
    HOST_SIZES_MAX = 8,
    HOST_LIST_MAX = 32,
    HOST_LIST_TEXT_MAX = 128,
    HOST_POSITIONALS_MAX = 64,
};

// Lowest first.
typedef enum ConfigLayer { CONFIG_DEFAULT, CONFIG_SIMULATOR, CONFIG_FILE, CONFIG_ARGS } ConfigLayer;

typedef struct HostSizes {
    int32_t count;
    int32_t at[HOST_SIZES_MAX];
} HostSizes;

typedef struct HostTextList {
    int32_t count;
    uint8_t layer[HOST_LIST_MAX]; // ConfigLayer of each entry
    char at[HOST_LIST_MAX][HOST_LIST_TEXT_MAX];
} HostTextList;

typedef enum ConfigType {
    CONFIG_TYPE_INT,
    CONFIG_TYPE_REAL,
    CONFIG_TYPE_FLAG,
    CONFIG_TYPE_TEXT,
    CONFIG_TYPE_CHOICE,
    CONFIG_TYPE_SIZES,
    CONFIG_TYPE_LIST,
} ConfigType;

typedef struct ConfigOption {
    const char *name;
    ConfigType type;
    bool command; // not a setting: not in config.json, refused there
    size_t offset_bytes;
    const char *default_text;
    int64_t min_int, max_int;  // INT, SIZES
    double min_real, max_real; // REAL
    const char *unit;
    const char *choices; // CHOICE: "auto|cpu|cuda"; else ""
    const char *help;
} ConfigOption;

typedef struct ConfigTable {
    const char *tool; // written to config.json, checked when one is read
    const ConfigOption *options;
    int count; // at most HOST_CONFIG_OPTIONS_MAX
    size_t size_bytes;
} ConfigTable;

typedef struct HostConfig {
    const ConfigTable *table;
    void *values;                           // the tool's struct
    uint8_t layer[HOST_CONFIG_OPTIONS_MAX]; // ConfigLayer of each option's value
} HostConfig;

// What the command line holds besides options. The texts point into argv.
typedef struct ConfigArgs {
    int count;
    const char *positional[HOST_POSITIONALS_MAX];
    bool help;    // -h or --help
    bool version; // --version
} ConfigArgs;

// Points `config` at the table and the struct and sets every option to its default. Asserts that the table is sound
// (each default within its own bounds).
void host_config_init(HostConfig *config, const ConfigTable *table, void *values);

// Sets one option from text; an empty text is an error for numbers. Ignored (but still validated) where the option has
// a value of a higher layer.
Status host_config_set(HostConfig *config, ConfigLayer layer, const char *name, const char *text) HOST_MUST_CHECK;

// Reads `--name value`, `--name=value`, `--flag`, `--no-flag`, `--`, and positionals from argv[1..argc). The last one
// wins where an option is repeated (LIST: all are kept).
Status host_config_parse_args(HostConfig *config, int argc, char **argv, ConfigArgs *args) HOST_MUST_CHECK;

// The layer the option's present value came from; the name must be in the table.
ConfigLayer host_config_layer(const HostConfig *config, const char *name);
static inline bool host_config_is_given(const HostConfig *config, const char *name) {
    return host_config_layer(config, name) >= CONFIG_FILE;
}

// The option of that name (dashes or underscores), or NULL.
const ConfigOption *host_config_find(const ConfigTable *table, const char *name);

// The present value as text that host_config_set would take back, cut to `size` bytes; LIST entries joined by spaces.
// CHOICE gives its name. Returns `text`.
const char *host_config_text(const HostConfig *config, const char *name, char *text, size_t size);

// The present value of an option, which must be in the table and of that type (CHOICE: the index; TEXT: valid as long
// as the struct).
int64_t host_config_int(const HostConfig *config, const char *name);
double host_config_real(const HostConfig *config, const char *name);
bool host_config_flag(const HostConfig *config, const char *name);
int host_config_choice(const HostConfig *config, const char *name);
const char *host_config_chars(const HostConfig *config, const char *name);

// One block per option: --name UNIT, help, default, range.
void host_config_help(const ConfigTable *table, FILE *stream);

// All settings (not commands) as a JSON object, a line per option, doubles and integers exact. Free the text.
Status host_config_to_json(const HostConfig *config, char **json) HOST_MUST_CHECK;

// The same of those settings for which is_wanted(context, name) holds; NULL: of all.
Status host_config_some_to_json(const HostConfig *config, bool (*is_wanted)(const void *context, const char *name),
                                const void *context, char **json) HOST_MUST_CHECK;

// Takes settings from a JSON object. Keys that are missing keep their value; unknown keys, commands, wrong types and
// values out of range are errors, malformed JSON one with line and column. All or nothing. `source` is for messages.
Status host_config_from_json(HostConfig *config, ConfigLayer layer, const char *source, const char *json,
                             size_t json_bytes) HOST_MUST_CHECK;
Status host_config_from_file(HostConfig *config, ConfigLayer layer, const char *path) HOST_MUST_CHECK;

// An option's name as it is written on the command line (dashes) or elsewhere (underscores). Returns `text`.
const char *host_config_spell(const char *name, bool command_line, char text[HOST_CONFIG_NAME_MAX]);

// The one of `names` with the smallest edit distance (a name that begins with `name` counts as close); NULL only if
// count is 0. For "did you mean" messages.
const char *host_nearest_name(const char *name, const char *const *names, int count);

// The shortest decimal text that reads back as exactly this double; always contains one of ".enai". Returns `text`.
const char *host_real_text(double value, char text[32]);

// Whole-text number readers, also for --set values: STATUS_USAGE names `what`, the text and the range.
Status host_parse_int(const char *what, const char *text, int64_t min, int64_t max, const char *unit,
                      int64_t *value) HOST_MUST_CHECK;
Status host_parse_real(const char *what, const char *text, double min, double max, const char *unit,
                       double *value) HOST_MUST_CHECK;

#define HOST_CONFIG_FIELD(type, name, default_text, min, max, unit, help) HOST_CONFIG_FIELD_##type(name)
#define HOST_CONFIG_FIELD_INT(name)                                       int64_t name;
#define HOST_CONFIG_FIELD_REAL(name)                                      double name;
#define HOST_CONFIG_FIELD_FLAG(name)                                      bool name;
#define HOST_CONFIG_FIELD_TEXT(name)                                      char name[HOST_TEXT_MAX];
#define HOST_CONFIG_FIELD_CHOICE(name)                                    int name;
#define HOST_CONFIG_FIELD_SIZES(name)                                     HostSizes name;
#define HOST_CONFIG_FIELD_LIST(name)                                      HostTextList name;

#define HOST_CONFIG_ROW(Struct, is_command, type, name, default_text, min, max, unit, help) \
    {#name,                                                                                 \
     CONFIG_TYPE_##type,                                                                    \
     is_command,                                                                            \
     offsetof(Struct, name),                                                                \
     default_text,                                                                          \
     HOST_CONFIG_BOUNDS_##type(min, max),                                                   \
     HOST_CONFIG_UNIT_##type(unit),                                                         \
     help},
#define HOST_CONFIG_BOUNDS_INT(min, max)    min, max, 0.0, 0.0
#define HOST_CONFIG_BOUNDS_REAL(min, max)   0, 0, min, max
#define HOST_CONFIG_BOUNDS_FLAG(min, max)   0, 0, 0.0, 0.0
#define HOST_CONFIG_BOUNDS_TEXT(min, max)   0, 0, 0.0, 0.0
#define HOST_CONFIG_BOUNDS_CHOICE(min, max) 0, 0, 0.0, 0.0
#define HOST_CONFIG_BOUNDS_SIZES(min, max)  min, max, 0.0, 0.0
#define HOST_CONFIG_BOUNDS_LIST(min, max)   0, 0, 0.0, 0.0
#define HOST_CONFIG_UNIT_INT(unit)          unit, ""
#define HOST_CONFIG_UNIT_REAL(unit)         unit, ""
#define HOST_CONFIG_UNIT_FLAG(unit)         unit, ""
#define HOST_CONFIG_UNIT_TEXT(unit)         unit, ""
#define HOST_CONFIG_UNIT_CHOICE(unit)       "", unit
#define HOST_CONFIG_UNIT_SIZES(unit)        unit, ""
#define HOST_CONFIG_UNIT_LIST(unit)         unit, ""

#ifdef __cplusplus
}
#endif

#endif
