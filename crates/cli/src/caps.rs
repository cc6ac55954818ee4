//! The limits of a stack's load, from the environment and from the options of `dev`.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use graph::agent::Agent;
use graph::check::nearest;
use stack::load::{self, Limits};
use workflow::env::{self, Invalid, Lookup};

use crate::args::load::{self as parse, AgentMax, Caps, agent_max};
use crate::config::StackEnvironment;
use crate::failure::Failure;

/// The limits that the environment sets.
///
/// # Errors
/// When a value is invalid.
pub fn of_environment(lookup: &impl Lookup) -> Result<Limits, Invalid> {
    let most = |name, default| {
        let set = env::at_least_one(lookup, name)?;
        Ok(set.map_or(default, size))
    };
    let (name, expected) = (env::DAYBOOK_QUEUE_MAX, "a whole number");
    let default = u32::try_from(load::QUEUE_MAX).unwrap_or(u32::MAX);
    let queue = env::parsed(lookup, name, default, expected)?;
    Ok(Limits {
        at_work: most(env::DAYBOOK_AGENTS_MAX, load::AT_WORK_MAX)?,
        by_agent: by_agent(lookup)?,
        queue: usize::try_from(queue).unwrap_or(usize::MAX),
        executions: most(env::DAYBOOK_EXECUTIONS_MAX, load::EXECUTIONS_MAX)?,
        disk_bytes: disk_bytes(lookup)?,
    })
}

fn disk_bytes(lookup: &impl Lookup) -> Result<Option<u64>, Invalid> {
    let (name, expected) = (env::DAYBOOK_DISK_MAX, parse::SIZE);
    let Some(value) = env::text(lookup, name) else { return Ok(None) };
    let size = parse::size(&value);
    size.map(Some).map_err(|_| Invalid::Malformed { name, value, expected })
}

fn by_agent(lookup: &impl Lookup) -> Result<BTreeMap<String, usize>, Invalid> {
    let name = env::DAYBOOK_AGENT_MAX;
    let texts = env::text(lookup, name).unwrap_or_default();
    let parse = |text: &str| {
        let expected = "NAME=N, separated by commas";
        agent_max(text).map_err(|_| Invalid::Malformed { name, value: text.to_owned(), expected })
    };
    let caps = texts.split(',').filter(|text| !text.trim().is_empty()).map(parse);
    caps.map(|cap| cap.map(|AgentMax { agent, most }| (agent, size(most)))).collect()
}

/// The environment with the options of `dev`, which take precedence.
pub fn with_options(environment: &StackEnvironment, caps: &Caps) -> StackEnvironment {
    let mut with = environment.clone();
    let load = &mut with.load;
    load.at_work = caps.agents_max.map_or(load.at_work, size);
    load.executions = caps.executions_max.map_or(load.executions, size);
    load.disk_bytes = caps.disk_max.or(load.disk_bytes);
    if let Some(queue) = caps.queue_max {
        load.queue = usize::try_from(queue).unwrap_or(usize::MAX);
    }
    load.by_agent.extend(caps.agent_max.iter().map(|it| (it.agent.clone(), size(it.most))));
    if let Some(calls) = caps.model_calls_max {
        with.models.calls_max = Some(calls);
        let name = env::DAYBOOK_MODEL_CALLS_MAX;
        with.handed_on.retain(|(known, _)| known != name);
        with.handed_on.push((name.to_owned(), calls.to_string()));
    }
    with
}

/// The limits, if they name only these agents.
///
/// # Errors
/// When they name another one.
pub fn checked(limits: &Limits, agents: &[Agent]) -> Result<Limits, Failure> {
    let known = || agents.iter().map(Agent::name);
    let Some(name) = limits.by_agent.keys().find(|name| !known().any(|it| it == *name)) else {
        return Ok(limits.clone());
    };
    let failure = Failure::usage(format!(
        "--agent-max or {} names `{name}`, which is no agent",
        env::DAYBOOK_AGENT_MAX
    ));
    Err(match nearest(name, known()) {
        Some(nearest) => failure.hint(format!("did you mean `{nearest}`?")),
        None => failure.hint("`daybook agents` lists them"),
    })
}

fn size(number: NonZeroU32) -> usize {
    usize::try_from(number.get()).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Limits, Invalid> {
        of_environment(&|name: &str| {
            pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn limits_have_defaults_and_refuse_wrong_values() {
        assert_eq!(read(&[]), Ok(Limits::default()));
        let limits = read(&[(env::DAYBOOK_AGENT_MAX, "a=1, b=2"), (env::DAYBOOK_QUEUE_MAX, "0")]);
        let limits = limits.unwrap();
        let by_agent = [("a".to_owned(), 1), ("b".to_owned(), 2)].into();
        assert_eq!((limits.by_agent, limits.queue), (by_agent, 0));
        for (text, bytes) in [("4096", 4_096), ("500MB", 500_000_000), ("2 GiB", 2 << 30)] {
            assert_eq!(read(&[(env::DAYBOOK_DISK_MAX, text)]).unwrap().disk_bytes, Some(bytes));
        }
        for (name, value) in [
            (env::DAYBOOK_AGENTS_MAX, "0"),
            (env::DAYBOOK_AGENTS_MAX, "many"),
            (env::DAYBOOK_AGENT_MAX, "a"),
            (env::DAYBOOK_AGENT_MAX, "=1"),
            (env::DAYBOOK_AGENT_MAX, "a=1,b=0"),
            (env::DAYBOOK_QUEUE_MAX, "-1"),
            (env::DAYBOOK_EXECUTIONS_MAX, "1e3"),
            (env::DAYBOOK_DISK_MAX, "0"),
            (env::DAYBOOK_DISK_MAX, "20 gigs"),
            (env::DAYBOOK_DISK_MAX, "-1GB"),
            (env::DAYBOOK_DISK_MAX, "99999999TiB"),
        ] {
            let refusal = read(&[(name, value)]).unwrap_err().to_string();
            assert!(refusal.starts_with(name), "{value}: {refusal}");
        }
    }
}
