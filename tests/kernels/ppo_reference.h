// One PPO update in plain scalar loops, an env and a sample at a time, in the order of arithmetic that
// kernels/ppo_kern.h and the design's rules define: without lanes, blocks, threads or matrix products. What it leaves
// must be the backends' bits.
#ifndef SHOAL_TESTS_KERNELS_PPO_REFERENCE_H
#define SHOAL_TESTS_KERNELS_PPO_REFERENCE_H

#include "kernel_reference.h"

#include <algorithm>
#include <iterator>

#include "kernels/ppo_math.h"
#include "kernels/ppo_random.h"
#include "tests/kernels/ppo_run.h"

struct RefPpoEnv {
    std::vector<uint32_t> state;
    std::vector<float> params, obs, memory; // memory: recurrent states, the actor's, then a separate critic's
    uint32_t episode = 0;
    int32_t length = 0;
    float episode_return = 0, discounted = 0;
    double returned = 0; // by the episodes that ended in this rollout
};

struct RefPpoSample {
    std::vector<float> obs; // as the simulator gives it
    std::vector<float> continuous;
    std::vector<int32_t> discrete;
    std::vector<float> memory; // before the step
    int32_t ended = 0;
    float log_prob = 0, value = 0, reward = 0, final_value = 0, discounted = 0, advantage = 0, target = 0;
};

// A dense layer on the way of one sample.
struct RefLayer {
    PolicyLayerKind kind;
    int32_t params, in, out;
    std::vector<float> *by_input;   // the delta of what x is; NULL: of the observation
    std::vector<float> x, y, delta; // delta: the loss by y, then by the sums
};

// The recurrent state of one network on the way of one sample.
struct RefState {
    size_t gate; // its layer; the candidate's follows
    std::vector<float> before, after, delta;
};

struct RefPass {
    std::vector<RefLayer> layers; // the actor's, then the critic's, in the order of the parameters
    std::vector<RefState> states;
    size_t critic; // where the critic's layers begin
};

class RefPpo {
  public:
    explicit RefPpo(const KernPpoSpec &spec) : spec_(spec), sim_(ref_sim(spec.sim.spec)), envs_(index_of(spec.envs)) {
        for (int32_t env = 0; env < spec.envs; env++)
            begin_episode(env);
    }

    std::vector<float> params, first, second;
    int64_t adam_steps = 0;
    std::vector<PpoMoments> obs_moments = std::vector<PpoMoments>(POLICY_OBS_MAX);
    PpoMoments return_moments = {};
    KernPpoReport report = {};

    void update(const KernPpoStep &step) {
        report = KernPpoReport{};
        normalize();
        samples_.clear();
        for (int32_t env = 0; env < spec_.envs; env++)
            roll_out(env, step.update);
        for (uint32_t epoch = 0; epoch < static_cast<uint32_t>(step.epochs); epoch++) {
            for (int32_t m = 0; m < spec_.minibatches; m++)
                learn(step, epoch, m);
        }
        take_statistics();
    }

    void store(PpoState *s) const {
        s->params = params, s->first = first, s->second = second; // same sizes: the pointers stay
        s->state.adam_steps = adam_steps;
        s->state.obs_count = obs_moments[0].count;
        for (size_t k = 0; k < index_of(spec_.sim.spec->obs); k++)
            s->state.obs_mean[k] = obs_moments[k].mean, s->state.obs_square[k] = obs_moments[k].square;
        s->state.return_count = return_moments.count;
        s->state.return_mean = return_moments.mean;
        s->state.return_square = return_moments.square;
        size_t at = 0;
        for (const RefPpoEnv &e : envs_) {
            for (uint32_t word : e.state)
                s->envs[at++] = word;
            for (float x : e.params)
                s->envs[at++] = bits_of(x);
            s->envs[at++] = e.episode;
            s->envs[at++] = static_cast<uint32_t>(e.length);
            s->envs[at++] = bits_of(e.episode_return);
            s->envs[at++] = bits_of(e.discounted);
            for (float x : e.obs)
                s->envs[at++] = bits_of(x);
            for (float x : e.memory)
                s->envs[at++] = bits_of(x);
        }
    }

