//! `--faults FILE`: a YAML list of rules that say which requests and watch events fail.
//!
//! ```yaml
//! - { fault: reject, verb: patch, resource: pods/status, code: 409, perMille: 100 }
//! - { fault: holdWatch, client: my-operator, seconds: 5, times: 1 }
//! ```
//!
//! guide/api-server.md describes each fault. The simulator has more faults, for which it needs a running app.

use std::{io::Read, path::Path, time::Duration};

use kctl_apiserver::faults::{EventFault, Faults, Moment, RequestFault, Rule, StaleState};
use serde::Deserialize;
use serde_json::Value;

use crate::Failure;

/// Maximum size of the file in bytes. A device may have no end.
const FILE_LEN_MAX: u64 = 16 << 20;
/// Default of `seconds`.
///
/// For delays of requests and of watch events.
const SECONDS: f64 = 10.0;
/// Maximum of `seconds`: a day. The fault injector adds it to times of the clock, which longer ones would overflow.
const SECONDS_MAX: f64 = 86_400.0;
/// Default of `code`.
///
/// A rule may set another code, such as 429 together with `retryAfter`.
const CODE: u16 = 500;
/// Default of `changes`.
///
/// The state before the last change is the smallest step back.
const CHANGES: usize = 1;

/// One rule: a fault, the requests or events that it is for, and how often it occurs.
///
/// Absent fields match everything.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FaultRule {
    /// The fault to inject, such as `reject`.
    fault: FaultKind,
    /// The client's program: the beginning of its `User-Agent`, up to the first slash or space.
    client: Option<String>,
    /// The verb of a request as in RBAC, such as `list`.
    verb: Option<String>,
    /// The plural, with its subresource: `pods/status`.
    resource: Option<String>,
    /// The namespace of the object or list.
    namespace: Option<String>,
    /// The name of the object.
    name: Option<String>,
    /// Only the nth match, counted from one.
    nth: Option<u64>,
    /// Probability in thousandths. `--faults-seed` makes the choice repeatable.
    per_mille: Option<u16>,
    /// Maximum number of times.
    times: Option<u64>,
    /// `true` injects the fault after the server has processed the request: the client sees a failure of a write that was stored.
    after: Option<bool>,
    /// Status code of a rejected request, from 400 to 599.
    code: Option<u16>,
    /// Value of the header `Retry-After` in seconds.
    retry_after: Option<u32>,
    /// Delay of a request, or of the events of a watch, in seconds.
    seconds: Option<f64>,
    /// Age of an outdated state, in changes of the resource.
    changes: Option<usize>,
}

/// The kinds of faults, of requests first and of watches then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum FaultKind {
    /// The server answers with an error status.
    Reject,
    /// The connection is closed without a response.
    Reset,
    /// The response body ends in the middle.
    Half,
    /// The request, or its response, is late.
    Delay,
    /// Reads that allow it (`resourceVersion=0`) return an old state.
    Stale,
    /// Lists return an old state, also those that ask for the newest one. A `get` returns the current object.
    Outdated,
    /// A watch ends.
    CloseWatch,
    /// A watch ends with 410 Gone, so the client has to list again.
    ExpireWatch,
    /// An event and all later ones of its watch are late.
    HoldWatch,
    /// An event is not delivered; the watch continues with the newest state.
    SkipState,
    /// An event is sent twice.
    RepeatEvent,
}

impl FaultKind {
    /// Returns the name in the file.
    fn text(self) -> &'static str {
        match self {
            Self::Reject => "reject",
            Self::Reset => "reset",
            Self::Half => "half",
            Self::Delay => "delay",
            Self::Stale => "stale",
            Self::Outdated => "outdated",
            Self::CloseWatch => "closeWatch",
            Self::ExpireWatch => "expireWatch",
            Self::HoldWatch => "holdWatch",
            Self::SkipState => "skipState",
            Self::RepeatEvent => "repeatEvent",
        }
    }

    /// Returns the fields that apply to the fault, in addition to the fields of all faults.
    fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Reject => &["verb", "after", "code", "retryAfter"],
            Self::Reset => &["verb", "after"],
            Self::Half => &["verb"],
            Self::Delay => &["verb", "after", "seconds"],
            Self::Stale | Self::Outdated => &["verb", "seconds", "changes"],
            Self::HoldWatch | Self::SkipState => &["seconds"],
            Self::CloseWatch | Self::ExpireWatch | Self::RepeatEvent => &[],
        }
    }
}

