//! A drive: the road from above as an animation, and the way of car A beside it.
//!
//! The animation is part of the SVG and needs no script; where it is not played, as in a PNG, the first scene is seen with the whole way.

use super::drawing::{Anchor, Drawing, Frame, INK, Lettering, number, points};
use super::marker::Marker;
use super::road::{CAR_A, CAR_B, COLLISION, MARKING, View, draw_car, reward_in_words, speed_in_words};
use coirl::demos::Trajectory;
use coirl::domains::DrivingScene;
use coirl::model::Cmdp;
use std::ops::Range;

/// Pixels of a unit of the road.
const UNIT: f64 = 2.4;
/// Seconds of a step.
const STEP: f64 = 0.6;
/// Width and length of a car in units: two of them touch when their middles are less than 15 apart, and between y = 150 and 190.
const CAR: (f64, f64) = (14.0, 26.0);
/// Where car A is along the road: in the middle of the places where car B can touch it.
const CAR_A_Y: f64 = 170.0;
/// Cars whose middle is on the road are on it as a whole.
const CARS: View = View { beyond: 10.0, shoulder: CAR.0 / 2.0 };
/// The way of the middle of car A.
const MIDDLES: View = View { beyond: 10.0, shoulder: 2.5 };
/// The part of the road that is seen.
const SEEN: Range<f64> = -10.0..215.0;
const MARGIN: f64 = 16.0;
const TOP: f64 = 62.0;
const BETWEEN: f64 = 46.0;
const TRACE: f64 = 200.0;
/// Of a marking and the gap after it.
const DASH: f64 = 26.0;

/// The SVG of a drive through some scenes.
pub(crate) fn roll_out_picture(model: &Cmdp, weights: &[f64], trajectory: &Trajectory) -> Option<String> {
    let scenes: Vec<DrivingScene> =
        trajectory.states.iter().filter_map(|state| DrivingScene::of(state.index())).collect();
    let first = *scenes.first()?;
    let clock = Clock { steps: scenes.len() };
    let road = Frame { x: MARGIN, y: MARGIN + TOP, width: UNIT * CARS.units(), height: UNIT * (SEEN.end - SEEN.start) };
    let trace = Frame { x: road.right() + BETWEEN, width: TRACE, ..road };

    let mut drawing = Drawing::default();
    let speed = speed_in_words(first.speed);
    let title = format!("A drive of {} steps; speed chosen: {speed}", scenes.len());
    drawing.text((MARGIN, MARGIN + 11.0), Anchor::Start, Lettering::bold(14.0), &title);
    let reward = reward_in_words(model, weights);
    drawing.text((MARGIN, MARGIN + 30.0), Anchor::Start, Lettering::pale(11.5), &reward);
    let counted = |of: fn(DrivingScene) -> bool| scenes.iter().filter(|scene| of(**scene)).count();
    let (collisions, off_road) = (counted(DrivingScene::collides), counted(DrivingScene::off_road));
    let counts = format!("steps with a collision: {collisions}; off the road: {off_road}");
    drawing.text((MARGIN, MARGIN + 48.0), Anchor::Start, Lettering::plain(11.5), &counts);

    drawing.clipped(road, |inside| {
        let whole = Frame { x: 0.0, y: 0.0, ..road };
        CARS.draw(inside, whole);
        markings(inside, whole, &clock, first.advance());
        let from = place(first.x as f64, CAR_A_Y, whole.width);
        let steered = scenes.iter().map(|scene| place(scene.x as f64, CAR_A_Y, whole.width));
        let met = DrivingScene::LANES[first.lane] as f64;
        let car = (UNIT * CAR.0, UNIT * CAR.1);
        moving(
            inside,
            place(met, first.y as f64, whole.width),
            &clock.oncoming(&scenes, whole.width),
            &clock,
            |car_b| {
                draw_car(car_b, car.0, car.1, CAR_B);
            },
        );
        moving(inside, from, &clock.each(steered), &clock, |car_a| {
            draw_car(car_a, car.0, car.1, CAR_A);
            let ring =
                Frame { x: -0.5 * car.0 - 5.0, y: -0.5 * car.1 - 5.0, width: car.0 + 10.0, height: car.1 + 10.0 };
            for (colour, happens) in [(COLLISION, DrivingScene::collides as fn(_) -> _), (INK, DrivingScene::off_road)]
            {
                shown_when(car_a, &clock, &scenes, happens, |mark| {
                    let dashes = if colour == INK { "5 4" } else { "none" };
                    let edge =
                        [("fill", "none"), ("stroke", colour), ("stroke-width", "3.5"), ("stroke-dasharray", dashes)];
                    mark.rectangle(ring, &[&[("rx", "10")], edge.as_slice()].concat());
                });
            }
        });
    });
    draw_trace(&mut drawing, trace, &scenes, &clock);
    let key = [
        "on the road: car A is blue, car B orange; a red ring is a collision, a dashed one is off it",
        "on the way: cross, collision; circle, off the road; square, car B beside car A",
    ];
    for (line, down) in key.iter().zip([18.0, 34.0]) {
        drawing.text((MARGIN, road.bottom() + down), Anchor::Start, Lettering::pale(10.5), line);
    }
    Some(drawing.finish(trace.right() + MARGIN, road.bottom() + 34.0 + MARGIN, &format!("{title}. {counts}.")))
}