  private:
    // ---- rollout
    SimRng rng_of(int32_t env, uint32_t c0) const {
        return SimRng{static_cast<uint32_t>(spec_.seed),
                      static_cast<uint32_t>(spec_.seed >> 32),
                      c0,
                      envs_[index_of(env)].episode - 1,
                      static_cast<uint32_t>(env),
                      SIM_RNG_BATCH};
    }

    void begin_episode(int32_t env) {
        RefPpoEnv &e = envs_[index_of(env)];
        e.episode++;
        SimRng rng = rng_of(env, 0);
        e.params = ref_params(spec_.sim, rng);
        e.state.assign(sim_.state_words, 0);
        e.obs.assign(index_of(spec_.sim.spec->obs), 0.0f);
        sim_.reset(e.state.data(), e.params.data(), &rng);
        sim_.observe(e.state.data(), e.params.data(), e.obs.data());
        e.length = 0;
        e.episode_return = e.discounted = 0;
        e.memory.assign(index_of(ppo_recurrent_state(&spec_.policy)), 0.0f);
    }

    void normalize() {
        KernPpoState state = {};
        state.obs_count = obs_moments[0].count;
        for (size_t k = 0; k < POLICY_OBS_MAX; k++)
            state.obs_mean[k] = obs_moments[k].mean, state.obs_square[k] = obs_moments[k].square;
        ppo_normalizer(&spec_, &state, &normalizer_);
        double variance = return_moments.count > 0 ? return_moments.square / return_moments.count : 1.0;
        reward_scale_ = static_cast<float>(1.0 / std::sqrt(std::max(variance, 1e-8)));
    }

    std::vector<float> input(const std::vector<float> &obs) const {
        std::vector<float> x(obs.size());
        for (size_t k = 0; k < x.size(); k++)
            x[k] = policy_normalize(obs[k], normalizer_.mean[k], normalizer_.scale[k]);
        if (spec_.policy.actor.precision == POLICY_BF16) std::transform(x.begin(), x.end(), x.begin(), ref_bf16);
        return x;
    }

    bool is_recurrent() const { return spec_.policy.actor.recurrent > 0; }

    // The critic as a policy of one output: shared, the actor's other layers come first. Its part of `memory` takes a
    // step.
    float value_of(const std::vector<float> &obs, std::vector<float> *memory) const {
        const PpoShape &shape = spec_.policy;
        PolicyShape critic = shape.actor;
        critic.size[critic.layers] = 1;
        std::vector<float> all;
        auto begin = params.begin();
        int head = shape.actor.layers - 1 + (is_recurrent() ? 2 : 0);
        if (shape.is_shared) all.assign(begin, begin + policy_layer_offset(&shape.actor, head));
        all.insert(all.end(), begin + shape.actor_params, begin + shape.actor_params + shape.critic_params);
        float value = 0, *state = memory->data() + (shape.is_shared ? 0 : shape.actor.recurrent);
        policy_forward(&critic, all.data(), input(obs).data(), state, &value);
        return value;
    }

    // The value of an observation that no step is made from.
    float value_at_end(const RefPpoEnv &e) const {
        std::vector<float> memory = e.memory;
        return value_of(e.obs, &memory);
    }

    const float *log_std() const { return params.data() + spec_.policy.actor_params + spec_.policy.critic_params; }

