//! Services that receive alerts in their own formats, as kapacitor sends them: `.slack()`, `.pagerDuty2()` and others.
//!
//! A service is an endpoint of the server, by default of the service's name. `options` of the endpoint are used where the
//! task has no property. To add a service, add its line to [`KINDS`].

use super::level::NAMES;
use crate::expression::written_time;
use crate::node::endpoint::Endpoint;
use crate::node::post_to::PostTo;
use crate::language::{Parsed, Parser, Problem, Span, fail};
use crate::pipeline::{Text, Writer};
use serde_json::{Value, json};
use std::fmt;
use std::sync::Arc;

/// A kind of service.
pub(crate) struct ServiceKind {
    /// The name in the language, which is also the name of the default endpoint.
    pub(crate) name: &'static str,
    properties: &'static [&'static str],
    /// Returns the path that is appended to the URL of the endpoint.
    path: fn(&Options<'_>) -> String,
    body: fn(&Options<'_>, &Notice<'_>) -> Value,
}

/// A service of an alert, with its properties.
#[derive(Clone)]
pub struct AlertService {
    kind: &'static ServiceKind,
    /// The endpoint, or the URL, of the service.
    pub to: PostTo,
    options: Vec<(&'static str, Arc<str>)>,
}

/// The options of a service. Options of the task take precedence over options of the endpoint.
pub(super) struct Options<'a> {
    own: &'a [(&'static str, Arc<str>)],
    endpoint: &'a Endpoint,
}

/// An alert that a service receives.
pub(super) struct Notice<'a> {
    pub(super) id: &'a str,
    pub(super) message: &'a str,
    pub(super) level: u8,
    /// The time in nanoseconds since 1970.
    pub(super) time: i64,
    pub(super) task: &'a str,
    pub(super) host: Option<&'a str>,
    /// The points, as JSON.
    pub(super) data: &'a str,
}

/// Properties without a value.
const FLAGS: [&str; 2] = ["disableWebPagePreview", "disableNotification"];

/// All kinds.
static KINDS: [ServiceKind; 6] = [
    ServiceKind {
        name: "slack",
        properties: &["workspace", "channel", "username", "iconEmoji"],
        path: |_| String::new(),
        body: |options, notice| {
            let color = notice.of_level(["good", "good", "warning", "danger"]);
            let message = notice.message;
            json!({
                "as_user": false,
                "channel": options.get("channel"),
                "text": "",
                "attachments": [{"fallback": message, "color": color, "text": message, "mrkdwn_in": ["text"]}],
                "username": options.get("username"),
                "icon_emoji": options.get("iconEmoji"),
            })
        },
    },
    ServiceKind {
        name: "discord",
        properties: &["workspace", "username", "avatarURL", "embedTitle"],
        path: |_| String::new(),
        body: |options, notice| {
            let color = notice.of_level([0x7A_65F2, 0x7A_65F2, 0xF4_8D38, 0xF9_5F53]);
            json!({
                "username": options.get("username"),
                "avatar_url": options.get("avatarURL"),
                "embeds": [{
                    "color": color,
                    "title": options.get("embedTitle"),
                    "description": notice.message,
                    "timestamp": "",
                }],
            })
        },
    },
    ServiceKind {
        name: "teams",
        properties: &["channelURL"],
        path: |_| String::new(),
        body: |_, notice| {
            let title = format!("{}: [{}]", NAMES[usize::from(notice.level)], notice.id);
            let summary: String = format!("{title} - {}", notice.message).chars().take(70).collect();
            json!({
                "@type": "MessageCard",
                "@context": "http://schema.org/extensions",
                "title": title,
                "text": notice.message,
                "summary": summary + "...",
                "themeColor": notice.of_level(["34CC25", "34CC25", "FFA533", "CC4A31"]),
            })
        },
    },
    ServiceKind {
        name: "telegram",
        properties: &["chatId", "parseMode", FLAGS[0], FLAGS[1]],
        path: |_| String::new(),
        body: |options, notice| {
            let mut body = json!({"chat_id": options.get("chatId"), "text": notice.message});
            for (name, option) in [
                ("parse_mode", "parseMode"),
                ("disable_web_page_preview", FLAGS[0]),
                ("disable_notification", FLAGS[1]),
            ] {
                match options.get(option) {
                    "" => {}
                    value if FLAGS.contains(&option) => body[name] = json!(value == "true"),
                    value => body[name] = json!(value),
                }
            }
            body
        },
    },
    ServiceKind {
        name: "pagerDuty2",
        properties: &["routingKey"],
        path: |_| String::new(),
        body: |options, notice| {
            json!({
                "routing_key": options.get("routingKey"),
                "event_action": notice.of_level(["resolve", "trigger", "trigger", "trigger"]),
                "dedup_key": notice.id,
                "payload": {
                    "summary": notice.message,
                    "source": notice.host.unwrap_or("unknown"),
                    "severity": notice.of_level(["info", "info", "warning", "critical"]),
                    "timestamp": written_time(notice.time),
                    "class": notice.task,
                    "custom_details": {"result": notice.json()},
                },
                "client": "corsair-stream",
            })
        },
    },
    ServiceKind {
        name: "victorOps",
        properties: &["routingKey"],
        path: |options| match options.get("routingKey") {
            "" => String::new(),
            key => format!("/{key}"),
        },
        body: |_, notice| {
            json!({
                "message_type": notice.of_level(["RECOVERY", NAMES[1], NAMES[2], NAMES[3]]),
                "entity_id": notice.id,
                "state_message": notice.message,
                "timestamp": notice.time.div_euclid(1_000_000_000),
                "monitoring_tool": "corsair-stream",
                "data": notice.data,
            })
        },
    },
];

