//! The machine over an arena that is nothing but two lists: when a plan is taken up, dropped, left alone, and tried again.

use std::collections::BTreeMap;
use std::sync::Arc;

use lowtide_core::{Align, Bytes};
use lowtide_learn::{LearnerOptions, Served, StepPlan};
use proptest::prelude::*;

use super::*;
use crate::pool::Request;

/// The addresses of each plan; online blocks lie behind all plans, each at an address of its own.
const PLAN: u64 = 1 << 30;
const ONLINE: u64 = 1 << 50;

#[derive(Debug)]
struct Toy {
    plans: PlanServer,
    /// The blocks in use that no plan serves: address and size.
    blocks: BTreeMap<u64, u64>,
    next: u64,
    laid_out: u64,
    /// How plans did in the last step.
    closed: Served,
    /// What every step costs without a plan and with one, where that is compared.
    costs: Option<(StepCost, StepCost)>,
    /// What the next plans meet.
    is_welcome: bool,
    has_room: bool,
}

impl Toy {
    fn new(policy: ServingPolicy) -> Self {
        Self::with(policy, LearnerOptions::default())
    }

    fn with(policy: ServingPolicy, learner: LearnerOptions) -> Self {
        let learner = LearnerOptions { background: false, ..learner };
        let observer = Observer::new(learner, None, &policy);
        Self {
            plans: PlanServer::new(policy, Some(observer), Published::default()),
            blocks: BTreeMap::new(),
            next: ONLINE,
            laid_out: 0,
            closed: Served::default(),
            costs: None,
            is_welcome: true,
            has_room: true,
        }
    }

    fn alloc(&mut self, bytes: u64) -> u64 {
        let request = Request { align: Align::ONE, ..Request::new(Bytes::new(bytes)) };
        let planned = self.plans.current().and_then(|served| match served.slots.take(&request) {
            Found::At(offset) => Some(served.address(offset).0),
            Found::Online | Found::Missed => None,
        });
        let address = planned.unwrap_or_else(|| {
            self.next += bytes;
            self.blocks.insert(self.next - bytes, bytes);
            self.next - bytes
        });
        self.plans.observe_alloc(&request, address);
        address
    }

    fn free(&mut self, address: u64) -> bool {
        self.plans.observe_free(address);
        let served = self.plans.current().filter(|_| !self.blocks.contains_key(&address));
        let offset = served.and_then(|served| served.offset(crate::pool::Address(address)));
        match served.zip(offset) {
            Some((served, offset)) => served.slots.give(offset),
            None => self.blocks.remove(&address).is_some(),
        }
    }

    /// A step that allocates blocks of these sizes and frees them in order.
    fn step(&mut self, sizes: &[u64]) -> Served {
        let blocks: Vec<u64> = sizes.iter().map(|&bytes| self.alloc(bytes)).collect();
        for block in blocks {
            assert!(self.free(block));
        }
        self.close()
    }

    fn close(&mut self) -> Served {
        self.close_plan_step();
        self.closed
    }

    fn repeat(&mut self, times: usize) {
        for _ in 0..times {
            self.step(&STEP);
        }
    }

    fn is_serving(&self) -> bool {
        self.plans.current().is_some()
    }
}

impl PlanArena for Toy {
    fn plans(&self) -> &PlanServer {
        &self.plans
    }

    fn plans_mut(&mut self) -> &mut PlanServer {
        &mut self.plans
    }

    fn step_closed(&mut self, served: Served) {
        self.closed = served;
    }

    fn cost(&self) -> Option<StepCost> {
        self.costs.map(|(online, planned)| if self.is_serving() { planned } else { online })
    }

    fn is_worth_serving(&self, _: &StepPlan) -> bool {
        self.is_welcome
    }