    RefPpoSample act(int32_t env, uint32_t update, uint32_t t) {
        RefPpoSample s;
        RefPpoEnv &e = envs_[index_of(env)];
        const PolicyShape &actor = spec_.policy.actor;
        s.obs = e.obs;
        s.memory = e.memory;
        s.value = value_of(s.obs, &e.memory);
        if (spec_.policy.is_shared) e.memory = s.memory; // the actor's pass makes the step
        float y[POLICY_OUTPUTS_MAX], prob[POLICY_OUTPUTS_MAX], log_prob[POLICY_OUTPUTS_MAX];
        policy_forward(&actor, params.data(), input(s.obs).data(), e.memory.data(), y);
        const float *logits = y;
        for (int32_t k = 0; k < actor.discrete; logits += actor.choices[k++]) {
            SimWords4 w = noise(env, update, t, k / 4);
            uint32_t words[4] = {w.x0, w.x1, w.x2, w.x3};
            ppo_categorical(logits, 1, actor.choices[k], prob, log_prob);
            s.discrete.push_back(ppo_categorical_draw(prob, actor.choices[k], sim_uniform_from(words[k % 4])));
            s.log_prob = s.log_prob + log_prob[s.discrete.back()];
        }
        PpoLikelihood now = {s.log_prob, 0};
        for (int32_t k = 0; k < actor.continuous; k++) {
            SimNormal4 n = sim_normal4_from(noise(env, update, t, (actor.discrete + 3) / 4 + k / 4));
            float normal[4] = {n.x0, n.x1, n.x2, n.x3};
            s.continuous.push_back(ppo_gaussian_draw(logits[k], log_std()[k], normal[k % 4]));
            now = ppo_gaussian_add(now, logits[k], log_std()[k], s.continuous.back());
        }
        s.log_prob = now.log_prob;
        return s;
    }

    SimWords4 noise(int32_t env, uint32_t update, uint32_t t, int32_t block) const {
        return ppo_noise(spec_.seed, update, static_cast<uint32_t>(env), t, static_cast<uint32_t>(block));
    }

    void step_env(int32_t env, RefPpoSample *s) {
        RefPpoEnv &e = envs_[index_of(env)];
        const PolicyShape &actor = spec_.policy.actor;
        float action[POLICY_OUTPUTS_MAX] = {0};
        for (size_t k = 0; k < s->continuous.size(); k++) {
            float clamped = std::min(std::max(s->continuous[k], -1.0f), 1.0f);
            action[k] = std::fma(clamped + 1.0f, (actor.action_high - actor.action_low) * 0.5f, actor.action_low);
        }
        SimRng rng = rng_of(env, static_cast<uint32_t>(++e.length) << 8);
        SimStep out = sim_.step(e.state.data(), e.params.data(), s->discrete.data(), action, &rng);
        sim_.observe(e.state.data(), e.params.data(), e.obs.data());
        e.episode_return = e.episode_return + out.reward;
        e.discounted = s->discounted = std::fma(spec_.gamma, e.discounted, out.reward);
        float scaled = std::min(std::max(out.reward * reward_scale_, -10.0f), 10.0f);
        s->reward = spec_.normalize_reward ? scaled : out.reward;
        s->ended = out.terminated ? PPO_TERMINATED : e.length >= spec_.sim.time_limit ? PPO_TRUNCATED : 0;
        if (s->ended == 0) return;
        if (s->ended == PPO_TRUNCATED) s->final_value = value_at_end(e);
        report.episodes++;
        report.episode_steps += e.length;
        e.returned += static_cast<double>(e.episode_return);
        begin_episode(env);
    }

    void roll_out(int32_t env, uint32_t update) {
        std::vector<RefPpoSample> run;
        envs_[index_of(env)].returned = 0;
        for (int32_t t = 0; t < spec_.rollout; t++) {
            run.push_back(act(env, update, static_cast<uint32_t>(t)));
            step_env(env, &run.back());
        }
        float next = value_at_end(envs_[index_of(env)]), advantage = 0;
        for (size_t t = run.size(); t-- > 0;) {
            if (run[t].ended) next = run[t].ended == PPO_TRUNCATED ? run[t].final_value : 0, advantage = 0;
            advantage = ppo_advantage(run[t].reward, run[t].value, next, advantage, spec_.gamma, spec_.lambda);
            next = run[t].value;
            run[t].advantage = advantage;
            run[t].target = advantage + run[t].value;
        }
        samples_.insert(samples_.end(), run.begin(), run.end());
    }

    // ---- learning
    size_t shard_samples() const { return index_of(spec_.envs / spec_.shards) * index_of(spec_.rollout); }

