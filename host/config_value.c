#include "host/config_value.h"

#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "host/json_text.h"

static void int_range_text(int64_t min, int64_t max, const char *unit, char *text, size_t size) {
    const char *gap = unit[0] != '\0' ? " " : "";
    if (min == INT64_MIN && max == INT64_MAX) {
        snprintf(text, size, "any 64-bit integer");
    } else if (max == INT64_MAX) {
        snprintf(text, size, "at least %" PRId64 "%s%s", min, gap, unit);
    } else {
        snprintf(text, size, "%" PRId64 " to %" PRId64 "%s%s", min, max, gap, unit);
    }
}

static void real_range_text(double min, double max, const char *unit, char *text, size_t size) {
    const char *gap = unit[0] != '\0' ? " " : "";
    if (min <= -DBL_MAX && max >= DBL_MAX) {
        snprintf(text, size, "any finite number%s%s", gap, unit);
    } else if (max >= DBL_MAX) {
        snprintf(text, size, "at least %.15g%s%s", min, gap, unit);
    } else if (min <= -DBL_MAX) {
        snprintf(text, size, "at most %.15g%s%s", max, gap, unit);
    } else {
        snprintf(text, size, "%.15g to %.15g%s%s", min, max, gap, unit);
    }
}

Status host_parse_int(const char *what, const char *text, int64_t min, int64_t max, const char *unit, int64_t *value) {
    char range[128];
    int_range_text(min, max, unit, range, sizeof range);
    const char *digits = text[0] == '-' ? text + 1 : text;
    if (digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X'))
        return host_fail(STATUS_USAGE, "%s: '%.100s' is hexadecimal; give a decimal integer, %s", what, text, range);
    if (digits[0] == '\0' || digits[strspn(digits, "0123456789")] != '\0')
        return host_fail(STATUS_USAGE, "%s: '%.100s' is not an integer; allowed: %s", what, text, range);
    errno = 0;
    long long parsed = strtoll(text, NULL, 10);
    if (errno == ERANGE)
        return host_fail(STATUS_USAGE, "%s: %.100s does not fit in 64 bits; allowed: %s", what, text, range);
    if (parsed < min || parsed > max)
        return host_fail(STATUS_USAGE, "%s: %.100s is out of range; allowed: %s", what, text, range);
    *value = parsed;
    return STATUS_OK;
}

Status host_parse_real(const char *what, const char *text, double min, double max, const char *unit, double *value) {
    char range[128];
    real_range_text(min, max, unit, range, sizeof range);
    char *end = NULL;
    double parsed = strtod(text, &end);
    if (end == text || *end != '\0' || isspace((unsigned char)text[0]) || strpbrk(text, "xXpP()") != NULL)
        return host_fail(STATUS_USAGE, "%s: '%.100s' is not a number; allowed: %s", what, text, range);
    if (!isfinite(parsed))
        return host_fail(STATUS_USAGE, "%s: '%.100s' is not a finite double; allowed: %s", what, text, range);
    if (!(parsed >= min && parsed <= max))
        return host_fail(STATUS_USAGE, "%s: %.100s is out of range; allowed: %s", what, text, range);
    *value = parsed;
    return STATUS_OK;
}

const char *host_real_text(double value, char text[32]) {
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, 32, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    size_t length = strlen(text);
    if (strpbrk(text, ".enai") == NULL) snprintf(text + length, 32 - length, ".0");
    return text;
}

int host_config_choices(const char *choices, char buffer[HOST_CHOICES_TEXT_MAX], const char *names[HOST_CHOICES_MAX]) {
    snprintf(buffer, HOST_CHOICES_TEXT_MAX, "%s", choices);
    int count = 0;
    for (char *at = buffer; at != NULL && count < HOST_CHOICES_MAX; count++) {
        names[count] = at;
        at = strchr(at, '|');
        if (at != NULL) *at++ = '\0';
    }
    return count;
}

const char *host_config_range_text(const ConfigOption *option, char *text, size_t size) {
    text[0] = '\0';
    if (option->type == CONFIG_TYPE_INT) {
        int_range_text(option->min_int, option->max_int, option->unit, text, size);
    } else if (option->type == CONFIG_TYPE_REAL) {
        real_range_text(option->min_real, option->max_real, option->unit, text, size);
    } else if (option->type == CONFIG_TYPE_SIZES) {
        char range[128];
        int_range_text(option->min_int, option->max_int, option->unit, range, sizeof range);
        snprintf(text, size, "none, or up to %d sizes such as 64,64, each %s", HOST_SIZES_MAX, range);
    } else if (option->type == CONFIG_TYPE_FLAG) {
        snprintf(text, size, "true or false");
    } else if (option->type == CONFIG_TYPE_CHOICE) {
        char buffer[HOST_CHOICES_TEXT_MAX];
        const char *names[HOST_CHOICES_MAX];
        int count = host_config_choices(option->choices, buffer, names);
        size_t used = 0;
        for (int i = 0; i < count && used < size; i++) {
            const char *gap = i == 0 ? "" : i + 1 == count ? " or " : ", ";
            used += (size_t)snprintf(text + used, size - used, "%s%s", gap, names[i]);
        }
    }
    return text;
}

static Status parse_flag(const char *what, const char *text, bool *flag) {
    static const char *const words[] = {"false", "true", "0", "1", "no", "yes", "off", "on"};
    for (int i = 0; i < 8; i++) {
        if (strcmp(text, words[i]) != 0) continue;
        *flag = i % 2 == 1;
        return STATUS_OK;
    }
    return host_fail(STATUS_USAGE, "%s: '%.100s' is neither true nor false", what, text);
}

static Status parse_choice(const ConfigOption *option, const char *what, const char *text, int *choice) {
    char buffer[HOST_CHOICES_TEXT_MAX], range[HOST_CHOICES_TEXT_MAX * 2];
    const char *names[HOST_CHOICES_MAX];
    int count = host_config_choices(option->choices, buffer, names);
    for (int i = 0; i < count; i++) {
        if (strcmp(text, names[i]) != 0) continue;
        *choice = i;
        return STATUS_OK;
    }
    return host_fail(STATUS_USAGE, "%s: unknown value '%.100s'; allowed: %s (nearest: %s)", what, text,
                     host_config_range_text(option, range, sizeof range), host_nearest_name(text, names, count));
}

static Status parse_sizes(const ConfigOption *option, const char *what, const char *text, HostSizes *sizes) {
    *sizes = (HostSizes){0};
    if (strcmp(text, "0") == 0 || strcmp(text, "none") == 0) return STATUS_OK;
    for (const char *at = text;; at++) {
        char element[32];
        size_t length = strcspn(at, ",");
        snprintf(element, sizeof element, "%.*s", (int)(length < 31 ? length : 31), at);
        if (sizes->count == HOST_SIZES_MAX)
            return host_fail(STATUS_USAGE, "%s: '%.100s' has more than %d sizes", what, text, HOST_SIZES_MAX);
        if (length == 0)
            return host_fail(STATUS_USAGE, "%s: '%.100s' is not a list of sizes such as 64,64, or none", what, text);
        int64_t size = 0;
        TRY(host_parse_int(what, element, option->min_int, option->max_int, option->unit, &size));
        sizes->at[sizes->count++] = (int32_t)size;
        at += length;
        if (*at == '\0') return STATUS_OK;
    }
}

static Status parse_text(const char *what, const char *text, size_t size, char *copy) {
    size_t length = strlen(text);
    if (length >= size)
        return host_fail(STATUS_USAGE, "%s: '%.60s...' has %zu bytes; allowed: at most %zu", what, text, length,
                         size - 1);
    if (!host_json_is_valid(text)) return host_fail(STATUS_USAGE, "%s: the text is not valid UTF-8", what);
    memcpy(copy, text, length + 1);
    return STATUS_OK;
}

Status host_config_value_parse(const ConfigOption *option, const char *what, const char *text, ConfigValue *value) {
    switch (option->type) {
    case CONFIG_TYPE_INT:
        return host_parse_int(what, text, option->min_int, option->max_int, option->unit, &value->integer);
    case CONFIG_TYPE_REAL:
        return host_parse_real(what, text, option->min_real, option->max_real, option->unit, &value->real);
    case CONFIG_TYPE_FLAG:
        return parse_flag(what, text, &value->flag);
    case CONFIG_TYPE_TEXT:
        return parse_text(what, text, HOST_TEXT_MAX, value->text);
    case CONFIG_TYPE_CHOICE:
        return parse_choice(option, what, text, &value->choice);
    case CONFIG_TYPE_SIZES:
        return parse_sizes(option, what, text, &value->sizes);
    case CONFIG_TYPE_LIST:
        return parse_text(what, text, HOST_LIST_TEXT_MAX, value->text);
    }
    return host_fail(STATUS_USAGE, "%s: the option table names no valid type", what);
}
