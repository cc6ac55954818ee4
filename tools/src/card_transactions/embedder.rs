//! An [`Embedding`] by a sentence transformer of the BERT family that lies in a folder, as such models
//! are handed around: `config.json`, `tokenizer.json`, `model.safetensors`. It runs on the processor,
//! and no text leaves the machine.

use std::fmt;
use std::fs;
use std::path::Path;

use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{BertModel, Config};
use tokenizers::{PaddingParams, Tokenizer, TruncationParams};

use super::similarity::Embedding;

/// Largest file of a model, in bytes. Of the family's common models the largest takes 1.3 GB.
const FILE_BYTES_MAX: u64 = 2 * 1024 * 1024 * 1024;

/// Tokens of a text that count, the first. A payment's are some thirty.
const TOKENS_MAX: usize = 64;

/// How many texts go through the model at once.
const AT_ONCE: usize = 16;

/// Why there is no such model.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {problem}")]
pub struct Error {
    /// The file.
    pub file: String,
    /// What is wrong with it.
    pub problem: String,
}

/// A model, ready.
pub struct Embedder {
    tokenizer: Tokenizer,
    model: BertModel,
}

impl fmt::Debug for Embedder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedder").finish_non_exhaustive()
    }
}

impl Embedder {
    /// Reads the model in this folder. Takes about as much memory as its file.
    ///
    /// # Errors
    /// When a file cannot be read, or is not that of a BERT model.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let file = |name: &str| folder.join(name);
        let config: Config = read(&file("config.json"), |bytes| {
            serde_json::from_slice(bytes).map_err(|error| error.to_string())
        })?;
        let tokenizer = read(&file("tokenizer.json"), tokenizer)?;
        let model = read(&file("model.safetensors"), |bytes| {
            VarBuilder::from_slice_safetensors(bytes, DType::F32, &Device::Cpu)
                .and_then(|weights| BertModel::load(weights, &config))
                .map_err(|error| first_line(&error))
        })?;
        Ok(Self { tokenizer, model })
    }

    /// Texts of one batch: what the model says of each token, in the middle over the text's tokens.
    fn batch(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, String> {
        let encoded = self.tokenizer.encode_batch(texts.to_vec(), true);
        let encoded = encoded.map_err(|error| error.to_string())?;
        let ids: Vec<&[u32]> = encoded.iter().map(tokenizers::Encoding::get_ids).collect();
        let mask: Vec<&[u32]> =
            encoded.iter().map(tokenizers::Encoding::get_attention_mask).collect();
        self.points(&ids, &mask).map_err(|error| first_line(&error))
    }

    fn points(&self, ids: &[&[u32]], mask: &[&[u32]]) -> candle_core::Result<Vec<Vec<f32>>> {
        let matrix = |rows: &[&[u32]]| {
            let width = rows.first().map_or(0, |row| row.len());
            Tensor::from_vec(rows.concat(), (rows.len(), width), &Device::Cpu)
        };
        let (ids, mask) = (matrix(ids)?, matrix(mask)?);
        let of_tokens = self.model.forward(&ids, &ids.zeros_like()?, Some(&mask))?;
        let weights = mask.to_dtype(DType::F32)?.unsqueeze(2)?;
        let sums = of_tokens.broadcast_mul(&weights)?.sum(1)?;
        // The middle is the sum by a number, and a direction does not depend on a number.
        let lengths = sums.sqr()?.sum_keepdim(1)?.sqrt()?;
        sums.broadcast_div(&lengths)?.to_vec2()
    }
}

impl Embedding for Embedder {
    fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>, String> {
        let mut points = Vec::with_capacity(texts.len());
        for texts in texts.chunks(AT_ONCE) {
            points.extend(self.batch(texts)?);
        }
        Ok(points)
    }
}

fn read<T>(path: &Path, parse: impl Fn(&[u8]) -> Result<T, String>) -> Result<T, Error> {
    let wrong = |problem| Error { file: path.display().to_string(), problem };
    let about = fs::metadata(path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    if about.len() > FILE_BYTES_MAX {
        return Err(wrong(format!("is larger than {FILE_BYTES_MAX} bytes")));
    }
    let bytes = fs::read(path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
    parse(&bytes).map_err(|problem| wrong(format!("is not that of a BERT model: {problem}")))
}

fn tokenizer(bytes: &[u8]) -> Result<Tokenizer, String> {
    let mut tokenizer = Tokenizer::from_bytes(bytes).map_err(|error| error.to_string())?;
    let truncation = TruncationParams { max_length: TOKENS_MAX, ..TruncationParams::default() };
    tokenizer.with_truncation(Some(truncation)).map_err(|error| error.to_string())?;
    tokenizer.with_padding(Some(PaddingParams::default()));
    Ok(tokenizer)
}

/// Behind its first line an error of the library shows where in its own code it arose.
fn first_line(error: &candle_core::Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}
