// libFuzzer target: any bytes given to the config reader, as JSON and as command-line words, are refused with a message
// or taken; what is taken must come back the same through JSON.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/host/example_config.h"

enum { WORDS_MAX = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_refusal(Status status) {
    if (status != STATUS_USAGE || host_message()[0] == '\0') abort();
}

// Writes the settings, reads them into a fresh struct, writes them again.
static void check_round_trip(const HostConfig *config) {
    ExampleConfig values;
    HostConfig again;
    char *first = NULL, *second = NULL;
    host_config_init(&again, &example_table, &values);
    if (host_config_to_json(config, &first) != STATUS_OK) abort();
    if (host_config_from_json(&again, CONFIG_FILE, "again", first, strlen(first)) != STATUS_OK) abort();
    if (host_config_to_json(&again, &second) != STATUS_OK) abort();
    if (strcmp(first, second) != 0) abort();
    free(first);
    free(second);
}

static void as_json(const uint8_t *data, size_t size) {
    ExampleConfig values;
    HostConfig config;
    char *before = NULL, *after = NULL;
    host_config_init(&config, &example_table, &values);
    if (host_config_to_json(&config, &before) != STATUS_OK) abort();
    Status status = host_config_from_json(&config, CONFIG_FILE, "fuzz", (const char *)data, size);
    if (status != STATUS_OK) {
        check_refusal(status);
        if (host_config_to_json(&config, &after) != STATUS_OK || strcmp(before, after) != 0) abort();
    }
    free(before);
    free(after);
    check_round_trip(&config);
}

// A word per line.
static void as_words(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1), *argv[WORDS_MAX + 1] = {(char[]){"example"}};
    if (text == NULL) abort();
    if (size > 0) memcpy(text, data, size);
    text[size] = '\0';
    int argc = 1;
    for (char *at = text; at != NULL && argc <= WORDS_MAX;) {
        argv[argc++] = at;
        at = strchr(at, '\n');
        if (at != NULL) *at++ = '\0';
    }
    ExampleConfig values;
    HostConfig config;
    ConfigArgs args;
    host_config_init(&config, &example_table, &values);
    Status status = host_config_parse_args(&config, argc, argv, &args);
    if (status != STATUS_OK) check_refusal(status);
    check_round_trip(&config);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    as_json(data, size);
    as_words(data, size);
    return 0;
}
