//! What Step Functions refuses in an expression although JSONata knows it: references to a context
//! item.
//!
//! An expression is evaluated over nothing; everything it may read hangs below `$states` or a
//! variable. A bare name at its top would silently find nothing here and would not deploy there, so
//! it is refused when the definition is read.

use jsonata_core::ast::{AstNode, BinaryOp};

/// The first reference at the top of an expression to an item that is not there, as written.
///
/// It descends only where the context item is still the missing one: not into later steps of a
/// path, filters, sort terms or the bodies of functions.
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
