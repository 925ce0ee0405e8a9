// Package safetytest is shared by the tests of the packages below safety. It has journals of scenarios and
// their golden files, generators of objects, and checks that every decision must pass.
package safetytest
