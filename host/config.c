#include "host/config_value.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

static void *value_at(const HostConfig *config, int index) {
    return (unsigned char *)config->values + config->table->options[index].offset_bytes;
}

static bool names_match(const char *a, const char *b) {
    for (; *a != '\0' || *b != '\0'; a++, b++) {
        if ((*a == '-' ? '_' : *a) != (*b == '-' ? '_' : *b)) return false;
    }
    return true;
}

int host_config_index(const ConfigTable *table, const char *name) {
    for (int i = 0; i < table->count; i++) {
        if (names_match(table->options[i].name, name)) return i;
    }
    return -1;
}

const ConfigOption *host_config_find(const ConfigTable *table, const char *name) {
    int index = host_config_index(table, name);
    return index < 0 ? NULL : &table->options[index];
}

ConfigLayer host_config_layer(const HostConfig *config, const char *name) {
    int index = host_config_index(config->table, name);
    assert(index >= 0 && "host_config_layer: no such option");
    return index < 0 ? CONFIG_DEFAULT : (ConfigLayer)config->layer[index];
}

static const void *value_of(const HostConfig *config, const char *name, ConfigType type) {
    int index = host_config_index(config->table, name);
    assert(index >= 0 && config->table->options[index].type == type);
    (void)type;
    return value_at(config, index);
}

int64_t host_config_int(const HostConfig *config, const char *name) {
    return *(const int64_t *)value_of(config, name, CONFIG_TYPE_INT);
}

double host_config_real(const HostConfig *config, const char *name) {
    return *(const double *)value_of(config, name, CONFIG_TYPE_REAL);
}

bool host_config_flag(const HostConfig *config, const char *name) {
    return *(const bool *)value_of(config, name, CONFIG_TYPE_FLAG);
}

int host_config_choice(const HostConfig *config, const char *name) {
    return *(const int *)value_of(config, name, CONFIG_TYPE_CHOICE);
}

const char *host_config_chars(const HostConfig *config, const char *name) {
    return value_of(config, name, CONFIG_TYPE_TEXT);
}

// Keeps the entries ordered by layer, so that those of a higher layer come later whatever the order of reading.
static Status insert_entry(HostTextList *list, ConfigLayer layer, const char *what, const char *text) {
    if (list->count == HOST_LIST_MAX)
        return host_fail(STATUS_USAGE, "%s: given more than %d times", what, HOST_LIST_MAX);
    int at = list->count;
    while (at > 0 && list->layer[at - 1] > layer)
        at--;
    for (int i = list->count; i > at; i--) {
        memcpy(list->at[i], list->at[i - 1], sizeof list->at[i]);
        list->layer[i] = list->layer[i - 1];
    }
    memset(list->at[at], 0, sizeof list->at[at]);
    memcpy(list->at[at], text, strnlen(text, sizeof list->at[at] - 1));
    list->layer[at] = (uint8_t)layer;
    list->count++;
    return STATUS_OK;
}

Status host_config_set_option(HostConfig *config, ConfigLayer layer, int index, const char *what, const char *text) {
    const ConfigOption *option = &config->table->options[index];
    ConfigValue value;
    TRY(host_config_value_parse(option, what, text, &value));
    void *to = value_at(config, index);
    if (option->type == CONFIG_TYPE_LIST) {
        TRY(insert_entry(to, layer, what, value.text));
        if (config->layer[index] < layer) config->layer[index] = (uint8_t)layer;
        return STATUS_OK;
    }
    if (config->layer[index] > layer) return STATUS_OK;
    config->layer[index] = (uint8_t)layer;
    switch (option->type) {
    case CONFIG_TYPE_INT:
        memcpy(to, &value.integer, sizeof value.integer);
        break;
    case CONFIG_TYPE_REAL:
        memcpy(to, &value.real, sizeof value.real);
        break;
    case CONFIG_TYPE_FLAG:
        memcpy(to, &value.flag, sizeof value.flag);
        break;
    case CONFIG_TYPE_CHOICE:
        memcpy(to, &value.choice, sizeof value.choice);
        break;
    case CONFIG_TYPE_SIZES:
        memcpy(to, &value.sizes, sizeof value.sizes);
        break;
    case CONFIG_TYPE_TEXT:
        snprintf(to, HOST_TEXT_MAX, "%s", value.text);
        break;
    case CONFIG_TYPE_LIST:
        break;
    }
    return STATUS_OK;
}

