//! The attributes: `#[message(skip, kind = "...", fingerprint = path)]`.

use syn::{Attribute, Error, LitStr, Path, Result};

/// The element that an attribute is attached to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttributeTarget {
    Struct,
    Enum,
    Variant,
    Field,
}

impl AttributeTarget {
    /// Returns the attributes that are valid on this element.
    fn known(self) -> &'static [&'static str] {
        match self {
            AttributeTarget::Struct => &["skip", "kind", "fingerprint", "duplicate"],
            AttributeTarget::Enum => &["skip", "fingerprint", "duplicate"],
            AttributeTarget::Field => &["skip", "fingerprint"],
            AttributeTarget::Variant => &["skip", "kind"],
        }
    }

    fn name(self) -> &'static str {
        match self {
            AttributeTarget::Struct => "a struct",
            AttributeTarget::Enum => "an enum",
            AttributeTarget::Variant => "a variant",
            AttributeTarget::Field => "a field",
        }
    }
}

/// The attributes of a type, a variant or a field.
#[derive(Default)]
pub(super) struct Attributes {
    /// True if the fingerprint does not include the element.
    pub(super) skip: bool,
    /// True if a network may deliver the message twice.
    pub(super) duplicate: bool,
    /// The name of the kind.
    kind: Option<String>,
    /// The function that turns the field into a number.
    pub(super) fingerprint: Option<Path>,
}

impl Attributes {
    pub(super) fn read(attributes: &[Attribute], place: AttributeTarget) -> Result<Attributes> {
        let mut read = Attributes::default();
        for attribute in attributes {
            if !attribute.path().is_ident("message") {
                continue;
            }
            attribute.parse_nested_meta(|meta| {
                let given = meta
                    .path
                    .get_ident()
                    .map(ToString::to_string)
                    .unwrap_or_default();
                if !place.known().contains(&given.as_str()) {
                    let known: Vec<_> = place.known().iter().map(|name| usage(name)).collect();
                    return Err(meta.error(format!(
                        "unknown attribute of {}; there are {}",
                        place.name(),
                        known.join(", ")
                    )));
                }
                let twice = match given.as_str() {
                    "skip" => std::mem::replace(&mut read.skip, true),
                    "duplicate" => std::mem::replace(&mut read.duplicate, true),
                    "kind" => {
                        let name = meta.value()?.parse::<LitStr>()?.value();
                        read.kind.replace(name).is_some()
                    }
                    _ => {
                        let function = meta.value()?.parse::<Path>()?;
                        read.fingerprint.replace(function).is_some()
                    }
                };
                if twice {
                    return Err(meta.error(format!("`{given}` is given twice; remove one")));
                }
                Ok(())
            })?;
            if read.skip && read.fingerprint.is_some() {
                return Err(Error::new_spanned(
                    attribute,
                    "`skip` and `fingerprint` contradict each other; remove one",
                ));
            }
        }
        Ok(read)
    }

    /// Returns the name of the kind: the name given in the attribute, or else the identifier.
    pub(super) fn kind_or(&self, ident: &syn::Ident) -> String {
        use syn::ext::IdentExt;
        self.kind
            .clone()
            .unwrap_or_else(|| ident.unraw().to_string())
    }
}

/// Returns the correct syntax of an attribute.
fn usage(name: &str) -> &'static str {
    match name {
        "skip" => "`skip`",
        "kind" => "`kind = \"Name\"`",
        "duplicate" => "`duplicate`",
        _ => "`fingerprint = function`",
    }
}
