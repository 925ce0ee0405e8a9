// Package gallery holds mistakes that somebody could make in this library, one small change of its
// source each, and a test that sees whether the simulation or a package's tests notice them. A
// check that cannot fail is worth nothing. This package checks the checks.
//
// The mistakes are applied to a copy, by the build's overlay, so the source stays
// as it is. All are in one build, and a switch chooses one (package overlay).
// Most were chosen from the code alone, before looking for what notices them.
//
// There is one table for each package. CONTRIBUTING.md says how to add to it.
package gallery
