//! Converts characters to tokens.

use super::error::Problem;
use super::span::Span;
use crate::expression::{Pattern, UNITS, is_word_part, is_word_start};
use std::sync::Arc;

/// A word, a symbol, or a literal.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token<'t> {
    Word(&'t str),
    /// A key in double quotes.
    Key(Arc<str>),
    /// A string in single quotes.
    Text(Arc<str>),
    Integer(u64),
    Float(f64),
    /// A duration in nanoseconds.
    Duration(u64),
    /// A regular expression between slashes.
    Pattern(Pattern),
    Symbol(&'static str),
    /// An invalid token, after which nothing is read.
    Bad(Problem),
    End,
}

/// The symbols of the language; longer symbols come before their prefixes.
const SYMBOLS: [&str; 26] = [
    "||", "&&", "=~", "!~", "==", "!=", "<>", "<=", ">=", "|", ".", ",", "(", ")", "=", "<", ">",
    "+", "-", "*", "/", "%", "!", ":", "[", "]",
];

/// Splits a text into tokens.
#[derive(Debug)]
pub(crate) struct Lexer<'t> {
    text: &'t str,
    at: usize,
    /// True if a slash would begin a pattern, because no division is possible after the previous token.
    pattern: bool,
}

impl<'t> Lexer<'t> {
    pub(crate) fn new(text: &'t str) -> Lexer<'t> {
        Lexer {
            text,
            at: 0,
            pattern: false,
        }
    }

    /// Returns the next token. At the end, and after an invalid token, it always returns the end.
    pub(crate) fn next(&mut self) -> (Token<'t>, Span) {
        self.skip_space();
        let start = self.at;
        let token = self.token();
        self.pattern = matches!(token, Token::Symbol("=~" | "!~" | "=" | "(" | ","));
        let span = Span {
            start,
            end: self.at,
        };
        if let Token::Bad(_) = token {
            self.at = self.text.len();
        }
        (token, span)
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    /// Returns the characters from here on for which the condition holds.
    fn take_while(&mut self, holds: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let length = rest.find(|c| !holds(c)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    fn skip_space(&mut self) {
        loop {
            self.take_while(char::is_whitespace);
            if !self.rest().starts_with("//") && !self.rest().starts_with('#') {
                return;
            }
            self.take_while(|c| c != '\n');
        }
    }

    fn token(&mut self) -> Token<'t> {
        let Some(first) = self.rest().chars().next() else {
            return Token::End;
        };
        if is_word_start(first) {
            return Token::Word(self.take_while(is_word_part));
        }
        if first.is_ascii_digit() {
            return self.number();
        }
        if self.rest().starts_with("'''") {
            return self.long_text();
        }
        if first == '"' || first == '\'' {
            return self.quoted(first);
        }
        if first == '/' && self.pattern {
            return self.regular();
        }
        let symbol = SYMBOLS
            .iter()
            .find(|symbol| self.rest().starts_with(**symbol));
        match symbol {
            Some(symbol) => {
                self.at += symbol.len();
                Token::Symbol(symbol)
            }
            None => {
                self.at += first.len_utf8();
                Token::Bad(Problem::Character(first))
            }
        }
    }

    /// Reads a text in three single quotes, in which a backslash has no meaning.
    fn long_text(&mut self) -> Token<'t> {
        let begin = self.at + 3;
        match self.text[begin..].find("'''") {
            Some(length) => {
                self.at = begin + length + 3;
                Token::Text(self.text[begin..begin + length].into())
            }
            None => {
                self.at = begin;
                Token::Bad(Problem::Unterminated('\''))
            }
        }
    }

    /// Reads a pattern. A backslash before a slash makes it an ordinary character.
    fn regular(&mut self) -> Token<'t> {
        let opening = self.at;
        self.at += 1;
        let mut content = String::new();
        loop {
            content.push_str(self.take_while(|c| !matches!(c, '/' | '\\' | '\n')));
            let mut rest = self.rest().chars();
            match (rest.next(), rest.next()) {
                (Some('\\'), Some('/')) => {
                    content.push('/');
                    self.at += 2;
                }
                (Some('\\'), Some(escaped)) => {
                    content.extend(['\\', escaped]);
                    self.at += 1 + escaped.len_utf8();
                }
                (Some('/'), _) => {
                    self.at += 1;
                    return match Pattern::new(&content) {
                        Ok(pattern) => Token::Pattern(pattern),
                        Err(error) => Token::Bad(Problem::Pattern(error)),
                    };
                }
                _ => {
                    self.at = opening + 1;
                    return Token::Bad(Problem::Unterminated('/'));
                }
            }
        }
    }

    fn quoted(&mut self, quote: char) -> Token<'t> {
        let opening = self.at;
        self.at += 1;
        let mut content = String::new();
        loop {
            content.push_str(self.take_while(|c| c != quote && c != '\\'));
            let mut rest = self.rest().chars();
            match (rest.next(), rest.next()) {
                (Some('\\'), Some(escaped)) if escaped == quote || escaped == '\\' => {
                    content.push(escaped);
                    self.at += 2;
                }
                (Some('\\'), _) => {
                    content.push('\\');
                    self.at += 1;
                }
                (Some(_), _) => {
                    self.at += 1;
                    let content = content.into();
                    return match quote {
                        '"' => Token::Key(content),
                        _ => Token::Text(content),
                    };
                }
                (None, _) => {
                    self.at = opening + 1;
                    return Token::Bad(Problem::Unterminated(quote));
                }
            }
        }
    }