    std::vector<size_t> part(const KernPpoStep &step, uint32_t epoch, int32_t m, int32_t shard) const {
        size_t steps = is_recurrent() ? index_of(spec_.rollout) : 1; // that stay together
        size_t units = shard_samples() / steps, count = units / index_of(spec_.minibatches);
        PpoPermutation p =
            ppo_permutation(spec_.seed, step.update, epoch, static_cast<uint32_t>(shard), static_cast<uint32_t>(units));
        std::vector<size_t> out;
        for (size_t i = 0; i < count; i++) {
            size_t unit = ppo_permutation_at(&p, static_cast<uint32_t>(index_of(m) * count + i));
            for (size_t t = 0; t < steps; t++)
                out.push_back(index_of(shard) * shard_samples() + unit * steps + t);
        }
        return out;
    }

    template <class Get> PpoMoments moments(const std::vector<size_t> &which, Get get) const {
        PpoMoments m = {static_cast<double>(which.size()), 0, 0};
        for (size_t i : which)
            m.mean += static_cast<double>(get(samples_[i]));
        m.mean /= m.count;
        for (size_t i : which) {
            double apart = static_cast<double>(get(samples_[i])) - m.mean;
            m.square += apart * apart;
        }
        return m;
    }

    // Of a minibatch's advantages: chunks of 256, each in sixteen partial sums folded by halves.
    PpoMoments advantage_moments(const std::vector<size_t> &which) const {
        PpoMoments all = {};
        for (size_t at = 0; at < which.size(); at += 256) {
            size_t count = std::min(which.size() - at, static_cast<size_t>(256));
            double sum[16] = {0}, square[16] = {0};
            for (size_t i = 0; i < count; i++)
                sum[i % 16] += static_cast<double>(samples_[which[at + i]].advantage);
            double mean = fold16(sum) / static_cast<double>(count);
            for (size_t i = 0; i < count; i++) {
                double apart = static_cast<double>(samples_[which[at + i]].advantage) - mean;
                square[i % 16] += apart * apart;
            }
            all = ppo_moments_fold(all, PpoMoments{static_cast<double>(count), mean, fold16(square)});
        }
        return all;
    }

    static double fold16(double *partial) {
        for (int half = 8; half > 0; half /= 2) {
            for (int k = 0; k < half; k++)
                partial[k] += partial[k + half];
        }
        return partial[0];
    }

    // A weight as the layer's products take it.
    float weight(const RefLayer &l, int32_t i, int32_t o) const {
        float w = params[index_of(l.params + i * l.out + o)];
        return is_rounded(l.kind) ? ref_bf16(w) : w;
    }

    bool is_rounded(PolicyLayerKind kind) const {
        return spec_.policy.actor.precision == POLICY_BF16 && kind != POLICY_HEAD;
    }

    float layer_sum(const RefLayer &l, int32_t o) const {
        float partial[16] = {0}, sum = params[index_of(l.params + l.in * l.out + o)];
        for (int32_t i = 0; i < l.in; i++) {
            float *to = l.out >= 16 ? &sum : &partial[i % 16];
            *to = std::fma(weight(l, i, o), l.x[index_of(i)], *to);
        }
        if (l.out >= 16) return sum;
        for (int half = 8; half > 0; half /= 2) {
            for (int k = 0; k < half; k++)
                partial[k] = partial[k] + partial[k + half];
        }
        return partial[0] + sum;
    }

    float activate(PolicyLayerKind kind, float sum) const {
        if (kind == POLICY_GATE) return std::fma(0.5f, sim_tanhf(0.5f * sum), 0.5f);
        if (kind == POLICY_CANDIDATE) return sim_tanhf(sum);
        if (kind == POLICY_HEAD) return sum;
        float y = policy_activate(sum, spec_.policy.actor.activation);
        return is_rounded(kind) ? ref_bf16(y) : y;
    }

