//! Limits the size of text that an expression can build.
//!
//! The evaluator limits time, depth and sequence length, but not text: forty doublings of a string
//! make a terabyte, and so does writing out a value that refers to another twice, forty levels
//! deep. So compilation rewrites each operation that builds text: its operands pass through
//! functions of ours, which reject operands that are, or would make a text that is, too large. An
//! expression cannot name these functions.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use jsonata_core::ast::{AstNode, BinaryOp, Stage};
use jsonata_core::evaluator::Evaluator;
use jsonata_core::value::JValue;

use super::functions::{Failed, add, error};

/// Largest operand of a text operation and longest text that it may build, in bytes: four times a
/// state's maximum output.
pub const TEXT_BYTES_MAX: usize = 1024 * 1024;

/// Total text that one evaluation may build, in bytes. A replacement counts as if the text
/// consisted of matches, a separator as if each byte were an item.
pub const TEXTS_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Largest operand, in bytes, of a call that takes its text from the context, where this module
/// cannot see it.
pub const OPERAND_BYTES_MAX: usize = 1024;

/// Deepest nesting of a value that is converted to text.
const LEVELS_MAX: usize = super::NESTING_MAX;

/// Size of a part that is not text, in bytes, including comma and quotes.
const PART_BYTES: usize = 4;

/// Names of our functions. An expression cannot contain a name with a space.
const BOUNDED: &str = "a bounded operand";
const WIDTH: &str = "a bounded width";
const FACTOR: &str = "a bounded factor";
const DIVISOR: &str = "a divisor of the factor";
const SMALL: &str = "a small operand";
const LAST_FACTOR: &str = "the last bounded factor";

/// Amount of text that an evaluation has built.
#[derive(Default)]
pub(super) struct Growth {
    bytes: Cell<usize>,
    /// First factors that wait for their last. Operands are evaluated from left to right, and an
    /// evaluation cannot catch errors, so each last factor finds its own.
    factors: RefCell<Vec<usize>>,
}

impl Growth {
    /// Starts a new evaluation.
    pub(super) fn reset(&self) {
        self.bytes.set(0);
        self.factors.borrow_mut().clear();
    }

    fn charge(&self, bytes: usize) -> Result<(), Failed> {
        self.bytes.set(self.bytes.get().saturating_add(bytes));
        if self.bytes.get() <= TEXTS_BYTES_MAX {
            return Ok(());
        }
        Err(error(&format!("all texts together exceed {TEXTS_BYTES_MAX} bytes")))
    }
}

/// Registers the functions that [`rewrite`] inserts into expressions.
pub(super) fn register(evaluator: &mut Evaluator) -> Rc<Growth> {
    let growth = Rc::<Growth>::default();
    let of_all = Rc::clone(&growth);
    add(evaluator, BOUNDED, move |arguments: &[JValue]| {
        let operand = operand(arguments);
        of_all.charge(within(&operand)?)?;
        Ok(operand)
    });
    let of_all = Rc::clone(&growth);
    add(evaluator, WIDTH, move |arguments: &[JValue]| {
        let operand = operand(arguments);
        of_all.charge(match &operand {
            JValue::Number(width) if width.abs() > TEXT_BYTES_MAX as f64 => return Err(too_large()),
            JValue::Number(width) => width.abs() as usize,
            other => within(other)?,
        })?;
        Ok(operand)
    });
    let of_all = Rc::clone(&growth);
    add(evaluator, FACTOR, move |arguments: &[JValue]| {
        let operand = operand(arguments);
        of_all.factors.borrow_mut().push(within(&operand)?);
        Ok(operand)
    });
    let of_all = Rc::clone(&growth);
    add(evaluator, DIVISOR, move |arguments: &[JValue]| {
        let operand = operand(arguments);
        // A regular expression may match at every byte, a string only once per its length.
        if let (JValue::String(pattern), Some(first)) =
            (&operand, of_all.factors.borrow_mut().last_mut())
        {
            *first = first.div_ceil(pattern.len().max(1));
        }
        Ok(operand)
    });
    let of_all = Rc::clone(&growth);
    add(evaluator, LAST_FACTOR, move |arguments: &[JValue]| {
        let operand = operand(arguments);
        let first = of_all.factors.borrow_mut().pop().unwrap_or_default();
        of_all.charge(first.saturating_mul(within(&operand)?))?;
        Ok(operand)
    });
    let of_all = Rc::clone(&growth);
    add(evaluator, SMALL, move |arguments: &[JValue]| {
        let operand = operand(arguments);
        let bytes = within(&operand)?;
        // Joining a list without a separator does not multiply its size.
        if bytes > OPERAND_BYTES_MAX && !matches!(operand, JValue::Array(_)) {
            return Err(error(&format!(
                "an operand must have at most {OPERAND_BYTES_MAX} bytes if the text comes from the context"
            )));
        }
        of_all.charge(bytes)?;
        Ok(operand)
    });
    growth
}

fn operand(arguments: &[JValue]) -> JValue {
    arguments.first().cloned().unwrap_or(JValue::Undefined)
}

fn too_large() -> Failed {
    error(&format!(
        "a text must have at most {TEXT_BYTES_MAX} bytes and {LEVELS_MAX} levels of nesting"
    ))
}

/// The size of an operand.
fn within(value: &JValue) -> Result<usize, Failed> {
    let mut left = TEXT_BYTES_MAX;
    weigh(value, LEVELS_MAX, &mut left).map_err(|_| too_large())?;
    Ok(TEXT_BYTES_MAX - left)
}

/// Why a value cannot be converted to text.
pub(super) enum Unfit {
    TooDeep,
    TooLarge,
}

