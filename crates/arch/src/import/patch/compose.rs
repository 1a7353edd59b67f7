//! A docker-compose file that overrides others: replicas, limits and health checks.

use super::time;
use crate::definition::ServiceDefinition;
use serde_json::{Map, Value, json};

/// The reason why policies of calls are not in a patch.
pub(super) const READS: &str = "docker-compose files have no fields for calls";

pub(super) fn patch(services: &[&ServiceDefinition]) -> Value {
    let mut made = Map::new();
    for service in services {
        let mut fields = json!({"deploy": {"replicas": service.count}});
        if let Some(processors) = service.processors {
            fields["deploy"]["resources"] = json!({"limits": {"cpus": processors.to_string()}});
        }
        if let Some(check) = service.health_check {
            fields["healthcheck"] = json!({"interval": time(check.every)});
            if let Some(failures) = check.failures {
                fields["healthcheck"]["retries"] = failures.into();
            }
        }
        made.insert(service.name.clone(), fields);
    }
    json!({"services": made})
}
