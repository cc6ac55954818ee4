//! The three Lambda functions.

use anyhow::Result;
use incident::profile::MAX_INCIDENTS_PER_HOUR;
use jsii::Handle as _;
use workflow::env;

use crate::cdk::aws_iam::IRole;
use crate::cdk::aws_lambda::{
    Architecture, CfnUrl, CfnUrlProps, CfnUrlPropsRequired, Code, Function, FunctionProps, Runtime,
    Tracing,
};
use crate::cdk::aws_logs::{LogGroup, LogGroupProps};
use crate::cdk::aws_sqs::Queue;
use crate::cdk::{Duration, RemovalPolicy, Stack};
use crate::config::{self, Config};
use crate::names::Names;
use crate::{log, roles, variables};

/// Timeout of the invoker and the poller, in seconds: less than the 120 s after which the state
/// machine treats a call as lost.
const CALL_SECONDS: u32 = 110;

/// Timeout of the watchdog's sweep, in seconds: less than the time between sweeps.
const SWEEP_SECONDS: u32 = 240;

pub(crate) struct Functions {
    pub(crate) invoker: Function,
    pub(crate) poller: Function,
    pub(crate) watchdog: Function,
}

/// Creates the functions. Events that cannot be delivered to the watchdog go to `dead_letters`.
pub(crate) fn make(
    stack: &Stack,
    names: &Names,
    config: &Config,
    runtime_arn: &str,
    dead_letters: &Queue,
) -> Result<Functions> {
    let maker = Maker { stack, names, config, runtime_arn };
    let (poller_role, invoker_role, watchdog_role) =
        (maker.role("Poller")?, maker.role("Invoker")?, maker.role("Watchdog")?);
    Ok(Functions {
        invoker: maker.make("Invoker", "invoker", &invoker_role, |props| {
            Ok(props.timeout(&Duration::seconds(maker.kernel(), CALL_SECONDS)?))
        })?,
        poller: maker.make("Poller", "poller", &poller_role, |props| {
            Ok(props.timeout(&Duration::seconds(maker.kernel(), CALL_SECONDS)?))
        })?,
        watchdog: maker.make("Watchdog", "watchdog", &watchdog_role, |props| {
            let timeout = Duration::seconds(maker.kernel(), SWEEP_SECONDS)?;
            Ok(props.timeout(&timeout).dead_letter_queue(dead_letters))
        })?,
    })
}

/// The URL for a person's actions. Lambda checks each request's signature and states its caller.
pub(crate) fn actions_url(stack: &Stack, functions: &Functions) -> Result<CfnUrl> {
    let arn = functions.poller.function_arn()?;
    let required = CfnUrlPropsRequired { auth_type: "AWS_IAM", target_function_arn: &arn };
    Ok(CfnUrl::new(stack, "PollerUrl", CfnUrlProps::new(required))?)
}

struct Maker<'a> {
    stack: &'a Stack,
    names: &'a Names,
    config: &'a Config,
    runtime_arn: &'a str,
}

impl Maker<'_> {
    fn kernel(&self) -> &jsii::Kernel {
        self.stack.object().kernel()
    }

    /// The role of a function. It already has every permission that the library would add.
    fn role(&self, id: &str) -> Result<IRole> {
        let role = roles::make(self.stack, self.names, self.config, &format!("{id}Role"))?;
        Ok(role.without_policy_updates()?)
    }

    fn make(
        &self,
        id: &str,
        name: &str,
        role: &IRole,
        own: impl FnOnce(FunctionProps) -> Result<FunctionProps>,
    ) -> Result<Function> {
        let Self { stack, names, config, runtime_arn } = *self;
        let logs = log_group(stack, &format!("{id}Logs"), &names.function_log_group(name), config)?;
        let kernel = self.kernel();
        let code = Code::from_asset(kernel, format!("{}/{name}", config.functions))?;
        let mut environment = vec![
            (env::DAYBOOK_STAGE, config.stage.clone()),
            (env::JOURNAL_TABLE_NAME, names.of("journal")),
            (env::AGENT_RUNTIME_ARN, runtime_arn.to_owned()),
        ];
        environment.extend(log::environment(names, name));
        environment.extend(variables::of_functions(&config.variables));
        if name == "poller" {
            environment.push((env::STATE_MACHINE_ARN, names.machine_arn()));
        }
        if config.notify && ["poller", "watchdog"].contains(&name) {
            environment.push((env::NOTIFY_BUS_NAME, config.bus.clone()));
            environment.extend(config.link.clone().map(|link| (env::NOTIFY_LINK, link)));
        }
        if name == "invoker" {
            environment.push((MAX_INCIDENTS_PER_HOUR, config.incidents_per_hour.to_string()));
        }
        let props = FunctionProps::new(&code, "bootstrap", &Runtime::provided_al2023(kernel)?)
            .function_name(names.of(name))
            .architecture(&match config.architecture {
                config::Architecture::Arm64 => Architecture::arm_64(kernel)?,
                config::Architecture::X86 => Architecture::x86_64(kernel)?,
            })
            .memory_size(config.function_memory_mib)
            .role(role)
            .log_group(&logs)
            .tracing(Tracing::Active)
            .environment(&environment);
        Ok(Function::new(stack, id, own(props)?)?)
    }
}

/// Creates a log group with the configured retention.
pub(crate) fn log_group(stack: &Stack, id: &str, name: &str, config: &Config) -> Result<LogGroup> {
    let props = LogGroupProps::new()
        .log_group_name(name)
        .retention(config.log_retention)
        .removal_policy(RemovalPolicy::Destroy);
    Ok(LogGroup::new_with(stack, id, props)?)
}