/// The names of all kinds, and of their properties, each once.
pub(super) const PROPERTIES: [&str; 19] = [
    "slack",
    "discord",
    "teams",
    "telegram",
    "pagerDuty2",
    "victorOps",
    "workspace",
    "channel",
    "username",
    "iconEmoji",
    "avatarURL",
    "embedTitle",
    "channelURL",
    "chatId",
    "parseMode",
    FLAGS[0],
    FLAGS[1],
    "routingKey",
    "topic",
];

/// Returns the kind with this name.
pub(crate) fn kind(name: &str) -> Option<&'static ServiceKind> {
    KINDS.iter().find(|kind| kind.name == name)
}

/// Returns the names of all kinds.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|kind| kind.name)
}

impl Options<'_> {
    /// Returns the value of an option; empty if there is none.
    fn get(&self, name: &str) -> &str {
        let own = self.own.iter().find(|(known, _)| *known == name);
        let other = || self.endpoint.options.get(name).map(String::as_str);
        own.map(|(_, value)| &**value).or_else(other).unwrap_or_default()
    }
}

impl Notice<'_> {
    fn of_level<T: Copy>(&self, values: [T; 4]) -> T {
        values[usize::from(self.level)]
    }

    fn json(&self) -> Value {
        serde_json::from_str(self.data).unwrap_or_default()
    }
}

impl AlertService {
    /// A service with its default endpoint.
    pub(super) fn new(kind: &'static ServiceKind) -> AlertService {
        let endpoint = Some(kind.name.into());
        AlertService {
            kind,
            to: PostTo {
                endpoint,
                ..PostTo::default()
            },
            options: Vec::new(),
        }
    }

    /// Returns the name of the service in the language.
    pub fn name(&self) -> &'static str {
        self.kind.name
    }

    /// Parses a property, whose name was read.
    pub(super) fn property(
        &mut self,
        parser: &mut Parser<'_>,
        property: &'static str,
        span: Span,
    ) -> Parsed<()> {
        if !self.kind.properties.contains(&property) {
            let service = self.kind.name;
            return fail(Problem::OtherService { property, service }, span);
        }
        let value: Arc<str> = match FLAGS.contains(&property) {
            true => {
                parser.nothing()?;
                "true".into()
            }
            false => parser.argument(Parser::string)?,
        };
        match property {
            "workspace" => self.to.endpoint = Some(value),
            "channelURL" => self.to = value.into(),
            _ => self.options.push((property, value)),
        }
        Ok(())
    }

    /// Writes the service and its properties.
    pub(super) fn write(&self, out: &mut Writer<'_, '_>) -> fmt::Result {
        out.property(self.kind.name, &[])?;
        match &self.to.endpoint {
            None => out.text("channelURL", Some(&self.to.url))?,
            Some(name) if **name != *self.kind.name => out.text("workspace", Some(name))?,
            Some(_) => {}
        }
        for (name, value) in &self.options {
            match FLAGS.contains(name) {
                true => out.flag(name, true)?,
                false => out.property(name, &[&Text(value)])?,
            }
        }
        Ok(())
    }

    /// Returns a function that makes the body of a post, and appends the service's path to the URL of the endpoint.
    pub(super) fn form(&self, endpoint: &mut Endpoint) -> Form {
        let own = self.options.clone();
        let options = Options {
            own: &own,
            endpoint,
        };
        let path = (self.kind.path)(&options);
        endpoint.url += &path;
        let (endpoint, body) = (endpoint.clone(), self.kind.body);
        Box::new(move |notice| {
            let options = Options {
                own: &own,
                endpoint: &endpoint,
            };
            body(&options, notice).to_string()
        })
    }
}

/// Makes the body of a post.
pub(super) type Form = Box<dyn Fn(&Notice<'_>) -> String + Send>;

impl PartialEq for AlertService {
    fn eq(&self, other: &AlertService) -> bool {
        (self.kind.name, &self.to, &self.options) == (other.kind.name, &other.to, &other.options)
    }
}

impl fmt::Debug for AlertService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut service = f.debug_struct(self.kind.name);
        service.field("to", &self.to).field("options", &self.options).finish()
    }
}
