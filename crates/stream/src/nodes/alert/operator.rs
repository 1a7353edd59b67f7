//! The work of an `alert`: the level of each group, and the reported alerts.

use super::level::{Event, GroupLevel, Marks, NAMES, next_level};
use super::services::{Form, Notice};
use super::{AddedColumn, Alert};
use crate::Value;
use crate::batch::{Batch, Flow, Group, Rows, Window};
use crate::block::{Block, Cells, Column, Data, Words};
use crate::json::json;
use crate::node::evaluate::{evaluate, with_field};
use crate::node::faults::Faults;
use crate::node::queue::{Body, Counts, Queue, SavedQueue};
use crate::node::series::Series;
use crate::node::{Context, Counter, Counters, Operator, State};
use crate::pipeline::{AlertField, Template, written_duration};
use corsair::edge::Overflow;
use std::sync::Arc;

/// See the [module](self).
pub(super) struct AlertOperator {
    alert: Alert,
    id: Template,
    message: Template,
    task: Arc<str>,
    levels: Series<GroupLevel>,
    /// The files and receivers of alerts.
    handlers: Vec<Handler>,
    alerts: Counter,
    /// The policy of a full disk buffer.
    overflow: Overflow,
    /// The number of alerts that were passed to handlers; the next alert gets this sequence number.
    handed: u64,
    faults: Faults,
}

/// A receiver of alerts other than the next node.
pub(super) struct Handler {
    /// The file, endpoint or URL. It identifies the handler in a saved state.
    receiver: String,
    queue: Queue,
    counts: Counts,
    /// The format of the service; `None` for a line of JSON.
    form: Option<Form>,
}

impl Handler {
    pub(super) fn new(receiver: String, queue: Queue, counts: Counts, form: Option<Form>) -> Handler {
        Handler {
            receiver,
            queue,
            counts,
            form,
        }
    }
}

/// The texts of an alert.
#[derive(Clone, Default)]
struct Texts {
    id: Arc<str>,
    message: Arc<str>,
}

impl AlertOperator {
    pub(super) fn new(alert: &Alert, context: &Context<'_>, handlers: Vec<Handler>) -> Self {
        let template = |text: &Option<Arc<str>>, default: &str| {
            let text = text.as_deref().unwrap_or(default);
            Template::new(text).expect("the pipeline was checked")
        };
        AlertOperator {
            id: template(&alert.id, "{{ .Name }}:{{ .Group }}"),
            message: template(&alert.message, "{{ .ID }} is {{ .Level }}"),
            alert: alert.clone(),
            task: context.task.clone(),
            levels: Series::new(context.limits),
            handlers,
            alerts: Counter::default(),
            overflow: alert.overflow.unwrap_or(context.delivery.overflow),
            handed: 0,
            faults: context.faults.clone(),
        }
    }

