//! What each package does, and what goes wrong with it: small architectures, run and measured.

mod costs;
mod faults;
mod live;
mod pirates;
mod registry;
mod scene;
mod storage;
