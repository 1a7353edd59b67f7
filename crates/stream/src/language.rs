//! Pipelines as text.
//!
//! ```
//! let pipeline = corsair_stream::language::parse(
//!     "stream | from().measurement('m1') | where(value > 10 AND host = 'a')
//!             | window(10s, every 10s) | count(value) | http_out('counts')",
//! )?;
//! assert_eq!(pipeline.nodes().len(), 5);
//! # Ok::<(), corsair_stream::language::LanguageError>(())
//! ```
//!
//! # Grammar
//!
//! The grammar is in EBNF; quoted words are literal. White space and comments (`//` or `#` to the end of the line) may
//! appear between all tokens.
//!
//! ```text
//! program    = { "var" name "=" ( chain | constant ) | chain } ;
//! constant   = literal | pattern | "lambda" ":" expression ;
//! chain      = ( "stream" ( "|" | "." ) from | name ) { ( "|" | "." ) node } ;
//! from       = "from" [ "(" [ string ] ")" ] { "." from-property } ;
//! from-property
//!            = ( "database" | "retentionPolicy" | "measurement" ) "(" string ")"
//!            | "groupByMeasurement" "()" | where | groupBy ;
//! node       = where | groupBy | window | aggregate | eval | default | derivative | state | union | join
//!            | alert | sink ;
//! where      = "where" "(" condition ")" ;
//! groupBy    = "groupBy" "(" tags { "," tags } ")"
//!              { "." ( "exclude" "(" strings ")" | "byMeasurement" "()" ) } ;
//! tags       = field | "*" | "[" field { "," field } "]" ;
//! window     = "window" "(" [ "every" ] duration { "," [ "every" ] duration } ")"
//!              { "." "every" "(" duration ")" }
//!            | "window" "()" { "." ( ( "period" | "every" ) "(" duration ")" | "align" "()"
//!                                  | ( "periodCount" | "everyCount" ) "(" integer ")"
//!                                  | "fillPeriod" "()" ) } ;
//! aggregate  = ( "count" | "sum" | "mean" | "median" | "min" | "max" | "first" | "last" | "spread"
//!              | "stddev" | "distinct" ) "(" field ")" { as | "." "usePointTimes" "()" }
//!            | "percentile" "(" field "," number ")" { as | "." "usePointTimes" "()" } ;
//! eval       = "eval" "(" condition { "," condition } ")"
//!              { as | "." ( "keep" | "tags" ) "(" [ strings ] ")" | "." "quiet" "()" } ;
//! default    = "default" "()" { "." "field" "(" string "," literal ")"
//!                             | "." "tag" "(" string "," string ")" } ;
//! derivative = "derivative" "(" field ")"
//!              { as | "." "unit" "(" duration ")" | "." "nonNegative" "()" } ;
//! state      = "stateDuration" "(" condition ")" { as | "." "unit" "(" duration ")" }
//!            | "stateCount" "(" condition ")" [ as ] ;
//! union      = "union" "(" name { "," name } ")" [ "." "rename" "(" string ")" ] ;
//! join       = "join" "(" name { "," name } [ "," "tolerance" duration ] ")"
//!              { as | "." "tolerance" "(" duration ")" | "." "on" "(" strings ")"
//!              | "." "fill" "(" literal ")" | "." ( "delimiter" | "streamName" ) "(" string ")" } ;
//! alert      = "alert" "()" { "." ( ( "info" | "warn" | "crit" | "infoReset" | "warnReset"
//!                                   | "critReset" ) "(" condition ")"
//!                                 | ( "id" | "message" | "log" | "post" | "levelField" | "levelTag"
//!                                   | "idField" | "idTag" | "messageField" | "durationField"
//!                                   | "previousField" ) "(" string ")"
//!                                 | "stateChangesOnly" "(" [ duration ] ")"
//!                                 | "noRecoveries" "()" ) } ;
//! sink       = "log" [ "(" [ string ] ")" ] [ "." "prefix" "(" string ")" ]
//!            | ( "http_out" | "httpOut" | "http_post" | "httpPost" ) "(" string ")" ;
//! as         = "." "as" "(" strings ")" ;
//! strings    = string { "," string } ;
//!
//! condition  = [ "lambda" ":" ] expression ;
//! expression = conjunction { ( "OR" | "||" ) conjunction } ;
//! conjunction
//!            = negation { ( "AND" | "&&" ) negation } ;
//! negation   = { "NOT" } comparison ;
//! comparison = sum [ ( "=" | "==" | "!=" | "<>" | "<" | "<=" | ">" | ">=" ) sum
//!                  | ( "=~" | "!~" ) ( pattern | name ) ] ;
//! sum        = product { ( "+" | "-" ) product } ;
//! product    = signed { ( "*" | "/" | "%" ) signed } ;
//! signed     = { "-" | "!" } primary ;
//! primary    = key | string | number | duration | "TRUE" | "FALSE"
//!            | "unsigned" "(" integer ")" | function "(" [ expression { "," expression } ] ")"
//!            | "(" expression ")" ;
//!
//! field      = key | string ;
//! key        = name { "." name } | '"' { character } '"' ;
//! string     = "'" { character } "'" | "'''" { character } "'''" ;
//! pattern    = "/" { character } "/" ;
//! function   = a name of [`Function`](crate::expression::Function) ;
//! number     = integer | digits "." digits [ exponent ] | digits exponent ;
//! integer    = digits ;
//! exponent   = ( "e" | "E" ) [ "+" | "-" ] digits ;
//! duration   = digits ( "ns" | "u" | "µ" | "ms" | "s" | "m" | "h" | "d" | "w" ) ;
//! name       = ( letter | "_" ) { letter | digit | "_" } ;
//! ```
//!
//! A var with a constant may be used wherever a constant may; any other bare word is a key.
//!
//! Nothing may be given twice, and nothing that a node requires may be left out. A chain that is only a name must
//! follow a `var`, and every var must be used. The rules of [`Rule`](crate::pipeline::Rule) are checked afterwards.
//!
//! `AND OR NOT TRUE FALSE` may be written in lower case; keys with these names, and with the names `lambda` and
//! `unsigned`, must be in double quotes. A dotted key contains no space. In quotes, a backslash escapes a quote of the
//! same kind or another backslash; before any other character it means itself. An integer beyond 2⁶³ − 1 is unsigned; a
//! minus before a number belongs to it. Parentheses, `NOT` and signs nest at most
//! [`MAX_DEPTH`](crate::expression::Expression::MAX_DEPTH) deep, and at most
//! [`MAX_CHAIN`](crate::expression::Expression::MAX_CHAIN) operators follow one another.
//!
//! # What is left out
//!
//! - `window(10s)`: `every` is the period.
//! - `count(value)`: the result has the name of the function.
//! - `window(10s)` is a grid: windows end at multiples of `every`, and the last one is sent when the stream ends.
//!   `window().period(10s)` begins with the first point of its group, as in kapacitor.
//! - `m1 | join(m2)`: the fields get the names of the vars as prefixes, and `left` if the chain begins with `stream`;
//!   the tolerance is zero.

mod error;
mod expression;
mod lexer;
mod not_here;
mod parser;
mod program;
mod span;
mod statements;

pub use error::{LanguageError, Problem};
pub use expression::parse_expression;
pub(crate) use lexer::Token;
pub(crate) use parser::{Parsed, Parser, fail, set};
pub(crate) use program::{Call, Program};
pub(crate) use span::Span;
pub use statements::parse;
