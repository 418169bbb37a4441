#include "kernels/view.h"

#include <stdlib.h>

#include "host/file.h"
#include "host/page.h"
#include "host/signals.h"
#include "kernels/replay.h"
#include "kernels/view_frames.h"

extern const HostPage kern_view_page; // kernels/view/, by the build

Status kern_view_check(const SimSpec *sim) {
    if (sim->play->draw != NULL) return STATUS_OK;
    return host_fail(STATUS_USAGE, "%s cannot be shown: sim/%s.h has no %s_draw", sim->name, sim->name, sim->name);
}

static Status check_length(const KernFrozen *frozen, int32_t count) {
    int64_t steps = 0;
    for (int32_t i = 0; i < count; i++)
        steps += frozen->episodes[i].length;
    if (steps <= KERN_VIEW_STEPS_MAX) return STATUS_OK;
    return host_fail(STATUS_USAGE,
                     "%d episodes of %lld steps together are too long for a page, which has room for %d: fewer "
                     "--html-episodes, or a lower --time-limit",
                     count, (long long)steps, KERN_VIEW_STEPS_MAX);
}

// "key": "text", and a comma
static void put_text(FILE *stream, const char *key, const char *text) {
    fprintf(stream, "\"%s\": ", key);
    host_json_put(stream, text);
    fputs(", ", stream);
}

static void put_info(const KernFrozen *frozen, const KernViewInfo *info, FILE *stream) {
    const SimSpec *spec = frozen->sim->spec;
    static const char *const colours[] = {
#define COLOUR_NAME(constant, name) name,
        SIM_COLOURS(COLOUR_NAME)
#undef COLOUR_NAME
    };
    put_text(stream, "tool", info->tool);
    put_text(stream, "env", spec->name);
    put_text(stream, "gymnasium_id", spec->gymnasium_id);
    put_text(stream, "run", info->run);
    put_text(stream, "device", info->device);
    put_text(stream, "params_hash", info->params_hash);
    fprintf(
        stream,
        "\"seed\": %llu, \"time_limit\": %d, \"test\": {\"episodes\": %lld, \"return_mean\": %.17g, \"return_std\": "
        "%.17g, \"length_mean\": %.17g}, \"colours\": [",
        (unsigned long long)frozen->seed, frozen->sim->time_limit, (long long)info->test_episodes,
        info->test.return_mean, info->test.return_std, info->test.length_mean);
    for (int i = 0; i < SIM_COLOUR_COUNT; i++) {
        if (i > 0) fputs(", ", stream);
        host_json_put(stream, colours[i]);
    }
    fputs("], ", stream);
}

static Status put_frame(const KernReplay *replay, ViewFrames *frames, FILE *stream) {
    const SimSpec *spec = replay->frozen->sim->spec;
    bool has_acted = replay->length > 0;
    sim_frame_clear(&frames->drawn);
    spec->play->draw(replay->state, replay->params, has_acted ? replay->discrete : NULL,
                     has_acted ? replay->continuous : NULL, &frames->drawn);
    Status status = view_frames_put(frames, stream);
    if (status != STATUS_NUMERIC) return status;
    char reason[256];
    snprintf(reason, sizeof reason, "%s", host_message());
    return host_fail(STATUS_NUMERIC, "%s: step %d: %s", spec->name, replay->length, reason);
}

static Status check_outcome(const KernReplay *replay, int32_t episode) {
    const KernEpisode *tested = &replay->frozen->episodes[episode];
    if (sim_bits_from_float(replay->episode_return) == sim_bits_from_float(tested->episode_return) &&
        replay->length == tested->length) {
        return STATUS_OK;
    }
    return host_fail(STATUS_NUMERIC,
                     "%s: episode %d: the replay's return is %.9g after %d steps, the test's %.9g after %d",
                     replay->frozen->sim->spec->name, episode, (double)replay->episode_return, replay->length,
                     (double)tested->episode_return, tested->length);
}

static void put_rewards(const float *rewards, int32_t count, FILE *stream) {
    fputs(", \"rewards\": [", stream);
    for (int32_t i = 0; i < count; i++)
        fprintf(stream, "%s%.9g", i > 0 ? "," : "", (double)rewards[i]);
    fputc(']', stream);
}

