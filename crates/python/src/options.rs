//! Options for Python, by the names of the table in `core`: Python types neither variables nor defaults again.

use std::env;

use lowtide_core::options::{self, Entry, Every, Options, Scope, Value};
use pyo3::IntoPyObjectExt as _;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;

/// What the variables of this process say about learning. A value out of its range is an error.
pub(crate) fn of_learning() -> PyResult<Options> {
    let (options, errors) = Options::from_variables(&[Scope::Learning], |name| env::var_os(name));
    match errors.into_iter().next() {
        Some(error) => Err(PyValueError::new_err(error.to_string())),
        None => Ok(options),
    }
}

fn entry(name: &str) -> PyResult<&'static Entry> {
    options::find(name).ok_or_else(|| PyKeyError::new_err(format!("there is no option {name}")))
}

/// The value of the option called `name`, as the variables of this process or its default have it; `None` where neither
/// does. Sizes are bytes, times seconds.
#[pyfunction]
pub(crate) fn option<'py>(python: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    let entry = entry(name)?;
    let (options, errors) = Options::from_variables(&[entry.scope], |name| env::var_os(name));
    let of_entry = |error: &&options::OptionError| entry.is_given_by(&error.option);
    if let Some(error) = errors.iter().find(of_entry) {
        return Err(PyValueError::new_err(error.to_string()));
    }
    let value =
        options.iter().find(|(known, _)| known.name == entry.name).and_then(|(_, setting)| setting.value.clone());
    value.map(|value| object(python, value)).transpose()
}

/// The variable that carries the option called `name`.
#[pyfunction]
pub(crate) fn variable(name: &str) -> PyResult<&'static str> {
    Ok(entry(name)?.variable)
}

fn object(python: Python<'_>, value: Value) -> PyResult<Bound<'_, PyAny>> {
    match value {
        Value::Switch(on) => on.into_bound_py_any(python),
        Value::Count(number) => number.into_bound_py_any(python),
        Value::Number(number) => number.into_bound_py_any(python),
        Value::Size(size) => size.get().into_bound_py_any(python),
        Value::Seconds(time) | Value::SecondsOrStep(Every::Time(time)) => time.as_secs_f64().into_bound_py_any(python),
        Value::SecondsOrStep(Every::Step) => "step".into_bound_py_any(python),
        Value::Choice(name) => name.into_bound_py_any(python),
        Value::Text(text) => text.into_bound_py_any(python),
        Value::Path(path) => path.into_os_string().into_bound_py_any(python),
    }
}
