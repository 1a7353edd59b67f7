//! The object that a script exports as `options`, parsed from literals of JavaScript within bounds.
//!
//! For an expression with `||` or `??` the last literal is taken, which is its default. Anything else that is not a
//! literal is left out, and named.

use serde_json::{Map, Number, Value};

/// The maximum nesting depth of objects and lists.
const MOST_DEEP: usize = 32;

/// The maximum number of fields that a report lists because their values are not literals.
const MOST_NAMED: usize = 100;

/// Returns the options of a script, and the fields that are left out.
pub(super) fn options(text: &str) -> Result<Option<(Value, Vec<String>)>, String> {
    let Some(start) = beginning(text) else {
        return Ok(None);
    };
    let mut reader = Reader {
        rest: &text[start..],
        path: Vec::new(),
        left_out: Vec::new(),
    };
    match reader.value(0)? {
        Some(value @ Value::Object(_)) => Ok(Some((value, reader.left_out))),
        _ => Err(
            "exports options that are not an object in braces; write `export const options = {…}`"
                .to_owned(),
        ),
    }
}

/// Returns the position at which the value of `options` begins.
fn beginning(text: &str) -> Option<usize> {
    ["const", "let", "var"].iter().find_map(|keyword| {
        let said = format!("export {keyword} options");
        let at = text.find(&said)? + said.len();
        let equals = text[at..].find('=')?;
        Some(at + equals + 1)
    })
}

struct Reader<'a> {
    rest: &'a str,
    /// The keys of the field that is being read.
    path: Vec<String>,
    left_out: Vec<String>,
}

