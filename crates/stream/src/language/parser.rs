//! The token stream of the parser, and its error messages.

use super::error::{Failure, Problem};
use super::lexer::{Lexer, Token};
use super::span::Span;
use crate::Value;
use crate::expression::{Expression, Pattern, is_reserved};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::time::Duration;

/// A part of the program, or the first error.
pub(crate) type Parsed<T> = Result<T, Box<Failure>>;

/// Parses a text from left to right, with a look-ahead of at most two tokens.
#[derive(Debug)]
pub(crate) struct Parser<'t> {
    text: &'t str,
    lexer: Lexer<'t>,
    /// The next token.
    pub(crate) token: Token<'t>,
    pub(crate) span: Span,
    /// The token after it.
    pub(crate) following: Token<'t>,
    following_span: Span,
    /// The end of the last taken token.
    taken: usize,
    /// The number of open parentheses and prefixes.
    pub(crate) nesting: usize,
    /// Values with a name.
    pub(crate) constants: FxHashMap<&'t str, Constant>,
}

/// The value of a var that is not a chain.
#[derive(Clone, Debug)]
pub(crate) enum Constant {
    /// A literal, or a `lambda`.
    Expression(Expression),
    /// A regular expression.
    Pattern(Pattern),
}

pub(crate) fn fail<T>(problem: Problem, span: Span) -> Parsed<T> {
    Err(Box::new((problem, span)))
}

/// Sets a value that has not been set.
pub(crate) fn set<T>(
    slot: &mut Option<T>,
    value: T,
    property: &'static str,
    span: Span,
) -> Parsed<()> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => fail(Problem::Twice(property), span),
    }
}

impl<'t> Parser<'t> {
    pub(crate) fn new(text: &'t str) -> Parser<'t> {
        let mut lexer = Lexer::new(text);
        let (token, span) = lexer.next();
        let (following, following_span) = lexer.next();
        Parser {
            text,
            lexer,
            token,
            span,
            following,
            following_span,
            taken: 0,
            nesting: 0,
            constants: FxHashMap::default(),
        }
    }

    /// Takes the next token.
    pub(crate) fn advance(&mut self) -> (Token<'t>, Span) {
        let (newest, newest_span) = self.lexer.next();
        let token = std::mem::replace(
            &mut self.token,
            std::mem::replace(&mut self.following, newest),
        );
        let span = std::mem::replace(
            &mut self.span,
            std::mem::replace(&mut self.following_span, newest_span),
        );
        self.taken = span.end;
        (token, span)
    }

    /// Returns an error: the next token is not the expected one.
    pub(crate) fn unexpected<T>(&self, expected: &'static str) -> Parsed<T> {
        let problem = match &self.token {
            Token::Bad(problem) => problem.clone(),
            Token::End => Problem::Unexpected {
                expected,
                found: "the end of the text".into(),
            },
            _ => Problem::Unexpected {
                expected,
                found: format!("`{}`", shortened(self.written())),
            },
        };
        fail(problem, self.span)
    }

    /// Returns the text of the next token.
    pub(crate) fn written(&self) -> &'t str {
        &self.text[self.span.start..self.span.end]
    }

