//! `--faults FILE`: which requests and events fail, as a list in YAML.

use std::{path::Path, time::Duration};

use kctl_apiserver::faults::{EventFault, Faults, Moment, RequestFault, Rule};
use serde::Deserialize;

use crate::Failure;

/// How long something is late unless the rule says it.
const SECONDS: f64 = 10.0;
/// The status of a refusal unless the rule says it.
const CODE: u16 = 500;

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
    #[serde(default)]
    after: bool,
    code: Option<u16>,
    retry_after: Option<u32>,
    seconds: Option<f64>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Name {
    Refuse,
    Reset,
    Half,
    Delay,
    CloseWatch,
    ExpireWatch,
    HoldWatch,
    SkipState,
    RepeatEvent,
}

/// Reads a plan of faults.
pub(crate) fn read(file: &Path) -> Result<Faults, Failure> {
    let broken = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let text = std::fs::read_to_string(file).map_err(|error| broken(&error))?;
    Ok(parse(&text).map_err(|error| broken(&error))?)
}

fn parse(text: &str) -> Result<Faults, String> {
    let lines: Vec<Line> = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
    let faults = Faults::seeded(0);
    for (index, line) in lines.into_iter().enumerate() {
        faults.add(line.rule().map_err(|error| format!("rule {}: {error}", index + 1))?);
    }
    Ok(faults)
}

impl Line {
    fn rule(self) -> Result<Rule, String> {
        let seconds = self.seconds.unwrap_or(SECONDS);
        let time = Duration::try_from_secs_f64(seconds).map_err(|error| format!("seconds is {seconds}: {error}"))?;
        let moment = if self.after { Moment::After } else { Moment::Before };
        let (nth, per_mille, times) = (self.nth, self.per_mille, self.times);
        let mut rule = match self.fault {
            Name::Refuse => {
                let (code, retry_after) = (self.code.unwrap_or(CODE), self.retry_after);
                self.of_request(RequestFault::Refuse { code, retry_after, moment })
            }
            Name::Reset => self.of_request(RequestFault::Reset(moment)),
            Name::Half => self.of_request(RequestFault::Half),
            Name::Delay if self.after => self.of_request(RequestFault::DelayAnswer(time)),
            Name::Delay => self.of_request(RequestFault::Delay(time)),
            Name::CloseWatch => self.of_event(EventFault::Close)?,
            Name::ExpireWatch => self.of_event(EventFault::Expire)?,
            Name::HoldWatch => self.of_event(EventFault::Hold(time))?,
            Name::SkipState => self.of_event(EventFault::Skip(time))?,
            Name::RepeatEvent => self.of_event(EventFault::Repeat)?,
        };
        if let Some(nth) = nth {
            rule = rule.nth(nth);
        }
        if let Some(per_mille) = per_mille {
            rule = rule.per_mille(per_mille);
        }
        Ok(if let Some(times) = times { rule.times(times) } else { rule })
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

    fn of_event(self, fault: EventFault) -> Result<Rule, String> {
        if self.verb.is_some() {
            return Err("verb says nothing of an event of a watch: remove it".into());
        }
        Ok(Rule::event(fault, move |told| self.means(&told.client, &told.resource, &told.namespace, &told.name)))
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
            ("- { fault: half }\n- { fault: skipState, verb: list }", Err("rule 2: verb says nothing")),
            ("- { fault: delay, seconds: -1 }", Err("rule 1: seconds is -1")),
            ("- { fault: flood }", Err("flood")),
            ("- { fault: half, verbs: list }", Err("verbs")),
        ];
        for (text, expected) in cases {
            match (parse(text), expected) {
                (Ok(_), Ok(())) => {}
                (Err(error), Err(part)) => assert!(error.contains(part), "{text}: {error}"),
                (read, _) => panic!("{text}: {read:?}"),
            }
        }
    }
}