    // One sample through both networks; memory: before it.
    void forward(const std::vector<float> &x, const std::vector<float> &memory, RefPass *pass) const {
        const PpoShape &shape = spec_.policy;
        PpoNetwork network;
        ppo_network(&shape, &network);
        std::vector<PpoNode> dense;
        std::copy_if(network.layer, network.layer + network.layers, std::back_inserter(dense),
                     [](const PpoNode &node) { return node.kind != POLICY_STATE; });
        size_t count = dense.size(), units = index_of(shape.actor.recurrent);
        pass->layers.resize(count); // they are pointed at
        pass->states.resize(is_recurrent() ? memory.size() / units : 0);
        auto state = pass->states.begin();
        const std::vector<float> *last = &x;
        std::vector<float> *by_last = nullptr;
        for (size_t i = 0; i < count; i++) {
            bool begins = i > 0 && dense[i].is_critic && !dense[i - 1].is_critic;
            if (begins) pass->critic = i;
            if (begins && !shape.is_shared) last = &x, by_last = nullptr;
            const PpoNode &d = dense[i];
            RefLayer &l = pass->layers[i];
            l = {d.kind, d.params, d.in, d.out, by_last, *last, {}, {}};
            for (int32_t o = 0; o < l.out; o++)
                l.y.push_back(activate(l.kind, layer_sum(l, o)));
            if (l.kind == POLICY_HIDDEN) last = &l.y, by_last = &l.delta;
            if (l.kind != POLICY_CANDIDATE) continue;
            auto own = memory.begin() + (state - pass->states.begin()) * shape.actor.recurrent;
            state->gate = i - 1;
            state->before.assign(own, own + shape.actor.recurrent);
            for (size_t k = 0; k < units; k++) {
                float before = state->before[k];
                state->after.push_back(std::fma(pass->layers[i - 1].y[k], l.y[k] - before, before));
            }
            last = &state->after, by_last = &state->delta;
            state++;
        }
    }

    // From layer.delta to the gradient; adds to the loss by the layer's input.
    void backward(RefLayer *l, std::vector<float> *gradient) const {
        float *g = gradient->data() + l->params;
        bool tanh = l->kind == POLICY_CANDIDATE || spec_.policy.actor.activation == POLICY_TANH;
        std::vector<float> unused, *by_input = l->by_input != nullptr ? l->by_input : &unused;
        by_input->resize(l->x.size(), 0.0f);
        for (int32_t o = 0; o < l->out; o++) {
            float y = l->y[index_of(o)], &d = l->delta[index_of(o)];
            if (l->kind == POLICY_GATE) {
                d = d * std::fma(-y, y, y);
            } else if (l->kind != POLICY_HEAD) {
                d = tanh ? d * std::fma(-y, y, 1.0f) : y > 0 ? d : 0.0f;
            }
            if (is_rounded(l->kind)) d = ref_bf16(d);
            g[l->in * l->out + o] = g[l->in * l->out + o] + d;
            for (int32_t i = 0; i < l->in; i++) {
                float x = l->x[index_of(i)], &to = (*by_input)[index_of(i)];
                g[i * l->out + o] = std::fma(x, d, g[i * l->out + o]);
                to = std::fma(weight(*l, i, o), d, to);
            }
        }
    }

    // Back through time: from the loss by the states to the loss by gates and candidates.
    void backward_states(std::vector<RefPass> *passes, const std::vector<int32_t> &ended) const {
        size_t units = index_of(spec_.policy.actor.recurrent);
        for (size_t network = 0; network < passes->front().states.size(); network++) {
            std::vector<float> next(units, 0.0f);
            for (size_t t = passes->size(); t-- > 0;) {
                RefState &state = (*passes)[t].states[network];
                RefLayer &gate = (*passes)[t].layers[state.gate], &candidate = (*passes)[t].layers[state.gate + 1];
                if (ended[t]) next.assign(units, 0.0f);
                for (size_t k = 0; k < units; k++) {
                    float by = state.delta[k] + next[k];
                    gate.delta.push_back(by * (candidate.y[k] - state.before[k]));
                    candidate.delta.push_back(by * gate.y[k]);
                    next[k] = by * (1.0f - gate.y[k]);
                }
            }
        }
    }

