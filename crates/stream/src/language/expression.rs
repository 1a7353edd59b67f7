//! Expressions, by precedence climbing.

use super::error::{LanguageError, Problem, nearest};
use super::lexer::Token;
use super::not_here::FUNCTIONS_NOT_HERE;
use super::parser::{Constant, Parsed, Parser, fail};
use crate::Value;
use crate::expression::{Binary, Expression, Function, Level, Pattern, Unary};

/// An expression and its nesting depth.
type Measured = (Expression, usize);

/// Parses an expression, such as `value > 10 AND host = 'a'`. O(text).
///
/// # Errors
/// The first error with its position.
pub fn parse_expression(text: &str) -> Result<Expression, LanguageError> {
    let mut parser = Parser::new(text);
    parser
        .condition()
        .and_then(|expression| parser.end().map(|()| expression))
        .map_err(|failure| LanguageError::new(text, *failure))
}

impl Parser<'_> {
    /// Parses an expression, with or without `lambda:`.
    pub(crate) fn condition(&mut self) -> Parsed<Expression> {
        if self.is_word("lambda") && self.following == Token::Symbol(":") {
            self.advance();
            self.advance();
        }
        let begin = self.span;
        let (expression, _) = self.operation(Level::Or)?;
        match expression.is_too_deep() {
            true => fail(Problem::Deep, begin),
            false => Ok(expression),
        }
    }

    /// Parses operators that bind at least this tightly.
    fn operation(&mut self, least: Level) -> Parsed<Measured> {
        let (mut left, mut depth) = self.prefixed(least)?;
        loop {
            if Level::Compare >= least
                && let Token::Symbol(symbol @ ("=~" | "!~")) = self.token
            {
                let (_, span) = self.advance();
                let pattern = self.pattern()?;
                depth += 1;
                left = Expression::Match(Box::new(left), pattern, symbol == "=~");
                if depth > Expression::MAX_CHAIN {
                    return fail(Problem::Deep, span);
                }
                if matches!(self.token, Token::Symbol("=~" | "!~")) {
                    return fail(Problem::Chained, self.span);
                }
            }
            let Some(operator) = self.operator().filter(|next| next.level() >= least) else {
                break;
            };
            let (_, span) = self.advance();
            let (right, other) = self.operation(operator.operands().1)?;
            let compares = |next: Binary| next.level() == Level::Compare;
            if compares(operator) && self.operator().is_some_and(compares) {
                return fail(Problem::Chained, self.span);
            }
            depth = depth.max(other) + 1;
            left = Expression::Binary(operator, Box::new(left), Box::new(right));
            if depth > Expression::MAX_CHAIN {
                return fail(Problem::Deep, span);
            }
        }
        Ok((left, depth))
    }

    /// Returns the next operator.
    fn operator(&self) -> Option<Binary> {
        let symbol = match self.token {
            Token::Symbol(symbol) => symbol,
            Token::Word(_) if self.is_word("AND") => "&&",
            Token::Word(_) if self.is_word("OR") => "||",
            _ => return None,
        };
        Some(match symbol {
            "+" => Binary::Add,
            "-" => Binary::Subtract,
            "*" => Binary::Multiply,
            "/" => Binary::Divide,
            "%" => Binary::Remainder,
            "=" | "==" => Binary::Equal,
            "!=" | "<>" => Binary::NotEqual,
            "<" => Binary::Less,
            "<=" => Binary::LessOrEqual,
            ">" => Binary::Greater,
            ">=" => Binary::GreaterOrEqual,
            "&&" => Binary::And,
            "||" => Binary::Or,
            _ => return None,
        })
    }

    /// Parses an operand with an optional sign, `!` or `NOT`.
    fn prefixed(&mut self, least: Level) -> Parsed<Measured> {
        let (operator, binds) = match self.token {
            Token::Symbol("-") => (Unary::Minus, Level::Minus),
            Token::Symbol("!") => (Unary::Not, Level::Minus),
            Token::Word(_) if self.is_word("NOT") => (Unary::Not, Level::Not),
            _ => return self.primary(false),
        };
        if binds < least {
            return fail(Problem::Not, self.span);
        }
        self.advance();
        let number = matches!(
            self.token,
            Token::Integer(_) | Token::Float(_) | Token::Duration(_)
        );
        if operator == Unary::Minus && number {
            return self.primary(true);
        }
        let (operand, depth) = self.nested(|parser| parser.operation(binds))?;
        Ok((Expression::Unary(operator, Box::new(operand)), depth + 1))
    }

    /// Limits the nesting, to protect the stack.
    fn nested(&mut self, inner: impl FnOnce(&mut Self) -> Parsed<Measured>) -> Parsed<Measured> {
        if self.nesting == Expression::MAX_DEPTH {
            return fail(Problem::Deep, self.span);
        }
        self.nesting += 1;
        let result = inner(self);
        self.nesting -= 1;
        result
    }

    /// Parses a literal, a key, or an expression in parentheses. A minus directly before a number
    /// belongs to it.
    fn primary(&mut self, negative: bool) -> Parsed<Measured> {
        let expression = match self.token {
            Token::Integer(number) => self.integer(number, negative)?,
            Token::Float(number) if negative => Expression::Literal(Value::Float(-number)),
            Token::Float(number) => Expression::Literal(Value::Float(number)),
            Token::Duration(nanos) => match signed(nanos, negative) {
                Some(nanos) => Expression::Duration(nanos),
                None => return self.beyond(),
            },
            Token::Text(ref text) => Expression::Literal(Value::Text(text.clone())),
            Token::Word(_) if self.is_word("TRUE") => Expression::Literal(Value::Boolean(true)),
            Token::Word(_) if self.is_word("FALSE") => Expression::Literal(Value::Boolean(false)),
            Token::Word(_) if self.is_word("unsigned") && self.following == Token::Symbol("(") => {
                self.advance();
                self.advance();
                let Token::Integer(number) = self.token else {
                    return self.unexpected("a whole number");
                };
                self.advance();
                self.expect(")", "`)`")?;
                return Ok((Expression::Literal(Value::Unsigned(number)), 0));
            }
            Token::Word(name) if self.following == Token::Symbol("(") => {
                return self.nested(|parser| parser.call(name));
            }
            Token::Word(name) if let Some(constant) = self.constants.get(name) => {
                let constant = constant.clone();
                if negative {
                    return self.unexpected("a number");
                }
                self.advance();
                return match constant {
                    Constant::Expression(expression) => Ok((expression, 1)),
                    Constant::Pattern(_) => fail(Problem::PatternAlone, self.span),
                };
            }
            Token::Word(_) | Token::Key(_) => return Ok((Expression::Key(self.key()?), 0)),
            Token::Symbol("(") => {
                self.advance();
                let inner = self.nested(|parser| parser.operation(Level::Or))?;
                self.expect(")", "an operator or `)`")?;
                return Ok(inner);
            }
            _ => return self.unexpected("a key, a number, a string or `(`"),
        };
        self.advance();
        Ok((expression, 0))
    }

    /// Parses the pattern after `=~`.
    fn pattern(&mut self) -> Parsed<Pattern> {
        let pattern = match &self.token {
            Token::Pattern(pattern) => pattern.clone(),
            Token::Word(name) => match self.constants.get(name) {
                Some(Constant::Pattern(pattern)) => pattern.clone(),
                _ => return self.unexpected("a regular expression, such as `/^eu-/`"),
            },
            _ => return self.unexpected("a regular expression, such as `/^eu-/`"),
        };
        self.advance();
        Ok(pattern)
    }

    /// Parses a function and its arguments; the next token is its name.
    fn call(&mut self, name: &str) -> Parsed<Measured> {
        let span = self.span;
        let Some(function) = Function::named(name) else {
            let names = Function::ALL.iter().map(|function| function.name());
            let mut not_here = FUNCTIONS_NOT_HERE.iter();
            let problem = match not_here.find(|(known, _)| *known == name) {
                Some((_, instead)) => Problem::NotHere {
                    node: format!("{name}()"),
                    instead,
                },
                None => Problem::UnknownFunction {
                    name: name.into(),
                    like: nearest(name, names),
                },
            };
            return fail(problem, span);
        };
        self.advance();
        let (mut arguments, mut depth) = (Vec::new(), 0);
        self.arguments(|parser| {
            if function == Function::RegexReplace && arguments.is_empty() {
                let pattern = parser.pattern()?;
                let none = Box::new(Expression::Literal(Value::Boolean(true)));
                arguments.push(Expression::Match(none, pattern, true));
                return Ok(());
            }
            let (argument, deep) = parser.operation(Level::Or)?;
            arguments.push(argument);
            depth = depth.max(deep);
            Ok(())
        })?;
        let found = arguments.len();
        if found != function.arguments() {
            return fail(Problem::Arguments { function, found }, span);
        }
        if function == Function::IsPresent && !matches!(arguments[0], Expression::Key(_)) {
            return fail(Problem::IsPresent, span);
        }
        Ok((Expression::Call(function, arguments), depth + 2))
    }

    fn integer(&self, number: u64, negative: bool) -> Parsed<Expression> {
        let value = match signed(number, negative) {
            Some(number) => Value::Integer(number),
            None if negative => return self.beyond(),
            None => Value::Unsigned(number),
        };
        Ok(Expression::Literal(value))
    }

    /// Fails, because the next number is out of range for its type.
    fn beyond<T>(&self) -> Parsed<T> {
        fail(Problem::Number(self.written().into()), self.span)
    }
}

/// Returns a signed number, if it fits.
fn signed(number: u64, negative: bool) -> Option<i64> {
    match negative {
        true => 0i64.checked_sub_unsigned(number),
        false => i64::try_from(number).ok(),
    }
}
