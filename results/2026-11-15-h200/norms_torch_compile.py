"""torch.compile's kernels at few rows, by the bench's protocol: cold L2 (twice its size written, then as much other
memory read, default policy), the stream held while everything is queued, events around ONE plain call (event_us) and
around one replayed graph of it (graph_us); kernel_us is the sum of the kernels' own durations by torch.profiler (CUPTI),
each sample after the same flush. Every tensor lies in 32 MiB of its own, because the bench's lie in allocations of
their own too, and translating addresses counts at these sizes. One process a shape compiles beside the others; they measure one at a time."""
import tempfile
import fcntl, glob, json, os, statistics, sys, time

SHAPES = [(m, n) for n in (4096, 8192) for m in (1, 16, 128, 2048)]
OUT, START = os.environ["OUT"], float(os.environ["T0"])
DEADLINE = START + float(os.environ.get("TORCH_SECONDS", "45"))


def worker(index):
    import torch
    import torch.nn.functional as F
    from torch.profiler import ProfilerActivity, profile
    dev = "cuda"
    m, n = SHAPES[index]
    torch.manual_seed(index)

    def rmsnorm(x, w):
        f = x.float()
        return (f * torch.rsqrt(f.pow(2).mean(-1, keepdim=True) + 1e-6) * w.float()).to(x.dtype)

    def layernorm(x, w, b):
        return F.layer_norm(x, x.shape[-1:], w, b, 1e-5)

    def softmax(x):
        return torch.softmax(x, -1)

    def cross_entropy(x, t):
        return F.cross_entropy(x.float(), t, reduction="none")

    def fused_add(x, r, w):
        s = (x.float() + r.float()).to(x.dtype)
        f = s.float()
        r.copy_(s)
        x.copy_((f * torch.rsqrt(f.pow(2).mean(-1, keepdim=True) + 1e-6) * w.float()).to(x.dtype))

    def alone(tensor):
        room = torch.empty(32 << 20, dtype=torch.uint8, device=dev)
        place = room[: tensor.numel() * tensor.element_size()].view(tensor.dtype).view(tensor.shape)
        return place.copy_(tensor)

    x = alone(torch.rand(m, n, device=dev).mul_(2).sub_(1).bfloat16())
    r = alone(torch.rand_like(x))
    w = alone(torch.rand(n, device=dev).bfloat16())
    b = alone(torch.rand_like(w))
    t = alone(torch.randint(0, n, (m,), device=dev))
    cases = dict(rmsnorm_fwd=(rmsnorm, (x, w)), softmax_fwd=(softmax, (x,)), cross_entropy_fwd=(cross_entropy, (x, t)),
                 layernorm_fwd=(layernorm, (x, w, b)), fused_add_rmsnorm=(fused_add, (alone(x), r, w)))
    ready = {}
    for name, (fn, args) in cases.items():
        try:
            call = torch.compile(fn, dynamic=False)
            for _ in range(3):
                call(*args)
            ready[name] = (call, args)
        except Exception as error:
            print(name, m, n, "failed:", repr(error)[:300], flush=True)
        if time.time() > DEADLINE - 15:
            break
    torch.cuda.synchronize()
    open(f"{tempfile.gettempdir()}/torch_small.{os.environ['TAG']}.{index}", "w").close()
    while len(glob.glob(f"{tempfile.gettempdir()}/torch_small.{os.environ['TAG']}.*[0-9]")) < len(SHAPES) and time.time() < DEADLINE - 14:
        time.sleep(0.1)
    lock = open(f"{tempfile.gettempdir()}/torch_small.{os.environ['TAG']}.lock", "w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    flush = torch.zeros(120 << 18, device=dev)
    other = torch.zeros(120 << 18, device=dev)
    first, last = [torch.cuda.Event(enable_timing=True) for _ in range(2)]

    def cool(i):
        flush.fill_(float(i))
        other.sum()

    def samples(run, count=25):
        times = []
        for i in range(count):
            cool(i)
            torch.cuda._sleep(300000)
            first.record()
            run()
            last.record()
            torch.cuda.synchronize()
            times.append(first.elapsed_time(last) * 1e3)
        return statistics.median(times)

    nothing = samples(lambda: None)
    rows = []
    for name, (call, args) in ready.items():
        if time.time() > DEADLINE:
            break
        row = dict(op=name, rows=m, columns=n, events_alone_us=nothing, event_us=samples(lambda: call(*args)))
        rows.append(row)
        try:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                call(*args)
            row["graph_us"] = samples(graph.replay)
        except Exception as error:
            row["graph_error"] = repr(error)[:200]
        if time.time() > DEADLINE:
            break
        count = 20
        with profile(activities=[ProfilerActivity.CUDA]) as trace:
            for i in range(count):
                cool(i)
                call(*args)
            torch.cuda.synchronize()
        durations = {}
        for event in trace.events():
            if "triton" in event.name:
                durations.setdefault(event.name, []).append(event.device_time if hasattr(event, "device_time") else event.cuda_time)
        row["kernels"] = {k: dict(count=len(v) / count, median_us=statistics.median(v)) for k, v in durations.items()}
        row["kernel_us"] = sum(len(v) / count * statistics.median(v) for v in durations.values())
        print(row, flush=True)
    json.dump(rows, open(f"{OUT}/torch_{m}x{n}.json", "w"))
    fcntl.flock(lock, fcntl.LOCK_UN)
    print(m, n, "done after", time.time() - START, "s", flush=True)
    os._exit(0)


if len(sys.argv) > 1:
    worker(int(sys.argv[1]))
else:
    import subprocess
    os.environ["TAG"] = str(os.getpid())
    processes = [subprocess.Popen([sys.executable, __file__, str(i)]) for i in range(len(SHAPES))]
    for process in processes:
        try:
            process.wait(max(1, DEADLINE + 5 - time.time()))
        except subprocess.TimeoutExpired:
            process.kill()
    rows = [row for path in sorted(glob.glob(f"{OUT}/torch_*x*.json")) for row in json.load(open(path))]
    json.dump(dict(protocol=__doc__, rows=rows), open(f"{OUT}/torch_small.json", "w"), indent=1)
