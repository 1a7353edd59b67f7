//! Removes cycles of calls, because a request in a cycle would never end.

use super::super::system::System;
use super::Calls;

/// The state of a workload while calls are followed.
#[derive(Clone, Copy, PartialEq)]
enum Seen {
    Not,
    Open,
    Done,
}

/// Removes the calls that lead back to a workload on the path from an entry point.
pub(super) fn break_circles(system: &mut System, found: &mut Calls) {
    let count = system.workloads.len();
    let mut of: Vec<Vec<(usize, usize)>> = vec![Vec::new(); count];
    for (number, call) in found.calls.iter().enumerate() {
        of[call.from].extend(call.targets.iter().map(|(to, _)| (number, *to)));
    }
    let mut seen = vec![Seen::Not; count];
    let mut back: Vec<(usize, usize)> = Vec::new();
    let entered: Vec<usize> = found.entered().into_iter().collect();
    for start in entered.into_iter().chain(0..count) {
        if seen[start] != Seen::Not {
            continue;
        }
        // Workloads, each with the index of its next call. A list instead of recursion, because a
        // chain of calls may be long.
        let mut stack: Vec<(usize, usize)> = vec![(start, 0)];
        seen[start] = Seen::Open;
        while let Some((from, next)) = stack.last_mut() {
            let Some(&(number, to)) = of[*from].get(*next) else {
                seen[*from] = Seen::Done;
                stack.pop();
                continue;
            };
            *next += 1;
            match seen[to] {
                Seen::Open => back.push((number, to)),
                Seen::Done => {}
                Seen::Not => {
                    seen[to] = Seen::Open;
                    stack.push((to, 0));
                }
            }
        }
    }
    for (number, to) in back {
        let call = &mut found.calls[number];
        call.targets.retain(|(target, _)| *target != to);
        let (from, to) = (
            &system.workloads[call.from].name,
            &system.workloads[to].name,
        );
        system.left_out.push(format!(
            "the call of '{to}' by '{from}' ({}) closes a circle",
            call.because
        ));
    }
    found.calls.retain(|call| !call.targets.is_empty());
}
