// What a launcher is told: command line, config.json of a file or a run, and what goes with what.
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "host/run_state.h"
#include "kernels/launcher_run.h"

// Settings of a run that a later call may be given anew. With --resume, those that do not change what the run computes,
// only how far it goes; with --eval, those that say what the policy is tested on.
static bool may_change(const KernTrainer *trainer, const char *name, bool resume) {
    static const struct {
        const char *name;
        bool resume, eval;
    } settings[] = {
        {"env", true, true},         {"target", true, true},        {"stop_at_target", true, false},
        {"test_every", true, false}, {"test_episodes", true, true}, {"checkpoint_every", true, false},
        {"set", false, true},        {"randomize", false, true},    {"time_limit", false, true},
        {"seed", false, true},       {"lib_hash", true, true},
    };
    if (strcmp(name, trainer->length) == 0) return resume;
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        if (strcmp(settings[i].name, name) == 0) return resume ? settings[i].resume : settings[i].eval;
    }
    return false;
}

static bool may_change_on_resume(const void *trainer, const char *name) { return may_change(trainer, name, true); }

static void read_options(LaunchRun *run) {
    const HostConfig *c = &run->config;
    LaunchOptions *o = &run->options;
    o->env = host_config_chars(c, "env");
    o->out = host_config_chars(c, "out");
    o->resume = host_config_chars(c, "resume");
    o->config = host_config_chars(c, "config");
    o->eval = host_config_chars(c, "eval");
    o->html = host_config_chars(c, "html");
    o->html_episodes = host_config_int(c, "html_episodes");
    o->seed = host_config_int(c, "seed");
    o->test_every = host_config_int(c, "test_every");
    o->test_episodes = host_config_int(c, "test_episodes");
    o->checkpoint_every = host_config_int(c, "checkpoint_every");
    o->target = host_config_real(c, "target");
    o->stop_at_target = host_config_flag(c, "stop_at_target");
    o->list = host_config_flag(c, "list");
    o->dry_run = host_config_flag(c, "dry_run");
    o->json = host_config_flag(c, "json");
    o->quiet = host_config_flag(c, "quiet");
    o->profile_full = host_config_choice(c, "profile_detail") == 1;
    o->profile = host_config_flag(c, "profile") || host_config_chars(c, "profile_window")[0] != '\0' || o->profile_full;
}

// What --resume and --eval do not go with.
static Status check_given(const LaunchRun *run) {
    const LaunchOptions *o = &run->options;
    bool resume = o->resume[0] != '\0';
    const char *command = resume ? "--resume" : "--eval";
    if (resume && o->eval[0] != '\0') return host_fail(STATUS_USAGE, "--resume and --eval: one of them");
    if (o->out[0] != '\0' || o->config[0] != '\0') {
        return host_fail(STATUS_USAGE, "%s takes folder and settings from the run: leave out --%s", command,
                         o->out[0] != '\0' ? "out" : "config");
    }
    const ConfigTable *table = run->trainer->table;
    for (int i = 0; i < table->count; i++) {
        const ConfigOption *option = &table->options[i];
        if (option->command || host_config_layer(&run->config, option->name) != CONFIG_ARGS) continue;
        if (may_change(run->trainer, option->name, resume)) continue;
        char name[HOST_CONFIG_NAME_MAX];
        return host_fail(STATUS_USAGE, "--%s cannot be changed with %s: it is the run's",
                         host_config_spell(option->name, true, name), command);
    }
    return STATUS_OK;
}

// Reads the settings of the run or of the file that was named; `source` is what messages call it, "" if there is none.
static Status read_file(LaunchRun *run, const char **source) {
    const LaunchOptions *o = &run->options;
    *source = o->resume[0] != '\0' ? o->resume : o->eval;
    if ((*source)[0] != '\0') {
        char path[HOST_PATH_MAX];
        TRY(check_given(run));
        TRY(host_run_config_path(*source, path));
        return host_config_from_file(&run->config, CONFIG_FILE, path);
    }
    *source = o->config;
    if ((*source)[0] == '\0') return STATUS_OK;
    return host_config_from_file(&run->config, CONFIG_FILE, o->config);
}

static Status read_device_options(LaunchRun *run) {
    int64_t lanes = host_config_int(&run->config, "lanes"), threads = 0;
    if (lanes != 0 && lanes != 1 && lanes != 8 && lanes != 16) {
        return host_fail(STATUS_USAGE, "--lanes %lld: 1, 8 or 16 (0: the instruction set's own)", (long long)lanes);
    }
    const char *text = host_config_chars(&run->config, "threads");
    if (strcmp(text, "auto") != 0) {
        TRY(host_parse_int("--threads", text, 1, HOST_THREADS_MAX, "threads, or auto", &threads));
    }
    run->options.threads = (int)threads;
    return STATUS_OK;
}

// "FIRST:LAST"
static Status read_profile_options(LaunchRun *run) {
    LaunchOptions *o = &run->options;
    const char *text = host_config_chars(&run->config, "profile_window"), *colon = strchr(text, ':');
    o->profile_first = 1;
    o->profile_last = INT64_MAX;
    if (text[0] != '\0') {
        char first[32];
        if (colon == NULL || colon - text >= (ptrdiff_t)sizeof first) {
            return host_fail(STATUS_USAGE, "--profile-window %s: FIRST:LAST, such as 10:20", text);
        }
        snprintf(first, sizeof first, "%.*s", (int)(colon - text), text);
        TRY(host_parse_int("--profile-window", first, 1, INT64_MAX, "steps", &o->profile_first));
        TRY(host_parse_int("--profile-window", colon + 1, o->profile_first, INT64_MAX, "steps", &o->profile_last));
    }
    if (o->profile && (o->eval[0] != '\0' || o->dry_run)) {
        return host_fail(STATUS_USAGE, "--profile is for training: leave out --%s", o->dry_run ? "dry-run" : "eval");
    }
    return STATUS_OK;
}

