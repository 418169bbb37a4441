// One option's value: from text, into the struct, back to text. Private to host/config*.c.
//
// Ownership: plain data. Errors: STATUS_USAGE naming `what`. Thread safety: any thread.
#ifndef SHOAL_HOST_CONFIG_VALUE_H
#define SHOAL_HOST_CONFIG_VALUE_H

#include "host/config.h"

typedef union ConfigValue {
    int64_t integer;
    double real;
    bool flag;
    int choice;
    HostSizes sizes;
    char text[HOST_TEXT_MAX]; // TEXT, and one entry of a LIST
} ConfigValue;

// `what` begins the message: "option --pop", "config.json: pop".
Status host_config_value_parse(const ConfigOption *option, const char *what, const char *text,
                               ConfigValue *value) HOST_MUST_CHECK;

// Names an option's allowed values: "2 to 1048576 members", "auto, cpu or cuda". Returns `text`.
const char *host_config_range_text(const ConfigOption *option, char *text, size_t size);

// Splits "a|b|c" into names that lie in `buffer`. Returns their number.
enum { HOST_CHOICES_MAX = 32, HOST_CHOICES_TEXT_MAX = 256 };
int host_config_choices(const char *choices, char buffer[HOST_CHOICES_TEXT_MAX], const char *names[HOST_CHOICES_MAX]);

// Validates and stores; `what` begins the message.
Status host_config_set_option(HostConfig *config, ConfigLayer layer, int index, const char *what,
                              const char *text) HOST_MUST_CHECK;

// The place of an option in its table, or -1.
int host_config_index(const ConfigTable *table, const char *name);

// "unknown X 'name'; the nearest is 'other'" over the table's names with '-' for '_'.
Status host_config_unknown(const ConfigTable *table, const char *what, const char *name, bool command_line,
                           bool settings_only) HOST_MUST_CHECK;

#endif