static Status put_episode(KernReplay *replay, uint32_t round, int32_t episode, ViewFrames *frames, FILE *stream) {
    int32_t length = replay->frozen->episodes[episode].length;
    float *rewards = calloc((size_t)length + 1, sizeof *rewards);
    if (rewards == NULL) return host_fail(STATUS_MEMORY, "no memory for %d rewards", length);
    kern_replay_begin(replay, round, episode);
    fputs("{\"frames\": [", stream);
    Status status = put_frame(replay, frames, stream);
    while (status == STATUS_OK && replay->length < length && kern_replay_step(replay)) {
        rewards[replay->length - 1] = replay->reward;
        fputs(",\n", stream);
        status = put_frame(replay, frames, stream);
        if (host_stop_requested()) status = host_fail(STATUS_STOPPED, "stopped while a page was made");
    }
    if (status == STATUS_OK) status = check_outcome(replay, episode);
    fputc(']', stream);
    put_rewards(rewards, replay->length, stream);
    free(rewards);
    fprintf(stream, ", \"return\": %.9g, \"length\": %d, \"terminated\": %s, \"truncated\": %s, \"step_s\": %.9g}",
            (double)replay->episode_return, replay->length, replay->is_terminated ? "true" : "false",
            replay->is_truncated ? "true" : "false", (double)frames->drawn.step_s);
    return status;
}

static Status put_episodes(const KernFrozen *frozen, uint32_t round, int32_t count, ViewFrames *frames, FILE *stream) {
    KernReplay replay;
    TRY(kern_replay_open(&replay, frozen));
    fputs("\"episodes\": [", stream);
    Status status = STATUS_OK;
    for (int32_t i = 0; i < count && status == STATUS_OK; i++) {
        if (i > 0) fputs(",\n", stream);
        status = put_episode(&replay, round, i, frames, stream);
    }
    fputs("], ", stream);
    kern_replay_close(&replay);
    return status;
}

// The data, whole or not; frames: not open.
static Status put_data(const KernFrozen *frozen, uint32_t round, int32_t count, const KernViewInfo *info,
                       ViewFrames *frames, FILE *stream) {
    fputc('{', stream);
    put_info(frozen, info, stream);
    TRY(view_frames_open(frames));
    Status status = put_episodes(frozen, round, count, frames, stream);
    if (status == STATUS_OK) status = view_frames_finish(frames, stream);
    fputc('}', stream);
    view_frames_close(frames);
    return status;
}

// The page in memory. Free the text.
static Status make_page(const KernFrozen *frozen, uint32_t round, int32_t count, const KernViewInfo *info, char **text,
                        size_t *size_bytes) {
    JsonText page, data;
    ViewFrames *frames = calloc(1, sizeof *frames);
    if (frames == NULL) return host_fail(STATUS_MEMORY, "no memory for a page");
    Status status = host_json_open(&data);
    if (status == STATUS_OK) {
        status = put_data(frozen, round, count, info, frames, data.stream);
        if (status != STATUS_OK) {
            fclose(data.stream);
            free(data.text);
        }
    }
    free(frames);
    TRY(status);
    TRY(host_json_open(&page));
    host_page_begin(&kern_view_page, page.stream);
    status = host_page_data(&data, "recording", page.stream);
    host_page_end(&kern_view_page, page.stream);
    Status closed = host_json_close(&page, text, size_bytes);
    if (status != STATUS_OK && closed == STATUS_OK) free(*text);
    return status != STATUS_OK ? status : closed;
}

Status kern_view_write(const KernFrozen *frozen, uint32_t round, int32_t count, const KernViewInfo *info,
                       const char *path) {
    char *text = NULL;
    size_t size_bytes = 0;
    TRY(kern_view_check(frozen->sim->spec));
    TRY(check_length(frozen, count));
    TRY(make_page(frozen, round, count, info, &text, &size_bytes));
    HostFilePart part = {text, size_bytes};
    Status status = host_file_replace(path, &part, 1);
    free(text);
    return status;
}
