//! Tables whose columns other libraries can use without a copy.

use arrow_array::builder::{
    BooleanBuilder, Float64Builder, Int64Builder, StringBuilder, UInt64Builder,
};
use arrow_array::cast::AsArray;
use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchIterator};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyCapsule, PyDict, PyFloat, PyInt, PyList, PyString};
use std::sync::Arc;

/// An immutable table of named columns, all of the same length.
///
/// Libraries that support Arrow's PyCapsule interface can use the table without copying it: `polars.DataFrame(table)`,
/// `pyarrow.table(table)`, `pandas.DataFrame.from_arrow(table)`. In DuckDB, a query can name the variable that holds
/// the table.
#[pyclass(frozen, module = "corsair._corsair")]
#[derive(Debug)]
pub struct Table {
    batch: RecordBatch,
}

impl Table {
    /// Creates a table from these columns.
    pub fn of(columns: Vec<(&str, ArrayRef)>) -> PyResult<Table> {
        let fields: Vec<Field> = columns
            .iter()
            .map(|(name, column)| Field::new(*name, column.data_type().clone(), true))
            .collect();
        let columns = columns.into_iter().map(|(_, column)| column).collect();
        let schema = Arc::new(Schema::new(fields));
        let batch = RecordBatch::try_new(schema, columns).map_err(wrong)?;
        Ok(Table { batch })
    }

    fn names(&self) -> Vec<&str> {
        let schema = self.batch.schema_ref();
        let names = schema.fields().iter();
        names.map(|field| field.name().as_str()).collect()
    }

    fn column(&self, name: &str) -> PyResult<&ArrayRef> {
        self.batch.column_by_name(name).ok_or_else(|| {
            let names = self.names();
            PyKeyError::new_err(match corsair_arch::nearest(name, names.iter().copied()) {
                Some(near) => format!("there is no column '{name}'; did you mean {near}?"),
                None => format!(
                    "there is no column '{name}'; expected one of {}",
                    names.join(", ")
                ),
            })
        })
    }
}

fn wrong(error: ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

#[pymethods]
impl Table {
    /// Creates a table from columns. Each column is a list of numbers, texts or truth values, in which None stands for
    /// a missing value.
    #[new]
    fn new(columns: &Bound<'_, PyDict>) -> PyResult<Table> {
        let mut arrays: Vec<(String, ArrayRef)> = Vec::with_capacity(columns.len());
        for (name, values) in columns {
            let name: String = name.extract()?;
            let values: Vec<Bound<'_, PyAny>> = values.extract()?;
            let array = array(&values)
                .map_err(|what| PyTypeError::new_err(format!("column '{name}': {what}")))?;
            arrays.push((name, array));
        }
        if arrays.is_empty() {
            return Err(PyValueError::new_err("a table has at least one column"));
        }
        let lengths: Vec<usize> = arrays.iter().map(|(_, array)| array.len()).collect();
        if lengths.iter().any(|&length| length != lengths[0]) {
            return Err(PyValueError::new_err(format!(
                "the columns of a table have one length, not {lengths:?}"
            )));
        }
        Table::of(
            arrays
                .iter()
                .map(|(name, array)| (name.as_str(), Arc::clone(array)))
                .collect(),
        )
    }

    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<&str> {
        self.names()
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    fn __contains__(&self, name: &str) -> bool {
        self.batch.column_by_name(name).is_some()
    }

    /// The values of a column as a list, or a row by its number as a dict.
    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        which: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(name) = which.cast::<PyString>() {
            return list(py, self.column(&name.to_cow()?)?).map(Bound::into_any);
        }
        let Ok(number) = which.extract::<i64>() else {
            return Err(PyTypeError::new_err(
                "a table is asked for a column by its name, or for a row by its number",
            ));
        };
        let rows = self.batch.num_rows() as i64;
        let row = if number < 0 {
            number.saturating_add(rows)
        } else {
            number
        };
        if !(0..rows).contains(&row) {
            return Err(pyo3::exceptions::PyIndexError::new_err(format!(
                "there is no row {number}; the table has {rows} rows"
            )));
        }
        let dict = PyDict::new(py);
        for (name, column) in self.names().iter().zip(self.batch.columns()) {
            dict.set_item(name, value(py, column, row as usize)?)?;
        }
        Ok(dict.into_any())
    }

    /// All columns as lists.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, column) in self.names().iter().zip(self.batch.columns()) {
            dict.set_item(name, list(py, column)?)?;
        }
        Ok(dict)
    }

    /// All rows as dicts.
    fn rows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let rows = PyList::empty(py);
        let columns: Vec<Bound<'py, PyList>> = self
            .batch
            .columns()
            .iter()
            .map(|column| list(py, column))
            .collect::<PyResult<_>>()?;
        for number in 0..self.batch.num_rows() {
            let row = PyDict::new(py);
            for (name, column) in self.names().iter().zip(&columns) {
                row.set_item(name, column.get_item(number)?)?;
            }
            rows.append(row)?;
        }
        Ok(rows)
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.rows(py)?.call_method0("__iter__")
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other
            .cast::<Table>()
            .is_ok_and(|other| other.get().batch == self.batch)
    }

    fn __repr__(&self) -> String {
        format!(
            "Table({} rows: {})",
            self.batch.num_rows(),
            self.names().join(", ")
        )
    }

    /// The first rows as a table, for notebooks.
    fn _repr_html_<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        const SHOWN: usize = 20;
        let rows = self.batch.num_rows();
        let columns = self.batch.columns();
        let cell = |column: &ArrayRef, row| -> PyResult<String> {
            let value = value(py, column, row)?;
            match value.cast::<PyFloat>() {
                Ok(float) => Ok(float.call_method1("__format__", (".6g",))?.to_string()),
                Err(_) if value.is_none() => Ok(String::new()),
                Err(_) => Ok(value.str()?.to_string()),
            }
        };
        let shown = (0..rows.min(SHOWN))
            .map(|row| columns.iter().map(|column| cell(column, row)).collect())
            .collect::<PyResult<Vec<Vec<String>>>>()?;
        let left = rows.saturating_sub(SHOWN);
        let html = py.import("corsair._html")?;
        html.call_method1("rows_table", (self.names(), shown, left))
    }

    /// The columns and their types (Arrow's PyCapsule interface).
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.batch.schema_ref().as_ref()).map_err(wrong)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The table as a stream of one batch (Arrow's PyCapsule interface). The requested schema is ignored: a consumer
    /// that needs another schema must cast the batch.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let schema = self.batch.schema();
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], schema);
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// The table as one array of structs (Arrow's PyCapsule interface).
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        let _ = requested_schema;
        let structs = arrow_array::StructArray::from(self.batch.clone());
        let (array, schema) = arrow_array::ffi::to_ffi(&structs.to_data()).map_err(wrong)?;
        Ok((
            PyCapsule::new_with_value(py, schema, c"arrow_schema")?,
            PyCapsule::new_with_value(py, array, c"arrow_array")?,
        ))
    }

    /// Pickles the columns as lists of values. Text columns with dictionary encoding lose that encoding.
    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyDict>,))> {
        Ok((py.get_type::<Table>().into_any(), (self.to_dict(py)?,)))
    }
}

