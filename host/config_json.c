#include "host/config_value.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "host/file.h"
#include "host/json_text.h"

enum { JSON_FILE_MAX_BYTES = 1 << 20, WHAT_MAX = 256 };

static void put_value(const HostConfig *config, const ConfigOption *option, FILE *stream) {
    const void *value = (const unsigned char *)config->values + option->offset_bytes;
    char text[HOST_TEXT_MAX];
    if (option->type == CONFIG_TYPE_SIZES) {
        const HostSizes *sizes = value;
        fputc('[', stream);
        for (int i = 0; i < sizes->count; i++)
            fprintf(stream, "%s%" PRId32, i == 0 ? "" : ", ", sizes->at[i]);
        fputc(']', stream);
    } else if (option->type == CONFIG_TYPE_LIST) {
        const HostTextList *list = value;
        fputc('[', stream);
        for (int i = 0; i < list->count; i++) {
            if (i > 0) fputs(", ", stream);
            host_json_put(stream, list->at[i]);
        }
        fputc(']', stream);
    } else if (option->type == CONFIG_TYPE_TEXT || option->type == CONFIG_TYPE_CHOICE) {
        host_json_put(stream, host_config_text(config, option->name, text, sizeof text));
    } else {
        fputs(host_config_text(config, option->name, text, sizeof text), stream);
    }
}

Status host_config_to_json(const HostConfig *config, char **json) {
    return host_config_some_to_json(config, NULL, NULL, json);
}

Status host_config_some_to_json(const HostConfig *config, bool (*is_wanted)(const void *context, const char *name),
                                const void *context, char **json) {
    JsonText text;
    TRY(host_json_open(&text));
    fputs("{\n  \"tool\": ", text.stream);
    host_json_put(text.stream, config->table->tool);
    for (int i = 0; i < config->table->count; i++) {
        const ConfigOption *option = &config->table->options[i];
        if (option->command || (is_wanted != NULL && !is_wanted(context, option->name))) continue;
        fprintf(text.stream, ",\n  \"%s\": ", option->name);
        put_value(config, option, text.stream);
    }
    fputs("\n}\n", text.stream);
    return host_json_close(&text, json, NULL);
}

static Status wrong_type(const char *what, const json_t *value, const char *wanted) {
    static const char *const names[] = {"an object", "a list",        "a text",        "an integer",
                                        "a real",    "true or false", "true or false", "null"};
    return host_fail(STATUS_USAGE, "%s: %s expected, found %s", what, wanted, names[json_typeof(value)]);
}

static Status sizes_from(HostConfig *config, ConfigLayer layer, int index, const char *what, const json_t *value) {
    if (!json_is_array(value)) return wrong_type(what, value, "a list of integers");
    char text[HOST_TEXT_MAX] = "";
    size_t used = 0, at;
    const json_t *element;
    json_array_foreach(value, at, element) {
        if (!json_is_integer(element)) return wrong_type(what, element, "a list of integers");
        if (used + 24 > sizeof text) return host_fail(STATUS_USAGE, "%s: more than %d sizes", what, HOST_SIZES_MAX);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%" JSON_INTEGER_FORMAT, at == 0 ? "" : ",",
                                 json_integer_value(element));
    }
    // A list of one 0 must be refused as a size here, though "0" means no sizes on the command line.
    if (json_array_size(value) == 1 && json_integer_value(json_array_get(value, 0)) == 0)
        return host_fail(STATUS_USAGE, "%s: a size of 0; write [] for none", what);
    return host_config_set_option(config, layer, index, what, json_array_size(value) == 0 ? "none" : text);
}

static Status list_from(HostConfig *config, ConfigLayer layer, int index, const char *what, const json_t *value) {
    if (!json_is_array(value)) return wrong_type(what, value, "a list of texts");
    HostTextList *list = (void *)((unsigned char *)config->values + config->table->options[index].offset_bytes);
    int kept = 0;
    for (int i = 0; i < list->count; i++) {
        if (list->layer[i] == layer) continue;
        if (kept != i) memcpy(list->at[kept], list->at[i], sizeof list->at[i]);
        list->layer[kept++] = list->layer[i];
    }
    memset(list->at[kept], 0, (size_t)(HOST_LIST_MAX - kept) * sizeof list->at[0]);
    memset(&list->layer[kept], 0, (size_t)(HOST_LIST_MAX - kept));
    list->count = kept;
    size_t at;
    const json_t *element;
    json_array_foreach(value, at, element) {
        if (!json_is_string(element)) return wrong_type(what, element, "a list of texts");
        TRY(host_config_set_option(config, layer, index, what, json_string_value(element)));
    }
    return STATUS_OK;
}

