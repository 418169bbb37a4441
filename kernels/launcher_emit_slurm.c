// A job script for Slurm. One file is both jobs: that of the trainers, and the array of evaluators that it submits.
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "host/file.h"
#include "kernels/launcher_emit.h"

static void put_words(FILE *stream, const LaunchArguments *words) {
    for (int i = 0; i < words->count; i++) {
        fputc(' ', stream);
        launch_put_shell(stream, words->at[i]);
    }
}

static void put_setting(FILE *stream, const char *name, const char *value) {
    fprintf(stream, "%s=", name);
    launch_put_shell(stream, value);
    fputc('\n', stream);
}

static void put_header(const LaunchJob *job, FILE *stream) {
    static const char about_evaluators[] =
        "# The evaluators are an array job that this one submits from the same file; others may come and go\n"
        "# while it runs: sbatch --array=1-20 --ntasks=1 FILE\n";
    fprintf(stream,
            "#!/bin/bash\n"
            "# %s. Submit it with sbatch.\n"
            "%s"
            "# The run's folder is on a disk that all nodes share, and has the run's secret (SHOAL_SECRET, where\n"
            "# it is set, is passed on). Submitted again, or requeued, the job goes on with the run that is there.\n"
            "#SBATCH --job-name=%s\n"
            "#SBATCH --ntasks=%d\n"
            "#SBATCH --cpus-per-task=%d\n",
            job->what, job->has_evaluators ? about_evaluators : "", job->name, job->trainers, job->cores);
    if (job->needs_gpu) fputs("#SBATCH --gpus-per-task=1\n", stream);
    fputs("#SBATCH --no-kill\n"
          "#SBATCH --requeue\n"
          "#SBATCH --open-mode=append\n"
          "set -euo pipefail\n",
          stream);
}

// An evaluator waits for the master, whose place is in the folder.
static void put_evaluator(const LaunchJob *job, FILE *stream) {
    fputs("\n"
          "if [[ -n ${SLURM_ARRAY_TASK_ID:-} ]]; then # an evaluator\n"
          "    for ((second = 0; second < 120; second++)); do\n"
          "        if [[ -e $folder/master ]]; then break; fi\n"
          "        sleep 1\n"
          "    done\n"
          "    exec srun --ntasks=1 \"${each[@]}\" \"$program\" --join \"$folder\" --threads=\"$SLURM_CPUS_PER_TASK\"",
          stream);
    put_words(stream, &job->helper);
    fputs("\nfi\n", stream);
}

static void put_evaluators(const LaunchJob *job, FILE *stream) {
    if (job->evaluators == 0 && !job->scales) return;
    fputs("\n"
          "rm -f \"$folder/master\" # one that a lost node has left leads nowhere\n"
          "mkdir -p \"$folder\"\n"
          ": >\"$jobs\"\n"
          "trap 'xargs --no-run-if-empty scancel --quiet <\"$jobs\"' EXIT\n",
          stream);
    if (job->evaluators > 0) fprintf(stream, "submit %d\n", job->evaluators);
}

// What is asked of Slurm already, and waits in its queue, is not asked for again.
static void put_hook(FILE *stream) {
    fputs("\n"
          "if [[ ${1:-} == scale ]]; then # the run's hook: more evaluators; fewer end by themselves\n"
          "    for name in \"${!SLURM_@}\"; do # this step's, which are not to be the new job's\n"
          "        if [[ $name != SLURM_CONF ]]; then unset \"$name\"; fi\n"
          "    done\n"
          "    queue=(squeue --noheader --array --states=PENDING --format=%i --jobs=\"$(paste -sd, \"$jobs\")\")\n"
          "    waiting=0\n"
          "    if [[ -s $jobs ]]; then waiting=$({ \"${queue[@]}\" || true; } | wc -l); fi\n"
          "    more=$((SHOAL_WANTED - SHOAL_WORKERS - waiting))\n"
          "    if ((more > 0)); then submit \"$more\"; fi\n"
          "    exit\n"
          "fi\n",
          stream);
}

static void put_trainers(const LaunchJob *job, FILE *stream) {
    const LaunchRun *run = job->run;
    const char *address = host_config_chars(&run->config, "bind_address");
    if (run->options.resume[0] != '\0') {
        fputs("\nstart=(--resume \"$folder\"", stream);
        put_words(stream, &job->start);
        fputs(")\n", stream);
    } else {
        fputs("\nstart=(--out \"$folder\"", stream);
        put_words(stream, &job->start);
        fputs(")\n"
              "if [[ -e $folder/config.json ]]; then start=(--resume \"$folder\"); fi\n",
              stream);
    }
    fputs("srun --no-kill --kill-on-bad-exit=0 \"${each[@]}\" \"$program\" \"${start[@]}\" "
          "--threads=\"$SLURM_CPUS_PER_TASK\" --bind-address=",
          stream);
    if (address[0] != '\0') {
        launch_put_shell(stream, address);
    } else {
        fputs("\"tcp://$(hostname):*\"", stream); // this script runs on the first node, as the first task does
    }
    put_words(stream, &job->always);
    if (job->scales) fputs(" --scale-hook=\"bash $(printf %q \"$0\") scale\"", stream);
    fputc('\n', stream);
}

void launch_emit_slurm(const LaunchJob *job, FILE *stream) {
    char program[HOST_PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length > 0) program[length] = '\0';
    put_header(job, stream);
    put_setting(stream, "program", length > 0 ? program : job->run->trainer->tool);
    put_setting(stream, "folder", job->folder);
    if (job->evaluators > 0 || job->scales) {
        fputs("jobs=$folder/slurm-jobs # of evaluators\n"
              "submit() { sbatch --parsable --array=\"1-$1\" --ntasks=1 \"$0\" | cut -d ';' -f 1 >>\"$jobs\"; }\n",
              stream);
    }
    if (job->scales) put_hook(stream); // which is called without a job's variables
    fprintf(stream, "each=(--cpus-per-task=\"$SLURM_CPUS_PER_TASK\"%s)\n", job->needs_gpu ? " --gpus-per-task=1" : "");
    if (job->has_evaluators) put_evaluator(job, stream);
    put_evaluators(job, stream);
    put_trainers(job, stream);
}
