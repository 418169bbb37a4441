#include "kernels/view_frames.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { VIEW_UNITS = 8192 }; // in the width or height of the first view, whichever is more

#define VIEW_WORD_MAX 1e9 // far outside of every view

Status view_frames_open(ViewFrames *frames) {
    memset(frames, 0, sizeof *frames);
    frames->now = calloc(1, sizeof *frames->now);
    frames->old = calloc(1, sizeof *frames->old);
    if (frames->now == NULL || frames->old == NULL) {
        view_frames_close(frames);
        return host_fail(STATUS_MEMORY, "no memory for the frames of a page");
    }
    Status status = host_json_open(&frames->shape);
    if (status == STATUS_OK) status = host_json_open(&frames->place);
    if (status != STATUS_OK) view_frames_close(frames);
    return status;
}

static void drop(JsonText *json) {
    if (json->stream == NULL) return;
    fclose(json->stream);
    free(json->text);
}

void view_frames_close(ViewFrames *frames) {
    drop(&frames->shape);
    drop(&frames->place);
    free(frames->now);
    free(frames->old);
    memset(frames, 0, sizeof *frames);
}

// The nearest whole number of units.
static int32_t quantise(const ViewFrames *frames, float x) {
    double units = round((double)x / frames->unit);
    return (int32_t)(units > VIEW_WORD_MAX ? VIEW_WORD_MAX : units < -VIEW_WORD_MAX ? -VIEW_WORD_MAX : units);
}

static Status check(const SimFrame *f) {
    if (f->is_full) {
        return host_fail(STATUS_NUMERIC, "the drawing has more than %d shapes or %d points", SIM_FRAME_SHAPES,
                         SIM_FRAME_POINTS);
    }
    float sum = (f->right - f->left) * 0.0f + (f->top - f->bottom) * 0.0f + f->step_s * 0.0f;
    for (int32_t i = 0; i < f->points; i++)
        sum += f->x[i] * 0.0f + f->y[i] * 0.0f;
    for (int32_t i = 0; i < f->shapes; i++)
        sum += f->shape[i].size * 0.0f;
    return isfinite(sum) ? STATUS_OK : host_fail(STATUS_NUMERIC, "the drawing has a place that is NaN or infinite");
}

static void round_frame(ViewFrames *frames) {
    const SimFrame *f = &frames->drawn;
    ViewFrame *now = frames->now;
    int32_t at = 0;
    now->shapes = f->shapes;
    for (int32_t i = 0; i < f->shapes; i++) {
        const SimShape *shape = &f->shape[i];
        now->first[i] = at;
        now->word[at++] = (int32_t)shape->kind;
        now->word[at++] = (int32_t)shape->colour;
        now->word[at++] = quantise(frames, shape->size);
        for (int32_t p = shape->first; p < shape->first + shape->count; p++) {
            now->word[at++] = quantise(frames, f->x[p]);
            now->word[at++] = quantise(frames, f->y[p]);
        }
        now->count[i] = at - now->first[i];
    }
}

// The number that a shape has in the frame before; -1: it is not there. Most are at the same place.
static int32_t find_old(const ViewFrames *frames, int32_t shape) {
    const ViewFrame *now = frames->now, *old = frames->old;
    for (int32_t k = 0; k < old->shapes; k++) {
        int32_t i = (shape + k) % old->shapes;
        if (old->count[i] == now->count[shape] && memcmp(old->word + old->first[i], now->word + now->first[shape],
                                                         (size_t)now->count[shape] * sizeof *now->word) == 0) {
            return old->number[i];
        }
    }
    return -1;
}

static void put_shape(ViewFrames *frames, int32_t shape) {
    const int32_t *word = frames->now->word + frames->now->first[shape];
    FILE *stream = frames->shape.stream;
    fprintf(stream, "%s[%d,%d,%d", frames->shapes > 0 ? ",\n" : "", word[0], word[1], word[2]);
    for (int32_t i = 3; i < frames->now->count[shape]; i++)
        fprintf(stream, ",%d", i < 5 ? word[i] : word[i] - word[i - 2]);
    fputc(']', stream);
}

static void put_view(ViewFrames *frames) {
    const SimFrame *f = &frames->drawn;
    const int32_t view[4] = {quantise(frames, f->left), quantise(frames, f->bottom), quantise(frames, f->right),
                             quantise(frames, f->top)};
    if (frames->views > 0 && memcmp(view, frames->view, sizeof view) == 0) return;
    memcpy(frames->view, view, sizeof view);
    FILE *stream = frames->place.stream;
    fprintf(stream, "%s[", frames->views > 0 ? ", " : "");
    for (int i = 0; i < 4; i++)
        fprintf(stream, "%s%d", i > 0 ? "," : "", view[i]);
    fputc(']', stream);
    frames->views++;
}

Status view_frames_put(ViewFrames *frames, FILE *stream) {
    const SimFrame *f = &frames->drawn;
    TRY(check(f));
    if (frames->unit == 0.0) {
        double width = (double)f->right - (double)f->left, height = (double)f->top - (double)f->bottom;
        frames->unit = (width > height ? width : height) / VIEW_UNITS;
    }
    round_frame(frames);
    put_view(frames);
    fprintf(stream, "[%d", frames->views - 1);
    int32_t last = 0;
    for (int32_t i = 0; i < frames->now->shapes; i++) {
        int32_t number = find_old(frames, i);
        if (number < 0) {
            put_shape(frames, i);
            number = frames->shapes++;
        }
        frames->now->number[i] = number;
        fprintf(stream, ",%d", number - last);
        last = number;
    }
    fputc(']', stream);
    ViewFrame *old = frames->old;
    frames->old = frames->now;
    frames->now = old;
    return STATUS_OK;
}

static Status put_list(JsonText *json, const char *name, FILE *stream) {
    char *text = NULL;
    Status status = host_json_close(json, &text, NULL);
    *json = (JsonText){0};
    TRY(status);
    fprintf(stream, ", \"%s\": [%s]", name, text);
    free(text);
    return STATUS_OK;
}

Status view_frames_finish(ViewFrames *frames, FILE *stream) {
    fprintf(stream, "\"unit\": %.9g", frames->unit);
    TRY(put_list(&frames->shape, "shapes", stream));
    return put_list(&frames->place, "views", stream);
}
