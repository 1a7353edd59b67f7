#!/usr/bin/env bash
# The tests of crates/observe that need real systems: the library and the command write flows to a
# Kafka broker and a graph to a Neo4j database, both started here on loopback, and what has arrived
# is read back and counted.
#
#   ci/observe.sh                 both
#   ci/observe.sh kafka           only Kafka
#   ci/observe.sh neo4j           only Neo4j
#
# Needs Java 17 and Maven, which fetches the two (about 150 MB, once, into target/observe); without
# them it says so and does nothing. Takes about a minute with everything fetched and built, of which
# the tests are a few seconds; fetching takes about another.
set -euo pipefail
cd "$(dirname "$0")/.."

neo4j_version=5.26.30
neo4j_port="${CORSAIR_NEO4J_PORT:-17474}"

for program in java mvn; do
    if ! command -v "$program" >/dev/null; then
        echo "left out: Kafka and Neo4j, because there is no $program"
        exit 0
    fi
done

work=$(mktemp -d)
started=()
# Ends what was started here, and nothing else.
stop() {
    for pid in "${started[@]}"; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    rm -rf "$work"
}
trap stop EXIT
. ci/kafka.sh

start_neo4j() {
    fetch neo4j org.neo4j.test neo4j-harness "$neo4j_version"
    # Its input stays open as long as this script lives.
    mkfifo "$work/neo4j.input"
    java -Xmx512m --add-opens java.base/java.nio=ALL-UNNAMED \
        --add-opens java.base/java.lang=ALL-UNNAMED --add-opens java.base/sun.nio.ch=ALL-UNNAMED \
        -cp "$libraries/*" ci/observe/Neo4jServer.java "$neo4j_port" \
        <"$work/neo4j.input" >"$work/neo4j.log" 2>&1 &
    local pid=$!
    started+=("$pid")
    exec 4>"$work/neo4j.input"
    await Neo4j "$pid" "$work/neo4j.log" grep -q "^ready at" "$work/neo4j.log"
}

# One after the other, because they count what is there.
tests() {
    cargo test -p corsair-observe --features kafka --test observe -- \
        --ignored --nocapture --test-threads=1 "$@"
}

wanted=("$@")
if [ ${#wanted[@]} -eq 0 ]; then
    wanted=(kafka neo4j)
fi
# What takes longest goes first, while nothing else runs.
cargo test -p corsair-observe --features kafka --test observe --no-run
cargo build -p corsair-cli
target=$(cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
export CORSAIR="$target/debug/corsair"
for system in "${wanted[@]}"; do
    case "$system" in
    kafka)
        start_kafka
        tests real_kafka::spans_are_in_the_topic
        tests real_kafka::the_command
        # These two end the broker.
        tests real_kafka::a_broker_that_dies_half_way
        start_kafka
        tests real_kafka::a_broker_that_dies_costs_the_command
        ;;
    neo4j)
        start_neo4j
        NEO4JURL="http://127.0.0.1:$neo4j_port" tests real_neo4j
        ;;
    *)
        echo "there is no $system here; choose kafka or neo4j" >&2
        exit 2
        ;;
    esac
done
