//! Tables of the measurements.

use super::Results;
use anyhow::Result;
use corsair_courier_load::{Comparison, Idle, Kind, Series, Threads};
use serde_json::{Value, json};
use std::fmt::Write;

/// Formats all results as text.
pub fn text(results: &Results) -> String {
    let mut text = String::new();
    if let Some((plan, measured)) = &results.load {
        let rate = plan.rate.map_or_else(
            || "as fast as is answered".to_owned(),
            |rate| format!("{rate} a second, timed from when each was meant to be sent"),
        );
        let per_second = measured.posts.count() as f64 / measured.wall.as_secs_f64().max(1e-9);
        let _ = writeln!(
            text,
            "{}: {} workers, {} messages each, {} users; {rate}; {per_second:.0} POSTs/s\n\n{}",
            name(plan.kind),
            plan.workers,
            plan.messages,
            plan.users,
            header(),
        );
        text.push_str(&row("POST", &measured.posts));
        text.push_str(&row("POST to socket", &measured.deliveries));
    }
    if let Some(comparison) = &results.comparison {
        text.push_str(&compared(comparison));
    }
    if let Some(idle) = &results.idle {
        let _ = writeln!(
            text,
            "{} idle sockets: {} before, {} with them, {} each",
            idle.sockets,
            bytes(idle.before),
            bytes(idle.after),
            bytes(idle.each()),
        );
    }
    if let Some((attack, victim)) = &results.fanout {
        let _ = writeln!(
            text,
            "{} attackers post to {} recipients each, {} of them online: {} stored, {} refused\n\n{}",
            attack.attackers,
            attack.recipients,
            attack.online,
            victim.stored,
            victim.refused,
            header(),
        );
        text.push_str(&row("victim's POST", &victim.quiet));
        text.push_str(&row("under attack", &victim.attacked));
    }
    text
}

fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::OneOnOne => "1 on 1",
        Kind::OneOnTwo => "1 on 2",
        Kind::OneOnFive => "1 on 5",
        Kind::OneOnAny => "1 on any",
        Kind::OneOnAll => "1 on all",
    }
}

fn header() -> String {
    format!(
        "{:<15} {:>9} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}",
        "", "count", "total", "average", "p50", "p99", "p99.9", "min", "max"
    )
}

fn row(name: &str, series: &Series) -> String {
    let mut row = format!("{name:<15} {:>9}", series.count());
    for time in [
        series.total(),
        series.average(),
        series.percentile(50.0),
        series.percentile(99.0),
        series.percentile(99.9),
        series.min(),
        series.max(),
    ] {
        let _ = write!(row, " {:>10}", format!("{time:.1?}"));
    }
    row.push('\n');
    row
}

fn compared(comparison: &Comparison) -> String {
    let list = |rates: &[f64]| {
        let rates: Vec<_> = rates.iter().map(|rate| format!("{rate:.0}")).collect();
        rates.join(" ")
    };
    let mut text = format!(
        "\n64 posters, durable POSTs/s: {}\nthe same to a handler that stores nothing: {}\nratio of the middle round: {:.0} %\n",
        list(&comparison.durable),
        list(&comparison.bare),
        100.0 * comparison.ratio(),
    );
    let sides = [
        ("durable", &comparison.durable_work),
        ("stores nothing", &comparison.bare_work),
    ];
    for (name, threads) in sides {
        if threads.0.is_empty() {
            continue;
        }
        let _ = writeln!(
            text,
            "\n{:<32} {:>8} {:>8} {:>22}",
            format!("µs of a POST, {name}"),
            "user",
            "system",
            "waits for a processor"
        );
        for (thread, work) in &threads.0 {
            let micros = [work.user, work.system, work.waited].map(|time| time.as_secs_f64() * 1e6);
            let [user, system, waited] = micros;
            // Idle threads are left out.
            if user + system >= 0.05 {
                let _ = writeln!(
                    text,
                    "{thread:<32} {user:>8.1} {system:>8.1} {waited:>22.1}"
                );
            }
        }
    }
    text
}

/// Formats bytes in the largest unit that gives at least one.
fn bytes(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// Formats all results as one JSON object, with times in nanoseconds.
///
/// # Errors
/// Never, because all values are numbers.
pub fn json(results: &Results) -> Result<String> {
    let load = results.load.as_ref().map(|(plan, measured)| {
        json!({
            "kind": name(plan.kind),
            "workers": plan.workers,
            "messages": plan.messages,
            "users": plan.users,
            "rate": plan.rate,
            "wall_ns": measured.wall.as_nanos() as u64,
            "post": series(&measured.posts),
            "post_to_socket": series(&measured.deliveries),
        })
    });
    let comparison = results.comparison.as_ref().map(|comparison| {
        json!({
            "durable_per_s": comparison.durable,
            "bare_per_s": comparison.bare,
            "ratio": comparison.ratio(),
            "durable_work": threads(&comparison.durable_work),
            "bare_work": threads(&comparison.bare_work),
        })
    });
    let idle = results.idle.as_ref().map(|idle: &Idle| {
        json!({
            "sockets": idle.sockets,
            "before_bytes": idle.before,
            "after_bytes": idle.after,
            "each_bytes": idle.each(),
        })
    });
    let fanout = results.fanout.as_ref().map(|(attack, victim)| {
        json!({
            "attackers": attack.attackers,
            "recipients": attack.recipients,
            "online": attack.online,
            "stored": victim.stored,
            "refused": victim.refused,
            "quiet": series(&victim.quiet),
            "attacked": series(&victim.attacked),
        })
    });
    let all = json!({ "load": load, "comparison": comparison, "idle": idle, "fanout": fanout });
    Ok(format!("{}\n", serde_json::to_string_pretty(&all)?))
}

fn threads(threads: &Threads) -> Value {
    let threads = threads.0.iter().map(|(name, work)| {
        let work = json!({
            "user_ns": work.user.as_nanos() as u64,
            "system_ns": work.system.as_nanos() as u64,
            "waited_ns": work.waited.as_nanos() as u64,
        });
        (name.clone(), work)
    });
    Value::Object(threads.collect())
}

fn series(series: &Series) -> Value {
    let nanos = |time: std::time::Duration| time.as_nanos() as u64;
    json!({
        "count": series.count(),
        "total_ns": nanos(series.total()),
        "average_ns": nanos(series.average()),
        "p50_ns": nanos(series.percentile(50.0)),
        "p99_ns": nanos(series.percentile(99.0)),
        "p999_ns": nanos(series.percentile(99.9)),
        "min_ns": nanos(series.min()),
        "max_ns": nanos(series.max()),
    })
}
