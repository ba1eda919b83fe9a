"""Kernels of torch.compile and ours at few rows, in one process, by the bench's protocol: cold L2 (twice its size
written, then as much other memory read, default policy). kernel_us and ours_kernel_us are medians of the kernels' own
durations by torch.profiler (CUPTI).

Every sample has tensors of its own that nobody has read since they were written, each in 2 MiB or more, as the bench
rotates through sets of buffers. That decides the comparison: torch.compile's kernels load rows and weights with
`evict_last`, and such lines outlive a flush made of ordinary accesses. same_tensors_kernel_us is the time with the same
tensors in every sample, where these kernels find part of their inputs in the L2 after all.

One process a shape compiles beside the others; they measure one at a time. Ours, from the repository's root:

    nvcc -std=c++17 -O3 -arch=sm_90a -shared -Xcompiler -fPIC -I. Kernels/norms/*_forward.cu \
        Kernels/norms/fused_add_rmsnorm.cu Kernels/norms/config.cc norms_torch_compile.cc -o ours.so
    OUT=. OURS=./ours.so python3 norms_torch_compile.py

GO names a file that the measuring waits for.
"""
import ctypes, fcntl, glob, json, os, statistics, sys, tempfile, time

SHAPES = [(m, n) for n in (4096, 8192) for m in (1, 16, 128, 2048)]
OPS = ("rmsnorm_fwd", "softmax_fwd", "cross_entropy_fwd", "layernorm_fwd", "fused_add_rmsnorm")
SAMPLES = 20
OUT = os.environ["OUT"]
START = float(os.environ.setdefault("T0", str(time.time())))
DEADLINE = START + float(os.environ.get("TORCH_SECONDS", "45"))
ROOM = tempfile.gettempdir() + "/norms_torch_compile."


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

    functions = dict(rmsnorm_fwd=(rmsnorm, "xw"), softmax_fwd=(softmax, "x"), cross_entropy_fwd=(cross_entropy, "xt"),
                     layernorm_fwd=(layernorm, "xwb"), fused_add_rmsnorm=(fused_add, "xrw"))

    def alone(tensor):
        size = tensor.numel() * tensor.element_size()
        room = torch.empty(max(2 << 20, size), dtype=torch.uint8, device=dev)
        return room[:size].view(tensor.dtype).view(tensor.shape).copy_(tensor)

    def tensors():
        x = torch.rand(m, n, device=dev).mul_(2).sub_(1).bfloat16()
        w = torch.rand(n, device=dev).bfloat16()
        return dict(x=alone(x), r=alone(torch.rand_like(x)), w=alone(w), b=alone(torch.rand_like(w)),
                    t=alone(torch.randint(0, n, (m,), device=dev)), out=alone(x),
                    loss=alone(torch.zeros(m, device=dev)), lse=alone(torch.zeros(m, device=dev)))

    ready = {}
    example = tensors()
    for name, (fn, names) in functions.items():
        try:
            compiled = torch.compile(fn, dynamic=False)
            for _ in range(3):
                compiled(*[example[key] for key in names])
            ready[name] = compiled
        except Exception as error:
            print(name, m, n, "failed:", repr(error)[:300], flush=True)
        if time.time() > DEADLINE - 15:
            break
    torch.cuda.synchronize()
    open(f"{ROOM}{os.environ['TAG']}.{index}", "w").close()
    while len(glob.glob(f"{ROOM}{os.environ['TAG']}.*[0-9]")) < len(SHAPES) and time.time() < DEADLINE - 14:
        time.sleep(0.1)
    while "GO" in os.environ and not os.path.exists(os.environ["GO"]) and time.time() < DEADLINE - 14:
        time.sleep(0.1)
    library = ctypes.CDLL(os.environ["OURS"]) if "OURS" in os.environ else None
    lock = open(f"{ROOM}{os.environ['TAG']}.lock", "w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    flush = torch.zeros(120 << 18, device=dev)
    other = torch.zeros(120 << 18, device=dev)

    def cool(i):
        flush.fill_(float(i))
        other.sum()

    def torch_call(name, compiled):
        names = functions[name][1]
        return lambda set_: compiled(*[set_[key] for key in names])

    def our_call(name):
        number = OPS.index(name)
        stream = torch.cuda.current_stream().cuda_stream

        def call(set_):
            address = [ctypes.c_void_p(set_[key].data_ptr()) for key in ("x", "w", "b", "r", "t", "out", "loss", "lse")]
            if library.launch_op(number, *address, ctypes.c_longlong(m), n, ctypes.c_void_p(stream)):
                raise RuntimeError("ours refused")
        return call

    def kernels(call, sets):
        with profile(activities=[ProfilerActivity.CUDA]) as trace:
            for i in range(SAMPLES):
                cool(i)
                call(sets[i % len(sets)])
            torch.cuda.synchronize()
        durations = {}
        for event in trace.events():
            if "triton" in event.name or "norms::" in event.name:
                durations.setdefault(event.name[:120], []).append(event.device_time)
        return sum(len(v) / SAMPLES * statistics.median(v) for v in durations.values()), durations

    rows = []
    for name, compiled in ready.items():
        if time.time() > DEADLINE:
            break
        row = dict(op=name, rows=m, columns=n)
        for prefix, call in (("", torch_call(name, compiled)), ("ours_", our_call(name) if library else None)):
            if call is None:
                continue
            call(example)
            sets = [tensors() for _ in range(SAMPLES)]
            row[prefix + "kernel_us"], durations = kernels(call, sets)
            row[prefix + "kernels"] = {k: dict(count=len(v) / SAMPLES, median_us=statistics.median(v), min_us=min(v),
                                               max_us=max(v)) for k, v in durations.items()}
            row[prefix + "same_tensors_kernel_us"] = kernels(call, sets[:1])[0]
        rows.append(row)
        print({k: v for k, v in row.items() if not k.endswith("kernels")}, flush=True)
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
    with open(f"{OUT}/norms_torch_compile.json", "w") as out:
        print(json.dumps(dict(protocol=__doc__, rows=rows), indent=1), file=out)
