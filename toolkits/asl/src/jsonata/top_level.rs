//! Finds references to a context item, which Step Functions rejects although JSONata allows them.
//!
//! An expression has no context item: all its data is in `$states` or in variables. A bare name at
//! the top level would silently select nothing, and AWS would not deploy it. So the parser rejects
//! it.

use jsonata_core::ast::{AstNode, BinaryOp};

/// The first reference to the missing context item, as written.
///
/// Later steps of a path, filters, sort terms and function bodies have a context item and are not
/// searched.
pub(super) fn stray_reference(node: &AstNode) -> Option<String> {
    match node {
        AstNode::Name(name) => Some(name.clone()),
        AstNode::ParentVariable(name) => Some(format!("$${name}")),
        AstNode::Variable(name) if name == "$" => Some("$$".to_owned()),
        AstNode::Variable(name) if name.is_empty() => Some("$".to_owned()),
        AstNode::Path { steps } => steps.first().and_then(|step| stray_reference(&step.node)),
        AstNode::Binary { op: BinaryOp::ColonEqual, rhs, .. } => stray_reference(rhs),
        AstNode::Binary { lhs, rhs, .. } => first([&**lhs, &**rhs]),
        AstNode::Unary { operand, .. } => stray_reference(operand),
        AstNode::Function { args, .. } => first(args),
        AstNode::Call { procedure, args } => first(std::iter::once(&**procedure).chain(args)),
        AstNode::Array(items) | AstNode::ArrayGroup(items) | AstNode::Block(items) => first(items),
        AstNode::Object(pairs) => first(pairs.iter().flat_map(|(key, value)| [key, value])),
        AstNode::Conditional { condition, then_branch, else_branch } => {
            let branches = [Some(&**condition), Some(&**then_branch), else_branch.as_deref()];
            first(branches.into_iter().flatten())
        }
        AstNode::ObjectTransform { input, .. } | AstNode::Sort { input, .. } => {
            stray_reference(input)
        }
        AstNode::FunctionApplication(inner) => stray_reference(inner),
        AstNode::Variable(_)
        | AstNode::String(_)
        | AstNode::Number(_)
        | AstNode::Boolean(_)
        | AstNode::Null
        | AstNode::Undefined
        | AstNode::Placeholder
        | AstNode::Regex { .. }
        | AstNode::Lambda { .. }
        | AstNode::Wildcard
        | AstNode::Descendant
        | AstNode::Parent(_)
        | AstNode::Transform { .. } => None,
    }
}

fn first<'a>(nodes: impl IntoIterator<Item = &'a AstNode>) -> Option<String> {
    nodes.into_iter().find_map(stray_reference)
}
