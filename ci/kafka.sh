#!/usr/bin/env bash
# Functions for tests that need a real Kafka broker or another Java program. Source it from a script in ci/, which sets
# `work` to a directory for files and ends the processes in `started`.
#
# Java 17 and Maven are needed; Maven fetches what is started, once, into target/observe.

kafka_version=3.9.2
kafka_port="${CORSAIR_KAFKA_PORT:-19092}"
controller_port="${CORSAIR_KAFKA_CONTROLLER_PORT:-19093}"
cache="$PWD/target/observe"

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
