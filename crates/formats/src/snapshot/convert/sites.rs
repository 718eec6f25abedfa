//! Stacks as texts, and what can be told from them: which part of a training step asked for the memory. The latter is
//! an inference from the names of functions and files, nothing that PyTorch records.

use crate::snapshot::contents::words::Word;
use crate::snapshot::contents::{Contents, FrameRecord};

/// The longest text of a column; with all columns at their longest and nothing but quotes in them, each of which is
/// written twice, a row still fits a line.
pub(crate) const TEXT_BYTES: usize = 64 << 10;

/// What a frame tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Traits(u8);

impl Traits {
    /// Part of the recorder or of the allocator.
    const RECORDER: Self = Self(1);
    const OPTIMIZER: Self = Self(2);
    const BACKWARD: Self = Self(4);
    const PARAMETER: Self = Self(8);
    const FORWARD: Self = Self(16);
    /// Gives memory to a library that keeps it.
    const WORKSPACE: Self = Self(32);

    /// Those that hold.
    fn of(traits: &[(Self, bool)]) -> Self {
        Self(traits.iter().fold(0, |all, &(one, holds)| if holds { all | one.0 } else { all }))
    }

    fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// What memory is for that a frame with these traits asks for; parameters are made only before the first step.
    fn category(self, before_steps: bool) -> Option<&'static str> {
        if self.has(Self::OPTIMIZER) {
            Some("optimizer")
        } else if self.has(Self::BACKWARD) {
            Some("backward")
        } else if self.has(Self::PARAMETER) && before_steps {
            Some("parameter")
        } else if self.has(Self::FORWARD) {
            Some("forward")
        } else {
            None
        }
    }
}

/// What memory is for that a stack asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Purpose {
    before_steps: Option<&'static str>,
    later: Option<&'static str>,
}

/// A stack for people.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Site {
    /// The frames, the innermost first.
    pub(crate) text: String,
    /// Whether the text was cut because of its length.
    pub(crate) is_cut: bool,
}

/// What the texts of frames tell, each looked at once.
pub(crate) struct Sites {
    /// By the places of texts.
    hints: Vec<Option<Hints>>,
    /// By the places of stacks.
    stacks: Vec<Option<Purpose>>,
}

impl Sites {
    pub(crate) fn new(contents: &Contents) -> Self {
        Self { hints: vec![None; contents.texts.len()], stacks: vec![None; contents.stacks.len()] }
    }

    /// What memory is for that a stack asks for: some frame makes it a workspace, or the innermost frame that tells
    /// anything decides.
    pub(crate) fn category(&mut self, contents: &Contents, stack: u32, before_steps: bool) -> Option<&'static str> {
        let purpose = self.stacks[stack as usize].unwrap_or_else(|| self.purpose(contents, stack));
        self.stacks[stack as usize] = Some(purpose);
        if before_steps { purpose.before_steps } else { purpose.later }
    }

    fn purpose(&mut self, contents: &Contents, stack: u32) -> Purpose {
        let mut purpose = Purpose { before_steps: None, later: None };
        for &frame in contents.stacks.get(stack) {
            let traits = self.frame(contents, contents.frames.get(frame));
            if traits.has(Traits::WORKSPACE) {
                return Purpose { before_steps: Some(WORKSPACE), later: Some(WORKSPACE) };
            }
            purpose.before_steps = purpose.before_steps.or_else(|| traits.category(true));
            purpose.later = purpose.later.or_else(|| traits.category(false));
        }
        purpose
    }

    /// A stack as a text, without the recorder's own frames.
    pub(crate) fn site(&mut self, contents: &Contents, stack: u32) -> Site {
        let mut site = Site::default();
        let frames = contents.stacks.get(stack).iter().map(|&frame| contents.frames.get(frame));
        for frame in frames.skip_while(|&frame| self.frame(contents, frame).has(Traits::RECORDER)) {
            push_frame(&mut site.text, contents, frame);
            site.is_cut = clip(&mut site.text);
            if site.is_cut {
                break;
            }
        }
        site
    }

    fn frame(&mut self, contents: &Contents, frame: FrameRecord) -> Traits {
        let [name, file] = [frame.name, frame.file]
            .map(|text| *self.hints[text as usize].get_or_insert_with(|| Hints::of(contents.text_at(text))));
        name.with_file(file)
    }
}

