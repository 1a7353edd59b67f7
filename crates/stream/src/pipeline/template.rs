//! Templates with placeholders for properties of an alert: `{{ .Name }} of {{ index .Tags "host"
//! }}`.
//!
//! They are a subset of Go's templates: placeholders, `printf`, and `{{ if eq .Level "OK" }}…{{
//! else if … }}…{{ else }}…{{ end }}` with `eq` and `ne`.

mod format;

use crate::Value;
use format::Format;
use std::sync::Arc;

/// A text with placeholders.
#[derive(Clone, Debug, PartialEq)]
pub struct Template(Vec<Segment>);

#[derive(Clone, Debug, PartialEq)]
enum Segment {
    Text(String),
    Field(AlertField, Option<Format>),
    /// The first template whose test is true.
    Either(Vec<(Test, Template)>),
}

/// A field of an alert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AlertField {
    Id,
    Name,
    TaskName,
    Group,
    Level,
    Time,
    Duration,
    Tag(Arc<str>),
    Field(Arc<str>),
}

#[derive(Clone, Debug, PartialEq)]
enum Test {
    /// True if the placeholder equals one of these texts; with `negated`, true if it equals none of
    /// them.
    Is {
        place: AlertField,
        one_of: Vec<String>,
        negated: bool,
    },
    Always,
}

/// The names of placeholders.
const PLACES: [(&str, AlertField); 7] = [
    (".ID", AlertField::Id),
    (".Name", AlertField::Name),
    (".TaskName", AlertField::TaskName),
    (".Group", AlertField::Group),
    (".Level", AlertField::Level),
    (".Time", AlertField::Time),
    (".Duration", AlertField::Duration),
];

/// The maximum nesting depth of `if`.
const MAX_DEPTH: usize = 16;

impl Template {
    /// Parses a template.
    ///
    /// # Errors
    /// The text of the first invalid placeholder.
    pub fn new(text: &str) -> Result<Template, String> {
        let mut reader = Reader { rest: text };
        let (template, end) = reader.template(0)?;
        match end {
            End::Text => Ok(template),
            End::Field(place, _) => Err(place.into()),
        }
    }

    /// Returns the text, in which each placeholder is replaced by the value that `look` returns;
    /// `None` leaves the placeholder empty.
    pub(crate) fn fill(&self, look: &dyn Fn(&AlertField) -> Option<Value>) -> String {
        let mut text = String::new();
        self.fill_into(look, &mut text);
        text
    }

    fn fill_into(&self, look: &dyn Fn(&AlertField) -> Option<Value>, text: &mut String) {
        for part in &self.0 {
            match part {
                Segment::Text(part) => text.push_str(part),
                Segment::Field(place, format) => {
                    let value = look(place);
                    match (value, format) {
                        (value, Some(format)) => format.write(value.as_ref(), text),
                        (Some(value), None) => text.push_str(&crate::expression::written(&value)),
                        (None, None) => {}
                    }
                }
                Segment::Either(branches) => {
                    let holds = |test: &Test| match test {
                        Test::Always => true,
                        Test::Is {
                            place,
                            one_of,
                            negated,
                        } => {
                            let value = look(place);
                            let value = value.map(|value| crate::expression::written(&value));
                            let value = value.as_deref().unwrap_or_default();
                            one_of.iter().any(|text| text == value) != *negated
                        }
                    };
                    if let Some((_, chosen)) = branches.iter().find(|(test, _)| holds(test)) {
                        chosen.fill_into(look, text);
                    }
                }
            }
        }
    }
}

/// Formats a duration like Go: `1m30s`, `500ms`.
pub(crate) fn written_duration(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let all = nanos.unsigned_abs();
    let fraction = |value: u64, unit: u64| {
        let text = format!(
            "{}.{:0width$}",
            value / unit,
            value % unit,
            width = unit.ilog10() as usize
        );
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    match all {
        0 => "0s".into(),
        1..1_000 => format!("{sign}{all}ns"),
        1_000..1_000_000 => format!("{sign}{}µs", fraction(all, 1_000)),
        1_000_000..1_000_000_000 => format!("{sign}{}ms", fraction(all, 1_000_000)),
        _ => {
            let (minutes, seconds) = (all / 60_000_000_000, all % 60_000_000_000);
            let seconds = fraction(seconds, 1_000_000_000);
            match (minutes / 60, minutes % 60) {
                (0, 0) => format!("{sign}{seconds}s"),
                (0, minutes) => format!("{sign}{minutes}m{seconds}s"),
                (hours, minutes) => format!("{sign}{hours}h{minutes}m{seconds}s"),
            }
        }
    }
}

/// The end of a part of a template.
enum End<'t> {
    Text,
    /// A placeholder that ends the part, such as `else` or `end`: its text and its words.
    Field(&'t str, Vec<Word>),
}

/// A word within the braces.
#[derive(Clone, Debug, PartialEq)]
enum Word {
    Bare(String),
    Quoted(String),
    Bar,
    Open,
    Close,
}

struct Reader<'t> {
    rest: &'t str,
}

