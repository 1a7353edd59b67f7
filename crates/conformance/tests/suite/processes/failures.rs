//! A process that cannot continue ends its part and the parts of all others with an error.

use super::*;

fn scenario() -> Fsm {
    Fsm {
        population: 3000,
        talk: Duration::from_secs(10),
        chat: Some(Duration::from_millis(20)),
        ..Fsm::default()
    }
}

/// A carrier whose exchange fails, or delivers changed bytes, after a number of exchanges.
struct Faulty {
    carrier: ThreadCarrier,
    left: u32,
    fault: fn(&mut [Vec<u8>]) -> Result<(), ProcessLost>,
}

impl Carrier for Faulty {
    fn exchange(
        &mut self,
        outgoing: &mut [Vec<u8>],
        incoming: &mut [Vec<u8>],
    ) -> Result<(), ProcessLost> {
        self.carrier.exchange(outgoing, incoming)?;
        self.left = self.left.saturating_sub(1);
        match self.left {
            0 => (self.fault)(incoming),
            _ => Ok(()),
        }
    }
}

/// Returns the errors of three processes with two workers each, of which the second one has a faulty carrier.
fn sentences(fault: fn(&mut [Vec<u8>]) -> Result<(), ProcessLost>) -> Vec<String> {
    let one = |(process, carrier)| {
        let left = if process == 1 { 50 } else { u32::MAX };
        let carrier = Faulty {
            carrier,
            left,
            fault,
        };
        let config = Config::default();
        let run = Run::new(Pirates::new(&config, scenario()).unwrap());
        match run.over(part(process, 3, 2), carrier, None) {
            Err(FsmError::Run(error)) => error.to_string(),
            other => panic!("process {process}: {other:?}"),
        }
    };
    let carriers = thread_carriers(3).into_iter().enumerate();
    thread::scope(|scope| {
        let threads: Vec<_> = carriers
            .map(|carrier| scope.spawn(|| one(carrier)))
            .collect();
        threads.into_iter().map(|one| one.join().unwrap()).collect()
    })
}

// Guarantee: cluster-3.
#[test]
fn a_process_that_is_gone_ends_the_parts_of_the_others() {
    for sentence in sentences(|_| Err(ProcessLost)) {
        assert!(sentence.contains("another process has ended"), "{sentence}");
    }
}

// Guarantee: cluster-3.
#[test]
fn a_batch_that_cannot_be_read_is_refused_by_the_process_that_got_it() {
    let cut = |incoming: &mut [Vec<u8>]| {
        incoming[2].truncate(7);
        Ok(())
    };
    let said = sentences(cut);
    assert!(said[1].contains("the batch of process 2"), "{}", said[1]);
    for other in [&said[0], &said[2]] {
        assert!(other.contains("another process has ended"), "{other}");
    }
    let filled = |incoming: &mut [Vec<u8>]| {
        incoming[2].splice(0..0, [0xff; 16]);
        Ok(())
    };
    let said = sentences(filled);
    assert!(said[1].contains("the batch of process 2"), "{}", said[1]);
}
