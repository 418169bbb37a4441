#include "kernels/frozen.h"

#include <math.h>

#include "host/trace.h"
#include "sim/sim_rng.h"

Status kern_check_returns(const char *env, const KernEpisode *episodes, int64_t members, int64_t per_member) {
    for (int64_t i = 0; i < members * per_member; i++) {
        if (isfinite(episodes[i].episode_return)) continue;
        return host_fail(STATUS_NUMERIC, "%s: member %lld, episode %lld: the return is infinite after %d steps", env,
                         (long long)(i / per_member), (long long)(i % per_member), episodes[i].length);
    }
    return STATUS_OK;
}

Status kern_test(KernEs *es, const KernNormalizer *normalizer, const char *env, uint32_t round, int32_t count,
                 KernEpisode *episodes, KernTest *test) {
    KernEsJob job = {.purpose = SIM_RNG_EVALUATE, .generation = round, .count = 1, .episodes = count};
    TRY(es->backend->ops->es_evaluate(es, &job, normalizer, episodes, NULL));
    TRY(kern_check_returns(env, episodes, 1, count));
    HOST_TRACE_SCOPE(HOST, "fold test");
    double sum = 0.0, square = 0.0;
    int64_t steps = 0;
    for (int32_t i = 0; i < count; i++) {
        double value = (double)episodes[i].episode_return;
        sum += value;
        square += value * value;
        steps += episodes[i].length;
    }
    double n = (double)count, variance = n > 1.0 ? (square - sum * sum / n) / (n - 1.0) : 0.0;
    test->return_mean = sum / n;
    test->return_std = sqrt(variance > 0.0 ? variance : 0.0);
    test->length_mean = (double)steps / n;
    test->env_steps = steps;
    return STATUS_OK;
}
