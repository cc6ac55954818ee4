//! Templates of titles: `{field}` stands for a field of the input.

/// The fields that a template names, in order. A brace without a partner is a text.
pub(crate) fn fields(template: &str) -> Vec<&str> {
    let mut fields = Vec::new();
    let mut rest = template;
    while let Some((_, behind)) = rest.split_once('{') {
        let Some((field, after)) = behind.split_once('}') else { break };
        fields.push(field);
        rest = after;
    }
    fields
}
