#include "host/config_value.h"

#include <string.h>

enum { ARG_NAME_MAX = 64, HELP_COLUMN = 28 };

// Optimal string alignment distance: insert, delete, replace, swap neighbours. Names are cut to 63 characters.
static int edit_distance(const char *a, const char *b) {
    int row[3][ARG_NAME_MAX + 1];
    int a_length = (int)strnlen(a, ARG_NAME_MAX), b_length = (int)strnlen(b, ARG_NAME_MAX);
    for (int j = 0; j <= b_length; j++)
        row[0][j] = j;
    for (int i = 1; i <= a_length; i++) {
        int *now = row[i % 3];
        const int *last = row[(i - 1) % 3], *before = row[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= b_length; j++) {
            int best = last[j - 1] + (a[i - 1] != b[j - 1]);
            if (last[j] + 1 < best) best = last[j] + 1;
            if (now[j - 1] + 1 < best) best = now[j - 1] + 1;
            bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped && before[j - 2] + 1 < best) best = before[j - 2] + 1;
            now[j] = best;
        }
    }
    return row[a_length % 3][b_length];
}

const char *host_nearest_name(const char *name, const char *const *names, int count) {
    const char *nearest = NULL;
    int best = 0;
    size_t length = strlen(name);
    for (int i = 0; i < count; i++) {
        int distance = edit_distance(name, names[i]);
        if (length >= 3 && distance > 1 && strncmp(name, names[i], length) == 0) distance = 1;
        if (nearest != NULL && distance >= best) continue;
        nearest = names[i];
        best = distance;
    }
    return nearest;
}

static bool is_flag(const ConfigTable *table, const char *name) {
    const ConfigOption *option = host_config_find(table, name);
    return option != NULL && option->type == CONFIG_TYPE_FLAG;
}

// One argument that begins with "--"; `next` is the one after it or NULL. Sets *used_next if that was its value.
static Status read_option(HostConfig *config, const char *arg, const char *next, bool *used_next) {
    char name[ARG_NAME_MAX];
    size_t length = strcspn(arg + 2, "=");
    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name), arg + 2);
    const char *value = arg[2 + length] == '=' ? arg + 3 + length : NULL;
    const ConfigOption *option = host_config_find(config->table, name);
    if (option == NULL && strncmp(name, "no-", 3) == 0 && is_flag(config->table, name + 3)) {
        if (value != NULL) return host_fail(STATUS_USAGE, "option --%s takes no value", name);
        return host_config_set(config, CONFIG_ARGS, name + 3, "false");
    }
    if (option == NULL) return host_config_unknown(config->table, "unknown option ", name, true, false);
    if (option->type == CONFIG_TYPE_FLAG) return host_config_set(config, CONFIG_ARGS, name, value ? value : "true");
    if (value == NULL) {
        char range[512];
        if (next == NULL || strncmp(next, "--", 2) == 0)
            return host_fail(STATUS_USAGE, "option --%s needs a value%s%s", name,
                             host_config_range_text(option, range, sizeof range)[0] != '\0' ? ": " : "", range);
        value = next;
        *used_next = true;
    }
    return host_config_set(config, CONFIG_ARGS, name, value);
}

Status host_config_parse_args(HostConfig *config, int argc, char **argv, ConfigArgs *args) {
    *args = (ConfigArgs){0};
    bool options_ended = false;
    for (int i = 1; i < argc; i++) {
        const char *arg = argv[i];
        if (!options_ended && strcmp(arg, "--") == 0) {
            options_ended = true;
        } else if (options_ended || arg[0] != '-' || arg[1] == '\0') {
            if (args->count == HOST_POSITIONALS_MAX)
                return host_fail(STATUS_USAGE, "more than %d arguments at '%.100s'", HOST_POSITIONALS_MAX, arg);
            args->positional[args->count++] = arg;
        } else if (strcmp(arg, "-h") == 0 || strcmp(arg, "--help") == 0) {
            args->help = true;
        } else if (strcmp(arg, "--version") == 0) {
            args->version = true;
        } else if (arg[1] != '-') {
            return host_fail(STATUS_USAGE, "unknown option '%.100s'; options are written --name", arg);
        } else {
            bool used_next = false;
            TRY(read_option(config, arg, i + 1 < argc ? argv[i + 1] : NULL, &used_next));
            i += used_next;
        }
    }
    return STATUS_OK;
}

static const char *value_word(const ConfigOption *option) {
    switch (option->type) {
    case CONFIG_TYPE_FLAG:
        return "";
    case CONFIG_TYPE_INT:
        return " N";
    case CONFIG_TYPE_REAL:
        return " X";
    case CONFIG_TYPE_CHOICE:
        return " NAME";
    case CONFIG_TYPE_SIZES:
        return " N,N,...";
    case CONFIG_TYPE_TEXT:
    case CONFIG_TYPE_LIST:
        break;
    }
    return NULL;
}

static void help_line(const ConfigOption *option, FILE *stream) {
    char left[160], name[HOST_CONFIG_NAME_MAX];
    const char *word = value_word(option);
    bool negatable = option->type == CONFIG_TYPE_FLAG && strcmp(option->default_text, "true") == 0;
    snprintf(left, sizeof left, "  --%s%s%s%s", negatable ? "[no-]" : "", host_config_spell(option->name, true, name),
             word == NULL ? " " : word,
             word != NULL              ? ""
             : option->unit[0] != '\0' ? option->unit
                                       : "TEXT");
    fprintf(stream, "%-*s", HELP_COLUMN, left);
    if (strlen(left) >= HELP_COLUMN) fprintf(stream, "\n%*s", HELP_COLUMN, "");
    fputs(option->help, stream);
    char range[512];
    host_config_range_text(option, range, sizeof range);
    bool has_default = option->default_text[0] != '\0' && option->type != CONFIG_TYPE_FLAG;
    if (option->type == CONFIG_TYPE_FLAG) range[0] = '\0';
    if (option->type == CONFIG_TYPE_LIST) snprintf(range, sizeof range, "may be repeated");
    if (has_default || range[0] != '\0')
        fprintf(stream, "\n%*s%s%s%s%s", HELP_COLUMN, "", has_default ? "default " : "",
                has_default ? option->default_text : "", has_default && range[0] != '\0' ? "; " : "", range);
    fputc('\n', stream);
}

void host_config_help(const ConfigTable *table, FILE *stream) {
    for (int i = 0; i < table->count; i++)
        help_line(&table->options[i], stream);
    fprintf(stream, "%-*sthis text\n", HELP_COLUMN, "  -h, --help");
    fprintf(stream, "%-*sthe version\n", HELP_COLUMN, "      --version");
}
