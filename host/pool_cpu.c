#define _GNU_SOURCE // sched_getaffinity, CPU_ALLOC

#include "host/pool_cpu.h"

#include <errno.h>
#include <hwloc.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/file.h"

struct HostCores {
    hwloc_topology_t topology;
    hwloc_bitmap_t before; // the calling thread's binding when this was made
    int count;
    unsigned *place; // OS indexes of hardware threads, [count]
};

// Reads the two numbers of a quota file; "max" and -1 mean no quota. Returns processors, or 0.
static int quota_of(const char *quota_path, const char *period_path) {
    char quota[64] = "", period[64] = "";
    FILE *file = fopen(quota_path, "re");
    if (file == NULL) return 0;
    int got = fscanf(file, "%63s %63s", quota, period);
    fclose(file);
    if (period_path != NULL && (file = fopen(period_path, "re")) != NULL) {
        got += fscanf(file, "%63s", period) == 1;
        fclose(file);
    }
    long long quota_us = got >= 1 ? atoll(quota) : 0, period_us = got >= 2 ? atoll(period) : 0;
    if (quota_us <= 0 || period_us <= 0) return 0;
    long long count = (quota_us - 1) / period_us + 1;
    return count > HOST_THREADS_MAX ? HOST_THREADS_MAX : (int)count;
}

static int smaller_quota(int a, int b) { return a == 0 ? b : b == 0 || a < b ? a : b; }

// The tightest quota of a group and its parents. In a container the group's path may be the host's and not be there;
// its parents, down to the mount itself, are then what counts.
static int quota_upwards(const char *mount, const char *group, bool unified) {
    char path[HOST_PATH_MAX], quota_path[HOST_PATH_MAX + 32], period_path[HOST_PATH_MAX + 32];
    int length = snprintf(path, sizeof path, "%s%s", mount, group);
    if (length < 0 || length >= (int)sizeof path) return 0;
    int quota = 0;
    for (;;) {
        if (unified) {
            snprintf(quota_path, sizeof quota_path, "%s/cpu.max", path);
            quota = smaller_quota(quota, quota_of(quota_path, NULL));
        } else {
            snprintf(quota_path, sizeof quota_path, "%s/cpu.cfs_quota_us", path);
            snprintf(period_path, sizeof period_path, "%s/cpu.cfs_period_us", path);
            quota = smaller_quota(quota, quota_of(quota_path, period_path));
        }
        char *slash = strrchr(path, '/');
        if (slash == NULL || slash < path + strlen(mount)) return quota;
        *slash = '\0';
    }
}

// Whether a comma-separated list of controllers holds "cpu".
static bool has_cpu(const char *controllers) {
    for (const char *at = controllers; *at != '\0';) {
        size_t length = strcspn(at, ",");
        if (length == 3 && strncmp(at, "cpu", 3) == 0) return true;
        at += length + (at[length] == ',');
    }
    return false;
}

int host_cpu_quota(const char *membership, const char *mount) {
    FILE *file = fopen(membership, "re");
    if (file == NULL) return 0;
    char line[HOST_PATH_MAX], folder[HOST_PATH_MAX];
    int quota = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':');
        char *group = controllers == NULL ? NULL : strchr(controllers + 1, ':');
        if (group == NULL) continue;
        *group++ = '\0';
        controllers++;
        if (strcmp(group, "/") == 0) group[0] = '\0';
        if (controllers[0] == '\0') {
            quota = smaller_quota(quota, quota_upwards(mount, group, true));
        } else if (has_cpu(controllers)) {
            if (host_file_join(mount, controllers, folder) != STATUS_OK) continue;
            if (!host_file_exists(folder) && host_file_join(mount, "cpu", folder) != STATUS_OK) continue;
            quota = smaller_quota(quota, quota_upwards(folder, group, false));
        }
    }
    fclose(file);
    return quota;
}

static int affinity_count(pid_t pid) {
    for (int capacity = 1024; capacity <= 1 << 20; capacity *= 4) {
        cpu_set_t *set = CPU_ALLOC((size_t)capacity);
        if (set == NULL) return 1;
        size_t size = CPU_ALLOC_SIZE((size_t)capacity);
        int failed = sched_getaffinity(pid, size, set);
        int count = failed ? 0 : CPU_COUNT_S(size, set);
        bool too_small = failed && errno == EINVAL;
        CPU_FREE(set);
        if (!too_small) return count > 0 ? count : 1;
    }
    return 1;
}

