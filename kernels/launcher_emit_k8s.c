// Manifests for Kubernetes: a Job of one pod with the master and the first trainer, a Service by which it is found, the
// volume of the run's folder, and an Indexed Job each of the other trainers and of the evaluators. A pod that ends is
// started again by its Job; the first one goes on with the run that is on its volume.
#include <stdlib.h>
#include <string.h>

#include "host/json_text.h"
#include "kernels/launcher_emit.h"

#define PORT       "5555"
#define RUNS       "/runs"
#define PATIENCE_S "300" // of workers: the first pod may have to be put on another node, with its volume

static const char *base_name(const LaunchJob *job) { return job->name + strlen("shoal"); }

// A word of a container's command as a YAML text; Kubernetes puts variables in the place of "$(", but for "$$(".
static Status put_word(FILE *stream, const char *word) {
    if (!host_json_is_valid(word)) return host_fail(STATUS_USAGE, "--emit k8s: '%s' is no UTF-8", word);
    char *escaped = malloc(2 * strlen(word) + 1), *at = escaped;
    if (escaped == NULL) return host_fail(STATUS_MEMORY, "no memory for a word");
    for (; *word != '\0'; word++) {
        if (word[0] == '$' && word[1] == '(') *at++ = '$';
        *at++ = *word;
    }
    *at = '\0';
    fputs("        - ", stream);
    host_json_put(stream, escaped);
    fputc('\n', stream);
    free(escaped);
    return STATUS_OK;
}

static Status put_words(FILE *stream, const LaunchArguments *words) {
    for (int i = 0; i < words->count; i++)
        TRY(put_word(stream, words->at[i]));
    return STATUS_OK;
}

static void put_labels(const LaunchJob *job, const char *part, const char *indent, FILE *stream) {
    fprintf(stream, "%sapp.kubernetes.io/name: %s\n%sapp.kubernetes.io/component: %s\n", indent, job->name, indent,
            part);
}

static void put_service(const LaunchJob *job, FILE *stream) {
    fprintf(stream,
            "# %s, for Kubernetes.\n"
            "#     kubectl create secret generic %s --from-literal=secret=\"$(openssl rand -hex 32)\"\n"
            "#     kubectl apply -f FILE\n"
            "# The image has %s in its PATH; its name is to be yours. Evaluators may be more or fewer while the\n"
            "# run goes on: their job's completions and parallelism.\n"
            "apiVersion: v1\n"
            "kind: Service\n"
            "metadata:\n"
            "  name: %s\n"
            "spec:\n"
            "  selector:\n",
            job->what, job->name, job->run->trainer->tool, job->name);
    put_labels(job, "master", "    ", stream);
    fputs("  ports:\n"
          "  - name: master\n"
          "    port: " PORT "\n"
          "---\n",
          stream);
}

static void put_volume(const LaunchJob *job, FILE *stream) {
    fprintf(stream,
            "apiVersion: v1\n"
            "kind: PersistentVolumeClaim\n"
            "metadata:\n"
            "  name: %s\n"
            "spec:\n"
            "  accessModes:\n"
            "  - ReadWriteOnce\n"
            "  resources:\n"
            "    requests:\n"
            "      storage: 1Gi\n"
            "---\n",
            job->name);
}

// A job of so many pods, up to the container's command. 0: of one, which is no part of several.
static void put_job(const LaunchJob *job, const char *part, int pods, FILE *stream) {
    fprintf(stream,
            "apiVersion: batch/v1\n"
            "kind: Job\n"
            "metadata:\n"
            "  name: %s-%s\n"
            "spec:\n"
            "  backoffLimit: 1000\n",
            job->name, part);
    if (pods > 0) {
        fprintf(stream, "  completionMode: Indexed\n  completions: %d\n  parallelism: %d\n", pods, pods);
    }
    fputs("  template:\n"
          "    metadata:\n"
          "      labels:\n",
          stream);
    put_labels(job, part, "        ", stream);
    fprintf(stream,
            "    spec:\n"
            "      restartPolicy: OnFailure\n"
            "%s"
            "      containers:\n"
            "      - name: %s\n"
            "        image: \"shoal:%s\"\n",
            pods > 0 ? "" : "      terminationGracePeriodSeconds: 120\n", job->run->trainer->tool,
            job->run->trainer->version);
    fprintf(stream,
            "        env:\n"
            "        - name: SHOAL_SECRET\n"
            "          valueFrom:\n"
            "            secretKeyRef:\n"
            "              name: %s\n"
            "              key: secret\n"
            "        - name: POD_IP\n"
            "          valueFrom:\n"
            "            fieldRef:\n"
            "              fieldPath: status.podIP\n"
            "        resources:\n"
            "          limits:\n"
            "            cpu: \"%d\"\n"
            "%s"
            "        command:\n",
            job->name, job->cores, job->needs_gpu ? "            nvidia.com/gpu: \"1\"\n" : "");
}

