//! A context as it is typed: numbers in order, or fields by name.

use crate::failure::Failure;
use crate::numbers::NumberList;
use coirl::model::{Cmdp, Context};
use coirl::nearest::nearest;

/// `0.3,0.2,0.5`, or `age=0.3,weight=0.2,…` with every field of the model named once, in any order.
pub(crate) fn parse_context(model: &Cmdp, text: &str) -> Result<Context, Failure> {
    let refuse = |reason: String| Failure::refused(format!("--context {text}: {reason}"));
    let values = if text.contains('=') {
        named(&model.names().contexts, text).map_err(refuse)?
    } else {
        text.parse::<NumberList>().map_err(refuse)?.0
    };
    model.context_space().context(values).map_err(|error| refuse(error.to_string()))
}

fn named(names: &[String], text: &str) -> Result<Vec<f64>, String> {
    let known: Vec<&str> = names.iter().map(String::as_str).collect();
    if known.is_empty() {
        return Err("the contexts of this model have no names; give numbers".into());
    }
    let mut values: Vec<Option<f64>> = vec![None; known.len()];
    for piece in text.split(',') {
        let (name, number) =
            piece.split_once('=').ok_or_else(|| format!("'{piece}' is not of the form name=number"))?;
        let (name, number) = (name.trim(), number.trim());
        let field = known.iter().position(|known| *known == name).ok_or_else(|| {
            let meant = nearest(name, &known).unwrap_or_default();
            format!("there is no field '{name}'; did you mean '{meant}'? (all: {})", known.join(", "))
        })?;
        let number: f64 = number.parse().map_err(|_| format!("{name} is '{number}'; expected a number"))?;
        if values[field].replace(number).is_some() {
            return Err(format!("{name} is given twice"));
        }
    }
    let missing: Vec<&str> =
        known.iter().zip(&values).filter(|(_, value)| value.is_none()).map(|(name, _)| *name).collect();
    if missing.is_empty() {
        Ok(values.into_iter().flatten().collect())
    } else {
        Err(format!("{} is missing", missing.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_any_order() {
        let names = ["age".to_owned(), "weight".to_owned()];
        assert_eq!(named(&names, "weight=0.2, age=0.8"), Ok(vec![0.8, 0.2]));
        for (text, words) in [
            ("wieght=0.2,age=0.8", "did you mean 'weight'"),
            ("age=0.8", "weight is missing"),
            ("age=x,weight=1", "age is 'x'; expected a number"),
            ("age=1,age=2", "age is given twice"),
            ("age=1,2", "'2' is not of the form name=number"),
        ] {
            assert!(named(&names, text).is_err_and(|reason| reason.contains(words)), "{text}");
        }
        assert!(named(&[], "a=1").is_err());
    }
}