    fn lay_out(&mut self, plan: &Arc<StepPlan>) -> LayOut {
        if !self.has_room {
            return LayOut::Refused;
        }
        self.laid_out += 1;
        let slots = SlotTable::new(Arc::clone(plan));
        LayOut::Done(Arc::new(ServedPlan::new(slots, PLAN * self.laid_out, plan.height.get(), self.laid_out)))
    }

    fn reclaim(&mut self, served: &ServedPlan) {
        for slot in served.slots.in_use() {
            let offset = slot.offset.map_or(0, Bytes::get);
            self.blocks.insert(served.address(offset).0, slot.bytes.get());
        }
    }
}

const STEP: [u64; 4] = [4096, 8192, 4096, 512];

#[test]
fn a_step_that_recurs_is_served_and_met_to_the_last_block() {
    for policy in [ServingPolicy::DEVICE, ServingPolicy::HOST] {
        let mut toy = Toy::new(policy);
        toy.repeat(6);
        assert!(toy.is_serving());
        assert_eq!(toy.step(&STEP), Served { hits: 4, misses: 0 });
        assert_eq!(toy.laid_out, 1, "the plan that is served is not laid out again");
    }
}

#[test]
fn without_a_learner_no_plan_ever_comes() {
    let mut toy = Toy::new(ServingPolicy::HOST);
    toy.plans.stop_learning();
    toy.repeat(20);
    assert!(!toy.is_serving() && toy.plans.steps() == 20);
}

/// The steps out of 200 in which a plan is served that reserves so much, where 1,000 bytes are without one.
fn served_in(reserved: u64, learner: LearnerOptions) -> Vec<u64> {
    let mut toy = Toy::with(ServingPolicy::DEVICE, learner);
    let online = StepCost { reserved: 1000, most_in_use: 1000, calls: 0 };
    toy.costs = Some((online, StepCost { reserved, ..online }));
    let is_served = |_: &u64| {
        toy.step(&STEP);
        toy.is_serving()
    };
    (0..200).filter(is_served).collect()
}

#[test]
fn a_plan_that_costs_more_than_none_is_dropped_at_once_and_tried_ever_more_seldom() {
    let always = served_in(1000, LearnerOptions::default());
    assert!(always.len() > 190, "{always:?}");
    let tried = served_in(1003, LearnerOptions::default());
    let waits: Vec<u64> = tried.windows(2).map(|two| two[1] - two[0]).collect();
    assert!(waits.len() >= 4 && waits.windows(2).all(|two| two[1] > two[0]), "{tried:?}");
}

#[test]
fn where_learning_ends_a_plan_that_costs_more_is_never_tried_again() {
    let learner = LearnerOptions { relearn: false, stable: 3, ..LearnerOptions::default() };
    assert_eq!(served_in(1003, learner).len(), 1);
}

#[test]
fn a_plan_that_is_not_worth_it_is_not_laid_out() {
    let mut toy = Toy::new(ServingPolicy::HOST);
    toy.is_welcome = false;
    toy.repeat(10);
    assert_eq!((toy.laid_out, toy.is_serving()), (0, false));
    toy.is_welcome = true;
    toy.step(&STEP);
    assert!(toy.is_serving());
}

#[test]
fn a_plan_without_room_is_left_alone_for_as_long_as_the_policy_says() {
    let mut toy = Toy::new(ServingPolicy { rest: 5, ..ServingPolicy::DEVICE });
    toy.has_room = false;
    let refused_at = (1..10).find(|_| {
        toy.step(&STEP);
        toy.plans.remembered().is_some_and(|plan| !toy.plans.may_lay_out(&plan))
    });
    assert!(refused_at.is_some());
    toy.has_room = true;
    let waited = (1..100).find(|_| {
        toy.step(&STEP);
        toy.is_serving()
    });
    assert_eq!(waited, Some(5));
}

