//! What keeps an expression from growing without end.
//!
//! The evaluator bounds time, depth and sequences, but not texts: forty doublings of one are a
//! thousand gigabytes, and a value that holds another twice, forty times over, is as large once
//! somebody writes it out. So each place of an expression that makes a text of others is rewritten
//! when it is compiled: its operands pass through functions of ours, which refuse what is too
//! large, or would make something too large. An expression cannot name these functions.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use jsonata_core::ast::{AstNode, BinaryOp, Stage};
use jsonata_core::evaluator::Evaluator;
use jsonata_core::value::JValue;

use super::functions::{Failed, add, error};

/// Largest value that a text is made of, and longest text that is made of one, in bytes: four times
/// what a state may hand on.
pub const TEXT_BYTES_MAX: usize = 1024 * 1024;

/// Most that one evaluation may make texts of, in bytes, all in all. What is put in place of a pattern
/// counts as if the text were made of the pattern, what joins a list as if each byte were an item.
pub const TEXTS_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Largest operand of a call that takes its text from the context, where it is not seen, in bytes.
pub const OPERAND_BYTES_MAX: usize = 1024;

/// Deepest nesting of a value that a text is made of.
const LEVELS_MAX: usize = super::NESTING_MAX;

/// What a part of a value counts for that is no text, in bytes, its comma and its quotes included.
const PART_BYTES: usize = 4;

/// The functions of ours. No expression can spell a name with a blank.
const BOUNDED: &str = "a bounded operand";
const WIDTH: &str = "a bounded width";
const FACTOR: &str = "a bounded factor";
const DIVISOR: &str = "a divisor of the factor";
const SMALL: &str = "a small operand";
const LAST_FACTOR: &str = "the last bounded factor";

/// What an evaluation has made texts of so far.
#[derive(Default)]
pub(super) struct Growth {
    bytes: Cell<usize>,
    /// First factors that wait for their last. Operands are evaluated from left to right, and nothing
    /// within an evaluation catches an error, so that each last one finds its own.
    factors: RefCell<Vec<usize>>,
}

impl Growth {
    /// Begins another evaluation.
    pub(super) fn reset(&self) {
        self.bytes.set(0);
        self.factors.borrow_mut().clear();
    }

    fn charge(&self, bytes: usize) -> Result<(), Failed> {
        self.bytes.set(self.bytes.get().saturating_add(bytes));
        if self.bytes.get() <= TEXTS_BYTES_MAX {
            return Ok(());
        }
        Err(error(&format!("texts are made of more than {TEXTS_BYTES_MAX} bytes, all in all")))
    }
}

/// Registers the functions that [`rewrite`] puts into expressions.
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
        // A regular expression may match anywhere, a text only every so many bytes.
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
        // A list that is joined with nothing between grows by no factor.
        if bytes > OPERAND_BYTES_MAX && !matches!(operand, JValue::Array(_)) {
            return Err(error(&format!(
                "an operand may have at most {OPERAND_BYTES_MAX} bytes where the text is not an operand"
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
        "a text may be made of at most {TEXT_BYTES_MAX} bytes, nested at most {LEVELS_MAX} levels"
    ))
}

/// The size of an operand.
fn within(value: &JValue) -> Result<usize, Failed> {
    let mut left = TEXT_BYTES_MAX;
    weigh(value, LEVELS_MAX, &mut left).map_err(|_| too_large())?;
    Ok(TEXT_BYTES_MAX - left)
}

/// Why a value is not written out.
pub(super) enum Unfit {
    TooDeep,
    TooLarge,
}

/// Takes the size of a value, written out, from what is left. Parts that are shared count as often as
/// they are seen.
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

/// Has the operands of everything that makes a text pass through the functions of ours.
pub(super) fn rewrite(node: &mut AstNode) {
    each_child(node, &mut rewrite);
    match node {
        AstNode::Binary { op: BinaryOp::Concatenate, lhs, rhs } => {
            pass(lhs, BOUNDED);
            pass(rhs, BOUNDED);
        }
        AstNode::Binary { op: BinaryOp::ChainPipe, lhs, rhs } => {
            // The text comes first, and its call, which was rewritten as one without, after it.
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

/// Of a function whose result grows with its first operand times another, which one that is.
fn factors(name: &str) -> Option<usize> {
    match name {
        "join" => Some(1),
        "replace" => Some(2),
        _ => None,
    }
}

/// What the operand at `index` passes through in a call that has all its operands.
fn factor(index: usize, last: usize) -> &'static str {
    match index {
        0 => FACTOR,
        index if index < last => DIVISOR,
        index if index == last => LAST_FACTOR,
        _ => BOUNDED,
    }
}

/// Bounds the first operand times the one at `last`, or, of a call that leaves operands out or open,
/// each for itself.
fn multiply(args: &mut [AstNode], last: usize) {
    let is_whole = args.len() > last && !args.contains(&AstNode::Placeholder);
    for (index, argument) in args.iter_mut().enumerate() {
        pass(argument, if is_whole { factor(index, last) } else { SMALL });
    }
}

fn pass(operand: &mut AstNode, through: &str) {
    // An operand that is still open stays so.
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