/// Subtracts the size of a value's text from `left`. A shared part counts each time it occurs.
pub(super) fn weigh(value: &JValue, levels: usize, left: &mut usize) -> Result<(), Unfit> {
    let own = if let JValue::String(text) = value { text.len() } else { PART_BYTES };
    *left = left.checked_sub(own).ok_or(Unfit::TooLarge)?;
    let inner = levels.checked_sub(1).ok_or(Unfit::TooDeep);
    match value {
        JValue::Array(items) => {
            let levels = inner?;
            items.iter().try_for_each(|item| weigh(item, levels, left))
        }
        JValue::Object(fields) => {
            let levels = inner?;
            fields.iter().try_for_each(|(name, field)| {
                *left = left.checked_sub(name.len()).ok_or(Unfit::TooLarge)?;
                weigh(field, levels, left)
            })
        }
        _ => Ok(()),
    }
}

/// Wraps the operands of everything that builds text in our functions.
pub(super) fn rewrite(node: &mut AstNode) {
    each_child(node, &mut rewrite);
    match node {
        AstNode::Binary { op: BinaryOp::Concatenate, lhs, rhs } => {
            pass(lhs, BOUNDED);
            pass(rhs, BOUNDED);
        }
        AstNode::Binary { op: BinaryOp::ChainPipe, lhs, rhs } => {
            // The text is the left operand, evaluated first; the call was already rewritten without
            // it.
            if let AstNode::Function { name, args, .. } = &mut **rhs
                && let Some(last) = factors(name)
                && args.len() >= last
                && !args.contains(&AstNode::Placeholder)
            {
                pass(lhs, FACTOR);
                for (index, argument) in args.iter_mut().enumerate() {
                    if let AstNode::Function { name, .. } = argument {
                        factor(index + 1, last).clone_into(name);
                    }
                }
            }
        }
        AstNode::Function { name, args, .. } => match name.as_str() {
            "string" => args.iter_mut().for_each(|argument| pass(argument, BOUNDED)),
            "pad" => args.iter_mut().for_each(|argument| pass(argument, WIDTH)),
            name => {
                if let Some(last) = factors(name) {
                    multiply(args, last);
                }
            }
        },
        _ => {}
    }
}

/// For a function whose result grows with the product of its first operand and another: the index
/// of the other.
fn factors(name: &str) -> Option<usize> {
    match name {
        "join" => Some(1),
        "replace" => Some(2),
        _ => None,
    }
}

/// The function that wraps the operand at `index` in a call with all its operands.
fn factor(index: usize, last: usize) -> &'static str {
    match index {
        0 => FACTOR,
        index if index < last => DIVISOR,
        index if index == last => LAST_FACTOR,
        _ => BOUNDED,
    }
}

/// Limits the product of the first operand and the one at `last`. In a partial call, or one with
/// omitted operands, limits each operand by itself.
fn multiply(args: &mut [AstNode], last: usize) {
    let is_whole = args.len() > last && !args.contains(&AstNode::Placeholder);
    for (index, argument) in args.iter_mut().enumerate() {
        pass(argument, if is_whole { factor(index, last) } else { SMALL });
    }
}

fn pass(operand: &mut AstNode, through: &str) {
    // Keep a placeholder of a partial call.
    if *operand != AstNode::Placeholder {
        let inner = std::mem::replace(operand, AstNode::Null);
        let (name, args) = (through.to_owned(), vec![inner]);
        *operand = AstNode::Function { name, args, is_builtin: true };
    }
}

fn each_child(node: &mut AstNode, visit: &mut impl FnMut(&mut AstNode)) {
    match node {
        AstNode::Path { steps } => {
            for step in steps {
                visit(&mut step.node);
                for stage in &mut step.stages {
                    if let Stage::Filter(filter) = stage {
                        visit(filter);
                    }
                }
            }
        }
        AstNode::Binary { lhs, rhs, .. } => {
            visit(lhs);
            visit(rhs);
        }
        AstNode::Unary { operand: inner, .. }
        | AstNode::Lambda { body: inner, .. }
        | AstNode::FunctionApplication(inner) => visit(inner),
        AstNode::Function { args, .. } => args.iter_mut().for_each(visit),
        AstNode::Call { procedure, args } => {
            visit(procedure);
            args.iter_mut().for_each(visit);
        }
        AstNode::Array(items) | AstNode::ArrayGroup(items) | AstNode::Block(items) => {
            items.iter_mut().for_each(visit);
        }
        AstNode::Object(pairs) => each_pair(pairs, visit),
        AstNode::ObjectTransform { input, pattern } => {
            visit(input);
            each_pair(pattern, visit);
        }
        AstNode::Conditional { condition, then_branch, else_branch } => {
            visit(condition);
            visit(then_branch);
            else_branch.iter_mut().for_each(|branch| visit(branch));
        }
        AstNode::Sort { input, terms } => {
            visit(input);
            terms.iter_mut().for_each(|(term, _)| visit(term));
        }
        AstNode::Transform { location, update, delete } => {
            visit(location);
            visit(update);
            delete.iter_mut().for_each(|delete| visit(delete));
        }
        AstNode::String(_)
        | AstNode::Name(_)
        | AstNode::Number(_)
        | AstNode::Boolean(_)
        | AstNode::Null
        | AstNode::Undefined
        | AstNode::Placeholder
        | AstNode::Regex { .. }
        | AstNode::Variable(_)
        | AstNode::ParentVariable(_)
        | AstNode::Wildcard
        | AstNode::Descendant
        | AstNode::Parent(_) => {}
    }
}

fn each_pair(pairs: &mut [(AstNode, AstNode)], visit: &mut impl FnMut(&mut AstNode)) {
    for (key, value) in pairs {
        visit(key);
        visit(value);
    }
}