/// Reads the rules of a file. `seed` decides which requests `perMille` chooses.
///
/// # Errors
/// The file can't be read, is not a list of rules, or a rule is invalid; the error names the rule by its number.
pub(crate) fn read(file: &Path, seed: u64) -> Result<Faults, Failure> {
    let broken = |error: &dyn std::fmt::Display| format!("--faults {}: {error}", file.display());
    let mut text = String::new();
    let opened = std::fs::File::open(file).map_err(|error| broken(&error))?;
    let len = opened.take(FILE_LEN_MAX + 1).read_to_string(&mut text).map_err(|error| broken(&error))?;
    if len as u64 > FILE_LEN_MAX {
        return Err(broken(&format!("longer than {FILE_LEN_MAX} bytes")).into());
    }
    Ok(parse(&text, seed).map_err(|error| broken(&error))?)
}

/// Parses the rules. Each rule counts the requests that it matches. The first rule that takes effect is used.
fn parse(text: &str, seed: u64) -> Result<Faults, String> {
    let lines: Vec<FaultRule> = serde_saphyr::from_str(text).map_err(|error| match serde_saphyr::from_str(text) {
        Ok(Value::Array(_)) | Err(_) => error.to_string(),
        // The parser only says that it expects the start of a sequence.
        Ok(_other) => "it has to be a list of rules, such as `- { fault: half }`".to_owned(),
    })?;
    let faults = Faults::seeded(seed);
    for (index, line) in lines.into_iter().enumerate() {
        faults.add(line.rule().map_err(|error| format!("rule {}: {error}", index + 1))?);
    }
    Ok(faults)
}

impl FaultRule {
    /// Returns the rule of the fault injector.
    fn rule(self) -> Result<Rule, String> {
        let seconds = self.seconds.unwrap_or(SECONDS);
        if !(0.0..=SECONDS_MAX).contains(&seconds) {
            return Err(format!("seconds is {seconds}: it has to be from 0 to {SECONDS_MAX}"));
        }
        let time = Duration::try_from_secs_f64(seconds).map_err(|error| format!("seconds is {seconds}: {error}"))?;
        let after = self.after == Some(true);
        let moment = if after { Moment::After } else { Moment::Before };
        let (nth, per_mille, times) = (self.nth, self.per_mille, self.times);
        self.check()?;
        let mut rule = match self.fault {
            FaultKind::Reject => {
                let (code, retry_after) = (self.code.unwrap_or(CODE), self.retry_after);
                self.request_rule(RequestFault::Reject { code, retry_after, moment })
            }
            FaultKind::Reset => self.request_rule(RequestFault::Reset(moment)),
            FaultKind::Half => self.request_rule(RequestFault::Half),
            FaultKind::Delay if after => self.request_rule(RequestFault::DelayResponse(time)),
            FaultKind::Delay => self.request_rule(RequestFault::Delay(time)),
            FaultKind::Stale => {
                let past = self.stale_state();
                self.request_rule(RequestFault::Stale { past, lag: time })
            }
            FaultKind::Outdated => {
                let past = self.stale_state();
                self.request_rule(RequestFault::Outdated { past, lag: time })
            }
            FaultKind::CloseWatch => self.event_rule(EventFault::Close),
            FaultKind::ExpireWatch => self.event_rule(EventFault::Expire),
            FaultKind::HoldWatch => self.event_rule(EventFault::Hold(time)),
            FaultKind::SkipState => self.event_rule(EventFault::Skip(time)),
            FaultKind::RepeatEvent => self.event_rule(EventFault::Repeat),
        };
        if let Some(nth) = nth {
            rule = rule.nth(nth);
        }
        if let Some(per_mille) = per_mille {
            rule = rule.per_mille(per_mille);
        }
        Ok(if let Some(times) = times { rule.times(times) } else { rule })
    }

    /// Checks values that the types allow, such as a success status for a rejected request.
    fn check(&self) -> Result<(), String> {
        if let Some(code) = self.code.filter(|code| !(400..600).contains(code)) {
            return Err(format!("code is {code}: it has to be from 400 to 599"));
        }
        if let Some(per_mille) = self.per_mille.filter(|per_mille| *per_mille > 1_000) {
            return Err(format!("perMille is {per_mille}: at most 1000 of a thousand fail"));
        }
        if self.nth == Some(0) {
            return Err("nth is 0: the first one is 1".into());
        }
        self.check_fields()
    }

