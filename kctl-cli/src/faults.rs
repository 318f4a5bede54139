//! `--faults FILE`: which requests and events fail, as a list in YAML.

use std::{io::Read, path::Path, time::Duration};

use kctl_apiserver::faults::{EventFault, Faults, Moment, Past, RequestFault, Rule};
use serde::Deserialize;

use crate::Failure;

/// Bytes of a list of rules. A device may have no end.
const FILE_LEN_MAX: u64 = 16 << 20;
/// How long something is late unless the rule says it.
const SECONDS: f64 = 10.0;
/// The status of a refusal unless the rule says it.
const CODE: u16 = 500;
/// How many changes a server is behind unless the rule says it.
const CHANGES: usize = 1;

/// One rule: a fault, what it is for, and how often.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Line {
    fault: Name,
    /// The program, as its `User-Agent` begins.
    client: Option<String>,
    verb: Option<String>,
    /// The plural, with its subresource: `pods/status`.
    resource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    /// Only the nth of those that are meant, counted from one.
    nth: Option<u64>,
    /// So many of a thousand, by chance.
    per_mille: Option<u16>,
    /// So often at most.
    times: Option<u64>,
    /// Once the server has done it.
    after: Option<bool>,
    code: Option<u16>,
    retry_after: Option<u32>,
    seconds: Option<f64>,
    /// How old what is read is, in changes of its resource.
    changes: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Name {
    Refuse,
    Reset,
    Half,
    Delay,
    Stale,
    Outdated,
    CloseWatch,
    ExpireWatch,
    HoldWatch,
    SkipState,
    RepeatEvent,
}

impl Name {
    /// As it is written in a rule.
    fn text(self) -> &'static str {
        match self {
            Self::Refuse => "refuse",
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

    /// The fields that say how it is, besides those that say what it is for and how often.
    fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Refuse => &["verb", "after", "code", "retryAfter"],
            Self::Reset => &["verb", "after"],
            Self::Half => &["verb"],
            Self::Delay => &["verb", "after", "seconds"],
            Self::Stale | Self::Outdated => &["verb", "seconds", "changes"],
            Self::HoldWatch | Self::SkipState => &["seconds"],
            Self::CloseWatch | Self::ExpireWatch | Self::RepeatEvent => &[],
        }
    }
}

/// Reads a plan of faults.
pub(crate) fn read(file: &Path, seed: u64) -> Result<Faults, Failure> {
    let broken = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let mut text = String::new();
    let opened = std::fs::File::open(file).map_err(|error| broken(&error))?;
    let len = opened.take(FILE_LEN_MAX + 1).read_to_string(&mut text).map_err(|error| broken(&error))?;
    if len as u64 > FILE_LEN_MAX {
        return Err(broken(&format!("longer than {FILE_LEN_MAX} bytes")).into());
    }
    Ok(parse(&text, seed).map_err(|error| broken(&error))?)
}

fn parse(text: &str, seed: u64) -> Result<Faults, String> {
    let lines: Vec<Line> = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
    let faults = Faults::seeded(seed);
    for (index, line) in lines.into_iter().enumerate() {
        faults.add(line.rule().map_err(|error| format!("rule {}: {error}", index + 1))?);
    }
    Ok(faults)
}

impl Line {
    fn rule(self) -> Result<Rule, String> {
        let seconds = self.seconds.unwrap_or(SECONDS);
        let time = Duration::try_from_secs_f64(seconds).map_err(|error| format!("seconds is {seconds}: {error}"))?;
        let after = self.after == Some(true);
        let moment = if after { Moment::After } else { Moment::Before };
        let (nth, per_mille, times) = (self.nth, self.per_mille, self.times);
        self.check()?;
        let mut rule = match self.fault {
            Name::Refuse => {
                let (code, retry_after) = (self.code.unwrap_or(CODE), self.retry_after);
                self.of_request(RequestFault::Refuse { code, retry_after, moment })
            }
            Name::Reset => self.of_request(RequestFault::Reset(moment)),
            Name::Half => self.of_request(RequestFault::Half),
            Name::Delay if after => self.of_request(RequestFault::DelayAnswer(time)),
            Name::Delay => self.of_request(RequestFault::Delay(time)),
            Name::Stale => {
                let past = self.past();
                self.of_request(RequestFault::Stale { past, lag: time })
            }
            Name::Outdated => {
                let past = self.past();
                self.of_request(RequestFault::Outdated { past, lag: time })
            }
            Name::CloseWatch => self.of_event(EventFault::Close),
            Name::ExpireWatch => self.of_event(EventFault::Expire),
            Name::HoldWatch => self.of_event(EventFault::Hold(time)),
            Name::SkipState => self.of_event(EventFault::Skip(time)),
            Name::RepeatEvent => self.of_event(EventFault::Repeat),
        };
        if let Some(nth) = nth {
            rule = rule.nth(nth);
        }
        if let Some(per_mille) = per_mille {
            rule = rule.per_mille(per_mille);
        }
        Ok(if let Some(times) = times { rule.times(times) } else { rule })
    }

