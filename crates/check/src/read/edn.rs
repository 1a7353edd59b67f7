//! EDN: events one after another, or in one vector or list.
//!
//! The parser is the project's own, because it must bound the depth and the number of values and
//! read one event at a time; published parsers build the whole document recursively.

use super::pairs::Pairs;
use super::{MOST_DEPTH, MOST_VALUES, ReadError, line_of};
use crate::Value;

pub(super) fn read(text: &[u8], pairs: &mut Pairs) -> Result<(), ReadError> {
    let mut values = 0;
    let mut parser = Parser::new(text, &mut values);
    let mut lines = Lines {
        text,
        at: 0,
        line: 1,
    };
    let mut events = |parser: &mut Parser<'_>| -> Result<(), ReadError> {
        let line = lines.of(parser.at);
        match parser.value(0) {
            Ok(map @ Value::Map(_)) => pairs.map(map, line),
            Ok(other) => {
                let problem = format!("'{other}' is not an event; expected a map");
                Err(ReadError { line, problem })
            }
            Err(problem) => Err(parser.error(problem)),
        }
    };
    loop {
        parser.space(0).map_err(|problem| parser.error(problem))?;
        match parser.peek() {
            None => return Ok(()),
            Some(open @ (b'[' | b'(')) => {
                parser.at += 1;
                let close = if open == b'[' { b']' } else { b')' };
                loop {
                    parser.space(0).map_err(|problem| parser.error(problem))?;
                    match parser.peek() {
                        Some(byte) if byte == close => break,
                        None => return Err(parser.error("the history ends too early".into())),
                        Some(_) => events(&mut parser)?,
                    }
                }
                parser.at += 1;
            }
            Some(_) => events(&mut parser)?,
        }
    }
}

/// Reads a text that is exactly one value.
pub(super) fn value(text: &str, values: &mut usize) -> Result<Value, ReadError> {
    let mut parser = Parser::new(text.as_bytes(), values);
    parser
        .value(0)
        .map_err(|problem| ReadError { line: 1, problem })
}

/// Line numbers of byte offsets, which must be requested in ascending order.
struct Lines<'a> {
    text: &'a [u8],
    at: usize,
    line: usize,
}

impl Lines<'_> {
    fn of(&mut self, at: usize) -> usize {
        let passed = &self.text[self.at..at];
        self.line += passed.iter().filter(|byte| **byte == b'\n').count();
        self.at = at;
        self.line
    }
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    values: &'a mut usize,
}

type Parsed<T> = Result<T, String>;

