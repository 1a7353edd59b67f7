//! What nodes with many properties are told.

use super::written_duration;
use crate::Value;
use crate::expression::{Expression, key};
use std::sync::Arc;
use std::time::Duration;

/// A window as kapacitor has them: it begins with the first point of its group, and is handed on when
/// a point comes that lies beyond its end. The one being filled when the stream ends is not handed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// Points of a stretch of time.
    Time {
        /// How far it reaches back.
        period: Duration,
        /// How far windows are apart; zero: one for every point.
        every: Duration,
        /// Whether windows end at multiples of `every`.
        align: bool,
        /// Whether the first one waits until its period is full.
        fill_period: bool,
    },
    /// The last points.
    Count {
        /// How many.
        period: u64,
        /// After how many more there is another.
        every: u64,
        /// Whether the first one waits until there are as many.
        fill_period: bool,
    },
}

/// By what points are grouped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupBy {
    /// These tags, ordered by name.
    pub tags: Vec<Arc<str>>,
    /// All tags that a point has: `groupBy(*)`.
    pub all: bool,
    /// But for these, ordered by name.
    pub except: Vec<Arc<str>>,
    /// The measurement, too.
    pub measurement: bool,
}

/// Fields that are computed from others.
#[derive(Clone, Debug, PartialEq)]
pub struct Eval {
    /// By name, in the order of computation.
    pub fields: Vec<(Arc<str>, Expression)>,
    /// Which results are tags.
    pub tags: Vec<Arc<str>>,
    /// What else of the point is handed on.
    pub keep: Keep,
}

/// Which fields an `eval` hands on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// Its results.
    #[default]
    Results,
    /// Its results, and all fields of the point.
    All,
    /// These, of both.
    These(Vec<Arc<str>>),
}

/// How points of several inputs are joined.
#[derive(Clone, Debug, PartialEq)]
pub struct Join {
    /// What stands before the names of the fields of each input.
    pub names: Vec<Arc<str>>,
    /// Times that belong to the same multiple of it are one time; zero: equal times.
    pub tolerance: Duration,
    /// What stands between those names and the fields'.
    pub delimiter: Arc<str>,
    /// The measurement of the joined points; `None`: that of the first.
    pub stream_name: Option<Arc<str>>,
    /// What becomes of a point that an input has no partner for.
    pub fill: Fill,
    /// Inputs that are grouped by these tags only join each group of those that are grouped by more.
    pub on: Vec<Arc<str>>,
}

/// What becomes of a point that an input has no partner for.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Fill {
    /// It is left out.
    #[default]
    None,
    /// The fields of the others are missing.
    Null,
    /// The fields of the others have this value.
    Value(Value),
}

/// When a point is worth an alert. The highest level whose condition is true counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Alert {
    /// What identifies it, a [template](crate::pipeline::Template); default: `{{ .Name }}:{{ .Group }}`.
    pub id: Option<Arc<str>>,
    /// What it says, a template; default: `{{ .ID }} is {{ .Level }}`.
    pub message: Option<Arc<str>>,
    /// Conditions of the levels INFO, WARNING and CRITICAL.
    pub levels: [Option<Expression>; 3],
    /// Conditions under which a level ends, once it has begun; default: its condition is false.
    pub resets: [Option<Expression>; 3],
    /// Whether a point is handed on only if its level differs from that of the point before; if so,
    /// also after this time, unless it is zero.
    pub changes_only: Option<Duration>,
    /// Whether a window has the lowest level of its points, and not the highest.
    pub all: bool,
    /// Whether the return to OK is handed on.
    pub no_recoveries: bool,
    /// Fields and tags that are added, by what they hold.
    pub adds: Vec<(Added, Arc<str>)>,
    /// Files to which alerts are written as JSON, a line each.
    pub logs: Vec<Arc<str>>,
    /// URLs to which alerts are posted as JSON.
    pub posts: Vec<Arc<str>>,
}

/// What an alert adds to a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
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
    /// `.previousField`: the level of the point before.
    PreviousField,
}

impl Added {
    /// What each is called in the language.
    pub const ALL: [(&'static str, Added); 7] = [
        ("levelField", Added::LevelField),
        ("levelTag", Added::LevelTag),
        ("idField", Added::IdField),
        ("idTag", Added::IdTag),
        ("messageField", Added::MessageField),
        ("durationField", Added::DurationField),
        ("previousField", Added::PreviousField),
    ];

    /// What it is called in the language.
    pub fn name(self) -> &'static str {
        let mut all = Added::ALL.iter();
        all.find(|(_, added)| *added == self)
            .map_or("", |(name, _)| name)
    }