    fn number(&mut self) -> Token<'t> {
        let start = self.at;
        let digits = self.take_while(|c| c.is_ascii_digit());
        let fraction = self.skip_fraction();
        let exponent = self.skip_exponent();
        let number = &self.text[start..self.at];
        let unit = self.take_while(|c| is_word_part(c) || MICRO.contains(&c));
        let written = || self.text[start..self.at].to_owned();
        if fraction || exponent {
            return match number.parse::<f64>() {
                Ok(float) if unit.is_empty() && float.is_finite() => Token::Float(float),
                Ok(_) if unit.is_empty() => Token::Bad(Problem::Float(written())),
                _ => Token::Bad(Problem::Unit(written())),
            };
        }
        let count = digits.parse::<u64>().ok();
        if unit.is_empty() {
            return match count {
                Some(count) => Token::Integer(count),
                None => Token::Bad(Problem::Number(written())),
            };
        }
        let Some((_, nanos)) = UNITS.iter().find(|(name, _)| is_unit(name, unit)) else {
            return Token::Bad(Problem::Unit(written()));
        };
        // A negative duration may be one nanosecond longer than the longest positive one.
        let longest = i64::MIN.unsigned_abs();
        match count.and_then(|count| count.checked_mul(*nanos)) {
            Some(nanos) if nanos <= longest => Token::Duration(nanos),
            _ => Token::Bad(Problem::Number(written())),
        }
    }

    /// Skips a point with digits after it; another point does not belong to the number.
    fn skip_fraction(&mut self) -> bool {
        let mut rest = self.rest().chars();
        let found = rest.next() == Some('.') && rest.next().is_some_and(|c| c.is_ascii_digit());
        if found {
            self.at += 1;
            self.take_while(|c| c.is_ascii_digit());
        }
        found
    }

    fn skip_exponent(&mut self) -> bool {
        let Some(rest) = self.rest().strip_prefix(['e', 'E']) else {
            return false;
        };
        let digits = rest.strip_prefix(['+', '-']).unwrap_or(rest);
        let found = digits.starts_with(|c: char| c.is_ascii_digit());
        if found {
            self.at += 1 + (rest.len() - digits.len());
            self.take_while(|c| c.is_ascii_digit());
        }
        found
    }
}

/// The micro sign and the Greek letter mu, as which it is often written.
const MICRO: [char; 2] = ['\u{b5}', '\u{3bc}'];

/// True if the unit is written like this; `u` may also be written `µ`.
fn is_unit(name: &str, written: &str) -> bool {
    let mut letters = written.chars();
    let micro = letters.next().is_some_and(|c| MICRO.contains(&c)) && letters.next().is_none();
    written == name || micro && name == "u"
}
