//! A simulation whose hosts free memory of the test's process.

use corsair_host::{HostState, Sim, SimError};
use std::io::Read;
use std::sync::Mutex;
use std::time::Duration;

/// Works on memory in the test's process for a time that differs in each run, and leaves the rest to the threads of a host. An
/// allocator that returns memory to the system after a while would make another number of calls in each run.
pub fn scenario(sim: &mut Sim) -> Result<(), SimError> {
    let mut system = std::fs::File::open("/dev/urandom").unwrap();
    let mut random = [0; 1 << 16];
    system.read_exact(&mut random).unwrap();
    let rounds = random[0] / 4;
    let blocks = || (0..400).map(|n| vec![1u8; n * 64]).collect::<Vec<_>>();
    for _ in 0..40 {
        drop(blocks());
        for _ in 0..rounds {
            system.read_exact(&mut random).unwrap();
        }
    }
    let kept = Mutex::new((0..40).map(|_| blocks()).collect::<Vec<_>>());
    sim.preemption(20);
    let host = sim.host("host", move || {
        std::thread::scope(|threads| {
            for thread in 0..4 {
                let kept = &kept;
                threads.spawn(move || {
                    while let Some(blocks) = kept.lock().unwrap().pop() {
                        let old = blocks[399].as_ptr();
                        drop(blocks);
                        let new = vec![0u8; 100_000];
                        println!("{thread}: {old:p} {:p}", new.as_ptr());
                        std::thread::sleep(Duration::from_millis(10));
                    }
                });
            }
        });
    });
    sim.run_until(Duration::from_secs(60))?;
    assert_eq!(sim.state(&host), HostState::Exited(0), "{}", sim.log());
    Ok(())
}
