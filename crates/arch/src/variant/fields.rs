//! The fields that a path of `--set` can name: the fields of the schema, and the entries of a definition.

use super::DefinitionText;
use crate::definition::schema;
use serde_json::Value;

/// A continuation of the path of a [`Setting`](super::Setting).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldHint {
    /// The path. It ends in `.` if names of fields follow, and in `=` if a value follows.
    pub path: String,
    /// A line about the field; may be empty.
    pub about: String,
}

impl DefinitionText {
    /// Returns the fields whose paths extend the typed text by one name. If the text has a `=`, it returns the values
    /// that the schema lists, and the current value.
    ///
    /// ```
    /// use corsair_arch::DefinitionText;
    ///
    /// let lamp = DefinitionText::find("lamp", "json_arch".as_ref())?;
    /// let paths = |typed| lamp.fields(typed).into_iter().map(|field| field.path).collect::<Vec<_>>();
    /// assert_eq!(paths("services.mem"), ["services.memcache."]);
    /// assert_eq!(paths("services.memcache.cou"), ["services.memcache.count="]);
    /// assert_eq!(paths("services.memcache.count="), ["services.memcache.count=1"]);
    /// # Ok::<(), corsair_arch::DefinitionError>(())
    /// ```
    pub fn fields(&self, typed: &str) -> Vec<FieldHint> {
        let text = self.text.strip_prefix('\u{feff}').unwrap_or(&self.text);
        let parsed = (serde_json::from_str(schema()), serde_json::from_str(text));
        let (Ok(schema), Ok(definition)) = parsed else {
            return Vec::new();
        };
        let (schema, definition): (Value, Value) = (schema, definition);
        let root = Place {
            schema: &schema,
            shapes: vec![&schema],
            value: Some(&definition),
            owner: None,
            definition: &definition,
        };
        let (path, value_of) = match typed.split_once('=') {
            Some((path, _)) => (path, Some(path)),
            None => (typed.rsplit_once('.').map_or("", |(above, _)| above), None),
        };
        let mut place = root;
        for name in path.split('.').filter(|name| !name.is_empty()) {
            place = place.below(name);
        }
        let mut found = match value_of {
            Some(path) => place.values(path),
            None => place.names(path),
        };
        found.retain(|field| field.path.starts_with(typed));
        found
    }
}

/// A place in the schema, and the value that the definition has there.
struct Place<'a> {
    schema: &'a Value,
    /// The alternatives of the schema at this place, without references.
    shapes: Vec<&'a Value>,
    value: Option<&'a Value>,
    /// The object that has this place as a field.
    owner: Option<&'a Value>,
    definition: &'a Value,
}

