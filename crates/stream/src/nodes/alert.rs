//! `alert`: passes on points that raise an alert, and points at which an alert ends.
//!
//! Each group has a level, OK at first. A point gets the highest level whose condition is true for the point. There is
//! one exception: if the level of the previous point has a reset condition, and this condition is false, the point
//! keeps that level. Points of a level other than OK are passed on, and so is the point at which a group returns to OK.
//! A window has the highest level of its points, or with `.all()` the lowest. A point for which a condition has no
//! result changes nothing.

mod level;
mod operator;
pub(crate) mod services;

use super::log;
use crate::expression::Expression;
use crate::language::{Call, Parsed, Parser, Problem, Program, fail, set};
use crate::node::definition::AnyDefinition;
use crate::node::post::poster;
use crate::node::post_to::PostTo;
use crate::node::queue::Counts;
use crate::node::sink::{OVERFLOW, overflow, write_overflow};
use crate::node::{Built, Context, Definition, Kind};
use crate::pipeline::{Chain, Rule, Template, Time, Writer};
use corsair::edge::Overflow;
use operator::{AlertOperator, Handler};
pub use services::AlertService;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// See the [module](self).
pub(crate) const KIND: Kind = Kind {
    names: &["alert"],
    properties: &PROPERTIES,
    parse,
};

/// Properties that are neither conditions nor additions.
const OTHERS: [&str; 13] = [
    "endpoint",
    "header",
    "basic",
    "token",
    OVERFLOW,
    "id",
    "message",
    "details",
    "stateChangesOnly",
    "noRecoveries",
    "all",
    "log",
    "post",
];

/// The number of properties before [`OTHERS`]. The next constant is the number of all properties.
const BEFORE: usize = Alert::CONDITIONS.len() + AddedColumn::ALL.len() + services::PROPERTIES.len();
const COUNT: usize = BEFORE + OTHERS.len();

/// The names of all properties.
const PROPERTIES: [&str; COUNT] = {
    let (conditions, adds) = (Alert::CONDITIONS.len(), AddedColumn::ALL.len());
    let mut all = [""; COUNT];
    let mut at = 0;
    while at < all.len() {
        all[at] = if at < conditions {
            Alert::CONDITIONS[at]
        } else if at < conditions + adds {
            AddedColumn::ALL[at - conditions].0
        } else if at < BEFORE {
            services::PROPERTIES[at - conditions - adds]
        } else {
            OTHERS[at - BEFORE]
        };
        at += 1;
    }
    all
};

/// Passes on the points that raise an alert. A point has the highest level whose condition is true.
///
/// ```
/// use corsair_stream::expression::key;
/// use corsair_stream::pipeline::{Alert, Pipeline};
///
/// let pipeline = Pipeline::build(|stream| {
///     let hot = Alert::new().crit(key("value").gt(90)).state_changes_only();
///     stream.from().measurement("cpu").alert(hot);
/// })?;
/// assert_eq!(
///     pipeline.to_string(),
///     "stream | from().measurement('cpu') | alert().crit(value > 90).stateChangesOnly()",
/// );
/// # Ok::<(), corsair_stream::pipeline::PipelineError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Alert {
    /// The [template](crate::pipeline::Template) of the alert's id; default: `{{ .Name }}:{{ .Group }}`.
    pub id: Option<Arc<str>>,
    /// The template of the alert's message; default: `{{ .ID }} is {{ .Level }}`.
    pub message: Option<Arc<str>>,
    /// Conditions of the levels INFO, WARNING and CRITICAL.
    pub levels: [Option<Expression>; 3],
    /// Conditions under which a level ends. With `None` a level ends when its condition is false.
    pub resets: [Option<Expression>; 3],
    /// Passes on a point only if its level differs from the previous point's, or if this time has passed since the last
    /// point that was passed on. With zero, only a different level causes a point to be passed on.
    pub changes_only: Option<Duration>,
    /// True if a window has the lowest level of its points, not the highest.
    pub all: bool,
    /// True if the return to OK is not passed on.
    pub no_recoveries: bool,
    /// Fields and tags that are added to the point, with their names.
    pub adds: Vec<(AddedColumn, Arc<str>)>,
    /// Files to which alerts are appended as JSON, one per line.
    pub logs: Vec<Arc<str>>,
    /// Receivers to which alerts are posted as JSON.
    pub posts: Vec<PostTo>,
    /// Services that receive alerts in a form of their own.
    pub services: Vec<AlertService>,
    /// Topics, which stand for the endpoints that name them.
    pub topics: Vec<Arc<str>>,
    /// The policy of the full disk buffer of a receiver; `None`: the task's.
    pub overflow: Option<Overflow>,
}

/// A field or tag that an alert adds to a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddedColumn {
    /// `.levelField`
    LevelField,
    /// `.levelTag`
    LevelTag,
    /// `.idField`
    IdField,
    /// `.idTag`
    IdTag,
    /// `.messageField`
    MessageField,
    /// `.durationField`: nanoseconds since the level was last OK.
    DurationField,
    /// `.previousField`: the level of the previous point.
    PreviousField,
}