impl Reader<'_> {
    /// Skips blanks and comments.
    fn blanks(&mut self) {
        loop {
            self.rest = self.rest.trim_start();
            if let Some(comment) = self.rest.strip_prefix("//") {
                self.rest = comment.split_once('\n').map_or("", |(_, rest)| rest);
            } else if let Some(comment) = self.rest.strip_prefix("/*") {
                self.rest = comment.split_once("*/").map_or("", |(_, rest)| rest);
            } else {
                return;
            }
        }
    }

    fn take(&mut self, text: &str) -> bool {
        self.blanks();
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Reads a value up to the next comma or bracket; `None` if it is not a literal and has no default.
    fn value(&mut self, depth: usize) -> Result<Option<Value>, String> {
        if depth > MOST_DEEP {
            return Err("has options that are too deep; write them flatter".to_owned());
        }
        self.blanks();
        let mut value = self.term(depth)?;
        loop {
            self.blanks();
            match self.rest.chars().next() {
                None | Some(',' | '}' | ']' | ')' | ';') => return Ok(value),
                _ if self.take("||") || self.take("??") => value = self.term(depth)?,
                Some('\n') => {}
                _ if depth == 0 => return Ok(value),
                _ => {
                    self.skip();
                    return Ok(None);
                }
            }
        }
    }

    fn term(&mut self, depth: usize) -> Result<Option<Value>, String> {
        self.blanks();
        match self.rest.chars().next() {
            Some('{') => self.object(depth).map(Some),
            Some('[') => self.list(depth).map(Some),
            Some('"' | '\'' | '`') => self.string().map(|text| Some(Value::String(text))),
            Some(c) if c.is_ascii_digit() || matches!(c, '-' | '.') => Ok(self.number()),
            _ => self.word(depth),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, String> {
        self.take("{");
        let mut map = Map::new();
        while !self.take("}") {
            let before = self.rest.len();
            if self.rest.is_empty() {
                return Err("has options that do not end; close their braces".to_owned());
            }
            if self.take(",") {
                continue;
            }
            if self.take("...") {
                self.leave_out("...");
                self.skip();
                continue;
            }
            let key = match self.rest.chars().next() {
                Some('"' | '\'' | '`') => self.string()?,
                _ => self.name(),
            };
            if key.is_empty() || !self.take(":") {
                self.leave_out(&key);
                self.skip();
                self.move_on(before);
                continue;
            }
            self.path.push(key);
            let value = self.value(depth + 1)?;
            let key = self.path.pop().unwrap_or_default();
            match value {
                Some(value) => drop(map.insert(key, value)),
                None => self.leave_out(&key),
            }
            self.move_on(before);
        }
        Ok(Value::Object(map))
    }

    fn list(&mut self, depth: usize) -> Result<Value, String> {
        self.take("[");
        let mut list = Vec::new();
        while !self.take("]") {
            if self.rest.is_empty() {
                return Err("has options that do not end; close their brackets".to_owned());
            }
            if !self.take(",") {
                let before = self.rest.len();
                match self.value(depth + 1)? {
                    Some(value) => list.push(value),
                    None => self.leave_out("[]"),
                }
                self.move_on(before);
            }
        }
        Ok(Value::Array(list))
    }

    /// Records that a field is not a literal.
    fn leave_out(&mut self, key: &str) {
        if self.left_out.len() < MOST_NAMED {
            let keys = self.path.iter().map(String::as_str).chain([key]);
            self.left_out.push(keys.collect::<Vec<_>>().join("."));
        }
    }

    /// Skips a character if nothing was read since `before` bytes were left, so that the loop ends.
    fn move_on(&mut self, before: usize) {
        let mut chars = self.rest.chars();
        if self.rest.len() == before {
            chars.next();
            self.rest = chars.as_str();
        }
    }

    fn string(&mut self) -> Result<String, String> {
        let mut chars = self.rest.char_indices();
        let quote = chars.next().map_or('"', |(_, quote)| quote);
        let mut text = String::new();
        while let Some((at, c)) = chars.next() {
            match c {
                c if c == quote => {
                    self.rest = &self.rest[at + c.len_utf8()..];
                    return Ok(text);
                }
                '\\' => text.extend(chars.next().map(|(_, c)| if c == 'n' { '\n' } else { c })),
                c => text.push(c),
            }
        }
        Err("has a text in its options that does not end; close its quotes".to_owned())
    }

    fn number(&mut self) -> Option<Value> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+' | '_');
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (number, rest) = self.rest.split_at(end);
        self.rest = rest;
        let number: f64 = number.replace('_', "").parse().ok()?;
        if number.fract() == 0.0 && number.abs() < 1e15 {
            return Some(Value::Number(Number::from(number as i64)));
        }
        Number::from_f64(number).map(Value::Number)
    }

    fn name(&mut self) -> String {
        self.blanks();
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        name.to_owned()
    }

    /// Reads a name: true, false, a call whose argument is a literal, or an unknown name.
    fn word(&mut self, depth: usize) -> Result<Option<Value>, String> {
        let mut name = self.name();
        while self.take(".") {
            name = self.name();
        }
        match name.as_str() {
            "true" => return Ok(Some(Value::Bool(true))),
            "false" => return Ok(Some(Value::Bool(false))),
            "parseInt" | "parseFloat" | "Number" | "String" if self.take("(") => {
                let value = self.value(depth + 1)?;
                self.skip();
                self.take(")");
                return Ok(
                    value.map(|value| match value.as_str().map(str::parse::<f64>) {
                        Some(Ok(number)) if name != "String" => {
                            Number::from_f64(number).map_or(Value::Null, Value::Number)
                        }
                        _ => value,
                    }),
                );
            }
            _ => {}
        }
        if self.take("(") {
            self.skip();
            self.take(")");
        }
        if name.is_empty() {
            self.skip();
        }
        Ok(None)
    }

    /// Skips to the comma or bracket that ends this value.
    fn skip(&mut self) {
        let mut depth = 0_u32;
        loop {
            self.blanks();
            let Some(c) = self.rest.chars().next() else {
                return;
            };
            match c {
                '"' | '\'' | '`' => {
                    // A string without an end includes the rest of the script.
                    if self.string().is_err() {
                        self.rest = "";
                    }
                    continue;
                }
                '{' | '[' | '(' => depth += 1,
                '}' | ']' | ')' | ',' | ';' if depth == 0 => return,
                '}' | ']' | ')' => depth -= 1,
                _ => {}
            }
            self.rest = &self.rest[c.len_utf8()..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn options_are_read_as_far_as_they_are_literals() {
        let text = "import http from 'k6/http'\nconst on = false\nexport const options = {\n  // open loop\n  scenarios: {\n    'a': { executor: \"constant-arrival-rate\", rate: 1_000, timeUnit: '1s', /* x */ exec: run },\n    b: { vus: parseInt(__ENV.USERS || '10'), duration: __ENV.TIME || '5m', },\n    ...(on ? { c: { vus: 1 } } : {}),\n  },\n  discard: true, list: [1, -2.5, `t`],\n}\nexport default function () {}\n";
        let (read, left_out) = options(text).unwrap().unwrap();
        assert_eq!(left_out, ["scenarios.a.exec", "scenarios...."]);
        assert_eq!(
            read,
            json!({"scenarios": {
                "a": {"executor": "constant-arrival-rate", "rate": 1000, "timeUnit": "1s"},
                "b": {"vus": 10.0, "duration": "5m"}},
                "discard": true, "list": [1, -2.5, "t"]})
        );
        assert_eq!(options("export default function () {}"), Ok(None));
    }

    #[test]
    fn scripts_that_are_broken_are_refused_or_end() {
        assert!(options("export const options = { a: [1").is_err());
        assert!(options("export const options = { a: 'x").is_err());
        assert!(options(&format!("export const options = {}", "{a:".repeat(100_000))).is_err());
        assert!(options("export const options = makeOptions()").is_err());
        for bad in ["[)]", "{)}", "{a:)}", "{;}", "[;;]", "{a b c}", "{a:=>}"] {
            let _ = options(&format!("export const options = {bad}"));
        }
    }
}
