//! What happened on the way, as a picture and as a table.

use super::markup::{Markup, details, element, paragraph, table};
use super::page::Section;
use crate::fitting::picture;
use crate::numbers::{count, short};
use crate::text::Tabular;
use coirl::learn::Record;

/// A number of a record.
type Quantity = (&'static str, fn(&Record) -> Option<f64>);

/// What is told of a run, where it was recorded.
const QUANTITIES: [Quantity; 8] = [
    ("loss per ‖W‖", |record| record.loss),
    ("validation loss", |record| record.validation_loss),
    ("distance from the expert's μ", |record| record.distance),
    ("log-likelihood of an action", |record| record.log_likelihood),
    ("same action on validation, of admitted steps", |record| record.validation_accuracy),
    ("held-out loss", |record| record.score.and_then(|score| score.held_out_loss)),
    ("value above random / expert's", |record| {
        record.score.map(|score| score.relative_value).filter(|share| share.is_finite())
    }),
    // Nothing where the expert's value is not positive.
    ("value / expert's value", |record| record.score.map(|score| score.value_ratio).filter(|share| share.is_finite())),
];

/// The curves of a run; nothing where there is nothing to draw.
pub(crate) fn convergence(history: &[Record], method: &str) -> Option<Section> {
    let recorded: Vec<Quantity> =
        QUANTITIES.into_iter().filter(|(_, of)| history.iter().any(|record| of(record).is_some())).collect();
    let label = in_words(history, &recorded);
    let drawing = Markup::drawing(&picture(history, method)?, "Convergence", &label)?;
    let header: Vec<&str> = ["step"].into_iter().chain(recorded.iter().map(|(name, _)| *name)).collect();
    let row = |record: &Record| {
        let cells = recorded.iter().map(|(_, of)| of(record).map_or(String::new(), short));
        [count(record.step as usize)].into_iter().chain(cells).collect()
    };
    let told = Tabular::new("What was recorded", &header, history.iter().map(row).collect());
    let figure = element("figure", &[("tabindex", "0"), ("aria-label", "Convergence")], drawing);
    let admitted = match history.iter().any(|record| record.validation_accuracy.is_some()) {
        true => paragraph(
            "Validation accuracy on the way is of the steps that the model admits. Steps with an action that was seen too rarely in its state are \
             left out there; the scores count them as misses.",
        ),
        false => Markup::default(),
    };
    let content = Markup::all([figure, admitted, details("The same as a table", table(&told))]);
    Some(Section::new("convergence", "Convergence", content))
}

/// Where every curve begins and ends.
fn in_words(history: &[Record], recorded: &[Quantity]) -> String {
    let ends = |(name, of): &Quantity| {
        let mut points = history.iter().filter_map(|record| Some((record.step, of(record)?)));
        let first = points.next()?;
        let last = points.next_back().unwrap_or(first);
        Some(format!("{name} from {} at step {} to {} at step {}", short(first.1), first.0, short(last.1), last.0))
    };
    let all: Vec<String> = recorded.iter().filter_map(ends).collect();
    format!("Curves over the steps of the run: {}.", all.join("; "))
}
