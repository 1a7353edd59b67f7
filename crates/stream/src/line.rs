//! The InfluxDB line protocol.