impl<'a> Place<'a> {
    /// Returns the place of a field or an entry below this place.
    fn below(&self, name: &str) -> Place<'a> {
        let mut shapes = Vec::new();
        for shape in &self.shapes {
            let property = shape.get("properties").and_then(|all| all.get(name));
            let node = property
                .or_else(|| shape.get("additionalProperties"))
                .or_else(|| shape.get("items"));
            shapes.extend(node.into_iter().flat_map(|node| self.resolved(node)));
        }
        let value = match self.value {
            Some(Value::Array(entries)) => entries
                .iter()
                .find(|entry| name_of(entry) == Some(name))
                .or_else(|| entries.get(name.parse::<usize>().ok()?)),
            Some(value) => value.get(name),
            None => None,
        };
        Place {
            shapes,
            value,
            owner: self.value,
            ..*self
        }
    }

    /// Returns the alternatives of a node of the schema.
    fn resolved(&self, node: &'a Value) -> Vec<&'a Value> {
        if let Some(Value::String(reference)) = node.get("$ref") {
            let target = self.schema.pointer(reference.trim_start_matches('#'));
            return target.map_or(Vec::new(), |target| self.resolved(target));
        }
        let alternatives = node.get("anyOf").or_else(|| node.get("oneOf"));
        match alternatives.and_then(Value::as_array) {
            Some(all) => all.iter().flat_map(|each| self.resolved(each)).collect(),
            None => vec![node],
        }
    }

    /// Returns the paths that are one name longer than `path`, which leads to this place.
    fn names(&self, path: &str) -> Vec<FieldHint> {
        let mut found = Vec::new();
        for shape in &self.shapes {
            let fields = shape.get("properties").and_then(Value::as_object);
            for (name, node) in fields.into_iter().flatten() {
                self.add(&mut found, path, name, first_line(node));
            }
            if let Some(values) = shape.get("additionalProperties").filter(|v| v.is_object()) {
                for name in self.keys(values) {
                    self.add(&mut found, path, name, "");
                }
            }
            if shape.get("items").is_some()
                && let Some(Value::Array(entries)) = self.value
            {
                for (index, entry) in entries.iter().enumerate() {
                    let about = entry.get("package").and_then(Value::as_str);
                    match name_of(entry) {
                        Some(name) => self.add(&mut found, path, name, about.unwrap_or("")),
                        None => self.add(&mut found, path, &index.to_string(), ""),
                    }
                }
            }
        }
        found
    }

    /// Returns the keys of a map with such values: the existing keys, and the services that a key can name.
    fn keys(&self, values: &Value) -> Vec<&'a str> {
        let present = self.value.and_then(Value::as_object);
        let mut keys: Vec<&str> = present
            .into_iter()
            .flatten()
            .map(|(key, _)| &**key)
            .collect();
        let named = match values.get("$ref").and_then(Value::as_str) {
            Some("#/$defs/EntryLoad") => {
                let services = self.definition.get("services").and_then(Value::as_array);
                let entry =
                    |service: &&Value| service.get("package") == Some(&"denominator".into());
                let entries = services.into_iter().flatten().filter(entry);
                entries.filter_map(name_of).collect()
            }
            Some("#/$defs/CallPolicy") => {
                let called = self.owner.and_then(|owner| owner.get("dependencies"));
                let called = called.and_then(Value::as_array).into_iter().flatten();
                called.filter_map(Value::as_str).collect()
            }
            _ => Vec::new(),
        };
        let missing: Vec<&str> = named
            .into_iter()
            .filter(|name| !keys.contains(name))
            .collect();
        keys.extend(missing);
        keys
    }

    /// Adds a field: as a group, as a field with a value, or as both.
    fn add(&self, found: &mut Vec<FieldHint>, path: &str, name: &str, about: &str) {
        let field = self.below(name);
        let path = match path {
            "" => name.to_owned(),
            _ => format!("{path}.{name}"),
        };
        let ends = [
            (field.shapes.iter().any(|shape| field.is_group(shape)), '.'),
            (
                field
                    .shapes
                    .iter()
                    .any(|shape| !field.is_group(shape) && shape["type"] != "null"),
                '=',
            ),
        ];
        for (_, end) in ends.into_iter().filter(|(has, _)| *has) {
            let hint = FieldHint {
                path: format!("{path}{end}"),
                about: about.to_owned(),
            };
            if !found.contains(&hint) {
                found.push(hint);
            }
        }
    }

    /// True if values of this shape have fields or entries that a path can name.
    fn is_group(&self, shape: &Value) -> bool {
        let entries = || self.value.and_then(Value::as_array);
        let is_named = || entries().is_some_and(|entries| entries.iter().any(Value::is_object));
        shape.get("properties").is_some()
            || shape
                .get("additionalProperties")
                .is_some_and(Value::is_object)
            || shape.get("items").is_some() && is_named()
    }

    /// Returns the values that the schema lists, and the current value.
    fn values(&self, path: &str) -> Vec<FieldHint> {
        let mut values: Vec<(String, &str)> = Vec::new();
        if let Some(value) = self.value.filter(|v| !v.is_object() && !v.is_array()) {
            let typed = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            values.push((typed, "the present value"));
        }
        for shape in &self.shapes {
            let listed = shape
                .get("enum")
                .and_then(Value::as_array)
                .into_iter()
                .flatten();
            for word in listed.chain(shape.get("const")).filter_map(Value::as_str) {
                values.push((word.to_owned(), first_line(shape)));
            }
            if shape["type"] == "boolean" {
                values.extend(["true", "false"].map(|word| (word.to_owned(), "")));
            }
        }
        let mut found: Vec<FieldHint> = Vec::new();
        for (value, about) in values {
            let path = format!("{path}={value}");
            if found.iter().all(|hint| hint.path != path) {
                found.push(FieldHint {
                    path,
                    about: about.to_owned(),
                });
            }
        }
        found
    }
}

fn name_of(entry: &Value) -> Option<&str> {
    entry.get("name")?.as_str()
}

/// Returns the first line of a node's description.
fn first_line(node: &Value) -> &str {
    let text = node
        .get("description")
        .and_then(Value::as_str)
        .unwrap_or("");
    text.lines().next().unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(typed: &str) -> Vec<String> {
        let text = r#"{"arch": "shop", "services": [
            {"name": "db", "package": "service", "count": 1, "service_time": "2ms"},
            {"name": "web", "package": "service", "count": 2, "dependencies": ["db"],
             "faults": [{"kill": true, "at": "1s"}]},
            {"name": "www", "package": "denominator", "dependencies": ["web"]}]}"#;
        let shop = DefinitionText::new(text, "shop.json");
        shop.fields(typed)
            .into_iter()
            .map(|field| field.path)
            .collect()
    }

    #[test]
    fn a_path_continues_by_one_name_to_a_group_or_a_value() {
        assert_eq!(paths("ser"), ["services."]);
        assert_eq!(paths("services.w"), ["services.web.", "services.www."]);
        assert_eq!(paths("services.web.cou"), ["services.web.count="]);
        assert_eq!(paths("services.1.cou"), ["services.1.count="]);
        assert_eq!(
            paths("services.db.service_t"),
            ["services.db.service_time.", "services.db.service_time="]
        );
        assert!(
            paths("services.db.service_time.")
                .contains(&"services.db.service_time.exponential=".to_owned())
        );
        assert_eq!(
            paths("services.web.autoscaler.lea"),
            ["services.web.autoscaler.least="]
        );
        assert_eq!(paths("services.web.faults."), ["services.web.faults.0."]);
    }

    #[test]
    fn maps_offer_the_services_that_they_can_name() {
        assert_eq!(paths("load."), ["load.www."]);
        assert_eq!(paths("services.web.calls."), ["services.web.calls.db."]);
    }

    #[test]
    fn a_value_is_the_present_one_or_one_of_the_schema() {
        assert_eq!(paths("services.web.count="), ["services.web.count=2"]);
        assert!(
            paths("services.web.calls.db.balance=")
                .contains(&"services.web.calls.db.balance=random".to_owned())
        );
        assert_eq!(paths("services.web.count=9"), [""; 0]);
    }

    #[test]
    fn what_is_not_there_and_what_is_no_json_have_no_fields() {
        assert_eq!(paths("services.nobody.count.deep."), [""; 0]);
        assert_eq!(paths("..="), [""; 0]);
        assert_eq!(DefinitionText::new("{", "broken.json").fields("ser"), []);
    }
}
