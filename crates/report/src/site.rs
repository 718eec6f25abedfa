//! Where in a program memory was asked for, as people would say it. A site is a text of frames, the innermost first,
//! between `; `; a frame is `file:line function`, or a function alone.

use std::borrow::Cow;

fn frames(site: &str) -> impl Iterator<Item = &str> {
    site.split("; ").filter(|frame| !frame.is_empty())
}

/// The frame that tells most, shortened: the innermost Python frame outside PyTorch, or else any Python frame; where
/// there is none, the operator that the device ran.
pub fn line(site: &str) -> Cow<'_, str> {
    let own = || frames(site).find(|frame| is_python(frame) && !is_framework(frame));
    let python = || frames(site).find(|frame| is_python(frame));
    if let Some(frame) = own().or_else(python) {
        return Cow::Borrowed(without_packages(frame));
    }
    let operator = |frame: &&str| {
        frame.contains("Backward") || (frame.contains("at::native::") && !frame.contains("at::native::empty"))
    };
    // Within a backward pass, its node says more than the kernels under it.
    let node = || frames(site).find(|frame| is_node(frame));
    let frame = node().or_else(|| frames(site).find(operator)).or_else(|| frames(site).next());
    frame.map_or(Cow::Borrowed(""), function)
}

/// The file of [`line`] without its folders and ending; of a function without a file, what it belongs to.
pub fn module(site: &str) -> String {
    let line = line(site);
    let place = line.split(' ').next().unwrap_or(&line);
    match place.rsplit_once(':').filter(|(_, number)| number.bytes().all(|digit| digit.is_ascii_digit())) {
        Some((file, _)) => {
            let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
            let name = name.strip_suffix(".py").unwrap_or(name);
            // Packages are known by their folder.
            let name = if name == "__init__" { file.rsplit(['/', '\\']).nth(1).unwrap_or(name) } else { name };
            name.to_owned()
        }
        None => line.rsplit_once("::").map_or(&*line, |(scope, _)| scope).to_owned(),
    }
}

/// The part of a model that `id` names, where it has parts: `layer1.0` of `layer1.0.conv`.
pub(crate) fn module_of_id(id: &str) -> Option<&str> {
    let id = id.strip_prefix('/').unwrap_or(id);
    let (module, _) = id.rsplit_once('/').or_else(|| id.rsplit_once('.'))?;
    if module.is_empty() { None } else { Some(module) }
}

fn is_python(frame: &str) -> bool {
    frame.split(' ').next().is_some_and(|place| place.contains(".py:"))
}

/// PyTorch's own Python code, and Python's.
fn is_framework(frame: &str) -> bool {
    let frame = frame.replace('\\', "/");
    let of_package = |name: &str| frame.starts_with(&format!("{name}/")) || frame.contains(&format!("/{name}/"));
    let is_standard = frame.contains("/lib/python") && without_packages(&frame).len() == frame.len();
    of_package("torch") || is_standard || frame.starts_with('<') || frame.contains("modules/module.py:")
}

/// `frame` without the folders that packages are installed in.
fn without_packages(frame: &str) -> &str {
    ["site-packages/", "dist-packages/"].iter().find_map(|folder| frame.rsplit_once(folder)).map_or(frame, |cut| cut.1)
}

/// A node of the backward pass: `torch::autograd::generated::ConvolutionBackward0::apply(…)`.
fn is_node(frame: &str) -> bool {
    frame.starts_with("torch::autograd::") && frame.contains("Backward") && frame.contains("::apply(")
}

/// The last two parts of a function's name, without its arguments.
fn function(frame: &str) -> Cow<'_, str> {
    const UNNAMED: &str = "(anonymous namespace)::";
    let named: Cow<'_, str> =
        if frame.contains(UNNAMED) { Cow::Owned(frame.replace(UNNAMED, "")) } else { Cow::Borrowed(frame) };
    let end = named.find(['(', '<']).filter(|&end| end > 0).unwrap_or(named.len());
    let parts: Vec<&str> = named[..end].split("::").collect();
    Cow::Owned(parts[parts.len().saturating_sub(2)..].join("::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_outside_the_framework_is_preferred() {
        let site = "at::empty(int); /v/lib/python3.12/site-packages/torch/nn/modules/linear.py:134 forward; \
                    /v/lib/python3.12/site-packages/vision/net.py:12 block; /home/x/t.py:3 main";
        assert_eq!(line(site), "vision/net.py:12 block");
        assert_eq!(module(site), "net");
        assert_eq!(line("a::b(int); torch/optim/adam.py:7 step"), "torch/optim/adam.py:7 step");
        assert_eq!(line("/usr/lib/python3.12/queue.py:1 get; run.py:2 f"), "run.py:2 f");
    }

    #[test]
    fn without_python_the_operator_tells_most() {
        let backward = "at::native::empty_cuda(int); at::native::conv(int); \
                        torch::autograd::generated::ConvBackward0::apply(std::vector<at::Tensor>&&); clone3";
        assert_eq!(line(backward), "ConvBackward0::apply");
        assert_eq!(module(backward), "ConvBackward0");
        let forward = "at::detail::empty_cuda(int); at::(anonymous namespace)::wrap<int>(x); at::native::conv2d(int)";
        assert_eq!(line(forward), "native::conv2d");
        assert_eq!(line("main"), "main");
    }

    #[test]
    fn odd_sites_are_no_trouble() {
        assert_eq!(module("pkg/__init__.py:3 f"), "pkg");
        assert_eq!((&*line(""), &*module("")), ("", ""));
        assert_eq!(line("(x)"), "(x)");
    }

    #[test]
    fn ids_with_parts_name_a_module() {
        assert_eq!(module_of_id("/layer1/conv/Conv_output_0"), Some("layer1/conv"));
        assert_eq!(module_of_id("layer1.0.weight"), Some("layer1.0"));
        assert_eq!(module_of_id("17"), None);
    }
}
