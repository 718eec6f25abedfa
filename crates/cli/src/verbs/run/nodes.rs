//! On which NUMA nodes a program computes and has its memory.

use clap::Args;
use lowtide_memory::Placement;
use lowtide_memory::process::{Node, nodes, parse_list};

use crate::Failure;
use crate::program::Seat;

/// Where the program computes and has its memory.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "NUMA")]
pub(crate) struct NodeArguments {
    /// Compute on the processors of these nodes alone
    #[arg(long, value_name = "N[,N]")]
    cpu_node: Option<String>,
    /// Take memory from these nodes alone
    #[arg(long, value_name = "N[,N]", conflicts_with = "interleave")]
    mem_node: Option<String>,
    /// Take memory from these nodes in turn, page by page
    #[arg(long, value_name = "N,N|all")]
    interleave: Option<String>,
}

impl NodeArguments {
    /// The place that is asked for.
    pub fn seat(&self) -> Result<Seat, Failure> {
        if self.cpu_node.is_none() && self.mem_node.is_none() && self.interleave.is_none() {
            return Ok(Seat::default());
        }
        self.seat_on(&nodes())
    }

    fn seat_on(&self, there: &[Node]) -> Result<Seat, Failure> {
        let of = |text: &Option<String>, option| text.as_ref().map(|text| chosen(text, option, there)).transpose();
        let placement = match (of(&self.mem_node, "--mem-node")?, of(&self.interleave, "--interleave")?) {
            (Some(nodes), _) => Placement::Bound(nodes),
            (None, Some(nodes)) => Placement::Interleaved(nodes),
            (None, None) => Placement::Anywhere,
        };
        let mut processors = Vec::new();
        if let Some(wanted) = of(&self.cpu_node, "--cpu-node")? {
            processors = there.iter().filter(|node| wanted.contains(&node.number)).fold(processors, |mut all, node| {
                all.extend_from_slice(&node.processors);
                all
            });
            if processors.is_empty() {
                return Err(Failure::usage("the nodes of `--cpu-node` have no processors", listed(there)));
            }
        }
        Ok(Seat { processors, placement })
    }
}

/// The nodes that `text` names, all of which are there.
fn chosen(text: &str, option: &str, there: &[Node]) -> Result<Vec<u32>, Failure> {
    if text == "all" && !there.is_empty() {
        return Ok(there.iter().map(|node| node.number).collect());
    }
    let numbers = parse_list(text).filter(|numbers| !numbers.is_empty());
    let Some(mut numbers) = numbers else {
        let message = format!("`{option}` is `{text}`, which names no nodes");
        return Err(Failure::usage(message, format!("write numbers such as 0 or 0,1; {}", listed(there))));
    };
    numbers.sort_unstable();
    numbers.dedup();
    match numbers.iter().find(|number| there.iter().all(|node| node.number != **number)) {
        Some(missing) => Err(Failure::usage(format!("`{option}`: there is no node {missing}"), listed(there))),
        None => Ok(numbers),
    }
}

/// In words, which nodes there are.
fn listed(there: &[Node]) -> String {
    let numbers: Vec<String> = there.iter().map(|node| node.number.to_string()).collect();
    match &numbers[..] {
        [] => "this system tells of no nodes".to_owned(),
        [one] => format!("this machine has node {one} alone"),
        [most @ .., last] => format!("this machine has nodes {} and {last}", most.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there() -> [Node; 3] {
        [(0, vec![0, 1]), (1, vec![2, 3]), (4, vec![])].map(|(number, processors)| Node { number, processors })
    }

    fn seat(cpu: Option<&str>, memory: Option<&str>, interleave: Option<&str>) -> Result<Seat, Failure> {
        let text = |text: Option<&str>| text.map(str::to_owned);
        NodeArguments { cpu_node: text(cpu), mem_node: text(memory), interleave: text(interleave) }.seat_on(&there())
    }

    #[test]
    fn nodes_become_processors_and_a_placement() {
        let on_one = seat(Some("1"), Some("1"), None).unwrap();
        assert_eq!(on_one, Seat { processors: vec![2, 3], placement: Placement::Bound(vec![1]) });
        assert_eq!(seat(None, None, Some("1,0")).unwrap().placement, Placement::Interleaved(vec![0, 1]));
        assert_eq!(seat(None, None, Some("all")).unwrap().placement, Placement::Interleaved(vec![0, 1, 4]));
    }

    #[test]
    fn a_node_that_is_not_there_is_told_with_those_that_are() {
        let failure = seat(Some("2"), None, None).unwrap_err();
        assert_eq!(failure.to_string(), "`--cpu-node`: there is no node 2");
        assert_eq!(failure.hint(), "this machine has nodes 0, 1 and 4");
        assert!(seat(None, Some("x"), None).unwrap_err().hint().contains("write numbers such as 0"));
        assert!(seat(Some("4"), None, None).is_err());
        assert_eq!(listed(&there()[..1]), "this machine has node 0 alone");
    }
}