    /// Evaluates the conditions for each row of a batch. Rows without a result are removed.
    fn marks(&self, batch: &mut Batch) -> Marks {
        let conditions = self.alert.levels.iter().chain(&self.alert.resets);
        let conditions: Vec<_> = conditions.collect();
        'again: loop {
            let mut marks = Marks::default();
            for (place, condition) in conditions.iter().enumerate() {
                let Some(condition) = condition else { continue };
                let (rows, found) = evaluate(condition, true, batch, &self.faults, |rows| {
                    condition.marks(&batch.block, rows)
                });
                if rows.len() < batch.rows.len() {
                    // The marks so far belong to more rows, so the evaluation starts again.
                    batch.rows = rows;
                    continue 'again;
                }
                marks[place] = Some(found);
            }
            return marks;
        }
    }

    fn points(&mut self, mut batch: Batch) -> Option<Batch> {
        let marks = self.marks(&mut batch);
        let points = batch.rows.len();
        let state = self.levels.entry(&batch.group, points, GroupLevel::default)?;
        let mut events = Vec::new();
        for (at, row) in batch.rows.iter().enumerate() {
            let level = next_level(&marks, at, state.level);
            let event = state.event(&self.alert, level, batch.block.times[row]);
            events.extend(event.map(|event| Event {
                row: row as u32,
                ..event
            }));
        }
        if events.is_empty() {
            return None;
        }
        self.alerts.add(events.len());
        let rows: Vec<u32> = events.iter().map(|event| event.row).collect();
        let block = batch.block.gather(&rows);
        let texts = self.texts(&block, &batch.group, &events);
        let told = self.with_added(&block, &events, &texts);
        let batch = Batch::all(Arc::new(told), batch.group);
        if !self.handlers.is_empty() {
            for (at, event) in events.iter().enumerate() {
                let row = Rows::Range(at as u32, at as u32 + 1);
                let flow = Flow::Points(batch.with_rows(row));
                self.hand_over(event, batch.block.times[at], &texts[at], &flow);
            }
        }
        Some(batch)
    }

    /// Returns the texts of the rows of a block; empty if they are not used.
    fn texts(&self, block: &Block, group: &Group, events: &[Event]) -> Vec<Texts> {
        let shown = self.alert.adds.iter().any(|(added, _)| added.is_text());
        if self.handlers.is_empty() && !shown {
            return vec![Texts::default(); events.len()];
        }
        let group: Arc<str> = written_group(group).into();
        let texts = events.iter().enumerate();
        texts
            .map(|(at, event)| self.texts_of(block, at, &group, event))
            .collect()
    }

    fn texts_of(&self, block: &Block, row: usize, group: &Arc<str>, event: &Event) -> Texts {
        let id = self.fill(&self.id, block, row, group, event, "");
        let message = self.fill(&self.message, block, row, group, event, &id);
        Texts { id, message }
    }

    fn window(&mut self, mut window: Window) -> Option<Window> {
        let group = window.batches[0].group.clone();
        let marks: Vec<Marks> = window
            .batches
            .iter_mut()
            .map(|batch| self.marks(batch))
            .collect();
        let points = window.batches.iter().map(|batch| batch.rows.len()).sum();
        let state = self.levels.entry(&group, points, GroupLevel::default)?;
        let mut worst: Option<(u8, usize, usize)> = None;
        let mut lowest = u8::MAX;
        for (place, (batch, marks)) in window.batches.iter().zip(&marks).enumerate() {
            for at in 0..batch.rows.len() {
                let level = next_level(marks, at, state.level);
                lowest = lowest.min(level);
                if worst.is_none_or(|(worst, ..)| level > worst) {
                    worst = Some((level, place, at));
                }
            }
        }
        let (highest, place, at) = worst?;
        let level = if self.alert.all { lowest } else { highest };
        let event = state.event(&self.alert, level, window.end)?;
        self.alerts.add(1);
        let (of, row) = {
            let batch = &window.batches[place];
            (batch.block.clone(), batch.rows.get(at))
        };
        let texts = self.texts_of(&of, row, &written_group(&group).into(), &event);
        for batch in &mut window.batches {
            let block = batch.to_block();
            let events: Vec<Event> = (0..block.rows()).map(|_| Event { ..event }).collect();
            let told = self.with_added(&block, &events, &vec![texts.clone(); block.rows()]);
            *batch = Batch::all(Arc::new(told), group.clone());
        }
        let flow = Flow::Window(window);
        let Flow::Window(window) = &flow else {
            unreachable!("it is a window");
        };
        self.hand_over(&event, window.end, &texts, &flow);
        Some(window.clone())
    }

    /// Adds the requested fields and tags.
    fn with_added(&self, block: &Block, events: &[Event], texts: &[Texts]) -> Block {
        let mut block = block.clone();
        let names = NAMES.map(Arc::<str>::from);
        for (added, name) in &self.alert.adds {
            let of = |level: fn(&Event) -> u8| -> Vec<Arc<str>> {
                let levels = events.iter().map(level);
                levels.map(|level| names[level as usize].clone()).collect()
            };
            let all =
                |of: fn(&Texts) -> &Arc<str>| texts.iter().map(move |texts| of(texts).clone());
            let words: Vec<Arc<str>> = match added {
                AddedColumn::LevelField | AddedColumn::LevelTag => of(|event| event.level),
                AddedColumn::PreviousField => of(|event| event.previous),
                AddedColumn::IdField | AddedColumn::IdTag => all(|texts| &texts.id).collect(),
                AddedColumn::MessageField => all(|texts| &texts.message).collect(),
                AddedColumn::DurationField => {
                    let values = events.iter().map(|event| event.duration).collect();
                    let present = None;
                    let data = Data::Integer(Cells { values, present });
                    block = with_field(&block, column(name, data));
                    continue;
                }
            };
            if added.is_tag() {
                let data = Data::Tag(Words {
                    codes: (0..words.len() as u32).collect(),
                    words,
                });
                block
                    .columns
                    .retain(|known| !known.is_tag() || known.name != *name);
                block.columns.insert(0, column(name, data));
            } else {
                let (values, present) = (words, None);
                block = with_field(&block, column(name, Data::Text(Cells { values, present })));
            }
        }
        block
    }

    /// Fills a template for a row.
    fn fill(
        &self,
        template: &Template,
        block: &Block,
        row: usize,
        group: &Arc<str>,
        event: &Event,
        id: &str,
    ) -> Arc<str> {
        let cell = |column: Option<&Column>| column.and_then(|column| column.data.get(row));
        let known = |place: &AlertField| match place {
            AlertField::Id => Some(Value::Text(id.into())),
            AlertField::Name => Some(Value::Text(block.origin.measurement.clone())),
            AlertField::TaskName => Some(Value::Text(self.task.clone())),
            AlertField::Group => Some(Value::Text(group.clone())),
            AlertField::Level => Some(Value::Text(NAMES[event.level as usize].into())),
            AlertField::Time => Some(Value::Integer(block.times[row])),
            AlertField::Duration => Some(Value::Text(written_duration(event.duration).into())),
            AlertField::Tag(name) => cell(block.tags().find(|column| column.name == *name)),
            AlertField::Field(name) => cell(block.fields().find(|column| column.name == *name)),
        };
        template.fill(&known).into()
    }

    /// Passes an alert to its files and receivers, without waiting.
    fn hand_over(&mut self, event: &Event, time: i64, texts: &Texts, flow: &Flow) {
        if self.handlers.is_empty() {
            return;
        }
        let data = json(std::slice::from_ref(flow));
        let text = |text: &str| serde_json::Value::from(text).to_string();
        let line = format!(
            "{{\"id\":{},\"message\":{},\"time\":{time},\"duration\":{},\"level\":\"{}\",\"previousLevel\":\"{}\",\"data\":{data}}}\n",
            text(&texts.id),
            text(&texts.message),
            event.duration,
            NAMES[event.level as usize],
            NAMES[event.previous as usize],
        );
        self.handed += 1;
        let mut tags = flow.group().tags.iter();
        let notice = Notice {
            id: &texts.id,
            message: &texts.message,
            level: event.level,
            time,
            task: &self.task,
            host: tags.find(|(name, _)| **name == *"host").map(|(_, value)| &**value),
            data: &data,
        };
        for handler in &self.handlers {
            let body = Body {
                number: self.handed,
                text: match &handler.form {
                    None => line.clone(),
                    Some(form) => form(&notice),
                },
                count: 1,
                counts: handler.counts.clone(),
                pending: None,
            };
            handler.queue.offer(body, self.overflow);
        }
    }
}