    /// Rejects fields that don't apply to the fault, instead of ignoring them.
    ///
    /// # Errors
    /// Names the first such field and the fault.
    fn check_fields(&self) -> Result<(), String> {
        let given = [
            ("verb", self.verb.is_some()),
            ("after", self.after.is_some()),
            ("code", self.code.is_some()),
            ("retryAfter", self.retry_after.is_some()),
            ("seconds", self.seconds.is_some()),
            ("changes", self.changes.is_some()),
        ];
        let known = self.fault.fields();
        match given.iter().find(|(field, is_given)| *is_given && !known.contains(field)) {
            Some((field, _)) => Err(format!("{field} does not apply to the fault {}: remove it", self.fault.text())),
            None => Ok(()),
        }
    }

    /// Returns the age of an outdated state.
    fn stale_state(&self) -> StaleState {
        StaleState::Changes(self.changes.unwrap_or(CHANGES))
    }

    /// Returns `true` if the rule is for such a client and object.
    fn matches(&self, client: &str, resource: &str, namespace: &str, name: &str) -> bool {
        let fits = |wanted: &Option<String>, is: &str| wanted.as_ref().is_none_or(|wanted| wanted == is);
        fits(&self.client, client)
            && fits(&self.resource, resource)
            && fits(&self.namespace, namespace)
            && fits(&self.name, name)
    }

    /// Returns the rule for a fault of requests.
    fn request_rule(self, fault: RequestFault) -> Rule {
        Rule::request(fault, move |request| {
            self.verb.as_ref().is_none_or(|verb| verb == request.verb)
                && self.matches(&request.client, &request.resource, &request.namespace, &request.name)
        })
    }

    /// Returns the rule for a fault of watch events.
    fn event_rule(self, fault: EventFault) -> Rule {
        Rule::event(fault, move |event| self.matches(&event.client, &event.resource, &event.namespace, &event.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plan_is_read_or_names_the_invalid_rule() {
        let cases = [
            ("[]", Ok(())),
            ("fault: half", Err("it has to be a list of rules")),
            ("{ rules: [{ fault: half }] }", Err("it has to be a list of rules")),
            ("- { fault: reset, client: kubectl, verb: list, resource: pods, nth: 2, after: true }", Ok(())),
            ("- { fault: reject, code: 429, retryAfter: 3, perMille: 100 }", Ok(())),
            ("- { fault: half }\n- { fault: holdWatch, seconds: 0.5, times: 1 }", Ok(())),
            (
                "- { fault: half }\n- { fault: skipState, verb: list }",
                Err("rule 2: verb does not apply to the fault skipState"),
            ),
            ("- { fault: stale, resource: pods }\n- { fault: outdated, changes: 3, seconds: 2 }", Ok(())),
            ("- { fault: delay, seconds: -1 }", Err("rule 1: seconds is -1")),
            ("- { fault: delay, seconds: 86400 }", Ok(())),
            ("- { fault: delay, seconds: 86401 }", Err("rule 1: seconds is 86401: it has to be from 0 to 86400")),
            (
                "- { fault: holdWatch, seconds: 1e19 }",
                Err("rule 1: seconds is 10000000000000000000: it has to be from 0"),
            ),
            ("- { fault: stale, seconds: .nan }", Err("rule 1: seconds is NaN")),
            ("- { fault: reject, code: 42 }", Err("rule 1: code is 42: it has to be from 400 to 599")),
            ("- { fault: half, perMille: 1001 }", Err("perMille is 1001")),
            ("- { fault: half, nth: 0 }", Err("nth is 0")),
            ("- { fault: flood }", Err("flood")),
            ("- { fault: half, verbs: list }", Err("verbs")),
            ("- { fault: reset, code: 500 }", Err("rule 1: code does not apply to the fault reset: remove it")),
            ("- { fault: half, after: true }", Err("after does not apply to the fault half")),
            ("- { fault: reject, seconds: 3 }", Err("seconds does not apply to the fault reject")),
            ("- { fault: closeWatch, seconds: 3 }", Err("seconds does not apply to the fault closeWatch")),
            ("- { fault: delay, retryAfter: 3 }", Err("retryAfter does not apply to the fault delay")),
            ("- { fault: delay, changes: 3 }", Err("changes does not apply to the fault delay")),
            ("- { fault: delay, after: true, seconds: 3, verb: list }", Ok(())),
        ];
        for (text, expected) in cases {
            match (parse(text, 0), expected) {
                (Ok(_), Ok(())) => {}
                (Err(error), Err(part)) => assert!(error.contains(part), "{text}: {error}"),
                (read, _) => panic!("{text}: {read:?}"),
            }
        }
    }
}
