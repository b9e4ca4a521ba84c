#!/usr/bin/env python3
"""The barriers of attn_prefill_wgmma without a GPU: its threads as coroutines in random order.

    python3 bench/ladder/protocol.py [ROUNDS]

Each role waits and arrives as the kernel does (wgmma_planner.cuh, wgmma_producer.cuh,
wgmma_consumer.cuh), copies land when chance wants it, and every read says what it must find. A
round fails where nobody can go on, or where a tile was overwritten before it was read.
"""
import random
import sys

NOTES = 4


class Barrier:
    def __init__(self, arrivals):
        self.arrivals, self.came, self.phases = arrivals, 0, 0

    def arrive(self):
        self.came += 1
        if self.came == self.arrivals:
            self.came, self.phases = 0, self.phases + 1

    def ended(self, phase):
        return self.phases % 2 != phase


class Place:
    def __init__(self, stages):
        self.stages, self.stage, self.phase = stages, 0, 0

    def advance(self):
        self.stage += 1
        if self.stage == self.stages:
            self.stage, self.phase = 0, self.phase ^ 1


class Stages:
    """A ring: what lies in each stage, and its two barriers."""

    def __init__(self, stages, readers):
        self.holds = [None] * stages
        self.full = [Barrier(1) for _ in range(stages)]
        self.empty = [Barrier(readers) for _ in range(stages)]


class Block:
    def __init__(self, tiles, consumers, q_stages, stages, rng):
        self.tiles, self.consumers, self.rng = tiles, consumers, rng
        self.stages_output = q_stages >= 3
        self.q_stages, self.stages = q_stages, stages
        self.q = [Stages(q_stages, 1) for _ in range(consumers)]
        self.k, self.v = Stages(stages, consumers), Stages(stages, consumers)
        self.notes, self.taken = Stages(NOTES, consumers), Barrier(1)
        self.copies = []

    def load(self, ring, place, what):
        """One coroutine step: waits for the stage, and starts the copy."""
        while not ring.empty[place.stage].ended(place.phase ^ 1):
            yield
        stage = place.stage
        ring.holds[stage] = "under way"

        def land():
            ring.holds[stage] = what
            ring.full[stage].arrive()

        self.copies.append(land)

    def planner(self):
        place, taken = Place(NOTES), Place(1)
        for tile in [*range(len(self.tiles)), None]:
            while not self.notes.empty[place.stage].ended(place.phase ^ 1):
                yield
            self.notes.holds[place.stage] = tile
            self.notes.full[place.stage].arrive()
            place.advance()
            if tile is not None:
                while not self.taken.ended(taken.phase):
                    yield
                taken.advance()

    def producer(self):
        notes, q, k, v = Place(NOTES), Place(self.q_stages), Place(self.stages), Place(self.stages)
        owed = None
        while True:
            while not self.notes.full[notes.stage].ended(notes.phase):
                yield
            tile = self.notes.holds[notes.stage]
            if tile is None:
                break
            for ring in self.q:
                yield from self.load(ring, q, tile)
            q.advance()
            self.taken.arrive()
            notes.advance()
            for step in range(self.tiles[tile][0]):
                yield from self.load(self.k, k, (tile, step))
                k.advance()
                if owed is not None:
                    yield from self.load(self.v, v, owed)
                    v.advance()
                owed = (tile, step)
        if owed is not None:
            yield from self.load(self.v, v, owed)

    def consumer(self, number):
        return Consumer(self, number).run()

    def run(self):
        threads = [self.planner(), self.producer()]
        threads += [self.consumer(number) for number in range(self.consumers)]
        stuck = 0
        while threads:
            if self.copies and self.rng.random() < 0.3:
                self.copies.pop(self.rng.randrange(len(self.copies)))()
                stuck = 0
                continue
            thread = self.rng.choice(threads)
            before = self.state()
            try:
                next(thread)
            except StopIteration:
                threads.remove(thread)
                stuck = 0
                continue
            stuck = 0 if self.copies or self.state() != before else stuck + 1
            assert stuck < 4000, "nobody can go on"

    def state(self):
        rings = [*self.q, self.k, self.v, self.notes]
        barriers = [each for ring in rings for each in (*ring.full, *ring.empty)] + [self.taken]
        return sum(each.phases * 100 + each.came for each in barriers)