/// Adds a frame to the text of a stack.
fn push_frame(text: &mut String, contents: &Contents, frame: FrameRecord) {
    let (name, file) = (contents.text_at(frame.name), contents.text_at(frame.file));
    let has_file = ![Word::Unknown, Word::Nothing].map(Word::place).contains(&frame.file) && frame.line > 0;
    if !has_file && name.is_empty() {
        return;
    }
    if !text.is_empty() {
        text.push_str("; ");
    }
    if has_file {
        push_name(text, file);
        text.push(':');
        text.push_str(&frame.line.to_string());
        text.push(' ');
    }
    push_name(text, name);
}

/// Adds a name, as far as it can be of use, without the character that separates frames.
fn push_name(text: &mut String, name: &str) {
    let mut parts = name[..name.floor_char_boundary(TEXT_BYTES + 1)].split(';');
    text.push_str(parts.next().unwrap_or_default());
    for part in parts {
        text.push(',');
        text.push_str(part);
    }
}

/// Cuts a text at what a column may hold; whether that was needed.
pub(crate) fn clip(text: &mut String) -> bool {
    if text.len() <= TEXT_BYTES {
        return false;
    }
    text.truncate(text.floor_char_boundary(TEXT_BYTES - '…'.len_utf8()));
    text.push('…');
    true
}

/// What a text tells as the name of a function, and what as a file.
#[derive(Clone, Copy, Debug)]
struct Hints {
    /// What the function tells wherever it is.
    name: Traits,
    /// What the function tells in a file of PyTorch's modules.
    name_in_modules: Traits,
    /// What the function tells in a file of an optimizer.
    name_in_optimizer: Traits,
    file: Traits,
    is_modules: bool,
    is_optimizer: bool,
}

impl Hints {
    fn of(text: &str) -> Self {
        let path = text.replace('\\', "/");
        Self {
            name: Traits::of(&[
                (Traits::RECORDER, RECORDER.iter().any(|part| text.contains(part))),
                (Traits::BACKWARD, text == "backward" || BACKWARD.iter().any(|part| text.contains(part))),
                (Traits::PARAMETER, MAKERS.contains(&text)),
                (Traits::FORWARD, text == "forward"),
                (Traits::WORKSPACE, WORKSPACES.iter().any(|part| text.contains(part))),
            ]),
            name_in_modules: Traits::of(&[
                (Traits::PARAMETER, MODULE_MAKERS.contains(&text)),
                (Traits::FORWARD, text.ends_with("_call_impl")),
            ]),
            name_in_optimizer: Traits::of(&[(Traits::OPTIMIZER, text == "step")]),
            file: Traits::of(&[(Traits::OPTIMIZER, path.contains("torch/optim/"))]),
            is_modules: path.contains("torch/nn/"),
            is_optimizer: path.rsplit('/').next().is_some_and(|name| name.contains("optim")),
        }
    }

    /// What a function of this name tells in `file`.
    fn with_file(self, file: Self) -> Traits {
        let mut traits = self.name.0 | file.file.0;
        traits |= if file.is_modules { self.name_in_modules.0 } else { 0 };
        traits |= if file.is_optimizer { self.name_in_optimizer.0 } else { 0 };
        Traits(traits)
    }
}

const RECORDER: [&str; 4] = ["torch::unwind::", "CapturedTraceback::", "::gather_with_cpp(", "CachingAllocator::"];
const WORKSPACE: &str = "workspace";
const WORKSPACES: [&str; 3] = ["setWorkspaceForHandle", "CUDABlasLtWorkspace", "cublasSetWorkspace"];
const BACKWARD: [&str; 2] = ["_run_backward", "torch::autograd::Engine::"];
const MAKERS: [&str; 4] = ["reset_parameters", "_init_weights", "from_pretrained", "load_state_dict"];
const MODULE_MAKERS: [&str; 9] =
    ["__init__", "_apply", "to", "to_empty", "cuda", "half", "float", "double", "bfloat16"];