    /// What would be no fault, or another one than is said.
    fn check(&self) -> Result<(), String> {
        if let Some(code) = self.code.filter(|code| !(400..600).contains(code)) {
            return Err(format!("code is {code}: a refusal has one from 400 to 599"));
        }
        if let Some(per_mille) = self.per_mille.filter(|per_mille| *per_mille > 1_000) {
            return Err(format!("perMille is {per_mille}: at most 1000 of a thousand fail"));
        }
        if self.nth == Some(0) {
            return Err("nth is 0: the first one is 1".into());
        }
        self.check_fields()
    }

    /// A field that says nothing of the fault would be taken for one that does.
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
            Some((field, _)) => Err(format!("{field} says nothing of a fault {}: remove it", self.fault.text())),
            None => Ok(()),
        }
    }

    fn past(&self) -> Past {
        Past::Changes(self.changes.unwrap_or(CHANGES))
    }

    fn means(&self, client: &str, resource: &str, namespace: &str, name: &str) -> bool {
        let fits = |wanted: &Option<String>, is: &str| wanted.as_ref().is_none_or(|wanted| wanted == is);
        fits(&self.client, client)
            && fits(&self.resource, resource)
            && fits(&self.namespace, namespace)
            && fits(&self.name, name)
    }

    fn of_request(self, fault: RequestFault) -> Rule {
        Rule::request(fault, move |asked| {
            self.verb.as_ref().is_none_or(|verb| verb == asked.verb)
                && self.means(&asked.client, &asked.resource, &asked.namespace, &asked.name)
        })
    }

    fn of_event(self, fault: EventFault) -> Rule {
        Rule::event(fault, move |told| self.means(&told.client, &told.resource, &told.namespace, &told.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plan_is_read_or_says_which_rule_is_wrong() {
        let cases = [
            ("[]", Ok(())),
            ("- { fault: reset, client: kubectl, verb: list, resource: pods, nth: 2, after: true }", Ok(())),
            ("- { fault: refuse, code: 429, retryAfter: 3, perMille: 100 }", Ok(())),
            ("- { fault: half }\n- { fault: holdWatch, seconds: 0.5, times: 1 }", Ok(())),
            (
                "- { fault: half }\n- { fault: skipState, verb: list }",
                Err("rule 2: verb says nothing of a fault skipState"),
            ),
            ("- { fault: stale, resource: pods }\n- { fault: outdated, changes: 3, seconds: 2 }", Ok(())),
            ("- { fault: delay, seconds: -1 }", Err("rule 1: seconds is -1")),
            ("- { fault: refuse, code: 42 }", Err("rule 1: code is 42: a refusal has one from 400 to 599")),
            ("- { fault: half, perMille: 1001 }", Err("perMille is 1001")),
            ("- { fault: half, nth: 0 }", Err("nth is 0")),
            ("- { fault: flood }", Err("flood")),
            ("- { fault: half, verbs: list }", Err("verbs")),
            ("- { fault: reset, code: 500 }", Err("rule 1: code says nothing of a fault reset: remove it")),
            ("- { fault: half, after: true }", Err("after says nothing of a fault half")),
            ("- { fault: refuse, seconds: 3 }", Err("seconds says nothing of a fault refuse")),
            ("- { fault: closeWatch, seconds: 3 }", Err("seconds says nothing of a fault closeWatch")),
            ("- { fault: delay, retryAfter: 3 }", Err("retryAfter says nothing of a fault delay")),
            ("- { fault: delay, changes: 3 }", Err("changes says nothing of a fault delay")),
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
