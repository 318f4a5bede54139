//! The two text formats of metrics, and the choice between them.
//!
//! prometheus-client writes `OpenMetrics` alone. Scrapers may ask for the older format, and existing dashboards expect
//! its names, so the output is converted line by line.

use std::borrow::Cow;

/// A format of `/metrics`.
///
/// The samples are the same in both. They differ in the names of counter families, in units, in exemplars, and in
/// the end mark.
///
/// ```
/// use kctl_runtime::manager::metrics::{Format, Metrics};
///
/// let metrics = Metrics::default();
/// assert!(metrics.text(Format::OpenMetrics).ends_with("# EOF\n"));
/// assert!(!metrics.text(Format::Prometheus).contains("# EOF"));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Prometheus' text format 0.0.4.
    Prometheus,
    /// The `OpenMetrics` format 1.0.0.
    OpenMetrics,
}

impl Format {
    /// Returns the format that an `Accept` header prefers.
    ///
    /// Without a header, or with `*/*`, it is Prometheus' own, as in Go's client library.
    ///
    /// ```
    /// use kctl_runtime::manager::metrics::Format;
    ///
    /// let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.4";
    /// assert_eq!(Format::from_accept(prometheus), Format::OpenMetrics);
    /// assert_eq!(Format::from_accept("*/*"), Format::Prometheus);
    /// ```
    pub fn from_accept(accept: &str) -> Self {
        let (mut open, mut plain) = (0.0, 0.0);
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default().to_ascii_lowercase();
            let parameters: Vec<_> = parts.filter_map(|part| part.split_once('=')).collect();
            let parameter = |name: &str| parameters.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
            let quality: f64 = parameter("q").map_or(1.0, |q| q.parse().unwrap_or(0.0));
            let is_supported = parameter("version").is_none_or(|version| ["1.0.0", "0.0.1"].contains(&version));
            match media.as_str() {
                "application/openmetrics-text" if is_supported => open = quality.max(open),
                "text/plain" | "text/*" | "*/*" => plain = quality.max(plain),
                _ => {}
            }
        }
        if open > 0.0 && open >= plain { Self::OpenMetrics } else { Self::Prometheus }
    }

    /// Returns the `Content-Type` of a response in this format.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// Completes the output of registries, which is `OpenMetrics` without its end.
    pub(super) fn finish(self, mut open: String) -> String {
        match self {
            Self::OpenMetrics => {
                open += "# EOF\n";
                open
            }
            Self::Prometheus => prometheus_text(&open),
        }
    }
}

/// Converts to 0.0.4, where a counter's family is named like its samples, without units and exemplars.
fn prometheus_text(open: &str) -> String {
    let mut text = String::with_capacity(open.len());
    let mut lines = open.lines().peekable();
    while let Some(line) = lines.next() {
        let mut words = line.splitn(4, ' ');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("#"), Some("UNIT" | "EOF"), ..) => {}
            (Some("#"), Some("HELP"), Some(name), help) => {
                let is_counter = lines.peek().is_some_and(|next| **next == format!("# TYPE {name} counter"));
                let total = if is_counter { "_total" } else { "" };
                text += &format!("# HELP {name}{total} {}\n", help.unwrap_or_default());
            }
            (Some("#"), Some("TYPE"), Some(name), Some("counter")) => text += &format!("# TYPE {name}_total counter\n"),
            (Some("#"), Some("TYPE"), Some(name), Some("unknown")) => text += &format!("# TYPE {name} untyped\n"),
            (Some("#"), ..) => text += &format!("{line}\n"),
            _ => text += &format!("{}\n", with_bound_as_in_go(without_exemplar(line))),
        }
    }
    text
}

/// Prints bucket bounds as Go does, because dashboards query `le="5"` and `le="1.048576e+06"`.
fn with_bound_as_in_go(sample: &str) -> Cow<'_, str> {
    let Some((before, bound, after)) = split_at_bound(sample) else { return sample.into() };
    match bound.parse::<f64>().ok().filter(|bound| bound.is_finite()) {
        Some(bound) => format!("{before}{}{after}", format_as_in_go(bound)).into(),
        None => sample.into(),
    }
}

/// Returns the bound of a bucket, with the parts before and after it. The constant labels of a registry precede `le`.
fn split_at_bound(sample: &str) -> Option<(&str, &str, &str)> {
    let (_name, mut labels) = sample.split_once('{').filter(|(name, _)| name.ends_with("_bucket"))?;
    loop {
        let (label, rest) = labels.split_once("=\"")?;
        let (value, after) = rest.split_at(closing_quote(rest)?);
        if label == "le" {
            return Some((&sample[..sample.len() - rest.len()], value, after));
        }
        labels = after.strip_prefix("\",")?;
    }
}

/// Returns the index of the first quote that is not escaped.
fn closing_quote(value: &str) -> Option<usize> {
    let mut escaped = false;
    let quote = value.char_indices().find(|(_, letter)| {
        let closes = *letter == '"' && !escaped;
        escaped = *letter == '\\' && !escaped;
        closes
    });
    quote.map(|(at, _)| at)
}

