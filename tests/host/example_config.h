// The example table as a struct and as rows; C and C++.
#ifndef SHOAL_TESTS_EXAMPLE_CONFIG_H
#define SHOAL_TESTS_EXAMPLE_CONFIG_H

#include <float.h>
#include <stdint.h>

#include "host/config.h"

typedef struct ExampleConfig {
#define OPTION  HOST_CONFIG_FIELD
#define COMMAND HOST_CONFIG_FIELD
#include "tests/host/example_config.def"
} ExampleConfig;

static const ConfigOption example_options[] = {
#define OPTION(type, name, ...)  HOST_CONFIG_ROW(ExampleConfig, false, type, name, __VA_ARGS__)
#define COMMAND(type, name, ...) HOST_CONFIG_ROW(ExampleConfig, true, type, name, __VA_ARGS__)
#include "tests/host/example_config.def"
};

static const ConfigTable example_table = {"example", example_options,
                                          sizeof example_options / sizeof example_options[0], sizeof(ExampleConfig)};

#endif
