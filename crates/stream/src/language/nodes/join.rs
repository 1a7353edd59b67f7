//! `join` and `union`: nodes with several inputs.

use super::super::lexer::{Span, Token};
use super::super::parser::{Parsed, Parser, set};
use super::super::program::{Chain, Program};
use super::{JOIN, UNION, missing};
use crate::Value;
use crate::pipeline::{Fill, Join, What};

impl<'t> Program<'t> {
    pub(super) fn union(&mut self, inputs: &mut Vec<usize>) -> Parsed<What> {
        self.others(inputs, |_, _| Ok(false))?;
        let mut rename = None;
        while let Some((property, span)) = self.parser.property(UNION)? {
            let name = self.parser.argument(Parser::string)?;
            set(&mut rename, name, property, span)?;
        }
        Ok(What::Union { rename })
    }

    /// The vars of other chains, in parentheses; what else stands there, `special` takes. Returns their
    /// names.
    fn others(
        &mut self,
        inputs: &mut Vec<usize>,
        mut special: impl FnMut(&mut Parser<'t>, &'t str) -> Parsed<bool>,
    ) -> Parsed<Vec<&'t str>> {
        let mut others = Vec::new();
        self.parser.arguments(|parser| {
            let (word, span) = parser.word("the name of a var")?;
            if !special(parser, word)? {
                others.push((word, span));
            }
            Ok(())
        })?;
        for (name, span) in &others {
            inputs.push(self.used(name, *span)?);
        }
        Ok(others.into_iter().map(|(name, _)| name).collect())
    }

    pub(super) fn join(
        &mut self,
        span: Span,
        chain: &Chain<'t>,
        inputs: &mut Vec<usize>,
    ) -> Parsed<What> {
        let (mut tolerance, mut names) = (None, None);
        let others = self.others(inputs, |parser, word| {
            let given = word == "tolerance" && matches!(parser.token, Token::Duration(_));
            if given {
                set(&mut tolerance, parser.duration()?, "tolerance", span)?;
            }
            Ok(given)
        })?;
        if others.is_empty() {
            return missing("join", "the var of another chain: `m1 | join(m2)`", span);
        }
        let (mut delimiter, mut stream_name, mut fill, mut on) = (None, None, None, None);
        let parser = &mut self.parser;
        while let Some((property, span)) = parser.property(JOIN)? {
            match property {
                "as" => set(&mut names, parser.names(inputs.len(), span)?, "as", span)?,
                "on" => set(&mut on, parser.list(Parser::string)?, "on", span)?,
                "fill" => set(&mut fill, parser.argument(Parser::fill)?, "fill", span)?,
                "tolerance" => {
                    let duration = parser.argument(Parser::duration)?;
                    set(&mut tolerance, duration, "tolerance", span)?;
                }
                _ => {
                    let text = parser.argument(Parser::string)?;
                    let slot = match property {
                        "delimiter" => &mut delimiter,
                        _ => &mut stream_name,
                    };
                    set(slot, text, property, span)?;
                }
            }
        }
        let names = names.unwrap_or_else(|| {
            let first = std::iter::once(chain.var.unwrap_or("left"));
            first.chain(others).map(Into::into).collect()
        });
        Ok(What::Join(Join {
            delimiter: delimiter.unwrap_or_else(|| ".".into()),
            stream_name,
            fill: fill.unwrap_or_default(),
            on: on.unwrap_or_default(),
            ..Join::new(names, tolerance.unwrap_or_default())
        }))
    }
}

impl Parser<'_> {
    /// What fills the fields of an input without a partner.
    fn fill(&mut self) -> Parsed<Fill> {
        Ok(match self.value()? {
            Value::Text(word) if &*word == "null" => Fill::Null,
            Value::Text(word) if &*word == "none" => Fill::None,
            value => Fill::Value(value),
        })
    }
}