impl AddedColumn {
    /// All columns, each with its name in the language.
    pub const ALL: [(&'static str, AddedColumn); 7] = [
        ("levelField", AddedColumn::LevelField),
        ("levelTag", AddedColumn::LevelTag),
        ("idField", AddedColumn::IdField),
        ("idTag", AddedColumn::IdTag),
        ("messageField", AddedColumn::MessageField),
        ("durationField", AddedColumn::DurationField),
        ("previousField", AddedColumn::PreviousField),
    ];

    /// Returns the column's name in the language.
    pub fn name(self) -> &'static str {
        let mut all = AddedColumn::ALL.iter();
        all.find(|(_, added)| *added == self)
            .map_or("", |(name, _)| name)
    }

    /// True if the column is a text made from a template.
    pub(crate) fn is_text(self) -> bool {
        matches!(self, AddedColumn::IdField | AddedColumn::IdTag | AddedColumn::MessageField)
    }

    /// True if the column is a tag, false if it is a field.
    pub fn is_tag(self) -> bool {
        matches!(self, AddedColumn::LevelTag | AddedColumn::IdTag)
    }
}

impl Alert {
    /// The names of the conditions in the language: the conditions of the levels, the lowest level first, then the
    /// resets of the levels.
    pub const CONDITIONS: [&'static str; 6] = [
        "info",
        "warn",
        "crit",
        "infoReset",
        "warnReset",
        "critReset",
    ];

    /// Creates an alert without conditions.
    pub fn new() -> Alert {
        Alert::default()
    }

    /// Sets the template of the alert's id.
    #[must_use]
    pub fn id(self, id: impl Into<Arc<str>>) -> Alert {
        let id = Some(id.into());
        Alert { id, ..self }
    }

    fn level(mut self, level: usize, condition: impl Into<Expression>) -> Alert {
        self.levels[level] = Some(condition.into());
        self
    }

    /// Sets the condition of the level INFO.
    #[must_use]
    pub fn info(self, condition: impl Into<Expression>) -> Alert {
        self.level(0, condition)
    }

    /// Sets the condition of the level WARNING.
    #[must_use]
    pub fn warn(self, condition: impl Into<Expression>) -> Alert {
        self.level(1, condition)
    }

    /// Sets the condition of the level CRITICAL.
    #[must_use]
    pub fn crit(self, condition: impl Into<Expression>) -> Alert {
        self.level(2, condition)
    }

    /// Passes on only points at which the level changes.
    #[must_use]
    pub fn state_changes_only(self) -> Alert {
        let changes_only = Some(Duration::ZERO);
        Alert {
            changes_only,
            ..self
        }
    }

    /// Adds a field or tag to the point.
    #[must_use]
    pub fn add(mut self, what: AddedColumn, name: impl Into<Arc<str>>) -> Alert {
        self.adds.push((what, name.into()));
        self
    }

    /// Returns the conditions with their names: the levels, the lowest first, then the resets.
    pub fn conditions(&self) -> impl Iterator<Item = (&'static str, &Expression)> {
        let all = self.levels.iter().chain(&self.resets);
        Alert::CONDITIONS
            .into_iter()
            .zip(all)
            .filter_map(|(name, condition)| Some((name, condition.as_ref()?)))
    }
}

impl<'p> Chain<'p> {
    /// Adds an `alert`, which passes on points that raise an alert, and points at which an alert ends.
    pub fn alert(self, alert: Alert) -> Chain<'p> {
        self.then(alert)
    }
}

fn parse(program: &mut Program<'_>, _: &mut Call<'_>) -> Parsed<AnyDefinition> {
    let surplus = |parser: &mut Parser<'_>| {
        let node = "alert";
        let takes = "nothing in parentheses: its conditions follow, as in `.crit(value > 10)`";
        fail(Problem::Surplus { node, takes }, parser.span)
    };
    program.parser.arguments(surplus)?;
    properties(&mut program.parser).map(AnyDefinition::from)
}

