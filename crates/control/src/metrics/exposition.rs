//! The text that scrapers read: that of Prometheus (version 0.0.4), and OpenMetrics 1.0.

use std::fmt::{Display, Write};
use std::time::Duration;

use super::series::{Family, Kind};

/// How numbers are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// The text format of Prometheus.
    #[default]
    Prometheus,
    /// OpenMetrics.
    OpenMetrics,
}

impl Format {
    /// The Content-Type.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Labels and their values.
pub(super) type Labels<'a> = &'a [(&'a str, &'a str)];

/// A text that grows.
pub(super) struct Exposition {
    text: String,
    format: Format,
}

impl Exposition {
    pub(super) const fn new(format: Format) -> Self {
        let text = String::new();
        Self { text, format }
    }

    /// Begins a family: all of its series follow.
    pub(super) fn family(&mut self, family: &Family) {
        let (kind, help) = (family.kind.name(), family.help);
        let name = match self.format {
            Format::Prometheus => family.told(),
            Format::OpenMetrics => family.name.to_owned(),
        };
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        if self.format == Format::OpenMetrics && !family.unit.is_empty() {
            let _ = writeln!(self.text, "# UNIT {name} {}", family.unit);
        }
    }

    /// A number of a counter or a gauge.
    pub(super) fn number(&mut self, family: &Family, labels: Labels<'_>, value: impl Display) {
        let suffix = match family.kind {
            Kind::Counter => "_total",
            Kind::Gauge | Kind::Histogram => "",
        };
        self.sample(family, suffix, labels, value);
    }

    /// A histogram: how many took less than each of these times, and how many there were, and how
    /// long all of them took together.
    pub(super) fn histogram(
        &mut self,
        family: &Family,
        labels: Labels<'_>,
        within: impl Iterator<Item = (Duration, u64)>,
        (count, sum): (u64, Duration),
    ) {
        let within = within.map(|(end, count)| (end.as_secs_f64().to_string(), count));
        for (end, count) in within.chain([("+Inf".to_owned(), count)]) {
            let labels: Vec<_> = labels.iter().copied().chain([("le", &*end)]).collect();
            self.sample(family, "_bucket", &labels, count);
        }
        self.sample(family, "_sum", labels, sum.as_secs_f64());
        self.sample(family, "_count", labels, count);
    }

    /// One line.
    fn sample(&mut self, family: &Family, suffix: &str, labels: Labels<'_>, value: impl Display) {
        self.text.push_str(family.name);
        self.text.push_str(suffix);
        for (at, (label, value)) in labels.iter().enumerate() {
            self.text.push(if at == 0 { '{' } else { ',' });
            self.text.push_str(label);
            self.text.push_str("=\"");
            escape(value, &mut self.text);
            self.text.push('"');
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }

    pub(super) fn into_text(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }
}

/// Names of initiators come from the network.
fn escape(value: &str, text: &mut String) {
    for c in value.chars() {
        match c {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            other => text.push(other),
        }
    }
}
