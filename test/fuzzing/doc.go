// Package fuzzing lets fuzz targets take values of any type, such as observations, policies and stored
// objects, instead of bytes.
//
// A [Form] decodes any bytes as values, and encodes values as bytes, so that observations of tests can be
// seeds. A [Decision] is a fuzz target for a pure decision function.
package fuzzing