#[test]
fn a_plan_that_a_step_does_not_follow_is_dropped_within_it_and_loses_no_block() {
    let mut toy = Toy::new(ServingPolicy::HOST);
    toy.repeat(6);
    let kept = toy.alloc(STEP[0]);
    let others: Vec<u64> = (0..40).map(|number| toy.alloc(100_000 + number)).collect();
    assert!(toy.yield_plan() && !toy.is_serving());
    assert_eq!(toy.blocks.get(&kept), Some(&STEP[0]), "what was in use of the plan is a block now");
    assert!(!toy.yield_plan());
    assert!(toy.free(kept) && others.into_iter().all(|block| toy.free(block)));
    let served = toy.close();
    assert_eq!(served, Served { hits: 1, misses: 40 }, "the step's count survives the drop");
    assert_eq!(toy.plans.so_far(), toy.plans.closed());
}

#[test]
fn a_program_that_never_follows_its_plans_is_left_alone_ever_longer_by_the_host_policy() {
    let mut toy = Toy::new(ServingPolicy::HOST);
    let (mut served_in, mut next_size) = (Vec::new(), 1 << 20);
    for step in 0..1000_u64 {
        // It repeats itself until a plan is served, and then does something else.
        let sizes: Vec<u64> = if toy.is_serving() {
            served_in.push(step);
            next_size += 20;
            (next_size - 20..next_size).collect()
        } else {
            (1..20).map(|place| 4096 * place).collect()
        };
        toy.step(&sizes);
        toy.yield_plan();
    }
    assert!(!served_in.is_empty() && served_in.len() < 100, "{served_in:?}");
}

#[test]
fn a_plan_that_is_dropped_within_a_step_is_judged_by_it_on_devices_alone() {
    for (policy, is_trusted) in [(ServingPolicy::HOST, true), (ServingPolicy::DEVICE, false)] {
        let mut toy = Toy::new(policy);
        toy.repeat(6);
        let plan = toy.plans.remembered().expect("a plan is served");
        toy.plans.forget_steps();
        assert!(toy.plans.recurs(&plan), "it was followed");
        for number in 0..200 {
            toy.alloc(100_000 + number);
        }
        toy.drop_plan();
        toy.close();
        toy.plans.forget_steps();
        assert_eq!(toy.plans.recurs(&plan), is_trusted);
    }
}

#[test]
fn a_forked_child_serves_nothing_and_keeps_what_was_in_use() {
    let mut toy = Toy::new(ServingPolicy::HOST);
    toy.repeat(6);
    let kept = toy.alloc(STEP[0]);
    assert!(!toy.blocks.contains_key(&kept));
    toy.plans.pause();
    let served = toy.plans.start_anew(None).expect("a plan was served");
    toy.reclaim(&served);
    assert!(!toy.is_serving() && toy.plans.steps() == 0 && toy.plans.so_far() == Served::default());
    assert!(toy.free(kept));
}

proptest! {
    #[test]
    fn whatever_the_program_does_every_block_is_somewhere_and_counts_add_up(
        steps in prop::collection::vec(prop::collection::vec(0..6_usize, 0..30), 1..40),
        seldom in 2..9_usize,
        host in any::<bool>(),
    ) {
        let sizes = [512, 4096, 4096, 65_536, 1 << 20, 3 << 20];
        let mut toy = Toy::new(if host { ServingPolicy::HOST } else { ServingPolicy::DEVICE });
        let (mut live, mut counted): (Vec<u64>, Served) = (Vec::new(), Served::default());
        for (number, step) in steps.iter().cycle().take(60).enumerate() {
            for &which in step {
                let block = toy.alloc(sizes[which]);
                prop_assert!(!live.contains(&block), "two blocks are at one address");
                live.push(block);
                if live.len() > 3 {
                    prop_assert!(toy.free(live.remove(which % live.len())));
                }
            }
            if number % seldom == 0 {
                toy.yield_plan();
            }
            counted += toy.close();
            prop_assert_eq!(counted, toy.plans.closed());
        }
        toy.drop_plan();
        for block in live {
            prop_assert!(toy.free(block));
        }
        prop_assert!(toy.blocks.is_empty());
    }
}
