//! What each package does, and what goes wrong with it: small architectures, run and measured.

mod capacity;
mod costs;
mod faults;
mod live;
mod load;
mod pirates;
mod published;
mod registry;
mod scene;
mod storage;
mod theory;
