//! Scenarios that run on every executor.

use corsair::Config;

/// Creates a test for every executor from each listed function.
macro_rules! on_every_executor {
    ($($name:ident)*) => {
        on_every_executor!(virtual_time Virtual: $($name)*);
        on_every_executor!(tokio Tokio: $($name)*);
        on_every_executor!(threads Threads: $($name)*);
        on_every_executor!(pool Pool: $($name)*);
    };
    ($module:ident $executor:ident: $($name:ident)*) => {
        mod $module {
            $(#[test] fn $name() { super::$name(corsair::Executor::$executor); })*
        }
    };
}

pub fn config() -> Config {
    Config {
        seed: 7,
        workers: 2.try_into().unwrap(),
        ..Config::default()
    }
}
