#define _GNU_SOURCE // open_memstream
#include "es/es_best.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/file.h"
#include "host/json_text.h"
#include "host/trace.h"

Status es_best_find(Es *es) {
    EsBest *best = &es->best;
    int32_t highest = 0;
    if (best->params == NULL) return STATUS_OK;
    HOST_TRACE_SCOPE(LEARNING, "es best");
    for (int32_t m = 1; m < es->spec.members; m++)
        if (es->fitness[m] > es->fitness[highest]) highest = m;
    best->next_member = es->fitness[highest] > best->fitness ? highest : -1;
    if (best->next_member < 0) return STATUS_OK;
    KernEsJob job;
    KernNormalizer normalizer;
    es_job(es, &job, &normalizer);
    return es->backend->ops->es_member(es->kern, &job, highest, best->next);
}

void es_best_commit(Es *es) {
    EsBest *best = &es->best;
    if (best->params == NULL || best->next_member < 0) return;
    best->fitness = es->fitness[best->next_member];
    best->at[0] = es->generation;
    best->at[1] = best->next_member;
    memcpy(best->params, best->next, (size_t)es->spec.policy.params * sizeof *best->params);
}

static void put_params(FILE *stream, const float *params, int32_t count) {
    fputs("\"params\": [", stream);
    for (int32_t i = 0; i < count; i++)
        fprintf(stream, "%s%.9g", i > 0 ? ", " : "", (double)params[i]);
    fputs("]", stream);
}

static void put_best(const Es *es, const KernTest *test, FILE *stream) {
    const EsBest *best = &es->best;
    int32_t dim = es->spec.policy.params;
    bool is_member = best->at[1] >= 0 && (test == NULL || (double)best->fitness > test->return_mean);
    fputs("{\"objective\": ", stream);
    host_json_put(stream, es->config.env);
    fprintf(stream, ", \"dim\": %d, \"seed\": %lld, \"generations\": %lld, \"best\": \"%s\",\n \"member\": {", dim,
            (long long)es->config.seed, (long long)es->generation, is_member ? "member" : "mean");
    if (best->at[1] >= 0) {
        fprintf(stream, "\"fitness\": %.17g, \"generation\": %lld, \"member\": %lld, ", (double)best->fitness,
                (long long)best->at[0], (long long)best->at[1]);
        put_params(stream, best->params, dim);
    }
    fputs("},\n \"mean\": {\"fitness\": ", stream);
    if (test != NULL) {
        fprintf(stream, "%.17g, ", test->return_mean);
    } else {
        fputs("null, ", stream);
    }
    put_params(stream, es->params, dim);
    fputs("}}\n", stream);
}

Status es_best_write(const Es *es, const char *folder, const KernTest *test) {
    char path[HOST_PATH_MAX], *text = NULL;
    size_t size_bytes = 0;
    if (es->best.params == NULL) return STATUS_OK;
    HOST_TRACE_SCOPE(IO, "best parameters");
    TRY(host_file_join(folder, "best.json", path));
    FILE *stream = open_memstream(&text, &size_bytes);
    if (stream == NULL) return host_fail(STATUS_MEMORY, "no memory for %s: %s", path, strerror(errno));
    put_best(es, test, stream);
    bool is_whole = ferror(stream) == 0;
    is_whole = fclose(stream) == 0 && is_whole;
    const HostFilePart part = {text, size_bytes};
    Status status = is_whole ? host_file_replace(path, &part, 1) : host_fail(STATUS_MEMORY, "no memory for %s", path);
    free(text);
    return status;
}
