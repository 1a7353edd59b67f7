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

kafka_version=3.9.2
neo4j_version=5.26.30
kafka_port="${CORSAIR_KAFKA_PORT:-19092}"
controller_port="${CORSAIR_KAFKA_CONTROLLER_PORT:-19093}"
neo4j_port="${CORSAIR_NEO4J_PORT:-17474}"

for program in java mvn; do
    if ! command -v "$program" >/dev/null; then
        echo "left out: Kafka and Neo4j, because there is no $program"
        exit 0
    fi
done

cache="$PWD/target/observe"
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

# Fetches an artifact and all that it needs into target/observe/NAME.
fetch() {
    local name="$1" group="$2" artifact="$3" version="$4"
    local directory="$cache/$name-$version"
    if [ ! -f "$directory/complete" ]; then
        mkdir -p "$directory"
        cat >"$directory/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>corsair</groupId><artifactId>$name</artifactId><version>1</version>
  <dependencies>
    <dependency>
      <groupId>$group</groupId><artifactId>$artifact</artifactId><version>$version</version>
    </dependency>
  </dependencies>
</project>
POM
        mvn -q -B -f "$directory/pom.xml" dependency:copy-dependencies \
            -DoutputDirectory="$directory/lib"
        touch "$directory/complete"
    fi
    libraries="$directory/lib"
}

# Waits until a process is ready, as long as it lives: until the command after its log succeeds.
await() {
    local what="$1" pid="$2" log="$3"
    for _ in $(seq 240); do
        if "${@:4}"; then
            return
        fi
        if ! kill -0 "$pid" 2>/dev/null; then
            break
        fi
        sleep 0.5
    done
    echo "$what does not start; its last words:" >&2
    tail -n 30 "$log" >&2
    exit 1
}

# Whether something listens on a port of loopback.
listens() {
    (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}

# A broker that is its own controller; started again, it has what it had.
start_kafka() {
    fetch kafka org.apache.kafka kafka_2.13 "$kafka_version"
    cat >"$work/kafka.properties" <<PROPERTIES
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$controller_port
listeners=PLAINTEXT://127.0.0.1:$kafka_port,CONTROLLER://127.0.0.1:$controller_port
advertised.listeners=PLAINTEXT://127.0.0.1:$kafka_port
controller.listener.names=CONTROLLER
log.dirs=$work/kafka
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
PROPERTIES
    if [ ! -d "$work/kafka" ]; then
        local id
        id=$(java -cp "$libraries/*" kafka.tools.StorageTool random-uuid 2>/dev/null | tail -n 1)
        java -cp "$libraries/*" kafka.tools.StorageTool format \
            --cluster-id "$id" --config "$work/kafka.properties" >"$work/format.log" 2>&1
    fi
    java -Xmx512m -cp "$libraries/*" kafka.Kafka "$work/kafka.properties" \
        >"$work/kafka.log" 2>&1 &
    kafka_pid=$!
    started+=("$kafka_pid")
    await Kafka "$kafka_pid" "$work/kafka.log" listens "$kafka_port"
    export CORSAIR_KAFKA="127.0.0.1:$kafka_port" CORSAIR_KAFKA_PID="$kafka_pid"
}

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
