"""A reader of traces, written from profiler/FORMAT.md alone: it shares no code with Shoal, and shows that the page suffices.

usage: trace_reader.py TRACE     prints each scope's path, how often it was entered, and its threads' time in nanoseconds
"""

import json
import sys
from collections import defaultdict

MAGIC, HEADER = b"SHPT", 40
PROCESS, STREAM, NAMES, EVENTS, CLOCK, END = range(1, 7)
KINDS = ["END", "BEGIN", "JOIN", "LAUNCH", "INTERVAL", "SPLIT", "CAPTURE", "OTHER"]
# Codes of OTHER: name, and what its bytes are. "b": a u8, else a varint.
CODES = {1: ("PHASE", {"phase": "v"}), 2: ("DROPPED", {"count": "v"}), 3: ("BUSY", {"count": "v"}), 4: ("MEMORY", {"count": "v"}),
         5: ("OVERHEAD", {"count": "v"}),
         6: ("STRETCH", {"plain": "b", "units": "v", "duration": "v", "processor": "v", "pauses": "v"}), 7: ("READER", {"processor": "v"}),
         8: ("CALL", {"correlation": "v"}), 9: ("WAIT", {"duration": "v", "correlation": "v", "name": "v"}),
         10: ("ALLOC", {"kind": "b", "count": "v", "correlation": "v"}), 11: ("RELEASE", {"kind": "b", "count": "v", "correlation": "v"}),
         12: ("POOL", {"change": "b", "count": "v", "correlation": "v"}), 13: ("ID", {"kind": "b", "id": "v", "correlation": "v"})}  # fmt: skip


def fnv(data):
    state = 0xCBF29CE484222325
    for byte in data:
        state = (state ^ byte) * 0x100000001B3 % 2**64
    return state