static void put_own_address(const char *port, FILE *stream) {
    fprintf(stream, "        - \"--bind-address=tcp://$(POD_IP):%s\"\n", port);
}

// Runs a command so that its end by SIGTERM counts as a failure, which a Job starts again: it has ended well itself.
static const char run_it[] =
    "\"$@\" & child=$!; trap 'stopped=1; kill -TERM \"$child\"' TERM; wait \"$child\"; status=$?; "
    "if [ -n \"${stopped:-}\" ]; then wait \"$child\"; exit 143; fi; exit \"$status\"";

// The first pod's command: a shell that looks whether the run is there, "$0" being its folder.
static Status put_start(const LaunchJob *job, FILE *stream) {
    char *script = NULL, folder[sizeof RUNS + LAUNCH_JOB_NAME_MAX];
    size_t size = 0;
    FILE *memory = open_memstream(&script, &size);
    if (memory == NULL) return host_fail(STATUS_MEMORY, "no memory for a command");
    const char *tool = job->run->trainer->tool;
    fprintf(memory, "if [ -e \"$0/config.json\" ]; then set -- %s --resume \"$0\" \"$@\"; else set -- %s --out \"$0\"",
            tool, tool);
    for (int i = 0; i < job->start.count; i++) {
        fputc(' ', memory);
        launch_put_shell(memory, job->start.at[i]);
    }
    fputs(" \"$@\"; fi; ", memory);
    fputs(run_it, memory);
    bool is_whole = fclose(memory) == 0;
    snprintf(folder, sizeof folder, RUNS "/%s", base_name(job)[0] == '-' ? base_name(job) + 1 : "run");
    Status status = is_whole ? put_word(stream, "/bin/sh") : host_fail(STATUS_MEMORY, "no memory for a command");
    if (status == STATUS_OK) status = put_word(stream, "-c");
    if (status == STATUS_OK) status = put_word(stream, script);
    if (status == STATUS_OK) status = put_word(stream, folder);
    free(script);
    return status;
}

static Status put_master(const LaunchJob *job, FILE *stream) {
    put_job(job, "master", 0, stream);
    TRY(put_start(job, stream));
    TRY(put_words(stream, &job->always));
    put_own_address(PORT, stream);
    fprintf(stream,
            "        ports:\n"
            "        - containerPort: " PORT "\n"
            "        volumeMounts:\n"
            "        - name: runs\n"
            "          mountPath: " RUNS "\n"
            "      volumes:\n"
            "      - name: runs\n"
            "        persistentVolumeClaim:\n"
            "          claimName: %s\n",
            job->name);
    return STATUS_OK;
}

static Status put_helpers(const LaunchJob *job, const char *part, int pods, FILE *stream) {
    char join[LAUNCH_JOB_NAME_MAX + 32];
    bool follows = strcmp(part, "followers") == 0;
    if (pods == 0) return STATUS_OK;
    fputs("---\n", stream);
    put_job(job, part, pods, stream);
    snprintf(join, sizeof join, "--join=tcp://%s:" PORT, job->name);
    const char *const words[] = {"/bin/sh", "-c", run_it, "sh", job->run->trainer->tool, join};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        TRY(put_word(stream, words[i]));
    TRY(put_word(stream, "--patience=" PATIENCE_S)); // the last one counts, where one was given
    TRY(put_words(stream, &job->helper));
    if (follows) TRY(put_word(stream, "--role=follower"));
    if (follows) put_own_address("*", stream);
    return STATUS_OK;
}

Status launch_emit_k8s(const LaunchJob *job, FILE *stream) {
    put_service(job, stream);
    put_volume(job, stream);
    TRY(put_master(job, stream));
    TRY(put_helpers(job, "followers", job->trainers - 1, stream));
    return put_helpers(job, "evaluators", job->evaluators, stream);
}
