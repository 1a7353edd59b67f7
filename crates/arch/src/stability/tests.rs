//! The map of the metastable example, and single runs at other points of it.

use super::*;
use corsair::Random;

fn example() -> DefinitionText {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/metastable_arch.json"
    );
    DefinitionText::find(file, "".as_ref()).unwrap()
}

fn rules(loads: Vec<f64>, axis: Axis) -> MapRules {
    MapRules {
        slos: vec!["errors < 10%".parse().unwrap()],
        loads,
        axis,
        trigger: Trigger::Spike(3.2),
        at: Duration::from_secs(5),
        after: Duration::from_secs(20),
        interval: Duration::from_millis(500),
        seeds: 3,
    }
}

fn lengths(millis: &[u64]) -> Axis {
    Axis::Lengths(
        millis
            .iter()
            .map(|ms| TimeSpan(Duration::from_millis(*ms)))
            .collect(),
    )
}

// Guarantee: arch-23.
#[test]
fn the_map_of_the_metastable_example_agrees_with_single_runs() {
    let is_whole = std::env::var_os("CORSAIR_GATE").is_some();
    let (loads, millis, runs): (Vec<f64>, Vec<u64>, usize) = match is_whole {
        true => (
            (0..9).map(|n| f64::from(n).mul_add(50.0, 50.0)).collect(),
            vec![0, 250, 500, 1000, 2000, 4000],
            200,
        ),
        false => (vec![20.0, 40.0, 60.0], vec![500, 2000], 6),
    };
    let map_rules = rules(loads.clone(), lengths(&millis));
    let map = stability(&Config::default(), &example(), &map_rules)
        .unwrap()
        .unwrap();
    let last = loads.len() - 1;
    assert_eq!(map.at(0, 1).class, Stability::Stable);
    if is_whole {
        // The database serves 400 a second.
        assert_eq!(map.at(last, 0).class, Stability::Degraded);
        assert_eq!(map.at(5, 4).class, Stability::Metastable, "{}", map.table());
    }
    let mut random = Random::new(22);
    let (mut compared, mut different) = (0, Vec::new());
    for number in 0..runs {
        let (column, row) = (
            random.below(last as u32) as usize,
            random.below(millis.len() as u32 - 1) as usize,
        );
        let within = |random: &mut Random, from: f64, to: f64| {
            from + (to - from) * f64::from(random.below(1_000)) / 1_000.0
        };
        let load = within(&mut random, loads[column], loads[column + 1]);
        let length = within(&mut random, millis[row] as f64, millis[row + 1] as f64);
        let corners =
            [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(x, y)| map.at(column + x, row + y).class);
        let single = MapRules {
            seeds: 1,
            ..rules(vec![load], lengths(&[length as u64]))
        };
        let config = Config {
            seed: 1_000 + number as u64,
            ..Config::default()
        };
        let run = stability(&config, &example(), &single).unwrap().unwrap();
        let found = run.points[0].class;
        // Between corners of different classes, a single run may have either class.
        let is_clear = corners.iter().all(|corner| *corner == corners[0]);
        compared += usize::from(is_clear);
        if !corners.contains(&found) {
            different.push(format!(
                "{load:.0}/s {length:.0} ms: {found:?}, not {corners:?}"
            ));
        }
    }
    assert!(
        compared * 3 > runs,
        "{compared} of {runs} are away from borders\n{}",
        map.table()
    );
    let most = runs / 50;
    assert!(
        different.len() <= most,
        "{}\n{}",
        different.join("\n"),
        map.table()
    );
}

#[test]
fn more_capacity_and_a_bounded_queue_make_the_example_stable() {
    let path = "services.db.concurrency".to_owned();
    let length = TimeSpan(Duration::from_secs(2));
    let axis = Axis::Field(path, vec!["4".to_owned(), "16".to_owned()], length);
    let map = stability(&Config::default(), &example(), &rules(vec![280.0], axis))
        .unwrap()
        .unwrap();
    let classes = [map.at(0, 0).class, map.at(0, 1).class];
    assert_eq!(
        classes,
        [Stability::Metastable, Stability::Stable],
        "{}",
        map.table()
    );
    assert!(map.at(0, 1).recovery.mean < 2.0, "{:?}", map.at(0, 1));
    assert!(map.table().contains("| 280/s |") && map.csv().contains("280,16,stable,1.000"));
    #[cfg(feature = "pictures")]
    {
        let picture = crate::picture::stability(&map).unwrap();
        assert!(picture.starts_with("<svg"), "{picture}");
        // The picture has the labels of the table.
        for point in &map.points {
            assert!(picture.contains(&point.label()), "{picture}");
        }
    }
}

#[test]
fn a_run_is_classified_by_its_intervals() {
    let rules = rules(vec![1.0], lengths(&[1000]));
    // Ten intervals before, two of the trigger, then twenty.
    let run = |before: bool, after: &[bool]| {
        let mut missed = vec![before; 10];
        missed.extend([true, true]);
        missed.extend(after);
        class(&missed, &rules, Duration::from_secs(1))
    };
    let mut after = vec![false; 20];
    assert_eq!(run(false, &after), (Stability::Stable, Some(0.0)));
    assert_eq!(run(true, &after), (Stability::Degraded, None));
    after[..6].fill(true);
    assert_eq!(run(false, &after), (Stability::Stable, Some(3.0)));
    // A single interval that misses its objective long after the trigger is chance.
    after[15] = true;
    assert_eq!(run(false, &after), (Stability::Stable, Some(3.0)));
    assert_eq!(run(false, &[true; 20]), (Stability::Metastable, None));
}

#[test]
fn maps_that_are_not_possible_are_refused() {
    let refused = |change: &dyn Fn(&mut MapRules)| {
        let mut rules = rules(vec![100.0], lengths(&[0]));
        change(&mut rules);
        stability(&Config::default(), &example(), &rules)
            .unwrap_err()
            .to_string()
    };
    assert!(refused(&|rules| rules.loads.clear()).contains("a map of 0 runs"));
    assert!(refused(&|rules| rules.seeds = 1_000_000).contains("not possible"));
    assert!(refused(&|rules| rules.loads = vec![f64::NAN]).contains("out of range"));
    assert!(refused(&|rules| rules.trigger = Trigger::Spike(f64::NAN)).contains("out of range"));
    assert!(
        refused(&|rules| rules.slos = vec!["mean < 1s".parse().unwrap()]).contains("each interval")
    );
    assert!(refused(&|rules| rules.interval = Duration::from_secs(3)).contains("too long"));
}
