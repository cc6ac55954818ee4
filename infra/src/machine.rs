//! The state machine: the same definition that runs locally, with the stack's names inserted.

use anyhow::{Result, ensure};
use jsii::Handle as _;
use workflow::{env, state_machine};

use crate::cdk::Stack;
use crate::cdk::aws_iam::IRole;
use crate::cdk::aws_stepfunctions::{
    DefinitionBody, LogLevel, LogOptions, StateMachine, StateMachineProps,
};
use crate::config::Config;
use crate::functions::{Functions, log_group};
use crate::names::Names;
use crate::roles;

pub(crate) fn make(
    stack: &Stack,
    names: &Names,
    config: &Config,
    functions: &Functions,
) -> Result<StateMachine> {
    let role: IRole = roles::make(stack, names, config, "MachineRole")?.without_policy_updates()?;
    // Log groups with this prefix share one resource policy; there can be only ten such policies.
    let logs = format!("/aws/vendedlogs/states/{}", names.machine());
    let logs = log_group(stack, "MachineLogs", &logs, config)?;
    let substitutions = [
        (env::JOURNAL_TABLE_NAME, names.of("journal")),
        (env::JOURNAL_TTL_DAYS, config.ttl_days.to_string()),
        ("INVOKER_FUNCTION_ARN", functions.invoker.function_arn()?),
        ("POLLER_FUNCTION_ARN", functions.poller.function_arn()?),
        (state_machine::TRIGGER_PRINCIPAL, state_machine::PRINCIPAL_UNKNOWN.to_owned()),
    ];
    for name in state_machine::SUBSTITUTIONS {
        ensure!(
            substitutions.iter().any(|(known, _)| known == name),
            "the state machine's definition contains the unknown placeholder {name}"
        );
    }
    let text = DefinitionBody::from_string(stack.object().kernel(), state_machine::TEXT)?;
    let props = StateMachineProps::new()
        .state_machine_name(names.machine())
        .definition_body(&text)
        .definition_substitutions(&substitutions)
        .role(&role)
        // The contents of sessions belong into the journal, not into a log.
        .logs(
            LogOptions::new().destination(&logs).level(LogLevel::All).include_execution_data(false),
        )
        .tracing_enabled(true);
    Ok(StateMachine::new(stack, "Machine", props)?)
}
