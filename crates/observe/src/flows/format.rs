//! The list of span formats. Each format is a module with a [`SpanFormat`].

use super::otlp::Otlp;
use super::span_format::SpanFormat;
use super::zipkin::{ZipkinV1, ZipkinV2};

/// A format for flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FlowFormat {
    /// Zipkin v1: a JSON array as spigo writes it, in `json_metrics/<arch>_flow.json`.
    ZipkinV1,
    /// Zipkin v2: a JSON array, in `json_metrics/<arch>_flow.zipkin.json`.
    ZipkinV2,
    /// OTLP/JSON: one request per line, in `json_metrics/<arch>_flow.otlp.jsonl`.
    Otlp,
}

impl FlowFormat {
    /// All formats.
    pub const ALL: [FlowFormat; 3] = [FlowFormat::ZipkinV1, FlowFormat::ZipkinV2, FlowFormat::Otlp];

    pub(super) fn format(self) -> &'static dyn SpanFormat {
        match self {
            FlowFormat::ZipkinV1 => &ZipkinV1,
            FlowFormat::ZipkinV2 => &ZipkinV2,
            FlowFormat::Otlp => &Otlp,
        }
    }

    /// Returns the name of the format in flags and in Python: `zipkin1`, `zipkin2` or `otlp`.
    pub fn name(self) -> &'static str {
        self.format().name()
    }

    /// Returns the format with this name.
    pub fn named(name: &str) -> Option<FlowFormat> {
        FlowFormat::ALL
            .into_iter()
            .find(|format| format.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_format_is_found_by_its_name() {
        for format in FlowFormat::ALL {
            assert_eq!(FlowFormat::named(format.name()), Some(format));
        }
        assert_eq!(FlowFormat::named("avro"), None);
    }
}