/// Reads the properties of an `alert`, in any order.
pub(super) fn properties(parser: &mut Parser<'_>) -> Parsed<Alert> {
    let mut alert = Alert::new();
    while let Some((property, span)) = parser.property(KIND.properties)? {
        let mut conditions = Alert::CONDITIONS.iter();
        if let Some(place) = conditions.position(|condition| *condition == property) {
            let slot = match place {
                0..3 => &mut alert.levels[place],
                _ => &mut alert.resets[place - 3],
            };
            set(slot, parser.argument(Parser::condition)?, property, span)?;
            continue;
        }
        if let Some(kind) = services::kind(property) {
            parser.nothing()?;
            alert.services.push(AlertService::new(kind));
            continue;
        }
        match property {
            "stateChangesOnly" => {
                let mut after = Duration::ZERO;
                parser.arguments(|parser| {
                    after = parser.duration()?;
                    Ok(())
                })?;
                set(&mut alert.changes_only, after, property, span)?;
            }
            OVERFLOW => set(&mut alert.overflow, overflow(parser)?, property, span)?,
            "post" => {
                let url = parser.list(Parser::string)?.into_iter().next();
                alert.posts.push(url.unwrap_or_default().into());
            }
            "topic" => alert.topics.push(parser.argument(Parser::string)?),
            _ if services::PROPERTIES.contains(&property) => match alert.services.last_mut() {
                Some(service) => service.property(parser, property, span)?,
                None => return fail(Problem::BeforeService { property }, span),
            },
            _ if PostTo::PROPERTIES.contains(&property) => match alert.posts.last_mut() {
                Some(post) => post.property(parser, property, span)?,
                None => return fail(Problem::BeforePost { property }, span),
            },
            "noRecoveries" | "all" => {
                parser.nothing()?;
                alert.no_recoveries |= property == "noRecoveries";
                alert.all |= property == "all";
            }
            _ => {
                let text = parser.argument(Parser::string)?;
                match property {
                    "id" => set(&mut alert.id, text, property, span)?,
                    "message" => set(&mut alert.message, text, property, span)?,
                    "log" => alert.logs.push(text),
                    "details" => {}
                    _ => {
                        let mut all = AddedColumn::ALL.iter();
                        let found = all.find(|(name, _)| *name == property);
                        alert.adds.extend(found.map(|(_, added)| (*added, text)));
                    }
                }
            }
        }
    }
    Ok(alert)
}

impl Definition for Alert {
    fn name(&self) -> &'static str {
        "alert"
    }

    fn check(&mut self) -> Result<(), Rule> {
        if self.levels.iter().all(Option::is_none) {
            return Err(Rule::NoCondition);
        }
        for text in [&self.id, &self.message].into_iter().flatten() {
            Template::new(text).map_err(Rule::Template)?;
        }
        let services = self.services.iter().map(|service| &service.to);
        self.posts.iter().chain(services).try_for_each(PostTo::check)
    }

    fn expressions(&mut self) -> Vec<&mut Expression> {
        let conditions = self.levels.iter_mut().chain(&mut self.resets);
        conditions.flatten().collect()
    }

    fn write(&self, out: &mut Writer<'_, '_>) -> fmt::Result {
        out.arguments(&[])?;
        for (level, condition) in self.conditions() {
            out.property(level, &[condition])?;
        }
        out.text("id", self.id.as_ref())?;
        out.text("message", self.message.as_ref())?;
        match self.changes_only {
            None => {}
            Some(Duration::ZERO) => out.flag("stateChangesOnly", true)?,
            Some(after) => out.property("stateChangesOnly", &[&Time(after)])?,
        }
        out.flag("all", self.all)?;
        out.flag("noRecoveries", self.no_recoveries)?;
        for (added, name) in &self.adds {
            out.text(added.name(), Some(name))?;
        }
        for path in &self.logs {
            out.text("log", Some(path))?;
        }
        for post in &self.posts {
            out.text("post", Some(&post.url))?;
            post.write(out)?;
        }
        for service in &self.services {
            service.write(out)?;
        }
        for topic in &self.topics {
            out.text("topic", Some(topic))?;
        }
        write_overflow(self.overflow, out)
    }

    fn build(&self, context: &Context<'_>) -> Built {
        let files = self.logs.iter().map(|path| {
            let counts = Counts::default();
            Handler::new(path.to_string(), log::file(context, path), counts, None)
        });
        let posts = self.posts.iter().map(|post| (post.label(), post.resolved(context), None));
        let services = self.services.iter().map(|service| {
            let mut endpoint = service.to.resolved(context);
            let form = service.form(&mut endpoint);
            (service.to.label(), endpoint, Some(form))
        });
        let topics = self.topics.iter();
        let topics = topics.flat_map(|topic| context.delivery.endpoints.of_topic(topic));
        let topics = topics.map(|(name, mut endpoint)| {
            let kind = endpoint.service.as_deref().and_then(services::kind);
            let form = kind.map(|kind| AlertService::new(kind).form(&mut endpoint));
            (name.to_owned(), endpoint, form)
        });
        let receivers = posts.chain(services).chain(topics).enumerate();
        let receivers = receivers.map(|(place, (name, endpoint, form))| {
            let counts = Counts::default();
            let queue = context.outlet(place, &counts, None, poster(context, endpoint));
            Handler::new(name, queue, counts, form)
        });
        let handlers = files.chain(receivers).collect();
        Built::from(AlertOperator::new(self, context, handlers))
    }

    fn posts(&self) -> Vec<&PostTo> {
        let services = self.services.iter().map(|service| &service.to);
        self.posts.iter().chain(services).collect()
    }

    fn files(&self) -> &[Arc<str>] {
        &self.logs
    }
}
