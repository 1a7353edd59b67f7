//! Processes that wait for events: the native part of `corsair.sim`.
//!
//! The objects behave like SimPy's, with the same times, the same order of events at one time, and the same exceptions.
//! Events, the agenda, processes and resources are implemented here. Classes whose instances can have additional
//! attributes, such as `Environment` and `Resource`, have an empty subclass in Python.

mod agenda;
mod attached_cell;
mod callbacks;
mod classes;
mod condition;
mod environment;
mod event;
mod names;
mod number;
mod process;
mod release;
mod resource;
mod timeout;

pub use classes::{BaseResource, Condition, Environment, Event, Process, Put, Request, Timeout};
pub use condition::{AllOf, AnyOf, ConditionValue};
pub use process::{Initialize, Interruption};
pub use resource::{
    Container, ContainerGet, ContainerPut, FilterStore, FilterStoreGet, Get, PreemptiveResource,
    PriorityRequest, PriorityResource, PriorityStore, Release, Resource, Store, StoreGet, StorePut,
};
