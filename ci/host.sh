#!/usr/bin/env bash
# Whether simulations of hosts repeat, whatever runs beside them.
#
#   ci/host.sh        quick: each test of the crate 10 times, alone and side by side
#   ci/host.sh whole  200 times, also without address randomization, if the system lets it be switched off
#
# Each test runs its seeds on 1, 2 and 4 workers and compares the digests itself; this script compares them over
# processes, which have other addresses, environments and neighbours each time.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=10
[ "${1:-quick}" = whole ] && rounds=200
export CORSAIR_HOST_DIGESTS=1

programs=$(cargo test -p corsair-host --tests --no-run --message-format json |
    sed -n 's/.*"kind":\["test"\].*"executable":"\([^"]*\)".*/\1/p')
if [ -z "$programs" ]; then
    echo "corsair-host has no test programs" >&2
    exit 1
fi
wrapper=()
for program in $programs; do
    for round in $(seq "$rounds"); do
        if [ "${1:-quick}" = whole ] && [ $((round % 2)) = 0 ] && setarch -R true 2>/dev/null; then
            wrapper=(setarch -R)
        else
            wrapper=()
        fi
        # Another environment each time, and 1, 2 or 4 tests side by side.
        log=$(env "ROUND_$round=$(head -c $((round * 7)) /dev/zero | tr '\0' x)" ${wrapper[@]+"${wrapper[@]}"} \
            "$program" --nocapture --test-threads $((1 << round % 3)) 2>&1) || {
            echo "$log"
            exit 1
        }
        grep -o 'digest of .*' <<<"$log" | sort
    done | sort | uniq -c | awk -v rounds="$rounds" -v program="$(basename "$program")" '
        $1 % rounds { wrong = 1; print program ": differs: " $0 }
        END { print program ": " NR " digests, " (wrong ? "DIFFERENT" : "each the same in " rounds " rounds"); exit wrong }'
done