class Consumer:
    def __init__(self, block, number):
        self.block, self.number = block, number
        self.q, self.k, self.v = Place(block.q_stages), Place(block.stages), Place(block.stages)
        self.notes = Place(NOTES)
        self.staged_in, self.q_before = None, 0
        self.at, self.place = None, None  # (tile, step) whose weights there are, and its note

    def wait(self, ring, place):
        while not ring.full[place.stage].ended(place.phase):
            yield

    def pass_stage(self, ring, place, expected):
        assert ring.holds[place.stage] == expected, (ring.holds[place.stage], expected)
        ring.empty[place.stage].arrive()
        place.advance()

    def reads_values(self):
        holds = self.block.v.holds[self.v.stage]
        assert holds == self.at, (holds, self.at)

    def release_staged(self):
        if self.staged_in is not None and self.block.stages_output:
            self.block.q[self.number].empty[self.staged_in].arrive()
        self.staged_in = None

    def release_keys(self, expected):
        self.pass_stage(self.block.k, self.k, expected)
        tile, step = expected
        if step + 1 == self.block.tiles[tile][0]:
            if not self.block.stages_output:
                self.block.q[self.number].empty[self.q.stage].arrive()
            self.q.advance()

    def multiplies(self, tile, step):
        """While the product runs its operands stay."""
        for _ in range(2):
            assert self.block.k.holds[self.k.stage] == (tile, step)
            assert self.block.q[self.number].holds[self.q.stage] == tile
            yield

    def write(self, q_stage):
        if self.block.stages_output:
            assert self.block.q[self.number].holds[q_stage] == self.at[0]
        self.staged_in = q_stage
        yield
        self.block.notes.empty[self.place].arrive()

    def end(self):
        self.reads_values()
        self.release_staged()
        yield
        self.pass_stage(self.block.v, self.v, self.at)
        yield from self.write(self.q_before)
        self.release_staged()
        self.at = None

    def go_by(self, tile, place):
        yield from self.wait(self.block.q[self.number], self.q)
        self.block.q[self.number].empty[self.q.stage].arrive()
        self.q.advance()
        for step in range(self.block.tiles[tile][0]):
            yield from self.wait(self.block.k, self.k)
            self.pass_stage(self.block.k, self.k, (tile, step))
            yield from self.wait(self.block.v, self.v)
            self.pass_stage(self.block.v, self.v, (tile, step))
        self.block.notes.empty[place].arrive()

    def step_over(self, tile, place, first):
        yield from self.wait(self.block.q[self.number], self.q)
        yield from self.wait(self.block.k, self.k)
        for step in range(first):
            self.pass_stage(self.block.k, self.k, (tile, step))
            yield from self.wait(self.block.k, self.k)
        if self.at is not None:
            self.reads_values()
            self.release_staged()
        yield from self.multiplies(tile, first)
        q_stage, self.q_before = self.q_before, self.q.stage
        self.release_keys((tile, first))
        yield
        if self.at is not None:
            self.pass_stage(self.block.v, self.v, self.at)
            yield from self.write(q_stage)
        yield from self.wait(self.block.v, self.v)
        for step in range(first):
            self.pass_stage(self.block.v, self.v, (tile, step))
            yield from self.wait(self.block.v, self.v)
        self.at, self.place = (tile, first), place

    def step_on(self):
        tile, step = self.at[0], self.at[1] + 1
        yield from self.wait(self.block.k, self.k)
        self.reads_values()
        yield from self.multiplies(tile, step)
        self.release_keys((tile, step))
        read, holds = self.v.stage, self.at
        self.v.advance()
        yield from self.wait(self.block.v, self.v)
        assert self.block.v.holds[read] == holds
        self.block.v.empty[read].arrive()
        self.at = (tile, step)

    def run(self):
        while True:
            yield from self.wait(self.block.notes, self.notes)
            place = self.notes.stage
            tile = self.block.notes.holds[place]
            if tile is None:
                break
            self.notes.advance()
            steps, first = self.block.tiles[tile]
            if first[self.number] == steps:
                if self.at is not None:
                    yield from self.end()
                yield from self.go_by(tile, place)
                continue
            yield from self.step_over(tile, place, first[self.number])
            while self.at[1] + 1 < steps:
                yield from self.step_on()
        if self.at is not None:
            yield from self.end()


def random_round(seed):
    rng = random.Random(seed)
    consumers = rng.choice((1, 2, 3))
    tiles = []
    for _ in range(rng.randint(1, 9)):
        steps = rng.choice((1, 1, 2, 3, 4, 6))
        first = [
            steps if rng.random() < 0.2 else rng.randint(0, min(steps - 1, 2)) for _ in range(consumers)
        ]
        tiles.append((steps, first))
    q_stages, stages = rng.choice((1, 2, 3)), rng.choice((2, 3))
    try:
        Block(tiles, consumers, q_stages, stages, rng).run()
    except AssertionError as error:
        sys.exit(
            f"round {seed}: {error}; {consumers} consumers, {q_stages} stages of Q, {stages} of K and "
            f"V, tiles (steps, first steps) {tiles}"
        )


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    for seed in range(rounds):
        random_round(seed)
    print(f"{rounds} rounds, none failed")


if __name__ == "__main__":
    main()