static Status value_from(HostConfig *config, ConfigLayer layer, int index, const char *what, const json_t *value) {
    char number[32];
    const char *text = NULL;
    switch (config->table->options[index].type) {
    case CONFIG_TYPE_SIZES:
        return sizes_from(config, layer, index, what, value);
    case CONFIG_TYPE_LIST:
        return list_from(config, layer, index, what, value);
    case CONFIG_TYPE_INT:
        if (!json_is_integer(value)) return wrong_type(what, value, "an integer");
        break;
    case CONFIG_TYPE_REAL:
        if (!json_is_number(value)) return wrong_type(what, value, "a number");
        break;
    case CONFIG_TYPE_FLAG:
        if (!json_is_boolean(value)) return wrong_type(what, value, "true or false");
        text = json_is_true(value) ? "true" : "false";
        break;
    case CONFIG_TYPE_TEXT:
    case CONFIG_TYPE_CHOICE:
        if (!json_is_string(value)) return wrong_type(what, value, "a text");
        text = json_string_value(value);
        break;
    }
    if (json_is_integer(value)) {
        snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        text = number;
    } else if (json_is_real(value)) {
        text = host_real_text(json_real_value(value), number);
    }
    return host_config_set_option(config, layer, index, what, text);
}

static Status take_object(HostConfig *config, ConfigLayer layer, const char *source, json_t *object) {
    if (!json_is_object(object)) return host_fail(STATUS_USAGE, "%s: the file is not a JSON object", source);
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value) {
        char what[WHAT_MAX + HOST_TEXT_MAX];
        if (strcmp(key, "tool") == 0) {
            if (!json_is_string(value) || strcmp(json_string_value(value), config->table->tool) != 0)
                return host_fail(STATUS_USAGE, "%s: settings of another tool, '%.100s'; this is %s", source,
                                 json_is_string(value) ? json_string_value(value) : "?", config->table->tool);
            continue;
        }
        int index = host_config_index(config->table, key);
        if (index < 0) {
            snprintf(what, sizeof what, "%s: unknown setting ", source);
            return host_config_unknown(config->table, what, key, false, true);
        }
        if (config->table->options[index].command)
            return host_fail(STATUS_USAGE, "%s: %s belongs on the command line, it is not a setting", source, key);
        snprintf(what, sizeof what, "%s: %s", source, config->table->options[index].name);
        TRY(value_from(config, layer, index, what, value));
    }
    return STATUS_OK;
}

Status host_config_from_json(HostConfig *config, ConfigLayer layer, const char *source, const char *json,
                             size_t json_bytes) {
    json_error_t error;
    json_t *object = json_loadb(json, json_bytes, JSON_REJECT_DUPLICATES, &error);
    if (object == NULL)
        return host_fail(STATUS_USAGE, "%s: malformed JSON at line %d, column %d: %s", source, error.line, error.column,
                         error.text);
    HostConfig before = *config;
    void *values_before = malloc(config->table->size_bytes);
    Status status;
    if (values_before == NULL) {
        status = host_fail(STATUS_MEMORY, "%s: no memory for %zu bytes of settings", source, config->table->size_bytes);
    } else {
        memcpy(values_before, config->values, config->table->size_bytes);
        status = take_object(config, layer, source, object);
        if (status != STATUS_OK) {
            memcpy(config->values, values_before, config->table->size_bytes);
            *config = before;
        }
    }
    free(values_before);
    json_decref(object);
    return status;
}

Status host_config_from_file(HostConfig *config, ConfigLayer layer, const char *path) {
    char *json;
    size_t json_bytes;
    TRY(host_file_read(path, JSON_FILE_MAX_BYTES, &json, &json_bytes));
    Status status = host_config_from_json(config, layer, path, json, json_bytes);
    free(json);
    return status;
}