impl<'t> Reader<'t> {
    /// Parses up to the end of the text, or to an `else` or `end`.
    fn template(&mut self, depth: usize) -> Result<(Template, End<'t>), String> {
        let mut parts = Vec::new();
        while let Some((before, written, place)) = self.next()? {
            if !before.is_empty() {
                parts.push(Segment::Text(before));
            }
            let Some(words) = words(place) else {
                return Err(written.into());
            };
            match words.first() {
                Some(Word::Bare(word)) if word == "if" && depth < MAX_DEPTH => {
                    parts.push(self.either(written, &words[1..], depth + 1)?);
                }
                Some(Word::Bare(word)) if word == "else" || word == "end" => {
                    return Ok((Template(parts), End::Field(written, words)));
                }
                _ => {
                    let (place, format) = piped(&words).ok_or(written)?;
                    parts.push(Segment::Field(place, format));
                }
            }
        }
        if !self.rest.is_empty() {
            parts.push(Segment::Text(std::mem::take(&mut self.rest).into()));
        }
        Ok((Template(parts), End::Text))
    }

    /// Parses the rest of an `if`, up to its `end`.
    fn either(&mut self, begun: &str, words: &[Word], depth: usize) -> Result<Segment, String> {
        let mut test = test(words).ok_or(begun)?;
        let mut branches = Vec::new();
        loop {
            let (template, end) = self.template(depth)?;
            let End::Field(written, words) = end else {
                return Err(begun.into());
            };
            let last = test == Test::Always;
            branches.push((test, template));
            let bare = |word: &Word, is: &str| matches!(word, Word::Bare(word) if word == is);
            test = match &words[..] {
                [end] if bare(end, "end") => return Ok(Segment::Either(branches)),
                _ if last => return Err(written.into()),
                [_] => Test::Always,
                [_, second, of @ ..] if bare(second, "if") => self::test(of).ok_or(written)?,
                _ => return Err(written.into()),
            };
        }
    }

    /// Returns the text before the next placeholder, the placeholder as written, and its content.
    fn next(&mut self) -> Result<Option<(String, &'t str, &'t str)>, String> {
        let Some(begin) = self.rest.find("{{") else {
            return Ok(None);
        };
        let Some(length) = self.rest[begin..].find("}}") else {
            return Err(self.rest[begin..].into());
        };
        let end = begin + length + 2;
        let written = &self.rest[begin..end];
        let (mut before, mut after) = (&self.rest[..begin], &self.rest[end..]);
        let mut place = &written[2..written.len() - 2];
        // `{{-` and `-}}` remove the adjacent white space.
        if let Some(trimmed) = place.strip_prefix("- ") {
            (place, before) = (trimmed, before.trim_end());
        }
        if let Some(trimmed) = place.strip_suffix(" -") {
            (place, after) = (trimmed, after.trim_start());
        }
        self.rest = after;
        Ok(Some((before.into(), written, place)))
    }
}

/// Splits the content of a placeholder into words; `None` if a string does not end.
fn words(place: &str) -> Option<Vec<Word>> {
    let mut words = Vec::new();
    let mut rest = place.trim_start();
    while let Some(first) = rest.chars().next() {
        let symbol = match first {
            '|' => Some(Word::Bar),
            '(' => Some(Word::Open),
            ')' => Some(Word::Close),
            _ => None,
        };
        if let Some(symbol) = symbol {
            words.push(symbol);
            rest = &rest[1..];
        } else if first == '"' || first == '`' {
            let (word, after) = quoted(&rest[1..], first)?;
            words.push(Word::Quoted(word));
            rest = after;
        } else {
            let ends = |c: char| c.is_whitespace() || "|()\"`".contains(c);
            let end = rest.find(ends).unwrap_or(rest.len());
            words.push(Word::Bare(rest[..end].into()));
            rest = &rest[end..];
        }
        rest = rest.trim_start();
    }
    Some(words)
}

