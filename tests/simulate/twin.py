"""The simulator once more: objects, lists and token by token, as slowly as one likes.

Nothing here is shared with the kernels but the rows of the cost table and the settings. Content is
compared token by token, blocks are objects, sums run over all sequences in every step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ledgerkit.kernels import columns as c

TICK = 1e12
MASK = (1 << 64) - 1


def ticks(seconds):
    return round(seconds * TICK)


def mix(state, value):
    z = (state ^ (value * 0x9E3779B97F4A7C15 & MASK)) + 0x9E3779B97F4A7C15 & MASK
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def uniform(seed, a, b):
    return (mix(mix(mix(seed, 1), a), b) >> 11) / 9007199254740992.0


@dataclass(eq=False)
class Block:
    references: int = 0
    content: tuple | None = None


@dataclass(eq=False)
class Sequence:
    number: int
    prompt: int
    output: int
    tokens: list
    arrived: int
    started: int | None = None
    first: int | None = None
    finished: int | None = None
    hit: int = 0
    preempted: int = 0
    replica: int = 0
    emitted: int = 0
    reached: int = 0
    kept: tuple | None = None
    done: int = 0
    need: int = 0
    now: int = 0
    pad: int = 0
    blocks: list = field(default_factory=list)
    extra: list = field(default_factory=list)
    silent: bool = False
    rejected: bool = False
    gaps: list = field(default_factory=list)
    last: int = 0


class Replica:
    def __init__(self, blocks):
        self.clock, self.running, self.queue = 0, [], []
        self.free = [Block() for _ in range(blocks)]
        self.cached = {}
        self.steps = self.peak = 0

    def take(self):
        block = self.free.pop(0)
        if block.content is not None:
            del self.cached[block.content]
            block.content = None
        block.references = 1
        return block

    def release(self, block):
        block.references -= 1
        if block.references == 0:
            self.free.append(block)


class Twin:
    """One run; ``how`` is a filled scheduler, ``plan`` the cache plan."""

    def __init__(self, table, how, plan, arrivals):
        self.table, self.how, self.plan, self.arrivals = table, how, plan, arrivals
        ranks = table.deployment.dp_attention
        self.cap = how.max_num_batched_tokens
        self.budget = self.cap * ranks
        self.seats = min(how.max_num_seqs * ranks, arrivals.requests, plan.blocks)
        longest = int((arrivals.prompt_tokens + arrivals.output_tokens).max())
        self.limit = table.deployment.max_model_len or table.model.max_position_embeddings
        self.fixed = None
        if how.cache_allocation == "contiguous":
            self.fixed = how.reserve_tokens or min(longest, self.limit)
        self.replicas = [Replica(plan.blocks) for _ in range(how.replicas)]
        self.parts = {"recompute": 0, "padding": 0, "draft": 0, "swap": 0, "idle": 0, "launch": 0}
        self.turn = 0
        self.sequences = [self._sequence(i) for i in range(arrivals.requests)]
        self.coming = sorted(
            (ticks(at), i) for i, at in enumerate(arrivals.arrival_s) if math.isfinite(at)
        )

    def _sequence(self, i):
        a = self.arrivals
        tokens = []
        for j in range(a.segment_start[i], a.segment_start[i + 1]):
            tokens += [(int(a.segment_ids[j]), k) for k in range(a.segment_tokens[j])]
        return Sequence(i, int(a.prompt_tokens[i]), int(a.output_tokens[i]), tokens, 0)

    # prices ----------------------------------------------------------------------------------

    def row(self, phase, i, tokens, sequences, group, sampled, contexts, beside):
        """Seconds of one operation; contexts are (new, before) of each sequence, and a scale."""
        row = self.table.ops["mid"][phase][i]
        pieces, scale = contexts
        context = scale * sum(n + p for n, p in pieces)
        count = {0: tokens, 1: group, 2: sampled, 3: context}[int(row[c.SCOPE])]
        if count == 0:
            return 0.0, 0.0
        window, top = row[c.WINDOW], row[c.TOPK] * row[c.RATIO]
        flop = row[c.F_TOKEN] * count
        moved = row[c.R_TOKEN] * count + row[c.R_SEQUENCE] * sequences
        if row[c.F_PAIR]:
            pairs = sum(min(p + k + 1, window, top) for n, p in pieces for k in range(n))
            flop += row[c.F_PAIR] * scale * pairs / row[c.RATIO]
        if row[c.R_KV]:
            kept = sum(min(min(p, window - 1) + n, n * top) for n, p in pieces)
            moved += row[c.R_KV] * scale * kept / row[c.RATIO]
        if not beside:
            moved += row[c.R_STEP]
        if row[c.R_EXPERT]:

            def hit(many):
                return row[c.EXPERTS] * (1 - math.exp(many * row[c.LOG_MISS]))

            moved += row[c.R_EXPERT] * (hit(group + beside) - (hit(beside) if beside else 0.0))
        moved += row[c.W_TOKEN] * count + row[c.W_SEQUENCE] * sequences
        return (row[c.COUNT] * flop * row[c.S_PER_FLOP], row[c.COUNT] * moved * row[c.S_PER_BYTE])

    def spread(self, n):
        layout = self.table.deployment
        per_rank = math.ceil(n / layout.dp_attention)
        batches = min(layout.pp, per_rank)
        return math.ceil(per_rank / batches), math.ceil(n / batches), batches

    def decode_rows(self, contexts, n, q=1):
        """Ticks of each row for n sequences, of which ``contexts`` tells the mean context."""
        mine, group, _ = self.spread(n)
        pieces = ([(q, x - 1) for x in contexts], mine / max(1, len(contexts)))
        found = []
        for i in range(len(self.table.operations)):
            a, b = self.row(1, i, q * mine, mine, q * group, q * mine, pieces, 0.0)
            found.append((ticks(max(a, b)), max(a, b)))
        return found

    def message(self, decode, decode_group, prompt, prompt_group, work):
        """Ticks of communication."""
        seconds = []
        for before, row in zip(*(self.table.link_rows["mid"][i] for i in (0, 1)), strict=True):
            size = row[c.L_TOKEN_BYTES] * decode + before[c.L_TOKEN_BYTES] * prompt
            ranks, per_byte = row[c.L_RANKS], row[c.L_S_PER_BYTE]
            if row[c.L_KIND] == c.KIND_ALL_REDUCE:
                one = (ranks - 1) * size * per_byte
                two = row[c.L_ALPHA_TWO_SHOT] + 2 * (ranks - 1) / ranks * size * per_byte
                once = row[c.L_ALPHA] + min(one, two)
            elif row[c.L_KIND] == c.KIND_EXCHANGE:
                sent = min(size, row[c.L_GATHER_BYTES] * (decode_group + prompt_group))
                once = row[c.L_ALPHA] + row[c.L_ALPHA_TWO_SHOT] + sent * per_byte
            else:
                once = row[c.L_ALPHA] + size * per_byte
            seconds.append(row[c.L_COUNT] * once)
        whole, hidden = sum(seconds), self.table.profile.overlap
        exposed = 1 - hidden * min(work, whole) / whole if whole and hidden else 1.0
        return sum(ticks(s * exposed) for s in seconds)

    def price(self, useful, slots, chunks):
        """Ticks of a step: contexts of useful sequences and of slots; (n, before, again, pad)."""
        table, gamma = self.table, self.how.draft_tokens
        layout, scalars = table.deployment, table.scalars["mid"]
        share_of = [op.stage_count / op.count for op in table.operations]
        mine = group = total = 0
        work = busiest = 0.0
        batches, captured = 1, True
        if slots:
            n = len(useful)
            mine, group, batches = self.spread(n)
            rows = self.decode_rows(useful, n)
            plain = total = sum(t for t, _ in rows)
            work = sum(s for _, s in rows)
            busiest = sum(s * f for (_, s), f in zip(rows, share_of, strict=True))
            runs = len(slots)
            if not chunks:
                runs = self.runs_as(len(slots))
                captured, runs = runs > 0, max(runs, len(slots))
            moving = [op.decode.device.depends_on_context for op in table.operations]
            padded = sum(
                t for (t, _), m in zip(self.decode_rows(useful, runs), moving, strict=True)
                if not m
            ) + sum(
                t
                for (t, _), m in zip(
                    self.decode_rows(slots, len(slots)) if len(slots) > n else rows, moving,
                    strict=True,
                )
                if m
            )  # fmt: skip
            self.parts["padding"] += padded - plain
            total = padded
            if gamma:
                verify = sum(t for t, _ in self.decode_rows(useful, n, 1 + gamma))
                more = verify - plain + int(gamma * plain / table.model.num_hidden_layers)
                self.parts["draft"] += more
                total += more
        prompt = prompt_group = part = 0.0
        if chunks:
            tokens = sum(n + pad for n, _, _, pad in chunks)
            split = min(layout.pp, len(chunks))
            part = max(
                1 / (layout.dp_attention * split), max(n + pad for n, _, _, pad in chunks) / tokens
            )
            prompt, prompt_group = tokens * part, tokens / split
            sampled = sum(s for *_, s in self.sampled)
            pieces = ([(n + pad, before) for n, before, _, pad in chunks], part)
            for i, f in enumerate(share_of):
                a, b = self.row(
                    0,
                    i,
                    prompt,
                    part * len(chunks),
                    prompt_group,
                    part * sampled,
                    pieces,
                    (1 + gamma) * group,
                )
                t = ticks(max(a, b))
                again = int(t * (sum(x for _, _, x, _ in chunks) / tokens))
                self.parts["recompute"] += again
                self.parts["padding"] += int((t) * (sum(x for *_, x in chunks) / tokens))
                total += t
                work += max(a, b)
                busiest += max(a, b) * f
            batches = max(batches, split)
        wires = self.message(mine, group, prompt, prompt_group, work)
        total += wires
        if gamma and slots:
            q = 1 + gamma
            more = self.message(q * mine, q * group, prompt, prompt_group, work) - wires
            self.parts["draft"] += more
            total += more
        total += ticks(max(0.0, batches * busiest - work))
        phase = 1 if useful else 0
        floor = ticks(scalars[phase, c.KERNELS] * scalars[0, c.HOST_PREFILL_KERNEL_S])
        host = ticks(
            scalars[phase, c.HOST_STEP_S]
            + scalars[phase, c.HOST_SEQUENCE_S] * (mine + len(chunks) * part)
        )
        if useful and captured:
            launch = ticks(scalars[phase, c.KERNELS] * scalars[phase, c.KERNEL_S])
            if chunks:
                launch = max(launch, floor - total - host)
        else:
            launch = max(0, floor - total)
        self.parts["launch"] += launch
        return total + launch + host

    def runs_as(self, n):
        profile, layout = self.table.profile, self.table.deployment
        if not profile.graph_capture_sizes:
            return 0 if profile.batching == "static" else n
        mine, _, batches = self.spread(n)
        larger = [size for size in profile.graph_capture_sizes if size >= mine]
        if not larger or (larger[0] != mine and not self.how.graph_padding):
            return 0
        return n if larger[0] == mine else larger[0] * layout.dp_attention * batches

    # cache -----------------------------------------------------------------------------------

    def content(self, q):
        return q.tokens + [(int(self.arrivals.answer_ids[q.number]), k) for k in range(q.emitted)]

    def matched(self, replica, q, total):
        if not self.how.prefix_cache:
            return []
        size, tokens, found = self.plan.block_tokens, self.content(q), []
        while (len(found) + 1) * size < total:
            key = tuple(tokens[: (len(found) + 1) * size])
            if key not in replica.cached:
                break
            found.append(replica.cached[key])
        return found

    def blocks_for(self, tokens):
        return math.ceil(tokens / self.plan.block_tokens)

    def reserved(self, q):
        if self.fixed is not None:
            return self.fixed
        if self.how.preemption == "none":
            return q.prompt + q.output - 1 + self.how.draft_tokens
        return 0

    def publish(self, replica, q, computed):
        if not self.how.prefix_cache or q.silent:
            return
        size = self.plan.block_tokens
        tokens = self.content(q)
        if q.done >= q.need and computed > len(tokens):
            tokens.append(None)
        for i in range(computed // size):
            key = tuple(tokens[: (i + 1) * size])
            if q.blocks[i].content is None and key not in replica.cached:
                q.blocks[i].content = key
                replica.cached[key] = q.blocks[i]

    def leave(self, replica, q):
        for block in [*reversed(q.blocks), *reversed(q.extra)]:
            replica.release(block)
        q.blocks, q.extra = [], []

    def preempt(self, replica):
        q = replica.running.pop()
        took = 0
        if self.how.preemption == "swap":
            q.kept = (q.done, q.need)
            took = self.moved(q.done)
        q.reached = max(q.reached, q.done)
        q.preempted += 1
        self.leave(replica, q)
        replica.queue.insert(0, q)
        return q, took

    def moved(self, tokens):
        rate = self.table.hardware.pcie_bytes_per_s
        took = int(tokens * (self.plan.token_bytes / rate * TICK))
        self.parts["swap"] += took
        return took

    # schedule --------------------------------------------------------------------------------

    def schedule(self, replica, budget, *, prompts, decodes):
        gamma, took, hit_wall, i = self.how.draft_tokens, 0, False, 0
        while i < len(replica.running):
            q = replica.running[i]
            i += 1
            want = 0
            if q.done < q.need:
                want = min(q.need - q.done, budget, self.cap) if prompts else 0
            elif decodes and budget > gamma:
                want = 1 + gamma
            if not want:
                continue
            lacking = self.blocks_for(q.done + want) - len(q.blocks)
            while lacking > len(replica.free):
                victim, more = self.preempt(replica)
                took += more
                hit_wall = True
                if victim is q:
                    return budget, True, took
            q.blocks += [replica.take() for _ in range(max(0, lacking))]
            q.now = want
            budget -= want
            if q.done < q.need:
                self.chunk(q, want)
            else:
                self.useful.append(q.done + 1)
            self.publish(replica, q, q.done + (want if q.done < q.need else 1))
        return budget, hit_wall, took

    def chunk(self, q, want):
        again = max(0, min(q.done + want, q.reached) - q.done)
        self.chunks.append((want, q.done, again, q.pad))
        self.sampled.append((q.number, int(q.done + want == q.need)))

    def admit(self, replica, budget):
        took = 0
        while replica.queue and budget > 0 and len(replica.running) < self.seats:
            q = replica.queue[0]
            back = q.kept is not None and q.kept[0] > 0
            if back:
                hits, (done, need) = [], q.kept
            else:
                need = q.prompt + q.emitted
                hits = self.matched(replica, q, need)
                done = len(hits) * self.plan.block_tokens
            want = min(max(0, need - done), budget, self.cap)
            if not self.how.chunked_prefill and want < need - done and not q.emitted:
                break
            most = max(done + max(want, 1), self.reserved(q))
            lacking = self.blocks_for(most) - len(hits) + self.plan.extra_blocks
            if lacking > len(replica.free) - sum(b.references == 0 for b in hits):
                break
            replica.running.append(replica.queue.pop(0))
            for block in hits:
                if block.references == 0:
                    replica.free.remove(block)
                block.references += 1
            q.extra = [replica.take() for _ in range(self.plan.extra_blocks)]
            q.blocks = hits + [replica.take() for _ in range(self.blocks_for(most) - len(hits))]
            q.done, q.need, q.now, q.silent = done, need, want, back
            if q.started is None:
                q.started, q.hit = replica.clock, done
            if back:
                took += self.moved(done)
                q.kept = None
            if want:
                budget -= want
                self.chunk(q, want)
                self.publish(replica, q, done + want)
        return took

    def gather(self, replica):
        if replica.running:
            for q in replica.running:
                context = q.pad + q.done + 1
                self.slots.append(context)
                q.now = int(q.emitted < q.output)
                if q.now:
                    self.useful.append(context)
            return
        chosen = replica.running
        while replica.queue and len(chosen) < self.seats:
            prompt = max(q.prompt for q in [*chosen, replica.queue[0]])
            answer = max(q.output for q in [*chosen, replica.queue[0]])
            most = max(prompt + answer - 1, self.fixed or 0)
            each = self.blocks_for(most) + self.plan.extra_blocks
            if chosen and (len(chosen) + 1) * each > self.plan.blocks:
                break
            chosen.append(replica.queue.pop(0))
        prompt = max(q.prompt for q in chosen)
        answer = max(q.output for q in chosen)
        each = self.blocks_for(max(prompt + answer - 1, self.fixed or 0)) + self.plan.extra_blocks
        for q in chosen:
            q.done, q.need, q.now, q.pad, q.started = 0, q.prompt, q.prompt, prompt - q.prompt, (
                replica.clock
            )  # fmt: skip
            q.blocks = [replica.take() for _ in range(each)]
            self.chunk(q, q.prompt)

    # time ------------------------------------------------------------------------------------

    def step(self, replica):
        self.useful, self.slots, self.chunks, self.sampled = [], [], [], []
        static, took = self.how.batching == "static", 0
        if static:
            self.gather(replica)
        else:
            mixed = self.how.mixed_prefill
            budget, full, took = self.schedule(replica, self.budget, prompts=True, decodes=mixed)
            if not full:
                took += self.admit(replica, budget)
            if not mixed and not self.chunks:
                _, _, more = self.schedule(replica, self.budget, prompts=False, decodes=True)
                took += more
            self.slots = self.useful
        if self.slots or self.chunks:
            took += self.price(self.useful, self.slots, self.chunks)
        replica.peak = max(replica.peak, self.plan.blocks - len(replica.free))
        replica.clock += took
        replica.steps += 1
        for q in list(replica.running):
            self.emit(replica, q, static)
        if static and all(q.finished is not None for q in replica.running):
            for q in replica.running:
                self.leave(replica, q)
            replica.running = []

    def emit(self, replica, q, static):
        now, q.now = q.now, 0
        if not now:
            q.done += int(static)
            return
        count = 1
        if q.done < q.need:
            q.done += now
            count = int(q.done == q.need)
        else:
            gamma, alpha = self.how.draft_tokens, self.how.acceptance
            while count <= gamma and uniform(self.how.seed, q.number, q.emitted + count) < alpha:
                count += 1
            count = min(count, q.output - q.emitted)
            q.done += count
        if not count:
            return
        if q.first is None:
            q.first = replica.clock
        else:
            q.gaps.append(replica.clock - q.last)
        q.last = replica.clock
        q.emitted += count
        if q.emitted == q.output:
            q.finished = replica.clock
            self.follow(q, replica.clock)
            if not static:
                replica.running.remove(q)
                self.leave(replica, q)

    def follow(self, q, at):
        for i, before in enumerate(self.arrivals.predecessor):
            if before == q.number:
                gap = ticks(self.arrivals.gap_s[i]) + ticks(self.how.request_path_s)
                self.coming.append((at + gap, i))
                self.coming.sort()

    def arrive(self, at, q):
        q.arrived = at
        size = self.plan.block_tokens

        def load(replica):
            return len(replica.running) + len(replica.queue)

        if self.how.router == "round_robin":
            replica = self.replicas[self.turn % len(self.replicas)]
            self.turn += 1
        elif self.how.router == "least_loaded":
            replica = min(self.replicas, key=load)
        else:
            replica = min(
                self.replicas, key=lambda r: (-len(self.matched(r, q, q.prompt)), load(r))
            )
        q.replica = self.replicas.index(replica)
        most = max(q.prompt + q.output - 1 + self.how.draft_tokens, self.reserved(q))
        static = self.how.batching == "static"
        q.rejected = (
            q.prompt + q.output > self.limit
            or (not self.how.chunked_prefill and not static and q.prompt > self.cap)
            or math.ceil(most / size) + self.plan.extra_blocks > self.plan.blocks
        )
        if q.rejected:
            self.follow(q, at)
            return
        if load(replica) == 0 and at > replica.clock:
            self.parts["idle"] += at - replica.clock
            replica.clock = at
        replica.queue.append(q)

    def run(self):
        while True:
            busy = [r for r in self.replicas if r.running or r.queue]
            soonest = min(busy, key=lambda r: r.clock) if busy else None
            if self.coming and (soonest is None or self.coming[0][0] <= soonest.clock):
                at, i = self.coming.pop(0)
                self.arrive(at, self.sequences[i])
            elif soonest is None:
                return self
            else:
                self.step(soonest)