    void head_deltas(const KernPpoStep &step, const RefPpoSample &s, float advantage, float per_sample, RefLayer *actor,
                     RefLayer *critic, float *log_std_gradient) const {
        const PolicyShape &shape = spec_.policy.actor;
        float prob[POLICY_OUTPUTS_MAX], log_prob[POLICY_OUTPUTS_MAX];
        PpoLikelihood now = {0, 0};
        const float *y = actor->y.data();
        for (size_t k = 0; k < s.discrete.size(); y += shape.choices[k++]) {
            now.entropy = now.entropy + ppo_categorical(y, 1, shape.choices[k], prob, log_prob);
            now.log_prob = now.log_prob + log_prob[s.discrete[k]];
        }
        for (size_t k = 0; k < s.continuous.size(); k++)
            now = ppo_gaussian_add(now, y[k], log_std()[k], s.continuous[k]);
        PpoPolicyLoss loss = ppo_policy_loss(now.log_prob, s.log_prob, advantage, step.clip);
        float by_log_prob = loss.gradient * per_sample, by_entropy = -step.entropy_weight * per_sample;
        y = actor->y.data();
        for (size_t k = 0; k < s.discrete.size(); y += shape.choices[k++]) {
            float entropy = ppo_categorical(y, 1, shape.choices[k], prob, log_prob);
            for (int32_t i = 0; i < shape.choices[k]; i++)
                actor->delta.push_back(
                    ppo_categorical_gradient(prob, log_prob, entropy, s.discrete[k], i, by_log_prob, by_entropy));
        }
        for (size_t k = 0; k < s.continuous.size(); k++) {
            PpoGaussianGradient g = ppo_gaussian_gradient(y[k], log_std()[k], s.continuous[k], by_log_prob, by_entropy);
            actor->delta.push_back(g.mean);
            log_std_gradient[k] = log_std_gradient[k] + g.log_std;
        }
        PpoValueLoss value = ppo_value_loss(critic->y[0], s.value, s.target, step.clip, step.clip_value);
        critic->delta.push_back(value.gradient * (step.value_weight * per_sample));
    }

    std::vector<float> chunk(const KernPpoStep &step, const size_t *which, size_t count, PpoMoments advantages,
                             float per_sample) const {
        std::vector<float> gradient(params.size(), 0.0f);
        size_t log_std_at = index_of(spec_.policy.actor_params + spec_.policy.critic_params);
        float mean = 0, scale = 1;
        if (step.normalize_advantage && advantages.count > 1) {
            mean = static_cast<float>(advantages.mean);
            scale = static_cast<float>(1.0 / (std::sqrt(advantages.square / (advantages.count - 1)) + 1e-8));
        }
        std::vector<RefPass> passes(count); // they are pointed into
        std::vector<int32_t> ended;
        std::vector<float> memory;
        for (size_t i = 0; i < count; i++) {
            const RefPpoSample &s = samples_[which[i]];
            if (i == 0) memory = s.memory;
            forward(input(s.obs), memory, &passes[i]);
            head_deltas(step, s, (s.advantage - mean) * scale, per_sample, &passes[i].layers[passes[i].critic - 1],
                        &passes[i].layers.back(), gradient.data() + log_std_at);
            ended.push_back(s.ended);
            memory.clear();
            for (const RefState &state : passes[i].states)
                memory.insert(memory.end(), state.after.begin(), state.after.end());
            if (s.ended) std::fill(memory.begin(), memory.end(), 0.0f);
        }
        for (RefPass &pass : passes) {
            backward(&pass.layers[pass.critic - 1], &gradient);
            backward(&pass.layers.back(), &gradient);
        }
        backward_states(&passes, ended);
        for (RefPass &pass : passes) {
            for (size_t l = pass.layers.size(); l-- > 0;) {
                if (pass.layers[l].kind != POLICY_HEAD) backward(&pass.layers[l], &gradient);
            }
        }
        return gradient;
    }

    static double norm_of(const std::vector<float> &g) {
        double sum = 0;
        for (size_t tile = 0; tile < g.size(); tile += 256) {
            double partial[16] = {0};
            for (size_t i = tile; i < std::min(tile + 256, g.size()); i++)
                partial[(i - tile) % 16] += static_cast<double>(g[i]) * static_cast<double>(g[i]);
            sum += fold16(partial);
        }
        return std::sqrt(sum);
    }

