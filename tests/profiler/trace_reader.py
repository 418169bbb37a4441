"""A reader of traces, written from profiler/FORMAT.md alone: it shares no code with Shoal, and shows that the page suffices.

usage: trace_reader.py TRACE     prints each scope's path, how often it was entered, and its threads' time in nanoseconds
"""

import json
import sys
from collections import defaultdict

MAGIC, HEADER = b"SHPT", 40
PROCESS, STREAM, NAMES, EVENTS, CLOCK, END = range(1, 7)
KINDS = ["END", "BEGIN", "JOIN", "LAUNCH", "INTERVAL", "SPLIT", "CAPTURE", "OTHER"]
NOTES = {3: "BUSY", 4: "MEMORY", 5: "OVERHEAD"}  # of a device: codes of OTHER


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
        if version == 1 and len(payload) == length and fnv(payload) == header.fixed(8):
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
        return {"code": code, "bytes": body.data[body.at - length : body.at]}
    return {}


class Trace:
    def __init__(self, data):
        self.process, self.streams, self.names, self.clocks, self.end = {}, {}, {}, [], None
        self.notes = defaultdict(list)
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
            to.append((max(time, to[-1][0] if to else 0), kind, content(kind, body)))
            if kind == "OTHER" and to[-1][2]["code"] in NOTES:
                self.notes[NOTES[to[-1][2]["code"]]].append(Bytes(to[-1][2]["bytes"]).varint())

    def scopes(self):
        """path -> [count, nanoseconds of all threads]; "(outside)" where no scope is open."""
        main = [i for i, s in self.streams.items() if s["main"]] or sorted(self.streams)[:1]
        merged = sorted((e[0], stream, i, e) for stream, events in self.events.items() if not self.streams[stream]["device"]
                        for i, e in enumerate(events))  # fmt: skip
        stacks, since, sums = defaultdict(list), {i: self.process["start_ns"] for i in main}, defaultdict(lambda: [0, 0])

        def account(stream, time):
            path = stacks[stream][-1] if stacks[stream] else "(outside)"
            sums[path][1] += time - since.get(stream, time)
            since[stream] = time

        for time, stream, _, (_, kind, what) in merged:
            account(stream, time)
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