/// Formats the tags of a group like kapacitor.
fn written_group(group: &Group) -> String {
    let tags = group
        .tags
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    let measurement = group.measurement.iter().map(|name| name.to_string());
    let parts: Vec<String> = measurement.chain(tags).collect();
    match parts.is_empty() {
        true => "nil".into(),
        false => parts.join(","),
    }
}

fn column(name: &Arc<str>, data: Data) -> Column {
    Column {
        name: name.clone(),
        data: Arc::new(data),
    }
}

impl Operator for AlertOperator {
    fn take(&mut self, _: usize, flow: Flow, out: &mut Vec<Flow>) {
        drop(self.levels.expired());
        let told = match flow {
            Flow::Points(batch) => self.points(batch).map(Flow::Points),
            Flow::Window(window) => self.window(window).map(Flow::Window),
        };
        out.extend(told);
    }

    fn queues(&self) -> Vec<Queue> {
        let handlers = self.handlers.iter();
        handlers.map(|handler| handler.queue.clone()).collect()
    }

    fn counters(&self) -> Counters {
        let mut counters = vec![("alerts", self.alerts.clone())];
        counters.push(("errors", self.faults.counter()));
        counters.extend(self.levels.counters());
        let failed = self.handlers.iter();
        counters.extend(failed.map(|handler| ("not_delivered", handler.counts.failed.clone())));
        let spilling = self.handlers.iter().filter(|handler| handler.queue.spills());
        counters.extend(spilling.flat_map(|handler| {
            let Counts { dropped, on_disk, .. } = handler.counts.clone();
            [("dropped", dropped), ("on_disk", on_disk)]
        }));
        counters
    }

    fn save(&self) -> Option<State> {
        let levels = self.levels.iter().filter(|(_, level)| level.level > 0);
        let levels = levels.map(|(group, level)| ((**group).clone(), *level));
        let handlers = self.handlers.iter().map(|handler| {
            let queue = handler.queue.save();
            SavedHandler {
                receiver: handler.receiver.clone(),
                file: handler.queue.delivered_length(&queue.bodies),
                queue,
            }
        });
        let saved = SavedAlert {
            levels: levels.collect(),
            handed: self.handed,
            handlers: handlers.collect(),
        };
        let undelivered = saved.handlers.iter().map(|saved| saved.queue.bodies.len());
        let points = undelivered.sum();
        Some(State::new(points, &saved))
    }

    fn restore(&mut self, state: &State) {
        let Some(saved) = state.read::<SavedAlert>() else {
            return;
        };
        for (group, mut level) in saved.levels {
            level.level = level.level.min(NAMES.len() as u8 - 1);
            self.levels.entry(&Arc::new(group), 0, || level);
        }
        self.handed = saved.handed;
        let mut left = saved.handlers;
        for handler in &self.handlers {
            // A receiver of a topic may be new, or gone.
            let place = left.iter().position(|saved| saved.receiver == handler.receiver);
            let Some(saved) = place.map(|place| left.remove(place)) else {
                continue;
            };
            if let Some(length) = saved.file {
                handler.queue.restore_file(length);
            }
            handler.queue.restore(saved.queue, &handler.counts);
        }
        for saved in left {
            let (receiver, count) = (saved.receiver, saved.queue.bodies.len());
            tracing::error!("{}: {receiver} is no longer a receiver; its {count} alerts are given up", self.task);
        }
    }
}

/// The saved state of an alert.
#[derive(serde::Serialize, serde::Deserialize)]
struct SavedAlert {
    levels: Vec<(Group, GroupLevel)>,
    handed: u64,
    handlers: Vec<SavedHandler>,
}

/// The saved state of a handler.
#[derive(serde::Serialize, serde::Deserialize)]
struct SavedHandler {
    receiver: String,
    /// The length of the handler's file without the undelivered alerts.
    file: Option<u64>,
    queue: SavedQueue,
}