int host_cpu_allowed_to(pid_t pid) {
    int count = smaller_quota(affinity_count(pid), host_cpu_quota("/proc/self/cgroup", "/sys/fs/cgroup"));
    return count > HOST_THREADS_MAX ? HOST_THREADS_MAX : count;
}

int host_cpu_allowed(void) { return host_cpu_allowed_to(0); }

// The n-th allowed hardware thread of each core, for n = 0, 1, ...
static void list_places(HostCores *cores) {
    int core_count = hwloc_get_nbobjs_by_type(cores->topology, HWLOC_OBJ_CORE);
    int total = hwloc_bitmap_weight(cores->before);
    hwloc_bitmap_t of_core = hwloc_bitmap_alloc();
    for (int turn = 0; of_core != NULL && turn < total && cores->count < total; turn++) {
        for (int i = 0; i < core_count; i++) {
            hwloc_obj_t core = hwloc_get_obj_by_type(cores->topology, HWLOC_OBJ_CORE, (unsigned)i);
            hwloc_bitmap_and(of_core, core->cpuset, cores->before);
            int place = hwloc_bitmap_first(of_core);
            for (int skip = 0; skip < turn && place >= 0; skip++)
                place = hwloc_bitmap_next(of_core, place);
            if (place >= 0 && cores->count < total) cores->place[cores->count++] = (unsigned)place;
        }
    }
    hwloc_bitmap_free(of_core);
    // Machines whose cores are not known: in the system's order.
    for (int place = hwloc_bitmap_first(cores->before); cores->count == 0 && place >= 0 && total > 0;) {
        for (int i = 0; i < total && place >= 0; i++, place = hwloc_bitmap_next(cores->before, place))
            cores->place[cores->count++] = (unsigned)place;
    }
}

static Status read_topology(HostCores *cores) {
    if (hwloc_topology_load(cores->topology) != 0)
        return host_fail(STATUS_SYSTEM, "cannot read the processor topology: %s", strerror(errno));
    cores->before = hwloc_bitmap_alloc();
    if (cores->before == NULL) return host_fail(STATUS_MEMORY, "no memory for a processor set");
    if (hwloc_get_cpubind(cores->topology, cores->before, HWLOC_CPUBIND_THREAD) != 0)
        return host_fail(STATUS_SYSTEM, "cannot read this thread's processors: %s", strerror(errno));
    int total = hwloc_bitmap_weight(cores->before);
    if (total < 1) return host_fail(STATUS_SYSTEM, "this thread's processors are not known");
    cores->place = calloc((size_t)total, sizeof cores->place[0]);
    if (cores->place == NULL) return host_fail(STATUS_MEMORY, "no memory for %d processors", total);
    list_places(cores);
    return STATUS_OK;
}

Status host_cores_init(HostCores **cores) {
    HostCores *made = calloc(1, sizeof *made);
    if (made == NULL) return host_fail(STATUS_MEMORY, "no memory for the processor topology");
    if (hwloc_topology_init(&made->topology) != 0) {
        free(made);
        return host_fail(STATUS_SYSTEM, "cannot read the processor topology: %s", strerror(errno));
    }
    Status status = read_topology(made);
    if (status != STATUS_OK) {
        host_cores_free(made);
        return status;
    }
    *cores = made;
    return STATUS_OK;
}

void host_cores_free(HostCores *cores) {
    if (cores == NULL) return;
    hwloc_bitmap_free(cores->before);
    hwloc_topology_destroy(cores->topology);
    free(cores->place);
    free(cores);
}

Status host_cores_pin(HostCores *cores, int index) {
    unsigned place = cores->place[index % cores->count];
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    if (set == NULL) return host_fail(STATUS_MEMORY, "no memory for a processor set");
    hwloc_bitmap_only(set, place);
    int failed = hwloc_set_cpubind(cores->topology, set, HWLOC_CPUBIND_THREAD);
    int reason = errno;
    hwloc_bitmap_free(set);
    if (failed)
        return host_fail(STATUS_SYSTEM, "cannot pin a thread to processor %u: %s (--bind none does without)", place,
                         strerror(reason));
    return STATUS_OK;
}

void host_cores_unpin(HostCores *cores) {
    (void)hwloc_set_cpubind(cores->topology, cores->before, HWLOC_CPUBIND_THREAD);
}