    /// Whether it is a text that is made for each alert.
    pub(crate) fn is_text(self) -> bool {
        matches!(self, Added::IdField | Added::IdTag | Added::MessageField)
    }

    /// Whether it is a tag.
    pub fn is_tag(self) -> bool {
        matches!(self, Added::LevelTag | Added::IdTag)
    }
}

impl Eval {
    /// These fields, and nothing else of the point.
    pub fn new<N: Into<Arc<str>>, E: Into<Expression>>(
        fields: impl IntoIterator<Item = (N, E)>,
    ) -> Eval {
        let field = |(name, expression): (N, E)| (name.into(), expression.into());
        Eval {
            fields: fields.into_iter().map(field).collect(),
            tags: Vec::new(),
            keep: Keep::Results,
        }
    }

    /// The point's fields, too.
    #[must_use]
    pub fn keep(self) -> Eval {
        let keep = Keep::All;
        Eval { keep, ..self }
    }
}

impl Join {
    /// Of inputs whose fields get these names and a point.
    pub fn new<T: Into<Arc<str>>>(names: impl IntoIterator<Item = T>, tolerance: Duration) -> Join {
        Join {
            names: names.into_iter().map(Into::into).collect(),
            tolerance,
            delimiter: ".".into(),
            stream_name: None,
            fill: Fill::None,
            on: Vec::new(),
        }
    }
}

impl Alert {
    /// What the language calls the conditions of the levels, the lowest first, and their resets.
    pub const CONDITIONS: [&'static str; 6] = [
        "info",
        "warn",
        "crit",
        "infoReset",
        "warnReset",
        "critReset",
    ];

    /// No condition yet.
    pub fn new() -> Alert {
        Alert::default()
    }

    /// What identifies it.
    #[must_use]
    pub fn id(self, id: impl Into<Arc<str>>) -> Alert {
        let id = Some(id.into());
        Alert { id, ..self }
    }

    fn level(mut self, level: usize, condition: impl Into<Expression>) -> Alert {
        self.levels[level] = Some(condition.into());
        self
    }

    /// The condition of the level INFO.
    #[must_use]
    pub fn info(self, condition: impl Into<Expression>) -> Alert {
        self.level(0, condition)
    }

    /// The condition of the level WARNING.
    #[must_use]
    pub fn warn(self, condition: impl Into<Expression>) -> Alert {
        self.level(1, condition)
    }

    /// The condition of the level CRITICAL.
    #[must_use]
    pub fn crit(self, condition: impl Into<Expression>) -> Alert {
        self.level(2, condition)
    }

    /// Only points at which the level changes.
    #[must_use]
    pub fn state_changes_only(self) -> Alert {
        let changes_only = Some(Duration::ZERO);
        Alert {
            changes_only,
            ..self
        }
    }

    /// Adds a field or tag.
    #[must_use]
    pub fn add(mut self, what: Added, name: impl Into<Arc<str>>) -> Alert {
        self.adds.push((what, name.into()));
        self
    }

    /// What is not said yet as kapacitor's `deadman` says it, of a node that must give more points than
    /// this in an interval.
    #[must_use]
    pub(crate) fn deadman(mut self, node: &str, threshold: f64, interval: Duration) -> Alert {
        let id = || format!("{{{{ .Group }}}}:{node} for task '{{{{ .TaskName }}}}'").into();
        let interval = i64::try_from(interval.as_nanos()).unwrap_or(i64::MAX);
        let message = || {
            let interval = written_duration(interval);
            let state = r#"{{ if eq .Level "OK" }}alive{{ else }}dead{{ end }}"#;
            let points = r#"{{ index .Fields "emitted" | printf "%0.3f" }}"#;
            format!("{{{{ .ID }}}} is {state}: {points} points/{interval}.").into()
        };
        self.id.get_or_insert_with(id);
        self.message.get_or_insert_with(message);
        self.levels[2].get_or_insert_with(|| key("emitted").le(threshold));
        self
    }

    /// Its conditions with what the language calls them, the lowest level first, then their resets.
    pub fn conditions(&self) -> impl Iterator<Item = (&'static str, &Expression)> {
        let all = self.levels.iter().chain(&self.resets);
        Alert::CONDITIONS
            .into_iter()
            .zip(all)
            .filter_map(|(name, condition)| Some((name, condition.as_ref()?)))
    }
}
