//! Horizontal bars, one row for each contender.

use crate::measured::{Benchmark, Versus};
use corsair::picture::{FAINT, INK, NORMAL};
use corsair_arch::picture::style::{Area, colour, font, picture};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::error::Error;

const ROW: i32 = 24;
const TITLE: i32 = 40;

/// A bar with its label.
struct Bar {
    name: String,
    value: f64,
    label: String,
}

impl Bar {
    fn colour(&self) -> RGBColor {
        match self.name.starts_with("corsair") {
            true => colour(NORMAL),
            false => colour(FAINT),
        }
    }
}

/// Draws rates and memory per actor with 100,000 pirates, fastest first.
///
/// # Errors
/// If nothing was measured with 100,000 pirates, or the picture cannot be drawn.
pub fn versus(rows: &[Versus]) -> Result<String, Box<dyn Error>> {
    let mut rows: Vec<&Versus> = rows.iter().filter(|row| row.pirates == 100_000).collect();
    if rows.is_empty() {
        return Err("versus.json has no row with 100000 pirates".into());
    }
    rows.sort_by(|a, b| b.messages_per_second.total_cmp(&a.messages_per_second));
    let bars = |value: fn(&Versus) -> f64, label: fn(f64) -> String| -> Vec<Bar> {
        let bar = |row: &&Versus| Bar {
            name: row.contender.clone(),
            value: value(row),
            label: label(value(row)),
        };
        rows.iter().map(bar).collect()
    };
    let rates = bars(
        |row| row.messages_per_second / 1e6,
        |rate| format!("{rate:.1}"),
    );
    let memory = bars(|row| row.bytes_per_actor, |bytes| format!("{bytes:.0}"));
    let description =
        "Million messages per second and bytes per actor with 100,000 pirates, by runtime.";
    let drawn = picture(size(rows.len()), "Runtimes compared", description, |area| {
        let (left, right) = area.split_horizontally(520);
        let title = "million messages per second (more is better)";
        panel(&left, title, &rates, 150)?;
        panel(&right, "bytes per actor (less is better)", &memory, 150)
    });
    Ok(drawn?)
}

/// Draws the nanoseconds per fork on one and on two workers. Tokio's tasks are left out, because their bar would dwarf
/// all others.
///
/// # Errors
/// If nothing was measured, or the picture cannot be drawn.
pub fn fork_join(rows: &[Benchmark]) -> Result<String, Box<dyn Error>> {
    let names = [
        ("closures", "corsair, closures"),
        ("futures", "corsair, futures"),
        ("chili", "chili"),
        ("rayon", "rayon"),
    ];
    let bars = |workers: u64| -> Vec<Bar> {
        let measured = |(id, name): (&str, &str)| {
            let row = rows.iter().find(|row| {
                row.group == "fork_join/sum" && row.contender == id && row.parameter == workers
            })?;
            Some(Bar {
                name: name.to_owned(),
                value: row.nanoseconds,
                label: format!("{:.1}", row.nanoseconds),
            })
        };
        names.into_iter().filter_map(measured).collect()
    };
    let (one, two) = (bars(1), bars(2));
    if one.is_empty() || two.is_empty() {
        return Err("criterion.json has no row of fork_join/sum".into());
    }
    let description = "Nanoseconds per fork on one and on two workers, by library.";
    let drawn = picture(size(one.len()), "Fork-join", description, |area| {
        let (left, right) = area.split_horizontally(480);
        panel(&left, "ns per fork, one worker (less is better)", &one, 140)?;
        panel(&right, "ns per fork, two workers", &two, 140)
    });
    Ok(drawn?)
}

/// Returns the size of a picture with this number of rows.
fn size(rows: usize) -> (u32, u32) {
    (960, (TITLE + ROW * rows as i32 + 16) as u32)
}

/// Draws a title and its bars; names take the first `names` pixels.
fn panel(area: &Area<'_>, title: &str, bars: &[Bar], names: i32) -> Result<(), Box<dyn Error>> {
    let text = font(13, colour(INK));
    let right = text.pos(Pos::new(HPos::Right, VPos::Center));
    let left = text.pos(Pos::new(HPos::Left, VPos::Center));
    let heading = font(15, colour(INK));
    area.draw(&Text::new(title.to_owned(), (names, 14), heading))?;
    let room = area.dim_in_pixel().0 as i32 - names - 64;
    let most = bars
        .iter()
        .map(|bar| bar.value)
        .fold(f64::MIN_POSITIVE, f64::max);
    for (bar, row) in bars.iter().zip(0..) {
        let top = TITLE + row * ROW;
        let middle = top + ROW / 2;
        let length = (bar.value / most * f64::from(room)).round().max(1.0) as i32;
        let corners = [(names, top + 3), (names + length, top + ROW - 3)];
        area.draw(&Rectangle::new(corners, bar.colour().filled()))?;
        area.draw(&Text::new(
            bar.name.clone(),
            (names - 8, middle),
            right.clone(),
        ))?;
        let behind = (names + length + 6, middle);
        area.draw(&Text::new(bar.label.clone(), behind, left.clone()))?;
    }
    Ok(())
}