/// Pixels of a place on a road of so many pixels.
fn place(x: f64, y: f64, width: f64) -> (f64, f64) {
    (CARS.across(x, width), UNIT * (y - SEEN.start))
}

/// When something happens: the scenes follow each other in equal steps, and the last one is held for a step.
struct Clock {
    steps: usize,
}

/// A way in pairs of the time, as a share of the whole, and the place at that time.
type Way = Vec<(f64, (f64, f64))>;

impl Clock {
    fn duration(&self) -> String {
        format!("{}s", number(STEP * self.steps as f64))
    }

    fn at(&self, step: usize) -> f64 {
        step as f64 / self.steps as f64
    }

    /// A place for each scene.
    fn each(&self, places: impl Iterator<Item = (f64, f64)>) -> Way {
        let mut way: Way = places.enumerate().map(|(step, place)| (self.at(step), place)).collect();
        way.extend(way.last().map(|(_, place)| (1.0, *place)));
        way
    }

    /// Car B comes nearer by the same in every step, also in the one in which the next car takes its place.
    fn oncoming(&self, scenes: &[DrivingScene], width: f64) -> Way {
        let spot = |scene: &DrivingScene, y: i64| place(DrivingScene::LANES[scene.lane] as f64, y as f64, width);
        let leg = |(step, scene): (usize, &DrivingScene)| {
            let after = spot(scene, scene.y + scene.advance());
            [(self.at(step), spot(scene, scene.y)), (self.at(step + 1), after)]
        };
        scenes.iter().enumerate().flat_map(leg).collect()
    }
}

fn joined(times: impl Iterator<Item = f64>) -> String {
    times.map(|time| format!("{time:.5}")).collect::<Vec<_>>().join(";")
}

/// Something that follows a way; it is drawn around (0, 0).
fn moving(drawing: &mut Drawing, from: (f64, f64), way: &Way, clock: &Clock, draw: impl FnOnce(&mut Drawing)) {
    let start = format!("translate({} {})", number(from.0), number(from.1));
    let places: Vec<String> = way.iter().map(|(_, (x, y))| format!("{} {}", number(*x), number(*y))).collect();
    drawing.around("g", &[("transform", &start)], |group| {
        let attributes = [
            ("attributeName", "transform"),
            ("type", "translate"),
            ("values", &*places.join(";")),
            ("keyTimes", &joined(way.iter().map(|(time, _)| *time))),
            ("dur", &clock.duration()),
            ("repeatCount", "indefinite"),
        ];
        group.shape("animateTransform", &attributes);
        draw(group);
    });
}