void host_config_init(HostConfig *config, const ConfigTable *table, void *values) {
    assert(table->count <= HOST_CONFIG_OPTIONS_MAX);
    *config = (HostConfig){.table = table, .values = values};
    memset(values, 0, table->size_bytes);
    for (int i = 0; i < table->count; i++) {
        const ConfigOption *option = &table->options[i];
        assert(strlen(option->name) < HOST_CONFIG_NAME_MAX);
        if (option->type == CONFIG_TYPE_LIST) continue;
        assert(option->type != CONFIG_TYPE_SIZES || (option->min_int >= 1 && option->max_int <= INT32_MAX));
        Status status = host_config_set_option(config, CONFIG_DEFAULT, i, option->name, option->default_text);
        assert(status == STATUS_OK && "an option's default is not within its own bounds");
        (void)status;
    }
}

const char *host_config_spell(const char *name, bool command_line, char text[HOST_CONFIG_NAME_MAX]) {
    snprintf(text, HOST_CONFIG_NAME_MAX, "%s", name);
    for (char *c = text; *c != '\0'; c++) {
        if (*c == '-' || *c == '_') *c = command_line ? '-' : '_';
    }
    return text;
}

Status host_config_unknown(const ConfigTable *table, const char *what, const char *name, bool command_line,
                           bool settings_only) {
    char spelled[HOST_CONFIG_NAME_MAX];
    host_config_spell(name, false, spelled);
    const char *names[HOST_CONFIG_OPTIONS_MAX];
    int count = 0;
    for (int i = 0; i < table->count; i++) {
        if (!(settings_only && table->options[i].command)) names[count++] = table->options[i].name;
    }
    const char *nearest = host_nearest_name(spelled, names, count);
    const char *dashes = command_line ? "--" : "";
    if (nearest == NULL) return host_fail(STATUS_USAGE, "%s%s%.100s", what, dashes, name);
    return host_fail(STATUS_USAGE, "%s%s%.100s; the nearest is %s%s", what, dashes, name, dashes,
                     host_config_spell(nearest, command_line, spelled));
}

Status host_config_set(HostConfig *config, ConfigLayer layer, const char *name, const char *text) {
    int index = host_config_index(config->table, name);
    if (index < 0) return host_config_unknown(config->table, "unknown option ", name, true, false);
    char what[HOST_CONFIG_NAME_MAX + 16], spelled[HOST_CONFIG_NAME_MAX];
    snprintf(what, sizeof what, "option --%s", host_config_spell(config->table->options[index].name, true, spelled));
    return host_config_set_option(config, layer, index, what, text);
}

static void sizes_text(const HostSizes *sizes, char *text, size_t size) {
    if (sizes->count == 0) snprintf(text, size, "none");
    size_t used = 0;
    for (int i = 0; i < sizes->count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%" PRId32, i == 0 ? "" : ",", sizes->at[i]);
}

static void list_text(const HostTextList *list, char *text, size_t size) {
    size_t used = 0;
    for (int i = 0; i < list->count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i == 0 ? "" : " ", list->at[i]);
}

const char *host_config_text(const HostConfig *config, const char *name, char *text, size_t size) {
    int index = host_config_index(config->table, name);
    assert(index >= 0 && size > 0);
    const ConfigOption *option = &config->table->options[index];
    const void *value = value_at(config, index);
    char buffer[HOST_CHOICES_TEXT_MAX];
    const char *names[HOST_CHOICES_MAX];
    text[0] = '\0';
    switch (option->type) {
    case CONFIG_TYPE_INT:
        snprintf(text, size, "%" PRId64, *(const int64_t *)value);
        break;
    case CONFIG_TYPE_REAL:
        snprintf(text, size, "%s", host_real_text(*(const double *)value, buffer));
        break;
    case CONFIG_TYPE_FLAG:
        snprintf(text, size, "%s", *(const bool *)value ? "true" : "false");
        break;
    case CONFIG_TYPE_TEXT:
        snprintf(text, size, "%s", (const char *)value);
        break;
    case CONFIG_TYPE_CHOICE:
        host_config_choices(option->choices, buffer, names);
        snprintf(text, size, "%s", names[*(const int *)value]);
        break;
    case CONFIG_TYPE_SIZES:
        sizes_text(value, text, size);
        break;
    case CONFIG_TYPE_LIST:
        list_text(value, text, size);
        break;
    }
    return text;
}
