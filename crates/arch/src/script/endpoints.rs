//! The services of an architecture with their endpoints, by name and by number.

use crate::definition::EndpointDefinition;
use crate::message::Key;
use crate::nearest::did_you_mean;
use rustc_hash::FxHashMap;
use serde::Serialize;

/// The maximum number of endpoints of all services together.
const MOST: usize = 65_000;

/// The services of an architecture with their endpoints, to look up the targets of calls and loads. Endpoints are
/// numbered across all services.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Endpoints {
    services: Vec<ServiceEndpoints>,
    next: usize,
    /// The index of each service.
    #[serde(skip)]
    by_name: FxHashMap<String, usize>,
}

#[derive(Clone, Debug, Serialize)]
struct ServiceEndpoints {
    name: String,
    first: usize,
    endpoints: Vec<String>,
    /// The index of each endpoint.
    #[serde(skip)]
    by_name: FxHashMap<String, usize>,
}

impl Endpoints {
    /// Adds a service, in the order of the definition.
    pub(crate) fn add(
        &mut self,
        name: &str,
        endpoints: &[EndpointDefinition],
    ) -> Result<(), String> {
        let mut known: Vec<String> = Vec::with_capacity(endpoints.len());
        let mut by_name = FxHashMap::default();
        for endpoint in endpoints {
            let name = endpoint.name.as_str();
            let bad = |c: char| c == '.' || c.is_control() || c.is_whitespace();
            if name.is_empty() || name.contains(bad) || name.len() > 100 {
                return Err(format!(
                    "'{}' is not a name of an endpoint; leave out dots, spaces and line breaks",
                    name.escape_debug()
                ));
            }
            if ["common", "read", "write"].contains(&name) {
                return Err(format!(
                    "an endpoint cannot be called '{name}', which is a kind of request to storage"
                ));
            }
            if by_name.insert(name.to_owned(), known.len()).is_some() {
                return Err(format!("endpoint '{name}' is defined twice"));
            }
            if let Some(priority) = endpoint.priority.filter(|p| !(0..=7).contains(p)) {
                return Err(format!(
                    "endpoint '{name}' has a priority of {priority}; give 0 to 7"
                ));
            }
            known.push(name.to_owned());
        }
        let first = self.next;
        self.next += known.len();
        if self.next > MOST {
            return Err(format!("there are more than {MOST} endpoints"));
        }
        self.by_name.insert(name.to_owned(), self.services.len());
        self.services.push(ServiceEndpoints {
            name: name.to_owned(),
            first,
            endpoints: known,
            by_name,
        });
        Ok(())
    }

    /// Returns the number of a service's first endpoint.
    pub(crate) fn first(&self, service: usize) -> u16 {
        self.services[service].first as u16
    }

    /// Returns the service and the endpoint that a call names.
    pub(crate) fn target(&self, call: &str) -> Result<(u32, Key), String> {
        let (service, endpoint) = match call.split_once('.') {
            Some((service, endpoint)) => (service, Some(endpoint)),
            None => (call, None),
        };
        let place = self.by_name.get(service).copied();
        let place = place.ok_or_else(|| {
            let names = self.services.iter().map(|known| known.name.as_str());
            let meant = did_you_mean(service, names);
            format!("'{}' is not a service{meant}", service.escape_debug())
        })?;
        let known = &self.services[place];
        let number = match endpoint {
            None => (!known.endpoints.is_empty()).then_some(0),
            Some(wanted) => {
                let found = known.by_name.get(wanted).copied();
                Some(found.ok_or_else(|| {
                    let names = known.endpoints.iter().map(String::as_str);
                    let meant = did_you_mean(wanted, names);
                    let wanted = wanted.escape_debug();
                    format!("service '{service}' has no endpoint '{wanted}'{meant}")
                })?)
            }
        };
        let key = match number {
            None => Key::WHY,
            Some(number) => {
                // The called service sets the endpoint's own priority when the request arrives.
                Key::endpoint((known.first + number) as u16, 0, 0)
            }
        };
        Ok((place as u32, key))
    }

    /// Returns the endpoint that a load names: `cart.list`, or `list` if only one service has it.
    pub(crate) fn named(&self, name: &str) -> Result<(u32, Key), String> {
        if name.contains('.') {
            return self.target(name);
        }
        let services = self.services.iter();
        let mut found = services.filter(|service| service.by_name.contains_key(name));
        match (found.next(), found.next()) {
            (Some(one), None) => self.target(&format!("{}.{name}", one.name)),
            (None, _) => {
                let endpoints = self.services.iter().flat_map(|known| &known.endpoints);
                let kinds = ["common", "read", "write"].into_iter();
                let mut names: Vec<&str> = kinds.collect();
                names.extend(endpoints.map(String::as_str));
                let meant = match did_you_mean(name, names.iter().copied()) {
                    meant if meant.is_empty() => format!("; expected one of {}", names.join(", ")),
                    meant => meant,
                };
                Err(format!(
                    "'{}' is not a kind of request{meant}",
                    name.escape_debug()
                ))
            }
            (Some(one), Some(other)) => Err(format!(
                "both '{0}' and '{1}' have an endpoint '{name}'; write {0}.{name} or {1}.{name}",
                one.name, other.name
            )),
        }
    }

    /// Iterates over the names of all endpoints, without their services, in the order of their numbers.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let endpoints = self.services.iter().flat_map(|service| &service.endpoints);
        endpoints.map(String::as_str)
    }

    /// Returns the index of the service that has the endpoint with this number.
    pub(crate) fn service(&self, number: u16) -> Option<u32> {
        let number = usize::from(number);
        // A service without endpoints has the same first number as the next service, and comes before it.
        let after = self.services.partition_point(|known| known.first <= number);
        let place = after.checked_sub(1)?;
        let known = &self.services[place];
        (number < known.first + known.endpoints.len()).then_some(place as u32)
    }

    /// Returns the name of the endpoint with this number, including its service.
    pub(crate) fn name(&self, number: u16) -> Option<String> {
        let service = &self.services[self.service(number)? as usize];
        let endpoint = &service.endpoints[usize::from(number) - service.first];
        Some(format!("{}.{endpoint}", service.name))
    }
}