/// Something that is seen only in some scenes.
fn shown_when(
    drawing: &mut Drawing,
    clock: &Clock,
    scenes: &[DrivingScene],
    happens: fn(DrivingScene) -> bool,
    draw: impl FnOnce(&mut Drawing),
) {
    let opacity = |scene: &DrivingScene| if happens(*scene) { "1" } else { "0" };
    let values: Vec<&str> = scenes.iter().map(opacity).collect();
    drawing.around("g", &[("opacity", values.first().copied().unwrap_or("0"))], |group| {
        let attributes = [
            ("attributeName", "opacity"),
            ("calcMode", "discrete"),
            ("values", &*values.join(";")),
            ("keyTimes", &joined((0..clock.steps).map(|step| clock.at(step)))),
            ("dur", &clock.duration()),
            ("repeatCount", "indefinite"),
        ];
        group.shape("animate", &attributes);
        draw(group);
    });
}

/// Dashes between the lanes that come nearer as fast as car B does.
fn markings(drawing: &mut Drawing, road: Frame, clock: &Clock, advance: i64) {
    // A whole number of dashes, so that nothing jumps when the animation begins again.
    let passed = (UNIT * (advance as usize * clock.steps) as f64 / (2.0 * DASH)).round() * 2.0 * DASH;
    for pair in DrivingScene::LANES.windows(2) {
        let x = number(CARS.across((pair[0] + pair[1]) as f64 / 2.0, road.width));
        let (end, dashes) = (number(road.height), format!("{DASH} {DASH}"));
        let attributes = [
            ("x1", &*x),
            ("y1", "0"),
            ("x2", &x),
            ("y2", &end),
            ("stroke", MARKING),
            ("stroke-width", "4"),
            ("stroke-dasharray", &dashes),
        ];
        drawing.around("line", &attributes, |line| {
            let attributes = [
                ("attributeName", "stroke-dashoffset"),
                ("values", &*format!("0;{}", number(-passed))),
                ("dur", &clock.duration()),
                ("repeatCount", "indefinite"),
            ];
            line.shape("animate", &attributes);
        });
    }
}

/// The way of car A: across is the road, downwards the steps.
fn draw_trace(drawing: &mut Drawing, frame: Frame, scenes: &[DrivingScene], clock: &Clock) {
    drawing.text((frame.x, frame.y - 8.0), Anchor::Start, Lettering::bold(11.5), "the way of car A");
    MIDDLES.draw(drawing, frame);
    let down = |step: f64| frame.y + frame.height * (step + 0.5) / clock.steps as f64;
    let at = |step: usize, x: f64| (frame.x + MIDDLES.across(x, frame.width), down(step as f64));
    let every = clock.steps.div_ceil(10).next_multiple_of(if clock.steps > 20 { 5 } else { 1 });
    for step in (0..clock.steps).step_by(every) {
        let label = (step + 1).to_string();
        drawing.text((frame.x - 7.0, down(step as f64) + 4.0), Anchor::End, Lettering::plain(10.5), &label);
    }
    let way = points(scenes.iter().enumerate().map(|(step, scene)| at(step, scene.x as f64)));
    let line = [("points", &*way), ("fill", "none"), ("stroke", CAR_A), ("stroke-width", "2.2")];
    drawing.shape("polyline", &line);
    for (step, scene) in scenes.iter().enumerate() {
        // Where car B passed or touched, as often as it was beside car A.
        if scene.beside() {
            let met = at(step, DrivingScene::LANES[scene.lane] as f64);
            Marker::Square.draw(drawing, met, CAR_B, true);
        }
        if scene.off_road() {
            Marker::Circle.draw(drawing, at(step, scene.x as f64), INK, true);
        }
        if scene.collides() {
            Marker::Cross.draw(drawing, at(step, scene.x as f64), COLLISION, false);
        }
    }
    let places = (0..clock.steps).map(|step| (frame.x, down(step as f64)));
    moving(drawing, (frame.x, down(0.0)), &clock.each(places), clock, |cursor| {
        cursor.line((0.0, 0.0), (frame.width, 0.0), INK, 1.0);
    });
}
