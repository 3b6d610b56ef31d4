import collections, hypothesis, hypothesis.strategies as st, jax, numpy as np, time
from snnjax import _targets
from tests.fuzz import calls, values
import jax.numpy as jnp
from tests.ops.random_networks import random_form, arguments, runner
from tests.ops.common import with_gradient
from tests.cases import *

def known():
    found = []
    for seed in range(14):
        form = random_form(np.random.default_rng(seed))
        form = form._replace(batch=min(form.batch, 17), steps=min(form.steps, 3))
        args = arguments(form, np.random.default_rng(seed))
        for f in (with_gradient(runner(form, "cpu")), runner(form, "cpu")):
            found += calls.calls_of(f, *args)
    for case in CASES:
        if case.name in ("spike_matmul", "select_spikes", "lif_step"):
            found += calls.calls_of(with_gradient(case.function), *case.arguments(np.random.default_rng(0)))
    return found

def run(examples, log):
    t = time.time()
    all_calls = known()
    print(len(all_calls), set(c.target for c in all_calls), time.time() - t, flush=True)
    counts = collections.Counter()
    messages = collections.Counter()
    @hypothesis.settings(max_examples=examples, deadline=None, suppress_health_check=list(hypothesis.HealthCheck), database=None)
    @hypothesis.given(calls.mutated(all_calls), st.integers(0, 2**32 - 1), st.sampled_from(values.KINDS))
    def one(mutated, seed, kind):
        call, count = mutated
        if log: log.write_text(repr((call, seed, kind)))
        rng = np.random.default_rng(seed)
        counts["all"] += 1
        if counts["all"] % 300 == 0: jax.clear_caches()
        try:
            out = calls.execute(call, rng, lambda: kind if rng.random() < 0.7 else "plain")
        except (jax.errors.JaxRuntimeError, ValueError, TypeError) as e:
            counts["error"] += 1
            messages[str(e)[:60]] += 1
            assert count > 0, e
            return
        counts["fine", count] += 1
        assert not any(values.is_unwritten(o) for o in out), call
    one()
    print(counts, time.time() - t)
    for m, c in messages.most_common(60): print(c, m)
