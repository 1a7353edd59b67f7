//! From LAMP to a replicated ring in three regions, step by step.
//!
//! | step | what is new |
//! |---|---|
//! | 0 | web servers and a database pair behind a load balancer |
//! | 1 | a memory cache beside the database |
//! | 2 | proxies between load balancer and web servers |
//! | 3 | a data access layer, and a cache in every zone |
//! | 4 | a second kind of service |
//! | 5 | a ring beside the database |
//! | 6 | no database any more |
//! | 7 | two regions, each with a ring of its own |
//! | 8 | the rings of both regions replicate to each other |
//! | 9 | three regions |

use crate::definition::{
    CheckedDefinition, Definition, DefinitionError, ServiceDefinition, read_text,
};
use crate::topology::{Scale, ScaleError};

/// The last step.
pub const LAST_STEP: u32 = 9;

/// Returns the definition of a step, and the scale with the regions that the step has: at least the requested number.
/// The definition has the requested size, except for databases and caches, whose numbers are fixed as in spigo.
///
/// # Errors
/// [`MigrationError::Step`] if there is no such step.
pub fn step(step: u32, scale: Scale) -> Result<(CheckedDefinition, Scale), MigrationError> {
    if step > LAST_STEP {
        return Err(MigrationError::Step(step));
    }
    let regions = match step {
        0..=6 => scale.regions,
        7 | 8 => scale.regions.max(2),
        _ => scale.regions.max(3),
    };
    let definition = Definition {
        arch: "migration".to_owned(),
        version: "arch-0.1".to_owned(),
        description: format!("Step {step} of the way from LAMP to a replicated ring"),
        services: services(step, scale.percent)?,
        ..Definition::default()
    };
    // The definition is converted to text and read again, so that it passes the same checks as every other definition.
    let text = serde_json::to_string_pretty(&definition).map_err(MigrationError::Text)?;
    let checked = read_text(&text, &format!("step {step} of the migration"))?;
    let scale = Scale {
        regions,
        percent: 100,
    };
    Ok((checked, scale))
}