    void learn(const KernPpoStep &step, uint32_t epoch, int32_t m) {
        PpoMoments advantages = {};
        std::vector<std::vector<float>> of_shard;
        for (int32_t shard = 0; shard < spec_.shards; shard++)
            advantages = ppo_moments_fold(advantages, advantage_moments(part(step, epoch, m, shard)));
        float per_sample = static_cast<float>(1.0 / advantages.count);
        for (int32_t shard = 0; shard < spec_.shards; shard++) {
            std::vector<size_t> which = part(step, epoch, m, shard);
            std::vector<float> sum;
            size_t size = is_recurrent() ? index_of(spec_.rollout) : 256; // of a chunk
            for (size_t at = 0; at < which.size(); at += size) {
                size_t count = std::min(which.size() - at, size);
                std::vector<float> g = chunk(step, which.data() + at, count, advantages, per_sample);
                for (size_t i = 0; at > 0 && i < g.size(); i++)
                    g[i] = sum[i] + g[i];
                sum = g;
            }
            of_shard.push_back(sum);
        }
        for (size_t apart = 1; apart < of_shard.size(); apart *= 2) {
            for (size_t s = 0; s < of_shard.size(); s += 2 * apart) {
                for (size_t i = 0; i < params.size(); i++)
                    of_shard[s][i] = of_shard[s][i] + of_shard[s + apart][i];
            }
        }
        descend(step, of_shard[0]);
    }

    void descend(const KernPpoStep &step, const std::vector<float> &gradient) {
        report.grad_norm = norm_of(gradient);
        adam_steps++;
        double power1 = 1, power2 = 1; // the bits depend on the order of the products: by squaring
        double base1 = static_cast<double>(step.beta1), base2 = static_cast<double>(step.beta2);
        for (int64_t n = adam_steps; n > 0; n /= 2, base1 *= base1, base2 *= base2) {
            if (n % 2 != 0) power1 *= base1, power2 *= base2;
        }
        PpoAdamStep adam = {};
        adam.learning_rate = static_cast<float>(static_cast<double>(step.learning_rate) / (1 - power1));
        adam.second_scale = static_cast<float>(1 / (1 - power2));
        adam.beta1 = step.beta1, adam.beta2 = step.beta2, adam.epsilon = step.epsilon;
        double limit = static_cast<double>(step.max_grad_norm);
        bool is_limited = limit > 0 && report.grad_norm > limit;
        adam.gradient_scale = is_limited ? static_cast<float>(limit / report.grad_norm) : 1.0f;
        for (size_t i = 0; i < params.size(); i++) {
            PpoAdam a = ppo_adam({params[i], first[i], second[i]}, gradient[i], adam);
            params[i] = a.param, first[i] = a.first, second[i] = a.second;
        }
    }

    // ---- statistics: of each env, folded in its shard, then the shards
    template <class Get> PpoMoments fold(Get get) const {
        PpoMoments all = {};
        for (int32_t shard = 0; shard < spec_.shards; shard++) {
            PpoMoments of_shard = {};
            for (size_t env = 0; env < envs_.size() / index_of(spec_.shards); env++) {
                std::vector<size_t> which;
                size_t begin =
                    (index_of(shard) * envs_.size() / index_of(spec_.shards) + env) * index_of(spec_.rollout);
                for (size_t t = 0; t < index_of(spec_.rollout); t++)
                    which.push_back(begin + t);
                of_shard = ppo_moments_fold(of_shard, moments(which, get));
            }
            all = ppo_moments_fold(all, of_shard);
        }
        return all;
    }

    void take_statistics() {
        size_t envs = envs_.size() / index_of(spec_.shards);
        for (size_t from = 0; from < envs_.size(); from += envs) {
            double of_shard = 0;
            for (size_t env = from; env < from + envs; env++)
                of_shard += envs_[env].returned;
            report.episode_return += of_shard;
        }
        for (size_t k = 0; k < index_of(spec_.sim.spec->obs); k++) {
            obs_moments[k] = ppo_moments_fold(obs_moments[k], fold([k](const RefPpoSample &s) { return s.obs[k]; }));
        }
        return_moments = ppo_moments_fold(return_moments, fold([](const RefPpoSample &s) { return s.discounted; }));
    }

    KernPpoSpec spec_;
    RefSim sim_;
    std::vector<RefPpoEnv> envs_;
    std::vector<RefPpoSample> samples_; // [env][step]
    KernNormalizer normalizer_ = {};
    float reward_scale_ = 1;
};

#endif
