//! The style of all SVG pictures: a colour for each meaning, in light and dark schemes. Colour-blind readers can
//! distinguish the colours.
//!
//! Colours are those of Okabe and Ito. Failures have the colour [`BAD`]; no colour is green. A writer uses the colours
//! below and ends with [`finish`], which adds a title, a description and the colours of dark schemes.

/// The colour of text.
pub const INK: &str = "#1F2328";
/// The colour of the background.
pub const PAPER: &str = "#FFFFFF";
/// The colour of axes and less important items.
pub const FAINT: &str = "#6E7781";
/// The colour of grid lines.
pub const RULE: &str = "#D8DEE4";
/// The colour of a box's area.
pub const AREA: &str = "#F4F7FA";
/// The colour of usual items, such as the first curve or a box.
pub const NORMAL: &str = "#0072B2";
/// The colour of items that are higher or later than usual, such as a high percentile.
pub const NOTABLE: &str = "#B8730A";
/// The colour of failures and excessive values.
pub const BAD: &str = "#C2410C";
/// The colour of areas of failures.
pub const BAD_AREA: &str = "#FFE7DC";
/// The colour of limits and of answers.
pub const LIMIT: &str = "#8250A5";

/// Colours of curves that differ only by name. None is green or [`BAD`].
pub const SERIES: [&str; 6] = [NORMAL, NOTABLE, LIMIT, "#3A9BD5", "#5C6670", "#A8569B"];

/// Every colour of a picture and its counterpart in the dark scheme.
pub const DARK: [(&str, &str); 17] = [
    (INK, "#E4E6E8"),
    (PAPER, "#14171B"),
    (FAINT, "#A2A9B1"),
    (RULE, "#353B42"),
    (AREA, "#1B2026"),
    (NORMAL, "#6FB6E8"),
    (NOTABLE, "#F0A33A"),
    (BAD, "#FF7B54"),
    (BAD_AREA, "#4A2416"),
    (LIMIT, "#C49BE3"),
    ("#3A9BD5", "#9AD0F5"),
    ("#5C6670", "#B5BDC5"),
    ("#A8569B", "#E39AD6"),
    // The default colour of the drawing library.
    ("#000000", "#E4E6E8"),
    ("black", "#E4E6E8"),
    ("white", "#14171B"),
    ("#787878", "#A2A9B1"),
];

/// The red, green and blue of a colour above.
pub const fn rgb(colour: &str) -> (u8, u8, u8) {
    const fn digit(letter: u8) -> u8 {
        match letter {
            b'0'..=b'9' => letter - b'0',
            b'A'..=b'F' => letter - b'A' + 10,
            _ => letter - b'a' + 10,
        }
    }
    let text = colour.as_bytes();
    (
        digit(text[1]) * 16 + digit(text[2]),
        digit(text[3]) * 16 + digit(text[4]),
        digit(text[5]) * 16 + digit(text[6]),
    )
}

/// Adds a title, a description and the colours of dark schemes to an SVG document. The style rules apply only to this
/// document, even inside a page with other pictures.
///
/// ```
/// let svg = corsair::picture::finish("<svg width=\"9\"><rect/></svg>", "Load & time", "Two curves.");
/// assert!(svg.contains("<title>Load &amp; time</title><desc>Two curves.</desc><style>"));
/// ```
pub fn finish(svg: &str, title: &str, description: &str) -> String {
    let Some(begin) = svg.find("<svg") else {
        return svg.to_owned();
    };
    let Some(end) = svg[begin..].find('>').map(|end| begin + end) else {
        return svg.to_owned();
    };
    format!(
        "{} class=\"corsair\" role=\"img\"><title>{}</title><desc>{}</desc><style>{}</style>{}",
        &svg[..end],
        escaped(title),
        escaped(description),
        style(),
        &svg[end + 1..]
    )
}

/// Returns the style sheet of pictures, for a page that contains them: the background and the colours of dark schemes, of
/// SVG elements with the class `corsair`.
pub fn style() -> String {
    let [(_, ink), (_, paper)] = [DARK[0], DARK[1]];
    let rules = DARK.iter().flat_map(|(light, dark)| {
        let rule = move |what| format!(".corsair [{what}=\"{light}\" i]{{{what}:{dark}}}");
        ["fill", "stroke"].map(rule)
    });
    let rules: String = rules.collect();
    format!(
        ".corsair{{background:{PAPER}}}@media(prefers-color-scheme:dark){{.corsair{{background:{paper}}}.corsair text:not([fill]){{fill:{ink}}}{rules}}}"
    )
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace(|letter: char| letter.is_control(), " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the luminance of a colour by the rules of WCAG 2.
    fn luminance(colour: &str) -> f64 {
        let (red, green, blue) = rgb(colour);
        let part = |value: u8| {
            let value = f64::from(value) / 255.0;
            match value <= 0.040_45 {
                true => value / 12.92,
                false => ((value + 0.055) / 1.055).powf(2.4),
            }
        };
        0.2126 * part(red) + 0.7152 * part(green) + 0.0722 * part(blue)
    }

    fn contrast(a: &str, b: &str) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn colours_are_legible_in_both_schemes_and_what_fails_is_never_green() {
        let dark = |light: &str| DARK.iter().find(|(known, _)| *known == light).unwrap().1;
        for colour in SERIES.iter().chain(&[INK, FAINT, BAD]) {
            let least = if [INK, FAINT, BAD].contains(colour) {
                4.4
            } else {
                3.0
            };
            assert!(
                contrast(colour, PAPER) >= least,
                "{colour}: {}",
                contrast(colour, PAPER)
            );
            assert!(
                contrast(dark(colour), dark(PAPER)) >= 4.5,
                "{colour} in the dark"
            );
        }
        for bad in [BAD, dark(BAD)] {
            let (red, green, _) = rgb(bad);
            assert!(red > 100 && f64::from(green) < 0.6 * f64::from(red));
        }
        // These pairs differ in luminance or in blue, so they remain distinct without red and green.
        for (a, b) in [
            (NORMAL, BAD),
            (NORMAL, NOTABLE),
            (NOTABLE, LIMIT),
            (BAD, LIMIT),
        ] {
            let blue = |colour| i32::from(rgb(colour).2);
            assert!(
                (blue(a) - blue(b)).abs() > 60 || contrast(a, b) > 1.5,
                "{a} {b}"
            );
        }
    }

    #[test]
    fn what_is_no_picture_stays_as_it_is() {
        assert_eq!(finish("text", "a", "b"), "text");
        let svg = finish("<?xml?><svg x=\"1\">a</svg>", "a\u{1}<", "b");
        assert!(svg.starts_with(
            "<?xml?><svg x=\"1\" class=\"corsair\" role=\"img\"><title>a &lt;</title>"
        ));
        assert!(svg.ends_with("</style>a</svg>"));
        // No rule concerns other pictures of the same page.
        let rules = svg.split(['{', '}']).skip(1).step_by(2);
        assert!(
            rules
                .filter(|rule| rule.contains('['))
                .all(|rule| rule.starts_with(".corsair "))
        );
    }
}