/// The reasons why a step cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum MigrationError {
    /// A step beyond the last.
    #[error("the migration has no step {0}; give 0 to {LAST_STEP}")]
    Step(u32),
    /// The definition of a step is invalid, which a test rules out.
    #[error(transparent)]
    Definition(#[from] DefinitionError),
    /// The size is so small that a service would disappear.
    #[error(transparent)]
    Scale(#[from] ScaleError),
    /// The step cannot be written.
    #[error("the step cannot be written: {0}")]
    Text(serde_json::Error),
}

/// The services of a step, in the order of their creation.
fn services(step: u32, percent: u32) -> Result<Vec<ServiceDefinition>, ScaleError> {
    let mut services = Vec::new();
    // The smallest service disappears first.
    let (smallest, least) = match step {
        0..3 => ("php", 9),
        _ => ("turtle", 6),
    };
    if least * u64::from(percent) < 100 {
        return Err(ScaleError::Nothing {
            service: smallest.to_owned(),
            count: least,
            percent,
        });
    }
    let scaled = |count: i64| count * i64::from(percent) / 100;
    let mut add = |name: &str, package: &str, count: i64, dependencies: &[&str]| {
        let mut service = ServiceDefinition::new(name, package);
        service.count = count;
        service.dependencies = Some(dependencies.iter().map(|&name| name.to_owned()).collect());
        services.push(service);
    };
    let has_database = step <= 5;
    let has_ring = step >= 5;
    let (cache, caches) = if step >= 3 {
        ("evcache", 3)
    } else {
        ("memcache", 1)
    };
    let mut storage = Vec::new();
    if has_ring {
        let joined: &[&str] = if step >= 8 {
            &["eureka", "cassTurtle"]
        } else {
            &["cassTurtle"]
        };
        add("cassTurtle", "priamCassandra", scaled(12), joined);
    }
    if has_database {
        add("rds-mysql", "store", 2, &["rds-mysql"]);
        storage.push("rds-mysql");
    }
    if step >= 1 {
        add(cache, "store", caches, &[]);
        storage.push(cache);
    }
    if has_ring {
        storage.push("cassTurtle");
    }
    let pages: &[&str] = if step >= 4 {
        &["php", "node"]
    } else {
        &["php"]
    };
    if step >= 3 {
        add("turtle", "staash", scaled(6), &storage);
        for page in pages {
            add(page, "karyon", scaled(9), &["turtle"]);
        }
    } else {
        add("php", "monolith", scaled(9), &storage);
    }
    if step >= 2 {
        add("wwwproxy", "zuul", scaled(9), pages);
        add("www-elb", "elb", 0, &["wwwproxy"]);
    } else {
        add("www-elb", "elb", 0, pages);
    }
    add("www", "denominator", 0, &["www-elb"]);
    if let Some(www) = services.last_mut() {
        www.regions = 0;
    }
    Ok(services)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Topology;

    fn names(number: u32) -> Vec<String> {
        let (checked, _) = step(number, Scale::default()).unwrap();
        let services = checked.services();
        services.map(|(service, _)| service.name.clone()).collect()
    }

    #[test]
    fn each_step_adds_or_removes_what_it_says() {
        assert_eq!(names(0), ["rds-mysql", "php", "www-elb", "www"]);
        let added = |step: u32, name: &str| {
            let name = name.to_owned();
            names(step).contains(&name) && !names(step - 1).contains(&name)
        };
        assert!(added(1, "memcache"));
        assert!(added(2, "wwwproxy"));
        assert!(added(3, "turtle") && added(3, "evcache"));
        assert!(added(4, "node"));
        assert!(added(5, "cassTurtle"));
        assert!(!names(6).contains(&"rds-mysql".to_owned()));
        assert_eq!(names(6), names(9));
    }

    #[test]
    fn the_last_steps_are_in_more_regions_and_their_rings_are_joined() {
        let regions = |number| step(number, Scale::default()).unwrap().1.regions;
        assert_eq!([6, 7, 8, 9].map(regions), [1, 2, 2, 3]);
        let joined = |number| {
            let (checked, scale) = step(number, Scale::default()).unwrap();
            Topology::new(&checked, scale).unwrap().services[0].all_regions
        };
        assert!(!joined(7) && joined(8) && joined(9));
        let three = Scale {
            regions: 3,
            percent: 100,
        };
        assert_eq!([4, 7, 9].map(|n| step(n, three).unwrap().1.regions), [3; 3]);
    }

    #[test]
    fn databases_and_caches_keep_their_counts_at_any_size() {
        let counts = |number: u32, percent: u32| {
            let asked = Scale {
                regions: 1,
                percent,
            };
            let (checked, scale) = step(number, asked).unwrap();
            let topology = Topology::new(&checked, scale).unwrap();
            let services = topology.services.iter();
            services
                .map(|service| (service.name.clone(), service.instances.len()))
                .collect::<Vec<_>>()
        };
        let find = |counts: &[(String, usize)], name: &str| {
            counts.iter().find(|(known, _)| known == name).unwrap().1
        };
        for percent in [50, 100, 200] {
            let small = counts(1, percent);
            assert_eq!(
                (find(&small, "rds-mysql"), find(&small, "memcache")),
                (2, 1)
            );
            assert_eq!(find(&small, "php"), 9 * percent as usize / 100);
            let large = counts(5, percent);
            assert_eq!((find(&large, "rds-mysql"), find(&large, "evcache")), (2, 3));
            assert_eq!(find(&large, "cassTurtle"), 12 * percent as usize / 100);
        }
        let asked = Scale {
            regions: 1,
            percent: 16,
        };
        assert_eq!(
            step(9, asked).unwrap_err().to_string(),
            "16 % of the 6 instances of service 'turtle' is less than one instance; give at least 17 %"
        );
    }

    #[test]
    fn a_step_beyond_the_last_is_refused() {
        assert_eq!(
            step(10, Scale::default()).unwrap_err().to_string(),
            "the migration has no step 10; give 0 to 9"
        );
    }
}
