//! The Lambda functions of a stack, in its process.

use agentcore::Runtime;
use aws_config::SdkConfig;
use invoker::Invoker;
use invoker::admission::Rules;
use journal::clock::Clock;
use poller::Poller;
use watchdog::Watchdog;

use super::chain;
use crate::functions::{self, FunctionError, Functions};
use crate::store::Database;
use crate::{bus, names};

/// The invoker and the poller.
pub(super) fn functions(
    store: &Database,
    clock: &Clock,
    aws: &SdkConfig,
    rules: Rules,
) -> Functions {
    let runtime = runtime(aws);
    let invoker = Invoker::new(store.clone(), runtime.clone(), clock.clone()).with_rules(rules);
    let callbacks = aws_sdk_sfn::Client::new(aws);
    let poller = Poller::new(store.clone(), callbacks, runtime, clock.clone());
    let poller = poller.with_state_machine(Some(names::STATE_MACHINE_ARN.to_owned()));
    let poller = poller.counting_even_time();
    Functions::default()
        .with(names::INVOKER_ARN, move |payload| {
            let invoker = invoker.clone();
            async move {
                let reply = invoker.handle(functions::request(payload)?).await;
                functions::reply(&reply.map_err(|e| FunctionError::new(e.name(), chain(&e)))?)
            }
        })
        .with(names::POLLER_ARN, move |payload| {
            let poller = poller.clone();
            async move {
                let by = bus::principal_of(&payload);
                let reply = poller.serve_for(payload, &by).await;
                reply.map_err(|e| FunctionError::new(e.name(), chain(&e)))
            }
        })
}

pub(super) fn watchdog(store: &Database, clock: &Clock, aws: &SdkConfig) -> Watchdog<Database> {
    let cloud =
        watchdog::Cloud { executions: aws_sdk_sfn::Client::new(aws), runtime: runtime(aws) };
    Watchdog::new(store.clone(), cloud, clock.clone())
}

fn runtime(aws: &SdkConfig) -> Runtime {
    let client = aws_sdk_bedrockagentcore::Client::new(aws);
    Runtime { client, arn: names::RUNTIME_ARN.to_owned(), qualifier: None }
}