    /// Returns the text after the next token.
    pub(crate) fn rest(&self) -> &'t str {
        &self.text[self.span.end..]
    }

    /// Checks that no token is left.
    pub(crate) fn end(&self) -> Parsed<()> {
        match self.token {
            Token::End => Ok(()),
            _ => self.unexpected("the end of the text"),
        }
    }

    pub(crate) fn is(&self, symbol: &'static str) -> bool {
        self.token == Token::Symbol(symbol)
    }

    /// Takes this symbol, if it is next.
    pub(crate) fn eat(&mut self, symbol: &'static str) -> bool {
        let found = self.is(symbol);
        if found {
            self.advance();
        }
        found
    }

    pub(crate) fn expect(&mut self, symbol: &'static str, expected: &'static str) -> Parsed<()> {
        match self.eat(symbol) {
            true => Ok(()),
            false => self.unexpected(expected),
        }
    }

    /// True if the next token is this word.
    pub(crate) fn is_word(&self, word: &str) -> bool {
        matches!(self.token, Token::Word(found) if found.eq_ignore_ascii_case(word))
    }

    /// Takes a word.
    pub(crate) fn word(&mut self, expected: &'static str) -> Parsed<(&'t str, Span)> {
        match self.token {
            Token::Word(word) => Ok((word, self.advance().1)),
            _ => self.unexpected(expected),
        }
    }

    /// Takes a literal, a pattern or a `lambda`, if it is next.
    pub(crate) fn constant(&mut self) -> Parsed<Option<Constant>> {
        let is_value = match &self.token {
            Token::Pattern(pattern) => {
                let pattern = pattern.clone();
                self.advance();
                return Ok(Some(Constant::Pattern(pattern)));
            }
            Token::Word(_) => {
                self.is_word("lambda")
                    || self.is_word("TRUE")
                    || self.is_word("FALSE")
                    || self.literal().is_some()
            }
            Token::Text(_) | Token::Integer(_) | Token::Float(_) | Token::Duration(_) => true,
            Token::Symbol(symbol) => *symbol == "-",
            _ => false,
        };
        match is_value {
            true => self.condition().map(Constant::Expression).map(Some),
            false => Ok(None),
        }
    }

    /// Returns the literal of the next token.
    fn literal(&self) -> Option<&Expression> {
        match &self.token {
            Token::Word(word) => match self.constants.get(word)? {
                Constant::Expression(literal) => Some(literal),
                Constant::Pattern(_) => None,
            },
            _ => None,
        }
    }

    /// Takes a string.
    pub(crate) fn string(&mut self) -> Parsed<Arc<str>> {
        if let Some(Expression::Literal(Value::Text(text))) = self.literal() {
            let text = text.clone();
            self.advance();
            return Ok(text);
        }
        match &self.token {
            Token::Text(text) => {
                let text = text.clone();
                self.advance();
                Ok(text)
            }
            _ => self.unexpected("a string in single quotes"),
        }
    }

    /// Takes a key, bare or quoted; fails if there is none.
    pub(crate) fn key(&mut self) -> Parsed<Arc<str>> {
        let (token, span) = self.advance();
        let word = match token {
            Token::Word(word) => word,
            Token::Key(name) => return Ok(name),
            other => unreachable!("{other:?} is not a key"),
        };
        if is_reserved(word) {
            return fail(Problem::Reserved(word.into()), span);
        }
        while self.is(".") && self.touches_word() {
            self.advance();
            self.advance();
        }
        Ok(self.text[span.start..self.taken].into())
    }

    /// True if the next token is adjacent to a word.
    fn touches_word(&self) -> bool {
        matches!(self.following, Token::Word(_))
            && self.taken == self.span.start
            && self.span.end == self.following_span.start
    }

    /// Takes the name of a field or tag: a key or a string.
    pub(crate) fn field(&mut self) -> Parsed<Arc<str>> {
        if let Some(Expression::Literal(Value::Text(_))) = self.literal() {
            return self.string();
        }
        match self.token {
            Token::Word(_) | Token::Key(_) => self.key(),
            Token::Text(_) => self.string(),
            _ => self.unexpected("the name of a field or tag"),
        }
    }

    pub(crate) fn duration(&mut self) -> Parsed<Duration> {
        if let Some(&Expression::Duration(nanos)) = self.literal()
            && let Ok(nanos) = u64::try_from(nanos)
        {
            self.advance();
            return Ok(Duration::from_nanos(nanos));
        }
        match self.token {
            Token::Duration(nanos) => {
                self.advance();
                Ok(Duration::from_nanos(nanos))
            }
            _ => self.unexpected("a duration, such as `10s`"),
        }
    }

    /// Parses a whole number.
    pub(crate) fn count(&mut self) -> Parsed<u64> {
        let known = match (self.literal(), &self.token) {
            (Some(Expression::Literal(Value::Integer(number))), _) => u64::try_from(*number).ok(),
            (_, Token::Integer(number)) => Some(*number),
            _ => None,
        };
        match known {
            Some(number) => {
                self.advance();
                Ok(number)
            }
            None => self.unexpected("a whole number"),
        }
    }

    pub(crate) fn number(&mut self) -> Parsed<f64> {
        let known = match self.literal() {
            Some(Expression::Literal(Value::Float(number))) => Some(*number),
            Some(Expression::Literal(Value::Integer(number))) => Some(*number as f64),
            _ => None,
        };
        if let Some(number) = known {
            self.advance();
            return Ok(number);
        }
        let sign = if self.eat("-") { -1.0 } else { 1.0 };
        let number = match self.token {
            Token::Integer(number) => number as f64,
            Token::Float(number) => number,
            _ => return self.unexpected("a number"),
        };
        self.advance();
        Ok(sign * number)
    }

    /// Parses arguments in parentheses, separated by commas; returns none without parentheses.
    pub(crate) fn arguments(
        &mut self,
        mut each: impl FnMut(&mut Parser<'t>) -> Parsed<()>,
    ) -> Parsed<()> {
        if !self.eat("(") || self.eat(")") {
            return Ok(());
        }
        loop {
            each(self)?;
            if !self.eat(",") {
                return self.expect(")", "`,` or `)`");
            }
        }
    }

    /// Parses one argument in parentheses.
    pub(crate) fn argument<T>(
        &mut self,
        one: impl FnOnce(&mut Parser<'t>) -> Parsed<T>,
    ) -> Parsed<T> {
        self.expect("(", "`(`")?;
        let value = one(self)?;
        self.expect(")", "`)`")?;
        Ok(value)
    }

    /// Takes `.` and the name of one of these properties, if they are next.
    pub(crate) fn property(
        &mut self,
        names: &'static [&'static str],
    ) -> Parsed<Option<(&'static str, Span)>> {
        self.quiet()?;
        let Token::Word(word) = self.following else {
            return Ok(None);
        };
        let name = names.iter().find(|name| **name == word);
        let found = name.filter(|_| self.eat("."));
        Ok(found.map(|name| (*name, self.advance().1)))
    }

    /// Takes `.quiet()`, which every node accepts without effect: logging is rate-limited anyway.
    pub(crate) fn quiet(&mut self) -> Parsed<()> {
        while self.following == Token::Word("quiet") && self.eat(".") {
            self.advance();
            self.nothing()?;
        }
        Ok(())
    }

    /// Reads empty parentheses, or none.
    pub(crate) fn nothing(&mut self) -> Parsed<()> {
        match self.eat("(") {
            true => self.expect(")", "`)`"),
            false => Ok(()),
        }
    }

    /// Reads a number, string or boolean.
    pub(crate) fn value(&mut self) -> Parsed<Value> {
        let span = self.span;
        match self.constant()? {
            Some(Constant::Expression(Expression::Literal(value))) => Ok(value),
            Some(Constant::Expression(Expression::Duration(nanos))) => Ok(Value::Integer(nanos)),
            _ => {
                let found = "something else".to_owned();
                let expected = "a number, a string, TRUE or FALSE";
                fail(Problem::Unexpected { expected, found }, span)
            }
        }
    }

    /// Reads any number of arguments of one kind.
    pub(crate) fn list<T>(&mut self, one: impl Fn(&mut Parser<'t>) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut list = Vec::new();
        self.arguments(|parser| {
            list.push(one(parser)?);
            Ok(())
        })?;
        Ok(list)
    }

    /// Reads the names in an `as`; `span` is the position of the property.
    pub(crate) fn names(&mut self, expected: usize, span: Span) -> Parsed<Vec<Arc<str>>> {
        let names = self.list(Parser::string)?;
        let found = names.len();
        match found == expected {
            true => Ok(names),
            false => fail(Problem::Names { expected, found }, span),
        }
    }

    /// Reads the only name in an `as`; `span` is the position of the property.
    pub(crate) fn one_name(&mut self, span: Span) -> Parsed<Arc<str>> {
        let mut names = self.names(1, span)?;
        Ok(names.remove(0))
    }
}

/// Returns a shortened text.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into(),
    }
}