/// Splits a string at its closing quote, and returns the rest.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut word = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            _ if letter == quote => return Some((word, &text[at + 1..])),
            '\\' if quote == '"' => word.push(match letters.next()?.1 {
                'n' => '\n',
                't' => '\t',
                other => other,
            }),
            _ => word.push(letter),
        }
    }
    None
}

/// Parses `PLACE`, `PLACE | printf "…"`, `printf "…" PLACE` or `printf "…" (PLACE)`.
fn piped(words: &[Word]) -> Option<(AlertField, Option<Format>)> {
    let printf = |word: &Word| matches!(word, Word::Bare(word) if word == "printf");
    match words {
        [first, Word::Quoted(format), of @ ..] if printf(first) => {
            let of = match of {
                [Word::Open, of @ .., Word::Close] => of,
                of => of,
            };
            Some((place(of)?, Some(Format::new(format)?)))
        }
        [of @ .., Word::Bar, second, Word::Quoted(format)] if printf(second) => {
            Some((place(of)?, Some(Format::new(format)?)))
        }
        of => Some((place(of)?, None)),
    }
}

fn place(words: &[Word]) -> Option<AlertField> {
    match words {
        [Word::Bare(name)] => {
            let (_, place) = PLACES.iter().find(|(known, _)| known == name)?;
            Some(place.clone())
        }
        [Word::Bare(index), Word::Bare(of), Word::Quoted(name)] if index == "index" => {
            let name = name.as_str().into();
            match of.as_str() {
                ".Tags" => Some(AlertField::Tag(name)),
                ".Fields" => Some(AlertField::Field(name)),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Parses `eq PLACE "…" …` or `ne PLACE "…"`; the place may be in parentheses.
fn test(words: &[Word]) -> Option<Test> {
    let Word::Bare(operator) = words.first()? else {
        return None;
    };
    let texts = words.iter().rev();
    let texts = texts
        .take_while(|word| matches!(word, Word::Quoted(_)))
        .count();
    // The last string of `index .Tags "host"` belongs to the place, unless parentheses end it.
    let (of, one_of) = match &words[1..] {
        [Word::Open, rest @ ..] => {
            let end = rest.iter().position(|word| *word == Word::Close)?;
            (&rest[..end], &rest[end + 1..])
        }
        rest => rest.split_at(rest.len().checked_sub(texts)?),
    };
    let text = |word: &Word| match word {
        Word::Quoted(text) => Some(text.clone()),
        _ => None,
    };
    let one_of: Option<Vec<String>> = one_of.iter().map(text).collect();
    let one_of = one_of.filter(|texts| !texts.is_empty())?;
    let negated = match (operator.as_str(), one_of.len()) {
        ("eq", _) => false,
        ("ne", 1) => true,
        _ => return None,
    };
    let place = place(of)?;
    Some(Test::Is {
        place,
        one_of,
        negated,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the values of an alert for the tests.
    fn look(place: &AlertField) -> Option<Value> {
        Some(match place {
            AlertField::Name => Value::Text("cpu".into()),
            AlertField::Level => Value::Text("OK".into()),
            AlertField::Tag(name) if &**name == "h t" => Value::Text("a".into()),
            AlertField::Field(name) if &**name == "v" => Value::Float(2.0),
            AlertField::Field(name) if &**name == "i" => Value::Integer(-7),
            _ => return None,
        })
    }

    #[test]
    fn durations_are_written_as_go_writes_them() {
        for (nanos, written) in [
            (0, "0s"),
            (999, "999ns"),
            (1_500, "1.5µs"),
            (20_000_000, "20ms"),
            (10_000_000_000, "10s"),
            (60_000_000_000, "1m0s"),
            (90_500_000_000, "1m30.5s"),
            (-3_600_000_000_000, "-1h0m0s"),
            (i64::MIN, "-2562047h47m16.854775808s"),
        ] {
            assert_eq!(written_duration(nanos), written);
        }
    }

    #[test]
    fn places_are_filled() {
        for (text, filled) in [
            ("", ""),
            (
                "a/{{ .Name }}/{{index .Tags \"h t\"}} {{.Level}}",
                "a/cpu/a OK",
            ),
            (
                "{{ index .Fields \"v\" }} {{ index .Fields \"x\" }}.",
                "2 .",
            ),
            ("a {{- .Name -}} b", "acpub"),
            ("{{ index .Fields `v` }}", "2"),
        ] {
            let template = Template::new(text).unwrap_or_else(|place| panic!("{text}: {place}"));
            assert_eq!(template.fill(&look), filled, "{text}");
        }
    }

    #[test]
    fn numbers_and_texts_are_formatted() {
        for (format, filled) in [
            ("index .Fields \"v\" | printf \"%0.3f\"", "2.000"),
            ("printf \"%.1f%%\" (index .Fields \"v\")", "2.0%"),
            ("printf \"%f\" (index .Fields \"i\")", "-7.000000"),
            ("index .Fields \"i\" | printf \"%05d\"", "-0007"),
            ("index .Fields \"i\" | printf \"%5d|\"", "   -7|"),
            ("index .Fields \"i\" | printf \"%-5d|\"", "-7   |"),
            ("index .Fields \"i\" | printf \"%+d\"", "-7"),
            ("index .Fields \"v\" | printf \"%d\"", "2"),
            (".Name | printf \"%5s\"", "  cpu"),
            (".Name | printf \"%.2s\"", "cp"),
            (".Name | printf \"%q\"", "\"cpu\""),
            (".Name | printf \"<%v>\"", "<cpu>"),
            (".Name | printf \"%d\"", "cpu"),
            ("index .Fields \"x\" | printf \"%0.3f\"", ""),
        ] {
            let text = format!("{{{{ {format} }}}}");
            let template = Template::new(&text).unwrap_or_else(|place| panic!("{text}: {place}"));
            assert_eq!(template.fill(&look), filled, "{text}");
        }
    }

    #[test]
    fn the_first_branch_whose_test_holds_is_taken() {
        for (text, filled) in [
            ("x{{ if eq .Level \"OK\" }}y{{ else }}z{{ end }}.", "xy."),
            ("{{ if ne .Level \"OK\" }}y{{ else }}z{{ end }}", "z"),
            ("{{ if eq .Level \"INFO\" \"OK\" }}y{{ end }}", "y"),
            ("{{ if eq .Level \"INFO\" }}y{{ end }}", ""),
            (
                "{{ if eq .Name \"x\" }}1{{ else if eq (index .Tags \"h t\") \"a\" }}2{{ else }}3{{ end }}",
                "2",
            ),
            (
                "{{ if eq .Name \"cpu\" }}{{ if eq .Level \"OK\" }}in{{ end }}{{ end }}",
                "in",
            ),
        ] {
            let template = Template::new(text).unwrap_or_else(|place| panic!("{text}: {place}"));
            assert_eq!(template.fill(&look), filled, "{text}");
        }
    }

    #[test]
    fn what_is_no_place_is_told() {
        let deep = "{{ if eq .Level \"OK\" }}".repeat(17);
        for (text, wrong) in [
            ("{{ .Nme }}", "{{ .Nme }}"),
            ("x{{ if .Level }}y{{ end }}", "{{ if .Level }}"),
            ("x{{ if eq .Level \"OK\" }}y", "{{ if eq .Level \"OK\" }}"),
            ("x{{ end }}", "{{ end }}"),
            ("{{ else }}", "{{ else }}"),
            (
                "{{ if eq .ID \"a\" }}{{ else }}{{ else }}{{ end }}",
                "{{ else }}",
            ),
            ("{{ .Name", "{{ .Name"),
            ("{{ index .Tags host }}", "{{ index .Tags host }}"),
            ("{{ index .Tags \"host }}", "{{ index .Tags \"host }}"),
            ("{{ .ID | printf \"%z\" }}", "{{ .ID | printf \"%z\" }}"),
            ("{{ .ID | printf \"%s%s\" }}", "{{ .ID | printf \"%s%s\" }}"),
            (
                "{{ .ID | printf \"%999999s\" }}",
                "{{ .ID | printf \"%999999s\" }}",
            ),
            ("{{}}", "{{}}"),
            (&deep, "{{ if eq .Level \"OK\" }}"),
        ] {
            assert_eq!(Template::new(text), Err(wrong.to_owned()), "{text}");
        }
    }
}
