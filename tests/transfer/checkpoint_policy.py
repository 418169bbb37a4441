"""A frozen policy out of a checkpoint of esrun or pporun, in float64 and from the checkpoint alone, as a user would write
it; README, "A run's folder", has the formulas."""

import json
import math
import struct
from operator import mul

FORMATS = {"F32": "f", "F64": "d", "I64": "q", "U32": "I"}


def read_checkpoint(path):
    """The run's settings, and the tensors of a safetensors file as flat tuples."""
    data = path.read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    settings = json.loads(header.pop("__metadata__")["config"])
    tensors = {}
    for name, tensor in header.items():
        begin, end = tensor["data_offsets"]
        values = struct.iter_unpack("<" + FORMATS[tensor["dtype"]], data[8 + length + begin : 8 + length + end])
        tensors[name] = tuple(value for (value,) in values)
    return settings, tensors


def bfloat16(x):
    """The bfloat16 nearest to x, the even one of two."""
    (bits,) = struct.unpack("<I", struct.pack("<f", x))
    bits = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def identity(x):
    return x


def relu(x):
    return max(x, 0.0)


def sigmoid(x):
    return 0.5 * math.tanh(0.5 * x) + 0.5


def dense(x, layer, function=identity):
    columns, biases = layer
    return [function(bias + sum(map(mul, x, column))) for column, bias in zip(columns, biases)]


class Policy:
    """outputs: how many the policy has, each of them a choice; or, with bounds (low, high of each), a continuous action."""

    def __init__(self, checkpoint, outputs, bounds=None):
        settings, tensors = read_checkpoint(checkpoint)
        self.bounds = bounds
        self.is_ppo = settings["tool"] == "pporun"
        self.activation = math.tanh if settings["activation"] == "tanh" else relu
        self.round = bfloat16 if settings["precision"] == "bf16" else identity
        self.mean, variance = self.statistics(tensors, settings)
        self.scale = [1 / math.sqrt(max(v, 1e-6)) for v in variance]
        params = iter(tensors["params"])
        sizes, units = [len(self.mean), *settings["hidden"]], settings["recurrent"]
        self.hidden = [self.layer(params, *size, self.round) for size in zip(sizes, sizes[1:])]
        if units > 0:
            self.gate = self.layer(params, sizes[-1], units, self.round)
            self.candidate = self.layer(params, sizes[-1], units, self.round)
        self.head = self.layer(params, units or sizes[-1], outputs, identity)
        self.state = [0.0] * units

    @staticmethod
    def layer(params, size_in, size_out, rounded):
        """The weights of each output, and the biases."""
        rows = [[rounded(next(params)) for _ in range(size_out)] for _ in range(size_in)]
        return list(zip(*rows)), [next(params) for _ in range(size_out)]

    def statistics(self, tensors, settings):
        """Mean and variance of the observations that the policy was trained on; 0 and 1 where they are not normalised."""
        if self.is_ppo:
            is_on, (count,), mean = settings["normalize_obs"], tensors["obs_count"], tensors["obs_mean"]
            variance = [square / max(count, 1) for square in tensors["obs_square"]]
        else:
            is_on, (count,) = settings["normalize"], tensors["normalizer_count"]
            mean = [total / max(count, 1) for total in tensors["normalizer_sum"]]
            variance = [square / max(count, 1) - m**2 for square, m in zip(tensors["normalizer_square"], mean)]
        return (mean, variance) if is_on and count > 0 else ([0.0] * len(mean), [1.0] * len(mean))

    def reset(self):
        """An episode begins."""
        self.state = [0.0] * len(self.state)

    def outputs(self, obs):
        """What the last layer gives; the recurrent state takes a step."""
        scaled = [(float(o) - mean) * scale for o, mean, scale in zip(obs, self.mean, self.scale)]
        x = [self.round(min(max(s, -5.0), 5.0)) for s in scaled]
        for layer in self.hidden:
            x = [self.round(y) for y in dense(x, layer, self.activation)]
        if self.state:
            gate, candidate = dense(x, self.gate, sigmoid), dense(x, self.candidate, math.tanh)
            self.state = [h + z * (c - h) for z, c, h in zip(gate, candidate, self.state)]
            x = self.state
        return dense(x, self.head)

    def __call__(self, obs):
        outputs = self.outputs(obs)
        if self.bounds is None:
            return outputs.index(max(outputs))
        squashed = [min(max(y, -1.0), 1.0) if self.is_ppo else math.tanh(y) for y in outputs]
        return [low + (high - low) * (y + 1) / 2 for y, low, high in zip(squashed, *self.bounds)]
