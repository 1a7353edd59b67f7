//! Parses the values of a field of a sweep.

use super::MOST_RUNS;

/// Parses values such as `1,2,4`, `1..8` or `10..100..10`; commas within brackets belong to a value.
///
/// # Errors
/// If a value is missing, or a range is invalid.
pub fn values_of(text: &str) -> Result<Vec<String>, String> {
    let mut values: Vec<String> = vec![String::new()];
    let (mut depth, mut in_text) = (0i32, false);
    for c in text.chars() {
        match c {
            '"' => in_text = !in_text,
            '[' | '{' if !in_text => depth += 1,
            ']' | '}' if !in_text => depth -= 1,
            _ => {}
        }
        match values.last_mut() {
            Some(last) if c != ',' || depth > 0 || in_text => last.push(c),
            _ => values.push(String::new()),
        }
    }
    let mut all = Vec::new();
    for value in values {
        let value = value.trim();
        if value.is_empty() {
            return Err("a value is missing; write them as 1,2,4".to_owned());
        }
        match range(value)? {
            Some(numbers) => all.extend(numbers.map(|number| number.to_string())),
            None => all.push(value.to_owned()),
        }
    }
    Ok(all)
}

/// Returns the numbers of a range such as `1..8` or `10..100..10`, inclusive; `None` if `text` is not a range.
fn range(text: &str) -> Result<Option<impl Iterator<Item = i64> + use<>>, String> {
    let parts: Vec<Option<i64>> = text.split("..").map(|part| part.parse().ok()).collect();
    let (from, to, step) = match *parts {
        [Some(from), Some(to)] => (from, to, 1),
        [Some(from), Some(to), Some(step)] => (from, to, step),
        _ => return Ok(None),
    };
    if from > to || step < 1 || (to - from) / step >= MOST_RUNS as i64 {
        return Err(format!(
            "'{text}' is not a range; write it as 1..8 or 10..100..10"
        ));
    }
    Ok(Some((from..=to).step_by(step as usize)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_lists_ranges_and_json() {
        let values = |text: &str| values_of(text).unwrap();
        assert_eq!(values("1,2,4"), ["1", "2", "4"]);
        assert_eq!(values("1..3,9"), ["1", "2", "3", "9"]);
        assert_eq!(values("10..30..10"), ["10", "20", "30"]);
        assert_eq!(
            values(r#"2ms,{"uniform":["1ms","2ms"]},"a,b""#),
            ["2ms", r#"{"uniform":["1ms","2ms"]}"#, r#""a,b""#]
        );
        assert!(values_of("1,,2").is_err() && values_of("3..1").is_err() && values_of("").is_err());
    }
}
