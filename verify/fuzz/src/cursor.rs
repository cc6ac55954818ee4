//! Choices made from an input's bytes, so that a small change of the input changes little of the
//! generated value.

/// A reader of an input; after its end it returns zeros.
#[derive(Debug)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
}

/// Characters with a special meaning in canonical bytes, in expressions or in UTF-8.
const ALPHABET: [char; 24] = [
    'a', 'b', 'S', 'N', 'B', 'P', 'K', 'H', ':', '#', '0', '1', '2', '3', '9', ' ', '.', '"', '\\',
    '\0', '\n', 'é', '€', '𝄞',
];

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub fn is_at_end(&self) -> bool {
        self.bytes.is_empty()
    }

    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        *first
    }

    /// A number below `bound`, which is at least 1.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound
    }

    pub fn one_of<'b, T: ?Sized>(&mut self, choices: &[&'b T]) -> &'b T {
        choices[self.below(choices.len())]
    }

    /// At most `max` bytes.
    pub fn bytes(&mut self, max: usize) -> Vec<u8> {
        let length = self.below(max + 1);
        (0..length).map(|_| self.byte()).collect()
    }

    /// A text of at most `max` characters.
    pub fn text(&mut self, max: usize) -> String {
        let length = self.below(max + 1);
        (0..length).map(|_| ALPHABET[self.below(ALPHABET.len())]).collect()
    }

    pub fn whole(&mut self) -> i64 {
        let small = i64::from(self.byte());
        match self.below(4) {
            0 => small,
            1 => -small,
            2 => i64::MAX - small,
            _ => i64::from_le_bytes(std::array::from_fn(|_| self.byte())),
        }
    }
}
