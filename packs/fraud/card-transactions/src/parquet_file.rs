//! Reads a Parquet file row by row.

use std::path::Path;

use parquet::basic::{LogicalType, TimeUnit};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::schema::types::{SchemaDescriptor, Type};

use super::error::{Error, RowPosition};
use super::row::{COLUMNS, Column, Raw, rfc3339};
use super::source::{Visit, name_of};

/// Calls `visit` with every row of the file.
///
/// # Errors
/// If the file is invalid, or `visit` fails.
pub fn scan(path: &Path, visit: &mut Visit<'_>) -> Result<(), Error> {
    let name = name_of(path);
    let unreadable = |error: ParquetError| Error::File {
        file: name.clone(),
        problem: format!("cannot be read as Parquet (possibly truncated): {error}"),
    };
    let opened = files::read::regular(path)
        .map_err(|error| Error::Open { file: name.clone(), reason: error.to_string() })?;
    let reader = SerializedFileReader::new(opened).map_err(unreadable)?;
    let schema = reader.metadata().file_metadata().schema_descr();
    let (projection, columns) = projection(&name, schema)?;
    let has_nanoseconds = has_nanoseconds(schema);
    let mut row = 0;
    for record in reader.get_row_iter(Some(projection)).map_err(unreadable)? {
        row += 1;
        let place = RowPosition { row, line: None };
        let mut texts: [String; COLUMNS] = Default::default();
        let record = record.map_err(unreadable)?;
        for ((_, field), column) in record.get_column_iter().zip(&columns) {
            texts[*column as usize] = text(field, *column, has_nanoseconds)
                .map_err(|problem| Error::of_field(&name, place, *column, problem))?;
        }
        visit(place, &Raw(texts.each_ref().map(String::as_str)))?;
    }
    if row == 0 {
        return Err(Error::Empty { file: name, what: "holds no rows" });
    }
    Ok(())
}

/// The columns to read, in the file's order, with their meaning.
fn projection(file: &str, schema: &SchemaDescriptor) -> Result<(Type, Vec<Column>), Error> {
    let root = schema.root_schema();
    let wrong = |problem: String| Error::Header { file: file.to_owned(), problem };
    let (mut fields, mut columns) = (Vec::new(), Vec::new());
    for field in root.get_fields() {
        let known = Column::ALL.into_iter().find(|column| column.name() == field.name());
        let Some(column) = known else { continue };
        if !field.is_primitive() {
            return Err(wrong(format!("the column {} holds groups", column.name())));
        }
        if columns.contains(&column) {
            return Err(wrong(format!("the column {} occurs twice", column.name())));
        }
        columns.push(column);
        fields.push(field.clone());
    }
    let missing: Vec<&str> = Column::ALL
        .into_iter()
        .filter(|column| !column.is_optional() && !columns.contains(column))
        .map(Column::name)
        .collect();
    if !missing.is_empty() {
        return Err(wrong(format!("missing column {}", missing.join(", "))));
    }
    let projection = Type::group_type_builder(root.name()).with_fields(fields).build();
    projection.map(|projection| (projection, columns)).map_err(|error| wrong(error.to_string()))
}

/// Whether the times are nanoseconds, which the row reader returns as plain numbers.
fn has_nanoseconds(schema: &SchemaDescriptor) -> bool {
    schema.columns().iter().any(|column| {
        column.name() == Column::Timestamp.name()
            && matches!(
                column.logical_type_ref(),
                Some(LogicalType::Timestamp(about)) if about.unit == TimeUnit::NANOS
            )
    })
}

/// Converts a field to the text that a CSV file would have.
fn text(field: &Field, column: Column, has_nanoseconds: bool) -> Result<String, String> {
    Ok(match field {
        Field::Null => String::new(),
        Field::Str(text) => text.clone(),
        Field::Bool(flag) => flag.to_string(),
        Field::TimestampMillis(ms) => rfc3339(*ms),
        Field::TimestampMicros(us) => rfc3339(us.div_euclid(1_000)),
        Field::Long(ns) if column == Column::Timestamp && has_nanoseconds => {
            rfc3339(ns.div_euclid(1_000_000))
        }
        Field::Long(number) => number.to_string(),
        Field::Int(number) => number.to_string(),
        Field::Short(number) => number.to_string(),
        Field::Byte(number) => number.to_string(),
        // Rounds binary fractions to the decimals of money. Values that are not finite stay
        // invalid.
        Field::Double(number) if column == Column::Amount => format!("{number:.4}"),
        Field::Float(number) if column == Column::Amount => format!("{number:.4}"),
        Field::Double(number) => number.to_string(),
        Field::Float(number) => number.to_string(),
        Field::Bytes(bytes) => std::str::from_utf8(bytes.data())
            .map(str::to_owned)
            .map_err(|_| "holds bytes that are not UTF-8".to_owned())?,
        Field::Decimal(_) => decimal(field)?,
        other => {
            let kind = format!("{other:?}");
            let kind = kind.split('(').next().unwrap_or("something");
            return Err(format!("holds a {kind}, expected text, numbers, times or flags"));
        }
    })
}

/// The reader already formats decimals.
fn decimal(field: &Field) -> Result<String, String> {
    let shown = field.to_string();
    let digits = shown.trim_end_matches('0').trim_end_matches('.');
    if shown.contains('.') { Ok(digits.to_owned()) } else { Ok(shown) }
}
