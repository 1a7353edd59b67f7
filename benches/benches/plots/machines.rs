//! The speed-up of a run on several machines, by number of machines, number of actors and lookahead.

use crate::legend;
use crate::legend::INK;
use crate::measured::{Gain, Machines};
use plotters::prelude::*;
use std::error::Error;

const COLOURS: [RGBColor; 6] = [
    RGBColor(196, 78, 36),
    RGBColor(230, 150, 100),
    RGBColor(36, 96, 160),
    RGBColor(110, 160, 210),
    RGBColor(60, 130, 70),
    RGBColor(120, 134, 148),
];
const HEIGHT: u32 = 460;

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
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, (960, HEIGHT)).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .margin(16)
            .x_label_area_size(44)
            .y_label_area_size(60)
            .build_cartesian_2d(
                (0.9..most * 1.2).log_scale(),
                (0.05..most * 1.2).log_scale(),
            )?;
        let text = ("sans-serif", 13).into_font().color(&INK);
        chart
            .configure_mesh()
            .light_line_style(WHITE)
            .x_desc("cores")
            .y_desc("times as fast as one core")
            .x_label_formatter(&|cores| format!("{cores}"))
            .y_label_formatter(&|gain| format!("{gain}"))
            .label_style(text.clone())
            .axis_desc_style(text.clone())
            .draw()?;
        chart.draw_series(LineSeries::new([(1.0, 1.0), (most, most)], INK.mix(0.3)))?;
        let curves = curves.into_iter().zip(COLOURS.iter().cycle());
        for ((pirates, lookahead), &colour) in curves {
            let of_curve = |gains: &[Gain]| -> Vec<(f64, f64)> {
                let gains = gains.iter();
                let gains = gains.filter(|gain| curve_of(gain) == (pirates, lookahead));
                gains
                    .map(|gain| (f64::from(gain.cores), gain.speed_up))
                    .collect()
            };
            let mut expected = of_curve(&machines.expected);
            expected.sort_by(|a, b| a.0.total_cmp(&b.0));
            let name = format!(
                "{} million pirates, lookahead {} ms",
                pirates / 1_000_000,
                lookahead as f64 / 1000.0
            );
            chart
                .draw_series(LineSeries::new(expected, colour.stroke_width(2)))?
                .label(name)
                .legend(legend::line(colour));
            let measured = of_curve(&machines.measured);
            chart.draw_series(
                measured
                    .into_iter()
                    .map(|at| Circle::new(at, 5, colour.filled())),
            )?;
        }
        legend::draw(&mut chart, SeriesLabelPosition::UpperLeft)?;
        area.present()?;
    }
    Ok(svg)
}

fn curve_of(gain: &Gain) -> (u64, u64) {
    (gain.pirates, gain.lookahead_micros)
}