/// Prints a number as Go's client library: with an exponent of at least two digits below 0.0001 and from a million on
/// (`strconv.FormatFloat` with the format `g`).
fn format_as_in_go(number: f64) -> String {
    let scientific = format!("{number:e}");
    let parts = scientific.split_once('e').and_then(|(digits, exponent)| Some((digits, exponent.parse::<i32>().ok()?)));
    match parts {
        Some((digits, exponent)) if !(-4..6).contains(&exponent) => format!("{digits}e{exponent:+03}"),
        _ => number.to_string(),
    }
}

/// Removes the exemplar of a sample. Only a `#` outside of quotes begins one.
fn without_exemplar(sample: &str) -> &str {
    let (mut quoted, mut escaped) = (false, false);
    for (at, letter) in sample.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = quoted,
            '"' => quoted = !quoted,
            '#' if !quoted => return sample[..at].trim_end(),
            _ => {}
        }
    }
    sample
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_have_the_format_that_scrapers_prefer() {
        let prometheus = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
            application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,\
            text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        let cases = [
            ("", Format::Prometheus),
            ("*/*", Format::Prometheus),
            ("text/html, */*;q=0.1", Format::Prometheus),
            ("application/openmetrics-text", Format::OpenMetrics),
            ("application/openmetrics-text;version=2.0.0", Format::Prometheus),
            ("application/openmetrics-text;q=0.2, text/plain;q=0.9", Format::Prometheus),
            ("application/openmetrics-text;q=0", Format::Prometheus),
            ("Application/OpenMetrics-Text; version=1.0.0", Format::OpenMetrics),
            (prometheus, Format::OpenMetrics),
        ];
        for (accept, format) in cases {
            assert_eq!(Format::from_accept(accept), format, "{accept}");
        }
    }

    #[test]
    fn text_format_matches_go_without_units_and_exemplars() {
        let open = "# HELP jobs Jobs.\n# TYPE jobs counter\njobs_total{a=\"x # {y}\"} 1 # {id=\"7\"} 1.0\njobs_total{a=\" # {\"} 2\n\
            # HELP wait_seconds Waits.\n# TYPE wait_seconds gauge\n# UNIT wait_seconds seconds\nwait_seconds 0.5\n\
            # HELP took Times.\n# TYPE took histogram\ntook_bucket{le=\"0.5\",a=\"1.0\"} 0\ntook_bucket{le=\"5.0\",a=\"1.0\"} 1\n\
            # HELP other Of no type.\n# TYPE other unknown\nother 1\n";
        let old = "# HELP jobs_total Jobs.\n# TYPE jobs_total counter\njobs_total{a=\"x # {y}\"} 1\njobs_total{a=\" # {\"} 2\n\
            # HELP wait_seconds Waits.\n# TYPE wait_seconds gauge\nwait_seconds 0.5\n\
            # HELP took Times.\n# TYPE took histogram\ntook_bucket{le=\"0.5\",a=\"1.0\"} 0\ntook_bucket{le=\"5\",a=\"1.0\"} 1\n\
            # HELP other Of no type.\n# TYPE other untyped\nother 1\n";
        assert_eq!(Format::Prometheus.finish(open.into()), old);
        assert_eq!(Format::OpenMetrics.finish(open.into()), format!("{open}# EOF\n"));
    }

    #[test]
    fn bucket_bounds_are_printed_as_in_go() {
        for (bound, expected) in [
            ("1e-8", "1e-08"),
            ("9.999999999999999e-6", "9.999999999999999e-06"),
            ("0.0001", "0.0001"),
            ("0.005", "0.005"),
            ("2.5", "2.5"),
            ("262144.0", "262144"),
            ("1048576.0", "1.048576e+06"),
            ("16777216.0", "1.6777216e+07"),
            ("+Inf", "+Inf"),
        ] {
            let sample = |bound: &str| format!("size_bucket{{le=\"{bound}\",verb=\"GET\"}} 1\n");
            assert_eq!(Format::Prometheus.finish(sample(bound)), sample(expected));
        }
    }

    #[test]
    fn bounds_behind_constant_labels_are_converted() {
        for (labels, expected) in [
            (r#"app="web",le="5.0""#, r#"app="web",le="5""#),
            (r#"app="a",zone="b",le="5.0",verb="GET""#, r#"app="a",zone="b",le="5",verb="GET""#),
            (r#"app="x\",le=\"7.0\"",le="5.0""#, r#"app="x\",le=\"7.0\"",le="5""#),
            (r#"file="5.0",le="+Inf""#, r#"file="5.0",le="+Inf""#),
            (r#"file="5.0""#, r#"file="5.0""#),
        ] {
            let sample = |labels: &str| format!("size_bucket{{{labels}}} 1\n");
            assert_eq!(Format::Prometheus.finish(sample(labels)), sample(expected));
        }
        let gauge = "price{le=\"5.0\"} 1\n";
        assert_eq!(Format::Prometheus.finish(gauge.into()), gauge, "a label of the user");
    }
}
