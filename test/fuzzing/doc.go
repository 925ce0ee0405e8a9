// Package fuzzing lets fuzz targets take whole values: observations, policies, stored objects.
//
// A [Form] reads any bytes as values of any type, and writes values as bytes, so that a target can
// begin with observations that tests have made. A [Decision] is a fuzz target of one pure decision.
package fuzzing
