//! The speed-up of a run on several machines, by number of machines, number of actors and lookahead.

use crate::measured::{Gain, Machines};
use corsair::picture::{FAINT, SERIES};
use corsair_arch::picture::style::{NAMES, colour, mesh, name_ends, picture};
use plotters::prelude::*;
use std::error::Error;

const HEIGHT: u32 = 460;
/// The lowest speed-up that is drawn.
const LEAST: f64 = 0.05;

/// Draws the speed-ups that `corsair plan` predicts, and the speed-ups measured with several processes on one machine.
///
/// # Errors
/// If there is nothing to draw, or the picture cannot be drawn.
pub fn draw(machines: &Machines) -> Result<String, Box<dyn Error>> {
    let most = machines.expected.iter().map(|gain| gain.cores).max();
    let most = f64::from(most.ok_or("machines.json has no row")?);
    let mut curves: Vec<(u64, u64)> = machines.expected.iter().map(curve_of).collect();
    curves.sort_unstable_by(|a, b| b.cmp(a));
    curves.dedup();
    let description = "Times as fast as one core, by cores: predicted (lines) and measured (dots), for numbers of pirates and lookaheads.";
    let title = "Speed of a run over machines";
    let drawn = picture((960, HEIGHT), title, description, |area| {
        let mut chart = ChartBuilder::on(area)
            .margin(16)
            .margin_right(NAMES + 20)
            .x_label_area_size(44)
            .y_label_area_size(60)
            .build_cartesian_2d((0.9..most).log_scale(), (LEAST..most).log_scale())?;
        mesh(&mut chart)
            .x_desc("cores")
            .y_desc("times as fast as one core")
            .x_label_formatter(&|cores| format!("{cores}"))
            .y_label_formatter(&|gain| format!("{gain}"))
            .draw()?;
        chart.draw_series(LineSeries::new([(1.0, 1.0), (most, most)], colour(FAINT)))?;
        let mut names = Vec::new();
        for ((pirates, lookahead), hex) in curves.into_iter().zip(SERIES.into_iter().cycle()) {
            let of_curve = |gains: &[Gain]| -> Vec<(f64, f64)> {
                let gains = gains.iter();
                let gains = gains.filter(|gain| curve_of(gain) == (pirates, lookahead));
                gains
                    .map(|gain| (f64::from(gain.cores), gain.speed_up))
                    .collect()
            };
            let mut expected = of_curve(&machines.expected);
            expected.sort_by(|a, b| a.0.total_cmp(&b.0));
            let (millions, millis) = (pirates / 1_000_000, lookahead as f64 / 1000.0);
            let name = format!("{millions} M pirates, {millis} ms");
            let end = expected.last();
            let end = end.map(|&(cores, gain)| chart.backend_coord(&(cores, gain.max(LEAST))));
            names.extend(end.map(|end| (end, name, colour(hex))));
            chart.draw_series(LineSeries::new(expected, colour(hex).stroke_width(2)))?;
            let measured = of_curve(&machines.measured);
            chart.draw_series(
                measured
                    .into_iter()
                    .map(|at| Circle::new(at, 5, colour(hex).filled())),
            )?;
        }
        Ok(name_ends(area, names)?)
    });
    Ok(drawn?)
}

fn curve_of(gain: &Gain) -> (u64, u64) {
    (gain.pirates, gain.lookahead_micros)
}
