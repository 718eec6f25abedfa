//! Recorded training runs: from the third step on everything hits, at the planner's bound.

use std::collections::HashMap;
use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use lowtide_core::{Action, Bytes, ThreadId, Trace};
use lowtide_formats::Input;
use lowtide_learn::{Advice, Cursor, Lane, Learner, LearnerOptions, Served, StepPlan};

use crate::player::{align, at_once};

fn read(path: PathBuf) -> Trace {
    match Input::read(File::open(path).unwrap()).unwrap() {
        Input::Trace(trace) => trace,
        other => panic!("not a trace but {}", other.what()),
    }
}

#[derive(Default)]
struct Run {
    served: Vec<Served>,
    recording: Duration,
    recorded: u64,
    closing: Vec<Duration>,
    plan: Option<std::sync::Arc<StepPlan>>,
}

fn run(trace: &Trace) -> Run {
    let mut learner = Learner::new(LearnerOptions { time_limit: Duration::from_secs(2), ..at_once() });
    let mut run = Run::default();
    let mut cursors: HashMap<Lane, Cursor> = HashMap::new();
    let mut tickets = HashMap::new();
    let mut served = Served::default();
    for event in &trace.events {
        let lane = Lane { thread: ThreadId(event.thread.unwrap_or(0)), stream: event.stream };
        match event.action {
            Action::Alloc { block } => {
                let bytes = Bytes::new(trace.block(block).bytes.get().next_multiple_of(512));
                if learner.watching() {
                    let start = Instant::now();
                    let ticket = learner.alloc(lane, bytes, align());
                    run.recording += start.elapsed();
                    run.recorded += 1;
                    tickets.insert(block, ticket);
                }
                if let Some(plan) = &run.plan {
                    let cursor = cursors.entry(lane).or_insert_with(|| Cursor::new(plan, lane));
                    let hit = cursor.next(plan, bytes, align()).is_some();
                    *(if hit { &mut served.hits } else { &mut served.misses }) += 1;
                }
            }
            Action::Free { block } => {
                if let Some(ticket) = tickets.remove(&block).filter(|_| learner.watching()) {
                    learner.free(ticket);
                }
            }
            Action::Step { .. } => {
                let start = Instant::now();
                let advice = learner.step(served);
                run.closing.push(start.elapsed());
                run.served.push(std::mem::take(&mut served));
                cursors.values_mut().for_each(Cursor::restart);
                match advice {
                    Advice::Wait => {}
                    Advice::Serve(plan) => {
                        run.plan = Some(plan);
                        cursors.clear();
                    }
                    Advice::Drop => run.plan = None,
                }
            }
            _ => {}
        }
    }
    run
}

#[test]
#[expect(clippy::print_stderr, reason = "times are for whoever looks")]
fn fixed_shapes_hit_from_the_third_step_on_at_the_bound() {
    let Some(folder) = lowtide_testing::data("gpu-traces") else { return };
    for name in ["llama_fixed", "resnet50", "llama_sites"] {
        let run = run(&read(folder.join(format!("{name}.csv.gz"))));
        let plan = run.plan.unwrap();
        let over = plan.height.ratio(plan.bound) - 1.0;
        let each = run.recording.as_nanos() as f64 / run.recorded as f64;
        eprintln!(
            "{name}: {:?}, height {} at {:+.4}% of the bound, closing {:?}, {each:.0} ns to record with its clock",
            run.served,
            plan.height,
            100.0 * over,
            run.closing
        );
        for served in &run.served[2..] {
            assert_eq!(served.misses, 0, "{name}: {:?}", run.served);
            assert!(served.hits > 0);
        }
        assert!(over <= 0.0005, "{name}: {} over a bound of {}", plan.height, plan.bound);
        let online: Vec<u32> =
            (0..).zip(&plan.slots).filter(|(_, slot)| slot.offset.is_none()).map(|(index, _)| index).collect();
        assert!(online.iter().all(|&slot| plan.is_renewed(slot)), "{name}: {online:?} are not freed in the next step");
        eprintln!("{name}: {} of {} slots have two blocks at a time", online.len(), plan.slots.len());
    }
}
