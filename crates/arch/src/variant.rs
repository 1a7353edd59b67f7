//! Definitions with some of their fields changed.

mod fields;

pub use fields::FieldHint;

use crate::definition::{CheckedDefinition, DefinitionError, read_text, text_of};
use crate::nearest::did_you_mean;
use serde_json::Value;
use std::path::Path;

/// The text of a definition whose fields can be changed.
#[derive(Clone, Debug)]
pub struct DefinitionText {
    text: String,
    file: String,
}

/// A field of a definition and its value: `services.web.count=4`.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The path to the field: keys, and for lists the `name` of an entry or its index from 0.
    pub path: String,
    /// The value, as JSON.
    pub value: Value,
}

impl Setting {
    /// Parses a text as a value: JSON, or otherwise the text itself.
    pub fn value(text: &str) -> Value {
        serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
    }

    /// Returns the value in text form.
    pub fn typed(&self) -> String {
        match &self.value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }
}

impl DefinitionText {
    /// Finds the definition with this name; see [`read`](crate::read).
    ///
    /// # Errors
    /// See [`DefinitionError`].
    pub fn find(name: &str, directory: &Path) -> Result<DefinitionText, DefinitionError> {
        let (text, file) = text_of(name, directory)?;
        Ok(DefinitionText { text, file })
    }

    /// Creates a definition that was not read from a file; errors refer to it as `file`.
    pub fn new(text: impl Into<String>, file: impl Into<String>) -> DefinitionText {
        DefinitionText {
            text: text.into(),
            file: file.into(),
        }
    }

    /// Returns the original text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the name that error messages use for the definition.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// True if this is a built-in definition, which no file has replaced.
    pub fn is_built_in(&self) -> bool {
        self.file.starts_with("built-in ")
    }

    /// Returns the definition with these fields changed.
    ///
    /// ```
    /// use corsair_arch::{DefinitionText, Setting};
    /// use std::path::Path;
    ///
    /// let lamp = DefinitionText::find("lamp", Path::new("json_arch"))?;
    /// let set = |path: &str, value: &str| Setting {
    ///     path: path.to_owned(),
    ///     value: Setting::value(value),
    /// };
    /// assert!(lamp.with(&[set("services.memcache.count", "4")]).is_ok());
    /// let error = lamp.with(&[set("services.memcach.count", "4")]).unwrap_err();
    /// assert!(error.contains("did you mean memcache?"), "{error}");
    /// # Ok::<(), corsair_arch::DefinitionError>(())
    /// ```
    ///
    /// # Errors
    /// If a path or the resulting definition is invalid.
    pub fn with(&self, settings: &[Setting]) -> Result<CheckedDefinition, String> {
        // The original text is checked first, because line numbers in errors refer to it.
        let checked = read_text(&self.text, &self.file);
        if settings.is_empty() {
            return checked.map_err(|error| error.to_string());
        }
        checked.map_err(|error| error.to_string())?;
        let text = self.text.strip_prefix('\u{feff}').unwrap_or(&self.text);
        let mut definition: Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
        for setting in settings {
            set(&mut definition, setting)?;
        }
        let text = definition.to_string();
        read_text(&text, &self.file).map_err(|error| {
            let changes = settings.iter().map(|s| format!("{}={}", s.path, s.typed()));
            let changes: Vec<String> = changes.collect();
            // The line number refers to the changed text, which the user has not seen, so it is removed.
            let said = error.to_string();
            let said = said.replacen(&format!("{}:1: ", self.file), "", 1);
            format!("{} with {}: {said}", self.file, changes.join(", "))
        })
    }
}

fn set(definition: &mut Value, setting: &Setting) -> Result<(), String> {
    let mut place = definition;
    let mut parts = setting.path.split('.').peekable();
    while let Some(part) = parts.next() {
        let is_last = parts.peek().is_none();
        if part.is_empty() {
            return Err(format!(
                "'{}' is not the path of a field; expected names joined by dots, for example services.web.count",
                setting.path
            ));
        }
        place = match place {
            Value::Object(keys) => {
                let empty = || Value::Object(serde_json::Map::new());
                keys.entry(part).or_insert_with(empty)
            }
            Value::Array(entries) => {
                let name = |entry: &Value| Some(entry.get("name")?.as_str()?.to_owned());
                let number = part.parse::<usize>().ok().filter(|&n| n < entries.len());
                let named = entries
                    .iter()
                    .position(|entry| name(entry).as_deref() == Some(part));
                let Some(number) = named.or(number) else {
                    let names: Vec<String> = entries.iter().filter_map(name).collect();
                    let meant = match did_you_mean(part, names.iter().map(String::as_str)) {
                        meant if meant.is_empty() => {
                            format!("; expected one of {}", names.join(", "))
                        }
                        meant => meant,
                    };
                    let path = &setting.path;
                    return Err(format!("{path}: there is no '{part}'{meant}"));
                };
                &mut entries[number]
            }
            other if !is_last => {
                // A value such as "2ms" is replaced by an object, for example {"exponential": "2ms"}.
                *other = Value::Object(serde_json::Map::new());
                let Value::Object(keys) = other else {
                    break;
                };
                keys.entry(part).or_insert(Value::Null)
            }
            other => other,
        };
        if is_last {
            *place = setting.value.clone();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shop() -> DefinitionText {
        DefinitionText {
            text: r#"{"arch": "shop", "services": [
                {"name": "web", "package": "service", "count": 2, "regions": 1,
                 "service_time": "2ms"}]}"#
                .to_owned(),
            file: "shop.json".to_owned(),
        }
    }

    fn with(path: &str, value: &str) -> Result<CheckedDefinition, String> {
        shop().with(&[Setting {
            path: path.to_owned(),
            value: Setting::value(value),
        }])
    }

    #[test]
    fn fields_are_changed_and_added_by_their_paths() {
        let of = |path, value| with(path, value).unwrap().definition().services[0].clone();
        assert_eq!(of("services.web.count", "5").count, 5);
        assert_eq!(of("services.0.concurrency", "7").concurrency, Some(7));
        let timed = of("services.web.service_time", r#"{"exponential": "3ms"}"#);
        assert!(
            timed
                .service_time
                .is_some_and(|time| time.nanoseconds().unwrap().mean() == 3e6)
        );
        assert_eq!(
            of("services.web.health_check.every", "2s")
                .health_check
                .map(|h| h.every.nanos()),
            Some(2_000_000_000)
        );
    }

    #[test]
    fn paths_and_values_that_are_wrong_are_reported() {
        assert_eq!(
            with("services.wbe.count", "5").unwrap_err(),
            "services.wbe.count: there is no 'wbe'; did you mean web?"
        );
        assert_eq!(
            with("services.web.conut", "5").unwrap_err(),
            "shop.json with services.web.conut=5: there is no key \"conut\"; did you mean count?"
        );
        assert_eq!(
            with("services.web.count", "-5").unwrap_err(),
            "shop.json with services.web.count=-5: service 'web' has a count of -5; give 0 to 1000000"
        );
        assert!(
            with("services..count", "5")
                .unwrap_err()
                .contains("not the path of a field")
        );
    }
}