// What shows the episodes of a test goes with --eval alone; checked before anything is opened.
static Status check_html(const LaunchRun *run, const SimSpec *sim) {
    const LaunchOptions *o = &run->options;
    bool is_counted = host_config_layer(&run->config, "html_episodes") == CONFIG_ARGS;
    if (o->html[0] == '\0') {
        return is_counted ? host_fail(STATUS_USAGE, "--html-episodes needs --html") : STATUS_OK;
    }
    if (o->eval[0] == '\0') return host_fail(STATUS_USAGE, "--html shows episodes of a test: it needs --eval");
    if (o->dry_run) return host_fail(STATUS_USAGE, "--html writes a page: leave out --dry-run");
    return kern_view_check(sim);
}

// What is trained on: one of the two.
typedef struct Subject {
    const SimSpec *sim; // NULL: the objective
    KernObjective objective;
} Subject;

static Status find_named(const LaunchRun *run, const char *name, Subject *subject) {
    subject->sim = NULL;
    if (kern_objective_is(name)) return launch_find_objective(run, name, &subject->objective);
    subject->sim = sim_spec_find(name);
    return subject->sim != NULL ? STATUS_OK : launch_unknown_simulator(run, name);
}

// The subject, as the first argument, --env and a file name it.
static Status find_subject(LaunchRun *run, const char *source, Subject *subject) {
    const char *env = run->options.env; // in the settings' struct, so that it changes with them
    bool is_argument = run->args.count == 1;
    if (!is_argument && env[0] == '\0')
        return host_fail(STATUS_USAGE, "which simulator? %s ENV; --list shows them", run->trainer->tool);
    TRY(find_named(run, is_argument ? run->args.positional[0] : env, subject));
    const char *name = subject->sim != NULL ? subject->sim->name : subject->objective.name;
    bool is_other = is_argument && env[0] != '\0' && strcmp(name, env) != 0;
    if (is_other && source[0] == '\0')
        return host_fail(STATUS_USAGE, "one simulator at a time: '%s' and --env %s", name, env);
    if (is_other) return host_fail(STATUS_USAGE, "%s is of %s, not of %s", source, env, name);
    // An objective has its name in full, wherever it comes from: a path that is relative may lead elsewhere tomorrow.
    bool is_set = is_argument || subject->sim == NULL;
    return is_set ? host_config_set(&run->config, CONFIG_ARGS, "env", name) : STATUS_OK;
}

Status launch_read_settings(LaunchRun *run, int argc, char **argv) {
    host_config_init(&run->config, run->trainer->table, run->trainer->values);
    TRY(host_config_parse_args(&run->config, argc, argv, &run->args));
    if (run->args.help || run->args.version) return STATUS_OK;
    if (run->args.count > 1) {
        return host_fail(STATUS_USAGE, "one simulator at a time: '%s' and '%s'", run->args.positional[0],
                         run->args.positional[1]);
    }
    read_options(run);
    if (run->options.list) return STATUS_OK;
    TRY(read_device_options(run));
    TRY(read_profile_options(run));
    if (launch_is_helper(run)) return STATUS_OK;
    TRY(launch_check_workers(run));
    const char *source = "";
    Subject subject = {.sim = NULL};
    TRY(read_file(run, &source));
    TRY(find_subject(run, source, &subject));
    if (subject.sim != NULL) {
        TRY(check_html(run, subject.sim));
        TRY(run->trainer->defaults(&run->config, subject.sim));
    } else {
        TRY(launch_objective_settings(run, &subject.objective));
    }
    read_options(run);
    return STATUS_OK;
}

Status launch_check_resumed(LaunchRun *run, const char *checkpoint) {
    const KernTrainer *trainer = run->trainer;
    return host_run_state_check_settings(checkpoint, &run->config, may_change_on_resume, trainer,
                                         trainer->check_resume);
}

Status kern_apply_defaults(HostConfig *config, const char *name, const KernSimulatorDefault *defaults, int count) {
    for (int i = 0; i < count; i++) {
        const KernSimulatorDefault *d = &defaults[i];
        if (strcmp(d->sim, name) == 0) TRY(host_config_set(config, CONFIG_SIMULATOR, d->option, d->value));
    }
    return STATUS_OK;
}

Status kern_simulator_defaults(HostConfig *config, const SimSpec *sim, const KernSimulatorDefault *defaults,
                               int count) {
    char text[32];
    TRY(host_config_set(config, CONFIG_SIMULATOR, "target", host_real_text(sim->reward_threshold, text)));
    snprintf(text, sizeof text, "%d", sim->time_limit);
    TRY(host_config_set(config, CONFIG_SIMULATOR, "time_limit", text));
    return kern_apply_defaults(config, sim->name, defaults, count);
}

Status kern_sim_of_settings(KernSim *sim, const char *env, int64_t time_limit, const HostTextList *set,
                            const HostTextList *randomize) {
    const SimSpec *spec = sim_spec_find(env);
    if (spec == NULL) return host_fail(STATUS_USAGE, "unknown simulator '%s'", env);
    kern_sim_default(sim, spec);
    sim->time_limit = (int)time_limit;
    for (int i = 0; i < randomize->count; i++)
        TRY(kern_sim_randomize(sim, randomize->at[i]));
    for (int i = 0; i < set->count; i++)
        TRY(kern_sim_set(sim, set->at[i]));
    return STATUS_OK;
}
