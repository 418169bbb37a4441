// Manifests for Kubernetes: a Job of one pod with the master and the first trainer, a Service by which it is found, the
// volume of the run's folder, and an Indexed Job each of the other trainers and of the evaluators. A pod that ends is
// started again by its Job; the first one goes on with the run that is on its volume.
#include <stdlib.h>
#include <string.h>

#include "host/json_text.h"
#include "kernels/launcher_emit.h"

#define RUNS       "/runs"
#define DISMISSED  "76"  // another status than that of a run's end, so that a Job starts the pod again
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
    static const char of_objective[] =
        "# It has what the objective needs, too: a library at its path, or a command's programs.\n";
    fprintf(stream,
            "# %s, for Kubernetes.\n"
            "#     kubectl create secret generic %s --from-literal=secret=\"$(openssl rand -hex 32)\"\n"
            "#     kubectl apply -f FILE\n"
            "# The image has %s%s in its PATH; its name is to be yours. Evaluators may be more or fewer while the\n"
            "# run goes on: their job's completions and parallelism%s.\n"
            "%s"
            "apiVersion: v1\n"
            "kind: Service\n"
            "metadata:\n"
            "  name: %s\n"
            "spec:\n"
            "  selector:\n",
            job->what, job->name, job->run->trainer->tool, job->scales ? " and kubectl" : "",
            job->scales ? ", which the run itself changes" : "", launch_is_objective(job->run) ? of_objective : "",
            job->name);
    put_labels(job, "master", "    ", stream);
    fputs("  ports:\n"
          "  - name: master\n",
          stream);
    fprintf(stream, "    port: %d\n---\n", job->port);
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

// The first pod may change the evaluators' job, and nothing else.
static void put_rights(const LaunchJob *job, FILE *stream) {
    fprintf(stream,
            "apiVersion: v1\n"
            "kind: ServiceAccount\n"
            "metadata:\n"
            "  name: %s\n"
            "---\n"
            "apiVersion: rbac.authorization.k8s.io/v1\n"
            "kind: Role\n"
            "metadata:\n"
            "  name: %s\n"
            "rules:\n"
            "- apiGroups: [\"batch\"]\n"
            "  resources: [\"jobs\"]\n"
            "  resourceNames: [\"%s-evaluators\"]\n"
            "  verbs: [\"get\", \"patch\"]\n"
            "---\n",
            job->name, job->name, job->name);
    fprintf(stream,
            "apiVersion: rbac.authorization.k8s.io/v1\n"
            "kind: RoleBinding\n"
            "metadata:\n"
            "  name: %s\n"
            "subjects:\n"
            "- kind: ServiceAccount\n"
            "  name: %s\n"
            "roleRef:\n"
            "  apiGroup: rbac.authorization.k8s.io\n"
            "  kind: Role\n"
            "  name: %s\n"
            "---\n",
            job->name, job->name, job->name);
}

// The hook: an Indexed Job is scaled by both of its numbers at once, and one of no pods would be done for good.
static Status put_hook(const LaunchJob *job, FILE *stream) {
    char word[HOST_TEXT_MAX];
    snprintf(
        word, sizeof word,
        "--scale-hook=n=$((SHOAL_WANTED - %d)); [ \"$n\" -ge 1 ] || n=1; kubectl patch job %s-evaluators --type=merge "
        "--patch=\"{\\\"spec\\\":{\\\"parallelism\\\":$n,\\\"completions\\\":$n}}\"",
        job->trainers, job->name);
    return put_word(stream, word);
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
            "%s",
            pods > 0 ? "" : "      terminationGracePeriodSeconds: 120\n");
    if (pods == 0 && job->scales) fprintf(stream, "      serviceAccountName: %s\n", job->name);
    fprintf(stream,
            "      containers:\n"
            "      - name: %s\n"
            "        image: \"shoal:%s\"\n",
            job->run->trainer->tool, job->run->trainer->version);
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
static const char run_it[] = "trap 'stopped=1; ${child:+kill -TERM $child}' TERM; \"$@\" & child=$!; "
                             "if [ -n \"${stopped:-}\" ]; then kill -TERM \"$child\"; fi; wait \"$child\"; status=$?; "
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
    char port[16];
    put_job(job, "master", 0, stream);
    TRY(put_start(job, stream));
    TRY(put_words(stream, &job->always));
    if (job->scales) TRY(put_hook(job, stream));
    snprintf(port, sizeof port, "%d", job->port);
    put_own_address(port, stream);
    fprintf(stream,
            "        ports:\n"
            "        - containerPort: %s\n"
            "        volumeMounts:\n"
            "        - name: runs\n"
            "          mountPath: " RUNS "\n"
            "      volumes:\n"
            "      - name: runs\n"
            "        persistentVolumeClaim:\n"
            "          claimName: %s\n",
            port, job->name);
    return STATUS_OK;
}

static Status put_helpers(const LaunchJob *job, const char *part, int pods, FILE *stream) {
    char join[LAUNCH_JOB_NAME_MAX + 32];
    bool follows = strcmp(part, "followers") == 0;
    if (pods == 0) return STATUS_OK;
    fputs("---\n", stream);
    put_job(job, part, pods, stream);
    snprintf(join, sizeof join, "--join=tcp://%s:%d", job->name, job->port);
    const char *const words[] = {"/bin/sh", "-c", run_it, "sh", job->run->trainer->tool, join};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        TRY(put_word(stream, words[i]));
    TRY(put_word(stream, "--patience=" PATIENCE_S)); // the last one counts, where one was given
    TRY(put_word(stream, "--dismissal-status=" DISMISSED));
    TRY(put_words(stream, &job->helper));
    if (follows) TRY(put_word(stream, "--role=follower"));
    if (follows) put_own_address("*", stream);
    return STATUS_OK;
}

Status launch_emit_k8s(const LaunchJob *job, FILE *stream) {
    put_service(job, stream);
    put_volume(job, stream);
    if (job->scales) put_rights(job, stream);
    TRY(put_master(job, stream));
    TRY(put_helpers(job, "followers", job->trainers - 1, stream));
    return put_helpers(job, "evaluators", job->evaluators, stream);
}
