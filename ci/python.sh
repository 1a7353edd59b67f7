#!/usr/bin/env bash
# The Python module: its wheel, types, tests, examples and notebooks.
#
#   ci/python.sh                 all
#   ci/python.sh tests types     only these: check wheel tests types simpy queues notebooks clusters
#
# Needs Python 3.10 or later. Everything else is installed into a venv in target/.
set -euo pipefail
cd "$(dirname "$0")/.."

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
venv=$target/python-venv
python=$venv/bin/python
wheels=$target/wheels
all_steps=(check wheel types tests simpy queues notebooks clusters)

install() {
    "$python" -m pip install --quiet --disable-pip-version-check "$@"
}

step_check() {
    local manifest=crates/python/Cargo.toml
    cargo fmt --manifest-path "$manifest" --check
    PYO3_PYTHON=$python cargo clippy --manifest-path "$manifest" --all-targets -- -D warnings
    "$python" crates/python/generate.py --check
}

# Built with the development profile, because the tests check behaviour, not speed.
step_wheel() {
    install 'maturin>=1.9,<2'
    rm -rf "$wheels"
    "$venv/bin/maturin" build --quiet --profile dev --manifest-path crates/python/Cargo.toml --out "$wheels" \
        --interpreter "$python"
    install --force-reinstall --no-deps "$wheels"/corsair_sim-*-abi3-*.whl
    # As the manual says; what was built just now is not built again.
    PATH="$venv/bin:$PATH" MATURIN_PEP517_ARGS='--profile dev' install --force-reinstall --no-deps --no-build-isolation ./crates/python
}

step_types() {
    install mypy
    (cd crates/python && "$python" -m mypy --strict python/corsair)
    # Runs in another directory, so that the installed module is imported.
    (cd "$target" && "$python" -m mypy.stubtest corsair._corsair)
    "$python" -m mypy --strict crates/python/tests/typed.py
}

step_tests() {
    install pytest pyarrow pandas polars duckdb numpy simpy
    cargo build --bin corsair
    (cd crates/python && CORSAIR=$target/debug/corsair "$python" -m pytest -p no:cacheprovider)
    local module
    for module in corsair corsair.simulation corsair.architecture corsair.sim corsair.sim.core corsair.sim.monitor \
        corsair.sim.replication corsair.sim.resources.container corsair.sim.resources.resource; do
        "$python" -c "import doctest, importlib, sys; sys.exit(doctest.testmod(importlib.import_module('$module')).failed)"
    done
}

# SimPy's examples print the same bytes, and its own tests pass but for those that are listed with reasons.
step_simpy() {
    install simpy pytest pytest-benchmark
    "$python" -B ci/python/simpy_conformance.py examples --seeds 5
    "$python" -B ci/python/simpy_conformance.py suite
}

step_queues() {
    install simpy ciw
    (cd examples/python/queues && "$python" -B compare.py --seeds 1)
    "$python" -B examples/python/messages.py
}

step_notebooks() {
    install nbclient nbformat ipykernel
    "$python" ci/python/notebooks.py examples/python/notebooks/*.ipynb
}

# Several nodes on this machine, of which some are killed.
step_clusters() {
    install ray 'dask[distributed]'
    timeout 300 "$python" -B examples/python/clusters/on_dask.py --kill
    timeout 300 "$python" -B examples/python/clusters/on_ray.py --kill
}

. ci/steps.sh
choose_steps python "$@"
[ -x "$python" ] || python3 -m venv "$venv"
run_steps
