//! Texts with places for what an alert is about: `{{ .Name }} of {{ index .Tags "host" }}`.

use std::sync::Arc;

/// A text with places that are filled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<Part>);

/// A piece of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Text(String),
    Id,
    Name,
    TaskName,
    Group,
    Level,
    Time,
    Tag(Arc<str>),
    Field(Arc<str>),
}

/// What the places are called.
const PLACES: [(&str, Part); 6] = [
    (".ID", Part::Id),
    (".Name", Part::Name),
    (".TaskName", Part::TaskName),
    (".Group", Part::Group),
    (".Level", Part::Level),
    (".Time", Part::Time),
];

impl Template {
    /// Reads it.
    ///
    /// # Errors
    /// The place that is none, as it is written.
    pub fn new(text: &str) -> Result<Template, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let Some((place, after)) = after.split_once("}}") else {
                return Err(format!("{{{{{after}"));
            };
            parts.push(Part::Text(before.into()));
            let part = read(place.trim());
            parts.push(part.ok_or_else(|| format!("{{{{{place}}}}}"))?);
            rest = after;
        }
        parts.push(Part::Text(rest.into()));
        Ok(Template(parts))
    }

    pub(crate) fn parts(&self) -> &[Part] {
        &self.0
    }
}

fn read(place: &str) -> Option<Part> {
    if let Some((_, part)) = PLACES.iter().find(|(name, _)| *name == place) {
        return Some(part.clone());
    }
    let mut words = place.splitn(3, char::is_whitespace);
    let (index, of, name) = (words.next()?, words.next()?, words.next()?.trim());
    let name = name.strip_prefix('"')?.strip_suffix('"')?;
    match (index, of) {
        ("index", ".Tags") => Some(Part::Tag(name.into())),
        ("index", ".Fields") => Some(Part::Field(name.into())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_and_others_are_told() {
        let text = "a/{{ .Name }}/{{index .Tags \"h t\"}} {{.Level}}";
        let template = Template::new(text).unwrap();
        let expected = [
            Part::Text("a/".into()),
            Part::Name,
            Part::Text("/".into()),
            Part::Tag("h t".into()),
            Part::Text(" ".into()),
            Part::Level,
            Part::Text("".into()),
        ];
        assert_eq!(template.parts(), expected);
        for (text, wrong) in [
            ("{{ .Nme }}", "{{ .Nme }}"),
            ("x{{ if .Level }}y{{ end }}", "{{ if .Level }}"),
            ("{{ .Name", "{{ .Name"),
            ("{{ index .Tags host }}", "{{ index .Tags host }}"),
        ] {
            assert_eq!(Template::new(text), Err(wrong.to_owned()), "{text}");
        }
    }
}
