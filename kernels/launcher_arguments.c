#include "kernels/launcher_arguments.h"

#include <stdlib.h>
#include <string.h>

void launch_add_word(LaunchArguments *arguments, const char *word) {
    char *copy = strdup(word);
    if (copy == NULL || arguments->count == LAUNCH_ARGUMENTS_MAX) {
        arguments->is_short = true;
        free(copy);
        return;
    }
    arguments->at[arguments->count++] = copy;
}

void launch_add(LaunchArguments *arguments, const char *name, const char *value) {
    char spelled[HOST_CONFIG_NAME_MAX], line[HOST_CONFIG_NAME_MAX + HOST_PATH_MAX];
    snprintf(line, sizeof line, "--%s=%s", host_config_spell(name, true, spelled), value);
    launch_add_word(arguments, line);
}

void launch_free_arguments(LaunchArguments *arguments) {
    for (int i = 0; i < arguments->count; i++)
        free(arguments->at[i]);
}

static bool is_one_of(const char *name, const char *const *names) {
    for (; *names != NULL; names++)
        if (strcmp(name, *names) == 0) return true;
    return false;
}

void launch_add_given(const LaunchRun *run, LaunchArguments *arguments, unsigned kinds, const char *const *left_out) {
    const ConfigTable *table = run->trainer->table;
    for (int i = 0; i < table->count; i++) {
        const ConfigOption *option = &table->options[i];
        if (host_config_layer(&run->config, option->name) != CONFIG_ARGS || is_one_of(option->name, left_out)) continue;
        if ((kinds & (option->command ? LAUNCH_COMMANDS : LAUNCH_SETTINGS)) == 0) continue;
        char value[HOST_TEXT_MAX];
        if (option->type != CONFIG_TYPE_LIST) {
            launch_add(arguments, option->name, host_config_text(&run->config, option->name, value, sizeof value));
            continue;
        }
        const HostTextList *list = (const void *)((const unsigned char *)run->config.values + option->offset_bytes);
        for (int k = 0; k < list->count; k++)
            if (list->layer[k] == CONFIG_ARGS) launch_add(arguments, option->name, list->at[k]);
    }
}
