//! One figure for a comparison with somebody else's system, which takes turns with this program:
//! `-- ten-step SECONDS AT_ONCE...` prints a JSON line for each number of runs at once.

use std::time::Duration;

use serde_json::json;
use tokio::runtime::Runtime;

/// The word that asks for it.
const WORD: &str = "ten-step";

/// Runs at once, and for how long each.
pub struct Asked {
    pub within: Duration,
    pub at_once: Vec<usize>,
}

/// What the command line asks for, if it asks for this.
pub fn asked(arguments: &[String]) -> Option<Asked> {
    let place = arguments.iter().position(|argument| argument == WORD)?;
    let mut numbers = arguments[place + 1..].iter().map_while(|text| text.parse::<u32>().ok());
    let within = Duration::from_secs(numbers.next().unwrap_or(3).into());
    let at_once = numbers.map(|number| usize::try_from(number).unwrap()).collect();
    Some(Asked { within, at_once })
}

/// Prints a line a number, as the neighbours' programs do.
pub fn ten_steps(runtime: &Runtime, asked: &Asked) {
    for &at_once in &asked.at_once {
        let rate = runtime.block_on(crate::ten_step_runs(at_once, asked.within));
        println!("{}", json!({ "what": "Daybook", "at_once": at_once, "per_second": rate }));
    }
}
