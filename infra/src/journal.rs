//! The journal in a stack of its own: its table, and the key that signs its log. A deployment that fails, and the removal
//! of the other stacks, leave both as they are.

use anyhow::Result;
use jsii::Is as _;

use crate::cdk::{App, CfnOutput, CfnOutputProps, Stack, StackProps};
use crate::config::Config;
use crate::names::Names;
use crate::stack::{of, tag};
use crate::{log, table};

/// Creates the stack.
///
/// # Errors
/// The CDK rejects it.
pub fn stack(app: &App, config: &Config) -> Result<Stack> {
    let name = format!("{}-journal", Names::prefix(config));
    let props = StackProps::new()
        .stack_name(&name)
        .description("Daybook: the journal, and the key that signs its log.")
        .termination_protection(config.protect);
    let stack = Stack::new_with(&of(app), &name, props)?;
    tag(&stack, config)?;
    let names = crate::stack::names(&stack, config)?;
    let key = log::key(&stack, &names, config)?;
    let table = table::make(&stack, &names, config)?;
    // The table comes last: if anything else failed after it, its protection would prevent the rollback.
    of(&table).node()?.add_dependency(&[key.upcast()])?;
    for (id, value, description) in [
        ("JournalTableName", table.table_name()?, "The journal's table"),
        ("JournalLogKey", names.log_key_alias(), "Signs the log of sessions"),
    ] {
        CfnOutput::new(&stack, id, CfnOutputProps::new(value).description(description))?;
    }
    Ok(stack)
}
