"""Times on the GPU, of several contenders that take turns. Medians, in microseconds."""
import statistics
import time

import torch


def _pair():
    return torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)


def by_events(contenders, budget_s=0.15, warm=3, least=5, most=30):
    """For calls so long that the host is ahead of the GPU: an event before and after each.

    contenders: name -> list of functions, of which one turn runs the next.
    """
    for functions in contenders.values():
        for _ in range(warm):
            functions[0]()
    torch.cuda.synchronize()
    start, end = _pair()
    start.record()
    for functions in contenders.values():
        functions[0]()
    end.record()
    torch.cuda.synchronize()
    one_round = max(start.elapsed_time(end), 1e-3)
    rounds = max(least, min(most, int(budget_s * 1000 / one_round)))
    events = {name: [] for name in contenders}
    for turn in range(rounds):
        for name, functions in contenders.items():
            start, end = _pair()
            start.record()
            functions[turn % len(functions)]()
            end.record()
            events[name].append((start, end))
    torch.cuda.synchronize()
    return {
        name: statistics.median(a.elapsed_time(b) for a, b in pairs) * 1000
        for name, pairs in events.items()
    }


def _capture(functions):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):  # outside of the capture: this loads and compiles
        for function in functions:
            function()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for function in functions:
            function()
    return graph


def by_graph(contenders, replays=9, least_calls=5):
    """For short calls: each contender's calls, over all its inputs, in a graph of its own.

    The functions of a contender work on inputs of their own, so that together they pass the L2.
    """
    graphs = {}
    for name, functions in contenders.items():
        calls = functions * -(-least_calls // len(functions))
        graphs[name] = (_capture(calls), len(calls))
    for graph, _ in graphs.values():
        for _ in range(3):
            graph.replay()
    torch.cuda.synchronize()
    times = {name: [] for name in graphs}
    for _ in range(replays):
        for name, (graph, calls) in graphs.items():
            start, end = _pair()
            start.record()
            graph.replay()
            end.record()
            torch.cuda.synchronize()
            times[name].append(start.elapsed_time(end) * 1000 / calls)
    return {name: statistics.median(each) for name, each in times.items()}


def on_host(contenders, calls=300, batches=10):
    """What a call costs the host: batches short enough for the GPU's queue, which take turns."""
    for function in contenders.values():
        for _ in range(20):
            function()
    torch.cuda.synchronize()
    times = {name: [] for name in contenders}
    for _ in range(batches):
        for name, function in contenders.items():
            start = time.perf_counter()
            for _ in range(calls // batches):
                function()
            end = time.perf_counter()
            torch.cuda.synchronize()
            times[name].append((end - start) / (calls // batches) * 1e6)
    return {name: statistics.median(each) for name, each in times.items()}