impl<'a> Parser<'a> {
    fn new(text: &'a [u8], values: &'a mut usize) -> Parser<'a> {
        Parser {
            text,
            at: 0,
            values,
        }
    }

    fn error(&self, problem: String) -> ReadError {
        let line = line_of(self.text, self.at);
        ReadError { line, problem }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn value(&mut self, depth: usize) -> Parsed<Value> {
        if depth > MOST_DEPTH {
            return Err(format!("values are nested more than {MOST_DEPTH} deep"));
        }
        *self.values += 1;
        if *self.values > MOST_VALUES {
            return Err(format!("there are more than {MOST_VALUES} values"));
        }
        self.space(depth)?;
        match self.peek() {
            None => Err("the history ends within a value".to_owned()),
            Some(b'[') => self.list(b']', depth),
            Some(b'(') => self.list(b')', depth),
            Some(b'{') => self.map(depth),
            Some(b'"') => self.string(),
            Some(b'#') => self.tagged(depth),
            Some(b'\\') => self.character(),
            Some(b'^') => {
                self.at += 1;
                self.value(depth + 1)?;
                self.value(depth + 1)
            }
            Some(b']' | b')' | b'}') => Err("a bracket closes nothing".to_owned()),
            Some(_) => self.word(),
        }
    }

    /// Skips white space, comments and discarded forms.
    fn space(&mut self, depth: usize) -> Parsed<()> {
        loop {
            match (self.peek(), self.text.get(self.at + 1)) {
                (Some(b'#'), Some(b'_')) => {
                    self.at += 2;
                    self.value(depth + 1)?;
                }
                (Some(b',' | b';'), _) => self.space_plain(),
                (Some(byte), _) if byte.is_ascii_whitespace() => self.space_plain(),
                _ => return Ok(()),
            }
        }
    }

    /// Skips white space or one comment.
    fn space_plain(&mut self) {
        let comment = self.peek() == Some(b';');
        let rest = self.text[self.at..].iter();
        self.at += match comment {
            true => rest.take_while(|byte| **byte != b'\n').count(),
            false => 1,
        };
    }

    fn list(&mut self, close: u8, depth: usize) -> Parsed<Value> {
        self.at += 1;
        let mut values = Vec::new();
        loop {
            self.space(depth)?;
            if self.peek() == Some(close) {
                self.at += 1;
                return Ok(Value::List(values.into()));
            }
            values.push(self.value(depth + 1)?);
        }
    }

    fn map(&mut self, depth: usize) -> Parsed<Value> {
        self.at += 1;
        let mut entries = Vec::new();
        loop {
            self.space(depth)?;
            if self.peek() == Some(b'}') {
                self.at += 1;
                return Ok(Value::Map(entries.into()));
            }
            let key = self.value(depth + 1)?;
            self.space(depth)?;
            if self.peek() == Some(b'}') {
                return Err(format!("the key '{key}' of a map has no value"));
            }
            entries.push((key, self.value(depth + 1)?));
        }
    }

    /// Reads a set, or a value with a tag; the tag is ignored.
    fn tagged(&mut self, depth: usize) -> Parsed<Value> {
        self.at += 1;
        if self.peek() == Some(b'{') {
            return self.list(b'}', depth);
        }
        self.token();
        self.value(depth + 1)
    }

    fn character(&mut self) -> Parsed<Value> {
        self.at += 1;
        let start = self.at;
        // The first character belongs to the name even if it is a bracket.
        self.at = (self.at + 1).min(self.text.len());
        self.token();
        let name = text(&self.text[start..self.at])?;
        Ok(match name {
            "newline" => "\n",
            "return" => "\r",
            "space" => " ",
            "tab" => "\t",
            other => other,
        }
        .into())
    }

    fn string(&mut self) -> Parsed<Value> {
        self.at += 1;
        let start = self.at;
        let mut escaped = false;
        loop {
            match self.peek() {
                None => return Err("a string has no end".to_owned()),
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    self.at = (self.at + 2).min(self.text.len());
                }
                Some(_) => self.at += 1,
            }
        }
        let text = text(&self.text[start..self.at])?;
        self.at += 1;
        match escaped {
            true => Ok(Value::Text(unescaped(text)?.into())),
            false => Ok(text.into()),
        }
    }

    /// Returns the bytes up to the next white space or bracket.
    fn token(&mut self) -> &'a [u8] {
        let rest = &self.text[self.at..];
        let ends = |byte: &u8| byte.is_ascii_whitespace() || b",;()[]{}\"".contains(byte);
        let length = rest.iter().position(ends).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    fn word(&mut self) -> Parsed<Value> {
        let word = text(self.token())?;
        Ok(match word {
            "nil" => Value::Nil,
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => {
                let digits = word.strip_prefix(['+', '-']).unwrap_or(word);
                if digits.starts_with(|first: char| first.is_ascii_digit()) {
                    return number(word);
                }
                word.strip_prefix(':').unwrap_or(word).into()
            }
        })
    }
}

fn number(word: &str) -> Parsed<Value> {
    if let Ok(number) = word.trim_end_matches('N').parse() {
        return Ok(Value::Int(number));
    }
    match word.trim_end_matches('M').parse::<f64>() {
        Ok(number) if word.contains(['.', 'e', 'E']) => Ok(Value::Float(number.to_bits())),
        // A ratio, or a number that is too large: compared as text.
        _ if word.len() <= 64 => Ok(word.into()),
        _ => Err("a number has more than 64 digits".to_owned()),
    }
}

fn text(bytes: &[u8]) -> Parsed<&str> {
    std::str::from_utf8(bytes).map_err(|_| "the text is not UTF-8".to_owned())
}

fn unescaped(text: &str) -> Parsed<String> {
    let mut result = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        if char != '\\' {
            result.push(char);
            continue;
        }
        result.push(match chars.next() {
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('u') => {
                let digits: String = chars.by_ref().take(4).collect();
                let code = u32::from_str_radix(&digits, 16)
                    .ok()
                    .and_then(char::from_u32);
                code.ok_or_else(|| format!("'\\u{digits}' is not a character"))?
            }
            Some(other) => other,
            None => return Err("a string ends with a backslash".to_owned()),
        });
    }
    Ok(result)
}