/// Returns an array of these values. Its type is the narrowest that can represent all of them.
fn array(values: &[Bound<'_, PyAny>]) -> Result<ArrayRef, String> {
    let present = || values.iter().filter(|value| !value.is_none());
    let refused = |value: &Bound<'_, PyAny>| {
        let kind = value.get_type();
        let kind = kind
            .name()
            .map_or_else(|_| "this".to_owned(), |name| name.to_string());
        format!(
            "{kind} does not fit the column; expected a number, a text or a truth value like the other rows"
        )
    };
    if present().next().is_some() && present().all(|value| value.is_instance_of::<PyBool>()) {
        let mut column = BooleanBuilder::new();
        for value in values {
            column.append_option(value.extract().ok());
        }
        return Ok(Arc::new(column.finish()));
    }
    if present().next().is_some() && present().all(|value| value.is_instance_of::<PyString>()) {
        let mut column = StringBuilder::new();
        for value in values {
            column.append_option(value.extract::<String>().ok());
        }
        return Ok(Arc::new(column.finish()));
    }
    if present().next().is_some() && present().all(|value| value.is_instance_of::<PyInt>()) {
        if present().all(|value| value.extract::<i64>().is_ok()) {
            let mut column = Int64Builder::new();
            for value in values {
                column.append_option(value.extract().ok());
            }
            return Ok(Arc::new(column.finish()));
        }
        if present().all(|value| value.extract::<u64>().is_ok()) {
            let mut column = UInt64Builder::new();
            for value in values {
                column.append_option(value.extract().ok());
            }
            return Ok(Arc::new(column.finish()));
        }
    }
    let mut column = Float64Builder::new();
    for value in values {
        if value.is_none() {
            column.append_null();
        } else if value.is_instance_of::<PyFloat>() || value.is_instance_of::<PyInt>() {
            column.append_value(value.extract().map_err(|_| refused(value))?);
        } else {
            return Err(refused(value));
        }
    }
    Ok(Arc::new(column.finish()))
}

fn list<'py>(py: Python<'py>, column: &ArrayRef) -> PyResult<Bound<'py, PyList>> {
    let values = PyList::empty(py);
    for row in 0..column.len() {
        values.append(value(py, column, row)?)?;
    }
    Ok(values)
}

/// Returns the value of a column in a row.
fn value<'py>(py: Python<'py>, column: &ArrayRef, row: usize) -> PyResult<Bound<'py, PyAny>> {
    if column.is_null(row) {
        return Ok(py.None().into_bound(py));
    }
    Ok(match column.data_type() {
        DataType::UInt64 => column
            .as_primitive::<UInt64Type>()
            .value(row)
            .into_pyobject(py)?
            .into_any(),
        DataType::Int64 => column
            .as_primitive::<Int64Type>()
            .value(row)
            .into_pyobject(py)?
            .into_any(),
        DataType::Float64 => column
            .as_primitive::<Float64Type>()
            .value(row)
            .into_pyobject(py)?
            .into_any(),
        DataType::Boolean => PyBool::new(py, column.as_boolean().value(row))
            .to_owned()
            .into_any(),
        DataType::Utf8 => PyString::new(py, column.as_string::<i32>().value(row)).into_any(),
        DataType::Dictionary(_, _) => {
            let words = column.as_dictionary::<UInt32Type>();
            let key = words.keys().value(row) as usize;
            PyString::new(py, words.values().as_string::<i32>().value(key)).into_any()
        }
        other => {
            return Err(PyTypeError::new_err(format!(
                "a column of {other} has no values in Python"
            )));
        }
    })
}
