//! Transfer between contexts, and covers of their space.

use crate::attempt::attempt;
use crate::effort::{Tally, effort, seed};
use crate::extremes::{NUMBERS, Sketch, TINIEST, contexts, discounts, numbers, one_of, simplex};
use crate::truth::Judge;
use coirl::mapping::LinearMapping;
use coirl::model::{ContextSpace, Criterion};
use coirl::transfer::{Extent, Transfer, cover, thin};
use rand::RngExt;

#[test]
fn transferred_policies_keep_their_bounds() {
    let mut tally = Tally::new("transfer", "predictions");
    for i in 0..effort(300) {
        let mut random = tally.random(i);
        let sketch = Sketch::random(&mut random);
        let (dimension, n_features) = (random.random_range(1..=3), random.random_range(1..=2));
        let discount = one_of(&discounts(), &mut random);
        let features = numbers(sketch.n_states * n_features, &mut random);
        let mapping = numbers(dimension * n_features, &mut random);
        let known = contexts(dimension, 3, &mut random);
        let asked = contexts(dimension, 2, &mut random);
        let wanted = one_of(&[None, Some(0.0), Some(TINIEST), Some(1.0), Some(1e308), Some(f64::NAN)], &mut random);
        let name = format!(
            "seed {}, attempt {i}: {sketch:?} {discount} {features:?} {mapping:?} {known:?} {asked:?} {wanted:?}",
            seed()
        );
        let checked = attempt(&name, move || -> Result<(), String> {
            let refused = |_| String::new();
            let criterion = Criterion::discounted(discount).map_err(refused)?;
            let model = sketch
                .model(features, criterion)
                .and_then(|model| model.with_context_space(simplex(dimension)))
                .map_err(refused)?;
            let own = LinearMapping::new(dimension, n_features, mapping).map_err(refused)?;
            let mut transfer = Transfer::new(&model, own.clone()).map_err(refused)?;
            let checked = |values: &[Vec<f64>]| {
                values.iter().map(|c| model.context_space().context(c.clone())).collect::<coirl::Result<Vec<_>>>()
            };
            let known = checked(&known).map_err(refused)?;
            transfer.learn(&known).map_err(refused)?;
            for context in checked(&asked).map_err(refused)? {
                let found = transfer.predict(&context, wanted).map_err(refused)?;
                if found.values.iter().chain([&found.value]).any(|v| !v.is_finite()) || !(found.bound >= 0.0) {
                    return Err(format!("{found:?}"));
                }
                let mdp = model.mdp(&context).map_err(refused)?;
                let reward = mdp.reward(&own.weights(&context).map_err(refused)?).map_err(refused)?;
                let judge = Judge::new(&mdp, &reward);
                let (short, size) = judge.shortfall(&found.policy);
                let bound = found.bound / judge.scale;
                if !(short <= bound + 1e-14 * size) {
                    return Err(format!("{short:e} short of {size:e}, and {bound:e} promised: {found:?}"));
                }
            }
            Ok(())
        });
        tally.tried(1);
        if let Err(wrong) = checked.or_else(|wrong| if wrong.is_empty() { Ok(()) } else { Err(wrong) }) {
            panic!("{name}: {wrong}");
        }
    }
}

#[test]
fn covers_of_extreme_spaces_end() {
    let mut tally = Tally::new("covers", "spaces");
    for i in 0..effort(300) {
        let mut random = tally.random(i);
        let space = match random.random_bool(0.5) {
            true => simplex(one_of(&[0, 1, 2, 5, 300], &mut random)),
            false => {
                let lower = numbers(2, &mut random);
                let upper = lower.iter().map(|l| l + one_of(&NUMBERS, &mut random).abs()).collect();
                ContextSpace::Box { lower, upper }
            }
        };
        let extent = match random.random_bool(0.5) {
            true => Extent::Size(one_of(&[0, 1, 5, 40, usize::MAX], &mut random)),
            false => Extent::Radius(one_of(
                &[0.0, TINIEST, 1e-310, 1e-3, 0.5, 1e308, f64::NAN, f64::INFINITY, -1.0],
                &mut random,
            )),
        };
        let limit = one_of(&[0, 1, 50], &mut random);
        let name = format!("seed {}, attempt {i}: {space:?} {extent:?} at most {limit}", seed());
        let checked = attempt(&name, move || {
            let Ok(found) = cover(&space, &[], extent, limit) else { return Ok(()) };
            let thinned = thin(&found.contexts, extent);
            match found.contexts.len() <= limit && found.radius >= 0.0 && thinned.contexts.len() <= found.contexts.len()
            {
                true => Ok(()),
                false => Err(format!("{} contexts, radius {}", found.contexts.len(), found.radius)),
            }
        });
        tally.tried(1);
        if let Err(wrong) = checked {
            panic!("{name}: {wrong}");
        }
    }
}
