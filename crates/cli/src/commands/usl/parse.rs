//! Parses points from text.

use super::law::{Point, UslError};

/// Reads a point from each line: a load and a throughput, separated by a comma, a semicolon or
/// white space. Empty lines and lines that begin with `#` are skipped, and so is a first line that
/// names the columns.
///
/// # Errors
/// [`UslError::NoPair`] with the line.
pub fn parse(text: &str) -> Result<Vec<Point>, UslError> {
    let mut points = Vec::new();
    let mut first = true;
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match pair(line, [',', ';', ' ', '\t']) {
            Some(point) => points.push(point),
            None if first && !line.starts_with(|c: char| c.is_ascii_digit()) => {}
            None => {
                return Err(UslError::NoPair {
                    line: number,
                    text: line.to_owned(),
                });
            }
        }
        first = false;
    }
    Ok(points)
}

/// Reads points from one argument: `1:955.16,2:1878.91,4:3548.68`.
///
/// # Errors
/// Returns [`UslError::NoPair`], whose line number is the number of the invalid pair.
pub fn parse_pairs(text: &str) -> Result<Vec<Point>, UslError> {
    let pairs = text.split(',').map(str::trim).zip(1..);
    pairs
        .map(|(text, line)| {
            pair(text, [':', '=', ' ', '\t']).ok_or_else(|| UslError::NoPair {
                line,
                text: text.to_owned(),
            })
        })
        .collect()
}

fn pair(text: &str, between: [char; 4]) -> Option<Point> {
    let mut numbers = text.split(between).filter(|part| !part.is_empty());
    let mut number = || numbers.next()?.parse::<f64>().ok();
    let point = Point {
        load: number()?,
        throughput: number()?,
    };
    numbers.next().is_none().then_some(point)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_may_be_separated_in_any_usual_way() {
        let text = "load, throughput\n# a remark\n1,955.16\n\n2 ;1878.91\n4\t3548.68\r\n8   6531\n";
        let points = parse(text).unwrap();
        let loads: Vec<f64> = points.iter().map(|point| point.load).collect();
        assert_eq!(loads, [1.0, 2.0, 4.0, 8.0]);
        assert_eq!(points[1].throughput, 1878.91);
    }

    #[test]
    fn a_line_that_is_no_pair_is_reported_with_its_number() {
        for (text, line) in [
            ("1 2\nx y", 2),
            ("1 2\n3", 2),
            ("1 2 3", 1),
            ("a b\nc d", 2),
        ] {
            let said = parse(text).unwrap_err().to_string();
            assert!(
                said.starts_with(&format!("line {line}: ")),
                "{text}: {said}"
            );
        }
    }

    #[test]
    fn pairs_fit_into_one_argument() {
        let points = parse_pairs("1:955.16, 2:1878.91,4=3548.68").unwrap();
        assert_eq!((points.len(), points[2].load), (3, 4.0));
        assert!(parse_pairs("1:2,3").is_err());
    }
}