class Bytes:
    """A payload that is read from its front."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def fixed(self, count):
        self.at += count
        return int.from_bytes(self.data[self.at - count : self.at], "little")

    def varint(self):
        value = shift = 0
        while True:
            byte = self.fixed(1)
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def text(self):
        length = self.varint()
        self.at += length
        return self.data[self.at - length : self.at].decode()


def blocks(data):
    """(type, events, stream, sequence, payload) of each block that is whole."""
    at = 0
    while at + HEADER <= len(data):
        header = Bytes(data[at : at + HEADER])
        if data[at : at + 4] != MAGIC or fnv(data[at : at + 32]) != int.from_bytes(data[at + 32 : at + 40], "little"):
            at += 1
            continue
        header.at = 4
        version, kind = header.fixed(2), header.fixed(2)
        length, events, stream, sequence = (header.fixed(4) for _ in range(4))
        payload = data[at + HEADER : at + HEADER + length]
        if version in (1, 2) and len(payload) == length and fnv(payload) == header.fixed(8):
            yield kind, events, stream, sequence, payload
        at += HEADER + length


def content(kind, body):
    if kind == "BEGIN":
        return {"name": body.varint()}
    if kind == "JOIN":
        return {"name": body.varint(), "stream": body.varint()}
    if kind == "LAUNCH":
        return {"correlation": body.varint()}
    if kind == "INTERVAL":
        return {"duration": body.varint(), "correlation": body.varint(), "node": body.varint(), "work": body.fixed(1),
                "name": body.varint(), "threads": body.varint()}  # fmt: skip
    if kind == "SPLIT":
        mask = body.fixed(1)
        return {"weights": {bit: body.varint() for bit in range(8) if mask >> bit & 1}}
    if kind == "CAPTURE":
        return {"node": body.varint()}
    if kind == "OTHER":
        code, length = body.fixed(1), body.varint()
        body.at += length
        if code not in CODES:
            return {"code": code}
        within = Bytes(body.data[body.at - length : body.at])
        fields = CODES[code][1]
        return {"code": code, **{name: within.fixed(1) if size == "b" else within.varint() for name, size in fields.items()}}
    return {}


class Trace:
    def __init__(self, data):
        self.process, self.streams, self.names, self.clocks, self.end = {}, {}, {}, [], None
        self.notes = defaultdict(list)  # of each kind: contents, stream after stream
        self.events = defaultdict(list)  # of each stream: (time, kind, content)
        for kind, events, stream, _, payload in blocks(data):
            body = Bytes(payload)
            if kind == PROCESS:
                self.process = json.loads(payload)
            elif kind == STREAM:
                device, main = body.fixed(1), body.fixed(1)
                self.streams[stream] = {"device": device == 1, "main": main == 1, "os_id": body.varint(),
                                        "number": body.varint(), "capacity": body.varint(), "name": body.text()}  # fmt: skip
            elif kind == NAMES:
                while body.at < len(payload):
                    number = body.varint()
                    self.names[number] = {"category": body.fixed(1), "layer": body.fixed(1), "name": body.text()}
            elif kind == EVENTS:
                self.add_events(self.events[stream], body, events)
            elif kind == CLOCK:
                self.clocks.append((body.fixed(8), body.fixed(8)))
            elif kind == END:
                self.end = {"time": body.fixed(8), "events": body.varint(), "dropped": body.varint()}

    def add_events(self, to, body, count):
        time = body.fixed(8)
        for _ in range(body.varint()):
            body.varint()
        for _ in range(count):
            head = body.varint()
            time += head >> 3
            kind = KINDS[head & 7]
            what = content(kind, body)
            if kind == "OTHER":
                kind = CODES.get(what.pop("code"), ("OTHER", {}))[0]
            to.append((max(time, to[-1][0] if to else 0), kind, what))
            self.notes[kind].append(what)

    def scopes(self):
        """path -> [count, nanoseconds of all threads]; "(outside)" where no scope is open."""
        main = [i for i, s in self.streams.items() if s["main"]] or sorted(self.streams)[:1]
        merged = sorted((e[0], self.streams[stream]["device"], stream, i, e) for stream, events in self.events.items()
                        for i, e in enumerate(events) if e[1] == "WAIT" or not self.streams[stream]["device"])  # fmt: skip
        stacks, since, sums = defaultdict(list), {i: self.process["start_ns"] for i in main}, defaultdict(lambda: [0, 0])
        calls, waits = {}, {}  # correlation -> stream and scopes; stream -> path and end

        def account(stream, time):
            path = stacks[stream][-1] if stacks[stream] else "(outside)"
            if stream in waits:
                within, end = waits[stream]
                sums[within][1] += min(end, time) - since[stream]
                since[stream] = min(end, time)
            sums[path][1] += time - since.get(stream, time)
            since[stream] = time

        for time, _, stream, _, (_, kind, what) in merged:
            if kind == "WAIT":
                caller, stack = calls.get(what["correlation"], (None, None))
                if caller is None or stack != stacks[caller] or (caller in waits and waits[caller][1] > time):
                    continue
                account(caller, time)
                path = (stack[-1] if stack else "") + "/" + self.names[what["name"]]["name"]
                waits[caller] = path, time + what["duration"]
                sums[path][0] += 1
                continue
            account(stream, time)
            waits.pop(stream, None)
            if kind in ("LAUNCH", "CALL"):
                calls[what["correlation"]] = stream, list(stacks[stream])
            if kind == "END" and stacks[stream]:
                stacks[stream].pop()
            elif kind in ("BEGIN", "JOIN"):
                name = self.names[what["name"]]["name"]
                path = (stacks[stream][-1] if stacks[stream] else "") + "/" + name
                if kind == "JOIN":
                    open_there = [p for p in stacks[what["stream"]] if p.rsplit("/", 1)[1] == name]
                    path = open_there[-1] if open_there else "/" + name
                stacks[stream].append(path)
                sums[path][0] += kind == "BEGIN"
        last = self.end["time"] if self.end else max((e[0] for e in merged), default=self.process["start_ns"])
        for stream in list(since):
            account(stream, last)
        return dict(sums)


def main():
    with open(sys.argv[1], "rb") as file:
        trace = Trace(file.read())
    for path, (count, ns) in sorted(trace.scopes().items()):
        print(path, count, ns)


if __name__ == "__main__":
    main()
